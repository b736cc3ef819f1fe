// Functions that libm computes lane by lane: rarely used ones, or ones where it is hard to beat.
#pragma once
#include "arithmetic.h"

namespace rl {
inline namespace RL_ISA {
namespace {

#define RL_LIBM_F32(NAME)                                 \
  inline f32v NAME(f32v x) {                              \
    return each([](float x) { return ::NAME##f(x); }, x); \
  }
#define RL_LIBM_F64(NAME)                               \
  inline f64v NAME(f64v x) {                            \
    return each([](double x) { return ::NAME(x); }, x); \
  }

RL_LIBM_F64(exp)
RL_LIBM_F64(log)
RL_LIBM_F64(sin)
RL_LIBM_F64(cos)
RL_LIBM_F32(exp2)
RL_LIBM_F64(exp2) RL_LIBM_F32(expm1) RL_LIBM_F64(expm1) RL_LIBM_F32(log2) RL_LIBM_F64(log2) RL_LIBM_F32(log10)
    RL_LIBM_F64(log10) RL_LIBM_F32(log1p) RL_LIBM_F64(log1p) RL_LIBM_F32(tan) RL_LIBM_F64(tan)
        RL_LIBM_F32(asin) RL_LIBM_F64(asin) RL_LIBM_F32(acos) RL_LIBM_F64(acos) RL_LIBM_F32(atan)
            RL_LIBM_F64(atan) RL_LIBM_F32(sinh) RL_LIBM_F64(sinh) RL_LIBM_F32(cosh) RL_LIBM_F64(cosh)
                RL_LIBM_F32(tanh) RL_LIBM_F64(tanh) RL_LIBM_F32(asinh) RL_LIBM_F64(asinh) RL_LIBM_F32(acosh)
                    RL_LIBM_F64(acosh) RL_LIBM_F32(atanh) RL_LIBM_F64(atanh) RL_LIBM_F32(erf) RL_LIBM_F64(erf)
                        RL_LIBM_F32(erfc) RL_LIBM_F64(erfc)

    // lgamma_r, because lgamma writes a global variable.
    inline f32v lgamma(f32v x) {
  return each(
      [](float x) {
        int sign;
        return ::lgammaf_r(x, &sign);
      },
      x);
}
inline f64v lgamma(f64v x) {
  return each(
      [](double x) {
        int sign;
        return ::lgamma_r(x, &sign);
      },
      x);
}

inline f32v atan2(f32v y, f32v x) {
  return each([](float y, float x) { return ::atan2f(y, x); }, y, x);
}
inline f64v atan2(f64v y, f64v x) {
  return each([](double y, double x) { return ::atan2(y, x); }, y, x);
}
inline f32v pow(f32v x, f32v y) {
  return each([](float x, float y) { return ::powf(x, y); }, x, y);
}
inline f64v pow(f64v x, f64v y) {
  return each([](double x, double y) { return ::pow(x, y); }, x, y);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
