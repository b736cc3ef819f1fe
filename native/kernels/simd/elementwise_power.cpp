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

// Exponents of up to 3: beyond, the error of the logarithm would show. Powers that are numbers are exact:
// less than a third of a unit is lost before the result is rounded.
#if defined(__FMA__)
inline f64v pow_of_parts(f64v x, f64v y) {
  auto [high, low] = log_parts(x);
  auto [p, p_low] = product_parts(high, y);
  auto [r, r_low, n] = reduce_exp(p);
  auto [one_and_r, lost] = sum_parts(splat<f64v>(1.0), r);
  f64v tail = polynomial(r, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                         1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800);
  f64v rest = fma(r * r, tail, lost);  // e^r = 1 + r + r^2 / 2 + ...
  rest = fma(one_and_r + rest, fma(low, y, p_low) + r_low, rest);
  f64v result = times_power(one_and_r + rest, n.bits);
  i64v hard = ~(is_ordinary(x) & (magnitude(y) <= 3.0) & (magnitude(p) <= 700.0));
  if (any(hard)) [[unlikely]]
    result = each_where(
        hard, result, [](double x, double y) { return ::pow(x, y); }, x, y);
  return result;
}
#else
inline f64v pow_of_parts(f64v x, f64v y) { return pow(x, y); }
#endif

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
