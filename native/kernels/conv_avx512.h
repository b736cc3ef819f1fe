// Convolutions of float on processors with AVX-512, see conv_avx512.cpp. conv.cpp asks `conv_has_avx512`
// first.
#pragma once
#include "conv.h"

namespace rl {

// Whether the processor can run these, and the arrays are small enough for their 32-bit offsets.
bool conv_has_avx512(const ConvShape& shape);

// With `turned`, w are the weights of the convolution whose input gradient y is, not yet turned round.
void conv_forward_avx512(const ConvShape& shape, float* y, const float* x, const float* w, const float* bias,
                         bool turned = false);
// gx of a depthwise convolution of any strides, if this is one that is done here; false, and nothing done, if
// not.
bool depthwise_input_gradient_avx512(const ConvShape& shape, float* gx, const float* gy, const float* w,
                                     const float* bias);
void conv_weight_gradient_avx512(const ConvShape& shape, float* gw, const float* gy, const float* x);

}  // namespace rl
