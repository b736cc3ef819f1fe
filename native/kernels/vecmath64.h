// Elementary functions on vectors of float64.
#pragma once
#include "simd/arithmetic.h"

namespace rl {
inline namespace RL_ISA {
namespace {

inline f64v exp(f64v x) { return each(::exp, x); }
inline f64v log(f64v x) { return each(::log, x); }
inline f64v sin(f64v x) { return each(::sin, x); }
inline f64v cos(f64v x) { return each(::cos, x); }

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
