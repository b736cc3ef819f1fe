// The recursions of blocked_lu.h. Start at `blocked_lu`. All matrices are column-major.
#include "blocked_lu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "elementwise.h"
#include "matmul.h"
#include "triangle.h"

namespace rl {
namespace {

constexpr int PANEL = 8;  // columns factored one by one
constexpr int FEW = 16;   // right-hand sides from which on these loops are faster than trsm

// c -= a b
template <class T>
void subtract_product(const Matrix& c, const Matrix& a, const Matrix& b) {
  if (!c.rows || !c.cols) return;
  T minus = -1, one = 1;
  gemm(std::is_same_v<T, float> ? DType::f32 : DType::f64, c, a, b, &minus, &one);
}

template <class T>
Matrix matrix(const T* data, int64_t rows, int64_t cols, int64_t ld) {
  return {const_cast<T*>(data), rows, cols, 1, ld};
}

// Exchanges rows k and pivots[k] - 1 for k in [first, last), in order or backwards.
template <class T>
void exchange_rows(int columns, T* a, int64_t ld, int first, int last, const int* pivots, bool backwards) {
  for (int column = 0; column < columns; column++, a += ld)
    if (!backwards)
      for (int k = first; k < last; k++) std::swap(a[k], a[pivots[k] - 1]);
    else
      for (int k = last - 1; k >= first; k--) std::swap(a[k], a[pivots[k] - 1]);
}

// The first of [first, last) with the largest absolute value; `first` if all are NaN. Lanes for the sake of
// vectors.
template <class T>
int place_of_largest(const T* x, int first, int last) {
  constexpr int LANES = 8;
  T largest[LANES];
  std::fill_n(largest, LANES, T(-1));
  int i = first;
  for (; i + LANES <= last; i += LANES)
    for (int j = 0; j < LANES; j++)
      largest[j] = std::abs(x[i + j]) > largest[j] ? std::abs(x[i + j]) : largest[j];
  T most = *std::max_element(largest, largest + LANES);
  for (; i < last; i++) most = std::abs(x[i]) > most ? std::abs(x[i]) : most;
  for (i = first; i < last; i++)
    if (std::abs(x[i]) == most) return i;
  return first;
}

// Up to PANEL columns, one by one; pivots count from 1.
template <class T>
int factor_panel(int m, int n, T* a, int64_t ld, int* pivots) {
  int info = 0;
  for (int k = 0; k < std::min(m, n); k++) {
    T* column = a + k * ld;
    int best = place_of_largest(column, k, m);
    pivots[k] = best + 1;
    if (column[best] == T(0)) {
      if (!info) info = k + 1;
      continue;
    }
    if (best != k)
      for (int j = 0; j < n; j++) std::swap(a[j * ld + k], a[j * ld + best]);
    if (std::abs(column[k]) >= std::numeric_limits<T>::min()) {
      T inverse = T(1) / column[k];
      for (int i = k + 1; i < m; i++) column[i] *= inverse;
    } else {  // the reciprocal would overflow
      for (int i = k + 1; i < m; i++) column[i] /= column[k];
    }
    for (int j = k + 1; j < n; j++) {
      T factor = a[j * ld + k], *to = a + j * ld;
      for (int i = k + 1; i < m; i++) to[i] -= factor * column[i];
    }
  }
  return info;
}

template <class T>
const TriangleLoops<T>& triangle_loops() {
  constexpr bool single = std::is_same_v<T, float>;
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = cpu_capability()[0] == 'A';
  if (has_avx2) {
    if constexpr (single) return avx2::triangle_f32;
    else return avx2::triangle_f64;
  }
#endif
  if constexpr (single) return baseline::triangle_f32;
  else return baseline::triangle_f64;
}

// The triangle of op(a), ready for the loops.
template <class T>
Triangle<T> read_triangle(bool left, bool lower, bool transposed, bool unit, int size, const T* a,
                          int64_t ld) {
  Triangle<T> t{};
  t.size = size;
  t.forward = (lower != transposed) == left;
  for (int k = 0; k < size && !unit; k++)
    t.divides |= !(std::abs(a[k * (ld + 1)]) >= std::numeric_limits<T>::min());
  for (int k = 0; k < size; k++) {
    T diagonal = unit ? T(1) : a[k * (ld + 1)];
    t.diagonal[k] = t.divides ? diagonal : 1 / diagonal;
    for (int i = t.forward ? k + 1 : 0; i < (t.forward ? size : k); i++)
      // On the left unknown i has op(a)[i, k] of unknown k, on the right op(a)[k, i].
      t.factors[k * TRIANGLE + i] = left == transposed ? a[k + i * ld] : a[i + k * ld];
  }
  return t;
}

// About half, in whole blocks.
int half(int n, int block) { return std::max(block, n / 2 / block * block); }

}  // namespace

template <class T>
void blocked_triangular(const Lapack<T>& l, char side, char uplo, char trans, char diag, int m, int n,
                        const T* a, int lda, T* b, int ldb) {
  bool left = side == 'L', lower = uplo == 'L';
  int size = left ? m : n;
  if ((left ? n : m) < FEW) {
    T one = 1;
    l.trsm(&side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb);
    return;
  }
  if (size <= TRIANGLE) {
    Triangle<T> t = read_triangle(left, lower, trans != 'N', diag == 'U', size, a, lda);
    if (left) triangle_loops<T>().left(t, n, b, ldb);
    else triangle_loops<T>().right(t, m, b, ldb);
    return;
  }
  int h = half(size, TRIANGLE), rest = size - h;
  int64_t ld = lda;
  const T* corner = a + h * (ld + 1);
  Matrix between = lower ? matrix(a + h, rest, h, ld) : matrix(a + h * ld, h, rest, ld);
  if (trans != 'N') between = between.transposed();
  T* second = left ? b + h : b + int64_t(h) * ldb;
  auto solve_first = [&] {
    blocked_triangular(l, side, uplo, trans, diag, left ? h : m, left ? n : h, a, lda, b, ldb);
  };
  auto solve_second = [&] {
    blocked_triangular(l, side, uplo, trans, diag, left ? rest : m, left ? n : rest, corner, lda, second,
                       ldb);
  };
  Matrix one = left ? matrix(b, h, n, ldb) : matrix(b, m, h, ldb);
  Matrix other = left ? matrix(second, rest, n, ldb) : matrix(second, m, rest, ldb);
  // op(a) is lower: the first unknowns come first on the left, the second ones on the right.
  bool first_first = (lower == (trans == 'N')) == left;
  if (first_first) {
    solve_first();
    if (left) subtract_product<T>(other, between, one);
    else subtract_product<T>(other, one, between);
    solve_second();
  } else {
    solve_second();
    if (left) subtract_product<T>(one, between, other);
    else subtract_product<T>(one, other, between);
    solve_first();
  }
}

template <class T>
int blocked_lu(const Lapack<T>& l, int m, int n, T* a, int lda, int* pivots) {
  if (n <= PANEL || m <= PANEL) return factor_panel(m, n, a, lda, pivots);
  int h = half(std::min(m, n), PANEL), rest = n - h;
  int64_t ld = lda;
  T* right = a + h * ld;
  int info = blocked_lu(l, m, h, a, lda, pivots);
  exchange_rows(rest, right, ld, 0, h, pivots, false);
  blocked_triangular(l, 'L', 'L', 'N', 'U', h, rest, a, lda, right, lda);
  subtract_product<T>(matrix(right + h, m - h, rest, ld), matrix(a + h, m - h, h, ld),
                      matrix(right, h, rest, ld));
  if (m == h) return info;
  int other = blocked_lu(l, m - h, rest, right + h, lda, pivots + h);
  if (!info && other) info = other + h;
  int last = std::min(m, n);
  exchange_rows(h, a + h, ld, 0, last - h, pivots + h, false);
  for (int k = h; k < last; k++) pivots[k] += h;
  return info;
}

template <class T>
void blocked_lu_solve(const Lapack<T>& l, char trans, int n, int nrhs, const T* a, int lda, const int* pivots,
                      T* b, int ldb) {
  bool plain = trans == 'N';
  if (plain) exchange_rows(nrhs, b, ldb, 0, n, pivots, false);
  blocked_triangular(l, 'L', plain ? 'L' : 'U', trans, plain ? 'U' : 'N', n, nrhs, a, lda, b, ldb);
  blocked_triangular(l, 'L', plain ? 'U' : 'L', trans, plain ? 'N' : 'U', n, nrhs, a, lda, b, ldb);
  if (!plain) exchange_rows(nrhs, b, ldb, 0, n, pivots, true);
}

template <class T>
void blocked_inverse(const Lapack<T>& l, int n, T* a, const int* pivots, T* room) {
  int64_t ld = n;
  std::fill_n(room, ld * ld, T(0));
  for (int64_t k = 0; k < ld; k++) room[k * (ld + 1)] = 1;
  // The inverse of L is a triangle too: a band of its columns has zeros above.
  for (int k = 0; k < n; k += BLOCKED) {
    int64_t at = k * (ld + 1);
    blocked_triangular(l, 'L', 'L', 'N', 'U', n - k, std::min(BLOCKED, n - k), a + at, n, room + at, n);
  }
  blocked_triangular(l, 'L', 'U', 'N', 'N', n, n, a, n, room, n);
  for (int64_t k = ld - 1; k >= 0; k--)
    if (pivots[k] - 1 != k) std::swap_ranges(room + k * ld, room + (k + 1) * ld, room + (pivots[k] - 1) * ld);
  std::copy_n(room, ld * ld, a);
}

#define RL_INSTANCES(T)                                                                                      \
  template void blocked_triangular<T>(const Lapack<T>&, char, char, char, char, int, int, const T*, int, T*, \
                                      int);                                                                  \
  template int blocked_lu<T>(const Lapack<T>&, int, int, T*, int, int*);                                     \
  template void blocked_inverse<T>(const Lapack<T>&, int, T*, const int*, T*);                               \
  template void blocked_lu_solve<T>(const Lapack<T>&, char, int, int, const T*, int, const int*, T*, int);
RL_INSTANCES(float)
RL_INSTANCES(double)
#undef RL_INSTANCES

}  // namespace rl
