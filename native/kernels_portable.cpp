#if !defined(__aarch64__)
#include "simd_portable.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_PORTABLE = {
    "portable", lay_out, find_patterns, scratch_bytes, pass, peak_flops,
};
#endif
