// Carries out a variety of runs on every instruction set that this processor has, and compares every
// bit of their weights, losses and counts of errors. Exit code 0 if all agree; the digest at the end
// is the same for every processor and compiler. Stands alone, so that it runs under sanitizers and
// emulators.
#include <stdio.h>
#include <string.h>

#include <random>
#include <vector>

#include "../../native/petridish.h"

namespace {

struct Case {
    const char* name;
    int64_t n, width, batch, m, steps;
    int32_t loss;
    double rate, decay;
    bool own_bias;
    uint64_t noise;
    int32_t activation = RELU, output = WEIGHTS;
};

const Case CASES[] = {
    {"hinge", 50, 100, 32, 300, 300, HINGE, 0.1, 0.01, false, 0},
    {"fitted", 20, 60, 32, 40, 600, HINGE, 0.1, 0.01, false, 0},
    {"one neuron", 3, 1, 1, 5, 60, HINGE, 0.1, 0.01, false, 0},
    {"odd sizes", 33, 9, 31, 77, 60, HINGE, 0.1, 0.01, false, 0},
    {"aligned", 64, 8, 64, 100, 40, HINGE, 0.1, 0.01, false, 0},
    {"larger", 319, 27, 100, 200, 20, HINGE, 0.1, 0.01, false, 0},
    {"largest batch", 31, 7, 1024, 500, 8, HINGE, 0.1, 0.01, false, 0},
    {"square", 50, 33, 32, 300, 60, SQUARE, 0.01, 0.01, false, 0},
    {"logistic", 70, 25, 33, 300, 60, LOGISTIC, 0.1, 0.01, false, 0},
    {"correlation", 32, 24, 32, 300, 60, CORRELATION, 0.05, 0.1, false, 0},
    {"own rates", 40, 11, 32, 300, 60, HINGE, 0.1, 0.1, true, 0},
    {"online", 50, 30, 32, 0, 100, HINGE, 0.1, 0.01, false, 0},
    {"online, noise", 130, 10, 16, 0, 100, SQUARE, 0.01, 0.01, false, (uint64_t)1 << 51},
    {"vanishing", 10, 5, 32, 50, 3000, HINGE, 0.5, 1.0, false, 0},
    {"diverging", 20, 10, 32, 50, 200, SQUARE, 30.0, 0.0, false, 0},
    {"bundles", 65, 150, 130, 300, 30, HINGE, 0.1, 0.01, false, 0},
    {"power", 30, 20, 33, 300, 40, HINGE, 0.01, 0.1, false, 0, POWER, WEIGHTS},
    {"zigzags", 70, 18, 32, 300, 40, SQUARE, 0.01, 0.1, true, 0, ZIGZAG, ONES},
    {"triangles", 20, 3, 64, 0, 40, LOGISTIC, 0.1, 0.1, false, 0, TRIANGLE, WEIGHTS},
    {"polynomial", 12, 17, 20, 100, 40, CORRELATION, 0.01, 0.1, false, 0, POLYNOMIAL, WEIGHTS},
    {"sines", 40, 33, 32, 300, 40, HINGE, 0.02, 0.1, false, 0, SINE, WEIGHTS},
    {"product", 20, 5, 40, 300, 40, HINGE, 0.05, 0.1, false, 0, RELU, PRODUCT},
};

std::vector<unsigned char> outcome(const Case& c, int32_t isa) {
    const int64_t words = (c.n + 63) / 64, n_test = 300;
    std::mt19937_64 random(7);
    const auto bits = [&](int64_t count) {
        std::vector<uint64_t> drawn((size_t)(count * words));
        for (int64_t e = 0; e < count; ++e)
            for (int64_t w = 0; w < words; ++w)
                drawn[(size_t)(e * words + w)] =
                    random() & (w + 1 < words || c.n % 64 == 0 ? ~(uint64_t)0
                                                               : ((uint64_t)1 << c.n % 64) - 1);
        return drawn;
    };
    const auto labels = [&](const std::vector<uint64_t>& inputs) {
        std::vector<uint8_t> drawn;
        for (size_t e = 0; e < inputs.size(); e += (size_t)words)
            drawn.push_back((uint8_t)__builtin_parityll(inputs[e] & 7));
        return drawn;
    };
    const std::vector<uint64_t> train = bits(c.m > 0 ? c.m : 1), test = bits(n_test);
    const std::vector<uint8_t> train_labels = labels(train), test_labels = labels(test);
    std::vector<uint64_t> mask((size_t)words, 0);
    mask[0] = 7;
    const int64_t support[] = {0, 1, 2};
    const petridish_stage stages[] = {{0, 256, 10}, {256, 300, 5}};
    petridish_piece piece = {};
    for (int k = 0; k < 4; ++k) {
        piece.rate[k] = c.rate * (c.own_bias ? 1 + 0.3 * k : 1);
        piece.decay[k] = c.decay * (c.own_bias ? 1 - 0.2 * k : 1);
    }

    petridish_spec spec = {};
    spec.n = c.n, spec.width = c.width, spec.batch_size = c.batch, spec.steps = c.steps;
    spec.m = c.m, spec.loss = c.loss, spec.certify = 1;
    spec.activation = c.activation, spec.output = c.output, spec.degree = 4, spec.scale = 0.5;
    spec.n_coefficients = 3;
    for (int i = 0; i < 3; ++i) spec.coefficients[i] = 0.5 - 0.3 * i;
    spec.seed = 11, spec.batches_key = 1, spec.train_key = 2, spec.noise_key = 3;
    spec.train_inputs = train.data(), spec.train_labels = train_labels.data();
    spec.parity_mask = mask.data(), spec.support = support, spec.n_relevant = 3;
    spec.noise_below = c.noise;
    spec.test_inputs = test.data(), spec.test_labels = test_labels.data(), spec.n_test = n_test;
    spec.evaluate_every = 25, spec.curves = 1, spec.n_stages = 2, spec.stages = stages;
    spec.n_pieces = 1, spec.pieces = &piece;

    std::vector<float> weight((size_t)(c.width * c.n)), bias((size_t)c.width),
        output((size_t)c.width), beta(1);
    for (auto* part : {&weight, &bias, &output, &beta})
        for (float& value : *part) value = ((float)(random() >> 40) * 0x1p-24f - 0.5f) * 0.6f;
    if (c.output != WEIGHTS) output.assign(output.size(), 1), beta[0] = 0;
    petridish_run* run =
        petridish_begin(&spec, isa, weight.data(), bias.data(), output.data(), beta.data());
    int32_t status = RUNNING;
    while (status == RUNNING) status = petridish_advance(run, 5000, 0);
    petridish_state state;
    petridish_read_state(run, &state);
    petridish_read_weights(run, weight.data(), bias.data(), output.data(), beta.data());
    const size_t looks = (size_t)state.n_looks;
    std::vector<int64_t> step(looks), train_wrong(looks), test_wrong(looks);
    std::vector<double> loss(looks);
    petridish_read_curves(run, step.data(), loss.data(), train_wrong.data(), test_wrong.data());
    petridish_end(run);

    std::vector<unsigned char> all;
    const auto keep = [&](const auto& values) {
        const auto* first = (const unsigned char*)values.data();
        all.insert(all.end(), first, first + values.size() * sizeof(values[0]));
    };
    keep(weight), keep(bias), keep(output), keep(beta);
    keep(step), keep(train_wrong), keep(test_wrong), keep(loss);
    keep(std::vector<int64_t>{status, state.step, state.test_wrong});
    return all;
}

// Append the bytes of numbers. What is no number is kept as such: its other bits are the processor's.
template <class Numbers>
void keep_bytes(std::vector<unsigned char>& all, Numbers values) {
    for (auto& value : values)
        if (value != value) value = -12345;
    const auto* first = (const unsigned char*)values.data();
    all.insert(all.end(), first, first + values.size() * sizeof(values[0]));
}

// ---- attention -------------------------------------------------------------------------------

struct AttentionCase {
    const char* name;
    int32_t states, length, d, heads, layers;
    int64_t batch, steps;
    int32_t optimiser, one_row;
    double rate, decay, clip, size;  // of the first weights
};

const AttentionCase ATTENTION_CASES[] = {
    {"chains", 3, 40, 16, 1, 2, 64, 6, ADAMW, 0, 1e-2, 0.1, 0, 0.6},
    {"heads", 3, 20, 16, 3, 2, 20, 4, ADAM, 0, 1e-2, 0.1, 1, 0.6},
    {"states", 8, 21, 16, 1, 2, 16, 4, ADAMW, 0, 1e-2, 0, 0, 0.6},
    {"unigrams", 2, 33, 5, 2, 3, 7, 4, PLAIN_SGD, 1, 0.3, 0.1, 0, 0.6},
    {"one layer", 5, 9, 3, 1, 1, 5, 4, ADAMW, 0, 1e-2, 0, 0, 0.6},
    {"dense", 16, 12, 24, 2, 3, 9, 3, ADAM, 0, 1e-2, 0, 0, 0.3},
    {"one token", 4, 1, 1, 4, 2, 1, 3, ADAMW, 0, 1e-2, 0, 0, 0.6},
    {"sharp", 3, 16, 8, 1, 2, 16, 4, ADAMW, 0, 1e-2, 0, 0, 20.0},
    {"diverged", 3, 10, 8, 1, 2, 16, 9, PLAIN_SGD, 0, 1e30, 0, 0, 0.6},
    {"minimal", 3, 40, 0, 0, 0, 64, 6, PLAIN_SGD, 0, 0.3, 0.1, 0, 0.2},
    {"minimal, odd", 5, 21, 0, 0, 0, 23, 4, ADAMW, 1, 1e-2, 0.1, 1, 0.6},
    {"minimal, wide", 16, 9, 0, 0, 0, 5, 4, ADAM, 0, 1e-2, 0, 0, 8.0},
};

std::vector<unsigned char> outcome(const AttentionCase& c, int32_t isa) {
    const int64_t matrices = (int64_t)c.heads * c.d * (c.length + 3 * c.d);
    const int64_t size = c.layers ? 2 * (int64_t)c.d * c.states + c.layers * matrices
                                  : c.length + c.states * c.states;
    const size_t n_parameters = (size_t)(2 + 4 * c.layers);
    const std::vector<float> rate(n_parameters, (float)c.rate), decay(n_parameters, (float)c.decay),
        keep(n_parameters, 1);
    const petridish_factors piece = {0, rate.data(), decay.data(), keep.data()};
    petridish_attention_spec spec = {};
    spec.states = c.states, spec.length = c.length, spec.d = c.d;
    spec.heads = c.heads, spec.layers = c.layers, spec.batch_size = c.batch;
    spec.descent = {c.optimiser, 0.5, 0.9, 0.999, 1e-8, c.clip, 1, &piece};
    spec.draws = 1, spec.one_row = c.one_row, spec.seed = 11, spec.key = 2, spec.skip = 3;

    std::mt19937_64 random(7);
    std::vector<float> weights((size_t)size), gradient((size_t)size);
    for (float& value : weights)
        value = ((float)(random() >> 40) * 0x1p-24f - 0.5f) * (float)c.size;
    petridish_attention* run = petridish_attention_begin(&spec, isa, weights.data());
    std::vector<double> losses((size_t)c.steps);
    int64_t done = 0;
    for (int calls = 0; done < c.steps && calls < 10000; ++calls)
        done += petridish_attention_advance(run, 1, c.steps - done, nullptr, nullptr,
                                            losses.data() + done);
    petridish_attention_weights(run, weights.data());
    const int64_t tokens = c.batch * c.length;
    std::vector<uint8_t> x((size_t)tokens), y((size_t)tokens);
    std::vector<float> outputs((size_t)(tokens * c.states));
    petridish_attention_draw(run, 0, c.batch, x.data(), y.data());
    y[0] = NO_LABEL;
    petridish_attention_outputs(run, x.data(), c.batch, 0, outputs.data());
    std::vector<float> last((size_t)(c.batch * c.states)), shares, others;
    petridish_attention_outputs(run, x.data(), c.batch, c.length - 1, last.data());
    if (c.layers) {  // of the first layer, and of the last one if the first attends to the token itself
        shares.resize((size_t)(2 * c.batch * c.heads * c.length * c.length));
        others.resize(shares.size() / 2);
        for (size_t i = 0; i < others.size(); ++i)
            others[i] = i / (size_t)c.length % (size_t)c.length == i % (size_t)c.length;
        petridish_attention_pattern(run, x.data(), c.batch, 0, 0, nullptr, shares.data());
        petridish_attention_pattern(run, x.data(), c.batch, c.layers - 1, 0, others.data(),
                                    shares.data() + others.size());
    }
    losses.push_back(petridish_attention_gradient(run, x.data(), y.data(), gradient.data()));
    petridish_attention_end(run);

    losses.resize((size_t)(done + 1));
    std::vector<unsigned char> all;
    keep_bytes(all, losses), keep_bytes(all, weights);
    keep_bytes(all, outputs), keep_bytes(all, gradient);
    keep_bytes(all, last), keep_bytes(all, shares);
    return all;
}

// ---- a block with [CLS] ------------------------------------------------------------------------

struct ClsCase {
    const char* name;
    int32_t vocabulary, length, d, heads, outputs;
    int64_t batch, steps;
    int32_t optimiser, drop_below;
    double rate, clip, size;  // of the first weights
};

const ClsCase CLS_CASES[] = {
    {"block", 2, 30, 64, 16, 2, 40, 4, ADAMW, 6554, 1e-2, 1, 0.3},
    {"all kept", 2, 30, 64, 16, 2, 40, 4, ADAMW, 0, 1e-2, 1, 0.3},
    {"odd sizes", 5, 7, 6, 2, 3, 9, 4, ADAM, 20000, 1e-2, 0, 0.6},
    {"many heads", 3, 5, 40, 20, 4, 5, 3, PLAIN_SGD, 6554, 0.1, 1, 0.3},
    {"one token", 2, 1, 1, 1, 2, 1, 3, ADAMW, 6554, 1e-2, 0, 0.6},
    {"sharp", 2, 20, 32, 2, 2, 33, 3, ADAMW, 6554, 1e-2, 1, 8.0},
    {"sharp, all kept", 2, 20, 32, 2, 2, 33, 3, ADAMW, 0, 1e-2, 1, 8.0},
    {"off the scale", 2, 9, 16, 4, 2, 8, 9, PLAIN_SGD, 0, 1e38, 0, 0.6},
};

std::vector<unsigned char> outcome(const ClsCase& c, int32_t isa) {
    const int64_t d = c.d, t = c.length + 1;
    const int64_t size = (t + c.vocabulary + 1) * d + 6 * d + 12 * d * d + 9 * d + c.outputs * d;
    const std::vector<float> rate(21, (float)c.rate), decay(21, 0.1f), keep(21, 1);
    const petridish_factors piece = {0, rate.data(), decay.data(), keep.data()};
    petridish_cls_spec spec = {};
    spec.vocabulary = c.vocabulary, spec.length = c.length, spec.d = c.d, spec.heads = c.heads;
    spec.outputs = c.outputs, spec.drop_below = c.drop_below, spec.batch_size = c.batch;
    spec.factor = 65536.0 / (65536 - c.drop_below);
    spec.descent = {c.optimiser, 0.5, 0.9, 0.999, 1e-8, c.clip, 1, &piece};
    spec.seed = 11;
    for (uint64_t call = 0; call < 4; ++call) spec.keys[call] = call + 3;

    std::mt19937_64 random(7);
    std::vector<float> weights((size_t)size), gradient((size_t)size);
    for (float& value : weights)
        value = ((float)(random() >> 40) * 0x1p-24f - 0.5f) * (float)c.size;
    std::vector<uint8_t> x((size_t)(c.batch * c.length)), y((size_t)c.batch);
    for (uint8_t& token : x) token = (uint8_t)((random() >> 32) % (uint64_t)c.vocabulary);
    for (uint8_t& label : y) label = (uint8_t)((random() >> 32) % (uint64_t)c.outputs);
    if (c.batch > 1) y[1] = NO_LABEL;
    const petridish_batches batches = {x.data(), y.data(), nullptr, 0};
    petridish_cls* run = petridish_cls_begin(&spec, isa, weights.data());
    std::vector<double> losses((size_t)c.steps);
    int64_t done = 0;
    for (int calls = 0; done < c.steps && calls < 1000; ++calls)
        done += petridish_cls_advance(run, 1, c.steps - done, &batches, losses.data() + done);
    petridish_cls_weights(run, weights.data());
    std::vector<float> outputs((size_t)(c.batch * c.outputs));
    petridish_cls_outputs(run, x.data(), c.batch, outputs.data());
    losses.push_back(petridish_cls_gradient(run, 2, &batches, gradient.data()));
    petridish_cls_end(run);
    losses.resize((size_t)(done + 1));
    std::vector<unsigned char> all;
    keep_bytes(all, losses), keep_bytes(all, weights);
    keep_bytes(all, outputs), keep_bytes(all, gradient);
    return all;
}

// Whether all instruction sets agree on all cases.
template <class Cases>
void compare(const Cases& cases, int& compared, int& different, uint64_t& digest) {
    for (const auto& c : cases) {
        std::vector<unsigned char> first;
        printf("%-14s", c.name);
        for (int32_t isa = 0; petridish_isa_name(isa); ++isa) {
            if (!petridish_isa_runs(isa)) continue;
            const auto found = outcome(c, isa);
            if (first.empty()) first = found;
            const bool equal = found == first;
            different += !equal;
            ++compared;
            printf("  %s%s", petridish_isa_name(isa), equal ? "" : " DIFFERS");
        }
        printf("\n");
        for (unsigned char byte : first) digest = (digest ^ byte) * 0x100000001b3u;
    }
}

}  // namespace

int main() {
    int compared = 0, different = 0;
    uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a over all that was found
    compare(CASES, compared, different, digest);
    compare(ATTENTION_CASES, compared, different, digest);
    compare(CLS_CASES, compared, different, digest);
    printf("%d runs, %d differ, digest %016llx\n", compared, different, (unsigned long long)digest);
    return different > 0;
}
