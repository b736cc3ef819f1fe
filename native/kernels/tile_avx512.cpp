// A tile of up to 14 x 32 results in registers, and packing by transposed blocks of 16 x 16. See
// tile_avx512.h.
#include "tile_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>

#include "avx512.h"

namespace rl {
namespace {

RL_AVX512_BEGIN

template <int ROWS>
void tile(int64_t terms, const float* a, const float* b, float* c, int64_t ldc, int64_t rows, int64_t columns,
          const float* bias, bool first) {
  __mmask16 left = first_lanes(columns), right = first_lanes(columns - 16);
  __m512 sum[ROWS][2];
#pragma GCC unroll 14
  for (int r = 0; r < ROWS; r++) {
    if (first) {
      sum[r][0] = sum[r][1] = _mm512_set1_ps(bias && r < rows ? bias[r] : 0.0f);
    } else if (r < rows) {
      sum[r][0] = _mm512_maskz_loadu_ps(left, c + r * ldc);
      sum[r][1] = _mm512_maskz_loadu_ps(right, c + r * ldc + 16);
    } else {
      sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    }
  }
  for (int64_t k = 0; k < terms; k++, a += ROWS, b += TILE_WIDTH) {
    __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 16);
#pragma GCC unroll 14
    for (int r = 0; r < ROWS; r++) {
      __m512 factor = _mm512_set1_ps(a[r]);
      sum[r][0] = _mm512_fmadd_ps(factor, b0, sum[r][0]);
      sum[r][1] = _mm512_fmadd_ps(factor, b1, sum[r][1]);
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < ROWS; r++) {
    if (r >= rows) continue;
    _mm512_mask_storeu_ps(c + r * ldc, left, sum[r][0]);
    _mm512_mask_storeu_ps(c + r * ldc + 16, right, sum[r][1]);
  }
}

constexpr Tile TILES[] = {nullptr, tile<1>, tile<2>,  tile<3>,  tile<4>,  tile<5>,  tile<6>, tile<7>,
                          tile<8>, tile<9>, tile<10>, tile<11>, tile<12>, tile<13>, tile<14>};

// Pairs of floats from the halves of each lane. Not lambdas: those would not be compiled for AVX-512.
inline __m512 low(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
inline __m512 high(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

inline void transpose_16x16(__m512 (&r)[16]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = low(t[i], t[i + 2]);
    r[i + 1] = high(t[i], t[i + 2]);
    r[i + 2] = low(t[i + 1], t[i + 3]);
    r[i + 3] = high(t[i + 1], t[i + 3]);
  }
  // r[4 i + j] now holds columns j, 4 + j, 8 + j, 12 + j of rows 4 i to 4 i + 3.
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    __m512 a = _mm512_shuffle_f32x4(r[j], r[4 + j], 0x88), b = _mm512_shuffle_f32x4(r[j], r[4 + j], 0xdd);
    __m512 c = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x88);
    __m512 d = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xdd);
    t[j] = _mm512_shuffle_f32x4(a, c, 0x88);
    t[8 + j] = _mm512_shuffle_f32x4(a, c, 0xdd);
    t[4 + j] = _mm512_shuffle_f32x4(b, d, 0x88);
    t[12 + j] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) r[i] = t[i];
}

}  // namespace

Tile avx512_tile(int64_t packed_rows) { return TILES[packed_rows]; }

void avx512_pack_rows(const float* from, int64_t step, int64_t count, int64_t n, int64_t rows,
                      int64_t step_to, bool backwards, float* to) {
  __mmask16 written = first_lanes(rows);
  for (int64_t j = 0; j < n; j += 16) {
    __m512 v[16];
    __mmask16 mask = first_lanes(n - j);
#pragma GCC unroll 16
    for (int r = 0; r < 16; r++)
      v[r] = r < count ? _mm512_maskz_loadu_ps(mask, from + r * step + j) : _mm512_setzero_ps();
    transpose_16x16(v);
    for (int64_t i = 0; i < std::min<int64_t>(16, n - j); i++) {
      int64_t at = backwards ? n - 1 - (j + i) : j + i;
      _mm512_mask_storeu_ps(to + at * step_to, written, v[i]);
    }
  }
}

void avx512_copy_rows(const float* from, int64_t step, int64_t count, int64_t n, int64_t rows,
                      int64_t step_to, float* to) {
  __mmask16 low_read = first_lanes(count), high_read = first_lanes(count - 16);
  __mmask16 low_written = first_lanes(rows), high_written = first_lanes(rows - 16);
  for (int64_t j = 0; j < n; j++, from += step, to += step_to) {
    _mm512_mask_storeu_ps(to, low_written, _mm512_maskz_loadu_ps(low_read, from));
    if (rows > 16) _mm512_mask_storeu_ps(to + 16, high_written, _mm512_maskz_loadu_ps(high_read, from + 16));
  }
}

RL_AVX512_END

}  // namespace rl

#else  // other processors: never called

namespace rl {
Tile avx512_tile(int64_t) { return nullptr; }
void avx512_pack_rows(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, bool, float*) {}
void avx512_copy_rows(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, float*) {}
}  // namespace rl

#endif
