#include "chains.h"

#include <algorithm>
#include <vector>

namespace petridish {

namespace {

constexpr int MOST_STATES = 16, TOGETHER = 8;  // chains walked side by side: each waits for its last

double uniform(uint64_t word) { return (double)(word >> 11) * 0x1p-53; }

// NumPy's order: eight sums side by side from eight numbers on, otherwise one after another.
double sum_of(const double* values, int count) {
    double sum = 0;
    int next = 0;
    if (count >= 8) {
        double part[8];
        for (int k = 0; k < 8; ++k) part[k] = values[k];
        for (next = 8; next + 8 <= count; next += 8)
            for (int k = 0; k < 8; ++k) part[k] += values[next + k];
        sum = ((part[0] + part[1]) + (part[2] + part[3])) +
              ((part[4] + part[5]) + (part[6] + part[7]));
    }
    for (; next < count; ++next) sum += values[next];
    return sum;
}

// One chain's law: where each token leads, and the first. Bounds that are not there are infinite.
struct Law {
    double rows[MOST_STATES][MOST_STATES], first[MOST_STATES];

    void read(const uint64_t* words, int k, bool one_row) {
        for (int a = 0; a < k; ++a, words += k - 1) {
            double points[MOST_STATES];
            for (int b = 0; b < k - 1; ++b) {  // sorted as they come
                const double point = uniform(words[b]);
                int place = b;
                for (; place > 0 && points[place - 1] > point; --place)
                    points[place] = points[place - 1];
                points[place] = point;
            }
            double before = 0;
            for (int b = 0; b < k - 1; ++b) rows[a][b] = points[b] - before, before = points[b];
            rows[a][k - 1] = 1 - before;
        }
        for (int a = 1; one_row && a < k; ++a) std::copy_n(rows[0], k, rows[a]);
        find_first(k);
        for (int a = 0; a < k; ++a) add_up(rows[a], k);
        add_up(first, k);
    }

    // The stationary law, by leaving out one state after the other [Grassmann, Taksar & Heyman 1985].
    void find_first(int k) {
        double left[MOST_STATES][MOST_STATES], parts[MOST_STATES];
        for (int a = 0; a < k; ++a) std::copy_n(rows[a], k, left[a]);
        for (int state = k - 1; state > 0; --state) {
            const double out = sum_of(left[state], state);
            for (int a = 0; a < state; ++a) left[a][state] /= out;
            for (int a = 0; a < state; ++a)
                for (int b = 0; b < state; ++b) left[a][b] += left[a][state] * left[state][b];
        }
        first[0] = 1;
        for (int state = 1; state < k; ++state) {
            for (int a = 0; a < state; ++a) parts[a] = first[a] * left[a][state];
            first[state] = sum_of(parts, state);
        }
        const double all = sum_of(first, k);
        for (int a = 0; a < k; ++a) first[a] /= all;
    }

    static void add_up(double* values, int k) {
        double sum = 0;
        for (int b = 0; b < k; ++b) values[b] = sum += values[b];
    }
};

int step(const double* bounds, int k, double u) {
    int token = 0;
    for (int b = 0; b < k - 1; ++b) token += u >= bounds[b];
    return token;
}

}  // namespace

void Chains::draw(int64_t start, int64_t count, uint8_t* tokens, uint8_t* labels) const {
    const int64_t each = words();
    const int64_t before = each - length - 1;
    std::vector<uint64_t> drawn((size_t)(TOGETHER * each));
    Law laws[TOGETHER];
    for (int64_t first = 0; first < count; first += TOGETHER) {
        const int here = (int)std::min<int64_t>(TOGETHER, count - first);
        stream.words((uint64_t)((start + first) * each), here * each, drawn.data());
        int token[TOGETHER] = {};
        for (int e = 0; e < here; ++e) {
            const uint64_t* own = drawn.data() + e * each;
            laws[e].read(own, states, one_row);
            token[e] = step(laws[e].first, states, uniform(own[before]));
        }
        uint8_t* const x = tokens + first * length;
        uint8_t* const y = labels + first * length;
        for (int64_t i = 0; i < length; ++i)
            for (int e = 0; e < here; ++e) {
                x[e * length + i] = (uint8_t)token[e];
                const uint64_t word = drawn[(size_t)(e * each + before + i + 1)];
                token[e] = step(laws[e].rows[token[e]], states, uniform(word));
                y[e * length + i] = (uint8_t)token[e];
            }
    }
}

}  // namespace petridish
