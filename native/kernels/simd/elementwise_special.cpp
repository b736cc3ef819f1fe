// Error functions, gamma functions, Bessel functions. What libm lacks is computed here in double, by vectors
// where the formula is the same for most numbers, else number by number.
#include "../special.h"
#include "bessel.h"
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

// erfinv(a), from a and 1 - a^2 as a sum: as a P(w) with w = -log(1 - a^2), where that exceeds 5 as a
// function of its root (up to 6.15, beyond which 1 - a^2 is below 4e-17). P and those functions are
// interpolated at Chebyshev's points; what w and the root lose is carried along, with rough slopes.
inline f64v erfinv_of_parts(f64v a, Parts rest) {
  auto [minus_w, minus_low] = log_parts(rest.high);
  f64v w = -minus_w;
  auto [near, near_low] = sum_parts(splat<f64v>(-2.5), w);
  near_low -= minus_low + rest.low / rest.high;
  f64v tail = polynomial(
      near, -0x1.11c3c302dfaf0p-8, -0x1.4863cdfb61517p-10, 0x1.c9b437ed0080cp-13, -0x1.4f47fe73684ebp-18,
      -0x1.ca9227b0a062dp-19, 0x1.01037e3d97bd8p-21, 0x1.ccff528c03084p-27, -0x1.752fdb81693a7p-27,
      0x1.f2cd342e3526fp-31, 0x1.0704eb5764939p-33, -0x1.11a0e5e08c336p-35, 0x1.008e1e14bcf63p-40,
      0x1.2e67836f4afd5p-41, -0x1.56c08cc65ee02p-44, -0x1.c9dd7964db247p-49, 0x1.10f9a3abd03bcp-49,
      -0x1.d3896566661f1p-54, -0x1.eb8684d3967aap-56, 0x1.7692a18a39c86p-59, 0x1.847e944433021p-63);
  auto [slope, slope_low] = product_parts(near, splat<f64v>(0x1.f91e8993f0d14p-3));
  auto [p, p_low] = sum_parts(splat<f64v>(0x1.805c5cfcedef5p+0), slope);
  f64v constants = fma(near, splat<f64v>(-0x1.5576af1872efbp-57), splat<f64v>(-0x1.849bf77d289e9p-54));
  p_low += slope_low + fma(near_low, splat<f64v>(0.24), constants);
  auto [y, y_low] = product_parts(a, p);
  y += fma(a, fma(near * near, tail, p_low), y_low);
  i64v far = w > 5.0;
  if (any(far)) {
    f64v s = sqrt(w), s_low = (fma(-s, s, w) - (minus_low + rest.low / rest.high)) / (s + s);
    f64v t = s - 2.99, u = s - 4.95;
    f64v middle = fma(t,
                      polynomial(t, 0x1.4ae32e44ccfa3p-9, 0x1.c753853d6b692p-8, -0x1.c990c69dc9baap-9,
                                 0x1.2e5e113bd57d3p-10, -0x1.cb1321dd5fdb0p-13, -0x1.542a6f99d48f6p-15,
                                 0x1.e4cda48474898p-15, -0x1.97bcd54739cf6p-16, 0x1.2aaddcde43b33p-19,
                                 0x1.c4882441ec2f7p-19, -0x1.14063d3e14b87p-19, 0x1.7c906186deac7p-22,
                                 0x1.cc63bcac51cd2p-23, -0x1.65333bdd3838bp-23, 0x1.1a9895c3c4930p-25,
                                 0x1.32be44371ec0ep-26, -0x1.4a664071832f4p-27),
                      splat<f64v>(-0x1.567982ccd614cp-3));
    f64v farther = fma(u,
                       polynomial(u, 0x1.51ed1482739eap-7, -0x1.b9ab8aefb9f54p-14, -0x1.e3dd89032efddp-13,
                                  0x1.540acade44d86p-14, -0x1.615f295849ee2p-16, 0x1.45410cd62d1fdp-18,
                                  -0x1.1715ba242cd09p-20, 0x1.c7045c5a21be4p-23, -0x1.60d84edf7539ap-25,
                                  0x1.f79b2b78724eep-28, -0x1.14cb30834526ep-30, 0x1.040a5a74dc01dp-40,
                                  0x1.4894c204a7b0ep-34, -0x1.ff4772ca3ec03p-35, 0x1.2156fc7016d4cp-35,
                                  -0x1.139fdbd3e27ebp-37),
                       splat<f64v>(-0x1.347275ebe783cp-3));
    y = far ? s + ((s > 3.75 ? farther : middle) + s_low) : y;
  }
  return y;
}
inline f64v erfinv(f64v x) {
  f64v a = magnitude(x);
  f64v less = 1.0 - a, more = a + 1.0;
  auto [high, low] = product_parts(less, more);
  low += less * (a - (more - 1.0)) + more * ((1.0 - less) - a);  // what the factors lose
  f64v y = erfinv_of_parts(a, {high, low});
  y = with_sign(a < 1.0 ? y : a == 1.0 ? splat<f64v>(INFINITY) : splat<f64v>(NAN), x);
  return a > 0.0 ? y : x;  // zeros and NaN
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
inline f64v normal(f64v x) { return 0.5 * erfc(x * -M_SQRT1_2); }
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
// sqrt(2) erfinv(2 p - 1), where 1 - (2 p - 1)^2 is 4 p (1 - p).
inline f64v normal_inverse(f64v p) {
  f64v x = p + p - 1.0;
  f64v less = 1.0 - p;
  auto [high, low] = product_parts(p, less);
  low += p * ((1.0 - less) - p);
  f64v z = with_sign(M_SQRT2 * erfinv_of_parts(magnitude(x), {4.0 * high, 4.0 * low}), x);
  i64v hard = ~((p > 1e-17) & (p < 1.0));
  if (any(hard)) [[unlikely]]
    z = each_where(hard, z, rl::ndtri, p);
  return z;
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

// -x log x
template <class X>
inline X entropy(X x) {
  X y = -x * log(x);
  y = x == 0 ? X{} : y;
  return x < 0 ? splat<X>(-INFINITY) : y;
}

constexpr unsigned WIDE = dtype_set(DType::f32) | dtype_set(DType::f64);

constexpr FamilyEntry entries[] = {
    UNARY(erf, FLOATING, int_to_float, same, erf(x)),
    UNARY(erfc, FLOATING, int_to_float, same, complement(x)),
    UNARY(erfinv, FLOATING, int_to_float, same, erfinv(x)),
    UNARY(lgamma, FLOATING, int_to_float, same, log_gamma(x)),
    UNARY(digamma, FLOATING, int_to_float, same, digamma(x)),
    UNARY(i0, FLOATING, int_to_float, same, bessel_i<0, false>(x)),
    UNARY(i0e, FLOATING, int_to_float, same, bessel_i<0, true>(x)),
    UNARY(i1, FLOATING, int_to_float, same, bessel_i<1, false>(x)),
    UNARY(i1e, FLOATING, int_to_float, same, bessel_i<1, true>(x)),
    UNARY(modified_bessel_i0, WIDE, int_to_float, same, bessel_i<0, false>(x)),
    UNARY(modified_bessel_i1, WIDE, int_to_float, same, bessel_i<1, false>(x)),
    UNARY(entr, FLOATING, int_to_float, same, entropy(x)),
    UNARY(_trigamma, FLOATING, int_to_float, same, trigamma(x)),
    UNARY(ndtr, FLOATING, int_to_float, same, normal(x)),
    UNARY(ndtri, WIDE, int_to_float, same, normal_inverse(x)),
};
}  // namespace

const Family special = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
