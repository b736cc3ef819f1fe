// Complex numbers for kernels: std::complex's layout without its templates, whose weak symbols would let one
// instruction set's code replace the other's at link time, and with torch's arithmetic.
//
// Complex<float> is an element in memory. Expressions see Complex<f32v>: a vector of real and one of
// imaginary parts, taken apart by load and joined by store, so that the formulas below serve both.
#pragma once
#include "vector.h"

namespace rl {
inline namespace RL_ISA {
namespace {

template <class T>
struct Complex {
  T re, im;
};

template <class T>
Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
Complex<T> operator-(Complex<T> a) {
  return {-a.re, -a.im};
}
template <class T>
auto operator==(Complex<T> a, Complex<T> b) {
  return (a.re == b.re) & (a.im == b.im);
}
template <class T>
auto operator!=(Complex<T> a, Complex<T> b) {
  return (a.re != b.re) | (a.im != b.im);
}

// The schoolbook product: no recovery of infinities from NaN, as C's Annex G has it and torch has not.
template <class T>
Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// Smith's quotient: by way of the ratio of the divisor's smaller part to its larger one, so that no square
// overflows.
template <class T>
Complex<T> operator/(Complex<T> a, Complex<T> b) {
  T re = b.re < 0 ? -b.re : b.re, im = b.im < 0 ? -b.im : b.im;
  auto swap = re < im;
  T larger = swap ? b.im : b.re, smaller = swap ? b.re : b.im;
  T ratio = smaller / larger, divisor = larger + smaller * ratio;
  ratio = larger == 0 ? T{} : ratio;  // division by zero gives infinities, not only NaN
  divisor = larger == 0 ? larger : divisor;
  T first = swap ? a.im : a.re, second = swap ? a.re : a.im, cross = second - first * ratio;
  return {(first + second * ratio) / divisor, (swap ? -cross : cross) / divisor};
}

template <class T>
struct Lane<Complex<T>> {
  using type = Complex<lane_t<T>>;
};

// Every second lane of two vectors, from lane FIRST on; and the lanes of two vectors in turn, from half HALF
// on.
template <int FIRST, class V, int... I>
inline V every_second(V a, V b, std::integer_sequence<int, I...>) {
  return shuffled<(2 * I + FIRST)...>(a, b);
}
template <int HALF, class V, int... I>
inline V in_turn(V a, V b, std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  return shuffled<(I / 2 + I % 2 * n + HALF * (n / 2))...>(a, b);
}

template <class T>
inline Complex<lane_t<T>> load(const Complex<T>* p) {
  constexpr auto lanes = std::make_integer_sequence<int, lanes_v<T>>{};
  const T* parts = reinterpret_cast<const T*>(p);
  auto a = load(parts), b = load(parts + lanes_v<T>);
  return {every_second<0>(a, b, lanes), every_second<1>(a, b, lanes)};
}
template <class T>
inline void store(Complex<T>* p, Complex<lane_t<T>> v) {
  constexpr auto lanes = std::make_integer_sequence<int, lanes_v<T>>{};
  T* parts = reinterpret_cast<T*>(p);
  store(parts, in_turn<0>(v.re, v.im, lanes));
  store(parts + lanes_v<T>, in_turn<1>(v.re, v.im, lanes));
}

template <class T>
constexpr bool is_complex_number_v = false;
template <class T>
constexpr bool is_complex_number_v<Complex<T>> = true;
template <class T>
constexpr int lanes_v<Complex<T>> = lanes_v<T>;

// What an element of each dtype is to the loops, in the order of DType.
template <int DTYPE>
struct Element;
template <>
struct Element<0> {
  using type = uint8_t;
};
template <>
struct Element<1> {
  using type = int8_t;
};
template <>
struct Element<2> {
  using type = int16_t;
};
template <>
struct Element<3> {
  using type = int32_t;
};
template <>
struct Element<4> {
  using type = int64_t;
};
template <>
struct Element<5> {
  using type = Half;
};
template <>
struct Element<6> {
  using type = float;
};
template <>
struct Element<7> {
  using type = double;
};
template <>
struct Element<8> {
  using type = Complex<float>;
};
template <>
struct Element<9> {
  using type = Complex<double>;
};
template <>
struct Element<10> {
  using type = bool;
};
template <>
struct Element<11> {
  using type = BFloat16;
};
template <int DTYPE>
using element_t = typename Element<DTYPE>::type;

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
