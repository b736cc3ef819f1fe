// Which pixels a point of a grid is made of, and sums over picked pixels. Start at `terms_of`.
#include "grid_places.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rl {
inline namespace RL_ISA {
namespace {

template <class T>
void terms_of(const GridShape& s, const T* grid, int64_t n, int64_t step, T* weights, int64_t* index) {
  Places<T> places;
  Terms<T> terms;
  for (int64_t first = 0; first < n; first += BLOCK) {
    int64_t count = std::min(BLOCK, n - first);
    places.read(s, grid + first * s.dims, count);
    terms.find(s, places, count);
    for (int j = 0; j < s.terms(); j++) {
      std::copy_n(terms.weights[j], count, weights + j * step + first);
      std::copy_n(terms.at[j], count, index + j * step + first);
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
    points_gradient(s, places, count, g + first, step, to + first * s.dims, false);
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

const GridLoops<float> grid_f32 = {terms_of<float>, gradient_of<float>, slopes_of<float>, pick<float>,
                                   products<float>};
const GridLoops<double> grid_f64 = {terms_of<double>, gradient_of<double>, slopes_of<double>, pick<double>,
                                    products<double>};

}  // namespace RL_ISA
}  // namespace rl
