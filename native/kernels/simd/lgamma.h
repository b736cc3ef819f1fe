// log |gamma(x)| on vectors of float64. Read `lgamma_vector`.
//
// Up to 8.5 on both sides x is moved to 2 + t, where t = x - n is exact for its nearest whole number n:
// gamma(2 + t) is the product of gamma(x) and x (x + 1) ... (1 + t) below 1.5, and gamma(x) over (x - 1) ...
// (2 + t) above 2.5. There lgamma(2 + t) = t Q(t), so nothing cancels beside the zeros at 1 and 2. Further
// out it is Stirling's series, reflected for negative numbers. FLOAT leaves out what single precision does
// not show.
#pragma once
#include "libm.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// lgamma(2 + t) = t (C + t R(t)), C = 1 - Euler's constant: R for |t| <= 0.5, interpolated at Chebyshev's
// points in mpmath, good to 1e-17, for floats to 1e-9.
constexpr double LGAMMA_SLOPE = 0x1.b0ee6072093cep-2, LGAMMA_SLOPE_LOW = 0x1.6cb90701fbfabp-58;
template <bool FLOAT>
inline f64v lgamma_curve(f64v t) {
  if constexpr (FLOAT)
    return polynomial(t, 0x1.4a34cc4b2623bp-2, -0x1.13e001a6c303ep-4, 0x1.51322129f712p-6,
                      -0x1.e404ea6500016p-8, 0x1.7ae6febb2693dp-9, -0x1.38b52d8b973efp-10,
                      0x1.098f9482bf48ap-11, -0x1.d0f11e42338aap-13, 0x1.dbf0833dddc72p-14,
                      -0x1.af0c24c2ebf68p-15);
  else
    return polynomial(t, 0x1.4a34cc4a60fa6p-2, -0x1.13e001a557607p-4, 0x1.51322ac7d8333p-6,
                      -0x1.e404fc218f37p-8, 0x1.7add6eadfcc7bp-9, -0x1.38ac5c2c3ba16p-10,
                      0x1.0b36af5972ed1p-11, -0x1.d3fd4c217341ep-13, 0x1.a127cd91ac95bp-14,
                      -0x1.78de7721ff5ap-15, 0x1.5808af19fa483p-16, -0x1.3cb7b3b3125e1p-17,
                      0x1.2620de1c78d97p-18, -0x1.1235bb6eb9201p-19, 0x1.f038cb2f6a913p-21,
                      -0x1.d295ec4df68fp-22, 0x1.2703c6effc4ebp-22, -0x1.17d0781c44b2ep-23);
}

// log(pi / |x sin(pi x)|) for x = n + t.
[[gnu::noinline]] f64v lgamma_reflection(f64v x, f64v t) {
  f64v a = magnitude(t);
  i64v middle = a > 0.25;
  f64v r = (middle ? 0.5 - a : a) * M_PI, sine = middle ? cos_polynomial(r) : sin_polynomial(r);
  return log(M_PI / magnitude(x * sine));
}

template <bool FLOAT>
inline f64v lgamma_vector(f64v x) {
  const f64v one = splat<f64v>(1.0), two = splat<f64v>(2.0);
  i64v far = magnitude(x) >= 8.5;
  f64v n = nearest(x), t = x - n, factors = far ? f64v{} : magnitude(n - 2.0);
  // The product, counted from 2 + t upwards or from 1 + t downwards. Only 1 + t may be rounded: the others
  // have no bits that x has not. What is lost is carried along.
  i64v above = n > 2.0;
  f64v offset = above ? two : one, step = above ? one : -one;
  f64v first = t + offset, product = factors > 0.0 ? first : one;
  f64v lost = n < 2.0 ? t - (first - 1.0) : f64v{};
  for (double i = 1; i < 10 && any(factors > i); i++) {
    offset += step;
    f64v factor = factors > i ? t + offset : one, larger = product * factor;
    if constexpr (!FLOAT) lost = fma(lost, factor, fma(product, factor, -larger));
    product = larger;
  }
  f64v under = magnitude(far ? x : product), log, low, result;
  if constexpr (FLOAT) {
    auto [f, e] = reduce_log(under);
    log = log_joined(f, e, f64v{});
    result = fma(step, log, t * fma(t, lgamma_curve<true>(t), splat<f64v>(LGAMMA_SLOPE)));
  } else {
    auto parts = log_parts(under);
    log = parts.high, low = parts.low;
    f64v a = step * log, b = t * LGAMMA_SLOPE, sum = a + b, back = sum - a;
    f64v sum_low = (a - (sum - back)) + (b - back);
    f64v slope_low = fma(t, splat<f64v>(LGAMMA_SLOPE_LOW), fma(t, splat<f64v>(LGAMMA_SLOPE), -b));
    f64v log_low = step * (lost / product + low);
    result = sum + fma(t * t, lgamma_curve<false>(t), sum_low + slope_low + log_low);
  }
  i64v hard = ~(magnitude(x) > 0x1p-1000) | ((x < -2.0) & (magnitude(result) < 0.125));
  if (any(far)) {
    f64v size = magnitude(x), inverse = 1.0 / size, z = inverse * inverse;
    f64v series = inverse * polynomial(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188,
                                       -691.0 / 360360, 1.0 / 156, -3617.0 / 122400);
    series += 0.91893853320467274178 - 0.5;  // half of log(2 pi)
    f64v a = size - 0.5, b = log - 1.0, ab = a * b;
    f64v stirling = FLOAT ? ab + series : ab + (fma(a, b, -ab) + fma(a, low, series));
    hard = far ? ~(size < 0x1p1000) : hard;
    result = far ? stirling : result;
    i64v below = x <= -8.5;
    if (any(below)) {
      result = below ? lgamma_reflection(x, t) - stirling : result;
      hard |= below & (magnitude(result) < 0.5 * stirling);
    }
  }
  hard |= (x <= 0.0) & (t == 0.0);
  // What is left to libm (lgamma_r, because lgamma writes a global variable): poles, tiny and huge numbers,
  // and what lies beside the zeros below -2.
  if (any(hard)) [[unlikely]] {
    result = each_where(
        hard, result,
        [](double x) {
          int sign;
          return ::lgamma_r(x, &sign);
        },
        x);
  }
  return result;
}

inline f64v log_gamma(f64v x) { return lgamma_vector<false>(x); }
inline f32v log_gamma(f32v x) {
  return in_double([](f64v x) { return lgamma_vector<true>(x); }, x);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
