// Moving elements without arithmetic (flip, roll, repeat, cat), triangles of matrices, and binary search.
#pragma once
#include "kernels.h"

namespace rl {

// out[p] = in[p]; both of one dtype and of out's sizes. Strides of `in` may be zero or negative.
void move_elements(Span out, const void* in, const int64_t* in_strides);

// The lower (or upper) triangle of the matrices of the last two dimensions, zeros elsewhere. in has out's
// sizes and may be out itself. Diagonal `k` is the last (first) one kept.
void triangle(Span out, Span in, int64_t k, bool upper);

// For every value, the number of boundaries below it (right: not above it). The last dimension of `sorted`
// holds the boundaries, the others are as in values, or absent (one row for all). All are contiguous; `out`
// is int64 and `sorter`, if given, is a permutation of each row that has been checked.
void searchsorted(Span out, Span sorted, Span values, const int64_t* sorter, bool right);

}  // namespace rl
