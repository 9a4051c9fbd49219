// Vectors of 256 bits: AVX2 and FMA.
#pragma once
#include <immintrin.h>
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

struct Floats {
    using Number = float;
    static constexpr int COUNT = 8;
    __m256 value;

    static Floats zero() { return {_mm256_setzero_ps()}; }
    static Floats all(float x) { return {_mm256_set1_ps(x)}; }
    static Floats load(const float* p) { return {_mm256_load_ps(p)}; }
    static Floats from_bytes(const int8_t* p) {
        const __m128i bytes = _mm_loadl_epi64((const __m128i*)p);
        return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
    }
    // x in the lanes whose bit is set, 0 in the others.
    static Floats where(uint32_t bits, float x) {
        const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        const __m256i set = _mm256_and_si256(_mm256_set1_epi32((int)bits), bit);
        return {_mm256_and_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bit)),
                              _mm256_set1_ps(x))};
    }
    void store(float* p) const { _mm256_store_ps(p, value); }
    Floats operator+(Floats other) const { return {_mm256_add_ps(value, other.value)}; }
    Floats operator-(Floats other) const { return {_mm256_sub_ps(value, other.value)}; }
    Floats operator*(Floats other) const { return {_mm256_mul_ps(value, other.value)}; }
    Floats negative() const { return {_mm256_xor_ps(value, _mm256_set1_ps(-0.0f))}; }
    // A bit for each lane says that it is above 0.
    uint32_t positive() const {
        return (uint32_t)_mm256_movemask_ps(
            _mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_GT_OQ));
    }
    // a in the lanes that are above 0, b in the others.
    Floats pick(Floats a, Floats b) const {
        const __m256 is = _mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_GT_OQ);
        return {_mm256_blendv_ps(b.value, a.value, is)};
    }
    // The largest whole number up to x.
    Floats floor() const { return {_mm256_floor_ps(value)}; }
    void keep() { asm("" : "+x"(value)); }  // in a register, and unknown to the optimiser
};

inline Floats fma(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.value, b.value, c.value)};
}

// max(0, z), and z where z is no number: a network that diverges shows it.
inline Floats relu(Floats z) { return {_mm256_max_ps(_mm256_setzero_ps(), z.value)}; }

struct Bytes {
    using Number = int8_t;
    static constexpr int COUNT = 32;
    __m256i value;

    static Bytes zero() { return {_mm256_setzero_si256()}; }
    static Bytes load(const int8_t* p) { return {_mm256_load_si256((const __m256i*)p)}; }
    // 1 in the lanes whose bit is set, 0 in the others: byte l of the word goes to eight lanes.
    static Bytes ones(uint64_t bits) {
        const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                                0x0303030303030303);
        const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201);
        const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte);
        return {_mm256_min_epu8(_mm256_and_si256(spread, bit), _mm256_set1_epi8(1))};
    }
    void store(int8_t* p) const { _mm256_store_si256((__m256i*)p, value); }
    Bytes operator+(Bytes other) const { return {_mm256_add_epi8(value, other.value)}; }
    Bytes operator-(Bytes other) const { return {_mm256_sub_epi8(value, other.value)}; }
    Bytes negative() const { return zero() - *this; }
};

// Bit i of 32 bytes, as a word, for each i.
inline void columns_of(const uint8_t* bytes, uint32_t* columns) {
    __m256i left = _mm256_load_si256((const __m256i*)bytes);
    UNROLL for (int i = 7; i >= 0; --i, left = _mm256_add_epi8(left, left))
        columns[i] = (uint32_t)_mm256_movemask_epi8(left);
}

constexpr int TOGETHER = 4;  // examples whose sums are under way: two registers each

}  // namespace
}  // namespace petridish
