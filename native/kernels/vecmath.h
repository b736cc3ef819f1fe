// Elementary functions on vectors of float32.
//
// Each is a range reduction and a polynomial fitted to the reduced range (minimax, coefficients rounded to
// float), right for every float: subnormals, infinities, NaN. Functions whose reduction cancels go through
// double. Largest errors found, in units in the last place (correct rounding would be 0.5), against libm in
// the next wider type; float32 over every 61st of all floats, float64 over 16 million numbers; AVX2 /
// baseline:
//
//            float32      float64                float32      float64                float32      float64
//   exp    0.67 / 0.70  0.87 / 0.90    sin    1.52 / 1.53  1.70 / 1.86    asinh  0.50 / 0.50  libm
//   exp2   1.14 / 1.38  1.05 / 1.05    cos    1.50 / 1.53  1.53 / 1.90    acosh  0.50 / 0.50  libm
//   expm1  1.41 / 1.51  1.73 / 1.67    tan    1.40 / 1.40  0.74 / libm    atanh  0.50 / 0.50  0.83 / libm
//   log    0.98 / 1.03  0.80 / 0.80    asin   0.51 / 0.51  0.65 / libm    erf    1.21 / 1.28  1.29 / 1.31
//   log2   1.10 / 1.52  0.80 / libm    acos   0.51 / 0.51  0.65 / libm    pow    1.23 / 1.52  0.79 / libm
//   log10  0.50 / 0.50  0.70 / libm    atan   1.82 / 1.82  1.82 / 1.82    atan2  0.50 / 0.50  0.84 / libm
//   log1p  1.05 / 1.05  0.82 / 0.82    sinh   1.58 / 1.58  0.95 / libm    tanh   1.31 / 1.31  1.29 / 1.29
//   erfc   0.50 / 0.50  1.16 / libm    erfinv 0.50 / 0.50  1.01 / 1.73   ndtri  0.50 / 0.50  2.31 / 3.23
//
// Most vectors hold ordinary numbers, so a function looks first whether all of its lanes do; if not, its
// slower form, called NAME_any, serves the whole vector. Both give the same bits for an ordinary number:
// a result never depends on its neighbours.
#pragma once
#include "vecmath64.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// ln 2 in two parts; the first has so few bits that its product with a small whole number is exact.
constexpr float LN2_HIGH = 0x1.63p-1f, LN2_LOW = -0x1.bd0106p-13f;

// y 2^n, where `n` has n in its low bits: for y near 1 and a result that is a normal number; and for all
// others.
inline f32v times_power(f32v y, i32v n) { return add_bits(y, n << 23); }
inline f32v times_any_power(f32v y, f32v n) {
  i32v whole = to_int(n), half = whole >> 1;
  return times_power(y, half) * times_power(splat<f32v>(1.0f), whole - half);
}

// x = r + rest + n ln 2, where rest is what r rounds off
struct ExpReduced {
  f32v r, rest;
  Whole<f32v> n;
};
inline ExpReduced reduce_exp(f32v x) {
  auto n = whole_multiple(x, 0x1.715476p+0f);
  f32v exact = fma(n.n, splat<f32v>(-LN2_HIGH), x), low = splat<f32v>(-LN2_LOW);
  f32v r = fma(n.n, low, exact);
  return {r, fma(n.n, low, exact - r), n};
}
// (e^r - 1 - r) / r^2 and e^r - 1, for |r| <= ln 2 / 2
inline f32v exp_tail(f32v r) {
  return polynomial(r, 0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f4p-5f, 0x1.123a6cp-7f, 0x1.6a2364p-10f);
}
inline f32v expm1_reduced(f32v r) { return fma(r * r, exp_tail(r), r); }
// e^(r + rest). `precise` adds what r and the sum 1 + r round off: that is for exp() itself, a fifth slower.
template <bool precise>
inline f32v exp_reduced(f32v r, f32v rest) {
  if constexpr (!precise) return expm1_reduced(r) + 1.0f;
  f32v sum = r + 1.0f;
  return sum + fma(r * r, exp_tail(r), r - (sum - 1.0f) + rest);
}

// e^x 2^shift, whatever x is: beyond the limits the result is 0 or infinity.
template <bool precise>
[[gnu::noinline]] f32v exp_any(f32v x, float shift) {
  auto [r, rest, n] = reduce_exp(at_least(-105.0f, at_most(90.0f, x)));
  return is_nan(x) ? x : times_any_power(exp_reduced<precise>(r, rest), n.n + shift);
}
// For |x| <= 87.
template <bool precise = false>
inline f32v exp_ordinary(f32v x) {
  auto [r, rest, n] = reduce_exp(x);
  return times_power(exp_reduced<precise>(r, rest), n.bits);
}
template <bool precise = false>
inline f32v exp(f32v x) {
  if (!all(magnitude(x) <= 87.0f)) [[unlikely]]
    return exp_any<precise>(x, 0);
  return exp_ordinary<precise>(x);
}
template <class X>
inline X exp_precise(const X& x) {
  if constexpr (std::is_same_v<X, f32v>) return exp<true>(x);
  else return exp(x);
}

// 2^r for |r| <= 1/2
inline f32v exp2_reduced(f32v r) {
  f32v p = polynomial(r, 0x1.62e43p-1f, 0x1.ebfbdcp-3f, 0x1.c6aee6p-5f, 0x1.3b2d5p-7f, 0x1.5f3f3p-10f,
                      0x1.41fb24p-13f);
  return fma(p, r, splat<f32v>(1.0f));
}
inline f32v exp2(f32v x) {
  f32v limited = at_least(-151.0f, at_most(129.0f, x));
  auto n = whole_multiple(limited, 1.0f);
  return is_nan(x) ? x : times_any_power(exp2_reduced(limited - n.n), n.n);
}

// 2^n (e^r - 1) + (2^n - 1), with half of 2^n, which cannot overflow.
inline f32v expm1(f32v x) {
  auto [r, rest, n] = reduce_exp(at_least(-18.0f, at_most(89.0f, x)));
  f32v half_power = times_power(splat<f32v>(0.5f), n.bits);
  f32v y = fma(half_power, expm1_reduced(r), half_power - 0.5f) * 2.0f;
  return magnitude(x) > 0x1p-25f ? y : x;  // also for NaN and -0
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); f = m - 1. Needs a normal, positive x.
struct LogReduced {
  f32v f, e;
};
inline LogReduced reduce_log(f32v x) {
  i32v e = bits(take_bits(x, i32v{} + 0x3f3504f3)) >> 23;  // the bits of sqrt(1/2)
  f32v m = take_bits(x, e << 23);
  return {m - 1.0f, to_float(e)};
}
// log(1 + f) - f on the reduced range
inline f32v log_tail(f32v f) {
  return f * f *
         polynomial(f, -0.5f, 0x1.555548p-2f, -0x1.000006p-2f, 0x1.99a4cap-3f, -0x1.555c5cp-3f, 0x1.2335bp-3f,
                    -0x1.fc1d46p-4f, 0x1.e70714p-4f, -0x1.de6608p-4f, 0x1.145734p-4f);
}
inline f32v log_joined(f32v f, f32v e) {
  return fma(e, splat<f32v>(LN2_HIGH), f + fma(e, splat<f32v>(LN2_LOW), log_tail(f)));
}
// log(1 + f) in two parts, times log2(e) in two parts.
inline f32v log2_joined(f32v f, f32v e) {
  f32v tail = log_tail(f), high = f + tail, low = tail - (high - f);
  f32v y = fma(high, splat<f32v>(0x1.4ae0cp-26f), low * 0x1.715476p+0f);
  return e + fma(high, splat<f32v>(0x1.715476p+0f), y);
}
inline i32v is_ordinary(f32v x) { return (x >= 0x1p-126f) & (x < INFINITY); }

[[gnu::noinline]] f32v log_any(f32v x, f32v (*joined)(f32v f, f32v e)) {
  i32v small = x < 0x1p-126f;
  auto [f, e] = reduce_log(small ? x * 0x1p24f : x);
  f32v y = joined(f, small ? e - 24.0f : e);
  y = x < INFINITY ? y : x;  // infinity and NaN
  y = x < 0.0f ? splat<f32v>(NAN) : y;
  return x == 0.0f ? splat<f32v>(-INFINITY) : y;
}
inline f32v log(f32v x) {
  if (!all(is_ordinary(x))) [[unlikely]]
    return log_any(x, log_joined);
  auto [f, e] = reduce_log(x);
  return log_joined(f, e);
}
inline f32v log2(f32v x) {
  if (!all(is_ordinary(x))) [[unlikely]]
    return log_any(x, log2_joined);
  auto [f, e] = reduce_log(x);
  return log2_joined(f, e);
}

// u = 1 + x as rounded; what was lost is added to f in u's scale, over 1 + f (to some hundredths).
inline f32v log1p_ordinary(f32v x, f32v u) {
  auto [f, e] = reduce_log(u);
  f32v lost = times_power(splat<f32v>(1.0f), -to_int(e)) * (x - (u - 1.0f));
  lost = fma(lost * f, fma(f, splat<f32v>(0.94f), splat<f32v>(-1.06f)), lost);
  f32v low = fma(e, splat<f32v>(LN2_LOW), log_tail(f)) + lost;
  f32v y = fma(e, splat<f32v>(LN2_HIGH), f + low);
  return x == 0.0f ? x : y;
}
[[gnu::noinline]] f32v log1p_any(f32v x) {
  f32v u = x + 1.0f;
  return (u > 0.0f) & (u < 0x1p30f) ? log1p_ordinary(x, u) : log_any(u, log_joined);
}
inline f32v log1p(f32v x) {
  f32v u = x + 1.0f;
  if (!all((u > 0.0f) & (u < 0x1p30f))) [[unlikely]]
    return log1p_any(x);
  return log1p_ordinary(x, u);
}

// x = r + q pi / 2 with |r| a little over pi / 4 at most. The subtraction cancels: a fused one has pi / 2
// in three parts (all positive, to keep -0; the first difference is exact), without it is done in double.
// Good for |x| <= 2^17; what lies beyond is rare and goes to libm.
constexpr float TRIG_LIMIT = 0x1p17f;
struct TrigReduced {
  f32v r;
  i32v q;
};
inline f64v minus_half_pis(f64v x, f64v n) {
  return fma(n, splat<f64v>(-0x1.0b4611a626331p-34), fma(n, splat<f64v>(-0x1.921fb544p+0), x));
}
inline TrigReduced reduce_trig(f32v x) {
  auto [n, q] = whole_multiple(x, 0x1.45f306p-1f);
#if defined(__AVX2__)
  f32v r = fma(n, splat<f32v>(-0x1.921fb4p+0f), x);
  r = fma(n, splat<f32v>(-0x1.4442dp-24f), r);
  return {fma(n, splat<f32v>(-0x1.84698ap-48f), r), q};
#else
  return {narrow(minus_half_pis(widen(x).low, widen(n).low), minus_half_pis(widen(x).high, widen(n).high)),
          q};
#endif
}
inline f32v sin_polynomial(f32v r) {
  f32v z = r * r;
  f32v p = polynomial(z, -0x1.555546p-3f, 0x1.11073ap-7f, -0x1.994386p-13f);
  return fma(r, fma(z, p, f32v{}),
             r);  // adding 0 makes the factor +0 for r = -0, which the result then keeps
}
inline f32v cos_polynomial(f32v r) {
  f32v z = r * r;
  f32v tail = polynomial(z, -0.5f, 0x1.55554ap-5f, -0x1.6c0c8ap-10f, 0x1.9a020ap-16f);
  return fma(z, tail, splat<f32v>(1.0f));
}
// The function that is sin at quadrant 0, cos at quadrant 1.
inline f32v sin_in_quadrant(f32v r, i32v q) {
  f32v y = (q << 31) < 0 ? cos_polynomial(r) : sin_polynomial(r);
  return from_bits(bits(y) ^ (q << 30 & INT32_MIN));
}

inline f32v sin(f32v x) {
  auto [r, q] = reduce_trig(x);
  f32v y = sin_in_quadrant(r, q);
  i32v large = magnitude(x) > TRIG_LIMIT;
  if (any(large)) [[unlikely]]
    y = each_where(
        large, y, [](auto x) { return ::sinf(x); }, x);
  return y;
}
inline f32v cos(f32v x) {
  auto [r, q] = reduce_trig(x);
  f32v y = sin_in_quadrant(r, q + 1);
  i32v large = magnitude(x) > TRIG_LIMIT;
  if (any(large)) [[unlikely]]
    y = each_where(
        large, y, [](auto x) { return ::cosf(x); }, x);
  return y;
}
inline f64v tan_polynomial(f64v r) {
  f64v z = r * r;
  return fma(
      r * z,
      polynomial(z, 0x1.55556089a5a68p-2, 0x1.110d80a5c2d81p-3, 0x1.bade469c88adep-5, 0x1.5c963a09567cp-6,
                 0x1.639ad1610fb2fp-7, 0x1.1dfde26fa509dp-14, 0x1.1f830cbaadb4ep-8),
      r);
}
// In double, since its inverse in the odd quadrants would double the error.
inline f32v tan(f32v x) {
  auto [n, q] = whole_multiple(x, 0x1.45f306p-1f);
  f64v low = tan_polynomial(minus_half_pis(widen(x).low, widen(n).low));
  f64v high = tan_polynomial(minus_half_pis(widen(x).high, widen(n).high));
  f32v y = (q << 31) < 0 ? narrow(-1.0 / low, -1.0 / high) : narrow(low, high);
  i32v large = magnitude(x) > TRIG_LIMIT;
  if (any(large)) [[unlikely]]
    y = each_where(
        large, y, [](float x) { return ::tanf(x); }, x);
  return y;
}

inline f32v atan(f32v x) {
  f32v a = magnitude(x);
  i32v large = a > 2.4142135f, middle = a > 0.41421357f;
  f32v over = large ? splat<f32v>(-1.0f) : middle ? a - 1.0f : a;
  f32v under = large ? a : middle ? a + 1.0f : splat<f32v>(1.0f);
  f32v t = over / under, z = t * t;
  f32v p = t * z *
           polynomial(z, -0x1.55554ap-2f, 0x1.999194p-3f, -0x1.23b504p-3f, 0x1.b1ea5ap-4f, -0x1.f1e3c6p-5f);
  f32v base = large ? splat<f32v>(0x1.921fb6p+0f) : middle ? splat<f32v>(0x1.921fb6p-1f) : f32v{};
  f32v base_low = large ? splat<f32v>(-0x1.777a5cp-25f) : middle ? splat<f32v>(-0x1.777a5cp-26f) : f32v{};
  return with_sign(base + (t + (p + base_low)), x);
}

inline f32v sinh(f32v x) {
  f32v a = magnitude(x), z = a * a, half = exp_any<true>(a, -1);
  f32v small = fma(a * z, polynomial(z, 0x1.555556p-3f, 0x1.111136p-7f, 0x1.9ffe84p-13f, 0x1.7a17d2p-19f), a);
  return with_sign(a > 1.0f ? half - 0.25f / half : small, x);
}
inline f32v cosh(f32v x) {
  f32v half = exp_any<true>(magnitude(x), -1);
  return half + 0.25f / half;
}
// A polynomial up to 0.625, from there 1 - 2 / (e^2x + 1).
inline f32v tanh(f32v x) {
  f32v a = magnitude(x), z = a * a;
  f32v p = polynomial(z, -0x1.555532p-2f, 0x1.11071ep-3f, -0x1.b83b18p-5f, 0x1.521e0ap-6f, -0x1.75b9ecp-8f);
  f32v e = exp_ordinary(at_most(20.0f, a + a));
  return with_sign(a > 0.625f ? 1.0f - 2.0f / (e + 1.0f) : fma(a * z, p, a), x);
}

// x P(x^2) up to 0.92, from there 1 - exp(Q(x)) with Q = log(erfc).
inline f32v erf(f32v x) {
  f32v a = magnitude(x), z = a * a;
  f32v over_a = polynomial(z, 0x1.06eba8p-3f, -0x1.812744p-2f, 0x1.ce2e2p-4f, -0x1.b8107ap-6f, 0x1.54dad2p-8f,
                           -0x1.aae95ap-11f, 0x1.5f10c6p-14f);
  f32v q = polynomial(at_most(3.93f, a), 0x1.6f6352p-13f, -0x1.21280cp+0f, -0x1.444568p-1f, -0x1.bb8984p-4f,
                      0x1.9b9d08p-6f, -0x1.1170e4p-8f, 0x1.c7da0ep-12f, -0x1.624f72p-16f);
  return with_sign(a > 0.921875f ? 1.0f - exp_ordinary(q) : fma(a, over_a, a), x);
}

// The share of a normal distribution below x, for what is multiplied by x: the error is absolute, 1.8e-7 at
// most, and nothing is left below -5.55, as of 1 + erf(x / sqrt(2)), which takes twice the time. 1/2 + x
// P(x^2) / Q(x^2).
inline f32v normal_share(f32v x) {
  f32v z = x * x;
  f32v p = polynomial(z, 0x1.98845p-2f, 0x1.176c14p-5f, 0x1.337b9ep-8f, 0x1.6730p-13f, 0x1.aa531ep-18f,
                      0x1.81906ap-26f);
  f32v q =
      polynomial(z, 1.0f, 0x1.02377cp-2f, 0x1.d7b0aap-6f, 0x1.f1a2fep-10f, 0x1.37d764p-14f, 0x1.3f112ep-20f);
  f32v share = at_most(1.0f, at_least(0.0f, x * p / q + 0.5f));
  return x >= 5.55f ? splat<f32v>(1.0f) : x <= -5.55f ? f32v{} : share;
}

// In double a plain formula is good enough for a float, but where it cancels.
template <class F, class... Vs>
inline f32v in_double(F f, Vs... x) {
  return narrow(f(widen(x).low...), f(widen(x).high...));
}
inline f32v log10(f32v x) {
  return in_double([](f64v x) { return log(x) * M_LOG10E; }, x);
}
inline f32v asinh(f32v x) {
  f32v y = in_double([](f64v a) { return log(a + sqrt(a * a + 1.0)); }, magnitude(x));
  return magnitude(x) < 0x1p-12f ? x : with_sign(y, x);
}
inline f32v acosh(f32v x) {
  f32v y = in_double([](f64v x) { return log(x + sqrt(x * x - 1.0)); }, x);
  return x < 1.0f ? splat<f32v>(NAN) : y;
}
inline f32v atanh(f32v x) {
  f32v y = in_double([](f64v x) { return log((1.0 + x) / (1.0 - x)) * 0.5; }, x);
  return magnitude(x) < 0x1p-12f ? x : y;
}
// asin of 0 <= a <= 1/2
inline f64v asin_small(f64v a) {
  f64v z = a * a;
  return fma(a * z,
             polynomial(z, 0x1.55554c3f9930ep-3, 0x1.33388cbf2509fp-4, 0x1.6cac3a06e423ap-5,
                        0x1.04a8a8c5bfbe3p-5, 0x1.d7afd80c5d758p-7, 0x1.33dd47a4170adp-5),
             a);
}
inline f32v asin(f32v x) {
  return in_double(
      [](f64v x) {
        f64v a = magnitude(x);
        f64v y = asin_small(a > 0.5 ? sqrt(0.5 - a * 0.5) : a);
        return with_sign(a > 0.5 ? M_PI_2 - y * 2.0 : y, x);
      },
      x);
}
inline f32v acos(f32v x) {
  return in_double(
      [](f64v x) {
        f64v a = magnitude(x);
        f64v y = asin_small(a > 0.5 ? sqrt(0.5 - a * 0.5) : a);
        y = a > 0.5 ? y * 2.0 : M_PI_2 - with_sign(y, x);
        return (x < -0.5) ? M_PI - y : y;
      },
      x);
}
inline f32v atan2(f32v y, f32v x) {
  return in_double(
      [](f64v y, f64v x) {
        f64v a = magnitude(y), b = magnitude(x), t = atan(a / b);
        t = a == b ? splat<f64v>(M_PI_4) : t;    // two infinities
        t = (a == 0.0) & (x == x) ? f64v{} : t;  // two zeros
        t = bits(x) < 0 ? M_PI - t : t;
        return with_sign(t, y);
      },
      y, x);
}
// log2(x) for positive normal x, to 35 bits.
inline f64v log2_precise(f64v f, f64v e) {
  f64v over_f =
      polynomial(f, 0x1.71547652a1e36p+0, -0x1.715476565e42dp-1, 0x1.ec709ebbe6558p-2, -0x1.7154709665685p-2,
                 0x1.277651dd710ffp-2, -0x1.ec72b5d7abfa6p-3, 0x1.a63f4c6b99064p-3, -0x1.7141738e5e332p-3,
                 0x1.4528ab9fe0d6p-3, -0x1.252eb04869418p-3, 0x1.2873dc4983f61p-3, -0x1.248cd371bddd8p-3,
                 0x1.3ceab432054afp-4);
  return fma(f, over_f, e);
}
// 2^(y log2 |x|), with the sign of x where y is odd. Zeros, infinities and NaN have rules of their own:
// libm's.
inline f32v pow(f32v x, f32v y) {
  f32v a = magnitude(x);
  auto [f, e] = reduce_log(a);
  auto exponent = [](f64v f, f64v e, f64v y) {
    return at_least(-300.0, at_most(300.0, y * log2_precise(f, e)));
  };
  f64v low = exponent(widen(f).low, widen(e).low, widen(y).low);
  f64v high = exponent(widen(f).high, widen(e).high, widen(y).high);
  auto n_low = whole_multiple(low, 1.0), n_high = whole_multiple(high, 1.0);
  f32v n = at_least(-151.0f, at_most(129.0f, narrow(n_low.n, n_high.n)));
  f32v result = times_any_power(exp2_reduced(narrow(low - n_low.n, high - n_high.n)), n);
  i32v whole = nearest(y) == y, odd = whole & (nearest(y * 0.5f) * 2.0f != y), negative = x < 0.0f;
  result = negative & odd ? -result : result;
  result = negative & ~whole ? splat<f32v>(NAN) : result;
  i32v special = ~(is_ordinary(a) & (magnitude(y) < INFINITY));
  if (any(special)) [[unlikely]] {
    result = each_where(
        special, result, [](float x, float y) { return ::powf(x, y); }, x, y);
  }
  return result;
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
