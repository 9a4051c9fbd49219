// One training run: sampling, steps, looks at the held-out sample, and how it ends.
#pragma once
#include <memory>
#include <vector>

#include "kernels.h"
#include "petridish.h"
#include "philox.h"

namespace petridish {

constexpr int64_t PROBE_BLOCKS = 8;  // 256 examples of a held-out sample are looked at together

// Zeroed memory, aligned to a cache line.
template <class T>
class Buffer {
   public:
    explicit Buffer(int64_t count = 0) : storage_((size_t)count * sizeof(T) / 64 + 2) {}
    T* get() {
        return reinterpret_cast<T*>(storage_.data());
    }
    const T* get() const { return const_cast<Buffer*>(this)->get(); }
    T& operator[](int64_t i) { return get()[i]; }

   private:
    struct alignas(64) Line {
        char bytes[64] = {};
    };
    std::vector<Line> storage_;
};

// Blocks of 32 packed examples, and their labels.
class Block32 {
   public:
    Block32(int n, int64_t blocks);
    void put(int64_t place, const uint64_t* example, int64_t n_words, uint8_t label) {
        uint64_t* room = this->example(place);
        for (int64_t w = 0; w < n_words; ++w) room[w] = example[w];
        y_[(size_t)place] = (float)(1 - 2 * (int)label);
    }
    uint64_t* example(int64_t place) { return &bits_[place * words_]; }
    const uint64_t* const* examples(int64_t block) const { return &rows_[(size_t)(32 * block)]; }
    const float* y() const { return y_.data(); }  // ±1

   private:
    int64_t words_;
    Buffer<uint64_t> bits_;
    std::vector<const uint64_t*> rows_;
    std::vector<float> y_;
};

// A batch and the memory that it lies in.
struct Room {
    Room(const Net& net, const Neurons& neurons, int64_t blocks, bool training);
    Batch batch;
    void want_active(const Net& net, bool wanted);  // plain networks

   private:
    int64_t blocks_;
    Buffer<uint8_t> slices_, places_;
    Buffer<float> z_, partial_, sums_, h_, slope_;
    Buffer<uint64_t> active_;
};

class Run {
   public:
    Run(const petridish_spec& spec, const Kernels& kernels);

    void write_weights(const float* weight, const float* bias, const float* output,
                       const float* output_bias);
    void read_weights(float* weight, float* bias, float* output, float* output_bias);

    int32_t advance(int64_t work, bool pause_at_looks);
    int64_t count_wrong(const uint64_t* inputs, const uint8_t* labels, int64_t count);

    petridish_state state() const;
    struct Look {
        int64_t step, train_wrong, test_wrong;
        double train_loss;
    };
    const std::vector<Look>& curves() const { return curves_; }

   private:
    // A count of errors under way, piece by piece.
    struct Counting {
        const uint64_t* inputs;
        const uint8_t* labels;
        int64_t done, total, wrong;
    };
    enum class Phase { STEPS, FIT, SCREEN, TEST, TRAIN, DONE };

    void begin_pass(const Update* update, Batch* batch);
    void continue_pass(int64_t& work);
    void begin_look();
    void begin_test();
    void end_look();
    void screen_next();
    void fit_next();
    int64_t expand_probe(const uint64_t* inputs, const uint8_t* labels, int64_t first,
                         int64_t until);
    int64_t probe(const uint64_t* inputs, const uint8_t* labels, int64_t first, int64_t until);
    void begin_piece(int64_t until);
    void count_outputs(Counting& counting, int64_t count) const;
    void begin_step();
    void end_step();
    void draw_batch();
    void draw_offline(uint64_t first);
    void draw_online(int64_t start);
    void descend();
    void decay_only();
    void fold();
    void settle();
    const petridish_piece& piece() const;

    // failure.cpp
    bool hopeless();
    bool stays_finite() const;
    bool constant_may_fit() const;
    bool biases_decay_alike() const;
    bool inactive_on_all_inputs() const;
    bool inactive_on_samples();
    bool inactive_on(const uint64_t* inputs, const uint8_t* labels, int64_t count);

    petridish_spec spec_;
    const Kernels& kernels_;
    int64_t n_words_;
    std::vector<petridish_stage> stages_, fit_stages_;
    std::vector<petridish_piece> pieces_;
    Stream batches_, train_, noise_;
    uint32_t rejected_below_ = 0;  // 2^32 mod m

    Net net_;
    Neurons neurons_;
    bool plain_;  // ReLUs with trained outputs
    Buffer<float> rows_, v_;

    Room batch_;
    Block32 examples_;
    std::vector<uint64_t> drawn_, drawn_noise_;
    int64_t drawn_from_ = 0, drawn_until_ = 0;  // steps whose minibatches are in drawn_

    bool pending_ = false;  // the step's update waits for the next pass
    Update update_{};
    Buffer<float> coefficient_;
    std::vector<int> which_;
    Buffer<uint64_t> patterns_;
    Buffer<char> scratch_;

    Room probe_;  // pieces of a held-out sample
    Block32 probe_examples_;

    int64_t next_proof_ = 0;  // the step from which a proof of failure is tried again
    int64_t step_ = 0;
    int32_t status_ = RUNNING;
    Phase phase_ = Phase::STEPS;
    bool looked_ = false;  // the look at this step is done
    Counting counting_{};
    int64_t piece_ = 0;  // examples of the piece under way
    int64_t row_ = 0;    // how far the pass under way has come
    const Update* pass_update_ = nullptr;
    Batch* pass_batch_ = nullptr;
    size_t stage_ = 0;
    bool solved_ = false;
    int64_t test_wrong_ = -1, train_wrong_ = -1, fitted_at_ = -1;
    double loss_sum_ = 0, train_loss_;
    int64_t n_losses_ = 0;
    std::vector<Look> curves_;
};

}  // namespace petridish
