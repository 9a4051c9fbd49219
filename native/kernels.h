// What differs between processors: the inner loops, compiled once for each instruction set
// (kernels.inc) and chosen when the library is loaded. All give the same bits.
#pragma once
#include <stdint.h>

#include "petridish.h"

namespace petridish {

constexpr int LANES = 32;   // examples a block: the unit in which minibatches are laid out
constexpr int PANEL = 16;   // neurons whose numbers lie side by side
constexpr int BUNDLE = 64;  // neurons that go through the backward pass together
constexpr int GROUP = 4;    // coordinates, or examples, of one look-up table
constexpr int ENTRY = 64;   // bytes of a table's entry: 16 floats, or 64 bytes
constexpr int TABLE = (1 << GROUP) * ENTRY;

// The network, in panels of 16 neurons: for each coordinate their 16 weights, filled up with zeros
// to whole groups of coordinates, then their biases. Neurons beyond the last are zeros throughout.
// The true weights are scale · rows, so that weight decay costs one multiplication a step.
struct Net {
    int n, groups;
    int64_t width, panels;
    int64_t stride;  // floats a panel
    float* rows;     // (panels, 4 groups + 1, 16)
    float* v;        // (panels, 16)
    float scale;
    float beta;

    int coordinates() const { return GROUP * groups + 1; }
    float* row(int64_t j) const { return rows + j / PANEL * stride + j % PANEL; }
    float& weight(int64_t j, int64_t i) const { return row(j)[PANEL * i]; }
    float& bias(int64_t j) const { return weight(j, GROUP * groups); }
};

// What the neurons do: h_j = σ(w_j·x + b_j), and f = Σ v_j h_j + β; or f = Π_j (w_j·x + b_j).
struct Neurons {
    int32_t activation;  // petridish_activation
    int32_t output;      // petridish_output
    int k;
    float scale;         // of a sine
    int n_coefficients;  // of a polynomial in z², of z times one if k is odd
    float coefficients[MAX_COEFFICIENTS];
};

// A minibatch, or a piece of a held-out sample, as blocks of 32 examples.
struct Batch {
    int blocks;
    uint8_t* slices;   // (blocks, bytes of an example, 32): the packed bits, laid out by `lay_out`
    uint8_t* places;   // (blocks, groups, 32): where a table has the four bits of each example
    float* z;          // (32 blocks, 16): half-done sums
    float* partial;    // (32 blocks, 16): sums over the neurons j = lane modulo 16
    float* sums;       // (32 blocks,): Σ_j v_j h_j, without scale and β
    uint64_t* active;  // (bundles, 32 blocks): which neurons are; null if unwanted
    float* h;          // (panels, 32 blocks, 16), not of ReLUs with trained outputs
    float* slope;      // the same, σ'(z); null if unwanted
};

// One step's change of the network, by the examples whose coefficient −B ∂loss/∂f is not 0, and by
// whole blocks that have few others.
struct Update {
    int count;
    const int* which;          // places in the minibatch
    const float* coefficient;  // (32 blocks,)
    bool signs;                // ReLUs with coefficients ±1 or 0: sums are small integers
    uint64_t* patterns;        // (32 examples each, coordinates), by `find_patterns`
    float row_keep, bias_keep, v_keep;        // w = keep · w + factor · v · c
    float row_factor, bias_factor, v_factor;  // v = keep · v + factor · w·c
    char* scratch;             // scratch_bytes
};

struct Kernels {
    const char* name;

    // Lay 32 examples out as block `block`: examples[e] points to the packed bits of example e.
    void (*lay_out)(const Net& net, const uint64_t* const examples[LANES], Batch& batch, int block);

    // Fill update.patterns.
    void (*find_patterns)(const Net& net, const Batch& batch, Update& update);

    int64_t (*scratch_bytes)(const Net& net);

    // A part of a pass over the network, the rows begin … end − 1: apply `update` (if given), which
    // came from `batch_before`, then run `batch` forward (if given). Parts come in order, and all but
    // the last are whole bundles; the first clears the sums, and the last completes them.
    void (*pass)(Net& net, const Neurons& neurons, const Update* update, const Batch& batch_before,
                 Batch* batch, int64_t begin, int64_t end);

    double (*peak_flops)(double seconds);
};

#if defined(__aarch64__)
extern const Kernels KERNELS_NEON;
#else
extern const Kernels KERNELS_AVX512, KERNELS_AVX2, KERNELS_PORTABLE;
#endif

// Whether the neurons are ReLUs with trained outputs, of which signs are all that is kept.
inline bool is_plain(const Neurons& neurons) {
    return neurons.activation == RELU && neurons.output == WEIGHTS;
}

}  // namespace petridish
