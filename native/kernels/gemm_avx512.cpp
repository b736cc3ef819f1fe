// Products of float matrices in AVX-512. Start at `gemm_avx512`.
//
// The usual order: DEPTH terms at a time, all of a's rows are packed in tiles and b's columns in panels, so
// that a panel block stays in the second-level cache and a tile of a in the first; then every tile meets
// every panel (tile_avx512.h). Nothing is packed twice.
#include "gemm_avx512.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "tile_avx512.h"
#include "workspace.h"

namespace rl {
namespace {

constexpr int64_t DEPTH = 320;     // terms at a time
constexpr int64_t COLUMNS = 1024;  // of b packed at a time

// The packing room of a thread, kept for its next product unless it is very large.
struct Room {
  float* data = nullptr;
  int64_t size = 0;
  float* take(int64_t n) {  // null if there is no memory
    if (n <= size) return data;
    std::free(data);
    data = static_cast<float*>(std::aligned_alloc(64, size_t(n * 4 + 63) / 64 * 64));
    size = data ? n : 0;
    return data;
  }
  void give_back() {
    if (size <= int64_t(1) << 21) return;
    std::free(data);
    data = nullptr;
    size = 0;
  }
  ~Room() { std::free(data); }
};
thread_local Room room;

const float* at(const Matrix& m, int64_t i, int64_t j) {
  return static_cast<const float*>(m.data) + i * m.row_stride + j * m.col_stride;
}

// Rows [0, rows of m) of terms [k0, k0 + depth), in tiles [tile][term][row].
void pack_left(const Matrix& a, int64_t k0, int64_t depth, int64_t rows, float alpha, float* to) {
  for (int64_t i = 0; i < a.rows; i += rows, to += depth * rows) {
    int64_t count = std::min(rows, a.rows - i);
    if (a.col_stride == 1) avx512_pack_rows(at(a, i, k0), a.row_stride, count, depth, rows, rows, false, to);
    else avx512_copy_rows(at(a, i, k0), a.col_stride, count, depth, rows, rows, to);
    if (alpha != 1)
      for (int64_t x = 0; x < depth * rows; x++) to[x] *= alpha;
  }
}

// Columns [j0, j0 + columns) of terms [k0, k0 + depth), in panels [panel][term][32].
void pack_right(const Matrix& b, int64_t k0, int64_t depth, int64_t j0, int64_t columns, float* to) {
  for (int64_t j = 0; j < columns; j += TILE_WIDTH, to += depth * TILE_WIDTH) {
    int64_t count = std::min(TILE_WIDTH, columns - j);
    if (b.col_stride == 1) {
      avx512_copy_rows(at(b, k0, j0 + j), b.row_stride, count, depth, TILE_WIDTH, TILE_WIDTH, to);
    } else {
      for (int64_t half = 0; half < TILE_WIDTH; half += 16)
        avx512_pack_rows(at(b, k0, j0 + j + std::min(half, count - 1)), b.col_stride,
                         std::clamp<int64_t>(count - half, 0, 16), depth, 16, TILE_WIDTH, false, to + half);
    }
  }
}

// Terms at a time, in equal parts.
int64_t depth_of(int64_t terms) {
  int64_t pieces = (terms + DEPTH - 1) / DEPTH;
  return (terms + pieces - 1) / pieces;
}

int64_t whole_panels(int64_t columns) { return (columns + TILE_WIDTH - 1) / TILE_WIDTH * TILE_WIDTH; }

// Every tile of `left` meets every panel of `right`.
void tiles_by_panels(float* c, int64_t ldc, int64_t m, int64_t n, int64_t depth, int64_t rows,
                     const float* left, const float* right, bool first) {
  Tile run = avx512_tile(rows);
  for (int64_t i = 0; i < m; i += rows)
    for (int64_t j = 0; j < n; j += TILE_WIDTH)
      run(depth, left + i * depth, right + j * depth, c + i * ldc + j, ldc, std::min(rows, m - i),
          std::min(TILE_WIDTH, n - j), nullptr, first);
}

}  // namespace

bool gemm_avx512(const Matrix& c, const Matrix& a, const Matrix& b, float alpha, float beta) {
  int64_t m = c.rows, n = c.cols, k = a.cols, rows = rows_of_tile(m), ldc = c.row_stride;
  int64_t deepest = depth_of(k), left_size = ((m + rows - 1) / rows * rows * deepest + 15) / 16 * 16;
  float* left = room.take(left_size + whole_panels(std::min(n, COLUMNS)) * deepest);
  if (!left) return false;
  float *right = left + left_size, *to = static_cast<float*>(c.data);
  if (beta != 0 && beta != 1)
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) to[i * ldc + j] *= beta;
  for (int64_t k0 = 0; k0 < k; k0 += deepest) {
    int64_t depth = std::min(deepest, k - k0);
    pack_left(a, k0, depth, rows, alpha, left);
    for (int64_t j = 0; j < n; j += COLUMNS) {
      int64_t columns = std::min(COLUMNS, n - j);
      pack_right(b, k0, depth, j, columns, right);
      tiles_by_panels(to + j, ldc, m, columns, depth, rows, left, right, k0 == 0 && beta == 0);
    }
  }
  room.give_back();
  return true;
}

PackedRight::PackedRight(const Matrix& b)
    : terms(b.rows), columns(b.cols), deepest(depth_of(b.rows)), packed(nullptr, &std::free) {
  int64_t width = whole_panels(columns);
  packed.reset(static_cast<float*>(std::aligned_alloc(64, size_t(terms * width) * sizeof(float))));
  if (!packed) throw std::bad_alloc();
  for (int64_t k0 = 0; k0 < terms; k0 += deepest)
    pack_right(b, k0, std::min(deepest, terms - k0), 0, columns, packed.get() + k0 * width);
}

void PackedRight::multiply(float* c, int64_t m, const float* a, bool fresh) const {
  int64_t rows = rows_of_tile(m), tall = (m + rows - 1) / rows * rows, width = whole_panels(columns);
  float* left = room.take(tall * terms);
  if (!left) throw std::bad_alloc();
  for (int64_t k0 = 0; k0 < terms; k0 += deepest)
    pack_left({const_cast<float*>(a), m, terms, terms, 1}, k0, std::min(deepest, terms - k0), rows, 1,
              left + k0 * tall);
  auto part = [&](int64_t begin, int64_t end) {  // of the panels
    int64_t j = begin * TILE_WIDTH, n = std::min(columns, end * TILE_WIDTH) - j;
    for (int64_t k0 = 0; k0 < terms; k0 += deepest) {
      int64_t depth = std::min(deepest, terms - k0);
      tiles_by_panels(c + j, columns, m, n, depth, rows, left + k0 * tall,
                      packed.get() + k0 * width + j * depth, fresh && k0 == 0);
    }
  };
  divide(double(m) * double(columns) * double(terms), width / TILE_WIDTH, part);
  room.give_back();
}

}  // namespace rl
