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
  // The same of 16 terms, in four runs of four neighbours: places[16 i + j] is where term j of point i lies,
  // turned[16 i + j] its weight. Where places[16 i] is negative, point i is left out.
  void (*pick_runs)(T* to, const T* plane, const int32_t* places, const T* turned, int64_t n);
  // sums[i] += line[i] * plane[at[i]]
  void (*products)(T* sums, const T* line, const T* plane, const int32_t* at, int64_t n);
};

#define RL_DECLARE_GRID(isa)               \
  namespace isa {                          \
  extern const GridLoops<float> grid_f32;  \
  extern const GridLoops<double> grid_f64; \
  }
RL_DECLARE_GRID(baseline)
#if defined(RL_HAVE_AVX2)
RL_DECLARE_GRID(avx2)
#endif
#undef RL_DECLARE_GRID

// For the processor at hand; T is float or double.
template <class T>
const GridLoops<T>& grid_loops() {
  constexpr bool single = std::is_same_v<T, float>;
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = cpu_capability()[0] == 'A';
  if (has_avx2) {
    if constexpr (single) return avx2::grid_f32;
    else return avx2::grid_f64;
  }
#endif
  if constexpr (single) return baseline::grid_f32;
  else return baseline::grid_f64;
}

}  // namespace rl
