// Vectors of 256 bits: AVX2 and FMA.
#pragma once
#include <immintrin.h>
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

struct Floats {
    using Number = float;
    static constexpr int COUNT = 8, TOGETHER = 2;
    __m256 value;

    static Floats zero() { return {_mm256_setzero_ps()}; }
    static Floats all(float x) { return {_mm256_set1_ps(x)}; }
    static Floats load(const float* p) { return {_mm256_load_ps(p)}; }
    static Floats load_half(const float* p) { return load(p); }  // eight: a whole vector
    // All bits in the first `count` lanes, none in the others.
    static Floats first(int count) {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane))};
    }
    // coefficient · x of the coordinates start … start + 7 of a packed example.
    static Floats signed_by(const uint64_t* example, int start, float coefficient) {
        const __m256i lane = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
        const __m256i bits = _mm256_set1_epi32((int)(example[start / 64] >> start % 64));
        const __m256i sign =
            _mm256_and_si256(_mm256_sllv_epi32(bits, lane), _mm256_set1_epi32(INT32_MIN));
        return {_mm256_xor_ps(_mm256_castsi256_ps(sign), _mm256_set1_ps(coefficient))};
    }
    void store(float* p) const { _mm256_store_ps(p, value); }
    void store_half(float* p) const { store(p); }
    Floats low_half() const { return *this; }
    Floats part(int) const { return *this; }
    Floats operator+(Floats other) const { return {_mm256_add_ps(value, other.value)}; }
    Floats operator&(Floats other) const { return {_mm256_and_ps(value, other.value)}; }
    void keep() { asm("" : "+x"(value)); }  // in a register, and unknown to the optimiser
};

inline Floats fma(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.value, b.value, c.value)};
}

// max(0, z), and z where z is no number: a network that diverges shows it.
inline Floats relu(Floats z) { return {_mm256_max_ps(_mm256_setzero_ps(), z.value)}; }

// A bit for each example says z_e > 0. Packing four comparisons into bytes takes the examples in
// the order in which the halves of the vectors come out; `mask_place` says where four of them lie.
inline uint32_t positive(const Floats z[4]) {
    __m256i is[4];
    UNROLL for (int q = 0; q < 4; ++q)
        is[q] = _mm256_castps_si256(_mm256_cmp_ps(z[q].value, _mm256_setzero_ps(), _CMP_GT_OQ));
    const __m256i low = _mm256_packs_epi32(is[0], is[1]), high = _mm256_packs_epi32(is[2], is[3]);
    return (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(low, high));
}
constexpr int mask_place(int group) { return 16 * (group % 2) + 4 * (group / 2); }

// The 16 partial sums in a fixed tree: k with k + 8, then + 4, + 2, + 1.
inline float sum_of_16(const Floats part[2]) {
    const __m256 eight = _mm256_add_ps(part[0].value, part[1].value);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Twelve sums, three weights and one x fill the sixteen registers.
constexpr int TILE_ROWS = 3;

// Of the four vectors of a block, three are added as products ±1 · w, which keeps the two
// multipliers busy, and one as w with its sign flipped, which two other pipes of AMD's processors
// do beside them: a third faster than products alone there, and no slower elsewhere.
constexpr int PRODUCTS = 3;
inline Floats add_product(Floats w, Floats x, Floats z) { return fma(w, x, z); }
inline Floats with_sign_flipped(Floats w, Floats sign) {
    return {_mm256_xor_ps(w.value, sign.value)};
}

// The loop that everything waits for, by hand: `pairs` times two coordinates of three rows. No
// compiler at hand keeps sixteen registers busy without storing one, and the order (products row by
// row, then the three flips, then their sums) is the one that the pipes take best; measured in
// cycles a coordinate and row: 1.50, against 1.67 as compiled, and 2 for products alone.
constexpr bool HAS_PAIRS = true;
#define PRODUCT(offset, z0, z1, z2)             \
    "vmovaps " offset "(%[x]), %%ymm15\n"       \
    "vfmadd231ps %%ymm15, %%ymm14, %[" z2 "]\n" \
    "vfmadd231ps %%ymm15, %%ymm13, %[" z1 "]\n" \
    "vfmadd231ps %%ymm15, %%ymm12, %[" z0 "]\n"
#define FLIPPED(offset, z0, z1, z2)             \
    "vmovaps " offset "(%[x]), %%ymm15\n"       \
    "vxorps %%ymm15, %%ymm14, %%ymm14\n"        \
    "vxorps %%ymm15, %%ymm13, %%ymm13\n"        \
    "vxorps %%ymm15, %%ymm12, %%ymm12\n"        \
    "vaddps %%ymm14, %[" z2 "], %[" z2 "]\n"    \
    "vaddps %%ymm13, %[" z1 "], %[" z1 "]\n"    \
    "vaddps %%ymm12, %[" z0 "], %[" z0 "]\n"
#define COORDINATE(w, x0, x1, x2, x3)           \
    "vbroadcastss " w "(%[w]), %%ymm12\n"       \
    "vbroadcastss " w "(%[w],%[s]), %%ymm13\n"  \
    "vbroadcastss " w "(%[w],%[s],2), %%ymm14\n"\
    PRODUCT(x0, "z00", "z10", "z20")            \
    PRODUCT(x1, "z01", "z11", "z21")            \
    PRODUCT(x2, "z02", "z12", "z22")            \
    FLIPPED(x3, "z03", "z13", "z23")
inline void add_pairs(const float* rows, int stride, const float* x, int64_t pairs,
                      Floats (&z)[TILE_ROWS][4]) {
    const float* const end = x + 64 * pairs;
    asm volatile(
        ".p2align 6\n"
        "1:\n" COORDINATE("0", "0", "32", "64", "96") COORDINATE("4", "128", "160", "192", "224")
        "add $8, %[w]\n"
        "add $256, %[x]\n"
        "cmp %[end], %[x]\n"
        "jne 1b\n"
        : [z00] "+x"(z[0][0].value), [z01] "+x"(z[0][1].value), [z02] "+x"(z[0][2].value),
          [z03] "+x"(z[0][3].value), [z10] "+x"(z[1][0].value), [z11] "+x"(z[1][1].value),
          [z12] "+x"(z[1][2].value), [z13] "+x"(z[1][3].value), [z20] "+x"(z[2][0].value),
          [z21] "+x"(z[2][1].value), [z22] "+x"(z[2][2].value), [z23] "+x"(z[2][3].value),
          [w] "+r"(rows), [x] "+r"(x)
        : [s] "r"((int64_t)stride * 4), [end] "r"(end)
        : "cc", "memory", "xmm12", "xmm13", "xmm14", "xmm15");
}
#undef PRODUCT
#undef FLIPPED
#undef COORDINATE

// 32 bytes, the coordinate 8k + l in byte 4l + k: so part k is cut out of eight 32-bit integers by
// two shifts.
struct Bytes {
    using Number = int8_t;
    static constexpr int COUNT = 32, TOGETHER = 2;
    __m256i value;

    static Bytes zero() { return {_mm256_setzero_si256()}; }
    static Bytes load(const int8_t* p) { return {_mm256_load_si256((const __m256i*)p)}; }
    static Bytes first(int count) {
        const __m256i l = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i four = _mm256_mullo_epi32(l, _mm256_set1_epi32(0x01010101));
        const __m256i place = _mm256_add_epi8(four, _mm256_set1_epi32(0x18100800));
        const char limit = (char)(count < 32 ? (count > 0 ? count : 0) : 32);
        return {_mm256_cmpgt_epi8(_mm256_set1_epi8(limit), place)};
    }
    // coefficient · x (±1 or 0) of the coordinates start … start + 31 of a packed example.
    static Bytes signed_by(const uint64_t* example, int start, float coefficient) {
        const __m256i l = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i bit = _mm256_sllv_epi32(_mm256_set1_epi32(0x01010101), l);
        const uint32_t flip = coefficient < 0 ? ~0u : 0u;
        const uint32_t bits = (uint32_t)(example[start / 64] >> start % 64) ^ flip;
        const __m256i set = _mm256_and_si256(_mm256_set1_epi32((int)bits), bit);
        const __m256i sign = _mm256_or_si256(_mm256_cmpeq_epi8(set, bit), _mm256_set1_epi8(1));
        return {_mm256_sign_epi8(sign, _mm256_set1_epi8(coefficient != 0))};
    }
    Floats part(int k) const {
        const __m256i top = _mm256_slli_epi32(value, 24 - 8 * k);
        return {_mm256_cvtepi32_ps(_mm256_srai_epi32(top, 24))};
    }
    void store(int8_t* p) const { _mm256_store_si256((__m256i*)p, value); }
    Bytes operator+(Bytes other) const { return {_mm256_add_epi8(value, other.value)}; }
    Bytes operator&(Bytes other) const { return {_mm256_and_si256(value, other.value)}; }
};

// 32-bit words, of which the top bits become signs.
struct Words {
    __m256i value;

    static Words load(const uint32_t* p) { return {_mm256_load_si256((const __m256i*)p)}; }
    Words shifted() const { return {_mm256_add_epi32(value, value)}; }
    Floats top_as_sign() const {
        return {_mm256_castsi256_ps(_mm256_and_si256(value, _mm256_set1_epi32(INT32_MIN)))};
    }
    Floats top_as_sign_of_one() const {
        return {_mm256_or_ps(top_as_sign().value, _mm256_set1_ps(1.0f))};
    }
};

}  // namespace
}  // namespace petridish
