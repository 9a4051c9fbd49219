#include "lanes_portable.h"

#include "attention.inc"

const petridish::Attention petridish::ATTENTION_PORTABLE = {
    "portable", L, bytes, begin, add, finish, outputs, pattern, update,
};

const petridish::Attention petridish::MINIMAL_PORTABLE = {
    "portable", L, minimal::bytes, minimal::begin, minimal::add, minimal::finish, minimal::outputs, nullptr,
    update,
};
