// Walks over all lines along one dimension, for operations that give every element a result: scans and
// softmax.
//
// Where neighbouring lines lie next to each other in memory they go to the kernel together, which then runs
// across them; threads divide the lines.
#include <algorithm>

#include "../tensor/parallel.h"
#include "reduce.h"
#include "simd/families.h"
#include "softmax.h"

namespace rl {

LineKernel best_softmax_kernel(LineOp op, DType dtype) {
#if defined(RL_HAVE_AVX2)
  if (avx512_chosen()) {
    if (LineKernel kernel = avx512::softmax_kernel(op, dtype)) return kernel;
  }
#endif
  return RL_CHOOSE(softmax_kernel, op, dtype);
}

bool along(LineOp op, int dim, const Span* operands, int count) {
  constexpr int MAX_OPERANDS = 4;
  DType dtype = operands[count - 1].dtype;
  LineKernel kernel =
      op < LineOp::softmax ? RL_CHOOSE(scan_kernel, op, dtype) : best_softmax_kernel(op, dtype);
  if (!kernel) return false;
  const Span& shape = operands[0];
  int64_t numel = shape.numel(), n = shape.ndim ? shape.sizes[dim] : 1;
  if (numel == 0) return true;

  // The dimension whose lines are handed over together: one that is contiguous everywhere if there is one,
  // else the longest.
  int beside = -1;
  bool contiguous = false;
  for (int d = 0; d < shape.ndim && !contiguous; d++) {
    if (d == dim || shape.sizes[d] == 1) continue;
    contiguous = true;
    for (int k = 0; k < count; k++) contiguous &= operands[k].strides[d] == 1;
    if (beside < 0 || contiguous || shape.sizes[d] > shape.sizes[beside]) beside = d;
  }
  int64_t lines = beside < 0 ? 1 : shape.sizes[beside];
  int64_t step[MAX_OPERANDS], line[MAX_OPERANDS];
  for (int k = 0; k < count; k++) {
    step[k] = shape.ndim ? operands[k].strides[dim] : 1;
    line[k] = beside < 0 ? 0 : operands[k].strides[beside];
  }
  int64_t blocks = (lines + LINES - 1) / LINES, tasks = numel / n / lines * blocks;

  // parallel_for rounds its ranges to 16, so a task counts as that many.
  constexpr int64_t UNIT = 16;
  int64_t grain = std::max<int64_t>(1, 32768 * tasks / numel);
  parallel_for(tasks * UNIT, grain * UNIT, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin / UNIT; t < end / UNIT; t++) {
      int64_t first = t % blocks * LINES, rest = t / blocks, offset[MAX_OPERANDS];
      for (int k = 0; k < count; k++) offset[k] = first * line[k];
      for (int d = shape.ndim - 1; d >= 0; d--) {
        if (d == dim || d == beside) continue;
        int64_t i = rest % shape.sizes[d];
        rest /= shape.sizes[d];
        for (int k = 0; k < count; k++) offset[k] += i * operands[k].strides[d];
      }
      void* data[MAX_OPERANDS];
      for (int k = 0; k < count; k++) {
        data[k] = (char*)operands[k].data + offset[k] * dtype_size(operands[k].dtype);
      }
      kernel(data, step, line, n, std::min(LINES, lines - first));
    }
  });
  return true;
}

}  // namespace rl
