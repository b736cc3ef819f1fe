// Matrix products in our own loops, compiled once per instruction set.
//
// `Product::run` is the place to start. It walks over tiles of ROWS x PANEL elements of the result;
// `accumulate` keeps a tile in registers and runs along k. A panel is two vectors wide; where b's columns are
// not adjacent, its type has to be widened first, or many rows share it, b is first packed into panels padded
// with zeros. Otherwise b is read where it lies, with masked loads for the last columns, so that a 4x4
// product costs little more than its arithmetic. Complex numbers use the same tiles with the real and the
// imaginary parts as the two vectors, and add up the four products of parts by themselves: so a @ a.mH is
// Hermitian to the last bit. Sums run in blocks of K_BLOCK whose totals are added, which keeps
// rounding errors as small as a blocked BLAS does.
#include <memory>
#include <utility>

#include "matmul_vectors.h"

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr int ROWS = 6;          // 6 x 2 accumulators, two vectors of b and one of a: 15 of 16 registers
constexpr int COMPLEX_ROWS = 3;  // of 4 accumulators

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
  // Read and written in place.
  static constexpr bool SAME_LAYOUT = std::is_same_v<T, float> || std::is_same_v<T, double>;
  static constexpr int L = LANES<A>;
  static constexpr int PANEL = COMPLEX ? L : 2 * L;  // columns of c

  Matrix c, a, b;
  compute_t<T> alpha, beta;
  const A* packed = nullptr;   // panel after panel, each k x 2L; null: b is read in place
  bool short_factors = false;  // 64-bit integers that all fit 32 bits, whose product is one instruction

  T* c_at(int64_t i, int64_t j) const {
    return static_cast<T*>(c.data) + i * c.row_stride + j * c.col_stride;
  }
  const T* a_at(int64_t i, int64_t p) const {
    return static_cast<const T*>(a.data) + i * a.row_stride + p * a.col_stride;
  }
  const T* b_at(int64_t p, int64_t j) const {
    return static_cast<const T*>(b.data) + p * b.row_stride + j * b.col_stride;
  }

  // What a row of a tile of N vectors is summed in: of complex numbers re re, im im, re im and im re.
  template <int N>
  static constexpr int SUMS = COMPLEX ? 4 : N;

  // acc[i][v] = sum over p in [begin, end); `tail` lanes of the last vector are within b (L: no masking).
  template <int M, int N, bool MASKED>
  void accumulate_block(const T* row, const A* panel, int64_t stride, int tail, int64_t begin, int64_t end,
                        V (&acc)[M][SUMS<N>]) const {
    for (int i = 0; i < M; i++)
      for (int v = 0; v < SUMS<N>; v++) acc[i][v] = V{};
    const A* pb = panel + begin * stride;
    const T* pa = row + begin * a.col_stride;
#if defined(__AVX2__)
    if constexpr (std::is_same_v<T, int64_t>) {
      if (short_factors) {
        for (int64_t p = begin; p < end; p++, pb += stride, pa += a.col_stride)
          for (int i = 0; i < M; i++) {
            __m256i x = _mm256_set1_epi64x(pa[i * a.row_stride]);
            for (int v = 0; v < N; v++) acc[i][v] += V(_mm256_mul_epi32(x, __m256i(load<A>(pb + v * L))));
          }
        return;
      }
    }
#endif
    for (int64_t p = begin; p < end; p++, pb += stride, pa += a.col_stride) {
      V column[N];
      for (int v = 0; v < N; v++)
        column[v] = MASKED && v == N - 1 ? load_first<A>(pb + v * L, tail) : load<A>(pb + v * L);
      for (int i = 0; i < M; i++) {
        if constexpr (COMPLEX) {
          T x = pa[i * a.row_stride];
          A re = x.real(), im = x.imag();
          acc[i][0] += re * column[0];
          acc[i][1] += im * column[1];
          acc[i][2] += re * column[1];
          acc[i][3] += im * column[0];
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
    V acc[M][SUMS<N>];
    accumulate_block<M, N, MASKED>(row, panel, stride, tail, 0, std::min(k, K_BLOCK), acc);
    for (int64_t begin = K_BLOCK; begin < k; begin += K_BLOCK) {
      V more[M][SUMS<N>];
      accumulate_block<M, N, MASKED>(row, panel, stride, tail, begin, std::min(k, begin + K_BLOCK), more);
      for (int r = 0; r < M; r++)
        for (int v = 0; v < SUMS<N>; v++) acc[r][v] += more[r][v];
    }
    store<M, N>(i, j, cols, tail, acc);
  }

  template <int M, int N>
  void store(int64_t i, int64_t j, int cols, int tail, V (&acc)[M][SUMS<N>]) const {
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
    if constexpr (COMPLEX) {
      if (c.col_stride == 1 && cols == PANEL && alpha == T(1) && beta == T(0)) {
        for (int r = 0; r < M; r++)
          store_parts(reinterpret_cast<A*>(c_at(i + r, j)), acc[r][0] - acc[r][1], acc[r][2] + acc[r][3]);
        return;
      }
    }
    for (int r = 0; r < M; r++) {
      for (int col = 0; col < cols; col++) {
        T* to = c_at(i + r, j + col);
        if constexpr (COMPLEX) {
          T value(acc[r][0][col] - acc[r][1][col], acc[r][2][col] + acc[r][3][col]);
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
    constexpr int AT_ONCE = COMPLEX ? COMPLEX_ROWS : ROWS;
    int64_t i = begin;
    for (; i + AT_ONCE <= end; i += AT_ONCE) tile<AT_ONCE, N, MASKED>(i, j, cols);
    if constexpr (!SAME_LAYOUT) {  // rarer types, fewer tiles
      if (AT_ONCE > 3 && i + 3 <= end) tile<3, N, MASKED>(i, j, cols), i += 3;
      if (COMPLEX && i + 2 <= end) tile<2, N, MASKED>(i, j, cols), i += 2;
      for (; i < end; i++) tile<1, N, MASKED>(i, j, cols);
    } else {
      switch (end - i) {
        case 1: return tile<1, N, MASKED>(i, j, cols);
        case 2: return tile<2, N, MASKED>(i, j, cols);
        case 3: return tile<3, N, MASKED>(i, j, cols);
        case 4: return tile<4, N, MASKED>(i, j, cols);
        case 5: return tile<5, N, MASKED>(i, j, cols);
      }
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
    if constexpr (COMPLEX) {
      if (b.col_stride == 1 && cols == PANEL) {
        for (int64_t p = 0; p < k; p++, to += 2 * L) load_parts(reinterpret_cast<const A*>(b_at(p, j)), to);
        return;
      }
    }
    if (b.row_stride < b.col_stride) {
      for (int col = 0; col < cols; col++)
        for (int64_t p = 0; p < k; p++) put(to + p * (2 * L) + col, *b_at(p, j + col));
    } else {
      for (int64_t p = 0; p < k; p++)
        for (int col = 0; col < cols; col++) put(to + p * (2 * L) + col, *b_at(p, j + col));
    }
  }

  static bool fits_32_bits(const Matrix& m) {
    uint64_t beyond = 0;
    for (int64_t i = 0; i < m.rows; i++)
      for (int64_t j = 0; j < m.cols; j++) {
        uint64_t x = uint64_t(static_cast<const T*>(m.data)[i * m.row_stride + j * m.col_stride]);
        beyond |= (x + (uint64_t(1) << 31)) >> 32;
      }
    return beyond == 0;
  }

  void run() {
    if constexpr (std::is_same_v<T, int64_t>) short_factors = fits_32_bits(a) && fits_32_bits(b);
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

}  // namespace

void loops_gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const void* alpha,
                const void* beta) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Product<T>{c, a, b, *static_cast<const compute_t<T>*>(alpha), *static_cast<const compute_t<T>*>(beta)}
        .run();
  });
}

extern const MatmulLoops matmul_loops;
const MatmulLoops matmul_loops = {loops_gemm,  loops_gemv,   loops_dot,
                                  loops_widen, loops_narrow, loops_transpose};

}  // namespace RL_ISA
}  // namespace rl
