#include "simd_avx512.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_AVX512 = {
    "avx512", expand, build, examples_mask, table_bytes, pass, expand_rows, forward, descend, peak_flops,
};
