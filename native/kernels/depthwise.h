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

// The same where the channels of a pixel lie side by side (channels last, dense), of float, double and the
// shorter floats. Weights, their gradient and bias are of the compute type (float, or double), and of the
// weights all channels of one term lie together.
bool depthwise_channels_fit(DType dtype, const ConvShape& shape);
void depthwise_channels_forward(DType dtype, const ConvShape& shape, void* y, const void* x, const void* w,
                                const void* bias);
void depthwise_channels_input_gradient(DType dtype, const ConvShape& shape, void* gx, const void* gy,
                                       const void* w);
void depthwise_channels_weight_gradient(DType dtype, const ConvShape& shape, void* gw, const void* gy,
                                        const void* x);

constexpr int64_t DEPTHWISE_SLACK = 32;  // elements that may be read beyond the last one of a line

// Where the lines of an output plane find what they are made of: output o of line l is the sum over terms t
// of w[t] * image[line_at[l] + term_at[t] + o].
struct DepthwisePlane {
  int64_t lines, width, terms;
  const int64_t *line_at, *term_at;
};
// The terms of one pixel: how many along each dimension, and how far apart, in elements, what they multiply
// and their weights lie.
struct ChannelWindow {
  int64_t count[3], step[3], weight_step[3];
};
struct DepthwiseLoops {
  // With `turned` the weights are taken from the last to the first.
  void (*lines)(DType dtype, const DepthwisePlane& plane, const void* image, const void* w, bool turned,
                const void* start, void* y);
  // Adds to gw[t] the sum over all outputs of their gradient times what term t of them is made of.
  void (*weights)(DType dtype, const DepthwisePlane& plane, const void* image, const void* gy, void* gw);
  // y = start (or zero) + the sum of the terms of a window, for n channels side by side, of `pixels` pixels
  // whose windows begin `pixel_step` elements apart.
  void (*channels)(DType dtype, const ChannelWindow& window, const void* from, const void* w,
                   const void* start, void* y, int64_t n, int64_t pixels, int64_t pixel_step);
  // Adds to sums the products of `pixels` pixels of g and x, for n channels; sums are of the compute type.
  void (*channel_products)(DType dtype, const void* g, int64_t g_step, const void* x, int64_t x_step,
                           int64_t pixels, void* sums, int64_t n);
  // to += from, of the compute type.
  void (*add)(DType dtype, void* to, const void* from, int64_t n);
};
namespace baseline {
extern const DepthwiseLoops depthwise_loops;
}
namespace avx2 {
extern const DepthwiseLoops depthwise_loops;
}
const DepthwiseLoops& fastest_depthwise_loops();  // for the processor at hand

}  // namespace rl
