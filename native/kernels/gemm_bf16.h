// Products of bfloat16 matrices by the instruction that multiplies pairs of them; see gemm_bf16.cpp.
#pragma once
#include "matmul.h"
#include "tile_avx512.h"

namespace rl {

// Whether the processor has the instruction, and RUSHLIGHT_CPU does not ask for less.
bool bf16_pairs_chosen();

// The tile of tile_avx512.h whose terms are pairs: two neighbouring ones in 32 bits, the first in the lower
// half.
Tile bf16_tile(int64_t packed_rows);

// c = a b for matrices of bfloat16 of any strides; c is dense, of float.
void gemm_bf16(float* c, const Matrix& a, const Matrix& b);

}  // namespace rl
