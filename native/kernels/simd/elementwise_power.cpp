// Powers.
#include "complex_math.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

// Integers: by squaring, wrapping around. A negative exponent leaves 1/x rounded to zero: 0, except for 1 and
// -1.
template <class T>
inline T integer_pow(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y < 0) return x == 1 ? T(1) : x == T(-1) ? (y & 1 ? T(-1) : T(1)) : T(0);
  }
  T result = 1;
  for (; y; y = T(y >> 1)) {
    if (y & 1) result = multiply(result, x);
    x = multiply(x, x);
  }
  return result;
}

template <class X>
inline X power(X x, X y) {
  if constexpr (is_integer_v<X>) return integer_pow(x, y);
  else if constexpr (std::is_same_v<X, f64v>) return pow_of_parts(x, y);
  else return pow(x, y);
}

// One exponent for all: the common ones need no logarithm. The branches are the same for every vector.
template <class X>
inline X power_scalar(X x, X y) {
  if constexpr (std::is_same_v<X, bool>) {
    return x | !y;
  } else if constexpr (is_integer_v<X>) {
    return integer_pow(x, y);
  } else {
    double exponent;
    if constexpr (is_complex_number_v<X>) {
      exponent = y.im[0] == 0 ? double(y.re[0]) : NAN;
    } else {
      exponent = y[0];
    }
    X one = constant<X>(1);
    if (exponent == 2) return x * x;
    if (exponent == 3) return x * x * x;
    if (exponent == 0.5) return sqrt(x);
    if (exponent == -1) return one / x;
    if (exponent == -0.5) return one / sqrt(x);
    if (exponent == -2) return one / (x * x);
    if (exponent == 1) return x;
    if (exponent == 0) return one;
    return power(x, y);
  }
}

// One base for all. Powers of 1 are 1.
template <class X>
inline X power_of_scalar(X a, X y) {
  if constexpr (is_complex_number_v<X>) {
    if (a.re[0] == 1 && a.im[0] == 0) return a;
  }
  return power(a, y);
}

constexpr FamilyEntry entries[] = {
    BINARY(pow, NUMBERS, none, same, power(x, y)),
    UNARY_WITH_ROUNDED(1, pow_scalar, ALL, none, same, power_scalar(x, a)),
    UNARY_WITH_ROUNDED(1, scalar_pow, NUMBERS, none, same, power_of_scalar(a, x)),
};
}  // namespace

const Family powers = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
