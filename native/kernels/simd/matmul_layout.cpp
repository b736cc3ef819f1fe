// Copies that prepare operands and results of products: half precision to float and back, and transposition.
#include "matmul_vectors.h"

namespace rl {
inline namespace RL_ISA {
namespace {

template <class F>
void visit_reduced(DType dtype, F&& f) {
  if (dtype == DType::f16) f(TypeTag<Half>{});
  else f(TypeTag<BFloat16>{});
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
