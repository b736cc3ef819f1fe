// Convolutions of float on processors with AVX-512, see conv_avx512.cpp. conv.cpp asks `conv_has_avx512`
// first.
#pragma once
#include "conv.h"

namespace rl {

// Whether the processor can run these, and the arrays are small enough for their 32-bit offsets.
bool conv_has_avx512(const ConvShape& shape);

// With `turned`, w are the weights of the convolution whose input gradient y is, not yet turned round. The
// first patch begins at `origin` in the padded image, not for depthwise convolutions; where there is one, the
// caller has seen to it that no patch leaves the image.
void conv_forward_avx512(const ConvShape& shape, float* y, const float* x, const float* w, const float* bias,
                         bool turned = false, const int64_t* origin = nullptr);
// gx of a depthwise convolution of any strides, if this is one that is done here; false, and nothing done, if
// not.
bool depthwise_input_gradient_avx512(const ConvShape& shape, float* gx, const float* gy, const float* w,
                                     const float* bias);
void conv_weight_gradient_avx512(const ConvShape& shape, float* gw, const float* gy, const float* x);

// gx of a convolution with strides (conv_phases.cpp), if this is one that is done so; false, and nothing
// done, if not. Weights are multiplied with zeros as well: they have to be finite.
bool conv_has_phases(const ConvShape& shape);
bool input_gradient_by_phases(const ConvShape& shape, float* gx, const float* gy, const float* w,
                              const float* bias);

}  // namespace rl
