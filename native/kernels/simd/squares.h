// Squares that are transposed in registers: 8 x 8 of four bytes, 4 x 4 of eight. The rows that are read lie
// `stride` bytes apart, those that are written `rows` elements.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rl {
inline namespace RL_ISA {
namespace {

#if defined(__AVX2__)
inline void transpose_square(const char* from, int64_t stride, float* to, int64_t rows) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(from + i * stride));
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
    _mm256_storeu_ps(to + i * rows, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * rows, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
inline void transpose_square(const char* from, int64_t stride, double* to, int64_t rows) {
  __m256d r[4], s[4];
  for (int i = 0; i < 4; i++) r[i] = _mm256_loadu_pd(reinterpret_cast<const double*>(from + i * stride));
  for (int i = 0; i < 4; i += 2) {
    s[i] = _mm256_unpacklo_pd(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_pd(r[i], r[i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    _mm256_storeu_pd(to + i * rows, _mm256_permute2f128_pd(s[i], s[i + 2], 0x20));
    _mm256_storeu_pd(to + (i + 2) * rows, _mm256_permute2f128_pd(s[i], s[i + 2], 0x31));
  }
}
#endif

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
