// Division with a remainder, of integers and of floating numbers.
//
// Integers never trap: a zero divisor is reported and gives 0, and dividing the smallest number by -1 wraps
// around.
#pragma once
#include "arithmetic.h"

namespace rl {
inline namespace RL_ISA {
namespace {

template <class T>
inline T quotient(T x, T y, bool& by_zero) {
  if (y == 0) {
    by_zero = true;
    return 0;
  }
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return negate(x);
  }
  return T(x / y);
}

template <class T>
inline T truncated_remainder(T x, T y, bool& by_zero) {
  if (y == 0) {
    by_zero = true;
    return 0;
  }
  if constexpr (std::is_signed_v<T>) {
    if (y == T(-1)) return 0;
  }
  return T(x % y);
}

inline float fmod_number(float x, float y) { return fmodf(x, y); }
inline double fmod_number(double x, double y) { return ::fmod(x, y); }

// While the quotient is small, rounding makes its whole part wrong by at most one too many, and x - q y is a
// number that a fused operation gives exactly. Large quotients, zero and infinite divisors are left to libm.
template <class V>
inline V fmod_vector(V x, V y) {
#if defined(__AVX2__)
  constexpr scalar_t<V> LARGEST = sizeof(scalar_t<V>) == 4 ? 0x1p22 : 0x1p51;
  V a = magnitude(x), b = magnitude(y), quotient = a / b;
  V r = fma(-trunc(quotient), b, a);
  r = with_sign(r < 0 ? r + b : r, x);
  auto hard = ~((quotient < LARGEST) & (b < INFINITY));
  if (any(hard)) [[unlikely]]
    r = each_where(
        hard, r, [](auto x, auto y) { return fmod_number(x, y); }, x, y);
  return r;
#else
  return each([](auto x, auto y) { return fmod_number(x, y); }, x, y);
#endif
}
inline f32v fmod(f32v x, f32v y) { return fmod_vector(x, y); }
inline f64v fmod(f64v x, f64v y) { return fmod_vector(x, y); }

template <class X>
inline X fmod(X x, X y, bool& by_zero) {
  if constexpr (is_vector_v<X>) return fmod(x, y);
  else return truncated_remainder(x, y, by_zero);
}

// The remainder takes the sign of the divisor, as Python's % does.
template <class X>
inline X remainder(X x, X y, bool& by_zero) {
  X r = fmod(x, y, by_zero);
  if constexpr (is_vector_v<X>) return (r != 0) & ((y < 0) ^ (r < 0)) ? r + y : r;
  else return r != 0 && (y < 0) != (r < 0) ? add(r, y) : r;
}

// Python's //: exact where the quotient is not, hence by way of the remainder.
template <class X>
inline X floor_divide(X x, X y, bool& by_zero) {
  X r = fmod(x, y, by_zero);
  if constexpr (is_vector_v<X>) {
    X q = (x - r) / y;
    q = (r != 0) & ((y < 0) ^ (r < 0)) ? q - 1 : q;
    X whole = floor(q);
    whole = q - whole > constant<X>(0.5) ? whole + 1 : whole;
    whole = q != 0 ? whole : with_sign(X{}, x / y);
    return y == 0 ? x / y : whole;
  } else {
    X q = quotient(x, y, by_zero);
    return r != 0 && (y < 0) != (r < 0) ? X(q - 1) : q;
  }
}

template <class X>
inline X divide_truncating(X x, X y, bool& by_zero) {
  if constexpr (is_vector_v<X>) return trunc(x / y);
  else return quotient(x, y, by_zero);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
