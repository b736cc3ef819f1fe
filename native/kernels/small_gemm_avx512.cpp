// Small products in AVX-512: see small_gemm_avx512.h. Start at `multiply`.
//
// Up to 12 rows by two vectors of the result stay in registers while their sums run over all terms. Nothing
// is packed: a's numbers are broadcast from where they are, b's rows read with masks at the right edge. Each
// element is one chain of fused products in the order of the terms, whatever tile it falls into.
#include "small_gemm_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

#include "avx512.h"

namespace rl {
namespace {

RL_AVX512_BEGIN

struct Floats {
  using T = float;
  using V = __m512;
  using Mask = __mmask16;
  static constexpr int LANES = 16;
  static V zero() { return _mm512_setzero_ps(); }
  static V splat(T x) { return _mm512_set1_ps(x); }
  static V load(Mask mask, const T* p) { return _mm512_maskz_loadu_ps(mask, p); }
  static void store(T* p, Mask mask, V v) { _mm512_mask_storeu_ps(p, mask, v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
};
struct Doubles {
  using T = double;
  using V = __m512d;
  using Mask = __mmask8;
  static constexpr int LANES = 8;
  static V zero() { return _mm512_setzero_pd(); }
  static V splat(T x) { return _mm512_set1_pd(x); }
  static V load(Mask mask, const T* p) { return _mm512_maskz_loadu_pd(mask, p); }
  static void store(T* p, Mask mask, V v) { _mm512_mask_storeu_pd(p, mask, v); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  static V mul(V a, V b) { return _mm512_mul_pd(a, b); }
};

constexpr int64_t ROWS = 12;  // 24 of the 32 registers

// The left factor of a tile and the size of its elements' way.
template <class T>
struct Left {
  const T* data;
  int64_t row_stride, col_stride;
};

template <class F, int R, int VECTORS>
void tile(int64_t terms, const Left<typename F::T>& a, const typename F::T* b, int64_t ldb, typename F::T* c,
          int64_t ldc, int64_t columns, typename F::T alpha, typename F::T beta) {
  using T = typename F::T;
  using V = typename F::V;
  using Mask = typename F::Mask;
  int64_t last = columns - (VECTORS - 1) * F::LANES;  // lanes of the last vector
  const Mask mask = Mask(last >= F::LANES ? ~0u : (1u << last) - 1);
  V sum[R][VECTORS];
#pragma GCC unroll 12
  for (int r = 0; r < R; r++)
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; v++) sum[r][v] = F::zero();
  // Three rows to a pointer: more would not find registers.
  const int64_t one = a.row_stride, two = 2 * one;
  const T* from[4];
#pragma GCC unroll 4
  for (int g = 0; g < 4; g++) from[g] = a.data + 3 * g * one;
  for (int64_t p = 0; p < terms; p++, b += ldb) {
    V column[VECTORS];
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; v++)
      column[v] = F::load(v == VECTORS - 1 ? mask : Mask(~0u), b + v * F::LANES);
#pragma GCC unroll 12
    for (int r = 0; r < R; r++) {
      V factor = F::splat(from[r / 3][r % 3 == 0 ? 0 : r % 3 == 1 ? one : two]);
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS; v++) sum[r][v] = F::fma(factor, column[v], sum[r][v]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) from[g] += a.col_stride;
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; r++) {
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; v++) {
      Mask written = v == VECTORS - 1 ? mask : Mask(~0u);
      T* to = c + r * ldc + v * F::LANES;
      V value = F::mul(F::splat(alpha), sum[r][v]);
      if (beta != T(0)) value = F::fma(F::splat(beta), F::load(written, to), value);
      F::store(to, written, value);
    }
  }
}

template <class F>
using Run = void (*)(int64_t terms, const Left<typename F::T>& a, const typename F::T* b, int64_t ldb,
                     typename F::T* c, int64_t ldc, int64_t columns, typename F::T alpha, typename F::T beta);
template <class F, int VECTORS>
constexpr Run<F> TILES[] = {nullptr,
                            tile<F, 1, VECTORS>,
                            tile<F, 2, VECTORS>,
                            tile<F, 3, VECTORS>,
                            tile<F, 4, VECTORS>,
                            tile<F, 5, VECTORS>,
                            tile<F, 6, VECTORS>,
                            tile<F, 7, VECTORS>,
                            tile<F, 8, VECTORS>,
                            tile<F, 9, VECTORS>,
                            tile<F, 10, VECTORS>,
                            tile<F, 11, VECTORS>,
                            tile<F, 12, VECTORS>};

template <class F>
void multiply(const Matrix& c, const Matrix& a, const Matrix& b, typename F::T alpha, typename F::T beta) {
  using T = typename F::T;
  const int64_t tiles = (c.rows + ROWS - 1) / ROWS, height = (c.rows + tiles - 1) / tiles;
  for (int64_t j = 0; j < c.cols; j += 2 * F::LANES) {
    const int64_t columns = std::min<int64_t>(2 * F::LANES, c.cols - j);
    const T* right = static_cast<const T*>(b.data) + j;
    for (int64_t i = 0; i < c.rows; i += height) {
      const int64_t rows = std::min(height, c.rows - i);
      Run<F> run = columns > F::LANES ? TILES<F, 2>[rows] : TILES<F, 1>[rows];
      run(a.cols, {static_cast<const T*>(a.data) + i * a.row_stride, a.row_stride, a.col_stride}, right,
          b.row_stride, static_cast<T*>(c.data) + i * c.row_stride + j, c.row_stride, columns, alpha, beta);
    }
  }
}

RL_AVX512_END

}  // namespace

void small_gemm_avx512(const Matrix& c, const Matrix& a, const Matrix& b, float alpha, float beta) {
  multiply<Floats>(c, a, b, alpha, beta);
}
void small_gemm_avx512(const Matrix& c, const Matrix& a, const Matrix& b, double alpha, double beta) {
  multiply<Doubles>(c, a, b, alpha, beta);
}

}  // namespace rl

#else  // other processors: never called

namespace rl {
void small_gemm_avx512(const Matrix&, const Matrix&, const Matrix&, float, float) {}
void small_gemm_avx512(const Matrix&, const Matrix&, const Matrix&, double, double) {}
}  // namespace rl

#endif
