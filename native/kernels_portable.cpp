#include "simd_portable.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_PORTABLE = {
    "portable", expand, build, examples_mask, table_bytes, pass, expand_rows, forward, descend, peak_flops,
};
