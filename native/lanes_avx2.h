// Lanes are sequences: 8 at a time, in vectors of 256 bits. The operations that attention needs, with
// the same bits as in the other lanes_*.h.
#pragma once
#include <immintrin.h>
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

struct Lanes {
    static constexpr int COUNT = 8, REGISTERS = 16;
    __m256 value;

    static Lanes zero() { return {_mm256_setzero_ps()}; }
    static Lanes all(float x) { return {_mm256_set1_ps(x)}; }
    static Lanes load(const float* p) { return {_mm256_loadu_ps(p)}; }
    void store(float* p) const { _mm256_storeu_ps(p, value); }
    Lanes operator+(Lanes other) const { return {_mm256_add_ps(value, other.value)}; }
    Lanes operator-(Lanes other) const { return {_mm256_sub_ps(value, other.value)}; }
    Lanes operator*(Lanes other) const { return {_mm256_mul_ps(value, other.value)}; }
    Lanes operator/(Lanes other) const { return {_mm256_div_ps(value, other.value)}; }
};

inline Lanes fma(Lanes a, Lanes b, Lanes c) {
    return {_mm256_fmadd_ps(a.value, b.value, c.value)};
}
// a > b ? a : b, so that b is the result where one of them is no number.
inline Lanes larger(Lanes a, Lanes b) { return {_mm256_max_ps(a.value, b.value)}; }

// Whether a token has a certain value, in each lane; kept as all bits or none.
struct Where {
    using Kept = int32_t;
    static constexpr int KEPT = 8;
    __m256 value;
    static Where load(const Kept* p) { return {_mm256_loadu_ps((const float*)p)}; }
    static Where of(uint32_t bits) {  // one bit for each lane
        const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        const __m256i all = _mm256_set1_epi32((int)bits);
        return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, each), each))};
    }
};

// The tokens of one place, in each lane.
struct Places {
    __m256i value;
    static Places load(const int32_t* p) { return {_mm256_loadu_si256((const __m256i*)p)}; }
    void mark(int token, Where::Kept* kept) const {
        _mm256_storeu_si256((__m256i*)kept, _mm256_cmpeq_epi32(value, _mm256_set1_epi32(token)));
    }
};

inline Lanes add_where(Where where, Lanes a, Lanes b) {
    return {_mm256_add_ps(a.value, _mm256_and_ps(where.value, b.value))};
}
inline Lanes choose(Where where, Lanes otherwise, Lanes then) {
    return {_mm256_blendv_ps(otherwise.value, then.value, where.value)};
}

// Where a number is above 0.
inline Where positive(Lanes x) {
    return {_mm256_cmp_ps(x.value, _mm256_setzero_ps(), _CMP_GT_OQ)};
}

// table[token] in each lane, of a table of 16 numbers.
template <int STATES>
inline Lanes look_up(const float* table, Places tokens) {
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), tokens.value);
    if (STATES <= 8) return {low};
    const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), tokens.value);
    return {_mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(tokens.value, 28)))};
}

// x − ⌊x⌋, and p · 2^⌊x⌋, for −125 ≤ x ≤ 0 and p in [1, 2].
inline Lanes fraction(Lanes x) { return x - Lanes{_mm256_floor_ps(x.value)}; }
inline Lanes scaled(Lanes p, Lanes x) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(_mm256_floor_ps(x.value)), 23);
    return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p.value), exponent))};
}

// x = m 2^e with m in [√½, √2), for a normal x > 0: m − 1, and e as a number.
inline void split(Lanes x, Lanes& m_minus_one, Lanes& e) {
    const __m256i bits = _mm256_castps_si256(x.value);
    const __m256i exponent =
        _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3F3504F3)), 23);
    const __m256i m = _mm256_sub_epi32(bits, _mm256_slli_epi32(exponent, 23));
    m_minus_one = Lanes{_mm256_castsi256_ps(m)} - Lanes::all(1.0f);
    e = {_mm256_cvtepi32_ps(exponent)};
}

inline Lanes square_root(Lanes x) { return {_mm256_sqrt_ps(x.value)}; }

// 16 numbers, as many vectors as that takes, in a fixed tree: k with k + 8, then + 4, + 2, + 1.
inline float sum_of_sixteen(const Lanes* x) {
    const __m256 eight = _mm256_add_ps(x[0].value, x[1].value);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// One bit for each of 16 numbers: whether it is below a bound.
inline uint32_t below(const uint16_t* numbers, uint16_t bound) {
    const __m256i x = _mm256_loadu_si256((const __m256i*)numbers);
    const __m256i least = _mm256_max_epu16(x, _mm256_set1_epi16((short)bound));
    const __m256i not_below = _mm256_cmpeq_epi16(least, x);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(not_below),
                                          _mm256_extracti128_si256(not_below, 1));
    return (uint32_t)_mm_movemask_epi8(bytes) ^ 0xFFFFu;
}

}  // namespace
}  // namespace petridish
