// How a run's weights follow their gradients, and memory on cache lines: what runs of attention share.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "attention.h"
#include "petridish.h"

namespace petridish {

inline const Attention* const ATTENTION_SETS[] = {
#if defined(__x86_64__)
    &ATTENTION_AVX512, &ATTENTION_AVX2,
#endif
    &ATTENTION_PORTABLE};

class Memory {
   public:
    explicit Memory(size_t bytes) : lines_(bytes / 64 + 1) {}
    char* get() { return reinterpret_cast<char*>(lines_.data()); }

   private:
    struct alignas(64) Line {
        char bytes[64];
    };
    std::vector<Line> lines_;
};

class Descent {
   public:
    // `parts` are the numbers of each parameter.
    Descent(const petridish_descent& given, std::vector<int64_t> parts, const Attention& kernels)
        : given_(given), parts_(std::move(parts)), kernels_(kernels) {
        int64_t size = 0;
        for (int64_t part : parts_) size += part;
        first_.resize((size_t)size), second_.resize((size_t)size);
    }

    void step(const float* gradient, float* weights) {
        const petridish_factors* now = &given_.pieces[0];
        for (int64_t k = 1; k < given_.n_pieces; ++k)
            if (given_.pieces[k].start <= steps_) now = &given_.pieces[k];
        ++steps_;
        power1_ *= given_.beta1, power2_ *= given_.beta2;
        OptimiserStep step = {};
        step.kind = (int32_t)given_.optimiser;
        step.momentum = (float)given_.momentum;
        step.beta2 = (float)given_.beta2;
        step.rest1 = (float)(1 - given_.beta1), step.rest2 = (float)(1 - given_.beta2);
        step.epsilon = (float)given_.epsilon;
        step.mean_share = (float)(1 - power1_), step.square_share = (float)std::sqrt(1 - power2_);
        step.gradient_scale = scale(gradient);
        int64_t at = 0;
        for (size_t part = 0; part < parts_.size(); at += parts_[part++]) {
            step.rate = now->rate[part], step.decay = now->decay[part];
            step.keep = now->keep[part];
            step.shrink = (float)(1 - (double)step.rate * step.decay);
            kernels_.update(step, parts_[part], weights + at, gradient + at, first_.data() + at,
                            second_.data() + at);
        }
    }

   private:
    // What shortens the gradient to the length allowed; the 1e-6 is PyTorch's.
    float scale(const float* gradient) const {
        if (given_.clip <= 0) return 1;
        double square = 0;
        for (size_t n = 0; n < first_.size(); ++n) square += (double)gradient[n] * gradient[n];
        return (float)std::min(1.0, given_.clip / (std::sqrt(square) + 1e-6));
    }

    petridish_descent given_;
    std::vector<int64_t> parts_;
    const Attention& kernels_;
    std::vector<float> first_, second_;  // what the optimiser keeps
    int64_t steps_ = 0;
    double power1_ = 1, power2_ = 1;
};

}  // namespace petridish
