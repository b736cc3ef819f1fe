// Dot products and products of a matrix with a vector, for what BLAS does not take. Start at `loops_gemv`.
#include "matmul_vectors.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// Sums of x[i] * y[i] in one of several partial sums, which both lets the processor overlap the additions and
// keeps rounding errors small.
template <class T>
auto dot_block(const T* x, int64_t incx, const T* y, int64_t incy, int64_t n, bool conjugate) {
  if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    R sums[4][4] = {};  // re re, im im, re im, im re: that of x with itself is real to the last bit
    for (int64_t i = 0; i < n; i++) {
      R xr = x[i * incx].real(), xi = conjugate ? -x[i * incx].imag() : x[i * incx].imag();
      R yr = y[i * incy].real(), yi = y[i * incy].imag();
      sums[0][i & 3] += xr * yr;
      sums[1][i & 3] += xi * yi;
      sums[2][i & 3] += xr * yi;
      sums[3][i & 3] += xi * yr;
    }
    R totals[4];
    for (int s = 0; s < 4; s++) totals[s] = (sums[s][0] + sums[s][1]) + (sums[s][2] + sums[s][3]);
    return T(totals[0] - totals[1], totals[2] + totals[3]);
  } else {
    using A = acc_t<T>;
    constexpr int L = LANES<A>;
    Vec<A> low{}, high{};
    int64_t i = 0;
    if (incx == 1 && incy == 1) {
      for (; i + 2 * L <= n; i += 2 * L) {
        low += load_widened(x + i) * load_widened(y + i);
        high += load_widened(x + i + L) * load_widened(y + i + L);
      }
    }
    A sums[L];
    for (int lane = 0; lane < L; lane++) sums[lane] = low[lane] + high[lane];
    for (; i < n; i++) sums[i % L] += widened(x[i * incx]) * widened(y[i * incy]);
    for (int width = L / 2; width > 0; width /= 2)
      for (int lane = 0; lane < width; lane++) sums[lane] += sums[lane + width];
    return sums[0];
  }
}

template <class T>
auto dot_sum(const T* x, int64_t incx, const T* y, int64_t incy, int64_t n, bool conjugate) {
  constexpr int64_t BLOCK = 4096;
  auto total = dot_block(x, incx, y, incy, std::min(n, BLOCK), conjugate);
  for (int64_t i = BLOCK; i < n; i += BLOCK)
    total += dot_block(x + i * incx, incx, y + i * incy, incy, std::min(n - i, BLOCK), conjugate);
  return total;
}

// y = alpha * a @ x + beta * y where a's columns lie together: sums of scaled columns, a stretch of rows at a
// time.
template <class T>
void gemv_by_columns(const Vector& y, const Matrix& a, const Vector& x, acc_t<T> alpha, acc_t<T> beta) {
  using A = acc_t<T>;
  constexpr int64_t STRETCH = 256;
  constexpr int L = LANES<A>;
  int64_t stretches = (a.rows + STRETCH - 1) / STRETCH;
  int64_t grain = std::max<int64_t>(16, 100000 / (STRETCH * std::max<int64_t>(1, a.cols)));
  parallel_for(stretches, grain, [&](int64_t begin, int64_t end) {
    for (int64_t stretch = begin; stretch < end; stretch++) {
      int64_t first = stretch * STRETCH, count = std::min(STRETCH, a.rows - first);
      alignas(32) A sums[STRETCH] = {}, block[STRETCH];
      const T* column = static_cast<const T*>(a.data) + first;
      for (int64_t p0 = 0; p0 < a.cols; p0 += K_BLOCK) {
        std::fill(block, block + count, A(0));
        for (int64_t p = p0; p < std::min(a.cols, p0 + K_BLOCK); p++) {
          const T* from = column + p * a.col_stride;
          A factor = widened(static_cast<const T*>(x.data)[p * x.stride]);
          int64_t i = 0;
          for (; i + L <= count; i += L)
            *reinterpret_cast<Vec<A>*>(block + i) += factor * load_widened(from + i);
          for (; i < count; i++) block[i] += factor * widened(from[i]);
        }
        for (int64_t i = 0; i < count; i++) sums[i] += block[i];
      }
      for (int64_t i = 0; i < count; i++) {
        T* to = static_cast<T*>(y.data) + (first + i) * y.stride;
        A value = alpha * sums[i];
        if (beta != A(0)) value += beta * widened(*to);
        *to = T(value);
      }
    }
  });
}

}  // namespace

void loops_dot(DType dtype, void* result, const Vector& x, const Vector& y, bool conjugate_x) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *static_cast<T*>(result) = T(dot_sum(static_cast<const T*>(x.data), x.stride,
                                         static_cast<const T*>(y.data), y.stride, x.size, conjugate_x));
  });
}

void loops_gemv(DType dtype, const Vector& y, const Matrix& a, const Vector& x, const void* alpha,
                const void* beta) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) {
      if (a.row_stride == 1 && a.rows > 1 && a.cols > 1) {
        using A = acc_t<T>;
        return gemv_by_columns<T>(y, a, x, A(*static_cast<const compute_t<T>*>(alpha)),
                                  A(*static_cast<const compute_t<T>*>(beta)));
      }
    }
    using S = std::conditional_t<is_complex_v<T>, T, acc_t<T>>;
    S factor = S(*static_cast<const compute_t<T>*>(alpha)), keep = S(*static_cast<const compute_t<T>*>(beta));
    int64_t grain = std::max<int64_t>(1, 100000 / std::max<int64_t>(1, a.cols));
    parallel_for(a.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        S value = factor * S(dot_sum(static_cast<const T*>(a.data) + i * a.row_stride, a.col_stride,
                                     static_cast<const T*>(x.data), x.stride, a.cols, false));
        T* to = static_cast<T*>(y.data) + i * y.stride;
        if (keep != S(0)) {
          if constexpr (is_complex_v<T>) value += keep * *to;
          else value += keep * widened(*to);
        }
        *to = T(value);
      }
    });
  });
}

}  // namespace RL_ISA
}  // namespace rl
