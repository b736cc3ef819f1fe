// Elementary functions of complex numbers: C's, from libm, and what is made of them.
#pragma once
#include "libm.h"

namespace rl {
inline namespace RL_ISA {
namespace {

inline _Complex float to_c(float re, float im) {
  _Complex float z;
  __real__ z = re;
  __imag__ z = im;
  return z;
}
inline _Complex double to_c(double re, double im) {
  _Complex double z;
  __real__ z = re;
  __imag__ z = im;
  return z;
}

template <class F, class V, class... Xs>
inline Complex<V> each_complex(F f, Complex<V> x, Xs... more) {
  Complex<V> result{};
#pragma GCC unroll 1
  for (int i = 0; i < int(VECTOR_BYTES / sizeof(scalar_t<V>)); i++) {
    auto y = f(to_c(x.re[i], x.im[i]), to_c(more.re[i], more.im[i])...);
    result.re[i] = __real__ y;
    result.im[i] = __imag__ y;
  }
  return result;
}

#define RL_COMPLEX_FUNCTION(NAME)                                                     \
  inline Complex<f32v> NAME(Complex<f32v> x) {                                        \
    return each_complex([](_Complex float z) { return __builtin_c##NAME##f(z); }, x); \
  }                                                                                   \
  inline Complex<f64v> NAME(Complex<f64v> x) {                                        \
    return each_complex([](_Complex double z) { return __builtin_c##NAME(z); }, x);   \
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

template <class V>
inline Complex<V> conj(Complex<V> x) {
  return {x.re, -x.im};
}
template <class V>
inline Complex<V> scaled(Complex<V> x, double by) {
  return {x.re * constant<V>(by), x.im * constant<V>(by)};
}
template <class V>
inline Complex<V> select(bits_t<V> condition, Complex<V> x, Complex<V> y) {
  return {condition ? x.re : y.re, condition ? x.im : y.im};
}

// On real numbers sgn is sign; on complex ones it is the direction, and 0 for 0.
template <class X>
inline X sgn(X x) {
  if constexpr (is_complex_number_v<X>) {
    auto length = absolute(x);
    X made{x.re / length + x.im * 0, x.im / length - x.re * 0};  // the zeros signed as in a complex quotient
    auto sum = made.re + made.im;  // an infinite half spoils the other, as in torch
    return select(length == 0, X{}, select(sum != sum, X{sum, sum}, made));
  } else {
    return sign(x);
  }
}

// Of zero the sign is lost, as in torch.
template <class X>
inline X reciprocal(X x) {
  X made = constant<X>(1) / x;
  if constexpr (is_complex_number_v<X>) {
    auto nan = x.im * 0 / (x.im * 0), infinite = 1 / magnitude(x.re * 0);
    made = select((x.re == 0) & (x.im == 0), X{infinite, nan}, made);
    made = select(is_nan(x.im), X{x.im, x.im}, made);
  }
  return made;
}

template <class V>
inline Complex<V> exp2(Complex<V> x) {
  return exp(scaled(x, M_LN2));
}
template <class V>
inline Complex<V> log2(Complex<V> x) {
  return scaled(log(x), M_LOG2E);
}
template <class V>
inline Complex<V> log10(Complex<V> x) {
  return scaled(log(x), M_LOG10E);
}
// Both keep the digits of a small x, which the plain formula would drown in the 1.
template <class V>
inline Complex<V> expm1(Complex<V> x) {
  V half = sin(x.im * constant<V>(0.5));
  return {expm1(x.re) * cos(x.im) - half * half * 2, exp(x.re) * sin(x.im)};
}
template <class V>
inline Complex<V> log1p(Complex<V> x) {
  V squares = x.re * (x.re + 2) + x.im * x.im;
  Complex<V> plain = log(Complex<V>{x.re + 1, x.im});
  plain.re = magnitude(squares) < constant<V>(0.5) ? log1p(squares) * constant<V>(0.5) : plain.re;
  plain.re = (x.re == 0) & (x.im == 0) ? x.re : plain.re;  // with its sign
  V sum = x.re + x.im;
  return select(is_nan(x.re) | is_nan(x.im), Complex<V>{sum, sum}, plain);
}

// Infinities and zeros included: what C makes of exp(y log x), which for 0^0 and 1^inf is NaN.
inline Complex<f32v> pow(Complex<f32v> x, Complex<f32v> y) {
  return each_complex([](_Complex float a, _Complex float b) { return __builtin_cpowf(a, b); }, x, y);
}
inline Complex<f64v> pow(Complex<f64v> x, Complex<f64v> y) {
  return each_complex([](_Complex double a, _Complex double b) { return __builtin_cpow(a, b); }, x, y);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
