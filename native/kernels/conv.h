// Convolutions on contiguous (batch, channels, depth, height, width) arrays: forward, and its two adjoints.
//
// A 1-d or 2-d convolution has leading sizes of one. A transposed convolution is `conv_input_gradient` by
// another name: its input plays the gradient. Sizes have been checked by the caller; start with `ConvShape`.
#pragma once
#include "kernels.h"

namespace rl {

struct ConvShape {
  int64_t batch, groups, in_channels, out_channels;  // channels of all groups together
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t pixels() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  // Products per output element: the rows of the matrix that im2col makes.
  int64_t terms() const { return group_in() * kernel_size(); }
  double work() const { return double(batch) * double(out_channels) * double(terms()) * double(pixels()); }
  // The kernel is one pixel on every pixel: a matrix product as it stands.
  bool pointwise() const {
    for (int d = 0; d < 3; d++)
      if (kernel[d] != 1 || stride[d] != 1 || padding[d] != 0 || in[d] != out[d]) return false;
    return true;
  }
  bool depthwise() const { return groups == in_channels && groups == out_channels; }
};

// y = conv(x, w) + bias; bias may be null. All dtypes that gemm takes, but not f16; bf16 only where
// conv_has_bf16 (conv_bf16.h), and then results and bias are float. So in the two gradients.
void conv_forward(DType dtype, const ConvShape& shape, void* y, const void* x, const void* w,
                  const void* bias);
// gx = the sum over all outputs of w times their gradient gy (the transposed convolution), plus bias if
// given.
void conv_input_gradient(DType dtype, const ConvShape& shape, void* gx, const void* gy, const void* w,
                         const void* bias);
// gw = the gradient of the weights.
void conv_weight_gradient(DType dtype, const ConvShape& shape, void* gw, const void* gy, const void* x);

// The patches under the kernel as columns, (batch, channels * kernel_size, pixels), and the sum of such
// columns back into an image. Groups play no part.
void unfold_patches(DType dtype, const ConvShape& shape, void* columns, const void* x);
void fold_patches(DType dtype, const ConvShape& shape, void* x, const void* columns);

}  // namespace rl
