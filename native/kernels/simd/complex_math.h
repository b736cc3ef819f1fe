// Elementary functions of complex numbers: C's, from libm.
#pragma once
#include "complex.h"

namespace rl {
inline namespace RL_ISA {
namespace {

inline Complex<float> from_c(_Complex float x) { return {__real__ x, __imag__ x}; }
inline Complex<double> from_c(_Complex double x) { return {__real__ x, __imag__ x}; }
inline _Complex float to_c(Complex<float> x) {
  _Complex float z;
  __real__ z = x.re;
  __imag__ z = x.im;
  return z;
}
inline _Complex double to_c(Complex<double> x) {
  _Complex double z;
  __real__ z = x.re;
  __imag__ z = x.im;
  return z;
}

template <class V, class F>
inline Complex<V> each_complex(Complex<V> x, F f) {
  Complex<V> result;
  for (int i = 0; i < int(VECTOR_BYTES / sizeof(scalar_t<V>)); i++) {
    Complex<scalar_t<V>> y = from_c(f(to_c(Complex<scalar_t<V>>{x.re[i], x.im[i]})));
    result.re[i] = y.re;
    result.im[i] = y.im;
  }
  return result;
}

#define RL_COMPLEX_FUNCTION(NAME)                                                     \
  inline Complex<f32v> NAME(Complex<f32v> x) {                                        \
    return each_complex(x, [](_Complex float z) { return __builtin_c##NAME##f(z); }); \
  }                                                                                   \
  inline Complex<f64v> NAME(Complex<f64v> x) {                                        \
    return each_complex(x, [](_Complex double z) { return __builtin_c##NAME(z); });   \
  }

RL_COMPLEX_FUNCTION(exp)
RL_COMPLEX_FUNCTION(log)
RL_COMPLEX_FUNCTION(sqrt)
RL_COMPLEX_FUNCTION(sin)
RL_COMPLEX_FUNCTION(cos)
RL_COMPLEX_FUNCTION(tan)
RL_COMPLEX_FUNCTION(asin)
RL_COMPLEX_FUNCTION(acos)
RL_COMPLEX_FUNCTION(atan)
RL_COMPLEX_FUNCTION(sinh)
RL_COMPLEX_FUNCTION(cosh)
RL_COMPLEX_FUNCTION(tanh)
RL_COMPLEX_FUNCTION(asinh)
RL_COMPLEX_FUNCTION(acosh)
RL_COMPLEX_FUNCTION(atanh)

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
