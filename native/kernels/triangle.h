// Triangular systems of up to 16 unknowns with many right-hand sides: the innermost step of blocked_lu.cpp.
#pragma once
#include "kernels.h"

namespace rl {

constexpr int TRIANGLE = 16;

// What finding unknown k takes from the others: factors[k * TRIANGLE + i] times it from unknown i, zero for i
// that were found before. Unknowns are found in order, or backwards.
template <class T>
struct Triangle {
  alignas(64) T factors[TRIANGLE * TRIANGLE];
  T diagonal[TRIANGLE];  // or its reciprocals, unless `divides`
  int size;
  bool forward, divides;
};

template <class T>
struct TriangleLoops {
  // Unknowns are the rows of b (column-major), or its columns.
  void (*left)(const Triangle<T>& t, int64_t columns, T* b, int64_t ld);
  void (*right)(const Triangle<T>& t, int64_t rows, T* b, int64_t ld);
};

#define RL_DECLARE_TRIANGLE(isa)                   \
  namespace isa {                                  \
  extern const TriangleLoops<float> triangle_f32;  \
  extern const TriangleLoops<double> triangle_f64; \
  }
RL_DECLARE_TRIANGLE(baseline)
#if defined(RL_HAVE_AVX2)
RL_DECLARE_TRIANGLE(avx2)
#endif
#undef RL_DECLARE_TRIANGLE

}  // namespace rl
