// Sums, means, counts, p-norms and products: the reductions that add or multiply.
//
// Read `Sum` first; the others differ in what they add. The table at the end pairs operations and types.
#include <cmath>

#include "reduce_loops.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// The long-lived accumulators. Floats go into a double; doubles carry the rounding error of every addition
// along (Knuth's two-sum); integers wrap.
struct WideSum {
  double sum;
  void add(double x) { sum += x; }
  void add(const WideSum& other) { sum += other.sum; }
  double value() const { return sum; }
};

struct CompensatedSum {
  double sum, error;
  void add(double x) {
    double total = sum + x, part = total - sum;
    error += (sum - (total - part)) + (x - part);
    sum = total;
  }
  void add(const CompensatedSum& other) {
    add(other.sum);
    error += other.error;
  }
  // Once a sum is infinite its "error" is NaN and means nothing.
  double value() const { return std::isfinite(sum) ? sum + error : sum; }
};

struct WrappingSum {
  uint64_t sum;
  void add(uint64_t x) { sum += x; }
  void add(const WrappingSum& other) { sum += other.sum; }
  int64_t value() const { return int64_t(sum); }
};

// Types in the registers: CHUNK small integers cannot overflow 32 bits.
template <class T>
struct SumType {
  using type = compute_t<T>;
};
template <>
struct SumType<uint8_t> {
  using type = int32_t;
};
template <>
struct SumType<int8_t> {
  using type = int32_t;
};
template <>
struct SumType<int16_t> {
  using type = int32_t;
};
template <>
struct SumType<int32_t> {
  using type = uint64_t;
};
template <>
struct SumType<int64_t> {
  using type = uint64_t;
};

template <class C>
struct SumAccumulator {
  using type = WrappingSum;
};
template <>
struct SumAccumulator<float> {
  using type = WideSum;
};
template <>
struct SumAccumulator<double> {
  using type = CompensatedSum;
};

template <class T>
struct Sum {
  using Loops = ReduceLoops<Sum, T>;
  using C = typename SumType<T>::type;
  using A = typename SumAccumulator<C>::type;
  static constexpr bool integral = std::is_same_v<A, WrappingSum>;
  template <class V>
  static V neutral() {
    return V{};
  }
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return acc + x;
  }
  template <class V>
  static V merge(V a, V b) {
    return a + b;
  }
  static void absorb(A& acc, C x) {
    if constexpr (integral) acc.add(uint64_t(int64_t(x)));
    else acc.add(double(x));
  }
  static void combine(A& acc, const A& other) { acc.add(other); }
  static A start() { return A{}; }
  static bool settled(const A&) { return false; }
  static auto result(const A& acc, const ReduceParams&) { return acc.value(); }
};

// The loops are those of Sum: only the end differs.
template <class T>
struct Mean : Sum<T> {
  static double result(const typename Sum<T>::A& acc, const ReduceParams& params) {
    return acc.value() / double(params.count);
  }
};

template <class T>
struct NanSum : Sum<T> {
  using Loops = ReduceLoops<NanSum, T>;
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return acc + (x == x ? x : V{});
  }
};

template <class V>
inline V magnitude(V x) {
  return x < V{} ? -x : x;
}

template <class T>
struct Norm1 : Sum<T> {
  using Loops = ReduceLoops<Norm1, T>;
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return acc + magnitude(x);
  }
};

template <class T>
struct Norm2 : Sum<T> {
  using Loops = ReduceLoops<Norm2, T>;
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return acc + x * x;
  }
  static double result(const typename Sum<T>::A& acc, const ReduceParams&) { return std::sqrt(acc.value()); }
};

template <class T>
struct NormP : Sum<T> {
  using Loops = ReduceLoops<NormP, T>;
  using C = typename Sum<T>::C;
  static C step(C acc, C x, const ReduceParams& params) { return acc + std::pow(std::fabs(x), C(params.p)); }
  static Vec<C> step(Vec<C> acc, Vec<C> x, const ReduceParams& params) {
    for (int l = 0; l < LANES<C>; l++) acc[l] = step(C(acc[l]), C(x[l]), params);
    return acc;
  }
  static double result(const typename Sum<T>::A& acc, const ReduceParams& params) {
    return std::pow(acc.value(), 1 / params.p);
  }
};

// Counts in the element's own register type (exact up to CHUNK), then in int64.
template <class T>
struct CountNonzero : Sum<T> {
  using Loops = ReduceLoops<CountNonzero, T>;
  using C = std::conditional_t<std::is_same_v<T, int32_t>, int32_t, typename Sum<T>::C>;
  using A = WrappingSum;
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return acc + (x != V{} ? V{} + 1 : V{});
  }
  static void absorb(A& acc, C x) { acc.add(uint64_t(int64_t(x))); }
  static void combine(A& acc, const A& other) { acc.add(other); }
  static A start() { return A{}; }
  static bool settled(const A&) { return false; }
  static int64_t result(const A& acc, const ReduceParams&) { return acc.value(); }
};

// Products of floats are formed in double throughout: a partial product over- or underflows much sooner than
// a sum.
template <class T>
struct Prod {
  using Loops = ReduceLoops<Prod, T>;
  static constexpr bool integral = std::is_integral_v<T>;
  using C = std::conditional_t<integral, uint64_t, double>;
  using A = C;
  template <class V>
  static V neutral() {
    return V{} + 1;
  }
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return acc * x;
  }
  template <class V>
  static V merge(V a, V b) {
    return a * b;
  }
  static void absorb(A& acc, C x) { acc *= x; }
  static void combine(A& acc, const A& other) { acc *= other; }
  static A start() { return 1; }
  static bool settled(const A&) { return false; }
  static auto result(const A& acc, const ReduceParams&) {
    if constexpr (integral) return int64_t(acc);
    else return acc;
  }
};

template <class Value>
[[gnu::noinline]] void write_results(const Value* values, int64_t n, void* out, DType out_dtype,
                                     int64_t stride) {
  auto write = [&](auto tag) {
    using R = typename decltype(tag)::type;
    for (int64_t i = 0; i < n; i++) ((R*)out)[i * stride] = convert<R>(values[i]);
  };
  if (std::is_same_v<Value, int64_t> && !is_floating(out_dtype)) visit_integral(out_dtype, write);
  else visit_floating(out_dtype, write);
}

template <class Op>
void finish(const void* acc, int64_t n, void* out, DType out_dtype, int64_t stride, void*, int64_t,
            const ReduceParams& params) {
  constexpr int64_t ROOM = 64;
  decltype(Op::result(std::declval<typename Op::A>(), params)) values[ROOM];
  int64_t size = dtype_size(to_real(out_dtype));  // complex sums arrive as their parts
  for (int64_t i = 0; i < n; i += ROOM) {
    int64_t count = smaller(ROOM, n - i);
    for (int64_t k = 0; k < count; k++) values[k] = Op::result(((const typename Op::A*)acc)[i + k], params);
    write_results(values, count, (char*)out + i * stride * size, out_dtype, stride);
  }
}

template <template <class> class Op, class T>
constexpr ReduceKernel kernel_of() {
  using Loops = typename Op<T>::Loops;
  return {int(sizeof(typename Op<T>::A)),
          false,
          Loops::init,
          Loops::rows,
          Loops::columns,
          Loops::combine,
          finish<Op<T>>};
}
template <template <class> class Op, class T>
constexpr ReduceKernel kernel = kernel_of<Op, T>();

// Products of complex numbers: too rare for vectors, and in double as the real ones.
struct ComplexProduct {
  double re, im;
  void multiply(double other_re, double other_im) {
    double r = re * other_re - im * other_im;
    im = re * other_im + im * other_re;
    re = r;
  }
};

template <class T>
struct ComplexProd {
  using A = ComplexProduct;
  static void init(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((A*)acc)[i] = {1, 0};
  }
  static void rows(const void* x, int64_t count, int64_t stride, int64_t n, int64_t, void* acc,
                   const ReduceParams&) {
    for (int64_t i = 0; i < count; i++) {
      const T* p = (const T*)x + 2 * i * stride;
      for (int64_t j = 0; j < n; j++) ((A*)acc)[i].multiply(p[2 * j], p[2 * j + 1]);
    }
  }
  static void columns(const void* x, int64_t n, int64_t stride, int64_t width, int64_t, void* acc,
                      const ReduceParams&) {
    for (int64_t i = 0; i < n; i++) {
      const T* p = (const T*)x + 2 * i * stride;
      for (int64_t j = 0; j < width; j++) ((A*)acc)[j].multiply(p[2 * j], p[2 * j + 1]);
    }
  }
  static void combine(void* acc, const void* other, int64_t n) {
    const A* b = (const A*)other;
    for (int64_t i = 0; i < n; i++) ((A*)acc)[i].multiply(b[i].re, b[i].im);
  }
  static void finish(const void* acc, int64_t n, void* out, DType, int64_t stride, void*, int64_t,
                     const ReduceParams&) {
    for (int64_t i = 0; i < n; i++) {
      ((T*)out)[2 * i * stride] = T(((const A*)acc)[i].re);
      ((T*)out)[2 * i * stride + 1] = T(((const A*)acc)[i].im);
    }
  }
  static constexpr ReduceKernel kernel = {sizeof(A), false, init, rows, columns, combine, finish};
};

template <template <class> class Op>
const ReduceKernel* floating(DType dtype) {
  return kernel_of_floating(dtype, [](auto tag) { return &kernel<Op, typename decltype(tag)::type>; });
}
template <template <class> class Op>
const ReduceKernel* real(DType dtype) {
  return kernel_of_real(dtype, [](auto tag) { return &kernel<Op, typename decltype(tag)::type>; });
}

}  // namespace

const ReduceKernel* sum_kernel(ReduceOp op, DType dtype, const ReduceParams& params) {
  switch (op) {
    case ReduceOp::sum: return real<Sum>(dtype);
    case ReduceOp::mean: return floating<Mean>(dtype);
    case ReduceOp::nansum: return floating<NanSum>(dtype) ? floating<NanSum>(dtype) : real<Sum>(dtype);
    case ReduceOp::count_nonzero: return real<CountNonzero>(dtype);
    case ReduceOp::prod:
      if (dtype == DType::c64) return &ComplexProd<float>::kernel;
      if (dtype == DType::c128) return &ComplexProd<double>::kernel;
      return real<Prod>(dtype);
    case ReduceOp::norm:
      if (params.p == 0) return is_floating(dtype) ? floating<CountNonzero>(dtype) : nullptr;
      if (params.p == 1) return floating<Norm1>(dtype);
      if (params.p == 2) return floating<Norm2>(dtype);
      return floating<NormP>(dtype);
    default: return nullptr;
  }
}

}  // namespace RL_ISA
}  // namespace rl
