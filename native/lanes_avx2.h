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

}  // namespace
}  // namespace petridish
