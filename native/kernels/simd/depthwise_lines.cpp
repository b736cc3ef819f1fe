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

// VECTORS vectors of channels of PIXELS pixels at once: they share the weights, and the sums stay in
// registers.
template <class T, int PIXELS, int VECTORS>
inline void window_of(const ChannelWindow& p, const T* from, const compute_t<T>* w, const compute_t<T>* start,
                      T* y, int64_t n, int64_t pixel_step) {
  using V = lane_t<T>;
  constexpr int64_t LANES = lanes_v<T>;
  V sum[PIXELS][VECTORS];
#pragma GCC unroll 2
  for (int q = 0; q < PIXELS; q++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) sum[q][v] = start ? load(start + v * LANES) : V{};
  for (int64_t a = 0; a < p.count[0]; a++)
    for (int64_t b = 0; b < p.count[1]; b++) {
      const T* x = from + a * p.step[0] + b * p.step[1];
      const compute_t<T>* factor = w + a * p.weight_step[0] + b * p.weight_step[1];
      for (int64_t c = 0; c < p.count[2]; c++, x += p.step[2], factor += p.weight_step[2])
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
          V weight = load(factor + v * LANES);
#pragma GCC unroll 2
          for (int q = 0; q < PIXELS; q++)
            sum[q][v] = fma(weight, load(x + q * pixel_step + v * LANES), sum[q][v]);
        }
    }
#pragma GCC unroll 2
  for (int q = 0; q < PIXELS; q++)
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; v++) store(y + q * n + v * LANES, sum[q][v]);
}

template <class T>
void channels_of(const ChannelWindow& p, const T* from, const compute_t<T>* w, const compute_t<T>* start,
                 T* y, int64_t n, int64_t pixels, int64_t pixel_step) {
  using C = compute_t<T>;
  constexpr int64_t LANES = lanes_v<T>;
  for (int64_t pixel = 0; pixel < pixels;) {
    int64_t together = pixels - pixel >= 2 ? 2 : 1, i = 0;
    const T* x = from + pixel * pixel_step;
    T* to = y + pixel * n;
    auto begin = [&] { return start ? start + i : nullptr; };
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
      if (together == 2) window_of<T, 2, 4>(p, x + i, w + i, begin(), to + i, n, pixel_step);
      else window_of<T, 1, 4>(p, x + i, w + i, begin(), to + i, n, pixel_step);
    }
    for (; i + LANES <= n; i += LANES)
      for (int64_t q = 0; q < together; q++)
        window_of<T, 1, 1>(p, x + q * pixel_step + i, w + i, begin(), to + q * n + i, n, pixel_step);
    for (; i < n; i++)
      for (int64_t q = 0; q < together; q++) {
        C sum = start ? start[i] : C(0);
        for (int64_t a = 0; a < p.count[0]; a++)
          for (int64_t b = 0; b < p.count[1]; b++)
            for (int64_t c = 0; c < p.count[2]; c++)
              sum += w[i + a * p.weight_step[0] + b * p.weight_step[1] + c * p.weight_step[2]] *
                     C(x[q * pixel_step + i + a * p.step[0] + b * p.step[1] + c * p.step[2]]);
        to[q * n + i] = T(sum);
      }
    pixel += together;
  }
}

template <class T>
void products_of(const T* g, int64_t g_step, const T* x, int64_t x_step, int64_t pixels, compute_t<T>* sums,
                 int64_t n) {
  using V = lane_t<T>;
  using C = compute_t<T>;
  constexpr int64_t LANES = lanes_v<T>, TOGETHER = 4;
  int64_t i = 0;
  for (; i + TOGETHER * LANES <= n; i += TOGETHER * LANES) {
    V sum[TOGETHER];
    for (int v = 0; v < TOGETHER; v++) sum[v] = load(sums + i + v * LANES);
    for (int64_t p = 0; p < pixels; p++)
#pragma GCC unroll 4
      for (int v = 0; v < TOGETHER; v++)
        sum[v] = fma(load(g + p * g_step + i + v * LANES), load(x + p * x_step + i + v * LANES), sum[v]);
    for (int v = 0; v < TOGETHER; v++) store(sums + i + v * LANES, sum[v]);
  }
  for (; i < n; i++)
    for (int64_t p = 0; p < pixels; p++) sums[i] += C(g[p * g_step + i]) * C(x[p * x_step + i]);
}

template <class F>
void with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64: return f(TypeTag<double>{});
    case DType::bf16: return f(TypeTag<BFloat16>{});
    case DType::f16: return f(TypeTag<Half>{});
    default: return f(TypeTag<float>{});
  }
}

void channels(DType dtype, const ChannelWindow& p, const void* from, const void* w, const void* start,
              void* y, int64_t n, int64_t pixels, int64_t pixel_step) {
  with_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    channels_of<T>(p, static_cast<const T*>(from), static_cast<const C*>(w), static_cast<const C*>(start),
                   static_cast<T*>(y), n, pixels, pixel_step);
  });
}

void channel_products(DType dtype, const void* g, int64_t g_step, const void* x, int64_t x_step,
                      int64_t pixels, void* sums, int64_t n) {
  with_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    products_of<T>(static_cast<const T*>(g), g_step, static_cast<const T*>(x), x_step, pixels,
                   static_cast<compute_t<T>*>(sums), n);
  });
}

void add(DType dtype, void* to, const void* from, int64_t n) {
  auto run = [&](auto* sum, auto* more) {
    for (int64_t i = 0; i < n; i++) sum[i] += more[i];
  };
  dtype == DType::f64 ? run(static_cast<double*>(to), static_cast<const double*>(from))
                      : run(static_cast<float*>(to), static_cast<const float*>(from));
}

}  // namespace

extern const DepthwiseLoops depthwise_loops;
const DepthwiseLoops depthwise_loops = {lines, weights, channels, channel_products, add};

}  // namespace RL_ISA
}  // namespace rl
