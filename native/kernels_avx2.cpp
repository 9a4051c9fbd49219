#include "simd_avx2.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_AVX2 = {
    "avx2", expand, build, examples_mask, table_bytes, pass, expand_rows, forward, descend, peak_flops,
};
