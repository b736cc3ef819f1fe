// Products of bfloat16 matrices by the instruction that multiplies pairs of them; see gemm_bf16.cpp.
#pragma once
#include "matmul.h"

namespace rl {

// Whether the processor has the instruction, and RUSHLIGHT_CPU does not ask for less.
bool bf16_pairs_chosen();

// c = a b for matrices of bfloat16 of any strides; c is dense, of float.
void gemm_bf16(float* c, const Matrix& a, const Matrix& b);

}  // namespace rl
