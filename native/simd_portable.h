// Vectors of 128 bits in the compiler's own words (GCC and Clang): SSE2, NEON, or plain code.
#pragma once
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));
using Byte16 = int8_t __attribute__((vector_size(16)));

struct Floats {
    using Number = float;
    static constexpr int COUNT = 4, TOGETHER = 4;
    Float4 value;

    static Floats zero() { return all(0); }
    static Floats all(float x) { return {Float4{x, x, x, x}}; }
    static Floats load(const float* p) { return {*(const Float4*)p}; }
    static Floats load_half(const float* p) { return load(p); }  // four of the eight at a time
    // All bits in the first `count` lanes, none in the others.
    static Floats first(int count) {
        return {(Float4)(Int4{0, 1, 2, 3} < Int4{count, count, count, count})};
    }
    // coefficient · x of the coordinates start … start + 3 of a packed example.
    static Floats signed_by(const uint64_t* example, int start, float coefficient) {
        const uint32_t bits = (uint32_t)(example[start / 64] >> start % 64);
        const Int4 sign = {(int32_t)(bits << 31), (int32_t)(bits >> 1 << 31),
                           (int32_t)(bits >> 2 << 31), (int32_t)(bits >> 3 << 31)};
        return {(Float4)(sign ^ (Int4)all(coefficient).value)};
    }
    void store(float* p) const { *(Float4*)p = value; }
    void store_half(float* p) const { store(p); }
    Floats low_half() const { return *this; }
    Floats part(int) const { return *this; }
    Floats operator+(Floats other) const { return {value + other.value}; }
    Floats operator&(Floats other) const { return {(Float4)((Int4)value & (Int4)other.value)}; }
#if defined(__x86_64__)
    void keep() { asm("" : "+x"(value)); }  // in a register, and unknown to the optimiser
#elif defined(__aarch64__)
    void keep() { asm("" : "+w"(value)); }
#else
    void keep() { asm("" : "+m"(value)); }
#endif
};

// Fused, so that the bits are those of the other instruction sets; slow where the processor has no
// such instruction, but it is used for the backward pass alone.
inline Floats fma(Floats a, Floats b, Floats c) {
    Floats out;
    for (int k = 0; k < 4; ++k)
        out.value[k] = __builtin_fmaf(a.value[k], b.value[k], c.value[k]);
    return out;
}

// max(0, z), and z where z is no number: a network that diverges shows it.
inline Floats relu(Floats z) {
    return {(Float4)((Int4)z.value & ~(Int4)(Floats::zero().value > z.value))};
}

// A bit for each example says z_e > 0; `mask_place` says where the bits of four examples lie.
constexpr int mask_place(int group) { return 4 * group; }
inline uint32_t positive(const Floats z[8]) {
    uint32_t bits = 0;
    for (int q = 0; q < 8; ++q) {
        const Int4 bit = (Int4)(z[q].value > Floats::zero().value) & Int4{1, 2, 4, 8};
        bits |= (uint32_t)(bit[0] | bit[1] | bit[2] | bit[3]) << mask_place(q);
    }
    return bits;
}

// The 16 partial sums in a fixed tree: k with k + 8, then + 4, + 2, + 1.
inline float sum_of_16(const Floats part[4]) {
    const Float4 four = (part[0].value + part[2].value) + (part[1].value + part[3].value);
    return (four[0] + four[2]) + (four[1] + four[3]);
}

#if defined(__aarch64__)
constexpr int TILE_ROWS = 3;  // 24 sums of the 32 registers
#else
constexpr int TILE_ROWS = 1;  // eight sums of the 16 registers of SSE2
#endif
constexpr int PRODUCTS = 8;  // all vectors of a block
inline Floats add_product(Floats w, Floats x, Floats z) {  // the product is exact: no fma needed
    return {z.value + w.value * x.value};
}
inline Floats with_sign_flipped(Floats w, Floats sign) {
    return {(Float4)((Int4)w.value ^ (Int4)sign.value)};
}

// No loop by hand is needed here.
constexpr bool HAS_PAIRS = false;
template <int ROWS, int VECTORS>
void add_pairs(const float*, int, const float*, int64_t, Floats (&)[ROWS][VECTORS]) {}

struct Bytes {
    using Number = int8_t;
    static constexpr int COUNT = 16, TOGETHER = 2;
    Byte16 value;

    static Bytes zero() { return {Byte16{}}; }
    static Bytes load(const int8_t* p) { return {*(const Byte16*)p}; }
    static Bytes first(int count) {
        Bytes out;
        for (int k = 0; k < COUNT; ++k) out.value[k] = (int8_t)(k < count ? -1 : 0);
        return out;
    }
    // coefficient · x (±1 or 0) of the coordinates start … start + 15 of a packed example.
    static Bytes signed_by(const uint64_t* example, int start, float coefficient) {
        const uint64_t bits = example[start / 64] >> start % 64;
        const int sign = (int)coefficient;
        Bytes out;
        for (int k = 0; k < COUNT; ++k) out.value[k] = (int8_t)(bits >> k & 1 ? -sign : sign);
        return out;
    }
    Floats part(int k) const {
        return {Float4{(float)value[4 * k], (float)value[4 * k + 1], (float)value[4 * k + 2],
                       (float)value[4 * k + 3]}};
    }
    void store(int8_t* p) const { *(Byte16*)p = value; }
    Bytes operator+(Bytes other) const { return {value + other.value}; }
    Bytes operator&(Bytes other) const { return {value & other.value}; }
};

// 32-bit words, of which the top bits become signs.
struct Words {
    Int4 value;

    static Words load(const uint32_t* p) { return {*(const Int4*)p}; }
    Words shifted() const { return {(Int4)((Int4)value << 1)}; }
    Floats top_as_sign() const {
        return {(Float4)(value & Int4{INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN})};
    }
    Floats top_as_sign_of_one() const {
        return {(Float4)((Int4)top_as_sign().value | (Int4)Floats::all(1).value)};
    }
};

}  // namespace
}  // namespace petridish
