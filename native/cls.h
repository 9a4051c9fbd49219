// A block of minGPT whose last token, [CLS], alone has a query and answers:
//
//     z_t = drop(E_{x_t} + P_t),   u = z_CLS + drop(W_O attention(N_1(z)) + b_O),
//     f = W_out N_3(u + drop(W_2 GELU(W_1 N_2(u) + b_1) + b_2)),
//
// trained on the cross entropy of one label per example. What differs between processors is in Cls's
// functions, compiled once for each instruction set (cls.inc); all give the same bits.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "attention.h"

namespace petridish {

struct ClsShape {
    int vocabulary, length, d, heads, outputs;
    bool drops;          // whether there is dropout in training
    float factor;        // of what it does not drop

    int tokens() const { return length + 1; }  // [CLS] is the last
    int hidden() const { return 4 * d; }
    // Numbers in the parameters, in order: positions (tokens, d), tokens (vocabulary + 1, d), gain
    // and offset of three norms (d), weight (d, d) and bias of query, key, value, output of attention,
    // weight and bias of the MLP's layers (4d, d), (d, 4d), and what reads out (outputs, d).
    int64_t size() const {
        const int64_t n = d;
        return (tokens() + vocabulary + 1) * n + 6 * n + 4 * (n * n + n) + (8 * n * n + 5 * n) +
               outputs * n;
    }
};

// The random numbers of a step, as 16-bit lanes; what lies below a bound is dropped. Calls: 0 tokens
// (example, token, d), 1 attention (example, head, token), 2 and 3 what attention and the MLP add
// (example, d).
struct ClsLanes {
    uint64_t seed;
    uint64_t keys[4];    // of the stream of each call
    uint64_t starts[4];  // its first word in this step; four lanes to a word, the lowest first
    uint16_t bound;      // 0: nothing is dropped
};

struct ClsExample {
    const uint8_t* tokens;
    int label;
    int64_t place;  // in the batch, for its random numbers
};

struct Cls {
    const char* name;

    size_t (*bytes)(const ClsShape&, bool training);
    int (*chunk)(const ClsShape&);  // examples that `add` and `outputs` take, at most
    // Lay the tables out for these weights, and clear the sums of gradients.
    void (*begin)(const ClsShape&, bool training, char* memory, const float* weights);
    // Take examples into the sums; `share` is one over the batch's size.
    void (*add)(char* memory, const ClsExample* examples, int count, float share,
                const ClsLanes& lanes);
    // Turn the sums into the gradient; returns the sum of the losses.
    double (*finish)(char* memory, float* gradient);
    // The outputs (count, outputs), without dropout.
    void (*outputs)(char* memory, const uint8_t* tokens, int count, float* outputs);
};

extern const Cls CLS_AVX512, CLS_AVX2, CLS_PORTABLE;

}  // namespace petridish
