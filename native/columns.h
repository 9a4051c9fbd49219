// Where no instruction collects a bit of every byte: 8 × 8 bits are turned about in a word, by
// halves, quarters and single bits (Hacker's Delight, 7-3).
#pragma once
#include <stdint.h>

#include "compiler.h"

namespace petridish {
namespace {

inline uint64_t transposed(uint64_t x) {
    uint64_t apart = (x ^ x >> 7) & 0x00AA00AA00AA00AA;
    x ^= apart ^ apart << 7;
    apart = (x ^ x >> 14) & 0x0000CCCC0000CCCC;
    x ^= apart ^ apart << 14;
    apart = (x ^ x >> 28) & 0x00000000F0F0F0F0;
    return x ^ apart ^ apart << 28;
}

// Bit i of 32 bytes, as a word, for each i.
inline void columns_of(const uint8_t* bytes, uint32_t* columns) {
    for (int i = 0; i < 8; ++i) columns[i] = 0;
    for (int k = 0; k < 32; k += 8) {
        uint64_t eight = 0;
        for (int b = 0; b < 8; ++b) eight |= (uint64_t)bytes[k + b] << 8 * b;
        eight = transposed(eight);
        for (int i = 0; i < 8; ++i) columns[i] |= (uint32_t)(eight >> 8 * i & 255) << k;
    }
}

}  // namespace
}  // namespace petridish
