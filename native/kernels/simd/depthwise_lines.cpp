// The sums of depthwise convolutions along the lines of a plane, see ../depthwise.h.
//
// Several lines at a time share the weights and do not wait for each other's sums. Vectors at the end of a
// line are computed whole, of what stands behind it, and used as far as the line goes.
#include <algorithm>

#include "../depthwise.h"
#include "vector.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// VECTORS vectors of LINES lines each; `count` lines are wanted.
template <class T, int LINES, int VECTORS>
void block(const DepthwisePlane& p, const T* image, const T* w, bool turned, T start, T* y, int64_t first,
           int64_t count) {
  using V = lane_t<T>;
  constexpr int64_t LANES = lanes_v<T>, STEP = VECTORS * LANES;
  const T* from[LINES];
  for (int64_t l = 0; l < LINES; l++) from[l] = image + p.line_at[first + std::min(l, count - 1)];
  for (int64_t o = 0; o < p.width; o += STEP) {
    V sum[LINES][VECTORS];
#pragma GCC unroll 8
    for (int l = 0; l < LINES; l++)
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS; v++) sum[l][v] = splat<V>(start);
    for (int64_t t = 0; t < p.terms; t++) {
      V factor = splat<V>(w[turned ? p.terms - 1 - t : t]);
      int64_t at = p.term_at[t] + o;
#pragma GCC unroll 8
      for (int l = 0; l < LINES; l++)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++) sum[l][v] = fma(factor, load(from[l] + at + v * LANES), sum[l][v]);
    }
    int64_t left = p.width - o;
#pragma GCC unroll 8
    for (int l = 0; l < LINES; l++) {
      if (l >= count) continue;
      T *to = y + (first + l) * p.width + o, last[STEP];
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS; v++) store((left >= STEP ? to : last) + v * LANES, sum[l][v]);
      if (left < STEP) std::memcpy(to, last, size_t(left) * sizeof(T));
    }
  }
}

template <class T>
void lines_of(const DepthwisePlane& p, const T* image, const T* w, bool turned, T start, T* y) {
  static_assert(2 * lanes_v<T> <= DEPTHWISE_SLACK);
  bool narrow = p.width <= lanes_v<T>;
  int64_t together = narrow ? 8 : 4;
  for (int64_t first = 0; first < p.lines; first += together) {
    int64_t count = std::min(together, p.lines - first);
    if (narrow) block<T, 8, 1>(p, image, w, turned, start, y, first, count);
    else block<T, 4, 2>(p, image, w, turned, start, y, first, count);
  }
}

// The first n lanes of v, zeros in the others: a zero of the gradient would not do, as 0 * inf is NaN.
template <class V>
V first_of(V v, int64_t n) {
  bits_t<V> lane;
  for (int i = 0; i < int(sizeof(V) / sizeof(scalar_t<V>)); i++) lane[i] = i < n ? -1 : 0;
  return from_bits(bits(v) & lane);
}

template <class T>
void weights_of(const DepthwisePlane& p, const T* image, const T* gy, T* gw) {
  using V = lane_t<T>;
  constexpr int64_t LANES = lanes_v<T>;
  constexpr int TERMS = 8;
  int64_t whole = p.width / LANES * LANES;
  for (int64_t t0 = 0; t0 < p.terms; t0 += TERMS) {
    int64_t count = std::min<int64_t>(TERMS, p.terms - t0), at[TERMS];
    for (int64_t t = 0; t < TERMS; t++) at[t] = p.term_at[t0 + std::min(t, count - 1)];
    V sum[TERMS] = {};
    for (int64_t l = 0; l < p.lines; l++) {
      const T *from = image + p.line_at[l], *g = gy + l * p.width;
      for (int64_t o = 0; o < whole; o += LANES) {
        V v = load(g + o);
#pragma GCC unroll 8
        for (int t = 0; t < TERMS; t++) sum[t] = fma(v, load(from + at[t] + o), sum[t]);
      }
      if (whole == p.width) continue;
      T last[LANES] = {};
      std::memcpy(last, g + whole, size_t(p.width - whole) * sizeof(T));
      V v = load(last);
#pragma GCC unroll 8
      for (int t = 0; t < TERMS; t++)
        sum[t] = fma(v, first_of(load(from + at[t] + whole), p.width - whole), sum[t]);
    }
    for (int64_t t = 0; t < count; t++) {
      T total = 0;
      for (int i = 0; i < LANES; i++) total += sum[t][i];
      gw[t0 + t] += total;
    }
  }
}

void lines(DType dtype, const DepthwisePlane& p, const void* image, const void* w, bool turned,
           const void* start, void* y) {
  auto run = [&](auto zero) {
    using T = decltype(zero);
    lines_of<T>(p, static_cast<const T*>(image), static_cast<const T*>(w), turned,
                start ? *static_cast<const T*>(start) : zero, static_cast<T*>(y));
  };
  dtype == DType::f32 ? run(0.0f) : run(0.0);
}

void weights(DType dtype, const DepthwisePlane& p, const void* image, const void* gy, void* gw) {
  auto run = [&](auto zero) {
    using T = decltype(zero);
    weights_of<T>(p, static_cast<const T*>(image), static_cast<const T*>(gy), static_cast<T*>(gw));
  };
  dtype == DType::f32 ? run(0.0f) : run(0.0);
}

}  // namespace

extern const DepthwiseLoops depthwise_loops;
const DepthwiseLoops depthwise_loops = {lines, weights};

}  // namespace RL_ISA
}  // namespace rl
