// The C interface of the native engine: whole training runs of two-layer networks
//
//     f(x) = β + Σ_j v_j σ(w_j·x + b_j),   x in {−1, +1}^n,
//
// of ReLU's or a few other neurons, with trained outputs v or without (v = 1), and of products
// f(x) = Π_j (w_j·x + b_j),
// by minibatch SGD with weight decay. A run is an opaque value, used by one thread at a time; runs
// share nothing, so that any number of threads may carry out runs of their own. No call aborts,
// throws or prints.
#pragma once
#include <stdint.h>

#define PETRIDISH_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// Raised whenever a struct or a call below changes; the Python side refuses another one's library.
#define PETRIDISH_ABI 8

enum petridish_loss { HINGE = 0, CORRELATION = 1, SQUARE = 2, LOGISTIC = 3 };

enum petridish_activation { RELU = 0, POWER = 1, ZIGZAG = 2, TRIANGLE = 3, POLYNOMIAL = 4, SINE = 5 };
enum petridish_output { WEIGHTS = 0, ONES = 1, PRODUCT = 2 };
enum { MAX_COEFFICIENTS = 16 };

enum petridish_status {
    RUNNING = 0,
    SOLVED = 1,
    OUT_OF_STEPS = 2,
    DIVERGED = 3,
    HOPELESS = 4,  // proved: it will be OUT_OF_STEPS (failure.cpp)
};

// From step `start` on: rates η and decays λ of W, b, v, β.
struct petridish_piece {
    int64_t start;
    double rate[4];
    double decay[4];
};

// A part of a look at a sample: examples start … stop − 1; if more than `limit` of the first `stop`
// are wrong the run is not yet solved (or its own sample not yet fitted), and the look ends.
struct petridish_stage {
    int64_t start, stop, limit;
};

// Inputs are packed: bit i of an example is bit i % 64 of its word i / 64, the bit 1 is the sign −1.
// Labels are bits too. All arrays are read during the run and stay the caller's.
struct petridish_spec {
    int64_t n, width, batch_size, steps;
    int64_t m;  // training examples; 0: fresh ones at each step
    int32_t loss;
    int32_t certify;  // whether to look for proofs of failure
    int32_t activation;
    int32_t output;
    int32_t degree;          // k of a power, zigzag, polynomial or sine
    int32_t n_coefficients;  // of a polynomial: of z^0, z^2, … or z^1, z^3, …, as k is even or odd
    double scale;            // of a sine
    double coefficients[MAX_COEFFICIENTS];

    uint64_t seed;
    uint64_t batches_key, train_key, noise_key;  // the names of the run's streams, hashed

    const uint64_t* train_inputs;  // (m, words), offline only
    const uint8_t* train_labels;

    // Online labels: the parity of the bits in `parity_mask` if it is given, else
    // `truth_table` at the number whose binary digits are the relevant bits.
    const uint64_t* parity_mask;  // (words,)
    const int64_t* support;
    int64_t n_relevant;
    const uint8_t* truth_table;
    uint64_t noise_below;  // flip where the noise stream's word >> 11 is below this

    const uint64_t* test_inputs;  // (n_test, words)
    const uint8_t* test_labels;
    int64_t n_test;

    int64_t evaluate_every;
    int32_t curves;  // whether every look counts all errors
    int32_t n_stages;  // 0: never solved
    const struct petridish_stage* stages;
    int64_t n_fit_stages;  // of the training sample; 0: not looked at
    const struct petridish_stage* fit_stages;

    int64_t n_pieces;
    const struct petridish_piece* pieces;  // the first starts at 0
};

// Where a run stands. The means of the loss are over the steps since the last look.
struct petridish_state {
    int64_t step;
    int64_t test_wrong;  // at the last look that counted all; −1 before one
    double train_loss;   // NaN before the first step
    int64_t n_looks;     // rows of the curves
    int64_t fitted_at;   // the first look that found the training sample fitted; −1 before one
};

typedef struct petridish_run petridish_run;

PETRIDISH_API int32_t petridish_abi(void);
// The bytes of the struct `index` of this header, counted from the top; 0 beyond the last.
PETRIDISH_API int64_t petridish_struct_size(int32_t index);

// Name the instruction set `index` that this library was built for, fastest first, or null; and
// say whether this processor has it.
PETRIDISH_API const char* petridish_isa_name(int32_t index);
PETRIDISH_API int32_t petridish_isa_runs(int32_t index);

// Begin a run with the weights W (width, n), b (width), v (width), β (1); null if memory is short.
PETRIDISH_API petridish_run* petridish_begin(const struct petridish_spec* spec, int32_t isa,
                                             const float* weight, const float* bias,
                                             const float* output, const float* output_bias);
PETRIDISH_API void petridish_end(petridish_run* run);

// Go on for about `work` units (the forward pass of one neuron on 32 examples is one unit), to the
// end, or, if `pause_at_looks`, to the end of the next look. Returns a petridish_status.
PETRIDISH_API int32_t petridish_advance(petridish_run* run, int64_t work, int32_t pause_at_looks);

PETRIDISH_API void petridish_read_state(const petridish_run* run, struct petridish_state* state);
PETRIDISH_API void petridish_read_curves(const petridish_run* run, int64_t* step,
                                         double* train_loss, int64_t* train_wrong,
                                         int64_t* test_wrong);
PETRIDISH_API void petridish_read_weights(petridish_run* run, float* weight, float* bias,
                                          float* output, float* output_bias);
// Count the wrong outputs on any packed examples.
PETRIDISH_API int64_t petridish_count_wrong(petridish_run* run, const uint64_t* inputs,
                                            const uint8_t* labels, int64_t count);

// ---- attention alone (attention.h) -----------------------------------------------------------

enum petridish_optimiser { PLAIN_SGD = 0, ADAM = 1, ADAMW = 2 };
enum { NO_LABEL = 255 };  // of a position that does not count

// From step `start` on, for each parameter in the order of attention.h.
struct petridish_factors {
    int64_t start;
    const float* rate;
    const float* decay;
    const float* keep;  // of the old value in an update
};

// How weights follow their gradients.
struct petridish_descent {
    int64_t optimiser;
    double momentum, beta1, beta2, epsilon;
    double clip;  // the most that the norm of the gradient may be; 0: whatever it is
    int64_t n_pieces;
    const struct petridish_factors* pieces;  // the first starts at 0; kept by the caller
};

struct petridish_attention_spec {
    int32_t states, length, d, heads, layers;  // at most 16, 512, 64, 4, 3; layers 0: minimal
    int64_t batch_size;
    struct petridish_descent descent;

    // Fresh Markov chains, drawn as petridish/tasks/markov.py does; or none: batches are given.
    int32_t draws, one_row;  // one row for all states: independent tokens
    uint64_t seed, key;
    int64_t skip;  // examples before the first
};

typedef struct petridish_attention petridish_attention;

// Begin with weights in the order of attention.h; null if memory is short.
PETRIDISH_API petridish_attention* petridish_attention_begin(
    const struct petridish_attention_spec* spec, int32_t isa, const float* weights);
PETRIDISH_API void petridish_attention_end(petridish_attention* run);

// Go on for about `work` pairs of positions of a sequence and head, at most to the end of `steps`
// steps; a step may stop in the middle, and the next call goes on with it. The batches of these steps
// are tokens and labels (steps, batch, length), counted from the step under way; null if the run
// draws. Fills in the mean loss of each step that ends; returns their number. The last of them is no
// number, or infinite, if the run diverged.
PETRIDISH_API int64_t petridish_attention_advance(petridish_attention* run, int64_t work,
                                                  int64_t steps, const uint8_t* tokens,
                                                  const uint8_t* labels, double* losses);
PETRIDISH_API void petridish_attention_weights(const petridish_attention* run, float* weights);
// The outputs (count, length − from, states) on `count` sequences from a position on.
PETRIDISH_API void petridish_attention_outputs(petridish_attention* run, const uint8_t* tokens,
                                               int64_t count, int32_t from, float* outputs);
// The shares of attention (count, heads, length, length) of a layer, beginning with 0. If `others` is
// not null the earlier layer `replaced` attends by those instead. Not of the minimal model.
PETRIDISH_API void petridish_attention_pattern(petridish_attention* run, const uint8_t* tokens,
                                               int64_t count, int32_t layer, int32_t replaced,
                                               const float* others, float* shares);
// The loss of a batch and its gradient, in the order of the weights, before clipping; for tests.
PETRIDISH_API double petridish_attention_gradient(petridish_attention* run, const uint8_t* tokens,
                                                  const uint8_t* labels, float* gradient);
// The tokens and labels of the examples start … start + count − 1 that the run draws; for tests.
PETRIDISH_API void petridish_attention_draw(const petridish_attention* run, int64_t start,
                                            int64_t count, uint8_t* tokens, uint8_t* labels);

// ---- a block with [CLS] (cls.h) ----------------------------------------------------------------

struct petridish_cls_spec {
    int32_t vocabulary, length, d, heads, outputs;  // at most 16, 4096, 256, 128, 16
    int32_t drop_below;  // of 65536: a coordinate whose random lane is below it is dropped
    double factor;       // of the others
    int64_t batch_size;
    struct petridish_descent descent;
    uint64_t seed;
    uint64_t keys[4];  // the streams of its four calls for random numbers (cls.h), hashed
};

// Where the batches of some steps are: row stride · step + i of the examples, or, if there are places,
// row places[step batch_size + i]; there is no example where that is negative.
struct petridish_batches {
    const uint8_t* tokens;  // (examples, length)
    const uint8_t* labels;  // (examples)
    const int64_t* places;
    int64_t stride;
};

typedef struct petridish_cls petridish_cls;

// Begin with weights in the order of cls.h; null if memory is short.
PETRIDISH_API petridish_cls* petridish_cls_begin(const struct petridish_cls_spec* spec, int32_t isa,
                                                 const float* weights);
PETRIDISH_API void petridish_cls_end(petridish_cls* run);

// Go on for about `work` pairs of an example and a token, as petridish_attention_advance does.
PETRIDISH_API int64_t petridish_cls_advance(petridish_cls* run, int64_t work, int64_t steps,
                                            const struct petridish_batches* batches,
                                            double* losses);
PETRIDISH_API void petridish_cls_weights(const petridish_cls* run, float* weights);
// The outputs (count, outputs) on `count` examples, without dropout.
PETRIDISH_API void petridish_cls_outputs(petridish_cls* run, const uint8_t* tokens, int64_t count,
                                         float* outputs);
// The loss of a batch and its gradient, with the dropout of a step, before clipping; for tests.
PETRIDISH_API double petridish_cls_gradient(petridish_cls* run, int64_t step,
                                            const struct petridish_batches* batches,
                                            float* gradient);

// Philox4x64-10 words start … start + count − 1 of the stream (seed, key); for tests.
PETRIDISH_API void petridish_words(uint64_t seed, uint64_t key, int64_t start, int64_t count,
                                   uint64_t* words);

// Floating-point operations a second of multiply-adds in registers, on one core for about
// `seconds`: the limit that the benchmark compares with.
PETRIDISH_API double petridish_peak_flops(int32_t isa, double seconds);

#ifdef __cplusplus
}
#endif
