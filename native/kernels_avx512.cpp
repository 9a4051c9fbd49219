#include "simd_avx512.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_AVX512 = {
    "avx512", expand, build, table_bytes, pass, peak_flops,
};
