// One step of SGD or Adam on the elements of one parameter. The arithmetic is that of the operations in
// rushlight/optim, rounded where they round: a product that is added is rounded once, with its sum, where the
// instruction set can (as in vector.h). What the options choose is chosen outside the loops, so that the
// compiler turns them into vectors.
#include <cmath>

#include "../optim_steps.h"

namespace rl {
namespace RL_ISA {
namespace {

#if defined(__FMA__)
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
inline float fma(float a, float b, float c) { return a * b + c; }
inline double fma(double a, double b, double c) { return a * b + c; }
#endif

enum Buffer { none, fresh, kept };

template <class T, bool DECAY, Buffer BUFFER, bool NESTEROV>
void descend(int64_t n, const Descent& s, T* __restrict p, const T* __restrict g, T* __restrict buffer) {
  const T rate = T(-s.lr), keep = T(s.momentum), add = T(1 - s.dampening), decay = T(s.weight_decay);
  const T sign = s.maximize ? T(-1) : T(1);
  for (int64_t i = 0; i < n; i++) {
    T d = sign * g[i];
    if constexpr (DECAY) d = fma(decay, p[i], d);
    if constexpr (BUFFER != none) {
      T b = d;
      if constexpr (BUFFER == kept) b = fma(add, d, buffer[i] * keep);
      buffer[i] = b;
      d = NESTEROV ? fma(keep, b, d) : b;
    }
    p[i] = fma(rate, d, p[i]);
  }
}

template <class T, bool DECAY>
void sgd_buffered(int64_t n, const Descent& s, T* p, const T* g, T* buffer) {
  if (!buffer) return descend<T, DECAY, none, false>(n, s, p, g, buffer);
  if (s.fresh && s.nesterov) return descend<T, DECAY, fresh, true>(n, s, p, g, buffer);
  if (s.fresh) return descend<T, DECAY, fresh, false>(n, s, p, g, buffer);
  if (s.nesterov) return descend<T, DECAY, kept, true>(n, s, p, g, buffer);
  descend<T, DECAY, kept, false>(n, s, p, g, buffer);
}

template <class T>
void sgd(int64_t n, const Descent& s, T* p, const T* g, T* buffer) {
  if (s.weight_decay != 0) sgd_buffered<T, true>(n, s, p, g, buffer);
  else sgd_buffered<T, false>(n, s, p, g, buffer);
}

template <class T, bool DECAY, bool NEAR, bool LARGEST>
void adapt(int64_t n, const Moments& s, T* __restrict p, const T* __restrict g, T* __restrict mean,
           T* __restrict square, T* __restrict largest) {
  const T to_mean = T(1 - s.beta1), to_grad = T(1) - to_mean, keep = T(s.beta2), add = T(1 - s.beta2);
  const T eps = T(s.eps), shrink = T(s.shrink), decay = T(s.decay), by = T(-s.step_size), root = T(s.root);
  const T sign = s.maximize ? T(-1) : T(1);
  for (int64_t i = 0; i < n; i++) {
    T x = p[i] * shrink, d = sign * g[i];
    if constexpr (DECAY) d = fma(decay, x, d);
    // lerp computes from the nearer end.
    T m = NEAR ? fma(to_mean, d - mean[i], mean[i]) : fma(mean[i] - d, to_grad, d);
    T v = fma(add * d, d, square[i] * keep);
    mean[i] = m, square[i] = v;
    if constexpr (LARGEST) {
      // A NaN of either stays.
      T before = largest[i];
      v = (before > v) | (before != before) ? before : v;
      largest[i] = v;
    }
    p[i] = x + by * m / (std::sqrt(v) / root + eps);
  }
}

template <class T, bool DECAY, bool NEAR>
void adam_largest(int64_t n, const Moments& s, T* p, const T* g, T* mean, T* square, T* largest) {
  if (largest) adapt<T, DECAY, NEAR, true>(n, s, p, g, mean, square, largest);
  else adapt<T, DECAY, NEAR, false>(n, s, p, g, mean, square, largest);
}

template <class T>
void adam(int64_t n, const Moments& s, T* p, const T* g, T* mean, T* square, T* largest) {
  const bool near = std::abs(T(1 - s.beta1)) < T(0.5);
  if (s.decay != 0 && near) adam_largest<T, true, true>(n, s, p, g, mean, square, largest);
  else if (s.decay != 0) adam_largest<T, true, false>(n, s, p, g, mean, square, largest);
  else if (near) adam_largest<T, false, true>(n, s, p, g, mean, square, largest);
  else adam_largest<T, false, false>(n, s, p, g, mean, square, largest);
}

}  // namespace

extern const OptimSteps optim_steps = {sgd<float>, sgd<double>, adam<float>, adam<double>};

}  // namespace RL_ISA
}  // namespace rl
