// Lanes are sequences: four at a time, in the compiler's own vectors (GCC and Clang). The operations
// that attention needs, with the same bits as in the other lanes_*.h.
#pragma once
#include <math.h>
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

struct Lanes {
    using Four = float __attribute__((vector_size(16)));
    using Bits = int32_t __attribute__((vector_size(16)));
    static constexpr int COUNT = 4, REGISTERS = 16;
    Four value;

    static Lanes zero() { return all(0); }
    static Lanes all(float x) { return {Four{x, x, x, x}}; }
    static Lanes load(const float* p) { return {Four{p[0], p[1], p[2], p[3]}}; }
    void store(float* p) const {
        for (int k = 0; k < COUNT; ++k) p[k] = value[k];
    }
    Lanes operator+(Lanes other) const { return {value + other.value}; }
    Lanes operator-(Lanes other) const { return {value - other.value}; }
    Lanes operator*(Lanes other) const { return {value * other.value}; }
    Lanes operator/(Lanes other) const { return {value / other.value}; }
};

// Slow where the processor has no such instruction.
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
    Lanes out;
    for (int k = 0; k < Lanes::COUNT; ++k)
        out.value[k] = __builtin_fmaf(a.value[k], b.value[k], c.value[k]);
    return out;
}
// a > b ? a : b, so that b is the result where one of them is no number.
inline Lanes larger(Lanes a, Lanes b) {
    const Lanes::Bits first = (Lanes::Bits)(a.value > b.value);
    return {(Lanes::Four)(((Lanes::Bits)a.value & first) | ((Lanes::Bits)b.value & ~first))};
}

// Whether a token has a certain value, in each lane; kept as all bits or none.
struct Where {
    using Kept = int32_t;
    static constexpr int KEPT = 4;
    Lanes::Bits value;
    static Where load(const Kept* p) { return {Lanes::Bits{p[0], p[1], p[2], p[3]}}; }
    static Where of(uint32_t bits) {  // one bit for each lane
        const int32_t all = (int32_t)bits;
        const Lanes::Bits each = {1, 2, 4, 8};
        return {(Lanes::Bits{all, all, all, all} & each) == each};
    }
};

// The tokens of one place, in each lane.
struct Places {
    int32_t value[Lanes::COUNT];
    static Places load(const int32_t* p) { return {{p[0], p[1], p[2], p[3]}}; }
    void mark(int token, Where::Kept* kept) const {
        for (int k = 0; k < Lanes::COUNT; ++k) kept[k] = value[k] == token ? -1 : 0;
    }
};

inline Lanes add_where(Where where, Lanes a, Lanes b) {
    return {a.value + (Lanes::Four)((Lanes::Bits)b.value & where.value)};
}
inline Lanes choose(Where where, Lanes otherwise, Lanes then) {
    return {(Lanes::Four)(((Lanes::Bits)then.value & where.value) |
                          ((Lanes::Bits)otherwise.value & ~where.value))};
}

// Where a number is above 0.
inline Where positive(Lanes x) { return {(Lanes::Bits)(x.value > 0.0f)}; }

// table[token] in each lane, of a table of 16 numbers.
template <int STATES>
inline Lanes look_up(const float* table, Places tokens) {
    const int32_t* at = tokens.value;
    return {Lanes::Four{table[at[0]], table[at[1]], table[at[2]], table[at[3]]}};
}

// x − ⌊x⌋, and p · 2^⌊x⌋, for −125 ≤ x ≤ 0 and p in [1, 2]; a whole part is made up for what is no
// number.
inline Lanes::Bits whole_part(Lanes x) {
    Lanes::Bits out;
    for (int k = 0; k < Lanes::COUNT; ++k) {
        const float number = x.value[k] == x.value[k] ? x.value[k] : 0;
        const int32_t towards_0 = (int32_t)number;
        out[k] = towards_0 - ((float)towards_0 > number);
    }
    return out;
}
inline Lanes fraction(Lanes x) {
    const Lanes::Bits whole = whole_part(x);
    for (int k = 0; k < Lanes::COUNT; ++k) x.value[k] -= (float)whole[k];
    return x;
}
inline Lanes scaled(Lanes p, Lanes x) {
    return {(Lanes::Four)((Lanes::Bits)p.value + (whole_part(x) << 23))};
}

// x = m 2^e with m in [√½, √2), for a normal x > 0: m − 1, and e as a number.
inline void split(Lanes x, Lanes& m_minus_one, Lanes& e) {
    const Lanes::Bits bits = (Lanes::Bits)x.value, exponent = (bits - 0x3F3504F3) >> 23;
    m_minus_one = Lanes{(Lanes::Four)(bits - (exponent << 23))} - Lanes::all(1.0f);
    for (int k = 0; k < Lanes::COUNT; ++k) e.value[k] = (float)exponent[k];
}

inline Lanes square_root(Lanes x) {
    Lanes out;
    for (int k = 0; k < Lanes::COUNT; ++k) out.value[k] = __builtin_sqrtf(x.value[k]);
    return out;
}

// 16 numbers, as many vectors as that takes, in a fixed tree: k with k + 8, then + 4, + 2, + 1.
inline float sum_of_sixteen(const Lanes* x) {
    const Lanes four = (x[0] + x[2]) + (x[1] + x[3]);
    return (four.value[0] + four.value[2]) + (four.value[1] + four.value[3]);
}

// One bit for each of 16 numbers: whether it is below a bound.
inline uint32_t below(const uint16_t* numbers, uint16_t bound) {
    uint32_t bits = 0;
    for (int k = 0; k < 16; ++k) bits |= (uint32_t)(numbers[k] < bound) << k;
    return bits;
}

}  // namespace
}  // namespace petridish
