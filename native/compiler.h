// What GCC and Clang say in different words.
#pragma once

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define NOINLINE __attribute__((noinline))
#define FORCE_INLINE inline __attribute__((always_inline))

// The numbers of two vectors by turns: of their lower halves, of their upper halves.
using Byte16 = signed char __attribute__((vector_size(16)));
using Float4 = float __attribute__((vector_size(16)));
using Int4 = int __attribute__((vector_size(16)));
#if defined(__clang__)
#define INTERLEAVED_4(a, b, i) __builtin_shufflevector(a, b, i, i + 4, i + 1, i + 5)
#define INTERLEAVED(a, b, i)                                                                     \
    __builtin_shufflevector(a, b, i, i + 16, i + 1, i + 17, i + 2, i + 18, i + 3, i + 19, i + 4, \
                            i + 20, i + 5, i + 21, i + 6, i + 22, i + 7, i + 23)
#else
#define INTERLEAVED_4(a, b, i) __builtin_shuffle(a, b, Int4{i, i + 4, i + 1, i + 5})
#define INTERLEAVED(a, b, i)                                                                  \
    __builtin_shuffle(a, b, Byte16{i, i + 16, i + 1, i + 17, i + 2, i + 18, i + 3, i + 19,    \
                                   i + 4, i + 20, i + 5, i + 21, i + 6, i + 22, i + 7, i + 23})
#endif
FORCE_INLINE Byte16 lower_interleaved(Byte16 a, Byte16 b) { return INTERLEAVED(a, b, 0); }
FORCE_INLINE Byte16 upper_interleaved(Byte16 a, Byte16 b) { return INTERLEAVED(a, b, 8); }
FORCE_INLINE Float4 lower_interleaved(Float4 a, Float4 b) { return INTERLEAVED_4(a, b, 0); }
FORCE_INLINE Float4 upper_interleaved(Float4 a, Float4 b) { return INTERLEAVED_4(a, b, 2); }
