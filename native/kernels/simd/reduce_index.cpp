// argmax and argmin, with or without the values: where along one dimension the extreme element stands.
//
// Along a row the position is looked for only in chunks whose extreme beats what was found before, so that
// nearly all the work is the plain maximum. Across columns positions travel in vectors beside the values.
#include "reduce_loops.h"

namespace rl {
inline namespace RL_ISA {
namespace {

// Small integers are compared as 32-bit ones: a position must fit beside the value.
template <class T>
struct IndexType {
  using type = compute_t<T>;
};
template <>
struct IndexType<uint8_t> {
  using type = int32_t;
};
template <>
struct IndexType<int8_t> {
  using type = int32_t;
};
template <>
struct IndexType<int16_t> {
  using type = int32_t;
};

template <class C>
struct Best {
  C value;
  int64_t index;  // -1: nothing seen yet
};

template <class T, bool largest>
struct IndexLoops {
  using C = typename IndexType<T>::type;
  using A = Best<C>;
  using V = Vec<C>;
  using I = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
  static constexpr int L = LANES<C>;

  // Whether x replaces `best`; equal ones and second NaNs do not. Works on vectors and numbers.
  template <class X>
  static auto beats(X x, X best) {
    if constexpr (largest) return (x > best) | ((x != x) & (best == best));
    else return (x < best) | ((x != x) & (best == best));
  }

  static void take(A& acc, C value, int64_t index) {
    if (acc.index < 0 || beats(value, acc.value)) acc = {value, index};
  }

  static void init(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((A*)acc)[i] = {C(0), -1};
  }

  // Of values alone: here the last NaN may win, for they are all the same.
  template <class X>
  static X better(X a, X b) {
    X chosen = (largest ? b > a : b < a) ? b : a;
    return b != b ? b : chosen;
  }

  static C extreme(const T* x, int64_t n) {
    C best = load_one<C>(x);
    int64_t i = 1;
    if (n >= L) {
      V a = load<C>(x), b = a, c = a, d = a;
      for (i = L; i + 4 * L <= n; i += 4 * L) {
        a = better(a, load<C>(x + i));
        b = better(b, load<C>(x + i + L));
        c = better(c, load<C>(x + i + 2 * L));
        d = better(d, load<C>(x + i + 3 * L));
      }
      for (; i + L <= n; i += L) a = better(a, load<C>(x + i));
      C lanes[L];
      store(lanes, better(better(a, b), better(c, d)));
      best = lanes[0];
      for (int l = 1; l < L; l++) best = better(best, lanes[l]);
    }
    for (; i < n; i++) best = better(best, load_one<C>(x + i));
    return best;
  }

  static int64_t find(const T* x, C value) {
    for (int64_t i = 0;; i++) {
      C y = load_one<C>(x + i);
      if (value != value ? y != y : y == value) return i;
    }
  }

  static void rows(const void* data, int64_t count, int64_t stride, int64_t n, int64_t base, void* acc,
                   const ReduceParams&) {
    constexpr int64_t PIECE = 1024;
    for (int64_t i = 0; i < count; i++) {
      const T* x = (const T*)data + i * stride;
      A best = ((A*)acc)[i];
      for (int64_t begin = 0; begin < n; begin += PIECE) {
        C value = extreme(x + begin, smaller(PIECE, n - begin));
        if (best.index < 0 || beats(value, best.value)) best = {value, base + begin + find(x + begin, value)};
      }
      ((A*)acc)[i] = best;
    }
  }

  template <int K>
  static void strip(const T* x, int64_t n, int64_t stride, int64_t base, A* acc) {
    V best[K];
    Vec<I> index[K] = {};
    for (int k = 0; k < K; k++) best[k] = load<C>(x + k * L);
    for (int64_t r = 1; r < n; r++) {
      x += stride;
      for (int k = 0; k < K; k++) {
        V value = load<C>(x + k * L);
        auto better = beats(value, best[k]);
        best[k] = better ? value : best[k];
        index[k] = better ? Vec<I>{} + I(r) : index[k];
      }
    }
    for (int k = 0; k < K; k++) {
      for (int l = 0; l < L; l++) take(acc[k * L + l], best[k][l], base + index[k][l]);
    }
  }

  static void columns(const void* data, int64_t n, int64_t stride, int64_t width, int64_t base,
                      void* accumulators, const ReduceParams&) {
    constexpr int64_t ROWS = 64;
    A* acc = (A*)accumulators;
    for (int64_t begin = 0; begin < n; begin += ROWS) {
      const T* x = (const T*)data + begin * stride;
      int64_t m = smaller(ROWS, n - begin), j = 0;
      for (; j + 2 * L <= width; j += 2 * L) strip<2>(x + j, m, stride, base + begin, acc + j);
      for (; j < width; j++) {
        for (int64_t r = 0; r < m; r++) take(acc[j], load_one<C>(x + j + r * stride), base + begin + r);
      }
    }
  }

  static void combine(void* acc, const void* other, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
      const A& b = ((const A*)other)[i];
      if (b.index >= 0) take(((A*)acc)[i], b.value, b.index);
    }
  }

  static void finish(const void* acc, int64_t n, void* out, DType, int64_t stride, void* values,
                     int64_t values_stride, const ReduceParams&) {
    for (int64_t i = 0; i < n; i++) {
      const A& a = ((const A*)acc)[i];
      ((int64_t*)out)[i * stride] = a.index;
      if (values) ((T*)values)[i * values_stride] = T(a.value);
    }
  }

  static constexpr ReduceKernel kernel = {sizeof(A), true, init, rows, columns, combine, finish, 32};
};

template <bool largest>
const ReduceKernel* find_kernel(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::b1: return &IndexLoops<uint8_t, largest>::kernel;
    case DType::i8: return &IndexLoops<int8_t, largest>::kernel;
    case DType::i16: return &IndexLoops<int16_t, largest>::kernel;
    case DType::i32: return &IndexLoops<int32_t, largest>::kernel;
    case DType::i64: return &IndexLoops<int64_t, largest>::kernel;
    case DType::f16: return &IndexLoops<Half, largest>::kernel;
    case DType::bf16: return &IndexLoops<BFloat16, largest>::kernel;
    case DType::f32: return &IndexLoops<float, largest>::kernel;
    case DType::f64: return &IndexLoops<double, largest>::kernel;
    default: return nullptr;
  }
}

}  // namespace

const ReduceKernel* index_kernel(ReduceOp op, DType dtype) {
  return op == ReduceOp::argmax ? find_kernel<true>(dtype) : find_kernel<false>(dtype);
}

}  // namespace RL_ISA
}  // namespace rl
