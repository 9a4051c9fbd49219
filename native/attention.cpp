// One run of a transformer of attention alone, or of the minimal model: batches, steps, and the C interface.
#include "attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "chains.h"
#include "descent.h"
#include "flush.h"
#include "petridish.h"

namespace petridish {

namespace {

const Attention* const MINIMAL_SETS[] = {
#if defined(__x86_64__)
    &MINIMAL_AVX512, &MINIMAL_AVX2,
#endif
    &MINIMAL_PORTABLE};

// Numbers of each parameter.
std::vector<int64_t> parts_of(const AttentionShape& shape) {
    if (shape.layers == 0) return {shape.length, shape.states * shape.states};
    const int64_t d = shape.d, square = shape.heads * d * d;
    std::vector<int64_t> parts = {d * shape.states};
    for (int layer = 0; layer < shape.layers; ++layer) {
        parts.push_back(shape.heads * d * shape.length);
        parts.insert(parts.end(), 3, square);
    }
    parts.push_back(d * shape.states);
    return parts;
}

class AttentionRun {
   public:
    AttentionRun(const petridish_attention_spec& spec, const Attention& kernels,
                 const float* weights)
        : spec_(spec),
          kernels_(kernels),
          shape_{spec.states, spec.length, spec.d, spec.heads, spec.layers},
          chains_{{spec.seed, spec.key}, spec.states, spec.length, spec.one_row != 0},
          memory_(kernels.bytes(shape_, true)),
          weights_(weights, weights + shape_.size()),
          gradient_(weights_.size()),
          descent_(spec.descent, parts_of(shape_), kernels) {
        if (spec.draws) {
            tokens_.resize((size_t)(spec.batch_size * spec.length));
            labels_.resize(tokens_.size());
        }
    }

    int64_t advance(int64_t work, int64_t steps, const uint8_t* tokens, const uint8_t* labels,
                    double* losses) {
        const int64_t batch = spec_.batch_size, size = batch * spec_.length;
        const int64_t heads = std::max(1, shape_.layers * shape_.heads);
        const int64_t cost =
            heads * shape_.length * (shape_.length + 1) / 2 * kernels_.lanes;
        int64_t done = 0;
        while (done < steps && work > 0 && !diverged_) {
            const uint8_t* x = tokens ? tokens + done * size : tokens_.data();
            const uint8_t* y = tokens ? labels + done * size : labels_.data();
            if (next_ == 0) {
                if (!tokens)
                    chains_.draw(spec_.skip + step_ * batch, batch, tokens_.data(),
                                 labels_.data());
                begin(y);
            }
            add(x, y);
            work -= cost;
            if (next_ < batch) continue;
            losses[done++] = end();
        }
        return done;
    }

    double gradient(const uint8_t* tokens, const uint8_t* labels, float* gradient) {
        begin(labels);
        while (next_ < spec_.batch_size) add(tokens, labels);
        next_ = 0;
        return kernels_.finish(memory_.get(), gradient) / (double)counted_;
    }

    void outputs(const uint8_t* tokens, int64_t count, int from, float* out) {
        const int64_t each = (int64_t)(shape_.length - from) * shape_.states;
        by_groups(count, [&](char* memory, int64_t first, int here) {
            kernels_.outputs(memory, tokens + first * shape_.length, here, from,
                             out + first * each);
        });
    }

    void pattern(const uint8_t* tokens, int64_t count, int layer, int replaced,
                 const float* others, float* shares) {
        const int64_t each = (int64_t)shape_.heads * shape_.length * shape_.length;
        by_groups(count, [&](char* memory, int64_t first, int here) {
            kernels_.pattern(memory, tokens + first * shape_.length, here, layer, replaced,
                             others ? others + first * each : nullptr, shares + first * each);
        });
    }

    const std::vector<float>& weights() const { return weights_; }
    const Chains& chains() const { return chains_; }

   private:
    // Let groups of sequences go forward with the weights as they are.
    template <class Take>
    void by_groups(int64_t count, Take take) {
        Memory memory(kernels_.bytes(shape_, false));
        kernels_.begin(shape_, false, memory.get(), weights_.data());
        for (int64_t first = 0; first < count; first += kernels_.lanes)
            take(memory.get(), first, (int)std::min<int64_t>(kernels_.lanes, count - first));
    }

    void begin(const uint8_t* labels) {
        const int64_t size = spec_.batch_size * spec_.length;
        counted_ = std::max<int64_t>(1, size - std::count(labels, labels + size, (uint8_t)NO_LABEL));
        kernels_.begin(shape_, true, memory_.get(), weights_.data());
    }

    void add(const uint8_t* tokens, const uint8_t* labels) {
        const int here = (int)std::min<int64_t>(kernels_.lanes, spec_.batch_size - next_);
        const int64_t place = next_ * spec_.length;
        kernels_.add(memory_.get(), tokens + place, labels + place, here, (int)(next_ % CELL),
                     (float)(1.0 / (double)counted_));
        next_ += here;
    }

    double end() {
        next_ = 0;
        const double loss = kernels_.finish(memory_.get(), gradient_.data()) / (double)counted_;
        descent_.step(gradient_.data(), weights_.data());
        ++step_;
        diverged_ = !(std::fabs(loss) <= std::numeric_limits<float>::max());
        return loss;
    }

    petridish_attention_spec spec_;
    const Attention& kernels_;
    AttentionShape shape_;
    Chains chains_;
    Memory memory_;
    std::vector<float> weights_, gradient_;
    Descent descent_;
    std::vector<uint8_t> tokens_, labels_;
    int64_t step_ = 0, next_ = 0;  // the sequence of the batch that comes next; 0 between steps
    int64_t counted_ = 0;          // labels of the batch
    bool diverged_ = false;
};

}  // namespace

}  // namespace petridish

using petridish::AttentionRun;
using petridish::FlushToZero;

struct petridish_attention {
    AttentionRun run;
};

petridish_attention* petridish_attention_begin(const petridish_attention_spec* spec, int32_t isa,
                                               const float* weights) {
    if (!petridish_isa_runs(isa)) return nullptr;
    try {
        const auto* const sets = spec->layers ? petridish::ATTENTION_SETS : petridish::MINIMAL_SETS;
        return new petridish_attention{AttentionRun(*spec, *sets[isa], weights)};
    } catch (...) {  // short of memory
        return nullptr;
    }
}

void petridish_attention_end(petridish_attention* run) { delete run; }

int64_t petridish_attention_advance(petridish_attention* run, int64_t work, int64_t steps,
                                    const uint8_t* tokens, const uint8_t* labels,
                                    double* losses) {
    const FlushToZero mode;
    return run->run.advance(work, steps, tokens, labels, losses);
}

void petridish_attention_weights(const petridish_attention* run, float* weights) {
    std::copy(run->run.weights().begin(), run->run.weights().end(), weights);
}

void petridish_attention_outputs(petridish_attention* run, const uint8_t* tokens, int64_t count,
                                 int32_t from, float* outputs) {
    const FlushToZero mode;
    run->run.outputs(tokens, count, from, outputs);
}

void petridish_attention_pattern(petridish_attention* run, const uint8_t* tokens, int64_t count,
                                 int32_t layer, int32_t replaced, const float* others,
                                 float* shares) {
    const FlushToZero mode;
    run->run.pattern(tokens, count, layer, replaced, others, shares);
}

double petridish_attention_gradient(petridish_attention* run, const uint8_t* tokens,
                                    const uint8_t* labels, float* gradient) {
    const FlushToZero mode;
    return run->run.gradient(tokens, labels, gradient);
}

void petridish_attention_draw(const petridish_attention* run, int64_t start, int64_t count,
                              uint8_t* tokens, uint8_t* labels) {
    run->run.chains().draw(start, count, tokens, labels);
}
