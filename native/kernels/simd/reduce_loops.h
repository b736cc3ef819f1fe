// The loops every reduction shares, over an `Op` that says what happens to one element.
//
// Op<T> has: C, the type in the registers; A, the accumulator; neutral<V>(), step(acc, x), merge(acc, acc) on
// vectors of C or on C alone; absorb(A&, C), which takes the registers' partial result over into an
// accumulator; combine(A&, A) and start(). Registers gather at most CHUNK elements (rows) or GROUP (columns),
// in chains of CHAIN (8 in columns), before they are absorbed: short chains of roundings, then a long-lived
// accumulator with more precision than the elements. That is what makes a float sum of millions of elements
// accurate without slowing the loop down.
#pragma once
#include "../reduce.h"
#include "any_vector.h"

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr int64_t CHUNK = 2048, GROUP = 64, CHAIN = 16, WIDE = 512;

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// n <= CHUNK contiguous elements to one C.
template <class Op, class T>
inline typename Op::C across(const T* x, int64_t n, const ReduceParams& params) {
  using C = typename Op::C;
  using V = Vec<C>;
  constexpr int L = LANES<C>;
  C result = Op::template neutral<C>();
  int64_t i = 0;
  if (n >= L) {
    V b0 = Op::template neutral<V>(), b1 = b0, b2 = b0, b3 = b0;
    while (i + 4 * L <= n) {
      V a0 = Op::template neutral<V>(), a1 = a0, a2 = a0, a3 = a0;
      for (int r = 0; r < CHAIN && i + 4 * L <= n; r++, i += 4 * L) {
        a0 = Op::step(a0, load<C>(x + i), params);
        a1 = Op::step(a1, load<C>(x + i + L), params);
        a2 = Op::step(a2, load<C>(x + i + 2 * L), params);
        a3 = Op::step(a3, load<C>(x + i + 3 * L), params);
      }
      b0 = Op::merge(b0, a0);
      b1 = Op::merge(b1, a1);
      b2 = Op::merge(b2, a2);
      b3 = Op::merge(b3, a3);
    }
    for (; i + L <= n; i += L) b0 = Op::step(b0, load<C>(x + i), params);
    V all = Op::merge(Op::merge(b0, b1), Op::merge(b2, b3));
    C lanes[L];
    store(lanes, all);
    for (int w = L / 2; w; w /= 2) {
      for (int l = 0; l < w; l++) lanes[l] = Op::merge(lanes[l], lanes[l + w]);
    }
    result = lanes[0];
  }
  for (; i < n; i++) result = Op::step(result, load_one<C>(x + i), params);
  return result;
}

// R rows of whole vectors go into one result per column. Rows are read along, several at once, as the
// processor fetches ahead: down a few columns at a time, sums over 2000 rows of 2000 took a third longer.
template <class Op, int R, class T>
inline void side_by_side(const T* x, int64_t stride, int64_t width, bool first, typename Op::C* totals,
                         const ReduceParams& params) {
  using C = typename Op::C;
  for (int64_t j = 0; j < width; j += LANES<C>) {
    Vec<C> a = Op::template neutral<Vec<C>>();
    for (int r = 0; r < R; r++) a = Op::step(a, load<C>(x + r * stride + j), params);
    store(totals + j, first ? a : Op::merge(load<C>(totals + j), a));
  }
}

template <class Op, class T>
struct ReduceLoops {
  using C = typename Op::C;
  using A = typename Op::A;

  static void init(void* acc, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((A*)acc)[i] = Op::start();
  }

  static void rows(const void* data, int64_t count, int64_t stride, int64_t n, int64_t, void* accumulators,
                   const ReduceParams& params) {
    for (int64_t i = 0; i < count; i++) {
      const T* x = (const T*)data + i * stride;
      A acc = ((A*)accumulators)[i];
      for (int64_t begin = 0; begin < n; begin += CHUNK) {
        Op::absorb(acc, across<Op>(x + begin, smaller(CHUNK, n - begin), params));
        if (Op::settled(acc)) break;
      }
      ((A*)accumulators)[i] = acc;
    }
  }

  static void columns(const void* data, int64_t n, int64_t stride, int64_t width, int64_t, void* accumulators,
                      const ReduceParams& params) {
    alignas(64) C totals[WIDE];
    for (int64_t first = 0; first < width; first += WIDE) {
      int64_t columns = smaller(WIDE, width - first), whole = columns - columns % LANES<C>;
      A* acc = (A*)accumulators + first;
      for (int64_t begin = 0; begin < n; begin += GROUP) {
        const T* x = (const T*)data + begin * stride + first;
        int64_t m = smaller(GROUP, n - begin), r = 0;
        auto add = [&]<int R>(std::integral_constant<int, R>) {
          side_by_side<Op, R>(x + r * stride, stride, whole, r == 0, totals, params);
          r += R;
        };
        while (r + 8 <= m) add(std::integral_constant<int, 8>{});
        if (r + 4 <= m) add(std::integral_constant<int, 4>{});
        while (r < m) add(std::integral_constant<int, 1>{});
        for (int64_t j = whole; j < columns; j++) totals[j] = Op::template neutral<C>();
        for (r = 0; whole < columns && r < m; r++) {
          for (int64_t j = whole; j < columns; j++)
            totals[j] = Op::step(totals[j], load_one<C>(x + j + r * stride), params);
        }
        for (int64_t j = 0; j < columns; j++) Op::absorb(acc[j], totals[j]);
      }
    }
  }

  static void combine(void* acc, const void* other, int64_t n) {
    for (int64_t i = 0; i < n; i++) Op::combine(((A*)acc)[i], ((const A*)other)[i]);
  }
};

// Calls f(TypeTag<R>{}) for a floating result type; those of complex sums arrive here as their parts.
template <class F>
inline void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f16: return f(TypeTag<Half>{});
    case DType::bf16: return f(TypeTag<BFloat16>{});
    case DType::f64:
    case DType::c128: return f(TypeTag<double>{});
    default: return f(TypeTag<float>{});
  }
}

template <class F>
inline void visit_integral(DType dtype, F&& f) {
  switch (dtype) {
    case DType::u8: return f(TypeTag<uint8_t>{});
    case DType::i8: return f(TypeTag<int8_t>{});
    case DType::i16: return f(TypeTag<int16_t>{});
    case DType::i32: return f(TypeTag<int32_t>{});
    case DType::b1: return f(TypeTag<bool>{});
    default: return f(TypeTag<int64_t>{});
  }
}

// pick(tag) for the C++ type of the elements; null if that is no real one.
template <class F>
const ReduceKernel* kernel_of_floating(DType dtype, F pick) {
  switch (dtype) {
    case DType::f16: return pick(TypeTag<Half>{});
    case DType::bf16: return pick(TypeTag<BFloat16>{});
    case DType::f32: return pick(TypeTag<float>{});
    case DType::f64: return pick(TypeTag<double>{});
    default: return nullptr;
  }
}
template <class F>
const ReduceKernel* kernel_of_real(DType dtype, F pick) {
  switch (dtype) {
    case DType::u8:
    case DType::b1: return pick(TypeTag<uint8_t>{});
    case DType::i8: return pick(TypeTag<int8_t>{});
    case DType::i16: return pick(TypeTag<int16_t>{});
    case DType::i32: return pick(TypeTag<int32_t>{});
    case DType::i64: return pick(TypeTag<int64_t>{});
    default: return kernel_of_floating(dtype, pick);
  }
}

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
