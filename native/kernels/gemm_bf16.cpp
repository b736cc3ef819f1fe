// Products of bfloat16 by VDPBF16PS, which multiplies two of them per lane and adds both products to a float:
// twice the work of a float product in the same time. Start at `gemm_bf16`.
//
// As in gemm_avx512.cpp, rows of a are packed in tiles and columns of b in panels, a block of terms at a
// time, but two terms side by side make one word of 32 bits. An odd last term is paired with a zero.
#include "gemm_bf16.h"

#include "simd/families.h"
#include "tile_avx512.h"
#include "workspace.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace rl {
namespace {

constexpr int64_t DEPTH = 256;     // pairs of terms at a time
constexpr int64_t COLUMNS = 1024;  // of b packed at a time

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512bf16,avx512f,avx512bw,avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512bf16,avx512f,avx512bw,avx2")
#endif

// Two neighbouring terms. `second` is false where there is only one.
inline uint32_t pair(const uint16_t* at, int64_t step, bool second) {
  return at[0] | (second ? uint32_t(at[step]) << 16 : 0);
}

// `count` rows (or columns), `step` apart, of `terms` terms, `term_step` apart: to[pair * width + row], zeros
// from row `count` on.
void pack(const uint16_t* from, int64_t step, int64_t term_step, int64_t count, int64_t terms, int64_t width,
          uint32_t* to) {
  for (int64_t k = 0; k < terms; k += 2, from += 2 * term_step, to += width) {
    bool second = k + 1 < terms;
    if (step == 1)
      for (int64_t r = 0; r < count; r++) to[r] = pair(from + r, term_step, second);
    else
      for (int64_t r = 0; r < count; r++) to[r] = pair(from + r * step, term_step, second);
    for (int64_t r = count; r < width; r++) to[r] = 0;
  }
}

// The tile of tile_avx512.h with pairs in the place of floats.
template <int ROWS>
void tile(int64_t pairs, const float* a, const float* b, float* c, int64_t ldc, int64_t rows, int64_t columns,
          const float* bias, bool first) {
  __mmask16 left = first_lanes(columns), right = first_lanes(columns - 16);
  __m512 sum[ROWS][2];
#pragma GCC unroll 14
  for (int r = 0; r < ROWS; r++) {
    bool adds = !first && r < rows;
    __m512 start = _mm512_set1_ps(first && bias && r < rows ? bias[r] : 0.0f);
    sum[r][0] = adds ? _mm512_maskz_loadu_ps(left, c + r * ldc) : start;
    sum[r][1] = adds ? _mm512_maskz_loadu_ps(right, c + r * ldc + 16) : start;
  }
  for (int64_t k = 0; k < pairs; k++, a += ROWS, b += TILE_WIDTH) {
    __m512bh b0 = (__m512bh)_mm512_loadu_si512(b), b1 = (__m512bh)_mm512_loadu_si512(b + 16);
#pragma GCC unroll 14
    for (int r = 0; r < ROWS; r++) {
      __m512bh factor = (__m512bh)_mm512_set1_ps(a[r]);
      sum[r][0] = _mm512_dpbf16_ps(sum[r][0], factor, b0);
      sum[r][1] = _mm512_dpbf16_ps(sum[r][1], factor, b1);
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < ROWS; r++) {
    if (r >= rows) continue;
    _mm512_mask_storeu_ps(c + r * ldc, left, sum[r][0]);
    _mm512_mask_storeu_ps(c + r * ldc + 16, right, sum[r][1]);
  }
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

constexpr Tile TILES[] = {nullptr, tile<1>, tile<2>,  tile<3>,  tile<4>,  tile<5>,  tile<6>, tile<7>,
                          tile<8>, tile<9>, tile<10>, tile<11>, tile<12>, tile<13>, tile<14>};

// Rows [i0, i1) of the product, on one thread.
struct Band {
  float* c;
  const Matrix &a, &b;
  int64_t i0, i1, rows = rows_of_tile(i1 - i0);

  static int64_t room(const Matrix& a, const Matrix& b, int64_t height) {
    int64_t pairs = std::min(DEPTH, (a.cols + 1) / 2);
    return pairs * (height + TILE_ROWS + std::min(b.cols, COLUMNS) + TILE_WIDTH) * int64_t(sizeof(uint32_t));
  }

  void run(uint32_t* left) const {
    const uint16_t *from_a = static_cast<const uint16_t*>(a.data), *from_b = static_cast<uint16_t*>(b.data);
    for (int64_t k0 = 0; k0 < a.cols; k0 += 2 * DEPTH) {
      int64_t terms = std::min(2 * DEPTH, a.cols - k0), pairs = (terms + 1) / 2;
      uint32_t* right = left + (i1 - i0 + rows - 1) / rows * rows * pairs;
      for (int64_t i = i0; i < i1; i += rows)
        pack(from_a + i * a.row_stride + k0 * a.col_stride, a.row_stride, a.col_stride,
             std::min(rows, i1 - i), terms, rows, left + (i - i0) * pairs);
      for (int64_t j0 = 0; j0 < b.cols; j0 += COLUMNS) {
        int64_t j1 = std::min(b.cols, j0 + COLUMNS);
        for (int64_t j = j0; j < j1; j += TILE_WIDTH)
          pack(from_b + k0 * b.row_stride + j * b.col_stride, b.col_stride, b.row_stride,
               std::min(TILE_WIDTH, j1 - j), terms, TILE_WIDTH, right + (j - j0) * pairs);
        for (int64_t i = i0; i < i1; i += rows)
          for (int64_t j = j0; j < j1; j += TILE_WIDTH)
            TILES[rows](pairs, reinterpret_cast<const float*>(left + (i - i0) * pairs),
                        reinterpret_cast<const float*>(right + (j - j0) * pairs), c + i * b.cols + j, b.cols,
                        std::min(rows, i1 - i), std::min(TILE_WIDTH, j1 - j), nullptr, k0 == 0);
      }
    }
  }
};

}  // namespace

bool bf16_pairs_chosen() {
  static const bool chosen = avx512_chosen() && __builtin_cpu_supports("avx512bf16");
  return chosen;
}

Tile bf16_tile(int64_t packed_rows) { return TILES[packed_rows]; }

void gemm_bf16(float* c, const Matrix& a, const Matrix& b) {
  double work = double(a.rows) * double(a.cols) * double(b.cols);
  int64_t bands = work < THREADED ? 1 : std::min<int64_t>(num_threads(), a.rows);
  int64_t height = (a.rows + bands - 1) / bands;
  Workspaces rooms(int(bands), Band::room(a, b, height));
  divide(work, bands, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(rooms);
    for (int64_t band = begin; band < end; band++) {
      int64_t i0 = band * height, i1 = std::min(a.rows, i0 + height);
      if (i0 < i1) Band{c, a, b, i0, i1}.run(lease.as<uint32_t>());
    }
  });
}

}  // namespace rl

#else  // other processors: never called

namespace rl {
bool bf16_pairs_chosen() { return false; }
Tile bf16_tile(int64_t) { return nullptr; }
void gemm_bf16(float*, const Matrix&, const Matrix&) {}
}  // namespace rl

#endif
