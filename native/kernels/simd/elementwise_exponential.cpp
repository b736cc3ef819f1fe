// Exponentials and logarithms.
#include "complex_math.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

// The larger one plus what the smaller adds; the difference of two equal infinities would be NaN.
template <class X>
inline X logaddexp(X x, X y) {
  X larger = maximum(x, y), smaller = x < y ? x : y;
  return x == y ? x + constant<X>(M_LN2) : larger + log1p(exp(smaller - larger));
}
template <class X>
inline X logaddexp2(X x, X y) {
  X larger = maximum(x, y), smaller = x < y ? x : y;
  return x == y ? x + 1 : larger + log1p(exp2(smaller - larger)) * constant<X>(M_LOG2E);
}

constexpr FamilyEntry entries[] = {
    UNARY(exp, FLOATING | COMPLEX, int_to_float, same, exp_precise(x)),
    UNARY(exp2, FLOATING | COMPLEX, int_to_float, same, exp2(x)),
    UNARY(expm1, FLOATING | COMPLEX, int_to_float, same, expm1(x)),
    UNARY(log, FLOATING | COMPLEX, int_to_float, same, log(x)),
    UNARY(log2, FLOATING | COMPLEX, int_to_float, same, log2(x)),
    UNARY(log10, FLOATING | COMPLEX, int_to_float, same, log10(x)),
    UNARY(log1p, FLOATING | COMPLEX, int_to_float, same, log1p(x)),
    UNARY(logit, FLOATING, int_to_float, same, log(x / (1 - x))),
    BINARY(logaddexp, FLOATING, none, same, logaddexp(x, y)),
    BINARY(logaddexp2, FLOATING, none, same, logaddexp2(x, y)),
    BINARY(xlogy, FLOATING, int_to_float, same,
           is_nan(y) ? y
           : x == 0  ? decltype(x){}
                     : x * log(y)),
    BINARY(xlog1py, FLOATING, int_to_float, same,
           is_nan(y) ? y
           : x == 0  ? decltype(x){}
                     : x * log1p(y)),
};
}  // namespace

const Family exponential = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
