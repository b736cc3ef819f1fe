// Running sums, products, extremes and log-sum-exps along lines.
//
// Each operation is a struct with an accumulator and a step; `scan_lines` runs it along one line after the
// other or, where lines lie side by side, across them in vectors. Sums and products of floats are carried in
// double, as sums over many elements need.
#include <cmath>
#include <complex>
#include <limits>

#include "../reduce.h"
#include "any_vector.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// The type a sum is carried in.
template <class T>
struct Carry {
  using type = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
};
template <class T>
struct Carry<std::complex<T>> {
  using type = std::complex<double>;
};

template <class T>
struct CumSum {
  using A = typename Carry<T>::type;
  using R = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  static A start() { return A(0); }
  static A step(A acc, A x) { return acc + x; }
};

template <class T>
struct CumProd {
  using A = typename Carry<T>::type;
  using R = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  static A start() { return A(1); }
  static A step(A acc, A x) {
    if constexpr (is_complex_v<A>) {
      return {acc.real() * x.real() - acc.imag() * x.imag(), acc.real() * x.imag() + acc.imag() * x.real()};
    } else {
      return acc * x;
    }
  }
};

template <class T>
struct LogCumSumExp {
  using A = typename Carry<T>::type;
  using R = T;
  static A start() { return A(-std::numeric_limits<double>::infinity()); }
  static double real(const A& x) {
    if constexpr (is_complex_v<A>) return x.real();
    else return x;
  }
  static A step(A acc, A x) {
    bool ordered = real(x) <= real(acc);
    A low = ordered ? x : acc, high = ordered ? acc : x;
    if (real(x) != real(x) || real(acc) != real(acc)) return A(std::numeric_limits<double>::quiet_NaN());
    if (std::isinf(real(low)) && real(low) < 0) return high;  // exp(low) is 0
    if (std::isinf(real(high))) return high;
    if constexpr (is_complex_v<A>) return std::log(A(1) + std::exp(low - high)) + high;
    else return std::log1p(std::exp(low - high)) + high;
  }
};

template <class A, class T>
inline A widen(const T& x) {
  if constexpr (is_complex_v<T>) return A(x.real(), x.imag());
  else if constexpr (is_reduced_v<T>) return A(float(x));
  else return A(x);
}

template <class R, class A>
inline R narrow(const A& a) {
  if constexpr (is_complex_v<A>) return R(typename R::value_type(a.real()), typename R::value_type(a.imag()));
  else if constexpr (is_reduced_v<R>) return R(float(a));
  else return R(a);
}

// Whether the lines lie side by side in all `count` operands.
inline bool side_by_side(const int64_t* line, int count, int64_t lines) {
  bool all = lines > 1;
  for (int k = 0; k < count; k++) all &= line[k] == 1;
  return all;
}

constexpr std::integral_constant<int64_t, 1> ONE;

template <class Op, class T>
void scan_lines(void* const* data, const int64_t* step, const int64_t* line, int64_t n, int64_t lines) {
  using A = typename Op::A;
  using R = typename Op::R;
  R* out = (R*)data[0];
  const T* x = (const T*)data[1];
  int64_t out_step = step[0], x_step = step[1];
  if (side_by_side(line, 2, lines)) {
    A acc[LINES];
    for (int64_t j = 0; j < lines; j++) acc[j] = Op::start();
    for (int64_t i = 0; i < n; i++, x += x_step, out += out_step) {
      for (int64_t j = 0; j < lines; j++) {
        acc[j] = Op::step(acc[j], widen<A>(x[j]));
        out[j] = narrow<R>(acc[j]);
      }
    }
    return;
  }
  auto along = [&](auto out_step, auto x_step) {
    for (int64_t j = 0; j < lines; j++, x += line[1], out += line[0]) {
      A acc = Op::start();
      for (int64_t i = 0; i < n; i++) {
        acc = Op::step(acc, widen<A>(x[i * x_step]));
        out[i * out_step] = narrow<R>(acc);
      }
    }
  };
  // Known steps: a running sum of int64 in 34 instead of 57 us for 100,000.
  if (std::is_integral_v<T> && out_step == 1 && x_step == 1) return along(ONE, ONE);
  along(out_step, x_step);
}

// A contiguous float line: sums within a vector first, so that the chain of dependent additions is one per
// vector and not one per element.
template <class T>
void cumsum_floats(void* const* data, const int64_t* step, const int64_t* line, int64_t n, int64_t lines) {
  if (step[0] != 1 || step[1] != 1 || side_by_side(line, 2, lines)) {
    return scan_lines<CumSum<T>, T>(data, step, line, n, lines);
  }
  constexpr int L = 4;
  using V = VectorOf<double, L>::type;
  for (int64_t j = 0; j < lines; j++) {
    T* out = (T*)data[0] + j * line[0];
    const T* x = (const T*)data[1] + j * line[1];
    V carry = {};
    int64_t i = 0;
    for (; i + L <= n; i += L) {
      V v;
      if constexpr (is_reduced_v<T>) {
        for (int l = 0; l < L; l++) v[l] = widen<double>(x[i + l]);
      } else {
        typename VectorOf<T, L>::type raw;
        std::memcpy(&raw, x + i, sizeof raw);
        v = __builtin_convertvector(raw, V);
      }
      v += shuffled<4, 0, 1, 2>(v, V{});
      v += shuffled<4, 4, 0, 1>(v, V{});
      v += carry;
      carry = shuffled<3, 3, 3, 3>(v, v);
      if constexpr (is_reduced_v<T>) {
        for (int l = 0; l < L; l++) out[i + l] = narrow<T>(double(v[l]));
      } else {
        auto rounded = __builtin_convertvector(v, typename VectorOf<T, L>::type);
        std::memcpy(out + i, &rounded, sizeof rounded);
      }
    }
    double sum = carry[0];
    for (; i < n; i++) {
      sum += widen<double>(x[i]);
      out[i] = narrow<T>(sum);
    }
  }
}

// Contiguous lines: a vector in which nothing replaces the best so far is looked at, and written, at once.
// Records are rare.
template <class T, bool largest>
void extremes_of_long_lines(void* const* data, const int64_t* line, int64_t n, int64_t lines) {
  constexpr int L = LANES<T>;
  typedef typename VectorOf<int64_t, L>::type Places;
  for (int64_t j = 0; j < lines; j++) {
    T* out = (T*)data[0] + j * line[0];
    int64_t* index = (int64_t*)data[1] + j * line[1];
    const T* x = (const T*)data[2] + j * line[2];
    T best = x[0];
    int64_t where = 0, i = 0;
    auto one = [&] {
      T value = x[i];
      if ((value != value) | (largest ? value >= best : value <= best)) best = value, where = i;
      out[i] = best;
      index[i++] = where;
    };
    while (i + L <= n) {
      Vec<T> v = load<T>(x + i);
      if (any((v != v) | (largest ? v >= best : v <= best))) {
        for (int k = 0; k < L; k++) one();
        continue;
      }
      Places places = Places{} + where;
      store<T>(out + i, Vec<T>{} + best);
      std::memcpy(index + i, &places, sizeof places);
      i += L;
    }
    while (i < n) one();
  }
}

// The last of equal elements wins, and so does the last NaN.
template <class T, bool largest>
void scan_extreme(void* const* data, const int64_t* step, const int64_t* line, int64_t n, int64_t lines) {
  using C = compute_t<T>;
  auto replaces = [](C x, C best) { return (x != x) | ((best == best) & (largest ? x >= best : x <= best)); };
  if (side_by_side(line, 3, lines)) {
    T* out = (T*)data[0];
    int64_t* index = (int64_t*)data[1];
    const T* x = (const T*)data[2];
    T best[LINES];
    int64_t where[LINES] = {};
    std::memcpy(best, x, size_t(lines) * sizeof(T));
    for (int64_t i = 0; i < n; i++, out += step[0], index += step[1], x += step[2]) {
      for (int64_t j = 0; j < lines; j++) {
        bool replace = replaces(C(x[j]), C(best[j]));
        best[j] = replace ? x[j] : best[j];
        where[j] = replace ? i : where[j];
        out[j] = best[j];
        index[j] = where[j];
      }
    }
    return;
  }
  auto along = [&](auto out_step, auto index_step, auto x_step) {
    for (int64_t j = 0; j < lines; j++) {
      T* out = (T*)data[0] + j * line[0];
      int64_t* index = (int64_t*)data[1] + j * line[1];
      const T* x = (const T*)data[2] + j * line[2];
      T best = x[0];
      int64_t where = 0;
      for (int64_t i = 0; i < n; i++) {
        T value = x[i * x_step];
        // A new record is rare: a branch that is guessed right beats waiting for the comparison.
        if (__builtin_expect(replaces(C(value), C(best)), 0)) best = value, where = i;
        out[i * out_step] = best;
        index[i * index_step] = where;
      }
    }
  };
  const bool packed = step[0] == 1 && step[1] == 1 && step[2] == 1;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (packed && n >= 4 * LANES<T>) return extremes_of_long_lines<T, largest>(data, line, n, lines);
  }
  if (packed) along(ONE, ONE, ONE);
  else along(step[0], step[1], step[2]);
}

// The results never decrease along a line, so both recurrences only ever multiply by exponentials of at most
// 1: nothing overflows, however far apart the elements are.
template <class T>
void logcumsumexp_backward(void* const* data, const int64_t* step, const int64_t* line, int64_t n,
                           int64_t lines) {
  for (int64_t j = 0; j < lines; j++) {
    T* out = (T*)data[0] + j * line[0];
    const T *grad = (const T*)data[1] + j * line[1], *x = (const T*)data[2] + j * line[2];
    const T* result = (const T*)data[3] + j * line[3];
    double later = 0, next = 0;  // later: the sum of grad[i] * exp(result[k] - result[i]) over i >= k
    for (int64_t k = n - 1; k >= 0; k--) {
      double y = widen<double>(result[k * step[3]]);
      // Equal ones may be infinite: what comes after an infinite element says nothing of those before it.
      double shrunk = k == n - 1 ? 0 : y == next ? later : std::exp(y - next) * later;
      later = widen<double>(grad[k * step[1]]) + shrunk;
      next = y;
      out[k * step[0]] = narrow<T>(std::exp(widen<double>(x[k * step[2]]) - y) * later);
    }
  }
}

template <class T>
void logcumsumexp_tangent(void* const* data, const int64_t* step, const int64_t* line, int64_t n,
                          int64_t lines) {
  for (int64_t j = 0; j < lines; j++) {
    T* out = (T*)data[0] + j * line[0];
    const T *tangent = (const T*)data[1] + j * line[1], *x = (const T*)data[2] + j * line[2];
    const T* result = (const T*)data[3] + j * line[3];
    double sum = 0, before = 0;
    for (int64_t i = 0; i < n; i++) {
      double y = widen<double>(result[i * step[3]]);
      double own = widen<double>(tangent[i * step[1]]) * std::exp(widen<double>(x[i * step[2]]) - y);
      sum = own + (i == 0 ? 0.0 : std::exp(before - y) * sum);
      before = y;
      out[i * step[0]] = narrow<T>(sum);
    }
  }
}

template <class T>
LineKernel kernel_of(LineOp op) {
  switch (op) {
    case LineOp::cumsum:
      if constexpr (is_floating_v<T>) return cumsum_floats<T>;
      else return scan_lines<CumSum<T>, T>;
    case LineOp::cumprod: return scan_lines<CumProd<T>, T>;
    case LineOp::logcumsumexp:
      if constexpr (is_floating_v<T> || is_complex_v<T>) return scan_lines<LogCumSumExp<T>, T>;
      else return nullptr;
    case LineOp::logcumsumexp_backward:
      if constexpr (is_floating_v<T>) return logcumsumexp_backward<T>;
      else return nullptr;
    case LineOp::logcumsumexp_tangent:
      if constexpr (is_floating_v<T>) return logcumsumexp_tangent<T>;
      else return nullptr;
    case LineOp::cummax:
    case LineOp::cummin:
      if constexpr (is_complex_v<T>) return nullptr;
      else return op == LineOp::cummax ? scan_extreme<T, true> : scan_extreme<T, false>;
    default: return nullptr;
  }
}

}  // namespace

LineKernel scan_kernel(LineOp op, DType dtype) {
  return visit(dtype, [op](auto tag) { return kernel_of<typename decltype(tag)::type>(op); });
}

}  // namespace RL_ISA
}  // namespace rl
