#include "lanes_avx512.h"

#include "attention.inc"

const petridish::Attention petridish::ATTENTION_AVX512 = {
    "avx512", L, bytes, begin, add, finish, outputs, update,
};
