// Error functions, gamma functions, Bessel functions. What libm lacks is computed here in double, by vectors
// where the formula is the same for most numbers, else number by number.
#include "../special.h"
#include "lgamma.h"
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

// erfinv(x) / x as a polynomial in w = -log(1 - x^2), or in its root (Giles 2010), good to 4e-7.
inline f64v erfinv_over_x(f64v a) {
  f64v w = -log((1.0 - a) * (a + 1.0));
  f64v centre = w - 2.5, far = sqrt(w) - 3.0;
  f64v near_one = polynomial(far, 2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
                             -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257);
  f64v middle = polynomial(centre, 1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
                           -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08);
  return w < 5.0 ? middle : near_one;
}
// One of Halley's steps from there: the error becomes that of erf. The tail has numbers of its own.
inline f64v erfinv(f64v x) {
  f64v a = magnitude(x), y = a * erfinv_over_x(a);
  f64v newton = (erf(y) - a) / (exp(-y * y) * M_2_SQRTPI);
  y = with_sign(y - newton / (y * newton + 1.0), x);
  i64v hard = ~(a <= 0.75);
  if (any(hard)) y = each_where(hard, y, erfinv_number, x);
  return y;
}

// What follows computes floats in double, by polynomials good to about 1e-9 (interpolated at Chebyshev's
// points, in mpmath): less than a hundredth of a float's last place.

// erfinv(a), from a and w = -log(1 - a^2), which knows more of an a near 1 than a does; w up to 104.
inline f64v erfinv_of(f64v a, f64v w) {
  f64v y = a * polynomial(w - 2.5, 1.5014093517481764, 0.24664027674858424, -0.004177325080457763,
                          -0.00125270795736, 0.000218264125216, -4.99600011014e-06, -3.42626620973e-06,
                          4.78689708456e-07, 1.65036440412e-08, -1.08617612716e-08, 4.34062680385e-10,
                          1.23465771145e-10);
  i64v tail = w > 5.0;
  if (any(tail)) {
    f64v s = sqrt(w);
    f64v near_one = polynomial(s - 3.125, 2.9582352597399284, 1.004220473446303, 0.0056544201879861426,
                               -0.00290941341629, 0.000999655449958, -0.000232905988614, 1.86583199751e-07,
                               3.4774671308e-05, -1.68543670337e-05, 2.83776283015e-06);
    f64v nearer =
        polynomial(s - 7.0, 6.869019650469573, 1.0085956160932459, -0.000512643329369742, 6.29595651371e-06,
                   6.03989265232e-06, -1.62608846728e-06, 3.21351217549e-07, -5.24835814615e-08,
                   7.12474272294e-09, -1.40573123935e-09, 3.42718722181e-10, -3.64485095746e-11);
    y = tail ? (s > 4.1 ? nearer : near_one) : y;
  }
  return y;
}
inline f32v erfinv(f32v x) {
  f32v a = magnitude(x);
  f32v y = in_double([](f64v a) { return erfinv_of(a, -log((1.0 - a) * (a + 1.0))); }, a);
  y = with_sign(a < 1.0f ? y : a == 1.0f ? splat<f32v>(INFINITY) : splat<f32v>(NAN), x);
  return a > 0.0f ? y : x;  // zeros and NaN
}

// t exp(P(t) - x^2) with t = 2 / (2 + x), for x >= 0; beyond 11 a float is 0.
inline f64v erfc_of(f64v x) {
  f64v a = at_most(11.0, magnitude(x)), t = 2.0 / (a + 2.0);
  f64v p = polynomial(t - 0.5, -0.6717940840877963, 1.3452864464280783, 0.18937322636303727, -0.375164458785,
                      -0.15796189794, 0.282368010389, 0.112520546074, -0.299367614507, -0.0368901111789,
                      0.331840685915, -0.0919272352306, -0.26408393947, 0.1929287293);
  f64v y = t * exp_ordinary(p - a * a);
  y = x < 0.0 ? 2.0 - y : y;
  return x == x ? y : x;
}
inline f32v erfc_float(f32v x) {
  return in_double([](f64v x) { return erfc_of(x); }, x);
}
template <class X>
inline X complement(X x) {
  if constexpr (std::is_same_v<X, f32v>) return erfc_float(x);
  else return erfc(x);
}

// The distribution function of the normal distribution, and its inverse.
inline f32v normal(f32v x) {
  return in_double([](f64v x) { return 0.5 * erfc_of(x * -M_SQRT1_2); }, x);
}
inline f64v normal(f64v x) {
  return each([](double x) { return rl::ndtr(x); }, x);
}
inline f32v normal_inverse(f32v p) {
  f32v z = in_double(
      [](f64v p) {
        f64v x = p + p - 1.0;
        return with_sign(M_SQRT2 * erfinv_of(magnitude(x), -log(4.0 * p * (1.0 - p))), x);
      },
      p);
  z = p == 0.0f ? splat<f32v>(-INFINITY) : p == 1.0f ? splat<f32v>(INFINITY) : z;
  return (p >= 0.0f) & (p <= 1.0f) ? z : splat<f32v>(NAN);
}
inline f64v normal_inverse(f64v p) {
  return each([](double p) { return rl::ndtri(p); }, p);
}

// x > 0, by the formulas of digamma_number: two terms of the recurrence share a division.
inline f64v digamma(f64v x) {
  f64v lost{};
  for (int i = 0; i < 10; i += 2) {
    f64v low = x + double(i);
    lost += (low + low + 1.0) / (low * (low + 1.0));
  }
  i64v small = x < 10.0;
  f64v y = small ? x + 10.0 : x, z = 1.0 / (y * y);
  f64v series =
      z * polynomial(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12);
  f64v result = log(y) - 0.5 / y - series - (small ? lost : f64v{});
  i64v hard = ~((x > 0x1p-1000) & (x < 0x1p500));
  if (any(hard)) result = each_where(hard, result, digamma_number, x);
  return result;
}
inline f32v digamma(f32v x) {
  return in_double([](f64v x) { return digamma(x); }, x);
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
  double root = ::exp(x / 2);                         // e^x alone would overflow too early
  return root * (sum / ::sqrt(2 * M_PI * x)) * root;  // NaN at infinity, as NumPy's and torch's
}

constexpr unsigned WIDE = dtype_set(DType::f32) | dtype_set(DType::f64);

constexpr FamilyEntry entries[] = {
    UNARY(erf, FLOATING, int_to_float, same, erf(x)),
    UNARY(erfc, FLOATING, int_to_float, same, complement(x)),
    UNARY(erfinv, FLOATING, int_to_float, same, erfinv(x)),
    UNARY(lgamma, FLOATING, int_to_float, same, log_gamma(x)),
    UNARY(digamma, FLOATING, int_to_float, same, digamma(x)),
    UNARY(i0, FLOATING, int_to_float, same, each_double(i0_number, x)),
    UNARY(ndtr, FLOATING, int_to_float, same, normal(x)),
    UNARY(ndtri, WIDE, int_to_float, same, normal_inverse(x)),
};
}  // namespace

const Family special = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
