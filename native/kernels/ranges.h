// Numbers at even distances, once per instruction set (simd/ranges.cpp).
#pragma once
#include "kernels.h"

namespace rl {

struct RangeLoops {
  // to[i] = start + step * i in the first half, end - step * (n - 1 - i) in the other, each rounded once.
  void (*between_f32)(float* to, int64_t n, float start, float end, float step);
  void (*between_f64)(double* to, int64_t n, double start, double end, double step);
};
namespace baseline {
extern const RangeLoops range_loops;
}
namespace avx2 {
extern const RangeLoops range_loops;
}

}  // namespace rl
