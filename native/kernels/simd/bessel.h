// The modified Bessel functions I of order 0 and 1 on vectors of float64, and the derivative of digamma. Read
// `scaled_i` and `unscaled_i`.
//
// Up to 8, I0(x) and 2 I1(x) / x are power series in (x / 2)^2, all of whose terms are positive; beyond,
// e^-x sqrt(x) I(x) is a polynomial in 16 / x - 1. All are interpolated at Chebyshev's points in mpmath, good
// to 1e-17, for floats (FLOAT) to 1e-10.
#pragma once
#include "libm.h"

namespace rl {
inline namespace RL_ISA {
namespace {

template <int ORDER, bool FLOAT>
inline f64v i_near(f64v a) {
  f64v q = a * a * 0.25;
  if constexpr (ORDER == 0 && FLOAT)
    return polynomial(q, 0x1.000000000671cp+0, 0x1.fffffffeefc8dp-1, 0x1.000000076f576p-2,
                      0x1.c71c7123e326bp-6, 0x1.c71c790a8b92cp-10, 0x1.2345365ed7919p-14,
                      0x1.02ea06747420cp-19, 0x1.5216f4b9d7d37p-25, 0x1.52c2e759c7227p-31,
                      0x1.07f989bbe74f1p-37, 0x1.6d39d7902e99bp-44, 0x1.ff5f71023dde2p-52,
                      0x1.2772a5231d6f6p-57);
  else if constexpr (ORDER == 0)
    return polynomial(q, 1.0, 1.0, 0x1.0000000000002p-2, 0x1.c71c71c71c6dfp-6, 0x1.c71c71c71cbe1p-10,
                      0x1.23456789a8318p-14, 0x1.02e85c08d260ap-19, 0x1.522a43f155552p-25,
                      0x1.522a444603fe2p-31, 0x1.0b312ee43b7c5p-37, 0x1.5601c7e411b36p-44,
                      0x1.69c76363ac35fp-51, 0x1.41b6c17a09391p-58, 0x1.e56f7ffb05c87p-66,
                      0x1.46a4446d3e276p-73, 0x1.31d00bad6ba1ap-81, 0x1.20d247d00eeebp-88);
  else if constexpr (FLOAT)
    return a * 0.5 *
           polynomial(q, 0x1.ffffffffd638ep-1, 0x1.00000002efc9ap-1, 0x1.5555550f717a7p-4,
                      0x1.c71c76dc3cb7bp-8, 0x1.6c16909d0c135p-12, 0x1.845eb21d0b466p-17,
                      0x1.27d58edd575fep-22, 0x1.52baffe65364ap-28, 0x1.291241e309bb4p-34,
                      0x1.c830370b9fc2dp-41, 0x1.5ffa5ba179b0dp-48, 0x1.bb5e9645db2e2p-54);
  else
    return a * 0.5 *
           polynomial(q, 1.0, 0x1.0000000000001p-1, 0x1.5555555555540p-4, 0x1.c71c71c71c9ecp-8,
                      0x1.6c16c16c13a93p-12, 0x1.845c8a0d26f80p-17, 0x1.27e4fb73f1ad7p-22,
                      0x1.522a443ba2a26p-28, 0x1.2c97552280795p-34, 0x1.ab8234c2c46fbp-41,
                      0x1.f17258b099a34p-48, 0x1.e290ec0d14f98p-55, 0x1.8a6faa072cdf9p-62,
                      0x1.1dc3a22d140b2p-69, 0x1.1ec8e2d9b0ddbp-77, 0x1.20de50ee937a2p-84);
}

template <int ORDER, bool FLOAT>
inline f64v i_far(f64v a) {
  f64v v = 16.0 / a - 1.0;
  if constexpr (ORDER == 0 && FLOAT)
    return polynomial(v, 0x1.9bd428ace466cp-2, 0x1.b87969ad8ea15p-9, 0x1.1daad75177365p-13,
                      0x1.75e8b706d3b8dp-17, 0x1.8cb8c8ec27089p-20, 0x1.3c4383e6b0d90p-22,
                      0x1.c67d5abdc5f50p-24, 0x1.a260057098b05p-25, 0x1.890ca334d7dd2p-30,
                      -0x1.0549af0deb682p-27);
  else if constexpr (ORDER == 0)
    return polynomial(
        v, 0x1.9bd428ad249a5p-2, 0x1.b87969bb93b75p-9, 0x1.1daa72b5e650cp-13, 0x1.75e5ee71edd14p-17,
        0x1.8e513a1d5e52bp-20, 0x1.3f49a6bcfc2d9p-22, 0x1.7d0f75812d9bcp-24, 0x1.51ced7b713adcp-25,
        0x1.7224b1828e507p-26, 0x1.03896efb09a41p-27, -0x1.ce768f00b5374p-28, -0x1.cc90f59ec1228p-27,
        -0x1.77cc956faaa2fp-28, 0x1.0317d4c7b215ap-27, 0x1.047454ffcb608p-27, -0x1.df1549cddfaf8p-29,
        -0x1.a9411c5b0ad08p-28, 0x1.9bbbfe31d81e9p-30, 0x1.0ab5ef575d285p-28, -0x1.31c908a5dd531p-31,
        -0x1.e8fd992032bedp-30, 0x1.42a55974d41b8p-33, 0x1.1ce14787c5bdep-31, -0x1.52109c25bd9ecp-36,
        -0x1.36e52c10032d7p-34);
  else if constexpr (FLOAT)
    return polynomial(v, 0x1.8ebe783ac82c6p-2, -0x1.3f79619513fb9p-7, -0x1.cbc5b8b9529cfp-13,
                      -0x1.f89f31bea253bp-17, -0x1.eadd4dc656c41p-20, -0x1.72c490a6947eep-22,
                      -0x1.fb0e5b3dc69f6p-24, -0x1.c9ef77019f9c2p-25, -0x1.4125acfc15804p-29,
                      0x1.0c324b2b14e6cp-27);
  else
    return polynomial(
        v, 0x1.8ebe783a84030p-2, -0x1.3f796198ee63fp-7, -0x1.cbc54df1e894cp-13, -0x1.f89c230446f74p-17,
        -0x1.ec8e107bd7eaap-20, -0x1.7613865ea6e9ap-22, -0x1.ad8d43e5d60bep-24, -0x1.727702ec186d3p-25,
        -0x1.9191ff33370adp-26, -0x1.21f47a4eb566bp-27, 0x1.ceff3cea7c3a4p-28, 0x1.e413f0678e137p-27,
        0x1.99d190fe908dap-28, -0x1.0c96c7afcb02cp-27, -0x1.0e2bb88351649p-27, 0x1.05656ba38c1b6p-28,
        0x1.aa440cf09ce30p-28, -0x1.11c9f66d690fcp-29, -0x1.01ef463d9c576p-28, 0x1.268bd450a314cp-30,
        0x1.c7aed1ee533f7p-30, -0x1.07d06c81c1d24p-31, -0x1.fff33f3b3e75ap-32, 0x1.37bea5c8dbcccp-33,
        0x1.0ddc7620a9205p-34, -0x1.5a29b473f1663p-36);
}

// e^-a I(a) for a >= 0
template <int ORDER, bool FLOAT>
inline f64v scaled_i(f64v a) {
  f64v y = i_near<ORDER, FLOAT>(a) * exp(-a);
  i64v far = a > 8.0;
  if (any(far)) y = far ? i_far<ORDER, FLOAT>(a) / sqrt(a) : y;
  return y;
}
// I(a) for a >= 0
template <int ORDER, bool FLOAT>
inline f64v unscaled_i(f64v a) {
  f64v y = i_near<ORDER, FLOAT>(a);
  i64v far = a > 8.0;
  if (any(far)) {
    f64v root = exp(a * 0.5);  // e^a alone would overflow too early
    y = far ? root * (i_far<ORDER, FLOAT>(a) / sqrt(a)) * root
            : y;  // NaN at infinity, as NumPy's and torch's
  }
  return y;
}

template <int ORDER, bool SCALED>
inline f64v bessel_i(f64v x) {
  f64v a = magnitude(x), y = SCALED ? scaled_i<ORDER, false>(a) : unscaled_i<ORDER, false>(a);
  return ORDER && any(x < 0.0) ? (x < 0.0 ? -y : y) : y;
}
template <int ORDER, bool SCALED>
inline f32v bessel_i(f32v x) {
  f32v y = in_double([](f64v a) { return SCALED ? scaled_i<ORDER, true>(a) : unscaled_i<ORDER, true>(a); },
                     magnitude(x));
  return ORDER && any(x < 0.0f) ? (x < 0.0f ? -y : y) : y;
}

// The sum of 1 / (x + k)^2 for x > 0: ten terms, two of which share a division, then Euler and Maclaurin's
// series for the rest.
inline f64v trigamma(f64v x) {
  f64v first{};
  for (int i = 0; i < 10; i += 2) {
    f64v low = x + double(i), next = low + 1.0, product = low * next;
    first += fma(low, low, next * next) / (product * product);
  }
  i64v small = x < 10.0;
  f64v y = 1.0 / (small ? x + 10.0 : x), z = y * y;
  f64v series = z * polynomial(z, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6);
  f64v result = fma(y, 0.5 * y + series, y) + (small ? first : f64v{});
  i64v hard = ~((x > 0x1p-250) & (x < 0x1p500));
  if (any(hard))
    result = each_where(
        hard, result, [](double x) { return rl::polygamma(1, x); }, x);
  return result;
}
inline f32v trigamma(f32v x) {
  return in_double([](f64v x) { return trigamma(x); }, x);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
