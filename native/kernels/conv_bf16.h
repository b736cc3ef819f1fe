// Convolutions of bfloat16 by the instruction that multiplies pairs, see conv_bf16.cpp. Operands are
// bfloat16, results and bias are float. conv.cpp asks `conv_has_bf16` first.
#pragma once
#include "conv.h"

namespace rl {

// Whether the processor can run these, and they are worth it.
bool conv_has_bf16(const ConvShape& shape);

// With `turned`, w are the weights of the convolution whose input gradient y is, not yet turned round.
void conv_forward_bf16(const ConvShape& shape, float* y, const uint16_t* x, const uint16_t* w,
                       const float* bias, bool turned = false);
void conv_weight_gradient_bf16(const ConvShape& shape, float* gw, const uint16_t* gy, const uint16_t* x);

}  // namespace rl
