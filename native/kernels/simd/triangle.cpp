// Triangular systems of up to 16 unknowns, for one instruction set; see ../triangle.h.
#include "../triangle.h"

#include <algorithm>

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr int S = TRIANGLE;

// Several columns at once: each step waits for the one before it, but not for its neighbours. The triangle is
// filled up with zeros, so that every step is one of whole vectors.
template <class T>
void left(const Triangle<T>& t, int64_t columns, T* b, int64_t ld) {
  constexpr int WIDE = 8, LANES = 32 / sizeof(T), PARTS = S / LANES;
  typedef T Vector __attribute__((vector_size(32)));
  for (int64_t c = 0; c < columns; c += WIDE, b += WIDE * ld) {
    int count = int(std::min<int64_t>(WIDE, columns - c));
    alignas(64) T x[WIDE][S] = {};
    for (int w = 0; w < count; w++) std::copy_n(b + w * ld, t.size, x[w]);
    for (int step = 0; step < t.size; step++) {
      int k = t.forward ? step : t.size - 1 - step;
      const Vector* factors = reinterpret_cast<const Vector*>(t.factors + k * S);
#pragma GCC unroll 4
      for (int w = 0; w < WIDE; w++) {
        T found = t.divides ? x[w][k] / t.diagonal[k] : x[w][k] * t.diagonal[k];
        Vector* line = reinterpret_cast<Vector*>(x[w]);
#pragma GCC unroll 4
        for (int p = 0; p < PARTS; p++) line[p] -= factors[p] * found;
        x[w][k] = found;
      }
    }
    for (int w = 0; w < count; w++) std::copy_n(x[w], t.size, b + w * ld);
  }
}

// Unknowns are columns here; a block of rows stays in the cache meanwhile.
template <class T>
void right(const Triangle<T>& t, int64_t rows, T* b, int64_t ld) {
  constexpr int64_t BLOCK = 256;
  for (int64_t first = 0; first < rows; first += BLOCK, b += BLOCK) {
    int64_t n = std::min(BLOCK, rows - first);
    for (int step = 0; step < t.size; step++) {
      int k = t.forward ? step : t.size - 1 - step;
      T *x = b + k * ld, diagonal = t.diagonal[k];
      if (t.divides)
        for (int64_t i = 0; i < n; i++) x[i] /= diagonal;
      else
        for (int64_t i = 0; i < n; i++) x[i] *= diagonal;
      for (int j = 0; j < t.size; j++) {
        T factor = t.factors[k * S + j], *to = b + j * ld;
        if (j == k || (j < k) == t.forward) continue;
        for (int64_t i = 0; i < n; i++) to[i] -= factor * x[i];
      }
    }
  }
}

}  // namespace

const TriangleLoops<float> triangle_f32 = {left<float>, right<float>};
const TriangleLoops<double> triangle_f64 = {left<double>, right<double>};

}  // namespace RL_ISA
}  // namespace rl
