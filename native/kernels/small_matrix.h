// LU, its solutions and Cholesky for matrices of a few rows, where a call into LAPACK costs more than the
// work.
//
// Column-major and dense, pivoting and reporting as LAPACK's getrf, getrs and potrf do; `factor_lu`,
// `solve_lu` and `factor_cholesky` choose by size. A thousand 8 x 8 matrices: LU 0.18 ms, through getrf 0.49;
// the determinants of a thousand 16 x 16 ones 0.8 ms, through getrf 1.9.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "blocked_lu.h"
#include "lapack.h"

namespace rl {

// Rows up to which these loops factor faster, and up to which they solve faster.
constexpr int SMALL = 16, SMALL_SOLVE = 8;

template <class T>
inline real_t<T> pivot_size(T x) {
  return std::abs(x);
}
template <class T>
inline T pivot_size(std::complex<T> x) {
  return std::abs(x.real()) + std::abs(x.imag());
}

// a = L U with the rows exchanged as `pivots` says; the place of the first zero on U's diagonal, or 0.
template <class T>
int small_lu(int n, T* a, int* pivots) {
  int info = 0;
  for (int k = 0; k < n; k++) {
    T* column = a + k * n;
    int best = k;
    for (int i = k + 1; i < n; i++) {
      if (pivot_size(column[i]) > pivot_size(column[best])) best = i;
    }
    pivots[k] = best + 1;
    if (column[best] == T(0)) {
      if (!info) info = k + 1;
      continue;
    }
    if (best != k) {
      for (int j = 0; j < n; j++) std::swap(a[j * n + k], a[j * n + best]);
    }
    if (pivot_size(column[k]) >= std::numeric_limits<real_t<T>>::min()) {
      T inverse = T(1) / column[k];
      for (int i = k + 1; i < n; i++) column[i] *= inverse;
    } else {  // the reciprocal would overflow
      for (int i = k + 1; i < n; i++) column[i] /= column[k];
    }
    for (int j = k + 1; j < n; j++) {
      T factor = a[j * n + k];
      for (int i = k + 1; i < n; i++) a[j * n + i] -= factor * column[i];
    }
  }
  return info;
}

// b = A^-1 b for some columns at once, row by row: the compiler makes vectors of that. The sums are those of
// one column.
constexpr int SIDE_BY_SIDE = 4;
template <class T>
void solve_side_by_side(int n, const T* a, const int* pivots, const T* inverse, T* b) {
  T rows[SMALL_SOLVE][SIDE_BY_SIDE];
  for (int k = 0; k < n; k++)
    for (int l = 0; l < SIDE_BY_SIDE; l++) rows[k][l] = b[l * n + k];
  auto take = [&](T* from, const T* row, T factor) {
    for (int l = 0; l < SIDE_BY_SIDE; l++) from[l] -= row[l] * factor;
  };
  for (int k = 0; k < n; k++) std::swap(rows[k], rows[pivots[k] - 1]);
  for (int k = 0; k < n; k++)
    for (int i = k + 1; i < n; i++) take(rows[i], rows[k], a[k * n + i]);
  for (int k = n - 1; k >= 0; k--) {
    for (int l = 0; l < SIDE_BY_SIDE; l++) rows[k][l] *= inverse[k];
    for (int i = 0; i < k; i++) take(rows[i], rows[k], a[k * n + i]);
  }
  for (int k = 0; k < n; k++)
    for (int l = 0; l < SIDE_BY_SIDE; l++) b[l * n + k] = rows[k][l];
}

// b = A^-1 b, or A^-T b if `transposed`; n is at most SMALL_SOLVE.
template <class T>
void small_lu_solve(bool transposed, int n, int nrhs, const T* a, const int* pivots, T* b) {
  T inverse[SMALL_SOLVE];
  for (int k = 0; k < n; k++) inverse[k] = T(1) / a[k * n + k];
  int c = 0;
  if constexpr (std::is_floating_point_v<T>) {
    for (; !transposed && c + SIDE_BY_SIDE <= nrhs; c += SIDE_BY_SIDE, b += SIDE_BY_SIDE * n)
      solve_side_by_side(n, a, pivots, inverse, b);
  }
  for (; c < nrhs; c++, b += n) {
    if (!transposed) {
      for (int k = 0; k < n; k++) std::swap(b[k], b[pivots[k] - 1]);
      for (int k = 0; k < n; k++) {
        for (int i = k + 1; i < n; i++) b[i] -= b[k] * a[k * n + i];
      }
      for (int k = n - 1; k >= 0; k--) {
        b[k] *= inverse[k];
        for (int i = 0; i < k; i++) b[i] -= b[k] * a[k * n + i];
      }
    } else {
      for (int k = 0; k < n; k++) {
        for (int i = 0; i < k; i++) b[k] -= a[k * n + i] * b[i];
        b[k] *= inverse[k];
      }
      for (int k = n - 1; k >= 0; k--) {
        for (int i = k + 1; i < n; i++) b[k] -= a[k * n + i] * b[i];
      }
      for (int k = n - 1; k >= 0; k--) std::swap(b[k], b[pivots[k] - 1]);
    }
  }
}

// Whether small_lu_solve may be used: few rows, and no diagonal element whose reciprocal overflows.
template <class T>
bool solves_small(int n, const T* a) {
  if (n > SMALL_SOLVE) return false;
  for (int k = 0; k < n; k++) {
    if (!(pivot_size(a[k * n + k]) >= std::numeric_limits<real_t<T>>::min())) return false;
  }
  return true;
}

template <class T>
inline T conjugate(T x) {
  return x;
}
template <class T>
inline std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}

// The lower factor over the lower triangle of a; the order of the first minor that is not positive, or 0.
template <class T>
int small_cholesky(int n, T* a) {
  using R = real_t<T>;
  for (int k = 0; k < n; k++) {
    T* column = a + k * n;
    R d = std::real(column[k]);
    if (!(d > 0)) return k + 1;
    R root = std::sqrt(d), inverse = 1 / root;
    column[k] = root;
    for (int i = k + 1; i < n; i++) column[i] *= inverse;
    for (int j = k + 1; j < n; j++) {
      T factor = conjugate(column[j]);
      for (int i = j; i < n; i++) a[j * n + i] -= column[i] * factor;
    }
  }
  return 0;
}

template <class T>
void factor_lu(const Lapack<T>& l, int n, T* a, int* pivots, int* info) {
  if (n <= SMALL) {
    *info = small_lu(n, a, pivots);
    return;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (n >= BLOCKED) {
      *info = blocked_lu(l, n, n, a, n, pivots);
      return;
    }
  }
  l.getrf(&n, &n, a, &n, pivots, info);
}

// trans: 'N' or 'T'
template <class T>
void solve_lu(const Lapack<T>& l, char trans, int n, int nrhs, const T* a, const int* pivots, T* b) {
  if (nrhs <= 2 * SMALL_SOLVE && solves_small(n, a)) {
    small_lu_solve(trans == 'T', n, nrhs, a, pivots, b);
    return;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (n >= BLOCKED && nrhs >= BLOCKED) return blocked_lu_solve(l, trans, n, nrhs, a, n, pivots, b, n);
  }
  int info;
  l.getrs(&trans, &n, &nrhs, a, &n, pivots, b, &n, &info);
}

template <class T>
void factor_cholesky(const Lapack<T>& l, char uplo, int n, T* a, int* info) {
  if (n <= SMALL && uplo == 'L') {
    *info = small_cholesky(n, a);
    return;
  }
  l.potrf(&uplo, &n, a, &n, info);
  // OpenBLAS asks whether a pivot is below zero, which NaN is not.
  for (int k = 0; k < n && *info == 0; k++) {
    if (std::isnan(std::real(a[int64_t(k) * n + k]))) *info = k + 1;
  }
}

}  // namespace rl
