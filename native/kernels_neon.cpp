#if defined(__aarch64__)
#include "simd_neon.h"

#include "kernels.inc"

const petridish::Kernels petridish::KERNELS_NEON = {
    "neon", lay_out, find_patterns, scratch_bytes, pass, peak_flops,
};
#endif
