// Transposing small blocks of elements and turning rows round, once per instruction set (simd/transpose.cpp).
// The tiled traversal of tensor/iterate.cpp gathers operands with it whose memory runs across the others'.
#pragma once
#include "kernels.h"

namespace rl {

// to[j * rows + i] = element j of row i of `from`, whose rows are `row_stride` bytes apart and contiguous.
using TransposeBlock = void (*)(const char* from, int64_t row_stride, int64_t rows, int64_t cols, char* to);

// to[i] = from[-i]
using Backwards = void (*)(char* to, const char* from, int64_t n);

// Short rows, one after the other into `to`, from rows `next` bytes apart: each of n times one element, or of
// n bytes.
using Rows = void (*)(char* to, const char* from, int64_t next, int64_t n, int64_t rows);

struct TransposeBlocks {  // by element size: 1, 2, 4, 8, 16; the others are null
  TransposeBlock of_size[17];
  Backwards backwards[17];
  Rows fill_rows[17];
  Rows copy_rows;
};
const TransposeBlocks& best_transpose_blocks();
namespace baseline {
extern const TransposeBlocks transpose_blocks;
}
namespace avx2 {
extern const TransposeBlocks transpose_blocks;
}

}  // namespace rl
