// Vectors of 512 bits: AVX-512 F, BW, DQ and VL.
#pragma once
#include <immintrin.h>
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

struct Floats {
    using Number = float;
    static constexpr int COUNT = 16, TOGETHER = 2;
    __m512 value;

    static Floats zero() { return {_mm512_setzero_ps()}; }
    static Floats all(float x) { return {_mm512_set1_ps(x)}; }
    static Floats load(const float* p) { return {_mm512_loadu_ps(p)}; }
    static Floats load_half(const float* p) { return {_mm512_maskz_loadu_ps(0x00FF, p)}; }
    // All bits in the first `count` lanes, none in the others.
    static Floats first(int count) {
        const __mmask16 lanes = (__mmask16)(count < 16 ? (1u << (count > 0 ? count : 0)) - 1 : 0xFFFF);
        return {_mm512_castsi512_ps(_mm512_maskz_set1_epi32(lanes, -1))};
    }
    // coefficient · x of the coordinates start … start + 15 of a packed example.
    static Floats signed_by(const uint64_t* example, int start, float coefficient) {
        const __mmask16 bits = (__mmask16)(example[start / 64] >> start % 64);
        const __m512 plus = _mm512_set1_ps(coefficient);
        return {_mm512_mask_xor_ps(plus, bits, plus, _mm512_set1_ps(-0.0f))};
    }
    void store(float* p) const { _mm512_storeu_ps(p, value); }
    void store_half(float* p) const { _mm512_mask_storeu_ps(p, 0x00FF, value); }
    Floats low_half() const { return {_mm512_maskz_mov_ps(0x00FF, value)}; }
    Floats part(int) const { return *this; }
    Floats operator+(Floats other) const { return {_mm512_add_ps(value, other.value)}; }
    Floats operator&(Floats other) const { return {_mm512_and_ps(value, other.value)}; }
    void keep() { asm("" : "+v"(value)); }  // in a register, and unknown to the optimiser
};

inline Floats fma(Floats a, Floats b, Floats c) {
    return {_mm512_fmadd_ps(a.value, b.value, c.value)};
}

// max(0, z), and z where z is no number: a network that diverges shows it.
inline Floats relu(Floats z) { return {_mm512_max_ps(_mm512_setzero_ps(), z.value)}; }

// A bit for each example says z_e > 0; `mask_place` says where the bits of four examples lie.
inline uint32_t positive(const Floats z[2]) {
    const __mmask16 low = _mm512_cmp_ps_mask(z[0].value, _mm512_setzero_ps(), _CMP_GT_OQ);
    const __mmask16 high = _mm512_cmp_ps_mask(z[1].value, _mm512_setzero_ps(), _CMP_GT_OQ);
    return (uint32_t)low | (uint32_t)high << 16;
}
constexpr int mask_place(int group) { return 4 * group; }

// The 16 partial sums in a fixed tree: k with k + 8, then + 4, + 2, + 1.
inline float sum_of_16(const Floats part[1]) {
    const __m256 low = _mm512_castps512_ps256(part[0].value);
    const __m256 eight = _mm256_add_ps(low, _mm512_extractf32x8_ps(part[0].value, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Sixteen sums, their weights read from memory by the multiply-add itself: half of the 32
// registers, and enough sums to hide the latency of four cycles on two ports.
constexpr int TILE_ROWS = 8;
constexpr int PRODUCTS = 2;  // both vectors of a block: here multipliers and adders are one
inline Floats add_product(Floats w, Floats x, Floats z) { return fma(w, x, z); }
inline Floats with_sign_flipped(Floats w, Floats sign) {
    return {_mm512_xor_ps(w.value, sign.value)};
}

// No loop by hand is needed here.
constexpr bool HAS_PAIRS = false;
template <int ROWS, int VECTORS>
void add_pairs(const float*, int, const float*, int64_t, Floats (&)[ROWS][VECTORS]) {}

struct Bytes {
    using Number = int8_t;
    static constexpr int COUNT = 64, TOGETHER = 1;
    __m512i value;

    static Bytes zero() { return {_mm512_setzero_si512()}; }
    static Bytes load(const int8_t* p) { return {_mm512_loadu_si512(p)}; }
    static Bytes first(int count) {
        const uint64_t lanes = count < 64 ? ((uint64_t)1 << (count > 0 ? count : 0)) - 1 : ~(uint64_t)0;
        return {_mm512_maskz_set1_epi8((__mmask64)lanes, -1)};
    }
    // coefficient · x (±1 or 0) of the coordinates start … start + 63 of a packed example.
    static Bytes signed_by(const uint64_t* example, int start, float coefficient) {
        const __m512i plus = _mm512_set1_epi8((char)coefficient);
        return {_mm512_mask_sub_epi8(plus, (__mmask64)example[start / 64], zero().value, plus)};
    }
    Floats part(int k) const {
        const __m128i bytes = k == 0   ? _mm512_castsi512_si128(value)
                              : k == 1 ? _mm512_extracti32x4_epi32(value, 1)
                              : k == 2 ? _mm512_extracti32x4_epi32(value, 2)
                                       : _mm512_extracti32x4_epi32(value, 3);
        return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
    }
    void store(int8_t* p) const { _mm512_storeu_si512(p, value); }
    Bytes operator+(Bytes other) const { return {_mm512_add_epi8(value, other.value)}; }
    Bytes operator&(Bytes other) const { return {_mm512_and_si512(value, other.value)}; }
};

// 32-bit words, of which the top bits become signs.
struct Words {
    __m512i value;

    static Words load(const uint32_t* p) { return {_mm512_loadu_si512(p)}; }
    Words shifted() const { return {_mm512_add_epi32(value, value)}; }
    Floats top_as_sign() const {
        return {_mm512_castsi512_ps(_mm512_and_si512(value, _mm512_set1_epi32(INT32_MIN)))};
    }
    Floats top_as_sign_of_one() const {
        return {_mm512_or_ps(top_as_sign().value, _mm512_set1_ps(1.0f))};
    }
};

}  // namespace
}  // namespace petridish
