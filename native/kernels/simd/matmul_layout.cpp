// Copies that prepare operands and results of products: half precision to float and back, and transposition.
#include "matmul_vectors.h"
#include "squares.h"

namespace rl {
inline namespace RL_ISA {
namespace {

template <class F>
void visit_reduced(DType dtype, F&& f) {
  if (dtype == DType::f16) f(TypeTag<Half>{});
  else f(TypeTag<BFloat16>{});
}

template <class T>
void transpose_typed(const T* from, int64_t ld, int64_t rows, int64_t cols, T* to) {
  int64_t whole_rows = 0, whole_cols = 0;
#if defined(__AVX2__)
  constexpr int SIDE = LANES<T>;
  whole_rows = rows / SIDE * SIDE, whole_cols = cols / SIDE * SIDE;
  for (int64_t j = 0; j < whole_cols; j += SIDE)
    for (int64_t i = 0; i < whole_rows; i += SIDE) {
      const char* corner = reinterpret_cast<const char*>(from + i * ld + j);
      transpose_square(corner, ld * int64_t(sizeof(T)), to + j * rows + i, rows);
    }
#endif
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = j < whole_cols ? whole_rows : 0; i < rows; i++) to[j * rows + i] = from[i * ld + j];
}

}  // namespace

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

void loops_transpose(DType dtype, const void* from, int64_t ld, int64_t rows, int64_t cols, void* to) {
  if (dtype == DType::f32)
    transpose_typed(static_cast<const float*>(from), ld, rows, cols, static_cast<float*>(to));
  else transpose_typed(static_cast<const double*>(from), ld, rows, cols, static_cast<double*>(to));
}

}  // namespace RL_ISA
}  // namespace rl
