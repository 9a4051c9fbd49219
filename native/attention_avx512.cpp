#include "lanes_avx512.h"

#include "attention.inc"

const petridish::Attention petridish::ATTENTION_AVX512 = {
    "avx512", L, bytes, begin, add, finish, outputs, pattern, update,
};

const petridish::Attention petridish::MINIMAL_AVX512 = {
    "avx512", L, minimal::bytes, minimal::begin, minimal::add, minimal::finish, minimal::outputs, nullptr,
    update,
};
