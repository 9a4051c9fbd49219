// The losses, as functions of the output f and the label y = ±1: the value, and the coefficient
// −∂loss/∂f. In plain arithmetic without a library's exp and log, so that the bits are the same on
// every machine.
#pragma once
#include <math.h>
#include <stdint.h>

#include "kernels.h"
#include "petridish.h"

namespace petridish {

// e^−a for a ≥ 0, to 1e-15: a = k ln 2 + r, and Taylor's series of e^−r.
inline double exp_minus(double a) {
    if (!(a < 700)) return a == a ? 0 : a;
    const int k = (int)(a * 1.4426950408889634 + 0.5);
    const double r = (a - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    double sum = 1;
    for (int i = 13; i > 0; --i) sum = 1 - sum * r / i;
    return ldexp(sum, -k);
}

// log(1 + u) for 0 ≤ u ≤ 1, to 1e-15: 2 artanh(u / (2 + u)).
inline double log_one_plus(double u) {
    const double s = u / (2 + u), square = s * s;
    double sum = 0;
    for (int i = 29; i > 0; i -= 2) sum = sum * square + 1.0 / i;
    return 2 * s * sum;
}

// Values and coefficients of a block of examples; without branches that depend on the data where
// the compiler can make vectors of it.
inline void losses(int32_t loss, const float* f, const float* y, float* value, float* coefficient) {
    if (loss == HINGE) {
        for (int e = 0; e < LANES; ++e) {
            const float missing = 1 - y[e] * f[e];
            value[e] = missing < 0 ? 0 : missing;  // no number stays none
            coefficient[e] = missing > 0 ? y[e] : 0;
        }
    } else if (loss == CORRELATION) {
        for (int e = 0; e < LANES; ++e) value[e] = -y[e] * f[e], coefficient[e] = y[e];
    } else if (loss == SQUARE) {
        for (int e = 0; e < LANES; ++e) {
            const float apart = f[e] - y[e];
            value[e] = apart * apart, coefficient[e] = -2 * apart;
        }
    } else {  // LOGISTIC: log(1 + e^−m) with m = y f
        for (int e = 0; e < LANES; ++e) {
            const double m = (double)y[e] * f[e], small = exp_minus(fabs(m));
            const double wrong = (m > 0 ? small : 1) / (1 + small);  // the logistic function of −m
            value[e] = (float)((m < 0 ? -m : 0) + log_one_plus(small));
            coefficient[e] = (float)(y[e] * wrong);
        }
    }
}

// Whether the coefficients are ±1 or 0, so that sums of inputs are sums of small integers.
inline bool has_integer_coefficients(int32_t loss) { return loss == HINGE || loss == CORRELATION; }

}  // namespace petridish
