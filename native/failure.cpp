// Proofs of failure: a run ends early, as OUT_OF_STEPS, when it is certain that it cannot succeed.
//
// Theorem. Let every hidden neuron be inactive, w_j·x + b_j ≤ 0, on every training example and every
// held-out example (or on every input), and let W and b have the same decay from now on. Then at
// every later step f = β on all of these, and no later look sees anything but a constant.
//
// Proof. A neuron that is inactive on the whole training sample has no gradient in w_j and b_j: a
// step multiplies them by 1 − ηλ > 0, which keeps the sign of w_j·x + b_j for every x. By induction
// it stays inactive on all of these examples, and contributes 0 to f on them. ∎
//
// So a later look finds as many errors as there are examples of one class (all of them, if β = 0).
// If both classes are larger than the target allows, the run is lost; if both classes of the training
// sample are larger than a fit allows, that is not fitted any more either. It cannot diverge either, for
// losses of bounded slope: β then moves by at most η a step.
//
// Rounding: signs are asked for with a margin of n 2^−22 of the row's size. Decay goes into the rows'
// scale, and from there by powers of two (Run::fold), where entries may vanish that are below 2^−26
// of their row's largest: less than the margin; a row that becomes too small for this to hold is
// set to 0 as a whole, and stays inactive.
#include <algorithm>
#include <cmath>
#include <vector>

#include "run.h"

namespace petridish {

namespace {

// Whether a neuron is active on one of the first `examples` examples; blocks are filled up.
bool any_active(const Net& net, const Batch& batch, int64_t examples) {
    const int64_t bundles = (net.width + BUNDLE - 1) / BUNDLE;
    for (int64_t bundle = 0; bundle < bundles; ++bundle) {
        const uint64_t* active = batch.active + bundle * LANES * batch.blocks;
        if (std::any_of(active, active + examples, [](uint64_t a) { return a != 0; })) return true;
    }
    return false;
}

}  // namespace

bool Run::hopeless() {
    if (!plain_ || !spec_.certify || spec_.curves || stages_.empty()) return false;
    if (step_ < next_proof_) return false;
    // The last minibatch refutes most candidates at no cost.
    if (step_ == 0 || any_active(net_, batch_.batch, spec_.batch_size)) return false;
    next_proof_ = 2 * step_;  // what fails now seldom holds soon, and a proof costs a full look
    if (!stays_finite() || !biases_decay_alike() || constant_may_fit()) return false;
    const int64_t minus =
        std::count(spec_.test_labels, spec_.test_labels + spec_.n_test, (uint8_t)1);
    if (std::min(minus, spec_.n_test - minus) <= stages_.back().limit) return false;
    if (!inactive_on_all_inputs() && !(spec_.m > 0 && inactive_on_samples())) return false;
    Counting whole{spec_.test_inputs, spec_.test_labels, 0, spec_.n_test, 0};
    while (whole.done < whole.total)
        count_outputs(whole, probe(whole.inputs, whole.labels, whole.done, whole.total));
    test_wrong_ = whole.wrong;
    return true;
}

// β alone is left to move: by at most η a step, unless the loss is steeper far out.
bool Run::stays_finite() const {
    double farthest = std::fabs(net_.beta);
    for (const petridish_piece& p : pieces_) farthest += p.rate[3] * (double)spec_.steps;
    return spec_.loss != SQUARE && farthest < 1e30;
}

bool Run::constant_may_fit() const {
    if (fitted_at_ >= 0 || fit_stages_.empty()) return false;
    const int64_t minus = std::count(spec_.train_labels, spec_.train_labels + spec_.m, (uint8_t)1);
    return std::min(minus, spec_.m - minus) <= fit_stages_.back().limit;
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
    const double margin = 1 + (net_.n + 1) * 0x1p-22;
    for (int64_t j = 0; j < net_.width; ++j) {
        double size = 0;
        for (int64_t i = 0; i < spec_.n; ++i) size += std::fabs((double)net_.weight(j, i));
        if (!(net_.bias(j) + margin * size <= 0)) return false;  // also if it is no number
    }
    return true;
}

bool Run::inactive_on_samples() {
    std::vector<float> bias((size_t)net_.width);
    for (int64_t j = 0; j < net_.width; ++j) {  // raise every bias by the margin …
        float size = std::fabs(net_.bias(j));
        for (int64_t i = 0; i < spec_.n; ++i) size += std::fabs(net_.weight(j, i));
        bias[(size_t)j] = net_.bias(j);
        net_.bias(j) += size * (float)(net_.n + 1) * 0x1p-22f;
    }
    const bool inactive = inactive_on(spec_.train_inputs, spec_.train_labels, spec_.m) &&
                          inactive_on(spec_.test_inputs, spec_.test_labels, spec_.n_test);
    for (int64_t j = 0; j < net_.width; ++j)  // … and put it back
        net_.bias(j) = bias[(size_t)j];
    return inactive;
}

bool Run::inactive_on(const uint64_t* inputs, const uint8_t* labels, int64_t count) {
    probe_.want_active(net_, true);
    bool inactive = true;
    for (int64_t done = 0; inactive && done < count;) {
        const int64_t piece = probe(inputs, labels, done, count);
        const float* const sums = probe_.batch.sums;
        inactive = !any_active(net_, probe_.batch, piece) &&
                   std::all_of(sums, sums + piece, [](float f) { return f == 0; });
        done += piece;
    }
    probe_.want_active(net_, false);
    return inactive;
}

}  // namespace petridish
