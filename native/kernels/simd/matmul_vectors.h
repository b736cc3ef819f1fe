// What the matmul loops share: the types sums are kept in, vectors of them, and full, partial and widening
// loads.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "../../tensor/parallel.h"
#include "../matmul.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rl {
inline namespace RL_ISA {

// The entries of `matmul_loops`, see MatmulLoops: loops_gemm in matmul_loops.cpp, products with vectors in
// matvec_loops.cpp, the rest in matmul_layout.cpp.
void loops_gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const void* alpha,
                const void* beta);
void loops_gemv(DType dtype, const Vector& y, const Matrix& a, const Vector& x, const void* alpha,
                const void* beta);
void loops_dot(DType dtype, void* result, const Vector& x, const Vector& y, bool conjugate_x);
void loops_widen(DType dtype, const Matrix& from, float* to);
void loops_narrow(DType dtype, const Matrix& to, const float* from, float beta);
void loops_transpose(DType dtype, const void* from, int64_t ld, int64_t rows, int64_t cols, void* to);

namespace {

constexpr int64_t K_BLOCK = 512;  // terms summed before their total is added to the rest
#if defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

// The type sums are kept in. Integers are summed as unsigned numbers of at least 32 bits: wrapping is defined
// there and the low bits are the same.
template <class T>
struct Accumulator {
  using type = compute_t<T>;
};
template <>
struct Accumulator<uint8_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int8_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int16_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int32_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int64_t> {
  using type = uint64_t;
};
template <>
struct Accumulator<bool> {
  using type = uint32_t;
};
template <class R>
struct Accumulator<std::complex<R>> {
  using type = R;
};
template <class T>
using acc_t = typename Accumulator<T>::type;

template <class T>
inline acc_t<T> widened(T x) {
  return acc_t<T>(compute_t<T>(x));
}

template <class A>
struct VectorOf {
#if defined(__clang__)  // which would put such an array anywhere and write it as an aligned one
  typedef A type __attribute__((vector_size(VECTOR_BYTES), may_alias));
#else
  typedef A type __attribute__((vector_size(VECTOR_BYTES), aligned(alignof(A)), may_alias));
#endif
};
template <class A>
using Vec = typename VectorOf<A>::type;
template <class A>
constexpr int LANES = VECTOR_BYTES / sizeof(A);

#if defined(__AVX2__)
// Ones in the first `count` lanes.
template <class A>
inline __m256i lane_mask(int count) {
  alignas(32) static const int32_t words[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + 8 - count * int(sizeof(A) / 4)));
}
#endif

// GCC makes two halves on the stack of a memcpy to such a vector, and reading them as one waits for both: 8 x
// 8 products took twice as long.
template <class A>
inline Vec<A> load(const A* p) {
#if defined(__clang__)
  Vec<A> v;
  std::memcpy(&v, p, sizeof v);
  return v;
#else
  return *reinterpret_cast<const Vec<A>*>(p);
#endif
}

// The next vector of elements, widened to their accumulator type.
template <class T>
inline Vec<acc_t<T>> load_widened(const T* p) {
  using A = acc_t<T>;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, Half>) {
    return (Vec<A>)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return (Vec<A>)_mm256_slli_epi32(wide, 16);
  }
#endif
  if constexpr (std::is_same_v<T, A>) return load<A>(p);
  Vec<A> v;
  for (int i = 0; i < LANES<A>; i++) v[i] = widened(p[i]);
  return v;
}

// The first `count` lanes from memory, zeros above.
template <class A>
inline Vec<A> load_first(const A* p, int count) {
#if defined(__AVX2__)
  if constexpr (sizeof(A) == 4) {
    return (Vec<A>)_mm256_maskload_epi32(reinterpret_cast<const int*>(p), lane_mask<A>(count));
  } else {
    return (Vec<A>)_mm256_maskload_epi64(reinterpret_cast<const long long*>(p), lane_mask<A>(count));
  }
#else
  Vec<A> v{};
  for (int i = 0; i < count; i++) v[i] = p[i];
  return v;
#endif
}

// In ordinary stores: a masked one takes AMD's processors longer than the rest of an 8 x 8 product.
template <class A>
inline void store_first(A* p, Vec<A> v, int count) {
#if defined(__AVX2__)
  if (count == LANES<A>) [[likely]] {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
    return;
  }
  __m128i half = _mm256_castsi256_si128((__m256i)v);
  size_t bytes = size_t(count) * sizeof(A);
  char* to = reinterpret_cast<char*>(p);
  if (bytes >= 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
    half = _mm256_extracti128_si256((__m256i)v, 1);
    to += 16;
  }
  if (bytes & 8) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), half);
    half = _mm_srli_si128(half, 8);
    to += 8;
  }
  if (bytes & 4) {
    int word = _mm_cvtsi128_si32(half);
    std::memcpy(to, &word, sizeof word);
  }
#else
  for (int i = 0; i < count; i++) p[i] = v[i];
#endif
}

// The lanes I of two vectors.
template <int... I, class V>
inline V lanes_of(V a, V b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, I...);
#else
  return __builtin_shuffle(a, b, decltype(a < b){I...});
#endif
}
template <class V, int... I>
inline void part_lanes(V a, V b, V& re, V& im, std::integer_sequence<int, I...>) {
  re = lanes_of<(2 * I)...>(a, b), im = lanes_of<(2 * I + 1)...>(a, b);
}
template <class V, int... I>
inline void join_lanes(V re, V im, V& a, V& b, std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  a = lanes_of<(I / 2 + I % 2 * n)...>(re, im), b = lanes_of<(I / 2 + I % 2 * n + n / 2)...>(re, im);
}

// A vector of complex numbers to their real parts, then their imaginary ones, and back.
template <class A>
inline void load_parts(const A* from, A* to) {
  Vec<A> re, im;
  part_lanes(load<A>(from), load<A>(from + LANES<A>), re, im, std::make_integer_sequence<int, LANES<A>>{});
  store_first<A>(to, re, LANES<A>), store_first<A>(to + LANES<A>, im, LANES<A>);
}
template <class A>
inline void store_parts(A* to, Vec<A> re, Vec<A> im) {
  Vec<A> a, b;
  join_lanes(re, im, a, b, std::make_integer_sequence<int, LANES<A>>{});
  store_first<A>(to, a, LANES<A>), store_first<A>(to + LANES<A>, b, LANES<A>);
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
