// From the arguments of gather, index_select, x[i, :, j] and take to the one geometry that index_read and
// index_write run over: strides of self and of every index tensor, per dimension of the result.
#pragma once
#include "index.h"
#include "index_walk.h"

namespace rl {

// Of an index that was checked. It may have been overwritten since (Note [changes under kernels],
// tensor/unlocked.h); what is read or written then lies within the tensor all the same.
inline int64_t wrap_index(int64_t i, int64_t size) {
  if (uint64_t(i) < uint64_t(size)) [[likely]]
    return i;
  uint64_t wrapped = uint64_t(i) + uint64_t(size);
  return wrapped < uint64_t(size) ? int64_t(wrapped) : 0;
}

// All bits of the result are 0 where they matter (the sign) if every index is in range: v and size-1-v are
// both non-negative. Unsigned, because indices may be anything.
inline uint64_t out_of_range_bits(const int64_t* data, int64_t step, int64_t n, uint64_t lowest,
                                  uint64_t size) {
  uint64_t bits = 0;
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) bits |= (uint64_t(data[i]) + lowest) | (size - 1 - uint64_t(data[i]));
  } else {
    for (int64_t i = 0; i < n; i++) {
      uint64_t v = uint64_t(data[i * step]);
      bits |= (v + lowest) | (size - 1 - v);
    }
  }
  return bits;
}

// The same of indices that are copied on the way: what was looked at is what is used then.
inline uint64_t copy_in_range(int64_t* to, const int64_t* from, int64_t n, uint64_t size) {
  typedef uint64_t Two __attribute__((vector_size(16)));
  Two bits[4] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
      Two v;
      __builtin_memcpy(&v, from + i + 2 * k, sizeof v);
      __builtin_memcpy(to + i + 2 * k, &v, sizeof v);
      bits[k] |= v | (size - 1 - v);
    }
  Two all = (bits[0] | bits[1]) | (bits[2] | bits[3]);
  uint64_t result = all[0] | all[1];
  for (; i < n; i++) {
    to[i] = from[i];
    result |= uint64_t(to[i]) | (size - 1 - uint64_t(to[i]));
  }
  return result;
}

// Operand 0 is the result (or source), 1 is self, 2... are the index tensors.
using IndexWalk = Walk<2 + MAX_DIMS>;

// Whole rows of a table: one index tensor, the same index for all of a run.
inline bool is_table(const IndexWalk& walk) {
  return walk.ndim == 2 && walk.operands == 3 && walk.step(2) == 0 && walk.strides[0][1] == 0;
}

inline IndexWalk walk_indexed(int ndim, const int64_t* sizes, const int64_t* strides,
                              const int64_t* self_strides, const IndexedDim* indexed, int count) {
  const int64_t* operands[2 + MAX_DIMS] = {strides, self_strides};
  for (int k = 0; k < count; k++) operands[2 + k] = indexed[k].strides;
  IndexWalk walk(ndim, sizes, operands, 2 + count);
  // Short rows (x[i] of shape (n, 3)): better three passes along the index than n runs of three. A dimension
  // no index depends on may change places with the others without changing the order of writes to any
  // element.
  constexpr int64_t SHORT = 8;
  int last = walk.ndim - 1;
  bool is_free = true;
  for (int k = 0; k < count; k++) is_free = is_free && walk.strides[last][2 + k] == 0;
  if (is_free && last > 0 && !is_table(walk) && walk.sizes[last] < SHORT && walk.sizes[last - 1] > SHORT)
    walk.rotate();
  return walk;
}

// What the indices say about one run of the walk: `start` is the offset into self from those that stay the
// same along it; `moving` counts the others.
struct IndexRun {
  const IndexWalk& walk;
  const IndexedDim* indexed;
  const int64_t* offsets;
  int64_t start;
  int moving = 0, first = 0;

  IndexRun(const IndexWalk& w, const IndexedDim* dims, const int64_t* at)
      : walk(w), indexed(dims), offsets(at), start(at[1]) {
    for (int k = w.operands - 3; k >= 0; k--) {
      if (w.step(2 + k) == 0) {
        start += wrap_index(dims[k].data[at[2 + k]], dims[k].size) * dims[k].stride;
      } else {
        moving++;
        first = k;
      }
    }
  }

  // Calls f(begin, at, count) with the offsets into self (from `start`) of positions begin...begin+count of
  // the run.
  template <class F>
  void blocks(int64_t n, F&& f) const {
    constexpr int64_t BLOCK = 256;
    int64_t at[BLOCK];
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
      int64_t count = std::min(BLOCK, n - begin);
      for (int64_t i = 0; i < count; i++) at[i] = (begin + i) * walk.step(1);
      for (int k = 0; k < walk.operands - 2; k++) {
        int64_t step = walk.step(2 + k);
        if (step == 0) continue;
        const int64_t* index = indexed[k].data + offsets[2 + k] + begin * step;
        const int64_t size = indexed[k].size, stride = indexed[k].stride;
        for (int64_t i = 0; i < count; i++) at[i] += wrap_index(index[i * step], size) * stride;
      }
      f(begin, static_cast<const int64_t*>(at), count);
    }
  }
};

// gather and scatter: an index of self's rank. A tensor without dimensions counts as one of size 1.
struct DimGeometry {
  int64_t self_strides[MAX_DIMS];
  IndexedDim indexed;
  int ndim;

  DimGeometry(Span self, int dim, Span index) : ndim(index.ndim) {
    for (int d = 0; d < ndim; d++) self_strides[d] = d == dim || d >= self.ndim ? 0 : self.strides[d];
    bool scalar = self.ndim == 0;
    indexed = {static_cast<const int64_t*>(index.data), index.strides, scalar ? 1 : self.sizes[dim],
               scalar ? 0 : self.strides[dim], dim};
  }
  IndexFault check(const int64_t* sizes, bool wrap) const {
    return check_indices(ndim, sizes, &indexed, 1, wrap);
  }
};

// index_select, index_add...: a vector of indices along one dimension.
struct VectorGeometry {
  int64_t self_strides[MAX_DIMS], index_strides[MAX_DIMS];
  int64_t count, step;
  IndexedDim indexed;

  VectorGeometry(Span self, int dim, Span index)
      : count(index.numel()), step(index.ndim ? index.strides[0] : 0) {
    for (int d = 0; d < self.ndim; d++) {
      self_strides[d] = d == dim ? 0 : self.strides[d];
      index_strides[d] = d == dim ? step : 0;
    }
    bool scalar = self.ndim == 0;
    indexed = {static_cast<const int64_t*>(index.data), index_strides, scalar ? 1 : self.sizes[dim],
               scalar ? 0 : self.strides[dim], dim};
  }
  VectorGeometry(const VectorGeometry&) = delete;  // `indexed` points into it

  // The vector itself is looked at, also where the result is empty for another dimension's sake.
  IndexFault check(bool wrap) const {
    IndexedDim vector = indexed;
    vector.strides = &step;
    return check_indices(1, &count, &vector, 1, wrap);
  }
};

// Advanced indexing: several index tensors of one (broadcast) shape.
struct IndexGeometry {
  int64_t self_strides[MAX_DIMS], index_strides[MAX_DIMS][MAX_DIMS];
  IndexedDim indexed[MAX_DIMS];
  int count = 0, ndim, position, index_ndim = 0;
  const int64_t* index_sizes = nullptr;

  IndexGeometry(Span self, const Span* const* indices, int position_) : position(position_) {
    for (int d = 0; d < self.ndim; d++) {
      if (!indices[d]) continue;
      index_ndim = indices[d]->ndim;
      index_sizes = indices[d]->sizes;
    }
    int at = 0;  // dimension of the result; those of the index are skipped over
    for (int d = 0; d < self.ndim; d++) {
      if (indices[d]) continue;
      if (at == position) at += index_ndim;
      self_strides[at++] = self.strides[d];
    }
    if (at == position) at += index_ndim;
    ndim = at;
    std::fill(self_strides + position, self_strides + position + index_ndim, int64_t(0));
    for (int d = 0; d < self.ndim; d++) {
      if (!indices[d]) continue;
      int64_t* strides = index_strides[count];
      std::fill(strides, strides + ndim, int64_t(0));
      std::copy(indices[d]->strides, indices[d]->strides + index_ndim, strides + position);
      indexed[count++] = {static_cast<const int64_t*>(indices[d]->data), strides, self.sizes[d],
                          self.strides[d], d};
    }
  }
  IndexGeometry(const IndexGeometry&) = delete;

  IndexFault check(const int64_t* sizes, bool wrap) const {
    return check_indices(ndim, sizes, indexed, count, wrap);
  }
};

// take and put: an index counts elements of self in row-major order.
struct FlatGeometry {
  Span self, index;
  bool contiguous = true;
  int64_t zeros[MAX_DIMS] = {};
  IndexedDim indexed;

  FlatGeometry(Span self_, Span index_) : self(self_), index(index_) {
    int64_t expected = 1;
    for (int d = self.ndim - 1; d >= 0; d--) {
      if (self.sizes[d] != 1 && self.strides[d] != expected) contiguous = false;
      expected *= self.sizes[d];
    }
    indexed = {static_cast<const int64_t*>(index.data), index.strides, expected, 1, 0};
  }
  FlatGeometry(const FlatGeometry&) = delete;

  IndexFault check(const int64_t* sizes) const { return check_indices(index.ndim, sizes, &indexed, 1, true); }

  int64_t offset(int64_t flat) const {
    flat = wrap_index(flat, indexed.size);
    int64_t at = 0;
    for (int d = self.ndim - 1; d >= 0; d--) {
      at += flat % self.sizes[d] * self.strides[d];
      flat /= self.sizes[d];
    }
    return at;
  }
};

}  // namespace rl
