// Markov chains in context, drawn as petridish/tasks/markov.py draws them, to the last bit.
#pragma once
#include <stdint.h>

#include "philox.h"

namespace petridish {

struct Chains {
    Stream stream;
    int states, length;
    bool one_row;  // for all states: tokens are independent

    int64_t words() const { return (int64_t)states * (states - 1) + length + 1; }
    // The examples start … start + count − 1: tokens and labels, each (count, length).
    void draw(int64_t start, int64_t count, uint8_t* tokens, uint8_t* labels) const;
};

}  // namespace petridish
