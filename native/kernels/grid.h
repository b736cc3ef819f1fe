// The pixels that the points of a grid are made of, with their weights: what sampling an image begins with.
#pragma once
#include <type_traits>

#include "elementwise.h"
#include "kernels.h"

namespace rl {

// Points hold x, y (and z) in [-1, 1]; sizes are those of the image, outermost first.
struct GridShape {
  enum Mode { BILINEAR, NEAREST, BICUBIC };
  enum Padding { ZEROS, BORDER, REFLECTION };
  int dims;  // 2 or 3; BICUBIC with 2 only
  int64_t sizes[3];
  int mode, padding;
  bool align_corners;

  int terms() const { return mode == NEAREST ? 1 : mode == BICUBIC ? 16 : 1 << dims; }
  int64_t pixels() const { return sizes[0] * sizes[1] * (dims == 3 ? sizes[2] : 1); }
};

// For n points of `dims` numbers each. What belongs to term j of point i is at [j * step + i].
template <class T>
struct GridLoops {
  // The place of each term in the image, -1 outside, and its weight.
  void (*terms)(const GridShape& s, const T* grid, int64_t n, int64_t step, T* weights, int64_t* index);
  // From the gradients of the weights to those of the points.
  void (*gradient)(const GridShape& s, const T* grid, int64_t n, int64_t step, const T* g, T* to);
  // How many pixels a point moves in each dimension as its coordinate grows by one.
  void (*slopes)(const GridShape& s, const T* grid, int64_t n, T* to);
  // to[i] = the sum over terms of weights[j * n + i] * plane[at[j * n + i]].
  void (*pick)(T* to, const T* plane, const int32_t* at, const T* weights, int64_t terms, int64_t n);
  // sums[i] += line[i] * plane[at[i]]
  void (*products)(T* sums, const T* line, const T* plane, const int32_t* at, int64_t n);
};

// One image of contiguous channels, sampled at n points; `room` holds grid_room elements.
template <class T>
struct GridSamples {
  // Channel c of point i at to[c * step + i].
  void (*forward)(const GridShape& s, const T* grid, int64_t n, const T* image, int64_t channels, T* to,
                  int64_t step, T* room);
  // From the gradients g[c * n + i] to those of the image and of the points, each unless it is null.
  void (*backward)(const GridShape& s, const T* grid, int64_t n, const T* image, int64_t channels, const T* g,
                   T* dx, T* dgrid, T* room);
};
// So few that it takes longer to lay the pixels of the image side by side.
inline bool grid_has_few_points(const GridShape& s, int64_t n) { return n < s.pixels() / 16; }
// For n points at a time: up to 16 channels of an image, and of its gradient where that is computed too, and
// one more pixel of each.
inline int64_t grid_room(const GridShape& s, int64_t n, int64_t channels, bool gradient) {
  if (grid_has_few_points(s, n)) return 0;
  int64_t width = channels > 8 ? 16 : channels > 4 ? 8 : 4;
  return (s.pixels() + 1) * width * (gradient ? 2 : 1);
}

#define RL_DECLARE_GRID(isa)                        \
  namespace isa {                                   \
  extern const GridLoops<float> grid_f32;           \
  extern const GridLoops<double> grid_f64;          \
  extern const GridSamples<float> grid_sample_f32;  \
  extern const GridSamples<double> grid_sample_f64; \
  }
RL_DECLARE_GRID(baseline)
#if defined(RL_HAVE_AVX2)
RL_DECLARE_GRID(avx2)
#endif
#undef RL_DECLARE_GRID

// For the processor at hand; T is float or double.
inline bool grid_has_avx2() {
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = cpu_capability()[0] == 'A';
  return has_avx2;
#else
  return false;
#endif
}
template <class T>
const GridLoops<T>& grid_loops() {
  constexpr bool single = std::is_same_v<T, float>;
#if defined(RL_HAVE_AVX2)
  if (grid_has_avx2()) {
    if constexpr (single) return avx2::grid_f32;
    else return avx2::grid_f64;
  }
#endif
  if constexpr (single) return baseline::grid_f32;
  else return baseline::grid_f64;
}
template <class T>
const GridSamples<T>& grid_samples() {
  constexpr bool single = std::is_same_v<T, float>;
#if defined(RL_HAVE_AVX2)
  if (grid_has_avx2()) {
    if constexpr (single) return avx2::grid_sample_f32;
    else return avx2::grid_sample_f64;
  }
#endif
  if constexpr (single) return baseline::grid_sample_f32;
  else return baseline::grid_sample_f64;
}

}  // namespace rl
