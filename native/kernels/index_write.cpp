// Writing through indices: see index.h. `index_write` is the loop; scatter_reduce and index_reduce run it
// several times (identity, reduction, counts).
#include <atomic>
#include <limits>
#include <vector>

#include "../tensor/parallel.h"
#include "index.h"
#include "index_geometry.h"
#include "index_walk.h"

namespace rl {
namespace {

// The arithmetic of IndexOp; integers wrap, NaN wins in max and min as in torch, bool adds by "or".
template <class T>
struct Add {
  static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) return a || b;
    else if constexpr (std::is_integral_v<T>) return T(uint64_t(a) + uint64_t(b));
    else return T(compute_t<T>(a) + compute_t<T>(b));
  }
};
template <class T>
struct Mul {
  static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) return a && b;
    else if constexpr (std::is_integral_v<T>) return T(uint64_t(a) * uint64_t(b));
    else return T(compute_t<T>(a) * compute_t<T>(b));
  }
};
// Chosen without a branch, which random elements would keep the processor guessing about.
template <class T>
T chosen(bool first, T a, T b) {
  const T both[] = {b, a};
  return both[first];
}
template <class T>
struct Max {
  static T apply(T a, T b) { return chosen((a != a) | (compute_t<T>(a) > compute_t<T>(b)), a, b); }
};
template <class T>
struct Min {
  static T apply(T a, T b) { return chosen((a != a) | (compute_t<T>(a) < compute_t<T>(b)), a, b); }
};

// Calls f(walk, self, src, low, high) so that threads never meet at an element. They share out a dimension
// that no index depends on; or, where whole rows are written, the rows of self: each thread then looks at all
// indices and does those in low...high. Without either (or with little work) there is one part.
template <class F>
void split_writes(const IndexWalk& walk, char* self, const char* src, int element, const IndexedDim* indexed,
                  const F& f) {
  constexpr int64_t ALL = INT64_MAX;
  if (walk.numel <= INDEX_GRAIN) return f(walk, self, src, int64_t(0), ALL);
  if (is_table(walk) && indexed->stride != 0) {
    return parallel_for(indexed->size, (indexed->size + 1) / 2,
                        [&](int64_t low, int64_t high) { f(walk, self, src, low, high); });
  }
  int split = -1;
  for (int d = 0; d < walk.ndim; d++) {
    bool is_free = walk.strides[d][1] != 0;
    for (int k = 2; k < walk.operands; k++) is_free = is_free && walk.strides[d][k] == 0;
    if (is_free && (split < 0 || walk.sizes[d] > walk.sizes[split])) split = d;
  }
  if (split < 0) return f(walk, self, src, int64_t(0), ALL);
  int64_t others = walk.numel / walk.sizes[split];
  parallel_for(walk.sizes[split], std::max<int64_t>(1, INDEX_GRAIN / others),
               [&](int64_t begin, int64_t end) {
                 IndexWalk part = walk;
                 part.sizes[split] = end - begin;
                 part.numel = others * (end - begin);
                 f(part, self + begin * walk.strides[split][1] * element,
                   src + begin * walk.strides[split][0] * element, int64_t(0), ALL);
               });
}

// Rows of elements into rows of self: gather's backward, scatter of the last dimension.
bool writes_elements(const IndexWalk& walk) {
  return walk.ndim <= 2 && walk.operands == 3 && walk.step(1) == 0 && walk.step(2) == 1 && !is_table(walk);
}

// Calls row(to, self_step, from, src_step, n) or one(to, from) until all positions of the walk have been
// written, in order. N is the size of an element; a table's rows outside low...high are another thread's.
// `bad`, where writes_elements: the indices have not been checked; it is set if one is out of range.
template <int N, class Row, class One>
void write_all(const IndexWalk& walk, char* self, const char* src, const IndexedDim* indexed, int64_t low,
               int64_t high, std::atomic<bool>* bad, Row row, One one) {
  const int64_t src_step = walk.step(0), self_step = walk.step(1);
  if (is_table(walk)) {
    const int64_t step = walk.strides[0][2], src_stride = walk.strides[0][0] * N, n = walk.sizes[1];
    for (int64_t i = 0; i < walk.sizes[0]; i++) {
      int64_t at = wrap_index(indexed->data[i * step], indexed->size);
      if (at >= low && at < high) {
        row(self + at * indexed->stride * N, self_step, src + i * src_stride, src_step, n);
      }
    }
    return;
  }
  if (writes_elements(walk)) {
    const bool flat = walk.ndim == 1;
    const int64_t rows = flat ? 1 : walk.sizes[0], n = walk.sizes[walk.ndim - 1];
    const int64_t size = indexed->size, stride = indexed->stride * N;
    for (int64_t r = 0; r < rows; r++) {
      char* to = self + (flat ? 0 : r * walk.strides[0][1] * N);
      const char* from = src + (flat ? 0 : r * walk.strides[0][0] * N);
      const int64_t* index = indexed->data + (flat ? 0 : r * walk.strides[0][2]);
      auto write = [&](const int64_t* places, int64_t begin, int64_t count, auto wrapped) {
        const char* source = from + begin * src_step * N;
        if (stride == N && src_step == 1) {
          for (int64_t i = 0; i < count; i++) one(to + wrapped(places[i]) * N, source + i * N);
        } else {
          for (int64_t i = 0; i < count; i++)
            one(to + wrapped(places[i]) * stride, source + i * src_step * N);
        }
      };
      constexpr int64_t SOME = 256;
      int64_t places[SOME];
      for (int64_t begin = 0; begin < n; begin += SOME) {
        const int64_t count = std::min(SOME, n - begin);
        const bool in_range = copy_in_range(places, index + begin, count, uint64_t(size)) >> 63 == 0;
        if (!in_range && bad) return void(*bad = true);
        if (in_range) write(places, begin, count, [](int64_t i) { return i; });
        else write(places, begin, count, [size](int64_t i) { return wrap_index(i, size); });
      }
    }
    return;
  }
  walk.run(0, walk.numel, [&](const int64_t* offsets, int64_t n) {
    const char* from = src + offsets[0] * N;
    IndexRun run(walk, indexed, offsets);
    char* to = self + run.start * N;
    if (run.moving == 0) {
      row(to, self_step, from, src_step, n);
    } else if (run.moving == 1) {
      const IndexedDim& dim = indexed[run.first];
      const int64_t step = walk.step(2 + run.first), *index = dim.data + offsets[2 + run.first];
      for (int64_t i = 0; i < n; i++) {
        int64_t at = i * self_step + wrap_index(index[i * step], dim.size) * dim.stride;
        one(to + at * N, from + i * src_step * N);
      }
    } else {
      run.blocks(n, [&](int64_t begin, const int64_t* at, int64_t count) {
        for (int64_t i = 0; i < count; i++) one(to + at[i] * N, from + (begin + i) * src_step * N);
      });
    }
  });
}

// How one operation combines elements of one type: a row of them, or one.
struct Combiner {
  void (*row)(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n);
  void (*one)(char* to, const char* from);
};

template <template <class> class Op, class T>
inline void combine_one(char* to, const char* from) {
  T* at = reinterpret_cast<T*>(to);
  *at = Op<T>::apply(*at, *reinterpret_cast<const T*>(from));
}

template <template <class> class Op, class T>
inline void combine_row(char* to_bytes, int64_t to_step, const char* from_bytes, int64_t from_step,
                        int64_t n) {
  T* to = reinterpret_cast<T*>(to_bytes);
  const T* from = reinterpret_cast<const T*>(from_bytes);
  if (to_step == 1 && from_step == 1) {
    for (int64_t i = 0; i < n; i++) to[i] = Op<T>::apply(to[i], from[i]);
  } else {
    for (int64_t i = 0; i < n; i++) to[i * to_step] = Op<T>::apply(to[i * to_step], from[i * from_step]);
  }
}

template <template <class> class Op, class T>
constexpr Combiner combiner = {combine_row<Op, T>, combine_one<Op, T>};

// Complex numbers have no order; the caller has refused them.
template <class T>
Combiner combiner_of(IndexOp op) {
  if (op == IndexOp::add) return combiner<Add, T>;
  if (op == IndexOp::mul) return combiner<Mul, T>;
  if constexpr (is_complex_v<T>) return {};
  else return op == IndexOp::max ? combiner<Max, T> : combiner<Min, T>;
}

// Sums of the usual types have loops of their own; what is rarer is called through pointers, once per element
// at worst, or each operation and type would have four loops of its own.
void combine(IndexOp op, DType dtype, const IndexWalk& walk, char* self, const char* src,
             const IndexedDim* indexed, int64_t low, int64_t high, std::atomic<bool>* bad) {
  auto directly = [&]<template <class> class Op, class T>() {
    write_all<sizeof(T)>(
        walk, self, src, indexed, low, high, bad, [](auto... row) { combine_row<Op, T>(row...); },
        [](char* to, const char* from) { combine_one<Op, T>(to, from); });
  };
  if (op == IndexOp::add) {
    if (dtype == DType::f32) return directly.template operator()<Add, float>();
    if (dtype == DType::f64) return directly.template operator()<Add, double>();
    if (dtype == DType::i64) return directly.template operator()<Add, int64_t>();
  }
  if (op == IndexOp::max && dtype == DType::f32) return directly.template operator()<Max, float>();
  Combiner by{};
  visit(dtype, [&](auto tag) { by = combiner_of<typename decltype(tag)::type>(op); });
  visit_size(dtype, [&](auto size) {
    write_all<size.value>(walk, self, src, indexed, low, high, bad, by.row, by.one);
  });
}

// The value that a reduction starts from, written over the elements that will be hit.
template <class T>
T identity(Reduction reduction) {
  if constexpr (is_complex_v<T>) {
    return reduction == Reduction::prod ? T(1) : T(0);
  } else {
    using L = std::numeric_limits<compute_t<T>>;
    switch (reduction) {
      case Reduction::prod: return T(1);
      case Reduction::amax: return L::has_infinity ? T(-L::infinity()) : T(L::lowest());
      case Reduction::amin: return L::has_infinity ? T(L::infinity()) : T(L::max());
      default: return T(0);
    }
  }
}

// self = self / counts where counts > 1; integers round down.
template <class T>
void divide_by_counts(Span self, const int64_t* counts, const int64_t* count_strides) {
  Walk<2> walk(self.ndim, self.sizes, {self.strides, count_strides});
  walk.run(0, walk.numel, [&](const int64_t* offsets, int64_t n) {
    T* to = static_cast<T*>(self.data) + offsets[0];
    const int64_t* by = counts + offsets[1];
    for (int64_t i = 0; i < n; i++) {
      int64_t count = by[i * walk.step(1)];
      if (count < 2) continue;
      T& x = to[i * walk.step(0)];
      if constexpr (std::is_integral_v<T>) {
        int64_t v = int64_t(x), q = v / count;
        x = T(v % count && (v < 0) ? q - 1 : q);
      } else if constexpr (is_complex_v<T>) {
        x = x / typename T::value_type(count);
      } else {
        x = T(compute_t<T>(x) / compute_t<T>(count));
      }
    }
  });
}

// `sizes` and `src_strides` describe the written positions; `indexed` the one dimension of self they go
// through.
void reduce_into(Span self, const int64_t* self_strides, Span src, const IndexedDim& indexed,
                 Reduction reduction, bool start_over) {
  const int64_t zeros[MAX_DIMS] = {};
  if (start_over) {
    visit(self.dtype, [&](auto tag) {
      auto value = identity<typename decltype(tag)::type>(reduction);
      index_write(self.data, self_strides, Span{&value, self.dtype, src.ndim, src.sizes, zeros}, &indexed, 1,
                  IndexOp::assign);
    });
  }
  IndexOp op = reduction == Reduction::prod   ? IndexOp::mul
               : reduction == Reduction::amax ? IndexOp::max
               : reduction == Reduction::amin ? IndexOp::min
                                              : IndexOp::add;
  index_write(self.data, self_strides, src, &indexed, 1, op);
  if (reduction != Reduction::mean) return;
  std::vector<int64_t> counts(size_t(self.numel()), start_over ? 0 : 1);
  int64_t strides[MAX_DIMS], walked[MAX_DIMS], step = 1;
  for (int d = self.ndim - 1; d >= 0; d--) {
    strides[d] = step;
    step *= self.sizes[d];
  }
  IndexedDim through = indexed;
  through.stride = self.ndim ? strides[indexed.dim] : 0;
  for (int d = 0; d < src.ndim; d++) walked[d] = d == indexed.dim || d >= self.ndim ? 0 : strides[d];
  int64_t one = 1;
  index_write(counts.data(), walked, Span{&one, DType::i64, src.ndim, src.sizes, zeros}, &through, 1,
              IndexOp::add);
  visit(self.dtype,
        [&](auto tag) { divide_by_counts<typename decltype(tag)::type>(self, counts.data(), strides); });
}

}  // namespace

void index_write(void* self, const int64_t* self_strides, Span src, const IndexedDim* indexed, int count,
                 IndexOp op, std::atomic<bool>* bad) {
  IndexWalk walk = walk_indexed(src.ndim, src.sizes, src.strides, self_strides, indexed, count);
  char* to = static_cast<char*>(self);
  const char* from = static_cast<const char*>(src.data);
  auto part = [&](const IndexWalk& part, char* at, const char* source, int64_t low, int64_t high) {
    if (op == IndexOp::assign) {
      visit_size(src.dtype, [&](auto size) {
        constexpr int N = size.value;
        write_all<N>(  // lambdas: pointers to these functions would be called once per element
            part, at, source, indexed, low, high, bad, [](auto... row) { move_row<N>(row...); },
            [](char* to, const char* from) { move_element<N>(to, from); });
      });
    } else {
      combine(op, src.dtype, part, at, source, indexed, low, high, bad);
    }
  };
  split_writes(walk, to, from, dtype_size(src.dtype), indexed, part);
}

IndexFault index_put(Span self, const Span* const* indices, int position, Span values, bool accumulate) {
  IndexGeometry geometry(self, indices, position);
  if (IndexFault fault = geometry.check(values.sizes, true)) return fault;
  index_write(self.data, geometry.self_strides, values, geometry.indexed, geometry.count,
              accumulate ? IndexOp::add : IndexOp::assign);
  return {};
}

IndexFault scatter(Span self, int dim, Span index, Span src, IndexOp op, bool fresh) {
  DimGeometry geometry(self, dim, index);
  src.sizes = index.sizes;
  // An element that was written in vain does no harm where nobody has seen self: indices are read once, not
  // twice.
  std::atomic<bool> bad{false};
  bool at_once = fresh && writes_elements(walk_indexed(src.ndim, src.sizes, src.strides,
                                                       geometry.self_strides, &geometry.indexed, 1));
  if (!at_once)
    if (IndexFault fault = geometry.check(index.sizes, false)) return fault;
  index_write(self.data, geometry.self_strides, src, &geometry.indexed, 1, op, at_once ? &bad : nullptr);
  return bad ? geometry.check(index.sizes, false) : IndexFault{};
}

IndexFault index_update(Span self, int dim, Span index, Span src, IndexOp op, bool wrap) {
  VectorGeometry geometry(self, dim, index);
  if (IndexFault fault = geometry.check(wrap)) return fault;
  index_write(self.data, geometry.self_strides, src, &geometry.indexed, 1, op);
  return {};
}

IndexFault scatter_reduce(Span self, int dim, Span index, Span src, Reduction reduction, bool start_over) {
  DimGeometry geometry(self, dim, index);
  if (IndexFault fault = geometry.check(index.sizes, false)) return fault;
  src.sizes = index.sizes;
  reduce_into(self, geometry.self_strides, src, geometry.indexed, reduction, start_over);
  return {};
}

IndexFault index_reduce(Span self, int dim, Span index, Span src, Reduction reduction, bool start_over) {
  VectorGeometry geometry(self, dim, index);
  if (IndexFault fault = geometry.check(false)) return fault;
  reduce_into(self, geometry.self_strides, src, geometry.indexed, reduction, start_over);
  return {};
}

IndexFault put(Span self, Span index, Span src, bool accumulate) {
  FlatGeometry geometry(self, index);
  if (IndexFault fault = geometry.check(index.sizes)) return fault;
  IndexOp op = accumulate ? IndexOp::add : IndexOp::assign;
  if (geometry.contiguous) {
    index_write(self.data, geometry.zeros, src, &geometry.indexed, 1, op);
    return {};
  }
  // The indices, unravelled into offsets, address self's memory as one dimension.
  std::vector<int64_t> offsets(size_t(index.numel()));
  Walk<1> walk(index.ndim, index.sizes, {index.strides});
  int64_t strides[MAX_DIMS], step = 1, filled = 0;
  walk.run(0, walk.numel, [&](const int64_t* at, int64_t n) {
    const int64_t* from = static_cast<const int64_t*>(index.data) + at[0];
    for (int64_t i = 0; i < n; i++) offsets[size_t(filled++)] = geometry.offset(from[i * walk.step(0)]);
  });
  for (int d = index.ndim - 1; d >= 0; d--) {
    strides[d] = step;
    step *= index.sizes[d];
  }
  int64_t reach = 1;
  for (int d = 0; d < self.ndim; d++) reach += (self.sizes[d] - 1) * self.strides[d];
  IndexedDim memory = {offsets.data(), strides, reach, 1, 0};
  index_write(self.data, geometry.zeros, src, &memory, 1, op);
  return {};
}

}  // namespace rl
