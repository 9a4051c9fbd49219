// Philox4x64-10 [Salmon et al. 2011], laid out as in petridish/seeds.py: word i of a stream is lane
// i % 4 of the block with counter (i / 4, attempt, 0, 0) and key (run seed, stream's name).
#pragma once
#include <stdint.h>

namespace petridish {

struct Stream {
    uint64_t seed, name;

    // The words of BLOCKS blocks from `index` on. Several at once hide the latency of the
    // multiplications, each of which waits for the one before it in its block.
    template <int BLOCKS>
    void blocks(uint64_t index, uint64_t attempt, uint64_t* out) const {
        uint64_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS], k0 = seed, k1 = name;
        for (int b = 0; b < BLOCKS; ++b)
            c0[b] = index + (uint64_t)b, c1[b] = attempt, c2[b] = 0, c3[b] = 0;
        for (int round = 0; round < 10; ++round) {
            for (int b = 0; b < BLOCKS; ++b) {
                const unsigned __int128 p0 = (unsigned __int128)0xD2E7470EE14C6C93u * c0[b];
                const unsigned __int128 p1 = (unsigned __int128)0xCA5A826395121157u * c2[b];
                c0[b] = (uint64_t)(p1 >> 64) ^ c1[b] ^ k0;
                c1[b] = (uint64_t)p1;
                c2[b] = (uint64_t)(p0 >> 64) ^ c3[b] ^ k1;
                c3[b] = (uint64_t)p0;
            }
            k0 += 0x9E3779B97F4A7C15u;
            k1 += 0xBB67AE8584CAA73Bu;
        }
        for (int b = 0; b < BLOCKS; ++b)
            out[4 * b] = c0[b], out[4 * b + 1] = c1[b], out[4 * b + 2] = c2[b], out[4 * b + 3] = c3[b];
    }

    // The words start … start + count − 1.
    void words(uint64_t start, int64_t count, uint64_t* out) const {
        constexpr int AT_ONCE = 4;
        uint64_t drawn[4 * AT_ONCE];
        for (int64_t i = 0; i < count;) {
            const uint64_t word = start + (uint64_t)i;
            blocks<AT_ONCE>(word / 4, 0, drawn);
            for (int k = (int)(word % 4); k < 4 * AT_ONCE && i < count; ++k) out[i++] = drawn[k];
        }
    }

    // Integer `place` below `bound`: the high half of half-word × bound [Lemire 2019]. `half` is
    // the half-word of attempt 0; one that falls among the first 2^32 mod bound values is taken
    // again from the same place of the next attempt, so that a rejection moves no other draw.
    uint32_t below(uint64_t bound, uint32_t rejected_below, uint64_t place, uint32_t half) const {
        uint64_t product = half * bound;
        for (uint64_t attempt = 1; (uint32_t)product < rejected_below; ++attempt) {
            uint64_t lanes[4];
            blocks<1>(place / 8, attempt, lanes);
            product = (uint32_t)(lanes[place / 2 % 4] >> 32 * (place % 2)) * bound;
        }
        return (uint32_t)(product >> 32);
    }
};

}  // namespace petridish
