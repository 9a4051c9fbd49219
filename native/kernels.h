// What differs between processors: the five inner loops, compiled once for each instruction set
// (kernels.inc) and chosen when the library is loaded. All give the same bits.
#pragma once
#include <stdint.h>

#include "petridish.h"

namespace petridish {

constexpr int LANES = 32;  // examples a block: the unit in which minibatches are processed
constexpr int GROUP = 4;   // examples a look-up table: 2^4 sums of subsets

// The network. Row j holds w_j and, as coordinate n, the bias b_j, whose input is always +1;
// the true weights are scale · rows, so that weight decay costs one multiplication a step.
struct Net {
    int n1;           // coordinates of a row: n + 1
    int stride;       // floats a row: n1 rounded up to 8; the padding is and stays 0
    int64_t width;    // rows
    int64_t group;    // rows that are updated, then run forward, while they are in the cache
    float* rows;      // (width, stride)
    float* v;         // (width,)
    float scale;
    float beta;
};

// A minibatch, or a piece of a held-out sample, as blocks of 32 examples.
struct Batch {
    int blocks;
    float* x;          // (blocks, n1, 32), laid out by `expand`
    float* sums;       // (blocks, 32): Σ_j v_j relu(rows_j · x), without scale and β
    uint32_t* active;  // (blocks, width): a bit for each example says rows_j · x_e > 0, in an
                       // order of the kernels' own (examples_mask); null if unwanted
};

// Σ_e coefficient_e x_e over subsets of the examples, by tables over groups of four.
// The coefficients −B ∂loss/∂f are ±1 or 0 (bytes), or any numbers (floats).
struct Tables {
    int blocks;
    const int* n_groups;     // (blocks,): groups with a coefficient other than 0
    const uint8_t* shift;    // (blocks, 8): where in `active` each of them has its four bits
    int64_t block_bytes;     // from one block's tables to the next's
    bool floats;
    char* entries;           // (blocks, chunk, group, 16 subsets, coordinates of one vector)
};

// One step's change of the network; see Kernels::pass.
struct Update {
    Tables tables;
    const uint32_t* active;  // (blocks, width), as the forward pass left it
    float rows_factor;   // η_W / (B scale_new): row_j += rows_factor · v_j · c_j
    float v_decay;       // 1 − η_v λ_v
    float v_factor;      // η_v scale_old / B:  v_j = v_decay · v_j + v_factor · row_j·c_j
    bool own_bias;       // whether the biases have a rate or decay of their own:
    float bias_decay;    //   decay of b over decay of W
    float bias_factor;   //   in place of rows_factor
    float* scratch;      // 64-byte aligned, n1 rounded up to 16
};

// What the neurons do, where they are not a ReLU's with trained outputs: h_j = σ(w_j·x), and
// f = Σ v_j h_j + β; or f = Π_j w_j·x.
struct Neurons {
    int32_t activation;  // petridish_activation
    int32_t output;      // petridish_output
    int k;
    float scale;                    // of a sine
    int n_coefficients;             // of a polynomial in z², of z times one if k is odd
    float coefficients[MAX_COEFFICIENTS];
};

// One step's change of such a network; examples count from the first block's first.
struct NeuronsUpdate {
    int blocks;
    const float* x;            // (blocks · 32, stride): the minibatch, by `expand_rows`
    const float* h;            // (blocks, width, 32)
    const float* slope;        // (blocks, width, 32): ∂f/∂(w_j·x) without v_j
    const float* coefficient;  // (blocks · 32): −B ∂loss/∂f
    int64_t count;             // examples whose coefficient is not 0,
    const int* which;          //   and which they are
    float row_keep, bias_keep, v_keep;        // 1 − ηλ
    float row_factor, bias_factor, v_factor;  // η / B
    float* d;         // (blocks · 32)
    float* gradient;  // 64-byte aligned, (stride)
};

struct Kernels {
    const char* name;

    // Lay 32 examples out for `pass`: examples[e] points to the packed bits of example e, of which
    // n1 are used; the last, the bias', is 0, meaning +1.
    void (*expand)(const uint64_t* const examples[LANES], int n1, float* x);

    // Build the tables of one block; gives the number of groups, and fills `shift`.
    int (*build)(const uint64_t* const examples[LANES], int n1, const float coefficient[LANES],
                 bool floats, uint8_t* shift, char* entries);

    // The bits in `active` of the first `count` examples of a block.
    uint32_t (*examples_mask)(int count);

    // Bytes that the tables of one block take at most.
    int64_t (*table_bytes)(int n1, bool floats);

    // A part of a pass over the network, the rows begin … end − 1: apply `update` (if given), then
    // run `batch` forward (if given). Parts come in order, and all but the last are whole groups;
    // the first clears the sums.
    void (*pass)(Net& net, const Update* update, Batch* batch, int64_t begin, int64_t end);

    // The same for other neurons, a whole pass at a time. `expand_rows` lays 32 examples out a
    // second time, a row an example, filled up with 0; `forward` fills sums, h and, if it is given,
    // slope; `descend` changes rows and v.
    void (*expand_rows)(const uint64_t* const examples[LANES], int n1, int stride, float* x);
    void (*forward)(const Net& net, const Neurons& neurons, Batch& batch, float* h, float* slope);
    void (*descend)(Net& net, const Neurons& neurons, const NeuronsUpdate& update);

    double (*peak_flops)(double seconds);
};

extern const Kernels KERNELS_AVX512, KERNELS_AVX2, KERNELS_PORTABLE;

}  // namespace petridish
