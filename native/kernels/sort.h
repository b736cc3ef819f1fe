// Sorting along a dimension, and what picks elements by rank: topk, kthvalue, median, mode.
#pragma once
#include "kernels.h"

namespace rl {

enum class SortOp : uint8_t { sort, topk, kthvalue, median, nanmedian, mode };

struct SortParams {
  int64_t k = 0;            // topk: how many; kthvalue: which, counted from 1
  bool descending = false;  // sort, topk: the largest first
  bool in_order = true;     // topk: the best first; else in the order in which they are found
};

// For every line of `in` along `dim`: chosen elements go to `values` (of in's type) and their positions to
// `indices` (int64). Both have the sizes of `in`, but along `dim` k elements for topk and one for the
// choosing operations. NaN counts as larger than everything, except that one NaN makes a median NaN and that
// nanmedian leaves NaN out. Equal elements keep their order, whichever the direction; topk takes those that
// the algorithms of the standard library leave it, as torch does; mode gives the smallest of equally frequent
// values and its last position, all others the first position they can. Lines must not be empty except for
// sort and topk. False for complex numbers.
bool sort_lines(SortOp op, Span values, Span indices, Span in, int dim, SortParams params = {});

}  // namespace rl
