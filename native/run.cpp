#include "run.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <limits>

#include "loss.h"

namespace petridish {

namespace {

constexpr int64_t DRAWN_AHEAD = 32;      // steps whose minibatches are drawn in one go
constexpr float SMALLEST_SCALE = 0x1p-20f, SMALLEST_ROW = 0x1p-100f;

int64_t blocks_of(int64_t examples) { return (examples + LANES - 1) / LANES; }

// Four sums at once, in a fixed order.
double sum_of(const float values[LANES]) {
    double part[4] = {};
    for (int e = 0; e < LANES; e += 4)
        for (int k = 0; k < 4; ++k) part[k] += values[e + k];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

}  // namespace

Block32::Block32(int n, int64_t blocks)
    : words_((n + 63) / 64), bits_(32 * blocks * words_), y_((size_t)(32 * blocks), 1.0f) {
    for (int64_t place = 0; place < 32 * blocks; ++place) rows_.push_back(example(place));
}

Room::Room(const Net& net, const Neurons& neurons, int64_t blocks, bool training)
    : blocks_(blocks),
      slices_(blocks * LANES * ((net.n + 63) / 64) * 8),
      places_(blocks * LANES * net.groups),
      z_(blocks * LANES * PANEL),
      partial_(blocks * LANES * PANEL),
      sums_(blocks * LANES) {
    batch = {(int)blocks,    slices_.get(), places_.get(), z_.get(), partial_.get(),
             sums_.get(),    nullptr,       nullptr,       nullptr};
    if (is_plain(neurons)) {
        want_active(net, training);
        return;
    }
    h_ = Buffer<float>(net.panels * blocks * LANES * PANEL);
    batch.h = h_.get();
    if (!training) return;
    slope_ = Buffer<float>(net.panels * blocks * LANES * PANEL);
    batch.slope = slope_.get();
}

void Room::want_active(const Net& net, bool wanted) {
    const int64_t bundles = (net.width + BUNDLE - 1) / BUNDLE;
    active_ = Buffer<uint64_t>(wanted ? bundles * LANES * blocks_ : 0);
    batch.active = wanted ? active_.get() : nullptr;
}

namespace {

Net net_of(const petridish_spec& spec) {
    Net net{};
    net.n = (int)spec.n;
    net.groups = (net.n + GROUP - 1) / GROUP;
    net.width = spec.width;
    net.panels = (spec.width + PANEL - 1) / PANEL;
    net.stride = (int64_t)PANEL * net.coordinates();
    net.scale = 1;
    return net;
}

Neurons neurons_of(const petridish_spec& spec) {
    Neurons neurons{spec.activation, spec.output, spec.degree, (float)spec.scale,
                    spec.n_coefficients, {}};
    for (int i = 0; i < MAX_COEFFICIENTS; ++i)
        neurons.coefficients[i] = (float)spec.coefficients[i];
    return neurons;
}

}  // namespace

Run::Run(const petridish_spec& spec, const Kernels& kernels)
    : spec_(spec),
      kernels_(kernels),
      n_words_((spec.n + 63) / 64),
      stages_(spec.stages, spec.stages + spec.n_stages),
      fit_stages_(spec.fit_stages, spec.fit_stages + spec.n_fit_stages),
      pieces_(spec.pieces, spec.pieces + spec.n_pieces),
      batches_{spec.seed, spec.batches_key},
      train_{spec.seed, spec.train_key},
      noise_{spec.seed, spec.noise_key},
      net_(net_of(spec)),
      neurons_(neurons_of(spec)),
      plain_(is_plain(neurons_)),
      rows_(net_.panels * net_.stride),
      v_(net_.panels * PANEL),
      batch_(net_, neurons_, blocks_of(spec.batch_size), true),
      examples_(net_.n, blocks_of(spec.batch_size)),
      coefficient_(blocks_of(spec.batch_size) * LANES),
      which_((size_t)(blocks_of(spec.batch_size) * LANES)),
      patterns_(blocks_of(spec.batch_size) * (net_.coordinates() + 16)),
      scratch_(kernels.scratch_bytes(net_)),
      probe_(net_, neurons_, PROBE_BLOCKS, false),
      probe_examples_(net_.n, PROBE_BLOCKS),
      row_(spec.width),
      train_loss_(std::numeric_limits<double>::quiet_NaN()) {
    net_.rows = rows_.get();
    net_.v = v_.get();
    update_.which = which_.data();
    update_.coefficient = coefficient_.get();
    update_.signs = plain_ && has_integer_coefficients(spec.loss);
    update_.patterns = patterns_.get();
    update_.scratch = scratch_.get();
    if (spec.m > 0) rejected_below_ = (uint32_t)(((uint64_t)1 << 32) % (uint64_t)spec.m);
}

void Run::write_weights(const float* weight, const float* bias, const float* output,
                        const float* output_bias) {
    settle();
    net_.scale = 1;
    net_.beta = *output_bias;
    for (int64_t j = 0; j < net_.width; ++j) {
        for (int64_t i = 0; i < spec_.n; ++i) net_.weight(j, i) = weight[j * spec_.n + i];
        net_.bias(j) = bias[j];
        net_.v[j] = output[j];
    }
}

void Run::read_weights(float* weight, float* bias, float* output, float* output_bias) {
    settle();
    for (int64_t j = 0; j < net_.width; ++j) {
        for (int64_t i = 0; i < spec_.n; ++i)
            weight[j * spec_.n + i] = net_.scale * net_.weight(j, i);
        bias[j] = net_.scale * net_.bias(j);
        output[j] = net_.v[j];
    }
    *output_bias = net_.beta;
}

petridish_state Run::state() const {
    return {step_, test_wrong_, train_loss_, (int64_t)curves_.size(), fitted_at_};
}

// ---- the course of a run ---------------------------------------------------------------------

//   STEPS ─▶ FIT ─▶ SCREEN ─▶ TEST ─▶ TRAIN ─▶ DONE ─▶ the end, or STEPS again
//
//   STEPS   draw and lay out a minibatch, one pass, the loss; every so often a look:
//   FIT     is the training sample fitted? a growing part of it; not if it was, or all is counted
//   SCREEN  is the run solved? a growing part of the held-out sample; not without a target
//   TEST    all errors of the held-out sample: if solved, at the end, or for curves
//   TRAIN   all errors of the training sample: for curves
//   DONE    keep what was found; solved, out of steps, hopeless, or on with the steps
//
// Every phase but DONE goes by passes over the network:
//
//   begin_step or begin_piece ─▶ continue_pass … ─▶ end_step (descend) or count_outputs
//
// and a step's update waits for the next step's pass (`pending_`).
//
// Passes over the network are cut into parts, so that a run of any size comes back to its caller
// soon: `row_` is where the pass under way has come to, the width if there is none.

int32_t Run::advance(int64_t work, bool pause_at_looks) {
    while (status_ == RUNNING && work > 0) {
        if (row_ < net_.width) {
            continue_pass(work);
        } else if (phase_ == Phase::STEPS) {
            const bool look = step_ % spec_.evaluate_every == 0 || step_ == spec_.steps;
            if (pending_ && (look || net_.scale < SMALLEST_SCALE))
                begin_pass(&update_, nullptr);
            else if (look && !looked_)
                begin_look();
            else
                begin_step();
        } else if (phase_ == Phase::FIT) {
            if (counting_.done < fit_stages_[stage_].stop)
                begin_piece(fit_stages_[stage_].stop);
            else
                fit_next();
        } else if (phase_ == Phase::SCREEN) {
            if (counting_.done < stages_[stage_].stop)
                begin_piece(stages_[stage_].stop);
            else
                screen_next();
        } else if (phase_ == Phase::TEST) {
            if (counting_.done < counting_.total) {
                begin_piece(counting_.total);
                continue;
            }
            test_wrong_ = counting_.wrong;
            const bool train = spec_.curves && spec_.m > 0;
            if (train) counting_ = {spec_.train_inputs, spec_.train_labels, 0, spec_.m, 0};
            phase_ = train ? Phase::TRAIN : Phase::DONE;
        } else if (phase_ == Phase::TRAIN) {
            if (counting_.done < counting_.total) {
                begin_piece(counting_.total);
                continue;
            }
            train_wrong_ = counting_.wrong;
            if (fitted_at_ < 0 && !fit_stages_.empty() && train_wrong_ <= fit_stages_.back().limit)
                fitted_at_ = step_;
            phase_ = Phase::DONE;
        } else {
            end_look();
            if (pause_at_looks) break;
        }
    }
    return status_;
}

void Run::begin_pass(const Update* update, Batch* batch) {
    pass_update_ = update;
    pass_batch_ = batch;
    row_ = 0;
}

void Run::continue_pass(int64_t& work) {
    const int64_t cost = pass_batch_ ? pass_batch_->blocks : batch_.batch.blocks;  // of one row
    const int64_t bundles = std::max<int64_t>(1, work / (cost * BUNDLE));
    const int64_t left = net_.width - row_;
    const int64_t rows = bundles < left / BUNDLE + 1 ? std::min(bundles * BUNDLE, left) : left;
    kernels_.pass(net_, neurons_, pass_update_, batch_.batch, pass_batch_, row_, row_ + rows);
    row_ += rows;
    work -= rows * cost;
    if (row_ < net_.width) return;
    if (pass_update_) pending_ = false;
    if (pass_batch_ == &batch_.batch) end_step();
    if (pass_batch_ == &probe_.batch) count_outputs(counting_, piece_);
}

// A look first asks whether the training sample is fitted, once it has not been before, then whether
// the run is solved: each on a growing part of its sample. All errors are counted if the run is
// solved, if it ends, or if curves are kept.
void Run::begin_look() {
    fold();
    if (n_losses_ > 0) train_loss_ = loss_sum_ / (double)n_losses_;
    loss_sum_ = 0;
    n_losses_ = 0;
    solved_ = false;
    train_wrong_ = -1;
    stage_ = 0;
    counting_ = {spec_.train_inputs, spec_.train_labels, 0, spec_.m, 0};
    phase_ = Phase::FIT;
    if (fitted_at_ >= 0 || fit_stages_.empty() || spec_.curves) begin_test();
}

void Run::fit_next() {
    if (counting_.wrong <= fit_stages_[stage_].limit && ++stage_ < fit_stages_.size()) return;
    if (stage_ == fit_stages_.size()) fitted_at_ = step_;
    begin_test();
}

void Run::begin_test() {
    counting_ = {spec_.test_inputs, spec_.test_labels, 0, spec_.n_test, 0};
    stage_ = 0;
    phase_ = stages_.empty() ? Phase::TEST : Phase::SCREEN;
    if (stages_.empty() && !spec_.curves && step_ < spec_.steps) phase_ = Phase::DONE;
}

void Run::screen_next() {
    if (counting_.wrong <= stages_[stage_].limit && ++stage_ < stages_.size()) return;
    solved_ = stage_ == stages_.size();
    // What was counted so far is a part of the whole.
    const bool whole = solved_ || spec_.curves || step_ == spec_.steps;
    phase_ = whole ? Phase::TEST : Phase::DONE;
}

void Run::end_look() {
    phase_ = Phase::STEPS;
    looked_ = true;
    if (spec_.curves) curves_.push_back({step_, train_wrong_, test_wrong_, train_loss_});
    if (solved_)
        status_ = SOLVED;
    else if (step_ == spec_.steps)
        status_ = OUT_OF_STEPS;
    else if (hopeless())
        status_ = HOPELESS;
}

// Lay out up to 256 examples, from `first` on but before `until`; gives their number.
int64_t Run::expand_probe(const uint64_t* inputs, const uint8_t* labels, int64_t first,
                          int64_t until) {
    const int64_t count = std::min(until - first, LANES * PROBE_BLOCKS);
    for (int64_t e = 0; e < count; ++e)
        probe_examples_.put(e, inputs + (first + e) * n_words_, n_words_, labels[first + e]);
    probe_.batch.blocks = (int)blocks_of(count);
    for (int block = 0; block < probe_.batch.blocks; ++block)
        kernels_.lay_out(net_, probe_examples_.examples(block), probe_.batch, block);
    return count;
}

// The same, and run them forward at once.
int64_t Run::probe(const uint64_t* inputs, const uint8_t* labels, int64_t first, int64_t until) {
    const int64_t count = expand_probe(inputs, labels, first, until);
    kernels_.pass(net_, neurons_, nullptr, batch_.batch, &probe_.batch, 0, net_.width);
    return count;
}

void Run::begin_piece(int64_t until) {
    piece_ = expand_probe(counting_.inputs, counting_.labels, counting_.done, until);
    begin_pass(nullptr, &probe_.batch);
}

void Run::count_outputs(Counting& counting, int64_t count) const {
    for (int64_t e = 0; e < count; ++e) {
        const float f = net_.scale * probe_.batch.sums[e] + net_.beta;
        counting.wrong += !(f * probe_examples_.y()[e] > 0);  // an f of 0, or none, has no sign
    }
    counting.done += count;
}

int64_t Run::count_wrong(const uint64_t* inputs, const uint8_t* labels, int64_t count) {
    settle();
    Counting counting{inputs, labels, 0, count, 0};
    while (counting.done < count)
        count_outputs(counting, probe(inputs, labels, counting.done, count));
    return counting.wrong;
}

// ---- one step --------------------------------------------------------------------------------

void Run::begin_step() {
    fold();
    draw_batch();
    for (int block = 0; block < batch_.batch.blocks; ++block)
        kernels_.lay_out(net_, examples_.examples(block), batch_.batch, block);
    begin_pass(pending_ ? &update_ : nullptr, &batch_.batch);
}

void Run::end_step() {
    descend();
    ++step_;
    looked_ = false;
}

void Run::draw_batch() {
    const int64_t batch = spec_.batch_size;
    if (step_ >= drawn_until_) {
        drawn_from_ = step_;
        drawn_until_ = std::min(step_ + DRAWN_AHEAD, spec_.steps);
        const int64_t first = step_ * batch, count = (drawn_until_ - step_) * batch;
        if (spec_.m > 0) {
            const int64_t from = first / 2, until = (first + count + 1) / 2;
            drawn_.resize((size_t)(until - from));
            batches_.words((uint64_t)from, until - from, drawn_.data());
        } else {
            drawn_.resize((size_t)(count * n_words_));
            train_.words((uint64_t)(first * n_words_), count * n_words_, drawn_.data());
            if (spec_.noise_below > 0) {
                drawn_noise_.resize((size_t)count);
                noise_.words((uint64_t)first, count, drawn_noise_.data());
            }
        }
    }
    const int64_t first = step_ * batch, drawn_first = drawn_from_ * batch;
    if (spec_.m > 0)
        draw_offline((uint64_t)first);
    else
        draw_online(first - drawn_first);
}

// Examples of the sample, with replacement, by the half-words from `first` on.
void Run::draw_offline(uint64_t first) {
    const uint64_t bound = (uint64_t)spec_.m;
    const uint64_t* const words = drawn_.data();
    const uint64_t drawn_word = (uint64_t)(drawn_from_ * spec_.batch_size / 2);
    const int64_t n_words = n_words_;
    const uint64_t* const inputs = spec_.train_inputs;
    const uint8_t* const labels = spec_.train_labels;
    for (int64_t e = 0; e < spec_.batch_size; ++e) {
        const uint64_t place = first + (uint64_t)e;
        const uint32_t half = (uint32_t)(words[place / 2 - drawn_word] >> 32 * (place % 2));
        const int64_t i = batches_.below(bound, rejected_below_, place, half);
        examples_.put(e, inputs + i * n_words, n_words, labels[i]);
    }
}

// Examples of the endless stream, `start` counting from the first that is drawn.
void Run::draw_online(int64_t start) {
    const uint64_t last_word = spec_.n % 64 ? ((uint64_t)1 << spec_.n % 64) - 1 : ~(uint64_t)0;
    for (int64_t e = 0; e < spec_.batch_size; ++e) {
        uint64_t* words = &drawn_[(size_t)((start + e) * n_words_)];
        words[n_words_ - 1] &= last_word;
        uint64_t label = 0;
        if (spec_.parity_mask) {
            for (int64_t w = 0; w < n_words_; ++w)
                label ^= (uint64_t)__builtin_parityll(words[w] & spec_.parity_mask[w]);
        } else {
            int64_t number = 0;
            for (int64_t k = 0; k < spec_.n_relevant; ++k) {
                const int64_t i = spec_.support[k];
                number |= (int64_t)(words[i / 64] >> i % 64 & 1) << k;
            }
            label = spec_.truth_table[number];
        }
        if (spec_.noise_below > 0)
            label ^= drawn_noise_[(size_t)(start + e)] >> 11 < spec_.noise_below;
        examples_.put(e, words, n_words_, (uint8_t)label);
    }
}

const petridish_piece& Run::piece() const {
    const petridish_piece* current = &pieces_.front();
    for (const petridish_piece& piece : pieces_)
        if (piece.start <= step_) current = &piece;
    return *current;
}

// The loss, and what follows from it: β at once, the rows and v with the next pass.
void Run::descend() {
    const int64_t batch = spec_.batch_size;
    const petridish_piece& now = piece();
    double loss = 0, pull = 0;
    bool any = false;
    update_.count = 0;
    for (int block = 0; block < batch_.batch.blocks; ++block) {
        float f[LANES], value[LANES];
        float* const coefficient = coefficient_.get() + LANES * block;
        for (int e = 0; e < LANES; ++e)
            f[e] = net_.scale * batch_.batch.sums[LANES * block + e] + net_.beta;
        const int64_t real = std::min<int64_t>(LANES, batch - LANES * block);
        losses(spec_.loss, f, examples_.y() + LANES * block, value, coefficient);
        for (int64_t e = real; e < LANES; ++e) value[e] = 0, coefficient[e] = 0;  // no examples
        loss += sum_of(value);
        pull += sum_of(coefficient);
        // Examples without a loss are left out, where that saves tables.
        const int64_t others = std::count(coefficient, coefficient + LANES, 0.0f);
        for (int e = 0; e < LANES; ++e) {
            which_[(size_t)update_.count] = LANES * block + e;
            update_.count += coefficient[e] != 0 || (others > 0 && others < 2 * GROUP);
        }
        any |= others < LANES;
    }
    loss_sum_ += loss / (double)batch;
    ++n_losses_;
    if (!(fabs(loss) <= std::numeric_limits<float>::max())) {  // PyTorch's sum is a float32
        status_ = DIVERGED;
        return;
    }

    // Decay of ReLUs' rows is a scale of them all; others' outputs do not scale with their rows.
    const double share = 1.0 / (double)batch;
    const auto kept = [&](int k) { return 1 - now.rate[k] * now.decay[k]; };
    const auto factor = [&](int k) { return now.rate[k] * share; };
    const float scale_before = net_.scale;
    if (plain_) net_.scale = (float)(net_.scale * kept(0));
    net_.beta = (float)(kept(3) * net_.beta + factor(3) * pull);
    const bool own_bias = !plain_ || now.rate[0] != now.rate[1] || now.decay[0] != now.decay[1];
    update_.row_keep = plain_ ? 1 : (float)kept(0);
    update_.bias_keep = !own_bias ? 1 : (float)(plain_ ? kept(1) / kept(0) : kept(1));
    update_.v_keep = (float)kept(2);
    update_.row_factor = (float)(now.rate[0] * (share / net_.scale));
    update_.bias_factor = (float)(now.rate[1] * (share / net_.scale));
    update_.v_factor = (float)(factor(2) * scale_before);
    pending_ = any;
    if (pending_)
        kernels_.find_patterns(net_, batch_.batch, update_);
    else
        decay_only();
}

void Run::decay_only() {
    for (int64_t j = 0; j < net_.width; ++j) {
        if (neurons_.output == WEIGHTS) net_.v[j] *= update_.v_keep;
        if (update_.row_keep != 1)
            for (int64_t i = 0; i < spec_.n; ++i) net_.weight(j, i) *= update_.row_keep;
        if (update_.bias_keep != 1) net_.bias(j) *= update_.bias_keep;
    }
}

// Fold a scale that has become small into the rows; no update may be waiting.
void Run::fold() {
    if (pending_ || net_.scale >= SMALLEST_SCALE) return;
    for (int64_t j = 0; j < net_.width; ++j) {
        float largest = 0;
        for (int i = 0; i < net_.coordinates(); ++i) {
            net_.weight(j, i) *= SMALLEST_SCALE;  // a power of two rounds nothing, but may flush to 0
            largest = std::max(largest, fabsf(net_.weight(j, i)));
        }
        // Far below what can still matter: gone as a whole, lest its smaller entries go first and
        // turn the sign of what is left.
        if (largest < SMALLEST_ROW)
            for (int i = 0; i < net_.coordinates(); ++i) net_.weight(j, i) = 0;
    }
    net_.scale /= SMALLEST_SCALE;
}

// Finish the pass under way, and apply the update that waits.
void Run::settle() {
    int64_t work = std::numeric_limits<int64_t>::max();
    if (row_ < net_.width) continue_pass(work);
    if (!pending_) return;
    begin_pass(&update_, nullptr);
    continue_pass(work);
}

}  // namespace petridish
