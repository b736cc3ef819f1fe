// QR for matrices of a few rows, where a call into LAPACK costs more than the work: `small_qr` is its geqrf,
// `small_reflections` its orgqr, with the same signs and scales. Column-major and dense.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "../tensor/dtype.h"
#include "lapack.h"

namespace rl {

constexpr int SMALL_QR = 32;  // rows and columns up to which these loops are faster

template <class T>
inline T conjugated(T x) {
  if constexpr (is_complex_v<T>) return std::conj(x);
  else return x;
}

// The sum of conj(x[i]) y[i], four terms side by side.
template <class T>
inline T inner_product(int n, const T* x, const T* y) {
  T sums[4] = {};
  int i = 0;
  for (; i + 4 <= n; i += 4)
    for (int l = 0; l < 4; l++) sums[l] += conjugated(x[i + l]) * y[i + l];
  for (; i < n; i++) sums[0] += conjugated(x[i]) * y[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The Euclidean norm, also where squares leave the range.
template <class T>
inline double safe_norm(int n, const T* x) {
  auto squares = [&](double scale) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      double re = double(std::real(x[i])) * scale, im = double(std::imag(x[i])) * scale;
      sum += is_complex_v<T> ? re * re + im * im : re * re;
    }
    return sum;
  };
  double sum = squares(1);
  if (!std::is_same_v<real_t<T>, double> || (sum > 1e-280 && sum < 1e290) || sum != sum)
    return std::sqrt(sum);
  double largest = 0;
  for (int i = 0; i < n; i++)
    largest = std::max({largest, std::abs(double(std::real(x[i]))), std::abs(double(std::imag(x[i])))});
  if (largest == 0 || largest > std::numeric_limits<double>::max()) return largest;
  double power = std::ldexp(1, -std::ilogb(largest) / 2);  // in two steps: a reciprocal may overflow
  sum = 0;
  for (int i = 0; i < n; i++) {
    double re = double(std::real(x[i])) * power * power, im = double(std::imag(x[i])) * power * power;
    sum += re * re + im * im;
  }
  return std::sqrt(sum) / power / power;
}

// Turns the column x of n elements into (beta, v[1...]): H = 1 - tau v v^H with v[0] = 1 makes beta of it.
// Rounded where LAPACK rounds: what is left of a matrix of lower rank, which is rounding alone, is then
// alike.
template <class T>
T make_reflector(int n, T* x) {
  using R = real_t<T>;
  R rest = R(safe_norm(n - 1, x + 1));
  const T alpha = x[0];
  if (rest == 0 && std::imag(alpha) == 0) return T(0);
  constexpr R TINY = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
  double whole = double(std::real(alpha));
  if constexpr (is_complex_v<T>) whole = std::hypot(whole, double(std::imag(alpha)));
  R length = R(std::hypot(whole, double(rest)));
  if (length < TINY) {  // denormal numbers: scaled up, their reflector is as exact as any other
    for (int i = 0; i < n; i++) x[i] *= 1 / TINY;
    T tau = make_reflector(n, x);
    x[0] *= TINY;
    return tau;
  }
  R beta = std::signbit(std::real(alpha)) ? length : -length;
  T inverse = T(1) / (alpha - beta);
  for (int i = 1; i < n; i++) x[i] *= inverse;
  x[0] = T(beta);
  return (T(beta) - alpha) / beta;
}

// y -= factor (v^H y) v with v[0] = 1
template <class T>
inline void reflect_column(int n, const T* v, T factor, T* y) {
  T amount = factor * (y[0] + inner_product(n - 1, v + 1, y + 1));
  y[0] -= amount;
  for (int i = 1; i < n; i++) y[i] -= amount * v[i];
}

template <class T>
void small_qr(int m, int n, T* a, T* tau) {
  for (int k = 0; k < std::min(m, n); k++) {
    T* column = a + k * m + k;
    tau[k] = make_reflector(m - k, column);
    if (tau[k] == T(0)) continue;
    for (int j = k + 1; j < n; j++) reflect_column(m - k, column, conjugated(tau[k]), a + j * m + k);
  }
}

// Overwrites k reflectors in the m x n matrix a by the first n columns of their product.
template <class T>
void small_reflections(int m, int n, int k, T* a, const T* tau) {
  for (int j = k; j < n; j++) {
    std::fill(a + j * m, a + (j + 1) * m, T(0));
    a[j * m + j] = T(1);
  }
  for (int i = k - 1; i >= 0; i--) {
    T* column = a + i * m + i;
    for (int j = i + 1; j < n; j++) reflect_column(m - i, column, tau[i], a + j * m + i);
    for (int r = 1; r < m - i; r++) column[r] *= -tau[i];
    column[0] = T(1) - tau[i];
    std::fill(a + i * m, column, T(0));
  }
}

}  // namespace rl
