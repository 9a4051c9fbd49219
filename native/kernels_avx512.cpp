#include "simd_avx512.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_AVX512 = {
    "avx512", lay_out, find_patterns, scratch_bytes, pass, peak_flops,
};
