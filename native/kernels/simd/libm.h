// Functions that libm computes lane by lane: rarely used ones, or ones where it is hard to beat.
#pragma once
#include "../vecmath.h"
#include "../vecmath64_parts.h"

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

#if !defined(__FMA__)  // see vecmath64_parts.h
RL_LIBM_F64(log2)
RL_LIBM_F64(log10)
RL_LIBM_F64(tan)
RL_LIBM_F64(asin)
RL_LIBM_F64(acos)
RL_LIBM_F64(sinh)
RL_LIBM_F64(cosh)
RL_LIBM_F64(atanh)
RL_LIBM_F64(erfc)
inline f64v atan2(f64v y, f64v x) {
  return each([](double y, double x) { return ::atan2(y, x); }, y, x);
}
#endif
RL_LIBM_F64(asinh)
RL_LIBM_F64(acosh)

inline f64v pow(f64v x, f64v y) {
  return each([](double x, double y) { return ::pow(x, y); }, x, y);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
