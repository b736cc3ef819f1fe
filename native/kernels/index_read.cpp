// Checking indices, and reading through them: see index.h. `index_read` is the loop, the rest is geometry.
#include <atomic>

#include "../tensor/parallel.h"
#include "index.h"
#include "index_geometry.h"
#include "index_walk.h"

namespace rl {
namespace {

IndexFault check_one(int ndim, const int64_t* sizes, const IndexedDim& indexed, bool wrap) {
  int64_t shape[MAX_DIMS];  // a broadcast dimension repeats the same indices: look at them once
  for (int d = 0; d < ndim; d++) shape[d] = indexed.strides[d] == 0 && sizes[d] ? 1 : sizes[d];
  Walk<1> walk(ndim, shape, {indexed.strides});
  const int64_t step = walk.step(0), size = indexed.size;
  const uint64_t lowest = wrap ? uint64_t(size) : 0;
  std::atomic<bool> bad{false};
  parallel_for(walk.numel, INDEX_GRAIN * 4, [&](int64_t begin, int64_t end) {
    uint64_t bits = 0;
    walk.run(begin, end, [&](const int64_t* offsets, int64_t n) {
      bits |= out_of_range_bits(indexed.data + offsets[0], step, n, lowest, uint64_t(size));
    });
    if (bits >> 63) bad = true;
  });
  IndexFault fault;
  if (!bad) return fault;
  walk.run(0, walk.numel, [&](const int64_t* offsets, int64_t n) {
    for (int64_t i = 0; i < n && !fault.found; i++) {
      int64_t v = indexed.data[offsets[0] + i * step];
      if (v >= size || v < (wrap ? -size : 0)) fault = {true, v, size, indexed.dim};
    }
  });
  return fault;
}

// out[i] = from[i] where the index of a single dimension changes along the run.
template <int N>
void gather_run(char* out, int64_t out_step, const char* from, int64_t from_step, const IndexedDim& indexed,
                const int64_t* index, int64_t index_step, int64_t n) {
  const int64_t stride = indexed.stride, size = indexed.size;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = i * from_step + wrap_index(index[i * index_step], size) * stride;
    move_element<N>(out + i * out_step * N, from + at * N);
  }
}

// out[r][i] = from[r][index[i]] of ROWS rows at once: an index is looked at once for all of them. UNIT:
// `stride` is 1. Four elements are stored at once: a quarter of the time less.
template <int N, int ROWS, bool UNIT>
void gather_rows(char* const* out, const char* const* from, int64_t stride, int64_t size,
                 const int64_t* index, int64_t n) {
  auto offset = [&](int64_t i) {
    int64_t at = wrap_index(index[i], size);
    return (UNIT ? at : at * stride) * N;
  };
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const int64_t at[4] = {offset(i), offset(i + 1), offset(i + 2), offset(i + 3)};
    for (int r = 0; r < ROWS; r++) {
      char four[4 * N];
      for (int k = 0; k < 4; k++) move_element<N>(four + k * N, from[r] + at[k]);
      __builtin_memcpy(out[r] + i * N, four, sizeof four);
    }
  }
  for (; i < n; i++) {
    const int64_t at = offset(i);
    for (int r = 0; r < ROWS; r++) move_element<N>(out[r] + i * N, from[r] + at);
  }
}

// Rows of elements from rows of `self`, by one index tensor that changes along them: gather and index_select
// of the last dimension.
bool has_gathered_rows(const IndexWalk& walk) {
  return walk.ndim <= 2 && walk.operands == 3 && walk.step(0) == 1 && walk.step(1) == 0 && walk.step(2) == 1;
}

// False if an index is out of range, what is read then being within self all the same. To look at the indices
// just before they are used spares a second reading of them from memory.
template <int N, bool UNIT>
bool read_gathered(char* out, const char* self, const IndexWalk& walk, const IndexedDim& indexed) {
  const bool flat = walk.ndim == 1;
  const int64_t rows = flat ? 1 : walk.sizes[0], length = walk.sizes[walk.ndim - 1];
  const int64_t out_stride = flat ? 0 : walk.strides[0][0] * N,
                self_stride = flat ? 0 : walk.strides[0][1] * N;
  const int64_t index_stride = flat ? 0 : walk.strides[0][2], stride = indexed.stride, size = indexed.size;
  std::atomic<bool> bad{false};
  auto part = [&](int64_t row, int64_t end, int64_t first, int64_t n) {
    constexpr int TOGETHER = 4;
    for (; index_stride == 0 && row + TOGETHER <= end; row += TOGETHER) {
      char* to[TOGETHER];
      const char* from[TOGETHER];
      for (int r = 0; r < TOGETHER; r++) {
        to[r] = out + (row + r) * out_stride + first * N;
        from[r] = self + (row + r) * self_stride;
      }
      gather_rows<N, TOGETHER, UNIT>(to, from, stride, size, indexed.data + first, n);
    }
    uint64_t bits = 0;
    for (; row < end; row++) {
      char* to = out + row * out_stride + first * N;
      const char* from = self + row * self_stride;
      const int64_t* index = indexed.data + row * index_stride + first;
      // A part of the indices is copied, so that what was looked at is what is used.
      constexpr int64_t SOME = 256;
      int64_t places[SOME];
      for (int64_t begin = 0; begin < n; begin += SOME) {
        const int64_t count = std::min(SOME, n - begin);
        const uint64_t of_part = copy_in_range(places, index + begin, count, uint64_t(size));
        char* part = to + begin * N;
        if (of_part >> 63) {  // at fault, or counted from the end
          bits |= of_part;
          gather_rows<N, 1, UNIT>(&part, &from, stride, size, places, count);
          continue;
        }
        const int64_t step = (UNIT ? 1 : stride) * N;
        int64_t i = 0;
        for (; i + 8 <= count; i += 8)
#pragma GCC unroll 8
          for (int64_t k = 0; k < 8; k++) move_element<N>(part + (i + k) * N, from + places[i + k] * step);
        for (; i < count; i++) move_element<N>(part + i * N, from + places[i] * step);
      }
    }
    if (bits >> 63) bad = true;
  };
  if (rows >= 8) {
    parallel_for(rows, INDEX_GRAIN / length + 1,
                 [&](int64_t begin, int64_t end) { part(begin, end, 0, length); });
  } else {
    parallel_for(length, INDEX_GRAIN / rows + 1,
                 [&](int64_t begin, int64_t end) { part(0, rows, begin, end - begin); });
  }
  return !bad;
}
template <int N>
bool read_gathered(char* out, const char* self, const IndexWalk& walk, const IndexedDim& indexed) {
  return indexed.stride == 1 ? read_gathered<N, true>(out, self, walk, indexed)
                             : read_gathered<N, false>(out, self, walk, indexed);
}

// Rows of a table (index_select along the first dimension, an embedding): one copy per index, the rows ahead
// being fetched meanwhile, as a table is larger than the cache more often than not.
void read_rows(char* out, int64_t out_stride, const char* table, const IndexedDim& indexed,
               const int64_t* index, int64_t index_step, int64_t row, int64_t element, int64_t n) {
  constexpr int64_t AHEAD = 8;
  const int64_t stride = indexed.stride * element, bytes = row * element;
  for (int64_t i = 0; i < n; i++) {
    if (i + AHEAD < n) {
      const char* next = table + wrap_index(index[(i + AHEAD) * index_step], indexed.size) * stride;
      for (int64_t at = 0; at < bytes && at < 512; at += 64) __builtin_prefetch(next + at);
    }
    const char* from = table + wrap_index(index[i * index_step], indexed.size) * stride;
    __builtin_memcpy(out + i * out_stride * element, from, size_t(bytes));
  }
}

template <int N>
void read_all(char* out, const char* self, const IndexWalk& walk, const IndexedDim* indexed) {
  const int64_t out_step = walk.step(0), self_step = walk.step(1);
  if (is_table(walk) && out_step == 1 && self_step == 1) {
    const int64_t row = walk.sizes[1], out_stride = walk.strides[0][0], index_step = walk.strides[0][2];
    parallel_for(walk.sizes[0], std::max<int64_t>(1, INDEX_GRAIN / std::max<int64_t>(1, row)),
                 [&](int64_t begin, int64_t end) {
                   read_rows(out + begin * out_stride * N, out_stride, self, indexed[0],
                             indexed[0].data + begin * index_step, index_step, row, N, end - begin);
                 });
    return;
  }
  if (has_gathered_rows(walk) && walk.numel > 0) {
    read_gathered<N>(out, self, walk, *indexed);
    return;
  }
  parallel_for(walk.numel, INDEX_GRAIN, [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](const int64_t* offsets, int64_t n) {
      char* to = out + offsets[0] * N;
      IndexRun run(walk, indexed, offsets);
      const char* from = self + run.start * N;
      if (run.moving == 0) {
        move_row<N>(to, out_step, from, self_step, n);
      } else if (run.moving == 1) {
        int k = run.first;
        gather_run<N>(to, out_step, from, self_step, indexed[k], indexed[k].data + offsets[2 + k],
                      walk.step(2 + k), n);
      } else {
        run.blocks(n, [&](int64_t begin_block, const int64_t* at, int64_t count) {
          char* block = to + begin_block * out_step * N;
          for (int64_t i = 0; i < count; i++) move_element<N>(block + i * out_step * N, from + at[i] * N);
        });
      }
    });
  });
}

}  // namespace

IndexFault check_indices(int ndim, const int64_t* sizes, const IndexedDim* indexed, int count, bool wrap) {
  for (int k = 0; k < count; k++) {
    if (IndexFault fault = check_one(ndim, sizes, indexed[k], wrap)) return fault;
  }
  return {};
}

void index_read(Span out, const void* self, const int64_t* self_strides, const IndexedDim* indexed,
                int count) {
  IndexWalk walk = walk_indexed(out.ndim, out.sizes, out.strides, self_strides, indexed, count);
  visit_size(out.dtype, [&](auto size) {
    read_all<size.value>(static_cast<char*>(out.data), static_cast<const char*>(self), walk, indexed);
  });
}

IndexFault index(Span out, Span self, const Span* const* indices, int position) {
  IndexGeometry geometry(self, indices, position);
  if (IndexFault fault = geometry.check(out.sizes, true)) return fault;
  index_read(out, self.data, geometry.self_strides, geometry.indexed, geometry.count);
  return {};
}

IndexFault gather(Span out, Span self, int dim, Span index) {
  DimGeometry geometry(self, dim, index);
  IndexWalk walk =
      walk_indexed(out.ndim, out.sizes, out.strides, geometry.self_strides, &geometry.indexed, 1);
  // Each row has its own indices, which are looked at as they are used: nobody has seen the result yet.
  if (has_gathered_rows(walk) && walk.ndim == 2 && walk.strides[0][2] != 0 && walk.numel > 0) {
    bool fine = false;
    visit_size(out.dtype, [&](auto size) {
      fine = read_gathered<size.value>(static_cast<char*>(out.data), static_cast<const char*>(self.data),
                                       walk, geometry.indexed);
    });
    return fine ? IndexFault{} : geometry.check(out.sizes, false);
  }
  if (IndexFault fault = geometry.check(out.sizes, false)) return fault;
  index_read(out, self.data, geometry.self_strides, &geometry.indexed, 1);
  return {};
}

IndexFault index_select(Span out, Span self, int dim, Span index) {
  VectorGeometry geometry(self, dim, index);
  if (IndexFault fault = geometry.check(false)) return fault;
  index_read(out, self.data, geometry.self_strides, &geometry.indexed, 1);
  return {};
}

IndexFault take(Span out, Span self, Span index) {
  FlatGeometry geometry(self, index);
  if (IndexFault fault = geometry.check(out.sizes)) return fault;
  if (geometry.contiguous) {
    index_read(out, self.data, geometry.zeros, &geometry.indexed, 1);
    return {};
  }
  Walk<2> walk(out.ndim, out.sizes, {out.strides, index.strides});
  visit_size(out.dtype, [&](auto size) {
    constexpr int N = size.value;
    walk.run(0, walk.numel, [&](const int64_t* offsets, int64_t n) {
      char* to = static_cast<char*>(out.data) + offsets[0] * N;
      const int64_t* from = static_cast<const int64_t*>(index.data) + offsets[1];
      for (int64_t i = 0; i < n; i++) {
        int64_t at = geometry.offset(from[i * walk.step(1)]);
        move_element<N>(to + i * walk.step(0) * N, static_cast<const char*>(self.data) + at * N);
      }
    });
  });
  return {};
}

}  // namespace rl
