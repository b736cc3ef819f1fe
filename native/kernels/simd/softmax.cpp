// softmax and log_softmax along lines, and their gradients.
//
// Each line takes three sweeps: its maximum, the sum of exp(x - maximum), the result. Contiguous lines are
// swept in vectors along the line, lines side by side in vectors across them; anything else element by
// element.
#include <cmath>
#include <limits>

#include "../reduce.h"
#include "../vecmath.h"
#include "any_vector.h"
#include "libm.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// e^x for x <= 0, and 0 below the least normal number: a mask of -inf is common, and arithmetic with
// subnormal numbers would take ten times as long (masked rows 6x).
template <class C>
constexpr C LEAST = std::is_same_v<C, float> ? C(-87.0) : C(-708.0);
template <class C>
inline Vec<C> decay(Vec<C> x) {
  Vec<C> e = exp_ordinary(at_least(LEAST<C>, x));
  e = x < LEAST<C> ? Vec<C>{} : e;
  return x == x ? e : x;
}
inline float decay(float x) { return x < LEAST<float> ? 0.0f : std::exp(x); }
inline double decay(double x) { return x < LEAST<double> ? 0.0 : std::exp(x); }

template <class V>
inline V larger(V a, V b) {
  V chosen = b > a ? b : a;
  return b != b ? b : chosen;
}

// All lanes joined into one by a tree of `join`.
template <class V, class F, size_t... I>
inline auto across_lanes(V v, F join, std::index_sequence<I...>) {
  constexpr int L = sizeof...(I);
  auto halve = [&](auto by) { v = join(v, shuffled<(int(I) + by.value) % L...>(v, v)); };
  if constexpr (L >= 16) halve(std::integral_constant<int, 8>{});
  if constexpr (L >= 8) halve(std::integral_constant<int, 4>{});
  if constexpr (L >= 4) halve(std::integral_constant<int, 2>{});
  halve(std::integral_constant<int, 1>{});
  return v[0];
}
template <class V, class F>
inline auto across_lanes(V v, F join) {
  return across_lanes(v, join, std::make_index_sequence<VECTOR_BYTES / sizeof(scalar_t<V>)>{});
}

#if defined(__AVX2__) && !defined(__AVX512F__)
inline i32v first_lanes(int count, float) { return i32v{0, 1, 2, 3, 4, 5, 6, 7} < count; }
inline i64v first_lanes(int count, double) { return i64v{0, 1, 2, 3} < int64_t(count); }
#endif

// The first `count` lanes from memory, the others `fill`; and the first `count` lanes to memory.
template <class T, class C>
inline Vec<C> load_some(const T* p, int count, C fill) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return (Vec<C>)_mm512_mask_loadu_ps(_mm512_set1_ps(fill), __mmask16((1u << count) - 1), p);
  if constexpr (std::is_same_v<T, double>)
    return (Vec<C>)_mm512_mask_loadu_pd(_mm512_set1_pd(fill), __mmask8((1u << count) - 1), p);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    auto there = first_lanes(count, C());
    return there ? (Vec<C>)_mm256_maskload_ps(p, (__m256i)there) : Vec<C>{} + fill;
  }
  if constexpr (std::is_same_v<T, double>) {
    auto there = first_lanes(count, C());
    return there ? (Vec<C>)_mm256_maskload_pd(p, (__m256i)there) : Vec<C>{} + fill;
  }
#endif
  C lanes[LANES<C>];
  for (int l = 0; l < LANES<C>; l++) lanes[l] = l < count ? load_one<C>(p + l) : fill;
  return load<C>(lanes);
}
template <class T, class C>
inline void store_some(T* p, Vec<C> v, int count) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return _mm512_mask_storeu_ps(p, __mmask16((1u << count) - 1), (__m512)v);
  if constexpr (std::is_same_v<T, double>)
    return _mm512_mask_storeu_pd(p, __mmask8((1u << count) - 1), (__m512d)v);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    return _mm256_maskstore_ps(p, (__m256i)first_lanes(count, C()), (__m256)v);
  if constexpr (std::is_same_v<T, double>)
    return _mm256_maskstore_pd(p, (__m256i)first_lanes(count, C()), (__m256d)v);
#endif
  C lanes[LANES<C>];
  store(lanes, v);
  for (int l = 0; l < count; l++) p[l] = T(lanes[l]);
}

// Elements of a line in vectors. The last vector may be incomplete (Whole is false_type then): missing lanes
// read as `fill`, and are not written.
template <class T>
struct Line {
  using C = compute_t<T>;
  using V = Vec<C>;
  static constexpr int L = LANES<C>;

  template <class Whole>
  static V read(const T* x, int64_t i, int64_t n, C fill, Whole) {
    if constexpr (Whole::value) return load<C>(x + i);
    else return load_some(x + i, int(n - i), fill);
  }
  template <class Whole>
  static void write(T* out, int64_t i, int64_t n, V v, Whole) {
    if constexpr (Whole::value) store(out + i, v);
    else store_some<T, C>(out + i, v, int(n - i));
  }
  // Calls f(i, whole) for every vector.
  template <class F>
  static void sweep(int64_t n, F f) {
    int64_t i = 0;
    for (; i + L <= n; i += L) f(i, std::true_type{});
    if (i < n) f(i, std::false_type{});
  }
  // The sum of the vectors f(i, whole), in chunks so that chains of rounding errors stay short.
  template <class F>
  static C sum(int64_t n, F f) {
    f64v sum = {};
    auto absorb = [&](V v) {
      if constexpr (std::is_same_v<C, float>) sum += widen(v).low + widen(v).high;
      else sum += v;
    };
    int64_t i = 0;
    while (i + L <= n) {
      V a = {};
      for (int r = 0; r < 32 && i + L <= n; r++, i += L) a += f(i, std::true_type{});
      absorb(a);
    }
    if (i < n) absorb(f(i, std::false_type{}));
    return C(across_lanes(sum, [](f64v a, f64v b) { return a + b; }));
  }
  static C max(const T* x, int64_t n) {
    constexpr C lowest = -std::numeric_limits<C>::infinity();
    V a = V{} + lowest, b = a, c = a, d = a;
    int64_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {  // several chains, as each link takes its time
      a = larger(a, load<C>(x + i));
      b = larger(b, load<C>(x + i + L));
      c = larger(c, load<C>(x + i + 2 * L));
      d = larger(d, load<C>(x + i + 3 * L));
    }
    for (; i + L <= n; i += L) a = larger(a, load<C>(x + i));
    if (i < n) b = larger(b, load_some(x + i, int(n - i), lowest));
    return across_lanes(larger(larger(a, b), larger(c, d)), [](V a, V b) { return larger(a, b); });
  }
};

template <class T>
inline void subtract(T* out, const T* x, int64_t n, compute_t<T> max, compute_t<T> shift) {
  using W = Line<T>;
  W::sweep(n, [&](int64_t i, auto whole) {
    W::write(out, i, n, W::read(x, i, n, 0, whole) - max - shift, whole);
  });
}

// log_softmax of as many short lines as a vector has lanes: their logarithms are taken together, as one by
// one they would be half of the time.
template <class T>
void along_short_lines(T* out, int64_t out_line, const T* x, int64_t line, int64_t n) {
  using W = Line<T>;
  using C = typename W::C;
  constexpr C lowest = -std::numeric_limits<C>::infinity();
  C max[W::L], sum[W::L];
  for (int l = 0; l < W::L; l++) {
    const T* from = x + l * line;
    max[l] = W::max(from, n);
    sum[l] = W::sum(
        n, [&](int64_t i, auto whole) { return decay<C>(W::read(from, i, n, lowest, whole) - max[l]); });
  }
  store(sum, log(load<C>(sum)));
  for (int l = 0; l < W::L; l++) subtract(out + l * out_line, x + l * line, n, max[l], sum[l]);
}

template <class T, bool logarithm>
void along_line(T* out, const T* x, int64_t n) {
  using W = Line<T>;
  using C = typename W::C;
  constexpr C lowest = -std::numeric_limits<C>::infinity();
  C max = W::max(x, n);
  auto exponential = [&](int64_t i, auto whole) { return decay<C>(W::read(x, i, n, lowest, whole) - max); };
  if constexpr (logarithm) return subtract(out, x, n, max, std::log(W::sum(n, exponential)));
  // The exponentials wait for their sum in `out`, or beside it where they would lose digits.
  constexpr int64_t ROOM = is_reduced_v<T> ? 2048 : 0;
  C room[ROOM + 1];
  C* wait = room;
  if constexpr (!is_reduced_v<T>) wait = out;
  bool keep = !is_reduced_v<T> || n <= ROOM;
  using Waiting = Line<C>;
  if (keep) {
    C sum = W::sum(n, [&](int64_t i, auto whole) {
      auto e = exponential(i, whole);
      Waiting::write(wait, i, n, e, whole);
      return e;
    });
    C scale = 1 / sum;
    W::sweep(n, [&](int64_t i, auto whole) {
      W::write(out, i, n, Waiting::read(wait, i, n, 0, whole) * scale, whole);
    });
  } else {
    C scale = 1 / W::sum(n, exponential);
    W::sweep(n, [&](int64_t i, auto whole) { W::write(out, i, n, exponential(i, whole) * scale, whole); });
  }
}

template <class T, bool logarithm>
void along_line_backward(T* out, const T* grad, const T* y, int64_t n) {
  using W = Line<T>;
  using C = typename W::C;
  C sum = W::sum(n, [&](int64_t i, auto whole) {
    auto g = W::read(grad, i, n, 0, whole);
    if constexpr (!logarithm) g *= W::read(y, i, n, 0, whole);
    return g;
  });
  W::sweep(n, [&](int64_t i, auto whole) {
    auto g = W::read(grad, i, n, 0, whole), v = W::read(y, i, n, 0, whole);
    if constexpr (logarithm) W::write(out, i, n, g - decay<C>(v) * sum, whole);
    else W::write(out, i, n, (g - sum) * v, whole);
  });
}

// The same for up to LINES lines side by side, a multiple of a vector's lanes: every sweep goes over the
// memory in order, row by row, with one maximum and one sum per line. f(i, j) is a vector of lines j, j + 1,
// ...
template <class C, class F>
inline void sum_rows(C* sum, int64_t n, int64_t width, F f) {
  C part[LINES];
  std::memset(sum, 0, sizeof(C) * size_t(width));
  for (int64_t i = 0; i < n;) {  // in two stages, as Line::sum
    std::memset(part, 0, sizeof(C) * size_t(width));
    int64_t end = i + 64 < n ? i + 64 : n;
    for (; i < end; i++) {
      for (int64_t j = 0; j < width; j += LANES<C>) store(part + j, load<C>(part + j) + f(i, j));
    }
    for (int64_t j = 0; j < width; j += LANES<C>) store(sum + j, load<C>(sum + j) + load<C>(part + j));
  }
}

template <class T, bool logarithm>
void side_by_side(T* out, int64_t out_step, const T* x, int64_t step, int64_t n, int64_t width) {
  using C = compute_t<T>;
  constexpr int L = LANES<C>;
  C max[LINES], sum[LINES];
  for (int64_t j = 0; j < width; j++) max[j] = -std::numeric_limits<C>::infinity();
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < width; j += L)
      store(max + j, larger(load<C>(max + j), load<C>(x + i * step + j)));
  }
  auto exponential = [&](int64_t i, int64_t j) {
    return decay<C>(load<C>(x + i * step + j) - load<C>(max + j));
  };
  constexpr bool keep = !logarithm && !is_reduced_v<T>;
  sum_rows(sum, n, width, [&](int64_t i, int64_t j) {
    auto e = exponential(i, j);
    if constexpr (keep) store(out + i * out_step + j, e);
    return e;
  });
  for (int64_t j = 0; j < width; j += L) {
    if constexpr (logarithm) store(sum + j, log(load<C>(sum + j)));
    else store(sum + j, 1 / load<C>(sum + j));
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < width; j += L) {
      T* to = out + i * out_step + j;
      if constexpr (logarithm) store(to, load<C>(x + i * step + j) - load<C>(max + j) - load<C>(sum + j));
      else if constexpr (keep) store(to, load<C>(to) * load<C>(sum + j));
      else store(to, exponential(i, j) * load<C>(sum + j));
    }
  }
}

template <class T, bool logarithm>
void side_by_side_backward(T* out, int64_t out_step, const T* grad, int64_t grad_step, const T* y,
                           int64_t step, int64_t n, int64_t width) {
  using C = compute_t<T>;
  C sum[LINES];
  sum_rows(sum, n, width, [&](int64_t i, int64_t j) {
    auto g = load<C>(grad + i * grad_step + j);
    if constexpr (!logarithm) g *= load<C>(y + i * step + j);
    return g;
  });
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < width; j += LANES<C>) {
      auto g = load<C>(grad + i * grad_step + j), v = load<C>(y + i * step + j), s = load<C>(sum + j);
      if constexpr (logarithm) store(out + i * out_step + j, g - decay<C>(v) * s);
      else store(out + i * out_step + j, (g - s) * v);
    }
  }
}

// One line, whatever its strides.
template <class T, bool logarithm>
void by_elements(T* out, int64_t out_step, const T* x, int64_t step, int64_t n) {
  using C = compute_t<T>;
  C max = -std::numeric_limits<C>::infinity();
  for (int64_t i = 0; i < n; i++) max = larger(max, load_one<C>(x + i * step));
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += double(decay(load_one<C>(x + i * step) - max));
  C scale = 1 / C(sum), shift = std::log(C(sum));
  for (int64_t i = 0; i < n; i++) {
    C value = load_one<C>(x + i * step) - max;
    out[i * out_step] = T(logarithm ? value - shift : decay(value) * scale);
  }
}

template <class T, bool logarithm>
void by_elements_backward(T* out, int64_t out_step, const T* grad, int64_t grad_step, const T* y,
                          int64_t step, int64_t n) {
  using C = compute_t<T>;
  double total = 0;
  for (int64_t i = 0; i < n; i++) {
    C g = load_one<C>(grad + i * grad_step);
    total += double(logarithm ? g : g * load_one<C>(y + i * step));
  }
  C sum = C(total);
  for (int64_t i = 0; i < n; i++) {
    C g = load_one<C>(grad + i * grad_step), v = load_one<C>(y + i * step);
    out[i * out_step] = T(logarithm ? g - decay(v) * sum : (g - sum) * v);
  }
}

template <class T, bool logarithm>
void softmax(void* const* data, const int64_t* step, const int64_t* line, int64_t n, int64_t lines) {
  using C = compute_t<T>;
  T* out = (T*)data[0];
  const T* x = (const T*)data[1];
  int64_t j = 0;
  if (step[0] == 1 && step[1] == 1) {
    if constexpr (logarithm) {
      for (; n <= 256 && j + LANES<C> <= lines; j += LANES<C>)
        along_short_lines(out + j * line[0], line[0], x + j * line[1], line[1], n);
    }
    for (; j < lines; j++) along_line<T, logarithm>(out + j * line[0], x + j * line[1], n);
  } else if (line[0] == 1 && line[1] == 1) {
    j = lines / LANES<C> * LANES<C>;
    side_by_side<T, logarithm>(out, step[0], x, step[1], n, j);
  }
  for (; j < lines; j++) by_elements<T, logarithm>(out + j * line[0], step[0], x + j * line[1], step[1], n);
}

template <class T, bool logarithm>
void softmax_backward(void* const* data, const int64_t* step, const int64_t* line, int64_t n, int64_t lines) {
  using C = compute_t<T>;
  T* out = (T*)data[0];
  const T *grad = (const T*)data[1], *y = (const T*)data[2];
  int64_t j = 0;
  if (step[0] == 1 && step[1] == 1 && step[2] == 1) {
    for (; j < lines; j++) {
      along_line_backward<T, logarithm>(out + j * line[0], grad + j * line[1], y + j * line[2], n);
    }
  } else if (line[0] == 1 && line[1] == 1 && line[2] == 1) {
    j = lines / LANES<C> * LANES<C>;
    side_by_side_backward<T, logarithm>(out, step[0], grad, step[1], y, step[2], n, j);
  }
  for (; j < lines; j++) {
    by_elements_backward<T, logarithm>(out + j * line[0], step[0], grad + j * line[1], step[1],
                                       y + j * line[2], step[2], n);
  }
}

template <class T>
LineKernel kernel_of(LineOp op) {
  switch (op) {
    case LineOp::softmax: return softmax<T, false>;
    case LineOp::log_softmax: return softmax<T, true>;
    case LineOp::softmax_backward: return softmax_backward<T, false>;
    case LineOp::log_softmax_backward: return softmax_backward<T, true>;
    default: return nullptr;
  }
}

}  // namespace

LineKernel softmax_kernel(LineOp op, DType dtype) {
  switch (dtype) {
#if !defined(__AVX512F__)
    case DType::f16: return kernel_of<Half>(op);
#endif
    case DType::bf16: return kernel_of<BFloat16>(op);
    case DType::f32: return kernel_of<float>(op);
    case DType::f64: return kernel_of<double>(op);
    default: return nullptr;
  }
}

}  // namespace RL_ISA
}  // namespace rl
