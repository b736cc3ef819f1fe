// Which pixels a point of a grid is made of. Start at `terms_of`.
//
// BLOCK points at a time: `Places` turns coordinates into pixels, dimension by dimension, and then every term
// is a loop over the block. All of it is plain arithmetic on arrays, rounded operation by operation as
// rushlight/ops/grid.py rounds it, which says the same in differentiable functions.
#include "../grid.h"

#include <algorithm>
#include <cmath>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

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
  // The place in the image of the pixel `steps` away from the whole ones. A plane has fewer than 2^31 pixels.
  void index(const GridShape& s, const int* steps, int64_t n, int64_t* to) const {
    int32_t flat[BLOCK] = {}, outside[BLOCK] = {};
    T other[BLOCK], unused[BLOCK] = {};
    for (int d = 0; d < s.dims; d++) {
      T size = T(s.sizes[d]), step = T(steps[d]);
      int32_t whole = int32_t(s.sizes[d]);
      for (int64_t i = 0; i < n; i++) other[i] = place[d][i] + step;
      if (s.mode == GridShape::BICUBIC) pad(s, size, n, other, unused);
      for (int64_t i = 0; i < n; i++) {
        int32_t at = int32_t(other[i]);
        int32_t out = at < 0 || at >= whole ? -1 : 0;
        outside[i] |= out;
        flat[i] = flat[i] * whole + (at & ~out);
      }
    }
    for (int64_t i = 0; i < n; i++) to[i] = flat[i] | outside[i];
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

template <class T>
void terms_of(const GridShape& s, const T* grid, int64_t n, int64_t step, T* weights, int64_t* index) {
  Places<T> places;
  // Of each dimension, for the pixels from `before` the whole one on.
  T factors[3][4][BLOCK];
  int before = s.mode == GridShape::BICUBIC ? 1 : 0;
  int choices = s.mode == GridShape::NEAREST ? 0 : s.mode == GridShape::BICUBIC ? 4 : 2;
  for (int64_t first = 0; first < n; first += BLOCK) {
    int64_t count = std::min(BLOCK, n - first);
    places.read(s, grid + first * s.dims, count);
    for (int d = 0; d < s.dims; d++)
      for (int choice = 0; choice < choices; choice++)
        factor(s, choice - before, places.part[d], count, false, factors[d][choice]);
    for (int term = 0; term < s.terms(); term++) {
      int steps[3];
      steps_of(s, term, steps);
      places.index(s, steps, count, index + term * step + first);
      T* to = weights + term * step + first;
      if (s.mode == GridShape::NEAREST) {
        std::fill_n(to, count, T(1));
        continue;
      }
      std::copy_n(factors[0][steps[0] + before], count, to);
      for (int d = 1; d < s.dims; d++) {
        const T* next = factors[d][steps[d] + before];
        for (int64_t i = 0; i < count; i++) to[i] *= next[i];
      }
    }
  }
}

template <class T>
void gradient_of(const GridShape& s, const T* grid, int64_t n, int64_t step, const T* g, T* to) {
  if (s.mode == GridShape::NEAREST) return void(std::fill_n(to, n * s.dims, T(0)));
  Places<T> places;
  for (int64_t first = 0; first < n; first += BLOCK) {
    int64_t count = std::min(BLOCK, n - first);
    places.read(s, grid + first * s.dims, count);
    T sums[3][BLOCK] = {};
    for (int term = 0; term < s.terms(); term++) {
      int steps[3];
      steps_of(s, term, steps);
      T plain[3][BLOCK], slope[BLOCK];
      for (int d = 0; d < s.dims; d++) factor(s, steps[d], places.part[d], count, false, plain[d]);
      const T* up = g + term * step + first;
      for (int d = 0; d < s.dims; d++) {
        factor(s, steps[d], places.part[d], count, true, slope);
        for (int other = 0; other < s.dims; other++)
          if (other != d)
            for (int64_t i = 0; i < count; i++) slope[i] *= plain[other][i];
        for (int64_t i = 0; i < count; i++) sums[d][i] += up[i] * slope[i];
      }
    }
    for (int d = 0; d < s.dims; d++)
      for (int64_t i = 0; i < count; i++)
        to[(first + i) * s.dims + s.dims - 1 - d] = sums[d][i] * places.slope[d][i];
  }
}

template <class T>
void slopes_of(const GridShape& s, const T* grid, int64_t n, T* to) {
  Places<T> places;
  for (int64_t first = 0; first < n; first += BLOCK) {
    int64_t count = std::min(BLOCK, n - first);
    places.read(s, grid + first * s.dims, count);
    for (int d = 0; d < s.dims; d++)
      for (int64_t i = 0; i < count; i++) to[(first + i) * s.dims + s.dims - 1 - d] = places.slope[d][i];
  }
}

template <class T>
void pick(T* to, const T* plane, const int32_t* at, const T* weights, int64_t terms, int64_t n) {
  int64_t i = 0;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    for (; i + 8 <= n; i += 8) {
      __m256 sum = _mm256_setzero_ps();
      for (int64_t j = 0; j < terms; j++) {
        __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + j * n + i));
        __m256 picked = _mm256_i32gather_ps(plane, places, 4);
        sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_loadu_ps(weights + j * n + i), picked));
      }
      _mm256_storeu_ps(to + i, sum);
    }
#endif
  for (; i < n; i++) {
    T sum = 0;
    for (int64_t j = 0; j < terms; j++) sum += weights[j * n + i] * plane[at[j * n + i]];
    to[i] = sum;
  }
}

template <class T>
void pick_runs(T* to, const T* plane, const int32_t* places, const T* turned, int64_t n) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  for (int64_t i = 0; i < n; i++, places += 16, turned += 16) {
    if (places[0] < 0) continue;
    Four sum = {};
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
      Four pixels, weights;
      __builtin_memcpy(&pixels, plane + places[4 * r], sizeof pixels);
      __builtin_memcpy(&weights, turned + 4 * r, sizeof weights);
      sum += weights * pixels;
    }
    to[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
}

template <class T>
void products(T* sums, const T* line, const T* plane, const int32_t* at, int64_t n) {
  int64_t i = 0;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    for (; i + 8 <= n; i += 8) {
      __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + i));
      __m256 product = _mm256_mul_ps(_mm256_loadu_ps(line + i), _mm256_i32gather_ps(plane, places, 4));
      _mm256_storeu_ps(sums + i, _mm256_add_ps(_mm256_loadu_ps(sums + i), product));
    }
#endif
  for (; i < n; i++) sums[i] += line[i] * plane[at[i]];
}

}  // namespace

const GridLoops<float> grid_f32 = {terms_of<float>, gradient_of<float>, slopes_of<float>,
                                   pick<float>,     pick_runs<float>,   products<float>};
const GridLoops<double> grid_f64 = {terms_of<double>, gradient_of<double>, slopes_of<double>,
                                    pick<double>,     pick_runs<double>,   products<double>};

}  // namespace RL_ISA
}  // namespace rl
