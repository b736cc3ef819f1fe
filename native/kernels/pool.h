// Maxima over windows of planes: regular, adaptive and fractional pooling, with and without indices.
//
// A `Windows` lists, per dimension, where each output's window begins and ends in the input; every kind of
// pooling is such a list. Indices count the elements of a plane (all pooled dimensions together). Arrays are
// contiguous, planes lie one after the other.
#pragma once
#include <vector>

#include "kernels.h"

namespace rl {

struct Windows {
  int64_t in[3], out[3];
  int64_t step[3] = {1, 1, 1};             // between two elements of a window: the dilation
  std::vector<int64_t> begin[3], end[3];   // of each output position; 0 <= begin, end <= in
  int64_t kernel[3] = {}, stride[3] = {};  // where windows are regular and within the input; else 0

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
};

// y = the maximum of each window; NaN if there is one.
void max_pool(DType dtype, const Windows& windows, int64_t planes, void* y, const void* x);
// The same, and where the maximum is (the first one; the last NaN).
void max_pool_indices(DType dtype, const Windows& windows, int64_t planes, void* y, int64_t* indices,
                      const void* x);
// gx = gy added where the maximum of x is.
void max_pool_gradient(DType dtype, const Windows& windows, int64_t planes, void* gx, const void* gy,
                       const void* x);

// The same where the channels of a pixel lie side by side (channels last, dense), of the dtypes and sizes
// that `pools_channels` names. Indices may be null.
bool pools_channels(DType dtype, const Windows& windows, int64_t channels);
void max_pool_channels(DType dtype, const Windows& windows, int64_t batch, int64_t channels, void* y,
                       int64_t* indices, const void* x);
void max_pool_gradient_channels(DType dtype, const Windows& windows, int64_t batch, int64_t channels,
                                void* gx, const void* gy, const void* x);

// Moving elements by indices within planes; the first index out of [0, size) is returned through `bad`.
struct PlaneMove {
  int64_t planes, size, count;  // elements of a plane on the large side, indices per plane
};
// Finds the last index that is outside its plane, as torch does, which overwrites the one it found before.
bool find_bad_index(const PlaneMove& move, const int64_t* indices, int64_t& bad);
void gather_planes(DType dtype, const PlaneMove& move, void* y, const void* x, const int64_t* indices);
// y = 0 elsewhere; `add` sums what has the same index, else the last one stays.
void scatter_planes(DType dtype, const PlaneMove& move, void* y, const void* x, const int64_t* indices,
                    bool add);

}  // namespace rl
