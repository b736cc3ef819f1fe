// Elementary functions on vectors of float32, without branches.
//
// Each is a range reduction and a polynomial fitted to the reduced range (minimax, coefficients rounded to
// float), right for every float: subnormals, infinities, NaN. The number behind a function is its largest
// error in units in the last place, over all 2^32 floats, AVX2 / baseline; correct rounding would be 0.5.
#pragma once
#include "simd/arithmetic.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// x * 2^n for whole n in [-252, 252], in two steps so that 2^n itself need not be a normal number.
inline f32v scale(f32v x, i32v n) {
  i32v half = n >> 1;
  return x * from_bits((half + 127) << 23) * from_bits((n - half + 127) << 23);
}

// ln 2 in two parts; the first has so few bits that its product with a small whole number is exact.
constexpr float LN2_HIGH = 0x1.63p-1f, LN2_LOW = -0x1.bd0106p-13f;

// n = round(x / ln 2) and r = x - n ln 2.
struct ExpReduced {
  f32v r, n;
};
inline ExpReduced reduce_exp(f32v x) {
  f32v n = nearest(x * 0x1.715476p+0f);
  f32v r = fma(n, splat<f32v>(-LN2_HIGH), x);
  return {fma(n, splat<f32v>(-LN2_LOW), r), n};
}
// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2
inline f32v exp_tail(f32v r) {
  return polynomial(r, 0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f4p-5f, 0x1.123a6cp-7f, 0x1.6a2364p-10f);
}

inline f32v exp(f32v x) {
  // Beyond these limits the result is 0 or infinity anyway, and n would leave the range of `scale`.
  f32v limited = x < -104.0f ? splat<f32v>(-104.0f) : x > 89.0f ? splat<f32v>(89.0f) : x;
  auto [r, n] = reduce_exp(limited);
  f32v y = fma(r * r, exp_tail(r), r) + 1.0f;
  return x == x ? scale(y, to_int(n)) : x;
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); f = m - 1. Needs 0 < x < infinity.
struct LogReduced {
  f32v f, e;
};
inline LogReduced reduce_log(f32v x) {
  i32v small = x < 0x1p-126f;
  f32v normal = small ? x * 0x1p24f : x;
  i32v shifted = bits(normal) - 0x3f3504f3;  // bits of sqrt(1/2)
  i32v e = shifted >> 23;
  f32v m = from_bits(bits(normal) - (e << 23));
  return {m - 1.0f, to_float(e) - (small ? splat<f32v>(24.0f) : f32v{})};
}
// log(1 + f) - f + f^2 / 2 on the reduced range
inline f32v log_tail(f32v f) {
  return f * f * f *
         polynomial(f, 0x1.555548p-2f, -0x1.000006p-2f, 0x1.99a4cap-3f, -0x1.555c5cp-3f, 0x1.2335bp-3f,
                    -0x1.fc1d46p-4f, 0x1.e70714p-4f, -0x1.de6608p-4f, 0x1.145734p-4f);
}
// log's values outside (0, infinity), where `y` is its value inside.
inline f32v log_edges(f32v x, f32v y) {
  y = x < INFINITY ? y : x;  // infinity and NaN
  y = x < 0.0f ? splat<f32v>(NAN) : y;
  return x == 0.0f ? splat<f32v>(-INFINITY) : y;
}

inline f32v log(f32v x) {
  auto [f, e] = reduce_log(x);
  f32v low = fma(e, splat<f32v>(LN2_LOW), fma(f * f, splat<f32v>(-0.5f), log_tail(f)));
  return log_edges(x, fma(e, splat<f32v>(LN2_HIGH), f + low));
}

// x = r + q pi / 2 with |r| a little over pi / 4 at most. The subtraction cancels, so it happens in double,
// with pi / 2 in two parts. Good for |x| <= 2^17; what lies beyond is rare and goes to libm.
constexpr float TRIG_LIMIT = 0x1p17f;
struct TrigReduced {
  f32v r;
  i32v q;
};
inline TrigReduced reduce_trig(f32v x) {
  f32v n = nearest(x * 0x1.45f306p-1f);
  auto [x_low, x_high] = widen(x);
  auto [n_low, n_high] = widen(n);
  f64v first = splat<f64v>(-0x1.921fb544p+0), second = splat<f64v>(-0x1.0b4611a626331p-34);
  f64v low = fma(n_low, second, fma(n_low, first, x_low));
  f64v high = fma(n_high, second, fma(n_high, first, x_high));
  return {narrow(low, high), to_int(n)};
}
inline f32v sin_polynomial(f32v r) {
  f32v z = r * r;
  return fma(r * z, polynomial(z, -0x1.555546p-3f, 0x1.11073ap-7f, -0x1.994386p-13f), r);
}
inline f32v cos_polynomial(f32v r) {
  f32v z = r * r;
  return fma(z * z, polynomial(z, 0x1.55554ap-5f, -0x1.6c0c8ap-10f, 0x1.9a020ap-16f),
             fma(z, splat<f32v>(-0.5f), splat<f32v>(1.0f)));
}
// The function that is sin at quadrant 0, cos at quadrant 1.
inline f32v sin_in_quadrant(f32v r, i32v q) {
  f32v y = (q & 1) != 0 ? cos_polynomial(r) : sin_polynomial(r);
  return from_bits(bits(y) ^ (q << 30 & INT32_MIN));
}

inline f32v sin(f32v x) {
  if (any(magnitude(x) > TRIG_LIMIT)) [[unlikely]]
    return each(sinf, x);
  auto [r, q] = reduce_trig(x);
  return sin_in_quadrant(r, q);
}
inline f32v cos(f32v x) {
  if (any(magnitude(x) > TRIG_LIMIT)) [[unlikely]]
    return each(cosf, x);
  auto [r, q] = reduce_trig(x);
  return sin_in_quadrant(r, q + 1);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
