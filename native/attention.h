// Causal transformers of attention alone, with relative positions, on tokens of few values:
//
//     z_i = e_{x_i},   z ← z + Σ_heads softmax(A) z W_V,
//     A_ij = (z_i W_Q)·(z_j W_K + v_{i−j}) / √d  for j ≤ i,   outputs z P,
//
// and the minimal model that two layers of it come down to [TH (8.8)],
//
//     f_p,i = Σ_{t ≤ p} 1{x_t = i} Σ_{s ≤ t} v_{t−s} W[x_p, x_s],
//
// trained on the cross entropy of a label at every position. What differs between processors is in
// Attention's functions, compiled once for each instruction set (attention.inc); all give the same bits.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace petridish {

constexpr int CELL = 16;  // sequences that are summed side by side, whatever the vectors' length

struct AttentionShape {
    int states, length, d, heads, layers;  // no layers: the minimal model

    // Numbers in the parameters, in order: tokens (d, states); of each layer positions (heads d,
    // length), W_Q, W_K, W_V (heads d, d); outputs (states, d). Of the minimal model v (length) and W
    // (states, states).
    int64_t layer_size() const { return (int64_t)heads * d * (length + 3 * d); }
    int64_t size() const {
        if (layers == 0) return length + (int64_t)states * states;
        return 2 * (int64_t)d * states + layers * layer_size();
    }
};

// One step of an optimiser on some parameters: w ← keep w − …
struct OptimiserStep {
    int32_t kind;  // petridish_optimiser
    float rate, decay, keep, momentum, epsilon;
    float shrink;                    // 1 − rate · decay
    float beta2, rest1, rest2;       // rests are 1 − β, rounded once
    float mean_share, square_share;  // 1 − β1^t, √(1 − β2^t)
    float gradient_scale;            // by which clipping shortens the gradient
};

struct Attention {
    const char* name;
    int lanes;  // sequences of a group, at most CELL

    size_t (*bytes)(const AttentionShape&, bool training);
    // Lay the tables out for these weights, and clear the sums of gradients.
    void (*begin)(const AttentionShape&, bool training, char* memory, const float* weights);
    // Take up to `lanes` sequences (count, length) of tokens with labels into the sums; they are
    // number `first` and so on of the batch.
    void (*add)(char* memory, const uint8_t* tokens, const uint8_t* labels, int count, int first,
                float share);
    // Turn the sums into the gradient; returns the sum of the losses of all positions.
    double (*finish)(char* memory, float* gradient);
    // The outputs (count, length − from, states) of up to `lanes` sequences from a position on.
    void (*outputs)(char* memory, const uint8_t* tokens, int count, int from, float* outputs);
    // The shares of attention (count, heads, length, length) of a layer, beginning with 0, in up to
    // `lanes` sequences. If there are others for an earlier layer, that one attends so instead. Null
    // for the minimal model.
    void (*pattern)(char* memory, const uint8_t* tokens, int count, int layer, int replaced,
                    const float* others, float* shares);
    // Change `count` weights by their gradients; `first` and `second` are what the optimiser keeps.
    void (*update)(const OptimiserStep&, int64_t count, float* weights, const float* gradient,
                   float* first, float* second);
};

extern const Attention ATTENTION_AVX512, ATTENTION_AVX2, ATTENTION_PORTABLE;
extern const Attention MINIMAL_AVX512, MINIMAL_AVX2, MINIMAL_PORTABLE;  // minimal.inc

}  // namespace petridish
