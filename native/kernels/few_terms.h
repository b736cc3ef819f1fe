// Products of float with few terms and a large result, or few rows and a large right side, once per
// instruction set (simd/few_terms.cpp).
#pragma once
#include "matmul.h"

namespace rl {

constexpr int64_t FEW_TERMS_AT_MOST = 64;

// c = alpha a b; c's rows are contiguous, a and b may have any strides. few_terms takes up to
// FEW_TERMS_AT_MOST of them. False if memory ran out.
using FewTerms = bool (*)(const Matrix& c, const Matrix& a, const Matrix& b, float alpha);
namespace baseline {
extern const FewTerms few_terms, few_rows;
}
namespace avx2 {
extern const FewTerms few_terms, few_rows;
}
namespace avx512 {
extern const FewTerms few_terms, few_rows;
}

}  // namespace rl
