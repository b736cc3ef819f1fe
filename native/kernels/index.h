// Reading and writing tensors through index tensors, and through masks.
//
// Everything with index tensors is one of two loops: `index_read` (out[p] = self[where p's indices point])
// and `index_write` (self[there] = or op= src[p]), over positions p of a result geometry. What differs
// between gather, index_select, embedding rows, x[i, :, j] and their writing counterparts is only the
// geometry, which the functions below set up. Read `IndexedDim` first.
//
// Indices are int64. They are checked before anything is written; the offender is returned as an IndexFault
// and the caller words the error. Writes run in logical order for every destination (the last duplicate wins,
// sums are reproducible), whatever the number of threads.
#pragma once
#include <atomic>

#include "kernels.h"

namespace rl {

struct IndexFault {
  bool found = false;
  int64_t index = 0, size = 0;
  int dim = 0;
  explicit operator bool() const { return found; }
};

// One dimension of a tensor that is addressed by an index tensor.
struct IndexedDim {
  const int64_t* data;     // the index elements
  const int64_t* strides;  // of the index tensor, in the result's geometry; 0 where it is broadcast
  int64_t size, stride;    // of the addressed dimension
  int dim;                 // its number, for the error
};

// How a write combines the element that is there with the new one.
enum class IndexOp { assign, add, mul, max, min };

// What may be negative: `wrap` allows -size..size-1, otherwise 0..size-1.
IndexFault check_indices(int ndim, const int64_t* sizes, const IndexedDim* indexed, int count, bool wrap);

// The loops; indices have been checked. `self_strides` are in the result's geometry (0 at indexed
// dimensions), `self` points at the element with all coordinates 0. `bad`: see write_all.
void index_read(Span out, const void* self, const int64_t* self_strides, const IndexedDim* indexed,
                int count);
void index_write(void* self, const int64_t* self_strides, Span src, const IndexedDim* indexed, int count,
                 IndexOp op, std::atomic<bool>* bad = nullptr);

// x[i, :, j]: `indices[d]` is the index span of dimension d or null, all broadcast by the caller to the same
// sizes. The dimensions of the index come at `position` of the result: result.sizes is x's sizes without the
// indexed dimensions, with the index's sizes inserted at `position`.
IndexFault index(Span out, Span self, const Span* const* indices, int position);
IndexFault index_put(Span self, const Span* const* indices, int position, Span values, bool accumulate);

// out, index and (for scatter) src have one rank with self, and index's sizes; elements of self outside stay.
IndexFault gather(Span out, Span self, int dim, Span index);
// `fresh`: nobody has seen self, which may be written although an index is at fault.
IndexFault scatter(Span self, int dim, Span index, Span src, IndexOp op, bool fresh = false);

// `index` has one dimension; src has self's sizes but for `dim`, where it has index's size. `wrap` as above.
IndexFault index_select(Span out, Span self, int dim, Span index);
IndexFault index_update(Span self, int dim, Span index, Span src, IndexOp op, bool wrap = false);

// scatter_reduce and index_reduce. `start_over` is include_self=False: a destination that is hit starts from
// the identity of the reduction. Mean divides by the number of contributions (rounding down for integers).
enum class Reduction { sum, prod, mean, amax, amin };
IndexFault scatter_reduce(Span self, int dim, Span index, Span src, Reduction reduction, bool start_over);
IndexFault index_reduce(Span self, int dim, Span index, Span src, Reduction reduction, bool start_over);

// Flat addressing: an index counts elements of self in row-major order and may be negative.
IndexFault take(Span out, Span self, Span index);
IndexFault put(Span self, Span index, Span src, bool accumulate);

// Masks. `mask` is bool and has the sizes of self; count_nonzero takes any dtype.
int64_t count_nonzero(Span self);
void nonzero(int64_t* out, int64_t out_rows, Span self, int64_t row_stride, int64_t column_stride);
// Writes at most `room` elements, takes at most `supply`: the mask may belong to a memory that others write.
void masked_select(void* out, int64_t room, Span self, Span mask);
void masked_fill(Span self, Span mask, const void* value);
// Takes the elements of the contiguous `source` in order.
void masked_scatter(Span self, Span mask, const void* source, int64_t supply);

}  // namespace rl
