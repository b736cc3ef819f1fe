// Vectors of the size the instruction set has, on GCC's vector extensions: types, loads and stores, and the
// few operations that C++ operators do not spell. `+ - * / < ?:` work on them as they do on numbers.
//
// Elements are computed as f32v or f64v: Lane<T> says which, load/store convert. Half and BFloat16 become
// f32v. Everything is in an unnamed namespace, so the two compilations of a file share nothing.
#pragma once
#include <cmath>
#include <utility>

#include "../../tensor/dtype.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rl {
inline namespace RL_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

typedef float f32v __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t i32v __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t u32v __attribute__((vector_size(VECTOR_BYTES)));
typedef double f64v __attribute__((vector_size(VECTOR_BYTES)));
#if defined(__clang__)
typedef long long i64v __attribute__((vector_size(VECTOR_BYTES)));  // what comparing doubles gives there
#else
typedef int64_t i64v __attribute__((vector_size(VECTOR_BYTES)));
#endif
typedef uint64_t u64v __attribute__((vector_size(VECTOR_BYTES)));

constexpr int F32_LANES = VECTOR_BYTES / 4;
constexpr int F64_LANES = VECTOR_BYTES / 8;

template <class T>
struct Lane {
  using type = f32v;
};
template <>
struct Lane<double> {
  using type = f64v;
};
template <class T>
using lane_t = typename Lane<T>::type;
template <class T>
constexpr int lanes_v = std::is_same_v<T, double> ? F64_LANES : F32_LANES;

template <class V>
constexpr bool is_vector_v = false;
template <>
inline constexpr bool is_vector_v<f32v> = true;
template <>
inline constexpr bool is_vector_v<f64v> = true;

// The integers of the lanes of a floating vector: what comparisons give and what bit tricks need.
template <class V>
struct Bits;
template <>
struct Bits<f32v> {
  using type = i32v;
  using scalar = float;
};
template <>
struct Bits<f64v> {
  using type = i64v;
  using scalar = double;
};
template <class V>
using bits_t = typename Bits<V>::type;
template <class V>
using scalar_t = typename Bits<V>::scalar;

// Lanes of two vectors: those of the second are counted on from the first's.
template <int... LANES, class V>
inline V shuffled(V a, V b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, LANES...);
#else
  return __builtin_shuffle(a, b, decltype(a < b){LANES...});
#endif
}

template <class V>
inline V splat(scalar_t<V> x) {
  return x - V{};
}
inline i32v bits(f32v x) { return (i32v)x; }
inline i64v bits(f64v x) { return (i64v)x; }
inline f32v from_bits(i32v x) { return (f32v)x; }
inline f64v from_bits(i64v x) { return (f64v)x; }

inline f32v load(const float* p) {
  f32v v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline f64v load(const double* p) {
  f64v v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, f32v v) { std::memcpy(p, &v, sizeof v); }
inline void store(double* p, f64v v) { std::memcpy(p, &v, sizeof v); }

inline f32v load(const Half* p) {
#if defined(__AVX512F__)
  return (f32v)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__AVX2__)
  return (f32v)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  f32v v;
  for (int i = 0; i < F32_LANES; i++) v[i] = float(p[i]);
  return v;
#endif
}
inline void store(Half* p, f32v v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__AVX2__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < F32_LANES; i++) p[i] = Half(v[i]);
#endif
}

// In instructions of the processor: the compiler's own conversions take a third more of them.
typedef uint16_t u16h __attribute__((vector_size(VECTOR_BYTES / 2)));
inline f32v load(const BFloat16* p) {
#if defined(__AVX512F__)
  return (f32v)((u32v)_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))) << 16);
#elif defined(__AVX2__)
  return (f32v)((u32v)_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))) << 16);
#else
  u16h v;
  std::memcpy(&v, p, sizeof v);
  return (f32v)(__builtin_convertvector(v, u32v) << 16);
#endif
}
inline void store(BFloat16* p, f32v v) {
  u32v u = (u32v)v;
  u32v rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  rounded = v == v ? rounded : u32v{} + 0x7fc0;
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16((__m512i)rounded));
#elif defined(__AVX2__)
  __m256i halves = _mm256_packus_epi32((__m256i)rounded, (__m256i)rounded);  // each half of them twice
  halves = _mm256_permute4x64_epi64(halves, 0b1000);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(halves));
#else
  u16h h = __builtin_convertvector(rounded, u16h);
  std::memcpy(p, &h, sizeof h);
#endif
}

// Comparisons store a bool per lane.
inline void store(bool* p, i32v mask) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128((__m256i)mask), _mm256_extracti128_si256((__m256i)mask, 1));
  __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), bytes);
#else
  for (int i = 0; i < F32_LANES; i++) p[i] = mask[i] != 0;
#endif
}
inline void store(bool* p, i64v mask) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128((__m256i)mask), _mm256_extracti128_si256((__m256i)mask, 1));
  __m128i bytes = _mm_and_si128(_mm_shuffle_epi8(words, _mm_set1_epi32(0x0c080400)), _mm_set1_epi8(1));
  int four = _mm_cvtsi128_si32(bytes);
  std::memcpy(static_cast<void*>(p), &four, sizeof four);
#else
  for (int i = 0; i < F64_LANES; i++) p[i] = mask[i] != 0;
#endif
}

#if defined(__AVX512F__)
inline f32v fma(f32v a, f32v b, f32v c) { return (f32v)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
inline f64v fma(f64v a, f64v b, f64v c) { return (f64v)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
inline bool any(i32v mask) { return _mm512_movepi32_mask((__m512i)mask); }
inline bool any(i64v mask) { return _mm512_movepi64_mask((__m512i)mask); }
inline f32v sqrt(f32v x) { return (f32v)_mm512_sqrt_ps((__m512)x); }
inline f64v sqrt(f64v x) { return (f64v)_mm512_sqrt_pd((__m512d)x); }
inline f32v nearest(f32v x) {
  return (f32v)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline f64v nearest(f64v x) {
  return (f64v)_mm512_roundscale_pd((__m512d)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined(__AVX2__)
inline f32v fma(f32v a, f32v b, f32v c) { return (f32v)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
inline f64v fma(f64v a, f64v b, f64v c) { return (f64v)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
inline bool any(i32v mask) { return _mm256_movemask_ps((__m256)mask); }
inline bool any(i64v mask) { return _mm256_movemask_pd((__m256d)mask); }
inline f32v sqrt(f32v x) { return (f32v)_mm256_sqrt_ps((__m256)x); }
inline f64v sqrt(f64v x) { return (f64v)_mm256_sqrt_pd((__m256d)x); }
inline f32v nearest(f32v x) {
  return (f32v)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline f64v nearest(f64v x) {
  return (f64v)_mm256_round_pd((__m256d)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
// Without a fused instruction polynomials round twice; the error bounds in vecmath.h hold for both.
inline f32v fma(f32v a, f32v b, f32v c) { return a * b + c; }
inline f64v fma(f64v a, f64v b, f64v c) { return a * b + c; }
#if defined(__x86_64__)
inline bool any(i32v mask) { return _mm_movemask_ps((__m128)mask); }
inline bool any(i64v mask) { return _mm_movemask_pd((__m128d)mask); }
inline f32v sqrt(f32v x) { return (f32v)_mm_sqrt_ps((__m128)x); }
inline f64v sqrt(f64v x) { return (f64v)_mm_sqrt_pd((__m128d)x); }
#else
inline bool any(i32v mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) < 0; }
inline bool any(i64v mask) { return (mask[0] | mask[1]) < 0; }
inline f32v sqrt(f32v x) { return f32v{sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])}; }
inline f64v sqrt(f64v x) { return f64v{::sqrt(x[0]), ::sqrt(x[1])}; }
#endif
// Adding 1.5 * 2^23 (2^52) pushes the fraction out, rounding half to even; larger numbers are whole already.
// The sign is put back for the sake of -0.
inline f32v nearest(f32v x) {
  i32v sign = bits(x) & INT32_MIN;
  f32v magnitude = from_bits(bits(x) ^ sign);
  f32v rounded = (magnitude + 0x1p23f) - 0x1p23f;
  return from_bits(bits(magnitude < 0x1p23f ? rounded : magnitude) | sign);
}
inline f64v nearest(f64v x) {
  i64v sign = bits(x) & INT64_MIN;
  f64v magnitude = from_bits(bits(x) ^ sign);
  f64v rounded = (magnitude + 0x1p52) - 0x1p52;
  return from_bits(bits(magnitude < 0x1p52 ? rounded : magnitude) | sign);
}
#endif

// Whole numbers of small magnitude to integers: valid where |x| < 2^22 (2^51), which is all that callers
// need.
inline i32v to_int(f32v x) { return __builtin_convertvector(x, i32v); }
inline f32v to_float(i32v x) { return __builtin_convertvector(x, f32v); }
inline i64v to_int(f64v x) { return bits(x + 0x1.8p52) - bits(splat<f64v>(0x1.8p52)); }
inline f64v to_float(i64v x) { return from_bits(x + bits(splat<f64v>(0x1.8p52))) - 0x1.8p52; }

inline bool all(i32v mask) { return !any(~mask); }
inline bool all(i64v mask) { return !any(~mask); }

// The smaller or larger of a limit and x; NaN stays NaN.
#if defined(__AVX512F__)
inline f32v at_most(float limit, f32v x) { return (f32v)_mm512_min_ps(_mm512_set1_ps(limit), (__m512)x); }
inline f32v at_least(float limit, f32v x) { return (f32v)_mm512_max_ps(_mm512_set1_ps(limit), (__m512)x); }
inline f64v at_most(double limit, f64v x) { return (f64v)_mm512_min_pd(_mm512_set1_pd(limit), (__m512d)x); }
inline f64v at_least(double limit, f64v x) { return (f64v)_mm512_max_pd(_mm512_set1_pd(limit), (__m512d)x); }
#elif defined(__AVX2__)
inline f32v at_most(float limit, f32v x) { return (f32v)_mm256_min_ps(_mm256_set1_ps(limit), (__m256)x); }
inline f32v at_least(float limit, f32v x) { return (f32v)_mm256_max_ps(_mm256_set1_ps(limit), (__m256)x); }
inline f64v at_most(double limit, f64v x) { return (f64v)_mm256_min_pd(_mm256_set1_pd(limit), (__m256d)x); }
inline f64v at_least(double limit, f64v x) { return (f64v)_mm256_max_pd(_mm256_set1_pd(limit), (__m256d)x); }
#elif defined(__x86_64__)
inline f32v at_most(float limit, f32v x) { return (f32v)_mm_min_ps(_mm_set1_ps(limit), (__m128)x); }
inline f32v at_least(float limit, f32v x) { return (f32v)_mm_max_ps(_mm_set1_ps(limit), (__m128)x); }
inline f64v at_most(double limit, f64v x) { return (f64v)_mm_min_pd(_mm_set1_pd(limit), (__m128d)x); }
inline f64v at_least(double limit, f64v x) { return (f64v)_mm_max_pd(_mm_set1_pd(limit), (__m128d)x); }
#else
inline f32v at_most(float limit, f32v x) { return x > limit ? splat<f32v>(limit) : x; }
inline f32v at_least(float limit, f32v x) { return x < limit ? splat<f32v>(limit) : x; }
inline f64v at_most(double limit, f64v x) { return x > limit ? splat<f64v>(limit) : x; }
inline f64v at_least(double limit, f64v x) { return x < limit ? splat<f64v>(limit) : x; }
#endif

// x c rounded to a whole number, which is also in the low bits of `bits`: adding 1.5 * 2^23 (2^52) pushes the
// fraction out. For |x c| < 2^22 (2^51).
template <class V>
struct Whole {
  V n;
  bits_t<V> bits;
};
inline Whole<f32v> whole_multiple(f32v x, float c) {
  f32v t = fma(x, splat<f32v>(c), splat<f32v>(0x1.8p23f));
  return {t - 0x1.8p23f, bits(t)};
}
inline Whole<f64v> whole_multiple(f64v x, double c) {
  f64v t = fma(x, splat<f64v>(c), splat<f64v>(0x1.8p52));
  return {t - 0x1.8p52, bits(t)};
}

// The lower and the upper half of the lanes in double precision, and back.
struct f64pair {
  f64v low, high;
};
inline f64pair widen(f32v x) {
#if defined(__AVX512F__)
  return {(f64v)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x)),
          (f64v)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x, 1))};
#elif defined(__AVX2__)
  return {(f64v)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x)),
          (f64v)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1))};
#else
  return {f64v{double(x[0]), double(x[1])}, f64v{double(x[2]), double(x[3])}};
#endif
}
inline f32v narrow(f64v low, f64v high) {
#if defined(__AVX512F__)
  return (f32v)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low)),
                                  _mm512_cvtpd_ps((__m512d)high), 1);
#elif defined(__AVX2__)
  return (f32v)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high), _mm256_cvtpd_ps((__m256d)low));
#else
  return f32v{float(low[0]), float(low[1]), float(high[0]), float(high[1])};
#endif
}

// A scalar function on every lane, for what is rare or only exists in libm. It calls out: a real loop keeps
// it small.
template <class F, class V, class... Vs>
inline V each(F f, V x, Vs... more) {
  V result{};
#pragma GCC unroll 1
  for (int i = 0; i < int(VECTOR_BYTES / sizeof(scalar_t<V>)); i++) result[i] = f(x[i], more[i]...);
  return result;
}
// The same on some lanes only; the others keep `result`.
template <class F, class V, class... Vs>
[[gnu::noinline]] V each_where(bits_t<V> mask, V result, F f, Vs... x) {
  for (int i = 0; i < int(VECTOR_BYTES / sizeof(scalar_t<V>)); i++) {
    if (mask[i]) result[i] = f(x[i]...);
  }
  return result;
}
// On every lane, with a function of doubles, whatever the lanes are.
template <class F, class V, class... Vs>
inline V each_double(F f, V x, Vs... more) {
  V result{};
#pragma GCC unroll 1
  for (int i = 0; i < int(VECTOR_BYTES / sizeof(scalar_t<V>)); i++) {
    result[i] = scalar_t<V>(f(double(x[i]), double(more[i])...));
  }
  return result;
}

// c0 + x c1 + x^2 c2 + ... Horner's rule is one long chain of dependent instructions; from six coefficients
// on, even and odd powers are summed in two chains side by side (a tenth off the time of log).
template <class V, class... C>
inline V polynomial(V x, C... coefficients) {
  constexpr int n = sizeof...(C);
  const scalar_t<V> c[] = {coefficients...};
  if constexpr (n < 6) {
    V y = splat<V>(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) y = fma(y, x, splat<V>(c[i]));
    return y;
  } else {
    V z = x * x, y = splat<V>(c[n - 1]), other = splat<V>(c[n - 2]);
    for (int i = n - 3; i >= 0; i -= 2) y = fma(y, z, splat<V>(c[i]));
    for (int i = n - 4; i >= 0; i -= 2) other = fma(other, z, splat<V>(c[i]));
    return n % 2 ? fma(other, x, y) : fma(y, x, other);
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
