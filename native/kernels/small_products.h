// Many products of matrices of two or three rows and columns, for which a call each would take longer than
// the arithmetic.
#pragma once
#include "matmul.h"

namespace rl {

constexpr int64_t SMALL_SIDE = 3, SMALL_TERMS = 8;

// Whether the last two dimensions of the three spans are such matrices, of a dtype that has loops here.
bool are_small_products(const Span& c, const Span& a);

// batched_gemm of the products begin...end, counted in row-major order of the leading dimensions.
void small_products(const Span& c, const Span& a, const Span& b, const void* alpha, const void* beta,
                    int64_t begin, int64_t end);

}  // namespace rl
