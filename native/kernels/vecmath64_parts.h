// Functions of float64 that carry what rounding loses in a second number, so that the result is off by little
// more than half a unit in the last place. They need a fused multiply-add; simd/libm.h has them of libm where
// there is none. Lanes outside of a function's ordinary range are computed by libm, one by one.
#pragma once
#include "vecmath64.h"

namespace rl {
inline namespace RL_ISA {
namespace {

struct Parts {
  f64v high, low;
};

// a b, and a + b: the rounded result and the rest. The sum needs |a| >= |b|, or a = 0.
inline Parts product_parts(f64v a, f64v b) {
  f64v high = a * b;
  return {high, fma(a, b, -high)};
}
inline Parts sum_parts(f64v a, f64v b) {
  f64v high = a + b;
  return {high, b - (high - a)};
}

// e, and log(1 + f) as a sum, for normal x > 0: log_joined with what it loses, good to about 2e-17.
struct LogParts64 {
  f64v e, high, low;
};
inline LogParts64 reduced_log_parts(f64v x, double ln2_low) {
  auto [f, e] = reduce_log(x);
  f64v s = f / (f + 2.0), z = s * s;
  f64v r = z * polynomial(z, 0x1.5555555555555p-1, 0x1.9999999999e03p-2, 0x1.249249242aef7p-2,
                          0x1.c71c725965036p-3, 0x1.745cde136d381p-3, 0x1.3b20b1aecff44p-3,
                          0x1.0f5c395c281d1p-3, 0x1.0f6859ea146acp-3);
  auto [half_square, square_low] = product_parts(f, f * 0.5);
  f64v less = half_square - fma(s, half_square + r, fma(e, splat<f64v>(ln2_low), -square_low));
  auto [high, low] = sum_parts(f, -less);
  return {e, high, low};
}
inline Parts log_parts(f64v x) {
  auto [e, part, part_low] = reduced_log_parts(x, LN2_LOW_64);
  auto [high, low] = sum_parts(e * LN2_HIGH_64, part);
  return {high, low + part_low};
}

#if defined(__FMA__)

template <class F, class... Xs>
inline f64v libm_unless(i64v ordinary, f64v y, F f, Xs... x) {
  if (!all(ordinary)) [[unlikely]]
    y = each_where(~ordinary, y, f, x...);
  return y;
}

inline f64v log2(f64v x) {
  auto [e, high, low] = reduced_log_parts(x, 0);
  auto [y, y_low] = product_parts(high, splat<f64v>(0x1.71547652b82fep+0));
  y_low = fma(low, splat<f64v>(0x1.71547652b82fep+0), fma(high, splat<f64v>(0x1.777d0ffda0d24p-56), y_low));
  auto [sum, sum_low] = sum_parts(e, y);
  return libm_unless(
      is_ordinary(x), sum + (sum_low + y_low), [](double x) { return ::log2(x); }, x);
}
inline f64v log10(f64v x) {
  auto [high, low] = log_parts(x);
  auto [y, y_low] = product_parts(high, splat<f64v>(0x1.bcb7b1526e50ep-2));
  y_low = fma(low, splat<f64v>(0x1.bcb7b1526e50ep-2), fma(high, splat<f64v>(0x1.95355baaafad3p-57), y_low));
  return libm_unless(
      is_ordinary(x), y + y_low, [](double x) { return ::log10(x); }, x);
}

// From x - n pi / 2, with what it loses: t = r + r z P(z), in odd quadrants -1 / t by one step of Newton's.
inline f64v tan(f64v x) {
  auto [n, q] = whole_multiple(x, 0x1.45f306dc9c883p-1);
  f64v first = fma(n, splat<f64v>(-0x1.921fb544p+0), x), second = n * 0x1.0b4611a6p-34;
  f64v difference = first - second, back = difference - first;
  f64v rest = (first - (difference - back)) - (second + back);
  f64v third = n * 0x1.3198a2e037073p-69;
  auto [r, r_low] = sum_parts(difference, rest - third);
  // r + r^3 (1/3 + z P(z)): all that is not small beside r is carried in two parts
  auto [z, z_low] = product_parts(r, r);
  auto [cube, cube_low] = product_parts(r, z);
  cube_low = fma(r, z_low, cube_low);
  f64v p = z * polynomial(z, 0x1.1111111111099p-3, 0x1.ba1ba1ba29c7ap-5, 0x1.664f487d8071cp-6,
                          0x1.226e36631fd6dp-7, 0x1.d6d39431ecc12p-9, 0x1.7da7fbed40d7ap-10,
                          0x1.351b6fa3068fap-11, 0x1.f9e473fa69127p-13, 0x1.7966c416b24e4p-14,
                          0x1.d2671af5bb588p-15, -0x1.721bab9a218a1p-17, 0x1.327267b6613bcp-15,
                          -0x1.336aea45e63p-16, 0x1.1cb84f5fe46f1p-17);
  auto [factor, factor_low] = sum_parts(splat<f64v>(1.0 / 3), p);
  auto [tail, tail_low] = product_parts(cube, factor);
  tail_low += fma(cube, factor_low, cube_low * factor);
  auto [high, high_low] = sum_parts(r, tail);
  tail_low = fma(r_low, fma(high, high, splat<f64v>(1.0)), tail_low);  // the slope of tan is 1 + tan^2
  auto [t, t_low] = sum_parts(high, high_low + tail_low);
  f64v inverse = -1.0 / t, off = fma(inverse, t, splat<f64v>(1.0));
  f64v odd = fma(inverse, fma(inverse, t_low, off), inverse);
  f64v y = magnitude(x) > 0x1p-27 ? ((q << 63) < 0 ? odd : t) : x;  // -0 is among the others
  return libm_unless(
      magnitude(x) <= TRIG_LIMIT_64, y, [](double x) { return ::tan(x); }, x);
}

// asin(s) / s - 1 for z = s^2 up to 1/4
inline f64v asin_tail(f64v z) {
  return z * polynomial(z, 0x1.5555555555556p-3, 0x1.3333333332ecap-4, 0x1.6db6db6e31f13p-5,
                        0x1.f1c71c1db0623p-6, 0x1.6e8bb1c8209a2p-6, 0x1.1c4d35cf95421p-6,
                        0x1.c9cf07674736ap-7, 0x1.782651caa6547p-7, 0x1.52420b04b37bep-7,
                        0x1.65a9c4dfcf8b2p-8, 0x1.1d189408314eep-6, -0x1.e6aaa8a0a04ccp-7,
                        0x1.d72b2bc8155f8p-6);
}
// Above 1/2 from s = sqrt((1 - |x|) / 2): asin(x) = pi / 2 - 2 asin(s).
struct AsinParts {
  i64v large;
  f64v s, rest;  // asin(s) as a sum, of |x| itself up to 1/2
};
inline AsinParts asin_parts(f64v a) {
  i64v large = a > 0.5;
  f64v z = large ? 0.5 - a * 0.5 : a * a, s = large ? sqrt(z) : a;
  f64v s_low = large ? fma(-s, s, z) / (s + s) : f64v{};
  s_low = s > 0.0 ? s_low : f64v{};
  return {large, s, fma(s, asin_tail(z), s_low)};
}
constexpr double PI_LOW = 0x1.1a62633145c07p-53;
inline f64v asin(f64v x) {
  auto [large, s, rest] = asin_parts(magnitude(x));
  auto [y, y_low] = sum_parts(splat<f64v>(M_PI_2), s * -2.0);
  f64v result = with_sign(large ? y + (y_low + (PI_LOW / 2 - 2.0 * rest)) : s + rest, x);
  return libm_unless(
      magnitude(x) <= 1.0, result, [](double x) { return ::asin(x); }, x);
}
inline f64v acos(f64v x) {
  auto [large, s, rest] = asin_parts(magnitude(x));
  i64v negative = x < 0.0;
  // pi / 2 - asin(x), 2 asin(s) or pi - 2 asin(s)
  f64v scale = large ? splat<f64v>(2.0) : splat<f64v>(1.0);
  f64v base = large ? (negative ? splat<f64v>(M_PI) : f64v{}) : splat<f64v>(M_PI_2);
  f64v base_low = large ? (negative ? splat<f64v>(PI_LOW) : f64v{}) : splat<f64v>(PI_LOW / 2);
  scale = large ^ negative ? scale : -scale;
  auto [y, y_low] = sum_parts(base, s * scale);
  return libm_unless(
      magnitude(x) <= 1.0, y + (y_low + fma(rest, scale, base_low)), [](double x) { return ::acos(x); }, x);
}

// e^x / 2 for |x| <= 708 as a sum.
inline Parts half_exp_parts(f64v x) {
  auto [r, low, n] = reduce_exp(x);
  auto [one_and_r, lost] = sum_parts(splat<f64v>(1.0), r);
  auto [high, rest] = sum_parts(one_and_r, lost + (expm1_reduced(r, low) - r));
  f64v half_power = times_power(splat<f64v>(0.5), n.bits);
  return {high * half_power, rest * half_power};
}
inline i64v is_moderate(f64v x) { return magnitude(x) <= 700.0; }
inline f64v cosh(f64v x) {
  auto [high, low] = half_exp_parts(magnitude(x));
  auto [y, y_low] = sum_parts(high, 0.25 / high);
  return libm_unless(
      is_moderate(x), y + (y_low + low), [](double x) { return ::cosh(x); }, x);
}
// Up to 1 the sum of x^k / k! over odd k.
inline f64v sinh(f64v x) {
  f64v a = magnitude(x), z = a * a;
  auto [high, low] = half_exp_parts(a);
  auto [y, y_low] = sum_parts(high, -0.25 / high);
  f64v small = polynomial(z, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800, 1.0 / 6227020800,
                          1.0 / 1307674368000, 1.0 / 355687428096000, 1.0 / 121645100408832000);
  return libm_unless(
      is_moderate(x), with_sign(a > 1.0 ? y + (y_low + low) : fma(a * z, small, a), x),
      [](double x) { return ::sinh(x); }, x);
}

// Half of the logarithm of (1 + x) / (1 - x), whose error corrects it; a polynomial as long as log's lasts.
inline f64v atanh(f64v x) {
  f64v a = magnitude(x), z = a * a;
  f64v over = a + 1.0, under = 1.0 - a, ratio = over / under;
  f64v over_low = a - (over - 1.0), under_low = (1.0 - under) - a;
  f64v off = (fma(-ratio, under, over) + (over_low - ratio * under_low)) / over;
  auto [f, e] = reduce_log(ratio);
  f64v tail = z * polynomial(z, 0x1.5555555555555p-2, 0x1.9999999999e03p-3, 0x1.249249242aef7p-3,
                             0x1.c71c725965036p-4, 0x1.745cde136d381p-4, 0x1.3b20b1aecff44p-4,
                             0x1.0f5c395c281d1p-4, 0x1.0f6859ea146acp-4);
  f64v y = a < 0.17 ? fma(a, tail, a) : 0.5 * log_joined(f, e, off);
  y = a < 1.0 ? y : a == 1.0 ? splat<f64v>(INFINITY) : splat<f64v>(NAN);
  return with_sign(y, x);
}

// sqrt(x^2 + y^2), corrected by what its square lacks.
inline f64v hypot_of_parts(f64v x, f64v y) {
  f64v a = magnitude(x), b = magnitude(y), large = a > b ? a : b, small = a > b ? b : a;
  auto [large_square, large_low] = product_parts(large, large);
  auto [small_square, small_low] = product_parts(small, small);
  f64v h = sqrt(large_square + small_square);
  auto [square, low] = product_parts(h, h);
  f64v lacks = ((large_square - square) + small_square) + ((large_low - low) + small_low);
  f64v result = h + lacks / (h + h);
  return libm_unless((large < 0x1p500) & (large > 0x1p-400) & (small < INFINITY), result,
                     [](double x, double y) { return ::hypot(x, y); }, x, y);
}

// k pi / 4 + atan(t) or - atan(t): t is the smaller over the larger, from tan(pi / 8) on their difference
// over their sum. What t loses is carried along.
inline f64v atan2(f64v y, f64v x) {
  f64v a = magnitude(y), b = magnitude(x);
  i64v steep = a > b;
  f64v large = steep ? a : b, small = steep ? b : a;
  i64v middle = small > 0.41421356237309503 * large;
  auto [sum, sum_low] = sum_parts(large, small);
  auto [difference, difference_low] = sum_parts(-large, small);
  f64v over = middle ? difference : small, under = middle ? sum : large;
  f64v over_low = middle ? difference_low : f64v{}, under_low = middle ? sum_low : f64v{};
  f64v inverse = 1.0 / under, t = over * inverse;
  f64v t_low = (fma(-t, under, over) + fma(-t, under_low, over_low)) * inverse;
  f64v tail = atan_tail(t);
  f64v k = middle ? splat<f64v>(1.0) : f64v{}, sign = splat<f64v>(1.0);
  k = steep ? 2.0 - k : k, sign = steep ? -sign : sign;
  i64v behind = bits(x) < 0;
  k = behind ? 4.0 - k : k, sign = behind ? -sign : sign;
  auto [base, base_low] = product_parts(k, splat<f64v>(M_PI_4));
  auto [high, low] = sum_parts(base, sign * t);
  f64v result = high + (low + fma(sign, tail + t_low, fma(k, splat<f64v>(PI_LOW / 4), base_low)));
  i64v ordinary = (large < 0x1p500) & (large > 0x1p-500) & ((small > 0x1p-500) | (small == 0.0));
  return libm_unless(
      ordinary, with_sign(result, y), [](double y, double x) { return ::atan2(y, x); }, y, x);
}

// Up to 0.75 the sum 1 - x - x P(x^2); beyond, exp(-x^2) Q(u) / (1 + 2 x) with u = (x - 4) / (x + 4). The
// coefficients of Q interpolate it at Chebyshev's points.
inline f64v erfc(f64v x) {
  f64v a = at_most(28.5, magnitude(x));
  auto [one_less, lost] = sum_parts(splat<f64v>(1.0), with_sign(-a, -x));
  f64v small = one_less + fma(-x, erf_over_x(x * x), lost);

  f64v u = (a - 4.0) / (a + 4.0);
  f64v q_tail =
      u * polynomial(u, -0x1.1df1ad154a263p-3, 0x1.f7f5df66fbc63p-7, 0x1.16ecefcfa2754p-4,
                     -0x1.9ddb23c3dbce5p-4, 0x1.7fee004e7c573p-4, -0x1.0fb06dff8c430p-4, 0x1.3079ede80c664p-5,
                     -0x1.09623845ac579p-6, 0x1.49c676d440c80p-8, -0x1.8d4ad3f6d8e1ep-11,
                     -0x1.a1e232fe54697p-13, 0x1.3be45a1bda867p-13, -0x1.9903661e970eap-16,
                     -0x1.7940bfbdc47f9p-17, 0x1.7c38a968cd6f0p-18, 0x1.6328c43ad8649p-22,
                     -0x1.9bfe85685abc0p-21, 0x1.3f9807ea362e3p-25, 0x1.2283bd969737dp-24);
  auto [q, q_low] = sum_parts(splat<f64v>(0x1.3ba5916e9fd7fp+0), q_tail);
  auto [under, under_low] = sum_parts(a + a, splat<f64v>(1.0));
  f64v inverse = 1.0 / under, scaled = q * inverse;
  f64v scaled_low = (fma(-scaled, under, q) + fma(-scaled, under_low, q_low)) * inverse;
  auto [square, square_low] = product_parts(a, a);
  auto [r, r_low, n] = reduce_exp(-square);
  auto [e, e_lost] = sum_parts(splat<f64v>(1.0), r);
  f64v e_low = fma(r * r, exp_tail(r), e_lost);
  e_low = fma(r_low - square_low, e + e_low, e_low);
  f64v y = times_any_power(fma(scaled, e, fma(scaled, e_low, scaled_low * e)), n.n);
  y = x < 0.0 ? 2.0 - y : y;
  return magnitude(x) < 0.75 ? small : x == x ? y : x;
}

// Exponents of up to 3: beyond, the error of the logarithm would show. Powers that are numbers are exact:
// less than a third of a unit is lost before the result is rounded.
inline f64v pow_of_parts(f64v x, f64v y) {
  f64v a = magnitude(x);
  auto [high, low] = log_parts(a);
  auto [p, p_low] = product_parts(high, y);
  auto [r, r_low, n] = reduce_exp(p);
  auto [one_and_r, lost] = sum_parts(splat<f64v>(1.0), r);
  f64v tail = polynomial(r, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                         1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800);
  f64v rest = fma(r * r, tail, lost);  // e^r = 1 + r + r^2 / 2 + ...
  rest = fma(one_and_r + rest, fma(low, y, p_low) + r_low, rest);
  f64v result = times_power(one_and_r + rest, n.bits), size = magnitude(y);
  i64v negative = x < 0.0;
  if (any(negative)) {  // the sign of odd powers; NaN where the exponent is not whole
    f64v even = size == 0.0 ? result : size == 2.0 ? result : splat<f64v>(NAN);
    result = negative ? (size == 1.0 ? -result : size == 3.0 ? -result : even) : result;
  }
  return libm_unless(
      is_ordinary(a) & (size <= 3.0) & (magnitude(p) <= 700.0), result,
      [](double x, double y) { return ::pow(x, y); }, x, y);
}

#else
inline f64v hypot_of_parts(f64v x, f64v y) { return hypot(x, y); }
inline f64v pow_of_parts(f64v x, f64v y) {
  return each([](double x, double y) { return ::pow(x, y); }, x, y);
}
#endif

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
