#include "simd_avx2.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_AVX2 = {
    "avx2", lay_out, find_patterns, scratch_bytes, pass, peak_flops,
};
