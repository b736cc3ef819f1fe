// The loops of softmax and its relatives for the best instruction set there is.
#pragma once
#include "reduce.h"

namespace rl {

#if defined(RL_HAVE_AVX2)
namespace avx512 {
LineKernel softmax_kernel(LineOp op, DType dtype);  // null where AVX2's is as good
}
#endif

// See Note [a third instruction set] in simd/families.h.
LineKernel best_softmax_kernel(LineOp op, DType dtype);

}  // namespace rl
