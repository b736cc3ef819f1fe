// Products of small matrices of float and double in AVX-512, which read both operands where they lie.
#pragma once
#include "matmul.h"

namespace rl {

constexpr int64_t SMALL_GEMM_TERMS = 512;  // at most: the sums run on without a break

// c = alpha a b + beta c on the calling thread. The columns of b and of c are adjacent (col_stride is 1); a
// may have any strides. Only where avx512_chosen().
void small_gemm_avx512(const Matrix& c, const Matrix& a, const Matrix& b, float alpha, float beta);
void small_gemm_avx512(const Matrix& c, const Matrix& a, const Matrix& b, double alpha, double beta);

}  // namespace rl
