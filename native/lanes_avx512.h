// Lanes are sequences: 16 at a time, in vectors of 512 bits. The operations that attention needs, with
// the same bits as in the other lanes_*.h.
#pragma once
#include <immintrin.h>
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

struct Lanes {
    static constexpr int COUNT = 16, REGISTERS = 32;
    __m512 value;

    static Lanes zero() { return {_mm512_setzero_ps()}; }
    static Lanes all(float x) { return {_mm512_set1_ps(x)}; }
    static Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
    void store(float* p) const { _mm512_storeu_ps(p, value); }
    Lanes operator+(Lanes other) const { return {_mm512_add_ps(value, other.value)}; }
    Lanes operator-(Lanes other) const { return {_mm512_sub_ps(value, other.value)}; }
    Lanes operator*(Lanes other) const { return {_mm512_mul_ps(value, other.value)}; }
    Lanes operator/(Lanes other) const { return {_mm512_div_ps(value, other.value)}; }
};

inline Lanes fma(Lanes a, Lanes b, Lanes c) {
    return {_mm512_fmadd_ps(a.value, b.value, c.value)};
}
// a > b ? a : b, so that b is the result where one of them is no number.
inline Lanes larger(Lanes a, Lanes b) { return {_mm512_max_ps(a.value, b.value)}; }

// Whether a token has a certain value, in each lane; kept as 16 bits.
struct Where {
    using Kept = uint16_t;
    static constexpr int KEPT = 1;
    __mmask16 value;
    static Where load(const Kept* p) { return {*p}; }
    static Where of(uint32_t bits) { return {(__mmask16)bits}; }  // one bit for each lane
};

// The tokens of one place, in each lane.
struct Places {
    __m512i value;
    static Places load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
    void mark(int token, Where::Kept* kept) const {
        *kept = _mm512_cmpeq_epi32_mask(value, _mm512_set1_epi32(token));
    }
};

inline Lanes add_where(Where where, Lanes a, Lanes b) {
    return {_mm512_mask_add_ps(a.value, where.value, a.value, b.value)};
}
inline Lanes choose(Where where, Lanes otherwise, Lanes then) {
    return {_mm512_mask_mov_ps(otherwise.value, where.value, then.value)};
}

// Where a number is above 0.
inline Where positive(Lanes x) {
    return {_mm512_cmp_ps_mask(x.value, _mm512_setzero_ps(), _CMP_GT_OQ)};
}

// table[token] in each lane, of a table of 16 numbers.
template <int STATES>
inline Lanes look_up(const float* table, Places tokens) {
    return {_mm512_permutexvar_ps(tokens.value, _mm512_loadu_ps(table))};
}

// x − ⌊x⌋, and p · 2^⌊x⌋, for −125 ≤ x ≤ 0 and p in [1, 2].
inline Lanes fraction(Lanes x) { return x - Lanes{_mm512_roundscale_ps(x.value, 0x09)}; }
inline Lanes scaled(Lanes p, Lanes x) { return {_mm512_scalef_ps(p.value, x.value)}; }

// x = m 2^e with m in [√½, √2), for a normal x > 0: m − 1, and e as a number.
inline void split(Lanes x, Lanes& m_minus_one, Lanes& e) {
    const __m512i bits = _mm512_castps_si512(x.value);
    const __m512i exponent =
        _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3F3504F3)), 23);
    const __m512i m = _mm512_sub_epi32(bits, _mm512_slli_epi32(exponent, 23));
    m_minus_one = Lanes{_mm512_castsi512_ps(m)} - Lanes::all(1.0f);
    e = {_mm512_cvtepi32_ps(exponent)};
}

inline Lanes square_root(Lanes x) { return {_mm512_sqrt_ps(x.value)}; }

// 16 numbers, as many vectors as that takes, in a fixed tree: k with k + 8, then + 4, + 2, + 1.
inline float sum_of_sixteen(const Lanes* x) {
    const __m256 high = _mm512_extractf32x8_ps(x->value, 1);
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x->value), high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// One bit for each of 16 numbers: whether it is below a bound.
inline uint32_t below(const uint16_t* numbers, uint16_t bound) {
    return _mm256_cmplt_epu16_mask(_mm256_loadu_si256((const __m256i*)numbers),
                                   _mm256_set1_epi16((short)bound));
}

}  // namespace
}  // namespace petridish
