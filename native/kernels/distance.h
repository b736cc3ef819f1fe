// Distances between all rows of two batches of matrices, or of one matrix with itself, and their gradients.
// Loops in simd/distance.cpp.
#pragma once
#include "elementwise.h"

namespace rl {

// Contiguous operands: a [batches, rows, length], b [batches, others, length]; distances, and gradients of
// them, [batches, rows, others].
struct Distances {
  DType dtype;  // f32 or f64
  int64_t batches, rows, others, length;
  double p;  // of the norm; 0 counts, infinity takes the largest
};

struct DistanceLoops {
  void (*all)(const Distances& shape, const void* a, const void* b, void* distances);
  // The gradient of a, given that of the distances.
  void (*all_backward)(const Distances& shape, const void* g, const void* a, const void* b,
                       const void* distances, void* grad);
  // Each pair of the rows of a once: (0, 1), (0, 2) ... (1, 2) ...; batches is 1 and others is not read.
  void (*pairs)(const Distances& shape, const void* a, void* distances);
  void (*pairs_backward)(const Distances& shape, const void* g, const void* a, const void* distances,
                         void* grad);
};

namespace baseline {
extern const DistanceLoops distance_loops;
}
#if defined(RL_HAVE_AVX2)
namespace avx2 {
extern const DistanceLoops distance_loops;
}
#endif

inline const DistanceLoops& best_distance_loops() {
#if defined(RL_HAVE_AVX2)
  if (cpu_capability()[0] == 'A') return avx2::distance_loops;
#endif
  return baseline::distance_loops;
}

}  // namespace rl
