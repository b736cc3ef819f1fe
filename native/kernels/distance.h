// Distances between all rows of two batches of matrices, and the gradient of one of them. Loops in
// distance.cpp.
#pragma once
#include "../tensor/dtype.h"

namespace rl {

// Contiguous operands: a [batches, rows, length], b [batches, others, length]; distances, and gradients of
// them, [batches, rows, others].
struct Distances {
  DType dtype;  // f32 or f64
  int64_t batches, rows, others, length;
  double p;  // of the norm; 0 counts, infinity takes the largest
};

void all_distances(const Distances& shape, const void* a, const void* b, void* distances);
// The gradient of a, given that of the distances.
void distances_backward(const Distances& shape, const void* g, const void* a, const void* b,
                        const void* distances, void* grad);

}  // namespace rl
