// max, min, any, all and the infinity norms: reductions that choose, so that nothing is ever rounded.
#include <limits>

#include "reduce_loops.h"

namespace rl {
inline namespace RL_ISA {
namespace {

template <class C>
constexpr C lowest() {
  return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                              : std::numeric_limits<C>::min();
}
template <class C>
constexpr C highest() {
  return std::numeric_limits<C>::has_infinity ? std::numeric_limits<C>::infinity()
                                              : std::numeric_limits<C>::max();
}

// A NaN replaces everything, and nothing but another NaN replaces a NaN (x > NaN is false).
template <class T>
struct Max {
  using C = compute_t<T>;
  using A = C;
  template <class V>
  static V neutral() {
    return V{} + lowest<C>();
  }
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return merge(acc, x);
  }
  template <class V>
  static V merge(V a, V b) {
    V chosen = b > a ? b : a;  // one instruction
    return b != b ? b : chosen;
  }
  static void absorb(A& acc, C x) { acc = merge(acc, x); }
  static void combine(A& acc, const A& other) { acc = merge(acc, other); }
  static A start() { return lowest<C>(); }
  static bool settled(const A&) { return false; }
};

template <class T>
struct Min {
  using C = compute_t<T>;
  using A = C;
  template <class V>
  static V neutral() {
    return V{} + highest<C>();
  }
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return merge(acc, x);
  }
  template <class V>
  static V merge(V a, V b) {
    V chosen = b < a ? b : a;  // one instruction
    return b != b ? b : chosen;
  }
  static void absorb(A& acc, C x) { acc = merge(acc, x); }
  static void combine(A& acc, const A& other) { acc = merge(acc, other); }
  static A start() { return highest<C>(); }
  static bool settled(const A&) { return false; }
};

// +0 rather than -0 for the magnitude of a negative zero.
template <class V>
inline V magnitude(V x) {
  return x > V{} ? x : V{} - x;
}

template <class T>
struct MaxMagnitude : Max<T> {
  using C = compute_t<T>;
  template <class V>
  static V neutral() {
    return V{};
  }
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return Max<T>::merge(acc, magnitude(x));
  }
  static C start() { return 0; }
};

template <class T>
struct MinMagnitude : Min<T> {
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return Min<T>::merge(acc, magnitude(x));
  }
};

// Truth in the element's own register type: 1 or 0 there, a byte once absorbed.
template <class T>
struct Any {
  using C = compute_t<T>;
  using A = uint8_t;
  template <class V>
  static V neutral() {
    return V{};
  }
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return x != V{} ? V{} + 1 : acc;
  }
  template <class V>
  static V merge(V a, V b) {
    return a != V{} ? a : b;
  }
  static void absorb(A& acc, C x) { acc |= x != 0; }
  static void combine(A& acc, const A& other) { acc |= other; }
  static A start() { return 0; }
  static bool settled(const A& acc) { return acc; }
};

template <class T>
struct All {
  using C = compute_t<T>;
  using A = uint8_t;
  template <class V>
  static V neutral() {
    return V{} + 1;
  }
  template <class V>
  static V step(V acc, V x, const ReduceParams&) {
    return x == V{} ? V{} : acc;
  }
  template <class V>
  static V merge(V a, V b) {
    return a == V{} ? a : b;
  }
  static void absorb(A& acc, C x) { acc &= x != 0; }
  static void combine(A& acc, const A& other) { acc &= other; }
  static A start() { return 1; }
  static bool settled(const A& acc) { return !acc; }
};

// Extremes are written in the type they were read in (bool as the byte it is), truth as a byte.
template <class A, class R>
void finish(const void* acc, int64_t n, void* out, DType, int64_t stride, void*, int64_t,
            const ReduceParams&) {
  for (int64_t i = 0; i < n; i++) ((R*)out)[i * stride] = R(((const A*)acc)[i]);
}

template <template <class> class Op, class T, int short_row>
constexpr ReduceKernel kernel_of() {
  using Loops = ReduceLoops<Op<T>, T>;
  using A = typename Op<T>::A;
  return {int(sizeof(A)),
          false,
          Loops::init,
          Loops::rows,
          Loops::columns,
          Loops::combine,
          finish<A, std::conditional_t<std::is_same_v<A, compute_t<T>>, T, A>>,
          short_row};
}
template <template <class> class Op, class T, int short_row>
constexpr ReduceKernel kernel = kernel_of<Op, T, short_row>();

constexpr int USUAL = ReduceKernel{}.short_row, TRUTH = 60;

template <template <class> class Op>
const ReduceKernel* floating(DType dtype) {
  return kernel_of_floating(dtype, [](auto tag) { return &kernel<Op, typename decltype(tag)::type, USUAL>; });
}
template <template <class> class Op, int short_row = USUAL>
const ReduceKernel* real(DType dtype) {
  return kernel_of_real(dtype, [](auto tag) { return &kernel<Op, typename decltype(tag)::type, short_row>; });
}

}  // namespace

// With `magnitudes`, of the absolute values: the infinity norms.
const ReduceKernel* extreme_kernel(ReduceOp op, DType dtype, bool magnitudes) {
  switch (op) {
    case ReduceOp::max: return magnitudes ? floating<MaxMagnitude>(dtype) : real<Max>(dtype);
    case ReduceOp::min: return magnitudes ? floating<MinMagnitude>(dtype) : real<Min>(dtype);
    case ReduceOp::any: return real<Any, TRUTH>(dtype);
    case ReduceOp::all: return real<All, TRUTH>(dtype);
    default: return nullptr;
  }
}

}  // namespace RL_ISA
}  // namespace rl
