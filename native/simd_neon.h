// Vectors of 128 bits: NEON on 64-bit ARM, where every processor has it, with fused multiply-adds.
#pragma once
#include <arm_neon.h>
#include <stdint.h>

#include "columns.h"
#include "compiler.h"

namespace petridish {
namespace {

struct Floats {
    using Number = float;
    static constexpr int COUNT = 4;
    float32x4_t value;

    static Floats zero() { return all(0); }
    static Floats all(float x) { return {vdupq_n_f32(x)}; }
    static Floats load(const float* p) { return {vld1q_f32(p)}; }
    static Floats from_bytes(const int8_t* p) {
        int32_t four;
        __builtin_memcpy(&four, p, sizeof four);
        const int16x8_t wide = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
        return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)))};
    }
    // x in the lanes whose bit is set, 0 in the others.
    static Floats where(uint32_t bits, float x) {
        const uint32x4_t bit = {1, 2, 4, 8};
        const uint32x4_t set = vtstq_u32(vdupq_n_u32(bits), bit);
        return {vreinterpretq_f32_u32(vandq_u32(set, vreinterpretq_u32_f32(vdupq_n_f32(x))))};
    }
    void store(float* p) const { vst1q_f32(p, value); }
    Floats operator+(Floats other) const { return {vaddq_f32(value, other.value)}; }
    Floats operator-(Floats other) const { return {vsubq_f32(value, other.value)}; }
    Floats operator*(Floats other) const { return {vmulq_f32(value, other.value)}; }
    Floats negative() const { return {vnegq_f32(value)}; }
    // A bit for each lane says that it is above 0.
    uint32_t positive() const {
        const uint32x4_t bit = {1, 2, 4, 8};
        return vaddvq_u32(vandq_u32(vcgtzq_f32(value), bit));
    }
    // a in the lanes that are above 0, b in the others.
    Floats pick(Floats a, Floats b) const {
        return {vbslq_f32(vcgtzq_f32(value), a.value, b.value)};
    }
    // The largest whole number up to x.
    Floats floor() const { return {vrndmq_f32(value)}; }
    void keep() { asm("" : "+w"(value)); }  // in a register, and unknown to the optimiser
};

inline Floats fma(Floats a, Floats b, Floats c) {
    return {vfmaq_f32(c.value, a.value, b.value)};
}

// max(0, z), and z where z is no number: a network that diverges shows it.
inline Floats relu(Floats z) {
    return {vreinterpretq_f32_u32(
        vbicq_u32(vreinterpretq_u32_f32(z.value), vcltzq_f32(z.value)))};
}

struct Bytes {
    using Number = int8_t;
    static constexpr int COUNT = 16;
    int8x16_t value;

    static Bytes zero() { return {vdupq_n_s8(0)}; }
    static Bytes load(const int8_t* p) { return {vld1q_s8(p)}; }
    // 1 in the lanes whose bit is set, 0 in the others.
    static Bytes ones(uint64_t bits) {
        const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
        const uint8x16_t spread = vcombine_u8(vdup_n_u8((uint8_t)bits),
                                              vdup_n_u8((uint8_t)(bits >> 8)));
        return {vreinterpretq_s8_u8(vminq_u8(vandq_u8(spread, bit), vdupq_n_u8(1)))};
    }
    void store(int8_t* p) const { vst1q_s8(p, value); }
    Bytes operator+(Bytes other) const { return {vaddq_s8(value, other.value)}; }
    Bytes operator-(Bytes other) const { return {vsubq_s8(value, other.value)}; }
    Bytes negative() const { return {vnegq_s8(value)}; }
};

constexpr int TOGETHER = 4;  // examples whose sums are under way: four of the 32 registers each

}  // namespace
}  // namespace petridish
