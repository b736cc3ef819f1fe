// Which pixels up to BLOCK points of a grid are made of, for simd/grid.cpp and simd/grid_sample.cpp.
//
// `Places` turns coordinates into pixels, dimension by dimension; `find` makes terms of them. All of it is
// plain arithmetic on arrays, rounded operation by operation as rushlight/ops/grid.py rounds it, which says
// the same in differentiable functions.
#pragma once
#include <algorithm>
#include <cmath>

#include "../grid.h"

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr int64_t BLOCK = 128;

template <class T>
T clipped(T place, T last) {
  return place <= 0 ? T(0) : place >= last ? last : place;
}

// [from, from + span] unfolded: every second copy of it runs backwards.
template <class T>
T reflected(T place, T low, T span, T& sign) {
  T away = place - low;
  sign = away < 0 ? T(-1) : T(1);
  away = away < 0 ? -away : away;
  T flips = std::floor(away / span), extra = away - flips * span;
  bool even = flips - 2 * std::floor(flips / 2) == 0;
  sign = even ? sign : -sign;
  return even ? extra + low : span - extra + low;
}

// Brought back into the image, if what lies outside is not zero; slope is multiplied by the derivative.
template <class T>
void pad(const GridShape& s, T size, int64_t n, T* place, T* slope) {
  if (s.padding == GridShape::REFLECTION) {
    T low = s.align_corners ? T(0) : T(-0.5), span = s.align_corners ? size - 1 : size;
    for (int64_t i = 0; i < n; i++) {
      T sign = 0;
      place[i] = span == 0 ? T(0) : reflected(place[i], low, span, sign);
      slope[i] *= sign;
    }
  }
  if (s.padding != GridShape::ZEROS)
    for (int64_t i = 0; i < n; i++) {
      slope[i] = place[i] <= 0 || place[i] >= size - 1 ? T(0) : slope[i];
      place[i] = clipped(place[i], size - 1);
    }
}

// Up to BLOCK points: where they lie, in whole pixels and the parts between.
template <class T>
struct Places {
  T place[3][BLOCK], slope[3][BLOCK], part[3][BLOCK];
  T lost[BLOCK];  // NaN where a point has no place, where that is not brought to another

  void read(const GridShape& s, const T* grid, int64_t n) {
    for (int d = 0; d < s.dims; d++) {
      const T* point = grid + (s.dims - 1 - d);
      if (s.dims == 2) read<2>(s, point, n, d);
      else read<3>(s, point, n, d);
      if (s.mode != GridShape::BICUBIC) pad(s, T(s.sizes[d]), n, place[d], slope[d]);
      bool nearest = s.mode == GridShape::NEAREST;
      for (int64_t i = 0; i < n; i++) {
        T whole = nearest ? std::nearbyint(place[d][i]) : std::floor(place[d][i]);
        part[d][i] = place[d][i] - whole + lost[i];
        place[d][i] = whole;
      }
    }
  }
  template <int DIMS>
  void read(const GridShape& s, const T* point, int64_t n, int d) {
    T size = T(s.sizes[d]), scale = s.align_corners ? (size - 1) / 2 : size / 2;
    // Far outside: anywhere on that side will do, as long as it is an integer. What has no place (NaN, and
    // infinity where it is reflected) is brought to the first pixel in two dimensions, to the last in three.
    bool stays = s.padding == GridShape::ZEROS || s.mode == GridShape::BICUBIC;
    bool reflects = s.padding == GridShape::REFLECTION && !stays;
    T nowhere = stays ? T(-100) : DIMS == 3 ? size - 1 : T(0);
    bool loses = DIMS == 2 && stays && s.mode != GridShape::NEAREST;
    for (int64_t i = 0; i < n; i++) {
      T x = point[i * DIMS];
      T at = s.align_corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
      bool near = std::abs(at) < T(1e9);
      place[d][i] = near ? at : reflects || at != at ? nowhere : at > 0 ? T(1e9) : T(-100);
      slope[d][i] = near ? scale : T(0);
      lost[i] = loses ? at - at : T(0);
    }
  }
  // The pixel `step` away from the whole one in one dimension, times `stride`; outside: -1 where there is
  // none.
  void move(const GridShape& s, int d, int step, int32_t stride, int64_t n, int32_t* to,
            int32_t* outside) const {
    T size = T(s.sizes[d]), other[BLOCK], unused[BLOCK] = {};
    int32_t whole = int32_t(s.sizes[d]);
    for (int64_t i = 0; i < n; i++) other[i] = place[d][i] + T(step);
    if (s.mode == GridShape::BICUBIC) pad(s, size, n, other, unused);
    for (int64_t i = 0; i < n; i++) {
      int32_t at = int32_t(other[i]), out = at < 0 || at >= whole ? -1 : 0;
      to[i] = (at & ~out) * stride;
      outside[i] = out;
    }
  }
};

// The weights of four neighbours at t in [0, 1) from the second, and their derivatives.
constexpr double A = -0.75;
template <class T>
T cubic_near(T x) {
  return (T(A + 2) * x - T(A + 3)) * x * x + 1;
}
template <class T>
T cubic_far(T x) {
  return ((T(A) * x - T(5 * A)) * x + T(8 * A)) * x - T(4 * A);
}
template <class T>
T cubic(int step, T t) {
  return step == -1  ? cubic_far(t + 1)
         : step == 0 ? cubic_near(t)
         : step == 1 ? cubic_near(1 - t)
                     : cubic_far(2 - t);
}
template <class T>
T cubic_slope(int step, T t) {
  auto near = [](T x) { return (T(3 * (A + 2)) * x - T(2 * (A + 3))) * x; };
  auto far = [](T x) { return (T(3 * A) * x - T(10 * A)) * x + T(8 * A); };
  return step == -1 ? far(t + 1) : step == 0 ? near(t) : step == 1 ? -near(1 - t) : -far(2 - t);
}

// How far term j is from the whole pixels, in each dimension.
void steps_of(const GridShape& s, int term, int* steps) {
  for (int d = 0; d < s.dims; d++)
    steps[d] = s.mode == GridShape::NEAREST   ? 0
               : s.mode == GridShape::BICUBIC ? (d == 0 ? term / 4 : term % 4) - 1
                                              : term >> d & 1;
}

// to[i] = the factor of one dimension, or its derivative.
template <class T>
void factor(const GridShape& s, int step, const T* part, int64_t n, bool derivative, T* to) {
  if (s.mode == GridShape::BICUBIC) {
    for (int64_t i = 0; i < n; i++) to[i] = derivative ? cubic_slope(step, part[i]) : cubic(step, part[i]);
  } else if (derivative) {
    std::fill_n(to, n, step ? T(1) : T(-1));
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = step ? part[i] : 1 - part[i];
  }
}

// Of every term the place in the image, -1 outside, and the weight.
template <class T>
struct Terms {
  T weights[16][BLOCK];
  int32_t at[16][BLOCK];

  void find(const GridShape& s, const Places<T>& places, int64_t n) {
    // Of each dimension, for the pixels from `before` the whole one on. A plane has fewer than 2^31 pixels.
    T factors[3][4][BLOCK];
    int32_t moved[3][4][BLOCK], outside[3][4][BLOCK];
    int before = s.mode == GridShape::BICUBIC ? 1 : 0;
    int choices = s.mode == GridShape::NEAREST ? 1 : s.mode == GridShape::BICUBIC ? 4 : 2;
    int32_t stride = 1;
    for (int d = s.dims - 1; d >= 0; stride *= int32_t(s.sizes[d--]))
      for (int choice = 0; choice < choices; choice++) {
        places.move(s, d, choice - before, stride, n, moved[d][choice], outside[d][choice]);
        if (s.mode != GridShape::NEAREST)
          factor(s, choice - before, places.part[d], n, false, factors[d][choice]);
      }
    for (int term = 0; term < s.terms(); term++) {
      int c[3] = {};
      steps_of(s, term, c);
      for (int d = 0; d < s.dims; d++) c[d] += before;
      const int32_t *y = moved[0][c[0]], *x = moved[1][c[1]], *no_y = outside[0][c[0]],
                    *no_x = outside[1][c[1]];
      for (int64_t i = 0; i < n; i++) at[term][i] = (y[i] + x[i]) | no_y[i] | no_x[i];
      if (s.dims == 3) {
        const int32_t *z = moved[2][c[2]], *no_z = outside[2][c[2]];
        for (int64_t i = 0; i < n; i++) at[term][i] = (at[term][i] + z[i]) | (at[term][i] >> 31) | no_z[i];
      }
      if (s.mode == GridShape::NEAREST) {
        std::fill_n(weights[term], n, T(1));
        continue;
      }
      const T *first = factors[0][c[0]], *second = factors[1][c[1]];
      for (int64_t i = 0; i < n; i++) weights[term][i] = first[i] * second[i];
      if (s.dims == 3)
        for (int64_t i = 0; i < n; i++) weights[term][i] *= factors[2][c[2]][i];
    }
  }
  // Both at once for the four neighbours that images are mostly sampled from: half the time.
  void find_bilinear(const GridShape& s, const Places<T>& places, int64_t n, int32_t nothing) {
    const uint32_t height = uint32_t(s.sizes[0]), width = uint32_t(s.sizes[1]);
    auto pick = [&](int term, int64_t i, bool inside, uint32_t place, T weight) {
      weights[term][i] = inside || weight != weight ? weight : T(0);
      at[term][i] = inside ? int32_t(place) : nothing;
    };
    for (int64_t i = 0; i < n; i++) {
      uint32_t y = uint32_t(int32_t(places.place[0][i])), x = uint32_t(int32_t(places.place[1][i]));
      T down = places.part[0][i], right = places.part[1][i], up = 1 - down, left = 1 - right;
      bool has_y = y < height, has_x = x < width, has_down = y + 1 < height, has_right = x + 1 < width;
      uint32_t place = y * width + x;
      pick(0, i, has_y && has_x, place, up * left);
      pick(1, i, has_down && has_x, place + width, down * left);
      pick(2, i, has_y && has_right, place + 1, up * right);
      pick(3, i, has_down && has_right, place + width + 1, down * right);
    }
  }
  // What picks nothing picks `nothing`, a pixel of zero, with weight zero: but NaN where a point has no
  // place.
  void settle(int terms, int64_t n, int32_t nothing) {
    for (int j = 0; j < terms; j++)
      for (int64_t i = 0; i < n; i++) {
        bool outside = at[j][i] < 0;
        T weight = weights[j][i];
        weights[j][i] = outside && weight == weight ? T(0) : weight;
        at[j][i] = outside ? nothing : at[j][i];
      }
  }
};

// From the gradients of the weights, up[term * step + i], to those of the points; added to what is there or
// not.
template <class T>
void points_gradient(const GridShape& s, const Places<T>& places, int64_t n, const T* up, int64_t step, T* to,
                     bool add) {
  T sums[3][BLOCK] = {}, factors[3][4][BLOCK], slopes[3][4][BLOCK];
  int before = s.mode == GridShape::BICUBIC ? 1 : 0, choices = before ? 4 : 2;
  for (int d = 0; d < s.dims; d++)
    for (int choice = 0; choice < choices; choice++) {
      factor(s, choice - before, places.part[d], n, false, factors[d][choice]);
      factor(s, choice - before, places.part[d], n, true, slopes[d][choice]);
    }
  for (int term = 0; term < s.terms(); term++) {
    int c[3];
    steps_of(s, term, c);
    for (int d = 0; d < s.dims; d++) c[d] += before;
    const T* g = up + term * step;
    for (int d = 0; d < s.dims; d++) {
      const T *slope = slopes[d][c[d]], *other = factors[d ? 0 : 1][c[d ? 0 : 1]];
      if (s.dims == 2) {
        for (int64_t i = 0; i < n; i++) sums[d][i] += g[i] * (slope[i] * other[i]);
      } else {
        const T* third = factors[d == 2 ? 1 : 2][c[d == 2 ? 1 : 2]];
        for (int64_t i = 0; i < n; i++) sums[d][i] += g[i] * (slope[i] * other[i] * third[i]);
      }
    }
  }
  for (int d = 0; d < s.dims; d++) {
    T* of = to + s.dims - 1 - d;
    for (int64_t i = 0; i < n; i++) {
      T moved = sums[d][i] * places.slope[d][i];
      of[i * s.dims] = add ? of[i * s.dims] + moved : moved;
    }
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
