// Numbers at even distances, see ../ranges.h. The compiler makes vectors of these loops.
#include "../ranges.h"

#include <cmath>

namespace rl {
inline namespace RL_ISA {
namespace {

template <class T, class I>
void count_between(T* to, I n, T start, T end, T step) {
  I half = n == 1 ? 1 : n / 2;
  for (I i = 0; i < half; i++) to[i] = std::fma(step, T(i), start);
  for (I i = half; i < n; i++) to[i] = std::fma(-step, T(n - 1 - i), end);
}

// Vectors convert integers of 32 bits.
template <class T>
void between(T* to, int64_t n, T start, T end, T step) {
  if (n <= INT32_MAX) count_between(to, int32_t(n), start, end, step);
  else count_between(to, n, start, end, step);
}

}  // namespace

extern const RangeLoops range_loops;
const RangeLoops range_loops = {between<float>, between<double>};

}  // namespace RL_ISA
}  // namespace rl
