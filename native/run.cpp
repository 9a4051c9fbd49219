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

// Rows that are updated and run forward together, a multiple of every tile. With few inputs they
// stay in the nearest cache beside the minibatch and its tables. With many those two fill it by
// turns, so that the turns are made long, and the rows wait in the next cache.
int64_t group_of(int stride) {
    const int64_t bytes = (stride <= 80 ? 10 : 96) * 1024;
    return std::clamp<int64_t>(bytes / (4 * stride) / 24 * 24, 24, 240);
}

// Four sums at once, in a fixed order.
double sum_of(const float values[LANES]) {
    double part[4] = {};
    for (int e = 0; e < LANES; e += 4)
        for (int k = 0; k < 4; ++k) part[k] += values[e + k];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

}  // namespace

Block32::Block32(int n1, int64_t blocks)
    : words_((n1 + 63) / 64), bits_(32 * blocks * words_), y_((size_t)(32 * blocks), 1.0f) {
    for (int64_t place = 0; place < 32 * blocks; ++place) rows_.push_back(example(place));
}

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
      examples_((int)spec.n + 1, blocks_of(spec.batch_size)),
      probe_examples_((int)spec.n + 1, PROBE_BLOCKS),
      train_loss_(std::numeric_limits<double>::quiet_NaN()) {
    plain_ = spec.activation == RELU && spec.output == WEIGHTS;
    net_.n1 = (int)spec.n + 1;
    const int padded = plain_ ? 8 : 16;
    net_.stride = (net_.n1 + padded - 1) / padded * padded;
    net_.width = spec.width;
    net_.group = group_of(net_.stride);
    rows_ = Buffer<float>(net_.width * net_.stride);
    v_ = Buffer<float>(net_.width);
    row_ = net_.width;
    net_.rows = rows_.get();
    net_.v = v_.get();

    const int64_t blocks = blocks_of(spec.batch_size);
    x_ = Buffer<float>(blocks * net_.n1 * LANES);
    sums_ = Buffer<float>(blocks * LANES);
    if (plain_) active_ = Buffer<uint32_t>(blocks * net_.width);
    batch_ = {(int)blocks, x_.get(), sums_.get(), active_.get()};
    probe_x_ = Buffer<float>(PROBE_BLOCKS * net_.n1 * LANES);
    probe_sums_ = Buffer<float>(PROBE_BLOCKS * LANES);
    probe_ = {(int)PROBE_BLOCKS, probe_x_.get(), probe_sums_.get(), nullptr};

    if (spec.m > 0) rejected_below_ = (uint32_t)(((uint64_t)1 << 32) % (uint64_t)spec.m);
    if (!plain_) {
        neurons_ = {spec.activation, spec.output, spec.degree, (float)spec.scale,
                    spec.n_coefficients, {}};
        for (int i = 0; i < MAX_COEFFICIENTS; ++i)
            neurons_.coefficients[i] = (float)spec.coefficients[i];
        x_rows_ = Buffer<float>(blocks * LANES * net_.stride);
        h_ = Buffer<float>(blocks * net_.width * LANES);
        slope_ = Buffer<float>(blocks * net_.width * LANES);
        probe_h_ = Buffer<float>(PROBE_BLOCKS * net_.width * LANES);
        coefficient_ = Buffer<float>(blocks * LANES);
        d_ = Buffer<float>(blocks * LANES);
        gradient_ = Buffer<float>(net_.stride);
        which_.resize((size_t)(blocks * LANES));
        return;
    }
    const bool floats = !has_integer_coefficients(spec.loss);
    const int64_t table_bytes = kernels.table_bytes(net_.n1, floats);
    tables_ = Buffer<char>(blocks * table_bytes);
    scratch_ = Buffer<float>(net_.n1 + 16);
    n_groups_.resize((size_t)blocks);
    shift_.resize((size_t)(8 * blocks));
    update_.tables = {(int)blocks, n_groups_.data(), shift_.data(),
                      table_bytes, floats,           tables_.get()};
    update_.active = active_.get();
    update_.scratch = scratch_.get();
}

void Run::write_weights(const float* weight, const float* bias, const float* output,
                        const float* output_bias) {
    settle();
    net_.scale = 1;
    net_.beta = *output_bias;
    for (int64_t j = 0; j < net_.width; ++j) {
        float* row = net_.rows + j * net_.stride;
        memcpy(row, weight + j * spec_.n, sizeof(float) * (size_t)spec_.n);
        row[spec_.n] = bias[j];
        net_.v[j] = output[j];
    }
}

void Run::read_weights(float* weight, float* bias, float* output, float* output_bias) {
    settle();
    for (int64_t j = 0; j < net_.width; ++j) {
        const float* row = net_.rows + j * net_.stride;
        for (int64_t i = 0; i < spec_.n; ++i) weight[j * spec_.n + i] = net_.scale * row[i];
        bias[j] = net_.scale * row[spec_.n];
        output[j] = net_.v[j];
    }
    *output_bias = net_.beta;
}

petridish_state Run::state() const {
    return {step_, test_wrong_, train_loss_, (int64_t)curves_.size(), fitted_at_};
}

// ---- the course of a run ---------------------------------------------------------------------

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
    const int64_t cost = pass_batch_ ? pass_batch_->blocks : update_.tables.blocks;  // of one row
    const int64_t groups = std::max<int64_t>(1, work / (cost * net_.group));
    const int64_t left = net_.width - row_;
    const int64_t rows = groups < left / net_.group + 1 ? std::min(groups * net_.group, left) : left;
    if (plain_) {
        kernels_.pass(net_, pass_update_, pass_batch_, row_, row_ + rows);
        row_ += rows;
        work -= rows * cost;
    } else {
        const bool training = pass_batch_ == &batch_;
        kernels_.forward(net_, neurons_, *pass_batch_, (training ? h_ : probe_h_).get(),
                         training ? slope_.get() : nullptr);
        row_ = net_.width;
        work -= net_.width * cost * 2;
    }
    if (row_ < net_.width) return;
    if (pass_update_) pending_ = false;
    if (pass_batch_ == &batch_) end_step();
    if (pass_batch_ == &probe_) count_outputs(counting_, piece_);
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
    probe_.blocks = (int)blocks_of(count);
    for (int64_t block = 0; block < probe_.blocks; ++block)
        kernels_.expand(probe_examples_.examples(block), net_.n1,
                        probe_.x + block * net_.n1 * LANES);
    return count;
}

// The same, and run them forward at once.
int64_t Run::probe(const uint64_t* inputs, const uint8_t* labels, int64_t first, int64_t until) {
    const int64_t count = expand_probe(inputs, labels, first, until);
    if (plain_)
        kernels_.pass(net_, nullptr, &probe_, 0, net_.width);
    else
        kernels_.forward(net_, neurons_, probe_, probe_h_.get(), nullptr);
    return count;
}

void Run::begin_piece(int64_t until) {
    piece_ = expand_probe(counting_.inputs, counting_.labels, counting_.done, until);
    begin_pass(nullptr, &probe_);
}

void Run::count_outputs(Counting& counting, int64_t count) const {
    for (int64_t e = 0; e < count; ++e) {
        const float f = net_.scale * probe_.sums[e] + net_.beta;
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
    for (int block = 0; block < batch_.blocks; ++block)
        kernels_.expand(examples_.examples(block), net_.n1,
                        batch_.x + (int64_t)block * net_.n1 * LANES);
    begin_pass(pending_ ? &update_ : nullptr, &batch_);
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
    for (int block = 0; block < batch_.blocks; ++block) {
        float f[LANES], value[LANES], coefficient[LANES];
        for (int e = 0; e < LANES; ++e)
            f[e] = net_.scale * batch_.sums[LANES * block + e] + net_.beta;
        const int64_t real = std::min<int64_t>(LANES, batch - LANES * block);
        losses(spec_.loss, f, examples_.y() + LANES * block, value, coefficient);
        for (int64_t e = real; e < LANES; ++e) value[e] = 0, coefficient[e] = 0;  // no examples
        loss += sum_of(value);
        pull += sum_of(coefficient);
        const bool some =
            std::any_of(coefficient, coefficient + LANES, [](float c) { return c != 0; });
        any |= some;
        if (!plain_) {
            std::copy_n(coefficient, LANES, coefficient_.get() + LANES * block);
            continue;
        }
        n_groups_[(size_t)block] = 0;
        if (some)
            n_groups_[(size_t)block] = kernels_.build(
                examples_.examples(block), net_.n1, coefficient, update_.tables.floats,
                &shift_[(size_t)(8 * block)], tables_.get() + update_.tables.block_bytes * block);
    }
    loss_sum_ += loss / (double)batch;
    ++n_losses_;
    if (!(fabs(loss) <= std::numeric_limits<float>::max())) {  // PyTorch's sum is a float32
        status_ = DIVERGED;
        return;
    }

    const double share = 1.0 / (double)batch;
    const auto kept = [&](int k) { return 1 - now.rate[k] * now.decay[k]; };
    const float scale_before = net_.scale;
    net_.beta = (float)(kept(3) * net_.beta + now.rate[3] * share * pull);
    if (!plain_) return descend_neurons(now);
    net_.scale = (float)(net_.scale * kept(0));
    const double rows_factor = share / net_.scale;
    update_.rows_factor = (float)(now.rate[0] * rows_factor);
    update_.v_decay = (float)kept(2);
    update_.v_factor = (float)(now.rate[2] * share * scale_before);
    update_.own_bias = now.rate[0] != now.rate[1] || now.decay[0] != now.decay[1];
    update_.bias_decay = (float)(kept(1) / kept(0));
    update_.bias_factor = (float)(now.rate[1] * rows_factor);
    pending_ = any;
    if (any) return;

    // Nothing but decay.
    for (int64_t j = 0; j < net_.width; ++j) net_.v[j] *= update_.v_decay;
    if (update_.own_bias)
        for (int64_t j = 0; j < net_.width; ++j)
            net_.rows[j * net_.stride + spec_.n] *= update_.bias_decay;
}

// The minibatch is still at hand, so that the change is made at once.
void Run::descend_neurons(const petridish_piece& now) {
    const auto kept = [&](int k) { return (float)(1 - now.rate[k] * now.decay[k]); };
    const auto factor = [&](int k) { return (float)(now.rate[k] / (double)spec_.batch_size); };
    int64_t count = 0;
    for (int e = 0; e < LANES * batch_.blocks; ++e)
        if (coefficient_[e] != 0) which_[(size_t)count++] = e;
    if (count > 0)
        for (int block = 0; block < batch_.blocks; ++block)
            kernels_.expand_rows(examples_.examples(block), net_.n1, net_.stride,
                                 x_rows_.get() + (int64_t)block * LANES * net_.stride);
    neurons_update_ = {batch_.blocks, x_rows_.get(), h_.get(),  slope_.get(), coefficient_.get(),
                       count,         which_.data(), kept(0),   kept(1),      kept(2),
                       factor(0),     factor(1),     factor(2), d_.get(),     gradient_.get()};
    kernels_.descend(net_, neurons_, neurons_update_);
}

// Fold a scale that has become small into the rows; no update may be waiting.
void Run::fold() {
    if (pending_ || net_.scale >= SMALLEST_SCALE) return;
    for (int64_t j = 0; j < net_.width; ++j) {
        float* row = net_.rows + j * net_.stride;
        float largest = 0;
        for (int i = 0; i < net_.n1; ++i) {
            row[i] *= SMALLEST_SCALE;  // a power of two rounds nothing, but may flush to 0
            largest = std::max(largest, fabsf(row[i]));
        }
        // Far below what can still matter: gone as a whole, lest its smaller entries go first and
        // turn the sign of what is left.
        if (largest < SMALLEST_ROW)
            for (int i = 0; i < net_.n1; ++i) row[i] = 0;
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
