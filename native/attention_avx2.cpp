#include "lanes_avx2.h"

#include "attention.inc"

const petridish::Attention petridish::ATTENTION_AVX2 = {
    "avx2", L, bytes, begin, add, finish, outputs, pattern, update,
};

const petridish::Attention petridish::MINIMAL_AVX2 = {
    "avx2", L, minimal::bytes, minimal::begin, minimal::add, minimal::finish, minimal::outputs, nullptr,
    update,
};
