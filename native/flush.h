// Numbers below 1e-38 are 0 while one of these lives: on many processors they cost a hundred times as
// much, and networks that fail, or attend sharply, reach them. The caller's mode comes back.
#pragma once
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace petridish {

class FlushToZero {
   public:
#if defined(__x86_64__)
    FlushToZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushToZero() { _mm_setcsr(before_); }

   private:
    unsigned before_;
#elif defined(__aarch64__)
    FlushToZero() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" : : "r"(before_ | (uint64_t)1 << 24));
    }
    ~FlushToZero() { asm volatile("msr fpcr, %0" : : "r"(before_)); }

   private:
    uint64_t before_;
#endif
};

}  // namespace petridish
