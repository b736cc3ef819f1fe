// Vectors of any element type, where vector.h has the floating ones: a reduction meets integers too, and
// converts as it loads. One template serves vectors and numbers, as arithmetic, comparisons and `mask ? a :
// b` work on both.
#pragma once
#include "vector.h"

namespace rl {
inline namespace RL_ISA {
namespace {

template <class C>
constexpr int LANES = VECTOR_BYTES / int(sizeof(C));
template <class T, int N>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class C>
using Vec = typename VectorOf<C, LANES<C>>::type;

// LANES<C> elements of type T from anywhere, converted to C.
template <class C, class T>
inline Vec<C> load(const T* p) {
  if constexpr (std::is_same_v<T, C>) {
    Vec<C> v;
    std::memcpy(&v, p, sizeof v);
    return v;
#if defined(__AVX2__) && !defined(__AVX512F__)
  } else if constexpr (std::is_same_v<C, double> && (is_reduced_v<T> || std::is_same_v<T, float>)) {
    // GCC 12 widens floats in halves: a product of 100,000 took 12 instead of 7 us.
    __m128 four;
    if constexpr (std::is_same_v<T, float>) four = _mm_loadu_ps(p);
    else if constexpr (std::is_same_v<T, Half>) four = _mm_cvtph_ps(_mm_loadl_epi64((const __m128i*)p));
    else four = (__m128)_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i*)p)), 16);
    return (Vec<double>)_mm256_cvtps_pd(four);
#endif
  } else if constexpr (std::is_same_v<T, BFloat16> && std::is_same_v<C, float>) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
    return (Vec<float>)_mm256_slli_epi32(bits, 16);
#endif
    typename VectorOf<uint16_t, LANES<C>>::type raw;
    std::memcpy(&raw, p, sizeof raw);
    auto wide = __builtin_convertvector(raw, Vec<uint32_t>) << 16;
    return (Vec<float>)wide;
  } else if constexpr (is_reduced_v<T>) {
#if defined(__AVX2__)
    if constexpr (std::is_same_v<T, Half> && std::is_same_v<C, float>) {
      return (Vec<float>)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
    }
#endif
    Vec<C> v{};
    for (int l = 0; l < LANES<C>; l++) v[l] = C(float(p[l]));
    return v;
  } else {
#if defined(__AVX2__) && !defined(__AVX512F__)
    // GCC 12 widens these in many steps: a sum of a million bytes took 390 us instead of 40.
    if constexpr (std::is_same_v<C, int32_t>) {
      if constexpr (std::is_same_v<T, uint8_t>)
        return (Vec<C>)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
      if constexpr (std::is_same_v<T, int8_t>)
        return (Vec<C>)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p));
      if constexpr (std::is_same_v<T, int16_t>)
        return (Vec<C>)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i*)p));
    }
#endif
    typename VectorOf<T, LANES<C>>::type raw;
    std::memcpy(&raw, p, sizeof raw);
    return __builtin_convertvector(raw, Vec<C>);
  }
}

template <class C, class T>
inline C load_one(const T* p) {
  if constexpr (is_reduced_v<T>) return C(float(*p));
  else return C(*p);
}

template <class C>
inline void store(C* p, Vec<C> v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
