#include "lanes_avx512.h"

#include "cls.inc"

const petridish::Cls petridish::CLS_AVX512 = {
    "avx512", bytes, chunk_of, begin, add, finish, outputs,
};
