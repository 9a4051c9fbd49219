// Proofs of failure: a run ends early, as OUT_OF_STEPS, when it is certain that it cannot succeed.
//
// Theorem. Let every hidden neuron be inactive, w_j·x + b_j ≤ 0, on every training example (offline)
// or on every input (online), and let W and b have the same decay from now on. Then no later step
// changes W, b or v but for decay, and at any later time
//
//     f(x) = β' + c g(x),   g(x) = Σ_j v_j relu(w_j·x + b_j) as of now, c ≥ 0, β' any number.
//
// Proof. An inactive neuron has no gradient, neither in w_j and b_j nor, its activation being 0, in
// v_j: the step multiplies (w_j, b_j) by 1 − ηλ > 0, which keeps the sign of w_j·x + b_j, and v_j by
// a factor that all j share. By induction this holds at every later step. ∎
//
// So a later network classifies the held-out sample by comparing g with a threshold −β'/c (or all
// alike, if c = 0): if even the best threshold errs more often than the target allows, the run is
// lost. An output of exactly 0 counts as wrong, which only adds errors.
//
// Rounding: signs are asked for with a margin far above the rounding of a sum; the stored rows do
// not change under decay (it goes into their scale, and from there by powers of two).
#include <algorithm>
#include <cmath>
#include <vector>

#include "run.h"

namespace petridish {

namespace {

// Whether a neuron is active on one of the first `examples` examples; blocks are filled up.
bool any_active(const Kernels& kernels, const Batch& batch, int64_t width, int64_t examples) {
    for (int64_t block = 0; block * LANES < examples; ++block) {
        const int64_t left = std::min<int64_t>(LANES, examples - block * LANES);
        const uint32_t real = kernels.examples_mask((int)left);
        const uint32_t* active = batch.active + block * width;
        if (std::any_of(active, active + width, [=](uint32_t a) { return a & real; })) return true;
    }
    return false;
}

}  // namespace

bool Run::hopeless() {
    if (!spec_.certify || spec_.curves || stages_.empty() || step_ < next_proof_) return false;
    // The last minibatch refutes most candidates at no cost.
    if (step_ == 0 || any_active(kernels_, batch_, net_.width, spec_.batch_size)) return false;
    next_proof_ = 2 * step_;  // what fails now seldom holds soon, and a proof costs a full look
    if (!biases_decay_alike()) return false;
    if (!(inactive_on_all_inputs() || (spec_.m > 0 && inactive_on_sample()))) return false;
    if (fewest_wrong() <= stages_.back().limit) return false;
    Counting whole{spec_.test_inputs, spec_.test_labels, 0, spec_.n_test, 0};
    while (whole.done < whole.total)
        count_outputs(whole, probe(whole.inputs, whole.labels, whole.done, whole.total));
    test_wrong_ = whole.wrong;
    return true;
}

bool Run::biases_decay_alike() const {
    for (size_t k = 0; k < pieces_.size(); ++k) {
        const bool over = k + 1 < pieces_.size() && pieces_[k + 1].start <= step_;
        const petridish_piece& p = pieces_[k];
        if (!over && p.rate[0] * p.decay[0] != p.rate[1] * p.decay[1]) return false;
    }
    return true;
}

// No input, seen or unseen, activates a neuron whose bias outweighs all its weights.
bool Run::inactive_on_all_inputs() const {
    const double margin = 1 + net_.n1 * 0x1p-22;
    for (int64_t j = 0; j < net_.width; ++j) {
        const float* row = net_.rows + j * net_.stride;
        double size = 0;
        for (int64_t i = 0; i < spec_.n; ++i) size += std::fabs((double)row[i]);
        if (!(row[spec_.n] + margin * size <= 0)) return false;  // also if it is no number
    }
    return true;
}

bool Run::inactive_on_sample() {
    std::vector<float> margin((size_t)net_.width);
    for (int64_t j = 0; j < net_.width; ++j) {  // raise every bias by the margin …
        float* row = net_.rows + j * net_.stride;
        float size = 0;
        for (int64_t i = 0; i <= spec_.n; ++i) size += std::fabs(row[i]);
        margin[(size_t)j] = row[spec_.n];
        row[spec_.n] += size * (float)net_.n1 * 0x1p-22f;
    }
    Buffer<uint32_t> active(PROBE_BLOCKS * net_.width);
    probe_.active = active.get();
    bool inactive = true;
    for (int64_t done = 0; inactive && done < spec_.m;) {
        const int64_t count = probe(spec_.train_inputs, spec_.train_labels, done, spec_.m);
        inactive = !any_active(kernels_, probe_, net_.width, count);
        done += count;
    }
    probe_.active = nullptr;
    for (int64_t j = 0; j < net_.width; ++j)  // … and put it back
        net_.rows[j * net_.stride + spec_.n] = margin[(size_t)j];
    return inactive;
}

// The errors of the best threshold on g over the held-out sample; 0 if some g is no number.
int64_t Run::fewest_wrong() {
    std::vector<std::pair<float, bool>> scored;  // g, and whether y = −1
    for (int64_t done = 0; done < spec_.n_test;) {
        const int64_t count = probe(spec_.test_inputs, spec_.test_labels, done, spec_.n_test);
        for (int64_t e = 0; e < count; ++e) {
            if (!std::isfinite(probe_.sums[e])) return 0;
            scored.emplace_back(probe_.sums[e], probe_examples_.y()[e] < 0);
        }
        done += count;
    }
    std::sort(scored.begin(), scored.end());
    // With the threshold below all, everything is called +1; then one value after another moves
    // to the other side.
    int64_t wrong = std::count_if(scored.begin(), scored.end(), [](auto s) { return s.second; });
    int64_t fewest = wrong;
    for (size_t k = 0; k < scored.size(); ++k) {
        wrong += scored[k].second ? -1 : 1;
        if (k + 1 == scored.size() || scored[k].first != scored[k + 1].first)
            fewest = std::min(fewest, wrong);
    }
    return fewest;
}

}  // namespace petridish
