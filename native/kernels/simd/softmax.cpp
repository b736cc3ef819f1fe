// softmax and log_softmax along lines, and their gradients.
//
// Each line takes three sweeps: its maximum, the sum of exp(x - maximum), the result. Contiguous lines are
// swept in vectors along the line, lines side by side in vectors across them; anything else element by
// element.
#include <cmath>
#include <limits>

#include "../reduce.h"
#include "../vecmath.h"
#include "../vecmath64.h"
#include "any_vector.h"

namespace rl {
inline namespace RL_ISA {
namespace {

inline float exp(float x) { return std::exp(x); }
inline double exp(double x) { return std::exp(x); }

template <class V>
inline V larger(V a, V b) {
  V chosen = b > a ? b : a;
  return b != b ? b : chosen;
}

// Elements of a line in vectors. The last vector may be incomplete: missing lanes read as `fill`, and are not
// written.
template <class T>
struct Line {
  using C = compute_t<T>;
  using V = Vec<C>;
  static constexpr int L = LANES<C>;

  static V read(const T* x, int64_t i, int64_t n, C fill) {
    if (i + L <= n) [[likely]]
      return load<C>(x + i);
    V v = V{} + fill;
    for (int l = 0; i + l < n; l++) v[l] = load_one<C>(x + i + l);
    return v;
  }
  static void write(T* out, int64_t i, int64_t n, V v) {
    if (i + L <= n) [[likely]]
      return store(out + i, v);
    for (int l = 0; i + l < n; l++) out[i + l] = T(C(v[l]));
  }
  static double total(V v) {
    double sum = 0;
    for (int l = 0; l < L; l++) sum += double(v[l]);
    return sum;
  }
};

// The sum over a line of f(i), a vector each, in chunks so that rounding errors stay short.
template <class T, class F>
inline double sum_line(int64_t n, F f) {
  using W = Line<T>;
  double sum = 0;
  for (int64_t i = 0; i < n;) {
    typename W::V a = {};
    int64_t end = i + 64 * W::L < n ? i + 64 * W::L : n;
    for (; i < end; i += W::L) a += f(i);
    sum += W::total(a);
  }
  return sum;
}

template <class T, bool logarithm>
void along_line(T* out, const T* x, int64_t n) {
  using W = Line<T>;
  using C = typename W::C;
  using V = typename W::V;
  constexpr C lowest = -std::numeric_limits<C>::infinity();
  V highest = V{} + lowest;
  for (int64_t i = 0; i < n; i += W::L) highest = larger(highest, W::read(x, i, n, lowest));
  C max = lowest;
  for (int l = 0; l < W::L; l++) max = larger(max, C(highest[l]));
  if constexpr (logarithm) {
    double sum = sum_line<T>(n, [&](int64_t i) { return exp(W::read(x, i, n, lowest) - max); });
    C shift = C(std::log(sum));
    for (int64_t i = 0; i < n; i += W::L) W::write(out, i, n, W::read(x, i, n, 0) - max - shift);
  } else if constexpr (is_reduced_v<T>) {
    // The exponentials would lose digits if they were kept in `out`.
    C sum = C(sum_line<T>(n, [&](int64_t i) { return exp(W::read(x, i, n, lowest) - max); }));
    for (int64_t i = 0; i < n; i += W::L) W::write(out, i, n, exp(W::read(x, i, n, 0) - max) / sum);
  } else {
    C sum = C(sum_line<T>(n, [&](int64_t i) {
      V e = exp(W::read(x, i, n, lowest) - max);
      W::write(out, i, n, e);
      return e;
    }));
    for (int64_t i = 0; i < n; i += W::L) W::write(out, i, n, W::read(out, i, n, 0) / sum);
  }
}

template <class T, bool logarithm>
void along_line_backward(T* out, const T* grad, const T* y, int64_t n) {
  using W = Line<T>;
  using C = typename W::C;
  C sum = C(sum_line<T>(n, [&](int64_t i) {
    auto g = W::read(grad, i, n, 0);
    if constexpr (!logarithm) g *= W::read(y, i, n, 0);
    return g;
  }));
  for (int64_t i = 0; i < n; i += W::L) {
    auto g = W::read(grad, i, n, 0), v = W::read(y, i, n, 0);
    if constexpr (logarithm) W::write(out, i, n, g - exp(v) * sum);
    else W::write(out, i, n, (g - sum) * v);
  }
}

// One line per lane, X being a vector for LANES lines or a number for one; `steps` lead from element to
// element.
template <class X, class T>
struct Lanes {
  using C = compute_t<T>;
  static X read(const T* p) {
    if constexpr (std::is_same_v<X, C>) return load_one<C>(p);
    else return load<C>(p);
  }
  static void write(T* p, X x) {
    if constexpr (std::is_same_v<X, C>) *p = T(x);
    else store(p, x);
  }
};

// A long sum in two stages, as sum_line does it.
template <class X, class F>
inline X sum_lanes(int64_t n, F f) {
  X sum = {};
  for (int64_t i = 0; i < n;) {
    X part = {};
    int64_t end = i + 64 < n ? i + 64 : n;
    for (; i < end; i++) part += f(i);
    sum += part;
  }
  return sum;
}

template <class X, class T, bool logarithm>
inline void across_lines(T* out, int64_t out_step, const T* x, int64_t step, int64_t n) {
  using C = compute_t<T>;
  using W = Lanes<X, T>;
  X max = X{} - std::numeric_limits<C>::infinity();
  for (int64_t i = 0; i < n; i++) max = larger(max, W::read(x + i * step));
  X sum = sum_lanes<X>(n, [&](int64_t i) { return exp(W::read(x + i * step) - max); });
  if constexpr (logarithm) {
    X shift;
    if constexpr (std::is_same_v<X, C>) shift = std::log(sum);
    else shift = log(sum);
    for (int64_t i = 0; i < n; i++) W::write(out + i * out_step, W::read(x + i * step) - max - shift);
  } else {
    for (int64_t i = 0; i < n; i++) W::write(out + i * out_step, exp(W::read(x + i * step) - max) / sum);
  }
}

template <class X, class T, bool logarithm>
inline void across_lines_backward(T* out, int64_t out_step, const T* grad, int64_t grad_step, const T* y,
                                  int64_t step, int64_t n) {
  using W = Lanes<X, T>;
  X sum = sum_lanes<X>(n, [&](int64_t i) {
    X g = W::read(grad + i * grad_step);
    if constexpr (!logarithm) g *= W::read(y + i * step);
    return g;
  });
  for (int64_t i = 0; i < n; i++) {
    X g = W::read(grad + i * grad_step), v = W::read(y + i * step);
    if constexpr (logarithm) W::write(out + i * out_step, g - exp(v) * sum);
    else W::write(out + i * out_step, (g - sum) * v);
  }
}

template <class T, bool logarithm>
void softmax(void* const* data, const int64_t* step, const int64_t* line, int64_t n, int64_t lines) {
  using C = compute_t<T>;
  T* out = (T*)data[0];
  const T* x = (const T*)data[1];
  int64_t j = 0;
  if (step[0] == 1 && step[1] == 1) {
    for (; j < lines; j++) along_line<T, logarithm>(out + j * line[0], x + j * line[1], n);
  } else if (line[0] == 1 && line[1] == 1) {
    for (; j + LANES<C> <= lines; j += LANES<C>) {
      across_lines<Vec<C>, T, logarithm>(out + j, step[0], x + j, step[1], n);
    }
  }
  for (; j < lines; j++)
    across_lines<C, T, logarithm>(out + j * line[0], step[0], x + j * line[1], step[1], n);
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
    for (; j + LANES<C> <= lines; j += LANES<C>) {
      across_lines_backward<Vec<C>, T, logarithm>(out + j, step[0], grad + j, step[1], y + j, step[2], n);
    }
  }
  for (; j < lines; j++) {
    across_lines_backward<C, T, logarithm>(out + j * line[0], step[0], grad + j * line[1], step[1],
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
    case DType::f16: return kernel_of<Half>(op);
    case DType::bf16: return kernel_of<BFloat16>(op);
    case DType::f32: return kernel_of<float>(op);
    case DType::f64: return kernel_of<double>(op);
    default: return nullptr;
  }
}

}  // namespace RL_ISA
}  // namespace rl
