// The two products of a small batch with a large matrix of weights, which BLAS packs at great expense.
//
// `few_terms`: the sums are short and c is large (the gradient of the weights). Writing c takes as long as
// computing it, so it is written once, row after row, past the caches if it is too large for them; b is
// packed into panels and a into strips, which stay in the caches. `few_rows`: b is large and has few rows of
// a to meet (the gradient of the input). Each block of b is packed into the first-level cache, once, and
// meets all of them there.
#include "../few_terms.h"

#include <algorithm>
#include <cstdlib>

#include "../../tensor/parallel.h"
#include "vector.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// The sums of a tile fill the registers: 24 of 32, or 8 of 16.
constexpr int ROWS = VECTOR_BYTES == 64 ? 8 : 4, VECTORS = VECTOR_BYTES == 64 ? 3 : 2;
constexpr int64_t PANEL = VECTORS * F32_LANES;
constexpr int64_t STREAMED_BYTES = int64_t(1) << 23;

inline void stream(float* to, f32v v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, (__m512)v);
#elif defined(__AVX2__)
  _mm256_stream_ps(to, (__m256)v);
#elif defined(__SSE2__)
  _mm_stream_ps(to, (__m128)v);
#else
  store(to, v);
#endif
}

// a is [term][ROWS], b is [term][PANEL].
enum class Into { memory, stream, sums };  // written, written past the caches, or added to
void tile(int64_t terms, const float* a, const float* b, float* c, int64_t ldc, int64_t rows, int64_t cols,
          float alpha, Into into) {
  f32v sum[ROWS][VECTORS] = {};
  for (int64_t p = 0; p < terms; p++, a += ROWS, b += PANEL) {
    f32v column[VECTORS];
#pragma GCC unroll 3
    for (int v = 0; v < VECTORS; v++) column[v] = load(b + v * F32_LANES);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
      f32v factor = splat<f32v>(a[r]);
#pragma GCC unroll 3
      for (int v = 0; v < VECTORS; v++) sum[r][v] = fma(factor, column[v], sum[r][v]);
    }
  }
  bool whole = cols == PANEL;
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; r++) {
    if (r >= rows) continue;
    float* to = c + r * ldc;
    float last[PANEL];
#pragma GCC unroll 3
    for (int v = 0; v < VECTORS; v++) {
      f32v value = sum[r][v] * alpha;
      if (whole && into == Into::stream) stream(to + v * F32_LANES, value);
      else if (whole && into == Into::sums) store(to + v * F32_LANES, load(to + v * F32_LANES) + value);
      else store((whole ? to : last) + v * F32_LANES, value);
    }
    if (whole) continue;
    if (into != Into::sums) std::memcpy(to, last, size_t(cols) * sizeof(float));
    else
      for (int64_t j = 0; j < cols; j++) to[j] += last[j];
  }
}

const float* at(const Matrix& m, int64_t i, int64_t j) {
  return static_cast<const float*>(m.data) + i * m.row_stride + j * m.col_stride;
}

// Terms [p, p + terms) of rows [i, i + rows) of a.
void pack_strip(const Matrix& a, int64_t i, int64_t rows, int64_t p, int64_t terms, float* to) {
  for (int64_t end = p + terms; p < end; p++, to += ROWS)
    for (int64_t r = 0; r < ROWS; r++) to[r] = r < rows ? *at(a, i + r, p) : 0.0f;
}
// Terms [p, p + terms) of columns [j, j + cols) of b.
void pack_panel(const Matrix& b, int64_t j, int64_t cols, int64_t p, int64_t terms, float* to) {
  for (int64_t end = p + terms; p < end; p++, to += PANEL) {
    const float* from = at(b, p, j);
    if (cols == PANEL && b.col_stride == 1) {
      std::memcpy(to, from, PANEL * sizeof(float));
      continue;
    }
    for (int64_t c = 0; c < cols; c++) to[c] = from[c * b.col_stride];
    std::fill(to + cols, to + PANEL, 0.0f);
  }
}

bool multiply_few_terms(const Matrix& c, const Matrix& a, const Matrix& b, float alpha) {
  int64_t terms = a.cols, panels = (c.cols + PANEL - 1) / PANEL;
  auto packed = static_cast<float*>(std::malloc(size_t(panels * terms * PANEL) * sizeof(float)));
  if (!packed) return false;
  for (int64_t number = 0; number < panels; number++)
    pack_panel(b, number * PANEL, std::min(PANEL, c.cols - number * PANEL), 0, terms,
               packed + number * terms * PANEL);
  bool streams = c.rows * c.cols * int64_t(sizeof(float)) >= STREAMED_BYTES &&
                 reinterpret_cast<uintptr_t>(c.data) % 64 == 0 && c.row_stride % 16 == 0;
  parallel_for(c.rows, std::max<int64_t>(16, 200000 / (c.cols * terms) + 1), [&](int64_t begin, int64_t end) {
    float strip[FEW_TERMS_AT_MOST * ROWS];
    for (int64_t i = begin; i < end; i += ROWS) {
      int64_t rows = std::min<int64_t>(ROWS, end - i);
      pack_strip(a, i, rows, 0, terms, strip);
      float* row = static_cast<float*>(c.data) + i * c.row_stride;
      for (int64_t number = 0; number < panels; number++)
        tile(terms, strip, packed + number * terms * PANEL, row + number * PANEL, c.row_stride, rows,
             std::min(PANEL, c.cols - number * PANEL), alpha, streams ? Into::stream : Into::memory);
    }
#if defined(__SSE2__)
    if (streams) _mm_sfence();
#endif
  });
  std::free(packed);
  return true;
}

bool multiply_few_rows(const Matrix& c, const Matrix& a, const Matrix& b, float alpha) {
  constexpr int64_t DEPTH = 64, TOGETHER = 3;  // of a block of b: 36 KB at most
  int64_t k = a.cols, strips = (c.rows + ROWS - 1) / ROWS, panels = (c.cols + PANEL - 1) / PANEL;
  auto packed = static_cast<float*>(std::malloc(size_t(strips * k * ROWS) * sizeof(float)));
  if (!packed) return false;
  for (int64_t s = 0; s < strips; s++)
    pack_strip(a, s * ROWS, std::min<int64_t>(ROWS, c.rows - s * ROWS), 0, k, packed + s * k * ROWS);
  int64_t groups = (panels + TOGETHER - 1) / TOGETHER;
  parallel_for(groups * 16, 16, [&](int64_t begin, int64_t end) {
    alignas(64) float block[TOGETHER * DEPTH * PANEL];
    for (int64_t group = begin / 16; group < end / 16; group++)
      for (int64_t p = 0; p < k; p += DEPTH) {
        int64_t terms = std::min(DEPTH, k - p), last = std::min(panels, (group + 1) * TOGETHER);
        for (int64_t number = group * TOGETHER; number < last; number++)
          pack_panel(b, number * PANEL, std::min(PANEL, c.cols - number * PANEL), p, terms,
                     block + (number % TOGETHER) * DEPTH * PANEL);
        for (int64_t s = 0; s < strips; s++)
          for (int64_t number = group * TOGETHER; number < last; number++)
            tile(terms, packed + (s * k + p) * ROWS, block + (number % TOGETHER) * DEPTH * PANEL,
                 static_cast<float*>(c.data) + s * ROWS * c.row_stride + number * PANEL, c.row_stride,
                 std::min<int64_t>(ROWS, c.rows - s * ROWS), std::min(PANEL, c.cols - number * PANEL), alpha,
                 p ? Into::sums : Into::memory);
      }
  });
  std::free(packed);
  return true;
}

}  // namespace

const FewTerms few_terms = multiply_few_terms, few_rows = multiply_few_rows;

}  // namespace RL_ISA
}  // namespace rl
