// Which loop computes a product, and on how many threads. Start at `gemm`.
//
// float, double and complex products go to OpenBLAS, except tiny ones, where the call costs more than the
// work. Half and BFloat16 are widened to float, multiplied there, and rounded once (but see gemm_bf16.h);
// integers use our own loops. BLAS takes a matrix whose rows or whose columns lie together (`Operand`); any
// other is copied first.
// OpenBLAS runs on the calling thread; large results are cut into blocks, one for each of our threads.
#include "matmul.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "../tensor/parallel.h"
#include "blas.h"
#include "few_terms.h"
#include "gemm_avx512.h"
#include "gemm_bf16.h"
#include "simd/families.h"
#include "small_gemm_avx512.h"
#include "small_products.h"

namespace rl {
namespace {

// Multiply-adds below which our own loops beat the call into OpenBLAS, and above which threads pay.
constexpr double TINY = 8 * 8 * 8, TINY_VECTOR = 64;
constexpr double THREADED = 1e6;
// Elements from which on a result of few terms, or the right side of few rows, has a loop of its own.
constexpr double LARGE = 1 << 17, LARGE_RIGHT = 1 << 21;
constexpr int64_t LEAST_COLUMNS = 192, MANY_FEW_ROWS = 16, MOST_FEW_ROWS = 64;
// LP64 dimensions are 32-bit; anything longer is cut into pieces of this many rows, columns or terms.
constexpr int64_t PIECE = int64_t(1) << 30;

const MatmulLoops& loops() {
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = !std::strcmp(cpu_capability(), "AVX2");
  if (has_avx2) return avx2::matmul_loops;
#endif
  return baseline::matmul_loops;
}

// The loop for a product of few terms or few rows, or null if it is none (see few_terms.h).
FewTerms few_loop(const Matrix& c, const Matrix& b) {
  if (c.col_stride != 1 || c.row_stride < c.cols || c.cols < LEAST_COLUMNS) return nullptr;
  bool terms = b.rows <= FEW_TERMS_AT_MOST && double(c.rows) * double(c.cols) >= LARGE;
  bool rows = c.rows >= MANY_FEW_ROWS && c.rows <= MOST_FEW_ROWS && b.col_stride == 1 &&
              double(b.rows) * double(b.cols) >= LARGE_RIGHT;
#if defined(RL_HAVE_AVX2)
  if (avx512_chosen()) return terms ? avx512::few_terms : rows ? avx512::few_rows : nullptr;
  if (cpu_capability()[0] == 'A') return terms ? avx2::few_terms : nullptr;
#endif
  return terms ? baseline::few_terms : nullptr;
}

double product_size(const Matrix& c, int64_t k) { return double(c.rows) * double(c.cols) * double(k); }

// Uninitialised memory for temporaries.
template <class T>
struct Scratch {
  T* data;
  explicit Scratch(int64_t n) : data(static_cast<T*>(std::malloc(size_t(n) * sizeof(T)))) {
    if (!data) throw std::bad_alloc();
  }
  Scratch(Scratch&& other) : data(other.data) { other.data = nullptr; }
  ~Scratch() { std::free(data); }
};

template <class T>
struct Routines;
template <>
struct Routines<float> {
  static constexpr auto gemm = &Blas::sgemm;
  static constexpr auto gemv = &Blas::sgemv;
  static float dot(const Blas* blas, int n, const float* x, int incx, const float* y, int incy, bool) {
    return blas->sdot(n, x, incx, y, incy);
  }
};
template <>
struct Routines<double> {
  static constexpr auto gemm = &Blas::dgemm;
  static constexpr auto gemv = &Blas::dgemv;
  static double dot(const Blas* blas, int n, const double* x, int incx, const double* y, int incy, bool) {
    return blas->ddot(n, x, incx, y, incy);
  }
};
template <>
struct Routines<std::complex<float>> {
  using T = std::complex<float>;
  static constexpr auto gemm = &Blas::cgemm;
  static constexpr auto gemv = &Blas::cgemv;
  static T dot(const Blas* blas, int n, const T* x, int incx, const T* y, int incy, bool conjugate) {
    T result;
    (conjugate ? blas->cdotc : blas->cdotu)(n, x, incx, y, incy, &result);
    return result;
  }
};
template <>
struct Routines<std::complex<double>> {
  using T = std::complex<double>;
  static constexpr auto gemm = &Blas::zgemm;
  static constexpr auto gemv = &Blas::zgemv;
  static T dot(const Blas* blas, int n, const T* x, int incx, const T* y, int incy, bool conjugate) {
    T result;
    (conjugate ? blas->zdotc : blas->zdotu)(n, x, incx, y, incy, &result);
    return result;
  }
};

// cblas takes real scalars by value and complex ones by pointer.
inline float scalar(const float& x) { return x; }
inline double scalar(const double& x) { return x; }
template <class R>
inline const std::complex<R>* scalar(const std::complex<R>& x) {
  return &x;
}

template <class F>
bool visit_blas(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: f(TypeTag<float>{}); return true;
    case DType::f64: f(TypeTag<double>{}); return true;
    case DType::c64: f(TypeTag<std::complex<float>>{}); return true;
    case DType::c128: f(TypeTag<std::complex<double>>{}); return true;
    default: return false;
  }
}

// parallel_for with ranges of any length: it rounds its own to multiples of 16.
template <class F>
void parallel_items(int64_t n, int64_t grain, const F& f) {
  parallel_for(n * 16, grain * 16, [&](int64_t begin, int64_t end) { f(begin / 16, end / 16); });
}

// to = from, in square blocks so that a transposition uses whole cache lines.
template <class T>
void copy_matrix(const Matrix& to, const Matrix& from) {
  constexpr int64_t BLOCK = 32;
  int64_t bands = (from.rows + BLOCK - 1) / BLOCK;
  parallel_items(bands, std::max<int64_t>(1, 2000 / std::max<int64_t>(1, from.cols)),
                 [&](int64_t begin, int64_t end) {
                   int64_t last = std::min(from.rows, end * BLOCK);
                   for (int64_t i0 = begin * BLOCK; i0 < last; i0 += BLOCK)
                     for (int64_t j0 = 0; j0 < from.cols; j0 += BLOCK)
                       for (int64_t i = i0; i < std::min(last, i0 + BLOCK); i++)
                         for (int64_t j = j0; j < std::min(from.cols, j0 + BLOCK); j++)
                           static_cast<T*>(to.data)[i * to.row_stride + j * to.col_stride] =
                               static_cast<const T*>(from.data)[i * from.row_stride + j * from.col_stride];
                 });
}

// The leading dimension if BLAS can take the matrix as it lies, row after row; 0 if not.
int64_t row_major_ld(const Matrix& m) {
  if (m.col_stride != 1 && m.cols > 1) return 0;
  int64_t least = std::max<int64_t>(1, m.cols);
  if (m.rows <= 1) return least;
  return m.row_stride >= least && m.row_stride <= INT32_MAX ? m.row_stride : 0;
}

template <class T>
Matrix row_major(T* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, std::max<int64_t>(1, cols), 1};
}

// A matrix as BLAS takes it, copied if it must be.
template <class T>
struct Operand {
  const T* data;
  CblasTranspose transpose = NO_TRANS;
  int ld;
  std::unique_ptr<Scratch<T>> copy;

  explicit Operand(const Matrix& m) : data(static_cast<const T*>(m.data)) {
    if (int64_t rows_ld = row_major_ld(m)) {
      ld = int(rows_ld);
    } else if (int64_t cols_ld = row_major_ld(m.transposed())) {
      transpose = TRANS;
      ld = int(cols_ld);
    } else {
      copy = std::make_unique<Scratch<T>>(m.rows * m.cols);
      copy_matrix<T>(row_major(copy->data, m.rows, m.cols), m);
      data = copy->data;
      ld = int(std::max<int64_t>(1, m.cols));
    }
  }
  // From columns that lie together to rows that do.
  void turn_round(int64_t rows, int64_t cols) {
    auto turned = std::make_unique<Scratch<T>>(rows * cols);
    loops().transpose(sizeof(T) == 4 ? DType::f32 : DType::f64, data, ld, cols, rows, turned->data);
    copy = std::move(turned);
    data = copy->data;
    transpose = NO_TRANS;
    ld = int(cols);
  }
  const T* at(int64_t i, int64_t j) const { return data + (transpose == TRANS ? j * ld + i : i * ld + j); }
  Matrix part(int64_t i, int64_t j, int64_t rows, int64_t cols) const {
    T* from = const_cast<T*>(at(i, j));
    return transpose == TRANS ? Matrix{from, rows, cols, 1, ld} : Matrix{from, rows, cols, ld, 1};
  }
};

// The number of row bands that, with threads / bands column bands, makes the squarest blocks.
int row_bands(int64_t m, int64_t n, int threads) {
  int best = 1;
  double best_cost = 0;
  for (int bands = 1; bands <= threads; bands++) {
    if (threads % bands) continue;
    double cost = double(m) / bands + double(n) / (threads / bands);
    if (bands == 1 || cost < best_cost) best = bands, best_cost = cost;
  }
  return best;
}

// Note [unpacked products]
// For AVX-512 OpenBLAS has kernels that read both operands in place. They reach 150-190 GF/s (float, one
// core) where the packing ones reach 110-140 at sizes around 128 and 20-60 with few rows, but OpenBLAS takes
// them only up to a million multiply-adds, and their form for a @ b.T needs many terms to be fast. So
// products of up to UNPACKED or of few rows are handed over in tiles small enough to take that path, and with
// few terms a transposed b is first turned round (measured, float, one core: 128x128x128 30 -> 24 us;
// 8x512x512 120 -> 28 us; x @ w.T with 32x32x32 1.6 -> 0.8 us).
constexpr double UNPACKED = 3.5e7;
constexpr int64_t FEW_ROWS = 32, FEW_TERMS = 400;
constexpr int64_t TILE_TERMS = 1000000, TILE_AREA = 1200, TILE_COLS = 64, TILE_DEPTH = 384, ROW_DEPTH = 960;

// Where our own packing product (gemm_avx512.h) is the fastest: a @ b.T of few terms, and what is too large
// to go unpacked but has too few terms for OpenBLAS's packing (measured, float, one core, against the above:
// x @ w.T with 32x1024x256 2.0x, 256x256x256 1.5x; 2048x1024x128 1.2x, 64x3136x256 1.1x; level at 1024^3).
constexpr double OWN_BY_ROWS = 1.5e6;
constexpr int64_t OWN_TERMS = 256, OWN_COLUMNS = 128;

template <class T>
bool packs_own(int64_t rows, int64_t cols, int64_t k, bool by_rows) {
  if (!std::is_same_v<T, float> || rows < 16 || cols < OWN_COLUMNS || !avx512_chosen()) return false;
  double size = double(rows) * double(cols) * double(k);
  return by_rows && k < FEW_TERMS ? size >= OWN_BY_ROWS : size > UNPACKED && k <= OWN_TERMS;
}

template <class T>
constexpr bool HAS_UNPACKED = std::is_same_v<T, float> || std::is_same_v<T, double>;

// c is row-major with leading dimension ldc; all sizes fit 32 bits.
template <class T>
void blas_blocks(const Blas* blas, const Matrix& c, int ldc, const Operand<T>& a, const Operand<T>& b,
                 int64_t k, T alpha, T beta) {
  bool by_rows = a.transpose == NO_TRANS && b.transpose == TRANS;
  // Adds the terms [p, p + depth) of a block of c.
  auto call = [&](int64_t i, int64_t j, int64_t rows, int64_t cols, int64_t p, int64_t depth) {
    T keep = p == 0 ? beta : T(1);
    (blas->*Routines<T>::gemm)(ROW_MAJOR, a.transpose, b.transpose, int(rows), int(cols), int(depth),
                               scalar(alpha), a.at(i, p), a.ld, b.at(p, j), b.ld, scalar(keep),
                               static_cast<T*>(c.data) + i * ldc + j, ldc);
  };
  auto block = [&](int64_t i, int64_t j, int64_t rows, int64_t cols) {
    if (rows <= 0 || cols <= 0) return;
    if constexpr (std::is_same_v<T, float>) {
      if (packs_own<T>(rows, cols, k, by_rows) &&
          gemm_avx512({static_cast<T*>(c.data) + i * ldc + j, rows, cols, ldc, 1}, a.part(i, 0, rows, k),
                      b.part(0, j, k, cols), alpha, beta))
        return;
    }
    double size = double(rows) * double(cols) * double(k);
    bool tiled = HAS_UNPACKED<T> && blas->has_unpacked_kernels && size > TILE_TERMS &&
                 (size <= UNPACKED || rows <= FEW_ROWS);
    if (!tiled) return call(i, j, rows, cols, 0, k);
    int64_t limit = by_rows ? ROW_DEPTH : TILE_DEPTH, pieces = (k + limit - 1) / limit,
            depth = (k + pieces - 1) / pieces;
    int64_t area = by_rows ? std::min(TILE_AREA, TILE_TERMS / depth) : TILE_TERMS / depth;
    int64_t width = std::min(TILE_COLS, cols), height = std::min<int64_t>(64, area / width / 16 * 16);
    if (rows < height) {
      height = rows;
      width = std::min(cols, std::max(TILE_COLS, area / rows / 16 * 16));
    }
    for (int64_t col = 0; col < cols; col += width)
      for (int64_t p = 0; p < k; p += depth)
        for (int64_t row = 0; row < rows; row += height)
          call(i + row, j + col, std::min(height, rows - row), std::min(width, cols - col), p,
               std::min(depth, k - p));
  };
  int threads = product_size(c, k) * (is_complex_v<T> ? 4 : 1) < THREADED ? 1 : num_threads();
  if (threads == 1) return block(0, 0, c.rows, c.cols);
  int bands = row_bands(c.rows, c.cols, threads), columns = threads / bands;
  int64_t height = (c.rows + bands - 1) / bands, width = (c.cols + columns - 1) / columns;
  height = (height + 15) / 16 * 16, width = (width + 15) / 16 * 16;  // whole tiles of the kernels
  parallel_items(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; part++) {
      int64_t i = part / columns * height, j = part % columns * width;
      block(i, j, std::min(height, c.rows - i), std::min(width, c.cols - j));
    }
  });
}

template <class T>
void blas_gemm(const Blas* blas, Matrix c, Matrix a, Matrix b, T alpha, T beta) {
  int64_t m = c.rows, n = c.cols, k = a.cols;
  auto shifted = [](const Matrix& x, int64_t i, int64_t j, int64_t rows, int64_t cols) {
    return Matrix{static_cast<T*>(x.data) + i * x.row_stride + j * x.col_stride, rows, cols, x.row_stride,
                  x.col_stride};
  };
  if (m > PIECE || n > PIECE || k > PIECE) {
    for (int64_t p = 0; p < k; p += PIECE) {
      int64_t terms = std::min(PIECE, k - p);
      for (int64_t i = 0; i < m; i += PIECE)
        for (int64_t j = 0; j < n; j += PIECE) {
          int64_t rows = std::min(PIECE, m - i), cols = std::min(PIECE, n - j);
          blas_gemm<T>(blas, shifted(c, i, j, rows, cols), shifted(a, i, p, rows, terms),
                       shifted(b, p, j, terms, cols), alpha, p == 0 ? beta : T(1));
        }
    }
    return;
  }
  int64_t ldc = row_major_ld(c);
  if (!ldc && (ldc = row_major_ld(c.transposed()))) {  // columns lie together: compute the transpose
    std::swap(a, b);
    a = a.transposed(), b = b.transposed(), c = c.transposed();
  }
  Operand<T> left(a), right(b);
  if constexpr (HAS_UNPACKED<T>) {
    if (blas->has_unpacked_kernels && left.transpose == NO_TRANS && right.transpose == TRANS &&
        c.rows >= 16 && k < FEW_TERMS && product_size(c, k) <= UNPACKED &&
        !packs_own<T>(c.rows, c.cols, k, true))
      right.turn_round(k, c.cols);
  }
  if (ldc) return blas_blocks<T>(blas, c, int(ldc), left, right, k, alpha, beta);
  Scratch<T> result(m * n);
  Matrix dense = row_major(result.data, m, n);
  if (beta != T(0)) copy_matrix<T>(dense, c);
  blas_blocks<T>(blas, dense, int(dense.row_stride), left, right, k, alpha, beta);
  copy_matrix<T>(c, dense);
}

// f16 and bf16: widen, multiply as floats, round once. Some processors multiply bf16 themselves.
void reduced_gemm(const Blas* blas, DType dtype, const Matrix& c, const Matrix& a, const Matrix& b,
                  float alpha, float beta) {
  auto widen = [&](const Matrix& m, float* to) {
    // Keep the order the operand lies in, so that both reads and writes are sequential.
    if (m.row_stride < m.col_stride) {
      loops().widen(dtype, m.transposed(), to);
      return row_major(to, m.cols, m.rows).transposed();
    }
    loops().widen(dtype, m, to);
    return row_major(to, m.rows, m.cols);
  };
  Scratch<float> result(c.rows * c.cols);
  if (dtype == DType::bf16 && alpha == 1 && bf16_pairs_chosen()) {
    gemm_bf16(result.data, a, b);
    return loops().narrow(dtype, c, result.data, beta);
  }
  Scratch<float> left(a.rows * a.cols), right(b.rows * b.cols);
  blas_gemm<float>(blas, row_major(result.data, c.rows, c.cols), widen(a, left.data), widen(b, right.data),
                   alpha, 0);
  loops().narrow(dtype, c, result.data, beta);
}

// c = beta * c, without reading it if beta is 0.
void scale(DType dtype, const Matrix& c, const void* beta) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto factor = *static_cast<const compute_t<T>*>(beta);
    for (int64_t i = 0; i < c.rows; i++)
      for (int64_t j = 0; j < c.cols; j++) {
        T* to = static_cast<T*>(c.data) + i * c.row_stride + j * c.col_stride;
        *to = factor == compute_t<T>(0) ? T(0) : T(factor * compute_t<T>(*to));
      }
  });
}

Matrix as_column(const Vector& v) { return {v.data, v.size, 1, v.stride, 1}; }

// A stride BLAS can take; a vector of one element may have any.
bool blas_stride(const Vector& v) { return v.size <= 1 || (v.stride >= 1 && v.stride <= INT32_MAX); }
int stride_of(const Vector& v) { return v.size <= 1 ? 1 : int(v.stride); }

template <class T>
void blas_gemv(const Blas* blas, DType dtype, const Vector& y, const Matrix& a, const Vector& x, T alpha,
               T beta) {
  int64_t ld = row_major_ld(a);
  bool transposed = !ld;
  if (transposed) ld = row_major_ld(a.transposed());
  if (!ld || !blas_stride(x) || !blas_stride(y) || a.rows > PIECE || a.cols > PIECE)
    return loops().gemv(dtype, y, a, x, &alpha, &beta);
  auto part = [&](int64_t begin, int64_t end) {
    const T* from = static_cast<const T*>(a.data) + begin * (transposed ? 1 : ld);
    int rows = int(end - begin), cols = int(a.cols);
    (blas->*Routines<T>::gemv)(ROW_MAJOR, transposed ? TRANS : NO_TRANS, transposed ? cols : rows,
                               transposed ? rows : cols, scalar(alpha), from, int(ld),
                               static_cast<const T*>(x.data), stride_of(x), scalar(beta),
                               static_cast<T*>(y.data) + begin * stride_of(y), stride_of(y));
  };
  parallel_for(a.rows, std::max<int64_t>(64, int64_t(200000 / std::max<int64_t>(1, a.cols))), part);
}

// Small products of float and double where the processor has AVX-512: what OpenBLAS does before it multiplies
// takes longer than they do (measured on an EPYC, float: x @ w.T of 16x16x16 230 -> 190 ns, x @ w of 10x50x20
// 320 -> 230; where it has its AVX2 kernels only, 430 and 570). Level from 32x32x32 on. False if it is none.
constexpr double SMALL = 1e6;
constexpr int64_t SMALL_RIGHT = 64 * 64;  // elements of b that are turned round on the stack
template <class T>
bool small_gemm(Matrix c, Matrix a, Matrix b, T alpha, T beta) {
  if (c.col_stride != 1 || c.row_stride < c.cols) {  // columns lie together: compute the transpose
    std::swap(a, b);
    a = a.transposed(), b = b.transposed(), c = c.transposed();
    if (c.col_stride != 1 || c.row_stride < c.cols) return false;
  }
  if (b.col_stride == 1) {
    small_gemm_avx512(c, a, b, alpha, beta);
    return true;
  }
  if (b.row_stride != 1 || b.rows * b.cols > SMALL_RIGHT) return false;
  alignas(64) T turned[SMALL_RIGHT];
  loops().transpose(sizeof(T) == 4 ? DType::f32 : DType::f64, b.data, b.col_stride, b.cols, b.rows, turned);
  small_gemm_avx512(c, a, row_major(turned, b.rows, b.cols), alpha, beta);
  return true;
}

bool small_gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const void* alpha,
                const void* beta) {
  if ((dtype != DType::f32 && dtype != DType::f64) || a.cols > SMALL_GEMM_TERMS || !avx512_chosen())
    return false;
  if (dtype == DType::f32)
    return small_gemm(c, a, b, *static_cast<const float*>(alpha), *static_cast<const float*>(beta));
  return small_gemm(c, a, b, *static_cast<const double*>(alpha), *static_cast<const double*>(beta));
}

}  // namespace

void gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const void* alpha,
          const void* beta) {
  int64_t k = a.cols;
  if (c.rows == 0 || c.cols == 0) return;
  if (k == 0) return scale(dtype, c, beta);
  if (c.cols == 1)
    return gemv(dtype, {c.data, c.rows, c.row_stride}, a, {b.data, b.rows, b.row_stride}, alpha, beta);
  if (c.rows == 1)
    return gemv(dtype, {c.data, c.cols, c.col_stride}, b.transposed(), {a.data, a.cols, a.col_stride}, alpha,
                beta);
  double size = product_size(c, k);
  // Tiny ones too where b is to be turned round: squares are quicker than one number after the other.
  if (size <= SMALL && (size > TINY || b.col_stride != 1) && small_gemm(dtype, c, a, b, alpha, beta)) return;
  if (size <= TINY || is_integral(dtype) || is_bool(dtype)) return loops().gemm(dtype, c, a, b, alpha, beta);
  if (dtype == DType::f32 && *static_cast<const float*>(beta) == 0) {
    FewTerms loop = few_loop(c, b);
    if (loop && loop(c, a, b, *static_cast<const float*>(alpha))) return;
  }
  const Blas* library = blas();
  if (!library) return loops().gemm(dtype, c, a, b, alpha, beta);
  bool done = visit_blas(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    blas_gemm<T>(library, c, a, b, *static_cast<const T*>(alpha), *static_cast<const T*>(beta));
  });
  if (done) return;
  if (size < 32 * 32 * 32) return loops().gemm(dtype, c, a, b, alpha, beta);
  reduced_gemm(library, dtype, c, a, b, *static_cast<const float*>(alpha), *static_cast<const float*>(beta));
}

void gemv(DType dtype, const Vector& y, const Matrix& a, const Vector& x, const void* alpha,
          const void* beta) {
  if (y.size == 0) return;
  if (a.cols == 0) return scale(dtype, as_column(y), beta);
  if (double(a.rows) * double(a.cols) > TINY_VECTOR) {
    if (const Blas* library = is_integral(dtype) ? nullptr : blas()) {
      bool done = visit_blas(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        blas_gemv<T>(library, dtype, y, a, x, *static_cast<const T*>(alpha), *static_cast<const T*>(beta));
      });
      if (done) return;
    }
  }
  loops().gemv(dtype, y, a, x, alpha, beta);
}

void dot(DType dtype, void* result, const Vector& x, const Vector& y, bool conjugate_x) {
  constexpr int64_t CHUNK = 1 << 16;  // fixed, so that the result does not depend on the number of threads
  const Blas* library = x.size <= 64 ? nullptr : blas();
  if (library && blas_stride(x) && blas_stride(y)) {
    bool done = visit_blas(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto part = [&](int64_t begin, int64_t end) {
        return Routines<T>::dot(library, int(end - begin), static_cast<const T*>(x.data) + begin * x.stride,
                                stride_of(x), static_cast<const T*>(y.data) + begin * y.stride, stride_of(y),
                                conjugate_x);
      };
      if (x.size <= CHUNK) {
        *static_cast<T*>(result) = part(0, x.size);
        return;
      }
      std::vector<T> sums(size_t((x.size + CHUNK - 1) / CHUNK));
      parallel_items(int64_t(sums.size()), 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++)
          sums[size_t(i)] = part(i * CHUNK, std::min(x.size, (i + 1) * CHUNK));
      });
      T total = 0;
      for (T sum : sums) total += sum;
      *static_cast<T*>(result) = total;
    });
    if (done) return;
  }
  loops().dot(dtype, result, x, y, conjugate_x);
}

namespace {

// y = alpha a x + beta y with a small matrix, of which there are many: a call for each would take longer than
// its sums.
template <class T>
void small_gemv(const Vector& y, const Matrix& a, const Vector& x, T alpha, T beta) {
  for (int64_t i = 0; i < a.rows; i++) {
    const T *row = static_cast<const T*>(a.data) + i * a.row_stride, *v = static_cast<const T*>(x.data);
    T sums[4] = {};
    int64_t k = 0;
    for (; k + 4 <= a.cols; k += 4)
      for (int64_t l = 0; l < 4; l++) sums[l] += row[(k + l) * a.col_stride] * v[(k + l) * x.stride];
    for (; k < a.cols; k++) sums[0] += row[k * a.col_stride] * v[k * x.stride];
    T sum = alpha * ((sums[0] + sums[1]) + (sums[2] + sums[3])), *to = static_cast<T*>(y.data) + i * y.stride;
    *to = beta == T(0) ? sum : sum + beta * *to;
  }
}
constexpr int64_t SMALL_VECTOR_PRODUCT = 256;  // elements of the matrix

}  // namespace

void batched_gemm(const Span& c, const Span& a, const Span& b, const void* alpha, const void* beta) {
  int batch_dims = c.ndim - 2;
  auto matrix = [batch_dims](const Span& s) {
    return Matrix{s.data, s.sizes[batch_dims], s.sizes[batch_dims + 1], s.strides[batch_dims],
                  s.strides[batch_dims + 1]};
  };
  Matrix mc = matrix(c), ma = matrix(a), mb = matrix(b);
  int64_t batch = 1;
  for (int d = 0; d < batch_dims; d++) batch *= c.sizes[d];
  if (batch == 0) return;
  // One b for all: where the rows of a and c follow one another through the batch, it is a single product.
  bool foldable = true;
  int64_t rows = mc.rows;
  for (int d = batch_dims - 1; d >= 0 && foldable; d--) {
    if (c.sizes[d] == 1) continue;
    foldable =
        b.strides[d] == 0 && a.strides[d] == rows * ma.row_stride && c.strides[d] == rows * mc.row_stride;
    rows *= c.sizes[d];
  }
  if (foldable) {
    mc.rows = ma.rows = rows;
    return gemm(c.dtype, mc, ma, mb, alpha, beta);
  }
  int64_t item = dtype_size(c.dtype);
  double size = product_size(mc, ma.cols);
  auto parts = [&](const auto& f) {
    parallel_items(batch, std::max<int64_t>(1, int64_t(THREADED / 4 / std::max(1.0, size))), f);
  };
  if (are_small_products(c, a)) {
    return parts([&](int64_t begin, int64_t end) { small_products(c, a, b, alpha, beta, begin, end); });
  }
  bool by_vectors = (c.dtype == DType::f32 || c.dtype == DType::f64) && (mc.rows == 1 || mc.cols == 1) &&
                    product_size(mc, ma.cols) <= SMALL_VECTOR_PRODUCT;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t number = begin; number < end; number++) {
      int64_t rest = number, at_c = 0, at_a = 0, at_b = 0;
      for (int d = batch_dims - 1; d >= 0; d--) {
        int64_t index = rest % c.sizes[d];
        rest /= c.sizes[d];
        at_c += index * c.strides[d], at_a += index * a.strides[d], at_b += index * b.strides[d];
      }
      auto moved = [item](Matrix m, int64_t offset) {
        m.data = static_cast<char*>(m.data) + offset * item;
        return m;
      };
      Matrix to = moved(mc, at_c), left = moved(ma, at_a), right = moved(mb, at_b);
      if (!by_vectors) {
        gemm(c.dtype, to, left, right, alpha, beta);
        continue;
      }
      if (to.cols != 1) {  // a row times a matrix
        std::swap(left, right);
        left = left.transposed(), right = right.transposed(), to = to.transposed();
      }
      Vector y = {to.data, to.rows, to.row_stride}, x = {right.data, right.rows, right.row_stride};
      if (c.dtype == DType::f32)
        small_gemv(y, left, x, *static_cast<const float*>(alpha), *static_cast<const float*>(beta));
      else small_gemv(y, left, x, *static_cast<const double*>(alpha), *static_cast<const double*>(beta));
    }
  };
  if (size >= 4 * THREADED) run(0, batch);  // each product is divided over the threads by itself
  else parts(run);
}

}  // namespace rl
