#include "lanes_avx2.h"

#include "attention.inc"

const petridish::Attention petridish::ATTENTION_AVX2 = {
    "avx2", L, bytes, begin, add, finish, outputs, update,
};
