// Vectors of 128 bits in the compiler's own words (GCC and Clang): SSE2 on x86, else what there is.
#pragma once
#include <stdint.h>

#include "columns.h"
#include "compiler.h"

namespace petridish {
namespace {

struct Floats {
    using Number = float;
    static constexpr int COUNT = 4;
    Float4 value;

    static Floats zero() { return all(0); }
    static Floats all(float x) { return {Float4{x, x, x, x}}; }
    static Floats load(const float* p) { return {*(const Float4*)p}; }
    static Floats from_bytes(const int8_t* p) {
        return {Float4{(float)p[0], (float)p[1], (float)p[2], (float)p[3]}};
    }
    // x in the lanes whose bit is set, 0 in the others.
    static Floats where(uint32_t bits, float x) {
        const Int4 set = {-(int32_t)(bits & 1), -(int32_t)(bits >> 1 & 1),
                          -(int32_t)(bits >> 2 & 1), -(int32_t)(bits >> 3 & 1)};
        return {(Float4)(set & (Int4)all(x).value)};
    }
    void store(float* p) const { *(Float4*)p = value; }
    Floats operator+(Floats other) const { return {value + other.value}; }
    Floats operator-(Floats other) const { return {value - other.value}; }
    Floats operator*(Floats other) const { return {value * other.value}; }
    Floats negative() const { return {-value}; }
    // A bit for each lane says that it is above 0.
    uint32_t positive() const {
        const Int4 bit = (Int4)(value > zero().value) & Int4{1, 2, 4, 8};
        return (uint32_t)(bit[0] | bit[1] | bit[2] | bit[3]);
    }
    // a in the lanes that are above 0, b in the others.
    Floats pick(Floats a, Floats b) const {
        const Int4 is = (Int4)(value > zero().value);
        return {(Float4)((is & (Int4)a.value) | (~is & (Int4)b.value))};
    }
    // The largest whole number up to x. From 2^23 on all are whole; no number stays none, and 0 keeps
    // its sign.
    Floats floor() const {
        const Int4 small = (value < all(0x1p23f).value) & (value > all(-0x1p23f).value) &
                           (value != zero().value);
        const Float4 cut = __builtin_convertvector(
            __builtin_convertvector((Float4)(small & (Int4)value), Int4), Float4);
        const Float4 below = cut + __builtin_convertvector((Int4)(cut > value), Float4);
        return {(Float4)((small & (Int4)below) | (~small & (Int4)value))};
    }
#if defined(__x86_64__)
    void keep() { asm("" : "+x"(value)); }  // in a register, and unknown to the optimiser
#else
    void keep() { asm("" : "+m"(value)); }
#endif
};

// Fused, so that the bits are those of the other instruction sets; slow where the processor has no
// such instruction.
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

struct Bytes {
    using Number = int8_t;
    static constexpr int COUNT = 16;
    Byte16 value;

    static Bytes zero() { return {Byte16{}}; }
    static Bytes load(const int8_t* p) { return {*(const Byte16*)p}; }
    // 1 in the lanes whose bit is set, 0 in the others.
    static Bytes ones(uint64_t bits) {
        Bytes out;
        for (int k = 0; k < COUNT; ++k) out.value[k] = (int8_t)(bits >> k & 1);
        return out;
    }
    void store(int8_t* p) const { *(Byte16*)p = value; }
    Bytes operator+(Bytes other) const { return {value + other.value}; }
    Bytes operator-(Bytes other) const { return {value - other.value}; }
    Bytes negative() const { return {-value}; }
};

constexpr int TOGETHER = 2;  // examples whose sums are under way: four of the 16 registers each

}  // namespace
}  // namespace petridish
