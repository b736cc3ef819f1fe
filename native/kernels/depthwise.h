// Depthwise convolutions, which have one channel in and one out, of float and double: forward and its two
// adjoints. conv.cpp asks `depthwise_fits` first.
//
// Each plane is copied with its padding into rows that vectors can be read from anywhere (depthwise.cpp); the
// loops over such rows exist once per instruction set (simd/depthwise_lines.cpp).
#pragma once
#include "conv.h"

namespace rl {

bool depthwise_fits(DType dtype, const ConvShape& shape);
void depthwise_forward(DType dtype, const ConvShape& shape, void* y, const void* x, const void* w,
                       const void* bias);
void depthwise_input_gradient(DType dtype, const ConvShape& shape, void* gx, const void* gy, const void* w,
                              const void* bias);
void depthwise_weight_gradient(DType dtype, const ConvShape& shape, void* gw, const void* gy, const void* x);

constexpr int64_t DEPTHWISE_SLACK = 32;  // elements that may be read beyond the last one of a line

// Where the lines of an output plane find what they are made of: output o of line l is the sum over terms t
// of w[t] * image[line_at[l] + term_at[t] + o].
struct DepthwisePlane {
  int64_t lines, width, terms;
  const int64_t *line_at, *term_at;
};
struct DepthwiseLoops {
  // With `turned` the weights are taken from the last to the first.
  void (*lines)(DType dtype, const DepthwisePlane& plane, const void* image, const void* w, bool turned,
                const void* start, void* y);
  // Adds to gw[t] the sum over all outputs of their gradient times what term t of them is made of.
  void (*weights)(DType dtype, const DepthwisePlane& plane, const void* image, const void* gy, void* gw);
};
namespace baseline {
extern const DepthwiseLoops depthwise_loops;
}
namespace avx2 {
extern const DepthwiseLoops depthwise_loops;
}

}  // namespace rl
