// The loops of max pooling that run along rows, once per instruction set (simd/pool_rows.cpp).
#pragma once
#include "pool.h"

namespace rl {

struct PoolRows {
  // to[i] = the larger of a[i] and b[i], NaN if one is; `to` may be a.
  using Larger = void (*)(void* to, const void* a, const void* b, int64_t n);
  // to = the maximum of each window of the last dimension of one row. `taps` is what the longest has
  // elements; `scratch` is as long as the row.
  using Along = void (*)(void* to, const void* row, void* scratch, const Windows& windows, int64_t taps);
  // best[i] = the larger of best[i] and row[i], and where that is row[i] (or NaN), rows[i] = number. Of
  // double with int64 rows, of the other floating dtypes with int32 ones.
  using LargerInRow = void (*)(void* best, void* rows, const void* row, int64_t n, int64_t number);
  // What begins at each of the n places: the best of `taps` elements, `step` apart, of a line of maxima, the
  // row it is in and how far off it is. Of equal maxima the one in the first row counts, of several NaN the
  // last.
  using BestAlong = void (*)(void* values, void* rows, void* offsets, const void* best, const void* best_rows,
                             int64_t n, int64_t step, int64_t taps);
  // Adds g[i] to to[i] where rows[i] is number.
  using AddInRow = void (*)(void* to, const void* rows, const void* g, int64_t n, int64_t number);
  Larger larger[DTYPE_COUNT];
  Along along[DTYPE_COUNT];
  LargerInRow larger_in_row[DTYPE_COUNT];
  AddInRow add_in_row[DTYPE_COUNT];
  BestAlong best_along[DTYPE_COUNT];
};
namespace baseline {
extern const PoolRows pool_rows;
}
namespace avx2 {
extern const PoolRows pool_rows;
}
const PoolRows& fastest_pool_rows();  // for the processor at hand

}  // namespace rl
