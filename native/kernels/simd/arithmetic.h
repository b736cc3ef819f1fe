// The plain operations on anything an expression can see: a number, a vector of numbers, a complex number.
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

inline f32v magnitude(f32v x) { return from_bits(bits(x) & INT32_MAX); }
inline f64v magnitude(f64v x) { return from_bits(bits(x) & INT64_MAX); }
inline f32v hypot(f32v x, f32v y) {
  return each([](float x, float y) { return hypotf(x, y); }, x, y);
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

// Bits of `from`'s sign on the magnitude of x.
inline f32v with_sign(f32v x, f32v from) {
  return from_bits((bits(x) & INT32_MAX) | (bits(from) & INT32_MIN));
}
inline f64v with_sign(f64v x, f64v from) {
  return from_bits((bits(x) & INT64_MAX) | (bits(from) & INT64_MIN));
}

template <class X>
inline X constant(double value) {
  if constexpr (is_vector_v<X>) return splat<X>(scalar_t<X>(value));
  else return X(value);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
