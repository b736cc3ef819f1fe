// Error functions, gamma functions, Bessel functions. What libm lacks is computed here in double, number by
// number.
#include "libm.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

// The derivative of lgamma. Reflected to x > 0, raised to x >= 10 by digamma(x) = digamma(x + 1) - 1/x, and
// there ln x - 1/(2x) - sum of B(2k) / (2k x^2k).
double digamma_number(double x) {
  if (x == 0) return __builtin_copysign(INFINITY, -x);
  double result = 0;
  if (x < 0) {
    double whole = __builtin_trunc(x);
    if (x == whole) return NAN;
    result = -M_PI / ::tan(M_PI * (x - whole));
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  double z = 1 / (x * x);
  double series =
      z *
      (1.0 / 12 -
       z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return result + ::log(x) - 0.5 / x - (x < 1e17 ? series : 0);
}

// A first guess from the logarithm of 1 - x^2 (good to 0.2 %), then Halley's steps, on the tail where x is
// near 1.
double erfinv_number(double x) {
  double size = __builtin_fabs(x);
  if (size == 0 || x != x) return x;
  if (size >= 1) return size == 1 ? __builtin_copysign(INFINITY, x) : NAN;
  double tail = 1 - size, log_tail = ::log(tail * (1 + size));
  double middle = 2 / (M_PI * 0.147) + 0.5 * log_tail;
  double y = ::sqrt(::sqrt(middle * middle - log_tail / 0.147) - middle);
  for (int step = 0; step < 3; step++) {
    double error = size < 0.5 ? ::erf(y) - size : tail - ::erfc(y);
    double newton = error / (M_2_SQRTPI * ::exp(-y * y));
    y -= newton / (1 + y * newton);
  }
  return __builtin_copysign(y, x);
}

// The power series, whose terms are all positive, and far out the asymptotic one.
double i0_number(double x) {
  x = __builtin_fabs(x);
  double sum = 1, term = 1;
  if (x <= 20) {
    double quarter = x * x / 4;
    for (int k = 1; term > sum * 1e-18; k++) sum += term *= quarter / (double(k) * k);
    return sum;
  }
  for (int k = 1; k < 30 && term > sum * 1e-18; k++)
    sum += term *= (2.0 * k - 1) * (2.0 * k - 1) / (8 * k * x);
  double root = ::exp(x / 2);  // e^x alone would overflow too early
  return x == INFINITY ? x : root * (sum / ::sqrt(2 * M_PI * x)) * root;
}

constexpr Elementwise entries[] = {
    UNARY(erf, FLOATING, int_to_float, same, erf(x)),
    UNARY(erfc, FLOATING, int_to_float, same, erfc(x)),
    UNARY(erfinv, FLOATING, int_to_float, same, each_double(erfinv_number, x)),
    UNARY(lgamma, FLOATING, int_to_float, same, lgamma(x)),
    UNARY(digamma, FLOATING, int_to_float, same, each_double(digamma_number, x)),
    UNARY(i0, FLOATING, int_to_float, same, each_double(i0_number, x)),
};
}  // namespace

const Family special = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
