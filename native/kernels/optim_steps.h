// The loops of one step of SGD and Adam, once per instruction set (simd/elementwise_steps.cpp).
#pragma once
#include <cstdint>

namespace rl {

struct Descent {
  double lr, momentum, dampening, weight_decay;
  bool fresh, nesterov, maximize;  // fresh: the buffer holds nothing yet and starts as the gradient
};

struct Moments {
  double beta1, beta2, eps;
  double shrink, decay;    // a decoupled decay multiplies the parameter, another is added to the gradient
  double step_size, root;  // corrected for the number of steps
  bool maximize;
};

struct OptimSteps {
  // `buffer` and `largest` may be null; nothing overlaps.
  void (*sgd_float)(int64_t n, const Descent& s, float* p, const float* g, float* buffer);
  void (*sgd_double)(int64_t n, const Descent& s, double* p, const double* g, double* buffer);
  void (*adam_float)(int64_t n, const Moments& s, float* p, const float* g, float* mean, float* square,
                     float* largest);
  void (*adam_double)(int64_t n, const Moments& s, double* p, const double* g, double* mean, double* square,
                      double* largest);
};
namespace baseline {
extern const OptimSteps optim_steps;
}
namespace avx2 {
extern const OptimSteps optim_steps;
}

}  // namespace rl
