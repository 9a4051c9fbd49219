#include "lanes_avx2.h"

#include "cls.inc"

const petridish::Cls petridish::CLS_AVX2 = {
    "avx2", bytes, chunk_of, begin, add, finish, outputs,
};
