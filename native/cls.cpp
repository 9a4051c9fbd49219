// One run of a block with [CLS]: batches, dropout, steps, and the C interface.
#include "cls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "descent.h"
#include "flush.h"
#include "petridish.h"

namespace petridish {

namespace {

const Cls* const SETS[] = {
#if defined(__x86_64__)
    &CLS_AVX512, &CLS_AVX2,
#endif
    &CLS_PORTABLE};

ClsShape shape_of(const petridish_cls_spec& spec) {
    return {spec.vocabulary, spec.length,         spec.d,           spec.heads,
            spec.outputs,    spec.drop_below > 0, (float)spec.factor};
}

// Numbers of each parameter, in the order of cls.h.
std::vector<int64_t> parts_of(const ClsShape& s) {
    const int64_t d = s.d;
    std::vector<int64_t> parts = {s.tokens() * d, (s.vocabulary + 1) * d};
    parts.insert(parts.end(), 6, d);
    for (int k = 0; k < 4; ++k) parts.insert(parts.end(), {d * d, d});
    parts.insert(parts.end(), {4 * d * d, 4 * d, 4 * d * d, d, s.outputs * d});
    return parts;
}

// The random numbers of a run's steps, laid out as in petridish/training/noise.py.
class Dropout {
   public:
    explicit Dropout(const petridish_cls_spec& spec) : lanes_{} {
        const int64_t t = spec.length + 1, m = spec.batch_size, d = spec.d;
        const int64_t sizes[] = {m * t * d, m * spec.heads * t, m * d, m * d};
        lanes_.seed = spec.seed, lanes_.bound = (uint16_t)spec.drop_below;
        for (int call = 0; call < 4; ++call) {
            lanes_.keys[call] = spec.keys[call];
            words_[call] = (sizes[call] + 3) / 4;
        }
    }

    const ClsLanes& at(int64_t step) {
        for (int call = 0; call < 4; ++call) lanes_.starts[call] = (uint64_t)(step * words_[call]);
        return lanes_;
    }

   private:
    ClsLanes lanes_;
    int64_t words_[4];  // of a full batch
};

class ClsRun {
   public:
    ClsRun(const petridish_cls_spec& spec, const Cls& kernels, const Attention& update,
           const float* weights)
        : spec_(spec),
          kernels_(kernels),
          shape_(shape_of(spec)),
          memory_(kernels.bytes(shape_, true)),
          chunk_(kernels.chunk(shape_)),
          weights_(weights, weights + shape_.size()),
          gradient_(weights_.size()),
          descent_(spec.descent, parts_of(shape_), update),
          dropout_(spec) {}

    int64_t advance(int64_t work, int64_t steps, const petridish_batches& batches, double* losses) {
        const int64_t cells = (shape_.heads + CELL - 1) / CELL;
        const int64_t cost = shape_.tokens() * cells;  // of an example; and of the tables
        int64_t done = 0;
        while (done < steps && work > 0 && !diverged_) {
            if (next_ == 0) {
                begin(batches, done);
                work -= cost * shape_.vocabulary;
            }
            work -= add(batches, done, step_) * cost;
            if (next_ < spec_.batch_size) continue;
            losses[done++] = end();
        }
        return done;
    }

    double gradient(int64_t step, const petridish_batches& batches, float* gradient) {
        begin(batches, 0);
        while (next_ < spec_.batch_size) add(batches, 0, step);
        next_ = 0;
        return kernels_.finish(memory_.get(), gradient) / (double)counted_;
    }

    void outputs(const uint8_t* tokens, int64_t count, float* out) {
        if (test_.empty()) test_.emplace_back(kernels_.bytes(shape_, false));
        if (tested_ != step_)
            kernels_.begin(shape_, false, test_[0].get(), weights_.data()), tested_ = step_;
        for (int64_t first = 0; first < count; first += chunk_) {
            const int here = (int)std::min<int64_t>(chunk_, count - first);
            kernels_.outputs(test_[0].get(), tokens + first * shape_.length, here,
                             out + first * shape_.outputs);
        }
    }

    const std::vector<float>& weights() const { return weights_; }

   private:
    // The example at a place of a step's batch; −1 if it has none, or none with a label.
    int64_t row(const petridish_batches& batches, int64_t step, int64_t place) const {
        const int64_t at = batches.places ? batches.places[step * spec_.batch_size + place]
                                          : batches.stride * step + place;
        return at >= 0 && batches.labels[at] != NO_LABEL ? at : -1;
    }

    void begin(const petridish_batches& batches, int64_t step) {
        counted_ = 0;
        for (int64_t place = 0; place < spec_.batch_size; ++place)
            counted_ += row(batches, step, place) >= 0;
        counted_ = std::max<int64_t>(1, counted_);
        kernels_.begin(shape_, true, memory_.get(), weights_.data());
    }

    int add(const petridish_batches& batches, int64_t step, int64_t number) {
        std::vector<ClsExample>& chosen = chosen_;
        chosen.clear();
        for (; (int)chosen.size() < chunk_ && next_ < spec_.batch_size; ++next_) {
            const int64_t at = row(batches, step, next_);
            if (at >= 0)
                chosen.push_back({batches.tokens + at * shape_.length, batches.labels[at], next_});
        }
        if (!chosen.empty())
            kernels_.add(memory_.get(), chosen.data(), (int)chosen.size(),
                         (float)(1.0 / (double)counted_), dropout_.at(number));
        return (int)chosen.size();
    }

    double end() {
        next_ = 0;
        const double loss = kernels_.finish(memory_.get(), gradient_.data()) / (double)counted_;
        descent_.step(gradient_.data(), weights_.data());
        ++step_;
        diverged_ = !(std::fabs(loss) <= std::numeric_limits<float>::max());
        return loss;
    }

    petridish_cls_spec spec_;
    const Cls& kernels_;
    ClsShape shape_;
    Memory memory_;
    int chunk_;
    std::vector<float> weights_, gradient_;
    Descent descent_;
    Dropout dropout_;
    std::vector<Memory> test_;  // for outputs, once they are asked for
    int64_t tested_ = -1;       // the step whose tables it has
    std::vector<ClsExample> chosen_;
    int64_t step_ = 0, next_ = 0;  // the place in the batch that comes next; 0 between steps
    int64_t counted_ = 0;          // labels of the batch
    bool diverged_ = false;
};

}  // namespace

}  // namespace petridish

using petridish::ClsRun;
using petridish::FlushToZero;

struct petridish_cls {
    ClsRun run;
};

petridish_cls* petridish_cls_begin(const petridish_cls_spec* spec, int32_t isa,
                                   const float* weights) {
    if (!petridish_isa_runs(isa)) return nullptr;
    try {
        return new petridish_cls{ClsRun(*spec, *petridish::SETS[isa],
                                        *petridish::ATTENTION_SETS[isa], weights)};
    } catch (...) {  // short of memory
        return nullptr;
    }
}

void petridish_cls_end(petridish_cls* run) { delete run; }

int64_t petridish_cls_advance(petridish_cls* run, int64_t work, int64_t steps,
                              const petridish_batches* batches, double* losses) {
    const FlushToZero mode;
    return run->run.advance(work, steps, *batches, losses);
}

void petridish_cls_weights(const petridish_cls* run, float* weights) {
    std::copy(run->run.weights().begin(), run->run.weights().end(), weights);
}

void petridish_cls_outputs(petridish_cls* run, const uint8_t* tokens, int64_t count,
                           float* outputs) {
    const FlushToZero mode;
    run->run.outputs(tokens, count, outputs);
}

double petridish_cls_gradient(petridish_cls* run, int64_t step, const petridish_batches* batches,
                              float* gradient) {
    const FlushToZero mode;
    return run->run.gradient(step, *batches, gradient);
}
