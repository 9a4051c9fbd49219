#include "lanes_portable.h"

#include "cls.inc"

const petridish::Cls petridish::CLS_PORTABLE = {
    "portable", bytes, chunk_of, begin, add, finish, outputs,
};
