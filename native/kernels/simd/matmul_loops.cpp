// Matrix products in our own loops, compiled once per instruction set.
//
// `Product::run` is the place to start. It walks over tiles of ROWS x PANEL elements of the result;
// `accumulate` keeps a tile in registers and runs along k. A panel is two vectors wide; where b's columns are
// not adjacent, its type has to be widened first, or many rows share it, b is first packed into panels padded
// with zeros. Otherwise b is read where it lies, with masked loads for the last columns, so that a 4x4
// product costs little more than its arithmetic. Complex numbers use the same tiles with the real and the
// imaginary parts as the two vectors. Sums run in blocks of K_BLOCK whose totals are added, which keeps
// rounding errors as small as a blocked BLAS does.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "../../tensor/parallel.h"
#include "../matmul.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr int64_t K_BLOCK = 512;
constexpr int ROWS = 6;  // 6 x 2 accumulators, two vectors of b and one of a: 15 of 16 registers
#if defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

// The type sums are kept in. Integers are summed as unsigned numbers of at least 32 bits: wrapping is defined
// there and the low bits are the same.
template <class T>
struct Accumulator {
  using type = compute_t<T>;
};
template <>
struct Accumulator<uint8_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int8_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int16_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int32_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int64_t> {
  using type = uint64_t;
};
template <>
struct Accumulator<bool> {
  using type = uint32_t;
};
template <class R>
struct Accumulator<std::complex<R>> {
  using type = R;
};
template <class T>
using acc_t = typename Accumulator<T>::type;

template <class T>
inline acc_t<T> widened(T x) {
  return acc_t<T>(compute_t<T>(x));
}

template <class A>
struct VectorOf {
  typedef A type __attribute__((vector_size(VECTOR_BYTES), aligned(alignof(A)), may_alias));
};
template <class A>
using Vec = typename VectorOf<A>::type;
template <class A>
constexpr int LANES = VECTOR_BYTES / sizeof(A);

#if defined(__AVX2__)
// Ones in the first `count` lanes.
template <class A>
inline __m256i lane_mask(int count) {
  alignas(32) static const int32_t words[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + 8 - count * int(sizeof(A) / 4)));
}
#endif

template <class A>
inline Vec<A> load(const A* p) {
  return *reinterpret_cast<const Vec<A>*>(p);
}

// The next vector of elements, widened to their accumulator type.
template <class T>
inline Vec<acc_t<T>> load_widened(const T* p) {
  using A = acc_t<T>;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, Half>) {
    return (Vec<A>)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return (Vec<A>)_mm256_slli_epi32(wide, 16);
  }
#endif
  if constexpr (std::is_same_v<T, A>) return load<A>(p);
  Vec<A> v;
  for (int i = 0; i < LANES<A>; i++) v[i] = widened(p[i]);
  return v;
}

// The first `count` lanes from memory, zeros above.
template <class A>
inline Vec<A> load_first(const A* p, int count) {
#if defined(__AVX2__)
  if constexpr (sizeof(A) == 4) {
    return (Vec<A>)_mm256_maskload_epi32(reinterpret_cast<const int*>(p), lane_mask<A>(count));
  } else {
    return (Vec<A>)_mm256_maskload_epi64(reinterpret_cast<const long long*>(p), lane_mask<A>(count));
  }
#else
  Vec<A> v{};
  for (int i = 0; i < count; i++) v[i] = p[i];
  return v;
#endif
}

template <class A>
inline void store_first(A* p, Vec<A> v, int count) {
#if defined(__AVX2__)
  if constexpr (sizeof(A) == 4) {
    _mm256_maskstore_epi32(reinterpret_cast<int*>(p), lane_mask<A>(count), (__m256i)v);
  } else {
    _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), lane_mask<A>(count), (__m256i)v);
  }
#else
  for (int i = 0; i < count; i++) p[i] = v[i];
#endif
}

// A buffer that lives on the stack while it is small.
template <class A>
class Buffer {
  alignas(32) A local_[2048];
  std::unique_ptr<A[]> heap_;

 public:
  A* data(int64_t n) {
    if (n <= 2048) return local_;
    heap_.reset(new A[n]);
    return heap_.get();
  }
};

template <class T>
struct Product {
  using A = acc_t<T>;
  using V = Vec<A>;
  static constexpr bool COMPLEX = is_complex_v<T>;
  // int32 and int64 are laid out like their accumulators, so they too can be read and written in place.
  static constexpr bool SAME_LAYOUT = !COMPLEX && !is_reduced_v<T> && sizeof(T) == sizeof(A);
  static constexpr int L = LANES<A>;
  static constexpr int PANEL = COMPLEX ? L : 2 * L;  // columns of c

  Matrix c, a, b;
  compute_t<T> alpha, beta;
  const A* packed = nullptr;  // panel after panel, each k x 2L; null: b is read in place

  T* c_at(int64_t i, int64_t j) const {
    return static_cast<T*>(c.data) + i * c.row_stride + j * c.col_stride;
  }
  const T* a_at(int64_t i, int64_t p) const {
    return static_cast<const T*>(a.data) + i * a.row_stride + p * a.col_stride;
  }
  const T* b_at(int64_t p, int64_t j) const {
    return static_cast<const T*>(b.data) + p * b.row_stride + j * b.col_stride;
  }

  // acc[i][v] = sum over p in [begin, end); `tail` lanes of the last vector are within b (L: no masking).
  template <int M, int N, bool MASKED>
  void accumulate_block(const T* row, const A* panel, int64_t stride, int tail, int64_t begin, int64_t end,
                        V (&acc)[M][N]) const {
    for (int i = 0; i < M; i++)
      for (int v = 0; v < N; v++) acc[i][v] = V{};
    const A* pb = panel + begin * stride;
    const T* pa = row + begin * a.col_stride;
    for (int64_t p = begin; p < end; p++, pb += stride, pa += a.col_stride) {
      V column[N];
      for (int v = 0; v < N; v++)
        column[v] = MASKED && v == N - 1 ? load_first<A>(pb + v * L, tail) : load<A>(pb + v * L);
      for (int i = 0; i < M; i++) {
        if constexpr (COMPLEX) {
          T x = pa[i * a.row_stride];
          A re = x.real(), im = x.imag();
          acc[i][0] += re * column[0] - im * column[1];
          acc[i][1] += re * column[1] + im * column[0];
        } else {
          A x = widened(pa[i * a.row_stride]);
          for (int v = 0; v < N; v++) acc[i][v] += x * column[v];
        }
      }
    }
  }

  // One tile: rows [i, i+M), columns [j, j+cols).
  template <int M, int N, bool MASKED>
  void tile(int64_t i, int64_t j, int cols) const {
    int64_t k = a.cols;
    const A* panel;
    int64_t stride;
    if (packed) {
      panel = packed + j / PANEL * k * (2 * L);
      stride = 2 * L;
    } else {
      panel = reinterpret_cast<const A*>(b_at(0, j));
      stride = b.row_stride;
    }
    int tail = COMPLEX ? cols : cols - (N - 1) * L;
    const T* row = a_at(i, 0);
    V acc[M][N];
    accumulate_block<M, N, MASKED>(row, panel, stride, tail, 0, std::min(k, K_BLOCK), acc);
    for (int64_t begin = K_BLOCK; begin < k; begin += K_BLOCK) {
      V more[M][N];
      accumulate_block<M, N, MASKED>(row, panel, stride, tail, begin, std::min(k, begin + K_BLOCK), more);
      for (int r = 0; r < M; r++)
        for (int v = 0; v < N; v++) acc[r][v] += more[r][v];
    }
    store<M, N>(i, j, cols, tail, acc);
  }

  template <int M, int N>
  void store(int64_t i, int64_t j, int cols, int tail, V (&acc)[M][N]) const {
    if constexpr (SAME_LAYOUT) {
      if (c.col_stride == 1) {
        for (int r = 0; r < M; r++) {
          A* to = reinterpret_cast<A*>(c_at(i + r, j));
          for (int v = 0; v < N; v++) {
            V value = A(alpha) * acc[r][v];
            int count = v == N - 1 ? tail : L;
            if (beta != compute_t<T>(0)) value += A(beta) * load_first<A>(to + v * L, count);
            store_first<A>(to + v * L, value, count);
          }
        }
        return;
      }
    }
    for (int r = 0; r < M; r++) {
      for (int col = 0; col < cols; col++) {
        T* to = c_at(i + r, j + col);
        if constexpr (COMPLEX) {
          T value(acc[r][0][col], acc[r][1][col]);
          if (alpha != T(1)) value *= alpha;
          *to = beta == T(0) ? value : value + beta * *to;
        } else {
          A value = A(alpha) * acc[r][col / L][col % L];
          if (beta != compute_t<T>(0)) value += A(beta) * widened(*to);
          *to = T(value);
        }
      }
    }
  }

  template <int N, bool MASKED>
  void rows(int64_t begin, int64_t end, int64_t j, int cols) const {
    int64_t i = begin;
    for (; i + ROWS <= end; i += ROWS) tile<ROWS, N, MASKED>(i, j, cols);
    switch (end - i) {
      case 1: return tile<1, N, MASKED>(i, j, cols);
      case 2: return tile<2, N, MASKED>(i, j, cols);
      case 3: return tile<3, N, MASKED>(i, j, cols);
      case 4: return tile<4, N, MASKED>(i, j, cols);
      case 5: return tile<5, N, MASKED>(i, j, cols);
    }
  }

  void panel_rows(int64_t begin, int64_t end, int64_t j) const {
    int cols = int(std::min<int64_t>(PANEL, c.cols - j));
    if constexpr (COMPLEX) {
      rows<2, false>(begin, end, j, cols);
    } else if (packed || cols == PANEL) {
      if (cols <= L) rows<1, false>(begin, end, j, cols);
      else rows<2, false>(begin, end, j, cols);
    } else if constexpr (SAME_LAYOUT) {  // reading b in place: stay inside it
      if (cols == L) rows<1, false>(begin, end, j, cols);
      else if (cols < L) rows<1, true>(begin, end, j, cols);
      else rows<2, true>(begin, end, j, cols);
    }
  }

  void pack_panel(int64_t number, A* to) const {
    int64_t j = number * PANEL, k = a.cols;
    int cols = int(std::min<int64_t>(PANEL, c.cols - j));
    to += number * k * (2 * L);
    if (cols < PANEL) std::fill(to, to + k * (2 * L), A(0));
    auto put = [](A* slot, T value) {
      if constexpr (COMPLEX) {
        slot[0] = value.real();
        slot[L] = value.imag();
      } else {
        slot[0] = widened(value);
      }
    };
    if (b.row_stride < b.col_stride) {
      for (int col = 0; col < cols; col++)
        for (int64_t p = 0; p < k; p++) put(to + p * (2 * L) + col, *b_at(p, j + col));
    } else {
      for (int64_t p = 0; p < k; p++)
        for (int col = 0; col < cols; col++) put(to + p * (2 * L) + col, *b_at(p, j + col));
    }
  }

  void run() {
    if (c.row_stride < c.col_stride && c.cols > 1 &&
        c.rows > 1) {  // columns lie together: compute the transpose
      std::swap(a, b);
      a = a.transposed(), b = b.transposed(), c = c.transposed();
    }
    int64_t m = c.rows, n = c.cols, k = a.cols, panels = (n + PANEL - 1) / PANEL;
    double work = double(m) * double(n) * double(k);
    int64_t grain = std::max<int64_t>(1, int64_t(200000 / std::max(1.0, work / double(panels))));
    Buffer<A> buffer;
    if (!SAME_LAYOUT || b.col_stride != 1 || (m > 4 * ROWS && work > 32 * 32 * 32)) {
      A* to = buffer.data(panels * k * (2 * L));
      parallel_for(panels, std::max<int64_t>(grain, 16), [&](int64_t begin, int64_t end) {
        for (int64_t number = begin; number < end; number++) pack_panel(number, to);
      });
      packed = to;
    }
    if (work < 400000) {
      for (int64_t j = 0; j < n; j += PANEL) panel_rows(0, m, j);
    } else {
      // Divide the rows: then every thread has all panels, however few columns there are.
      int64_t row_grain = std::max<int64_t>(16, int64_t(200000 * double(m) / work));
      parallel_for(m, row_grain, [&](int64_t begin, int64_t end) {
        for (int64_t j = 0; j < n; j += PANEL) panel_rows(begin, end, j);
      });
    }
  }
};

void loops_gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const void* alpha,
                const void* beta) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Product<T>{c, a, b, *static_cast<const compute_t<T>*>(alpha), *static_cast<const compute_t<T>*>(beta)}
        .run();
  });
}

// Sums of x[i] * y[i] in one of several partial sums, which both lets the processor overlap the additions and
// keeps rounding errors small.
template <class T>
auto dot_block(const T* x, int64_t incx, const T* y, int64_t incy, int64_t n, bool conjugate) {
  if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    R re[4] = {}, im[4] = {};
    for (int64_t i = 0; i < n; i++) {
      R xr = x[i * incx].real(), xi = conjugate ? -x[i * incx].imag() : x[i * incx].imag();
      R yr = y[i * incy].real(), yi = y[i * incy].imag();
      re[i & 3] += xr * yr - xi * yi;
      im[i & 3] += xr * yi + xi * yr;
    }
    return T((re[0] + re[1]) + (re[2] + re[3]), (im[0] + im[1]) + (im[2] + im[3]));
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

void loops_dot(DType dtype, void* result, const Vector& x, const Vector& y, bool conjugate_x) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *static_cast<T*>(result) = T(dot_sum(static_cast<const T*>(x.data), x.stride,
                                         static_cast<const T*>(y.data), y.stride, x.size, conjugate_x));
  });
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

template <class F>
void visit_reduced(DType dtype, F&& f) {
  if (dtype == DType::f16) f(TypeTag<Half>{});
  else f(TypeTag<BFloat16>{});
}

void loops_widen(DType dtype, const Matrix& from, float* to) {
  visit_reduced(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t grain = std::max<int64_t>(1, 100000 / std::max<int64_t>(1, from.cols));
    parallel_for(from.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T* row = static_cast<const T*>(from.data) + i * from.row_stride;
        float* out = to + i * from.cols;
        int64_t j = 0;
        if (from.col_stride == 1) {
#if defined(__AVX2__)
          if constexpr (std::is_same_v<T, Half>) {
            for (; j + 8 <= from.cols; j += 8)
              _mm256_storeu_ps(out + j,
                               _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + j))));
          }
#endif
          for (; j < from.cols; j++) out[j] = row[j];
        }
        for (; j < from.cols; j++) out[j] = row[j * from.col_stride];
      }
    });
  });
}

void loops_narrow(DType dtype, const Matrix& to, const float* from, float beta) {
  visit_reduced(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t grain = std::max<int64_t>(1, 100000 / std::max<int64_t>(1, to.cols));
    parallel_for(to.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        T* row = static_cast<T*>(to.data) + i * to.row_stride;
        const float* values = from + i * to.cols;
        int64_t j = 0;
        if (beta == 0 && to.col_stride == 1) {
#if defined(__AVX2__)
          if constexpr (std::is_same_v<T, Half>) {
            for (; j + 8 <= to.cols; j += 8)
              _mm_storeu_si128(reinterpret_cast<__m128i*>(row + j),
                               _mm256_cvtps_ph(_mm256_loadu_ps(values + j), _MM_FROUND_TO_NEAREST_INT));
          }
#endif
          for (; j < to.cols; j++) row[j] = T(values[j]);
        }
        for (; j < to.cols; j++) {
          T* out = row + j * to.col_stride;
          *out = T(beta == 0 ? values[j] : values[j] + beta * float(*out));
        }
      }
    });
  });
}

#if defined(__AVX2__)
inline void transpose_8x8(const float* from, int64_t ld, float* to, int64_t to_ld) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(from + i * ld);
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(to + i * to_ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

inline void transpose_4x4(const double* from, int64_t ld, double* to, int64_t to_ld) {
  __m256d r[4], s[4];
  for (int i = 0; i < 4; i++) r[i] = _mm256_loadu_pd(from + i * ld);
  for (int i = 0; i < 4; i += 2) {
    s[i] = _mm256_unpacklo_pd(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_pd(r[i], r[i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    _mm256_storeu_pd(to + i * to_ld, _mm256_permute2f128_pd(s[i], s[i + 2], 0x20));
    _mm256_storeu_pd(to + (i + 2) * to_ld, _mm256_permute2f128_pd(s[i], s[i + 2], 0x31));
  }
}
#endif

template <class T>
void transpose_typed(const T* from, int64_t ld, int64_t rows, int64_t cols, T* to) {
  int64_t whole_rows = 0, whole_cols = 0;
#if defined(__AVX2__)
  constexpr int SIDE = LANES<T>;
  whole_rows = rows / SIDE * SIDE, whole_cols = cols / SIDE * SIDE;
  for (int64_t j = 0; j < whole_cols; j += SIDE)
    for (int64_t i = 0; i < whole_rows; i += SIDE) {
      if constexpr (SIDE == 8) transpose_8x8(from + i * ld + j, ld, to + j * rows + i, rows);
      else transpose_4x4(from + i * ld + j, ld, to + j * rows + i, rows);
    }
#endif
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = j < whole_cols ? whole_rows : 0; i < rows; i++) to[j * rows + i] = from[i * ld + j];
}

void loops_transpose(DType dtype, const void* from, int64_t ld, int64_t rows, int64_t cols, void* to) {
  if (dtype == DType::f32)
    transpose_typed(static_cast<const float*>(from), ld, rows, cols, static_cast<float*>(to));
  else transpose_typed(static_cast<const double*>(from), ld, rows, cols, static_cast<double*>(to));
}

}  // namespace

extern const MatmulLoops matmul_loops;
const MatmulLoops matmul_loops = {loops_gemm,  loops_gemv,   loops_dot,
                                  loops_widen, loops_narrow, loops_transpose};

}  // namespace RL_ISA
}  // namespace rl
