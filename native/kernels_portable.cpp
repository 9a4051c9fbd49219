#include "simd_portable.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_PORTABLE = {
    "portable", expand, build, examples_mask, table_bytes, pass, peak_flops,
};
