// The inner loop of products of float in AVX-512, and the packing it wants; conv_avx512.cpp and
// gemm_avx512.cpp are built on it. Only to be called where avx512_chosen().
#pragma once
#include <algorithm>
#include <cstdint>

namespace rl {

constexpr int64_t TILE_WIDTH = 32;  // columns of a tile: two vectors
constexpr int64_t TILE_ROWS = 14;   // rows of a tile at most: 28 of the 32 registers

// A mask of the first n of 16 lanes.
inline uint16_t first_lanes(int64_t n) {
  return n >= 16 ? uint16_t(0xffff) : n <= 0 ? uint16_t(0) : uint16_t((1u << n) - 1);
}

// How many of `rows` rows each tile takes: of the large tiles the one that leaves the fewest empty at the
// end.
inline int64_t rows_of_tile(int64_t rows) {
  int64_t best = std::min(rows, TILE_ROWS), least = INT64_MAX;
  for (int64_t tile = TILE_ROWS; tile > TILE_ROWS - 4; tile--) {
    int64_t tiles = (rows + tile - 1) / tile, each = (rows + tiles - 1) / tiles;
    if (tiles * each < least) best = each, least = tiles * each;
  }
  return best;
}

// c (rows x columns, leading dimension ldc) = bias + a b if `first`, else c + a b. a has `packed rows`
// numbers per term, b has 32; only the first `rows` and `columns` (at most 32) of the result are read and
// written.
using Tile = void (*)(int64_t terms, const float* a, const float* b, float* c, int64_t ldc, int64_t rows,
                      int64_t columns, const float* bias, bool first);
// For 1 to TILE_ROWS packed rows.
Tile avx512_tile(int64_t packed_rows);

// to[j * step_to + r] = from[r * step + j] for j < n and r < rows <= 16, with j counted from the end if
// `backwards`; zeros from row `count` on.
void avx512_pack_rows(const float* from, int64_t step, int64_t count, int64_t n, int64_t rows,
                      int64_t step_to, bool backwards, float* to);
// to[j * step_to + r] = from[j * step + r], likewise; rows <= 32.
void avx512_copy_rows(const float* from, int64_t step, int64_t count, int64_t n, int64_t rows,
                      int64_t step_to, float* to);

}  // namespace rl
