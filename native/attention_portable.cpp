#include "lanes_portable.h"

#include "attention.inc"

const petridish::Attention petridish::ATTENTION_PORTABLE = {
    "portable", L, bytes, begin, add, finish, outputs, update,
};
