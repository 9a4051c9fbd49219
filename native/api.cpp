// The C interface: nothing but translation, and the promise that no exception crosses it.
#include "flush.h"
#include "run.h"

using petridish::FlushToZero;
using petridish::Kernels;
using petridish::Run;

struct petridish_run {
    Run run;
};

namespace {

#if defined(__x86_64__)
bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}
#endif
bool always() { return true; }

struct InstructionSet {
    const Kernels* kernels;
    bool (*runs)();
};

constexpr InstructionSet SETS[] = {
#if defined(__x86_64__)
    {&petridish::KERNELS_AVX512, has_avx512},
    {&petridish::KERNELS_AVX2, has_avx2},
#endif
#if defined(__aarch64__)
    {&petridish::KERNELS_NEON, always},
#else
    {&petridish::KERNELS_PORTABLE, always},
#endif
};
constexpr int32_t N_SETS = sizeof(SETS) / sizeof(SETS[0]);

}  // namespace

int32_t petridish_abi(void) { return PETRIDISH_ABI; }

int64_t petridish_struct_size(int32_t index) {
    constexpr size_t SIZES[] = {sizeof(petridish_piece),   sizeof(petridish_stage),
                                sizeof(petridish_spec),    sizeof(petridish_state),
                                sizeof(petridish_factors), sizeof(petridish_descent),
                                sizeof(petridish_attention_spec), sizeof(petridish_cls_spec),
                                sizeof(petridish_batches)};
    constexpr int32_t COUNT = sizeof(SIZES) / sizeof(SIZES[0]);
    return index >= 0 && index < COUNT ? (int64_t)SIZES[index] : 0;
}

const char* petridish_isa_name(int32_t index) {
    return index >= 0 && index < N_SETS ? SETS[index].kernels->name : nullptr;
}

int32_t petridish_isa_runs(int32_t index) {
    return index >= 0 && index < N_SETS && SETS[index].runs();
}

petridish_run* petridish_begin(const petridish_spec* spec, int32_t isa, const float* weight,
                               const float* bias, const float* output, const float* output_bias) {
    if (!petridish_isa_runs(isa)) return nullptr;
    try {
        auto* begun = new petridish_run{Run(*spec, *SETS[isa].kernels)};
        begun->run.write_weights(weight, bias, output, output_bias);
        return begun;
    } catch (...) {  // short of memory, or more than there can be
        return nullptr;
    }
}

void petridish_end(petridish_run* run) { delete run; }

int32_t petridish_advance(petridish_run* run, int64_t work, int32_t pause_at_looks) {
    const FlushToZero mode;
    return run->run.advance(work, pause_at_looks != 0);
}

void petridish_read_state(const petridish_run* run, petridish_state* state) {
    *state = run->run.state();
}

void petridish_read_curves(const petridish_run* run, int64_t* step, double* train_loss,
                           int64_t* train_wrong, int64_t* test_wrong) {
    for (const Run::Look& look : run->run.curves()) {
        *step++ = look.step;
        *train_loss++ = look.train_loss;
        *train_wrong++ = look.train_wrong;
        *test_wrong++ = look.test_wrong;
    }
}

void petridish_read_weights(petridish_run* run, float* weight, float* bias, float* output,
                            float* output_bias) {
    const FlushToZero mode;
    run->run.read_weights(weight, bias, output, output_bias);
}

int64_t petridish_count_wrong(petridish_run* run, const uint64_t* inputs, const uint8_t* labels,
                              int64_t count) {
    const FlushToZero mode;
    return run->run.count_wrong(inputs, labels, count);
}

void petridish_words(uint64_t seed, uint64_t key, int64_t start, int64_t count, uint64_t* words) {
    petridish::Stream{seed, key}.words((uint64_t)start, count, words);
}

double petridish_peak_flops(int32_t isa, double seconds) {
    return petridish_isa_runs(isa) ? SETS[isa].kernels->peak_flops(seconds) : 0;
}
