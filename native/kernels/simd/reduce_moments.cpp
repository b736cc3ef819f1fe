// Variance and log-sum-exp: reductions that must know where their elements lie before they can add them up.
//
// A chunk small enough for the first cache is read twice (first for its mean or maximum, then for the sum of
// squared deviations or exponentials), and the chunks' results are merged in double. So memory is read once,
// and the result is as accurate as two passes over everything. Deviations are doubles throughout.
#include <cmath>
#include <limits>

#include "../vecmath.h"
#include "libm.h"
#include "reduce_loops.h"

namespace rl {
inline namespace RL_ISA {
namespace {

struct Moments {
  double mean, squares;  // squares: the sum of squared deviations from the mean
  int64_t count;

  // Chan, Golub and LeVeque's update.
  void merge(const Moments& other) {
    if (!other.count) return;
    if (!count) {
      *this = other;
      return;
    }
    double total = double(count + other.count), delta = other.mean - mean;
    mean += delta * (double(other.count) / total);
    squares += other.squares + delta * delta * (double(count) * double(other.count) / total);
    count += other.count;
  }
};

// The centre is the rounded mean, so the deviations' own sum corrects for the rounding.
inline Moments moments_about(double center, double sum, double squares, int64_t n) {
  return {center + sum / double(n), squares - sum * sum / double(n), n};
}

// A pair of vectors of doubles from PAIR elements: squares of large and of small floats are no floats.
constexpr int HALF = LANES<double>, PAIR = 2 * HALF;
struct Pair {
  Vec<double> of[2] = {};

  template <class T>
  static Pair load(const T* p) {
    Pair pair;
    if constexpr (is_reduced_v<T>) {
      static_assert(LANES<float> == PAIR);
      Vec<float> wide = rl::load<float>(p);
      for (int k = 0; k < 2; k++) {
        typename VectorOf<float, HALF>::type half;
        std::memcpy(&half, reinterpret_cast<const char*>(&wide) + k * sizeof half, sizeof half);
        pair.of[k] = __builtin_convertvector(half, Vec<double>);
      }
    } else {
      for (int k = 0; k < 2; k++) pair.of[k] = rl::load<double>(p + k * HALF);
    }
    return pair;
  }
  void add(const Pair& other) {
    for (int k = 0; k < 2; k++) of[k] += other.of[k];
  }
  double operator[](int lane) const { return of[lane / HALF][lane % HALF]; }
};

// The sums of deviations and of their squares, lane by lane.
struct Deviations {
  Pair sum, squares;
  void add(const Pair& x, const Pair& center) {
    for (int k = 0; k < 2; k++) {
      Vec<double> d = x.of[k] - center.of[k];
      sum.of[k] += d;
      squares.of[k] += d * d;
    }
  }
};

// About the mean, in the type of the elements where it holds their sum: the centre of deviations.
template <class T>
inline double mean_across(const T* x, int64_t n) {
  using C = compute_t<T>;
  constexpr int L = LANES<C>;
  Vec<C> a[4] = {};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    for (int k = 0; k < 4; k++) a[k] += load<C>(x + i + k * L);
  }
  Vec<C> all = (a[0] + a[1]) + (a[2] + a[3]);
  double sum = 0;
  for (int l = 0; l < L; l++) sum += double(all[l]);
  for (; i < n; i++) sum += load_one<double>(x + i);
  if (std::isfinite(sum)) return sum / double(n);
  sum = 0;
  for (i = 0; i < n; i++) sum += load_one<double>(x + i);
  return sum / double(n);
}

template <class T>
inline Moments moments_across(const T* x, int64_t n) {
  double mean = mean_across(x, n), sum = 0, squares = 0;
  Pair center;
  for (auto& half : center.of) half += mean;
  Deviations d[2];
  int64_t i = 0;
  for (; i + 2 * PAIR <= n; i += 2 * PAIR) {
    for (int k = 0; k < 2; k++) d[k].add(Pair::load(x + i + k * PAIR), center);
  }
  for (int l = 0; l < PAIR; l++) {
    sum += d[0].sum[l] + d[1].sum[l];
    squares += d[0].squares[l] + d[1].squares[l];
  }
  for (; i < n; i++) {
    double deviation = load_one<double>(x + i) - mean;
    sum += deviation;
    squares += deviation * deviation;
  }
  return moments_about(mean, sum, squares, n);
}

template <class T>
void variance_rows(const void* data, int64_t count, int64_t stride, int64_t n, int64_t, void* acc,
                   const ReduceParams&) {
  for (int64_t i = 0; i < count; i++) {
    const T* x = (const T*)data + i * stride;
    for (int64_t begin = 0; begin < n; begin += CHUNK) {
      ((Moments*)acc)[i].merge(moments_across(x + begin, smaller(CHUNK, n - begin)));
    }
  }
}

// A strip of K pairs of vectors, m rows: small enough to be read twice from the first cache.
template <int K, class T>
inline void variance_strip(const T* x, int64_t m, int64_t stride, Moments* acc) {
  Pair center[K];
  const T* row = x;
  for (int64_t r = 0; r < m; r++, row += stride) {
    for (int k = 0; k < K; k++) center[k].add(Pair::load(row + k * PAIR));
  }
  for (Pair& pair : center) {
    for (auto& half : pair.of) half /= double(m);
  }
  Deviations d[K];
  row = x;
  for (int64_t r = 0; r < m; r++, row += stride) {
    for (int k = 0; k < K; k++) d[k].add(Pair::load(row + k * PAIR), center[k]);
  }
  for (int k = 0; k < K; k++) {
    for (int l = 0; l < PAIR; l++) {
      acc[k * PAIR + l].merge(moments_about(center[k][l], d[k].sum[l], d[k].squares[l], m));
    }
  }
}

template <class T>
void variance_columns(const void* data, int64_t n, int64_t stride, int64_t width, int64_t, void* accumulators,
                      const ReduceParams&) {
  constexpr int64_t ROWS = 64;
  Moments* acc = (Moments*)accumulators;
  for (int64_t begin = 0; begin < n; begin += ROWS) {
    const T* x = (const T*)data + begin * stride;
    int64_t m = smaller(ROWS, n - begin), j = 0;
    for (; j + 2 * PAIR <= width; j += 2 * PAIR) variance_strip<2>(x + j, m, stride, acc + j);
    for (; j < width; j++) {
      double column[ROWS];
      for (int64_t r = 0; r < m; r++) column[r] = load_one<double>(x + j + r * stride);
      acc[j].merge(moments_across(column, m));
    }
  }
}

void variance_init(void* acc, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((Moments*)acc)[i] = {};
}

void variance_combine(void* acc, const void* other, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((Moments*)acc)[i].merge(((const Moments*)other)[i]);
}

template <bool root>
void variance_finish(const void* acc, int64_t n, void* out, DType out_dtype, int64_t stride, void*, int64_t,
                     const ReduceParams& params) {
  double divisor = double(params.count) - params.correction;
  if (!(divisor > 0)) divisor = 0;
  visit_floating(out_dtype, [&](auto tag) {
    using R = typename decltype(tag)::type;
    for (int64_t i = 0; i < n; i++) {
      // Rounding may leave a sum of squares a hair below zero.
      double squares = ((const Moments*)acc)[i].squares;
      double variance = (squares < 0 ? 0 : squares) / divisor;
      ((R*)out)[i * stride] = convert<R>(root ? std::sqrt(variance) : variance);
    }
  });
}

template <class T, bool root>
constexpr ReduceKernel variance_kernel = {
    sizeof(Moments),       false, variance_init, variance_rows<T>, variance_columns<T>, variance_combine,
    variance_finish<root>, 24};

// sum = the sum of exp(x - max).
struct LogSum {
  double max, sum;
  void merge(const LogSum& other) {
    if (other.max > max || other.max != other.max) {
      sum = sum * rescale(max, other.max) + other.sum;
      max = other.max;
    } else {
      sum += other.sum * rescale(other.max, max);
    }
  }
  // exp(from - to), where both may be the same infinity.
  static double rescale(double from, double to) { return from == to ? 1 : std::exp(from - to); }
};

template <class V>
inline V larger(V a, V b) {
  V chosen = b > a ? b : a;
  return b != b ? b : chosen;
}

// An infinite or NaN maximum decides everything (-infinity: there is nothing but zeros to add).
inline LogSum settled(double max) { return {max, std::isinf(max) && max < 0 ? 0.0 : 1.0}; }

template <class T>
inline LogSum log_sum_across(const T* x, int64_t n) {
  using C = compute_t<T>;
  constexpr int L = LANES<C>;
  Vec<C> highest = Vec<C>{} - std::numeric_limits<C>::infinity();
  int64_t i = 0;
  for (; i + L <= n; i += L) highest = larger(highest, load<C>(x + i));
  C max = highest[0];
  for (int l = 1; l < L; l++) max = larger(max, C(highest[l]));
  for (; i < n; i++) max = larger(max, load_one<C>(x + i));
  if (max - max != C(0)) return settled(double(max));
  Vec<C> a = {};
  for (i = 0; i + L <= n; i += L) a += exp(load<C>(x + i) - max);
  double sum = 0;
  for (int l = 0; l < L; l++) sum += double(a[l]);
  for (; i < n; i++) sum += double(std::exp(load_one<C>(x + i) - max));
  return {double(max), sum};
}

// m rows of one vector of columns.
template <class T>
inline void log_sum_strip(const T* x, int64_t m, int64_t stride, LogSum* acc) {
  using C = compute_t<T>;
  Vec<C> max = load<C>(x), sum = {};
  for (int64_t r = 1; r < m; r++) max = larger(max, load<C>(x + r * stride));
  for (int64_t r = 0; r < m; r++) sum += exp(load<C>(x + r * stride) - max);
  for (int l = 0; l < LANES<C>; l++) {
    C high = max[l];
    acc[l].merge(high - high != C(0) ? settled(double(high)) : LogSum{double(high), double(sum[l])});
  }
}

template <class T>
void log_sum_rows(const void* data, int64_t count, int64_t stride, int64_t n, int64_t, void* acc,
                  const ReduceParams&) {
  for (int64_t i = 0; i < count; i++) {
    for (int64_t begin = 0; begin < n; begin += CHUNK) {
      const T* x = (const T*)data + i * stride + begin;
      ((LogSum*)acc)[i].merge(log_sum_across(x, smaller(CHUNK, n - begin)));
    }
  }
}

template <class T>
void log_sum_columns(const void* data, int64_t n, int64_t stride, int64_t width, int64_t, void* acc,
                     const ReduceParams&) {
  using C = compute_t<T>;
  for (int64_t begin = 0; begin < n; begin += GROUP) {
    const T* x = (const T*)data + begin * stride;
    int64_t m = smaller(GROUP, n - begin), j = 0;
    for (; j + LANES<C> <= width; j += LANES<C>) log_sum_strip(x + j, m, stride, (LogSum*)acc + j);
    for (; j < width; j++) {
      C column[GROUP];
      for (int64_t r = 0; r < m; r++) column[r] = load_one<C>(x + j + r * stride);
      ((LogSum*)acc)[j].merge(log_sum_across(column, m));
    }
  }
}

void log_sum_init(void* acc, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((LogSum*)acc)[i] = {-std::numeric_limits<double>::infinity(), 0};
}

void log_sum_combine(void* acc, const void* other, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((LogSum*)acc)[i].merge(((const LogSum*)other)[i]);
}

void log_sum_finish(const void* acc, int64_t n, void* out, DType out_dtype, int64_t stride, void*, int64_t,
                    const ReduceParams&) {
  visit_floating(out_dtype, [&](auto tag) {
    using R = typename decltype(tag)::type;
    for (int64_t i = 0; i < n; i++) {
      const LogSum& a = ((const LogSum*)acc)[i];
      ((R*)out)[i * stride] = convert<R>(std::isinf(a.max) ? a.max : a.max + std::log(a.sum));
    }
  });
}

template <class T>
constexpr ReduceKernel log_sum_kernel = {sizeof(LogSum),     false,           log_sum_init,   log_sum_rows<T>,
                                         log_sum_columns<T>, log_sum_combine, log_sum_finish, 12};

}  // namespace

const ReduceKernel* moment_kernel(ReduceOp op, DType dtype) {
  const ReduceKernel* found = nullptr;
  if (!is_floating(dtype)) return found;
  visit_floating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (op == ReduceOp::var) found = &variance_kernel<T, false>;
    if (op == ReduceOp::std) found = &variance_kernel<T, true>;
    if (op == ReduceOp::logsumexp) found = &log_sum_kernel<T>;
  });
  return found;
}

}  // namespace RL_ISA
}  // namespace rl
