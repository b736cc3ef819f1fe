// Elementary functions on vectors of float64, in the manner of vecmath.h, which also states their errors.
//
// What is missing here (log2, tan, pow, ...) libm computes lane by lane: see simd/libm.h.
#pragma once
#include "simd/arithmetic.h"

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr double LN2_HIGH_64 = 0x1.62e42fefa38p-1, LN2_LOW_64 = 0x1.ef35793c7673p-45;

// The bits of x and n added (taken away) as unsigned numbers, which may wrap around: so may they where x is
// not what its function is for, as in a lane whose result is not used or memory that another thread writes.
inline f32v add_bits(f32v x, i32v n) { return (f32v)((u32v)x + (u32v)n); }
inline f64v add_bits(f64v x, i64v n) { return (f64v)((u64v)x + (u64v)n); }
inline f32v take_bits(f32v x, i32v n) { return (f32v)((u32v)x - (u32v)n); }
inline f64v take_bits(f64v x, i64v n) { return (f64v)((u64v)x - (u64v)n); }

// y 2^n, where `n` has n in its low bits: for y near 1 and a result that is a normal number; and for all
// others.
inline f64v times_power(f64v y, i64v n) { return add_bits(y, n << 52); }
inline f64v times_any_power(f64v y, f64v n) {
  auto half = whole_multiple(n, 0.5);
  f64v rest = n - half.n;
  return times_power(y, half.bits) * times_power(splat<f64v>(1.0), to_int(rest));
}

// x = r + low + n ln 2, where low is what r lost in rounding.
struct ExpReduced64 {
  f64v r, low;
  Whole<f64v> n;
};
inline ExpReduced64 reduce_exp(f64v x) {
  auto n = whole_multiple(x, 0x1.71547652b82fep+0);
  f64v exact = fma(n.n, splat<f64v>(-LN2_HIGH_64), x);
  f64v r = fma(n.n, splat<f64v>(-LN2_LOW_64), exact);
  return {r, fma(n.n, splat<f64v>(-LN2_LOW_64), exact - r), n};
}
// (e^r - 1 - r) / r^2 and e^(r + low) - 1, for |r| <= ln 2 / 2
inline f64v exp_tail(f64v r) {
  return polynomial(r, 0x1p-1, 0x1.5555555555559p-3, 0x1.555555555553fp-5, 0x1.111111110f6c4p-7,
                    0x1.6c16c16c1f0d1p-10, 0x1.a01a01afddce6p-13, 0x1.a01a017bb4477p-16,
                    0x1.71ddf8632736fp-19, 0x1.27e5363d6a0adp-22, 0x1.af5ea93cac157p-26,
                    0x1.1ee88fafef0b6p-29);
}
inline f64v expm1_reduced(f64v r, f64v low) { return r + fma(r * r, exp_tail(r), low); }

// e^x 2^shift, whatever x is.
[[gnu::noinline]] f64v exp_any(f64v x, double shift) {
  auto [r, low, n] = reduce_exp(at_least(-746.0, at_most(711.0, x)));
  return is_nan(x) ? x : times_any_power(expm1_reduced(r, low) + 1.0, n.n + shift);
}
// For |x| <= 708.
inline f64v exp_ordinary(f64v x) {
  auto [r, low, n] = reduce_exp(x);
  return times_power(expm1_reduced(r, low) + 1.0, n.bits);
}
inline f64v exp(f64v x) {
  if (!all(magnitude(x) <= 708.0)) [[unlikely]]
    return exp_any(x, 0);
  return exp_ordinary(x);
}

inline f64v exp2(f64v x) {
  auto n = whole_multiple(at_least(-1076.0, at_most(1025.0, x)), 1.0);
  f64v r = at_least(-1076.0, at_most(1025.0, x)) - n.n;
  return is_nan(x) ? x : times_any_power(expm1_reduced(r * M_LN2, f64v{}) + 1.0, n.n);
}

// 2^n (e^r - 1) + (2^n - 1), with half of 2^n, which cannot overflow.
inline f64v expm1(f64v x) {
  auto [r, low, n] = reduce_exp(at_least(-40.0, at_most(710.0, x)));
  f64v half_power = times_power(splat<f64v>(0.5), n.bits);
  f64v y = fma(half_power, expm1_reduced(r, low), half_power - 0.5) * 2.0;
  return magnitude(x) > 0x1p-54 ? y : x;  // also for NaN and -0
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); f = m - 1. Needs a normal, positive x.
struct LogReduced64 {
  f64v f, e;
};
inline LogReduced64 reduce_log(f64v x) {
  // e is taken from the bits of x over those of sqrt(1/2), moved up so that a logical shift will do
  i64v shifted = bits(add_bits(x, i64v{} + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd)));
  i64v e = (i64v)((u64v)shifted >> 52) - 1023;
  f64v m = take_bits(x, e << 52);
  return {m - 1.0, to_float(e)};
}
// e ln 2 + log(1 + f) + c for a small correction c, by way of s = f / (2 + f): log(1 + f) = 2 s + s^3 R(s^2)
inline f64v log_joined(f64v f, f64v e, f64v c) {
  f64v s = f / (f + 2.0), z = s * s, half_square = f * f * 0.5;
  f64v r = z * polynomial(z, 0x1.5555555555555p-1, 0x1.9999999999e03p-2, 0x1.249249242aef7p-2,
                          0x1.c71c725965036p-3, 0x1.745cde136d381p-3, 0x1.3b20b1aecff44p-3,
                          0x1.0f5c395c281d1p-3, 0x1.0f6859ea146acp-3);
  f64v low = fma(e, splat<f64v>(LN2_LOW_64), fma(s, half_square + r, c));
  return fma(e, splat<f64v>(LN2_HIGH_64), f - (half_square - low));
}
inline i64v is_ordinary(f64v x) { return (x >= 0x1p-1022) & (x < INFINITY); }

[[gnu::noinline]] f64v log_any(f64v x) {
  i64v small = x < 0x1p-1022;
  auto [f, e] = reduce_log(small ? x * 0x1p54 : x);
  f64v y = log_joined(f, small ? e - 54.0 : e, f64v{});
  y = x < INFINITY ? y : x;  // infinity and NaN
  y = x < 0.0 ? splat<f64v>(NAN) : y;
  return x == 0.0 ? splat<f64v>(-INFINITY) : y;
}
inline f64v log(f64v x) {
  if (!all(is_ordinary(x))) [[unlikely]]
    return log_any(x);
  auto [f, e] = reduce_log(x);
  return log_joined(f, e, f64v{});
}

// u = 1 + x as rounded; what was lost, relative to u, corrects the logarithm.
inline f64v log1p_ordinary(f64v x, f64v u) {
  auto [f, e] = reduce_log(u);
  f64v y = log_joined(f, e, (x - (u - 1.0)) / u);
  return x == 0.0 ? x : y;
}
[[gnu::noinline]] f64v log1p_any(f64v x) {
  f64v u = x + 1.0;
  return (u > 0.0) & (u < 0x1p60) ? log1p_ordinary(x, u) : log_any(u);
}
inline f64v log1p(f64v x) {
  f64v u = x + 1.0;
  if (!all((u > 0.0) & (u < 0x1p60))) [[unlikely]]
    return log1p_any(x);
  return log1p_ordinary(x, u);
}

// pi / 2 in three parts: good for |x| <= 2^20.
constexpr double TRIG_LIMIT_64 = 0x1p20;
struct TrigReduced64 {
  f64v r;
  i64v q;
};
inline TrigReduced64 reduce_trig(f64v x) {
  auto [n, q] = whole_multiple(x, 0x1.45f306dc9c883p-1);
  f64v r = fma(n, splat<f64v>(-0x1.921fb544p+0), x);
  r = fma(n, splat<f64v>(-0x1.0b4611a6p-34), r);
  return {fma(n, splat<f64v>(-0x1.3198a2e037073p-69), r), q};
}
inline f64v sin_polynomial(f64v r) {
  f64v z = r * r;
  f64v p = polynomial(z, -0x1.5555555555548p-3, 0x1.111111110f78fp-7, -0x1.a01a019bf57fap-13,
                      0x1.71de3560403e3p-19, -0x1.ae5e5472c1947p-26, 0x1.5d8dfe3872daep-33);
  return fma(r, fma(z, p, f64v{}), r);  // see the float version
}
inline f64v cos_polynomial(f64v r) {
  f64v z = r * r, half = z * 0.5, first = 1.0 - half;
  f64v tail = z * z *
              polynomial(z, 0x1.555555555554cp-5, -0x1.6c16c16c1514p-10, 0x1.a01a019cab77p-16,
                         -0x1.27e4f80535c32p-22, 0x1.1ee9e8920de6ep-29, -0x1.8facd2008ad7bp-37);
  return first + ((1.0 - first - half) + tail);
}
inline f64v sin_in_quadrant(f64v r, i64v q) {
  f64v y = (q << 63) < 0 ? cos_polynomial(r) : sin_polynomial(r);
  return from_bits(bits(y) ^ (q << 62 & INT64_MIN));
}
inline f64v sin(f64v x) {
  auto [r, q] = reduce_trig(x);
  f64v y = sin_in_quadrant(r, q);
  i64v large = magnitude(x) > TRIG_LIMIT_64;
  if (any(large)) [[unlikely]]
    y = each_where(
        large, y, [](auto x) { return ::sin(x); }, x);
  return y;
}
inline f64v cos(f64v x) {
  auto [r, q] = reduce_trig(x);
  f64v y = sin_in_quadrant(r, q + 1);
  i64v large = magnitude(x) > TRIG_LIMIT_64;
  if (any(large)) [[unlikely]]
    y = each_where(
        large, y, [](auto x) { return ::cos(x); }, x);
  return y;
}

// A polynomial up to 0.625, from there 1 - 2 / (e^2x + 1).
inline f64v tanh(f64v x) {
  f64v a = magnitude(x), z = a * a;
  f64v p = polynomial(z, -0x1.5555555555552p-2, 0x1.1111111110bf6p-3, -0x1.ba1ba1b9cdb02p-5,
                      0x1.664f487010948p-6, -0x1.226e32bc666cp-7, 0x1.d6d3579077b49p-9,
                      -0x1.7d9c13c117b76p-10, 0x1.350a8f1d5f30dp-11, -0x1.f109101f26eaap-13,
                      0x1.7ff9185e8dc5dp-14, -0x1.fa3ff06d733eep-16, 0x1.9521dc3ca13e9p-18);
  f64v e = exp_ordinary(at_most(44.0, a + a));
  return with_sign(a > 0.625 ? 1.0 - 2.0 / (e + 1.0) : fma(a * z, p, a), x);
}

// atan(t) - t for |t| up to tan(pi / 8)
inline f64v atan_tail(f64v t) {
  f64v z = t * t;
  return t * z *
         polynomial(z, -0x1.555555555553dp-2, 0x1.99999999957afp-3, -0x1.24924922a983p-3,
                    0x1.c71c70e4bb14cp-4, -0x1.745cf8b9bfac4p-4, 0x1.3b1116e2ee425p-4, -0x1.10eba0a5e8b6dp-4,
                    0x1.df0e06da4744fp-5, -0x1.9ccd501f63697p-5, 0x1.37c87755af149p-5, -0x1.254e9ed09a18ap-6);
}
// Above tan(3 pi / 8): pi / 2 - atan(1 / x). Above tan(pi / 8): pi / 4 + atan((x - 1) / (x + 1)).
inline f64v atan(f64v x) {
  f64v a = magnitude(x);
  i64v large = a > 2.414213562373095, middle = a > 0.41421356237309503;
  f64v over = large ? splat<f64v>(-1.0) : middle ? a - 1.0 : a;
  f64v under = large ? a : middle ? a + 1.0 : splat<f64v>(1.0);
  f64v t = over / under;
  f64v base = large ? splat<f64v>(M_PI_2) : middle ? splat<f64v>(M_PI_4) : f64v{};
  f64v base_low = large    ? splat<f64v>(0x1.1a62633145c07p-54)
                  : middle ? splat<f64v>(0x1.1a62633145c07p-55)
                           : f64v{};
  return with_sign(base + (t + (atan_tail(t) + base_low)), x);
}

// erf(x) / x - 1, of z = x^2 up to 1
inline f64v erf_over_x(f64v z) {
  return polynomial(z, 0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b2p-4,
                    -0x1.b82ce31284997p-6, 0x1.565bcd0db023ep-8, -0x1.c02db3d8ebba6p-11,
                    0x1.f9a321a0fd46fp-14, -0x1.f4d1df374fe0ep-17, 0x1.b9def188d914ep-20,
                    -0x1.5f1d362b1e7acp-23, 0x1.f7a40cbc5e305p-27, -0x1.386ab22b8dcaep-30,
                    0x1.0579881fba2d5p-34);
}
// x P(x^2) up to 1, from there 1 - exp(Q(x)) with Q = log(erfc).
inline f64v erf(f64v x) {
  f64v a = magnitude(x), over_a = erf_over_x(a * a);
  f64v limited = at_most(5.93, a);
  f64v q =
      polynomial(limited, -0x1.81ce81ecac109p-23, -0x1.20dd562d31f09p+0, -0x1.45f42b65f66fp-1,
                 -0x1.a4da4c1bb33aap-4, 0x1.3893899a5152bp-6, 0x1.2621b8b00b319p-12, -0x1.cfbcf8504c10bp-10,
                 0x1.502b2c3929495p-11, -0x1.781b3aa86cd37p-15, -0x1.271bb639b5d8ap-14, 0x1.79c5da393d944p-15,
                 -0x1.1509a555e78d1p-16, 0x1.225c27888c3dfp-18, -0x1.c89bceda8bceap-21, 0x1.0dec4ad31626fp-23,
                 -0x1.d428c42c92969p-27, 0x1.19e89f21f448ap-30, -0x1.a5cedfe034acp-35, 0x1.27662f6805f08p-40);
  return with_sign(a > 1.0 ? 1.0 - exp_ordinary(q) : fma(a, over_a, a), x);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
