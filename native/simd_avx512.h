// Vectors of 512 bits: AVX-512 F, BW, DQ and VL.
#pragma once
#include <immintrin.h>
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

struct Floats {
    using Number = float;
    static constexpr int COUNT = 16;
    __m512 value;

    static Floats zero() { return {_mm512_setzero_ps()}; }
    static Floats all(float x) { return {_mm512_set1_ps(x)}; }
    static Floats load(const float* p) { return {_mm512_load_ps(p)}; }
    static Floats from_bytes(const int8_t* p) {
        const __m128i bytes = _mm_load_si128((const __m128i*)p);
        return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
    }
    // x in the lanes whose bit is set, 0 in the others.
    static Floats where(uint32_t bits, float x) {
        return {_mm512_maskz_mov_ps((__mmask16)bits, _mm512_set1_ps(x))};
    }
    void store(float* p) const { _mm512_store_ps(p, value); }
    Floats operator+(Floats other) const { return {_mm512_add_ps(value, other.value)}; }
    Floats operator-(Floats other) const { return {_mm512_sub_ps(value, other.value)}; }
    Floats operator*(Floats other) const { return {_mm512_mul_ps(value, other.value)}; }
    Floats negative() const { return {_mm512_xor_ps(value, _mm512_set1_ps(-0.0f))}; }
    // A bit for each lane says that it is above 0.
    uint32_t positive() const {
        return _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_GT_OQ);
    }
    // a in the lanes that are above 0, b in the others.
    Floats pick(Floats a, Floats b) const {
        return {_mm512_mask_mov_ps(b.value, (__mmask16)positive(), a.value)};
    }
    // The largest whole number up to x.
    Floats floor() const {
        return {_mm512_roundscale_ps(value, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
    }
    void keep() { asm("" : "+v"(value)); }  // in a register, and unknown to the optimiser
};

inline Floats fma(Floats a, Floats b, Floats c) {
    return {_mm512_fmadd_ps(a.value, b.value, c.value)};
}

// max(0, z), and z where z is no number: a network that diverges shows it.
inline Floats relu(Floats z) { return {_mm512_max_ps(_mm512_setzero_ps(), z.value)}; }

struct Bytes {
    using Number = int8_t;
    static constexpr int COUNT = 64;
    __m512i value;

    static Bytes zero() { return {_mm512_setzero_si512()}; }
    static Bytes load(const int8_t* p) { return {_mm512_load_si512(p)}; }
    // 1 in the lanes whose bit is set, 0 in the others.
    static Bytes ones(uint64_t bits) { return {_mm512_maskz_set1_epi8(bits, 1)}; }
    void store(int8_t* p) const { _mm512_store_si512(p, value); }
    Bytes operator+(Bytes other) const { return {_mm512_add_epi8(value, other.value)}; }
    Bytes operator-(Bytes other) const { return {_mm512_sub_epi8(value, other.value)}; }
    Bytes negative() const { return zero() - *this; }
};

// Bit i of 32 bytes, as a word, for each i.
inline void columns_of(const uint8_t* bytes, uint32_t* columns) {
    __m256i left = _mm256_load_si256((const __m256i*)bytes);
    UNROLL for (int i = 7; i >= 0; --i, left = _mm256_add_epi8(left, left))
        columns[i] = (uint32_t)_mm256_movemask_epi8(left);
}

constexpr int TOGETHER = 8;  // sums under way: a sum takes four cycles, and two begin in each

}  // namespace
}  // namespace petridish
