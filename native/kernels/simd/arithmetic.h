// The plain operations on anything an expression can see: a number, a vector of numbers, a complex vector.
//
// Integers wrap around. They are added and multiplied as unsigned numbers, since overflow of signed ones is
// undefined.
#pragma once
#include "complex.h"

namespace rl {
inline namespace RL_ISA {
namespace {

template <class T>
constexpr bool is_integer_v = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// The unsigned type to compute in: at least 32 bits, so that C++ does not promote it back to a signed int.
template <class T>
using wrapping_t = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class X>
inline X constant(double value) {
  if constexpr (is_vector_v<X>) return splat<X>(scalar_t<X>(value));
  else if constexpr (is_complex_number_v<X>)
    return {constant<decltype(X::re)>(value), constant<decltype(X::re)>(0)};
  else return X(value);
}

template <class X>
inline X add(X x, X y) {
  if constexpr (is_integer_v<X>) return X(wrapping_t<X>(x) + wrapping_t<X>(y));
  else if constexpr (std::is_same_v<X, bool>) return x | y;
  else return x + y;
}
template <class X>
inline X subtract(X x, X y) {
  if constexpr (is_integer_v<X>) return X(wrapping_t<X>(x) - wrapping_t<X>(y));
  else return x - y;
}
// torch multiplies what it adds by alpha = 1 + 0i: an infinite part leaves NaN in the other one.
template <class X>
inline X times_one(X x) {
  if constexpr (is_complex_number_v<X>) return X{x.re - x.im * 0, x.re * 0 + x.im};
  else return x;
}
template <class X>
inline X multiply(X x, X y) {
  if constexpr (is_integer_v<X>) return X(wrapping_t<X>(x) * wrapping_t<X>(y));
  else if constexpr (std::is_same_v<X, bool>) return x & y;
  else return x * y;
}
template <class X>
inline X negate(X x) {
  if constexpr (is_integer_v<X>) return X(0 - wrapping_t<X>(x));
  else return -x;
}
// x + y z, rounded once where the processor can: torch's vector code does the same.
template <class X>
inline X add_product(X x, X y, X z) {
  if constexpr (is_vector_v<X>) return fma(y, z, x);
  else return add(x, multiply(y, z));
}

inline f32v magnitude(f32v x) { return from_bits(bits(x) & INT32_MAX); }
inline f64v magnitude(f64v x) { return from_bits(bits(x) & INT64_MAX); }
// The sign of `from` on the magnitude of x.
inline f32v with_sign(f32v x, f32v from) {
  return from_bits((bits(x) & INT32_MAX) | (bits(from) & INT32_MIN));
}
inline f64v with_sign(f64v x, f64v from) {
  return from_bits((bits(x) & INT64_MAX) | (bits(from) & INT64_MIN));
}

// Where an expression is a condition: a mask for vectors, a bool for numbers.
template <class X>
inline auto nonzero(X x) {
  if constexpr (is_complex_number_v<X>) return (x.re != 0) | (x.im != 0);
  else return x != 0;
}
template <class X>
inline auto is_nan(X x) {
  if constexpr (is_complex_number_v<X>) return (x.re != x.re) | (x.im != x.im);
  else return x != x;
}
template <class X>
inline auto is_infinite(X x) {
  if constexpr (is_complex_number_v<X>) return is_infinite(x.re) | is_infinite(x.im);
  else if constexpr (is_vector_v<X>) return magnitude(x) == INFINITY;
  else return x != x;
}
template <class X>
inline auto is_finite(X x) {
  if constexpr (is_complex_number_v<X>) return is_finite(x.re) & is_finite(x.im);
  else if constexpr (is_vector_v<X>) return magnitude(x) < INFINITY;
  else return x == x;
}
template <class X>
inline auto sign_bit(X x) {
  if constexpr (is_vector_v<X>) return bits(x) < 0;
  else if constexpr (std::is_same_v<X, bool>) return false;
  else return x < 0;
}

// NaN wins; of equal numbers (0 and -0) the first.
template <class X>
inline X maximum(X x, X y) {
  return is_nan(y) ? y : x < y ? y : x;
}
template <class X>
inline X minimum(X x, X y) {
  return is_nan(y) ? y : x > y ? y : x;
}
template <class X>
inline X clamp(X x, X low, X high) {
  return minimum(maximum(x, low), high);
}

// Squares of floats neither overflow nor vanish in double.
inline f32v hypot(f32v x, f32v y) {
  auto [x_low, x_high] = widen(x);
  auto [y_low, y_high] = widen(y);
  f32v result = narrow(sqrt(x_low * x_low + y_low * y_low), sqrt(x_high * x_high + y_high * y_high));
  return is_infinite(x) | is_infinite(y) ? splat<f32v>(INFINITY) : result;
}
inline f64v hypot(f64v x, f64v y) {
  return each([](double x, double y) { return ::hypot(x, y); }, x, y);
}

template <class X>
inline auto absolute(X x) {
  if constexpr (is_vector_v<X>) return magnitude(x);
  else if constexpr (is_complex_number_v<X>) return hypot(x.re, x.im);
  else if constexpr (std::is_signed_v<X>) return x < 0 ? negate(x) : x;
  else return x;
}

template <class X>
inline X sign(X x) {
  if constexpr (std::is_same_v<X, bool>) return x;
  else return x > 0 ? constant<X>(1) : x < 0 ? constant<X>(-1) : X{};
}

// Rounding to whole numbers. Beyond 2^23 (2^52) every number is whole.
inline f32v trunc(f32v x) {
#if defined(__AVX512F__)
  return (f32v)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (f32v)_mm256_round_ps((__m256)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  f32v small = with_sign(to_float(__builtin_convertvector(x, i32v)), x);
  return magnitude(x) < 0x1p23f ? small : x;
#endif
}
inline f64v trunc(f64v x) {
#if defined(__AVX512F__)
  return (f64v)_mm512_roundscale_pd((__m512d)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (f64v)_mm256_round_pd((__m256d)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  f64v rounded = nearest(x);
  rounded = magnitude(rounded) > magnitude(x) ? rounded - with_sign(splat<f64v>(1), x) : rounded;
  return with_sign(rounded, x);
#endif
}
template <class X>
inline X floor(X x) {
  if constexpr (!is_vector_v<X>) return x;
  else {
    X whole = trunc(x);
    return whole > x ? whole - 1 : whole;
  }
}
template <class X>
inline X ceil(X x) {
  if constexpr (!is_vector_v<X>) return x;
  else {
    X whole = trunc(x);
    return whole < x ? whole + 1 : whole;
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
