// The order in which the elements of an output receive their draws, and the loop that the samplers share.
//
// Start at `for_each_run`: it walks operands of one shape in the order of the first operand's memory.
#pragma once
#include <algorithm>
#include <utility>

#include "random.h"

namespace rl {

// A stretch of elements in the order of drawing: `data[i]` and `stride[i]` (in elements) of operand i.
template <int N>
struct Run {
  char* data[N];
  int64_t stride[N];
  int64_t size;
};

// Calls f(run) for stretches that together cover all elements. The dimension with the smallest stride is
// innermost, so a transposed tensor receives the numbers that the tensor it was transposed from would have
// received.
template <int N, class F>
void for_each_run(const Span* const (&operands)[N], F f) {
  int dims[MAX_DIMS], ndim = 0;  // innermost first
  const Span& out = *operands[0];
  for (int d = out.ndim - 1; d >= 0; d--) {
    if (out.sizes[d] == 0) return;
    if (out.sizes[d] != 1) dims[ndim++] = d;
  }
  // Whether dimension `a` belongs outside of `b`: the first operand that moves along both decides.
  auto outside = [&](int a, int b) {
    for (const Span* span : operands) {
      int64_t stride_a = span->strides[a], stride_b = span->strides[b];
      if (stride_a == 0 || stride_b == 0) continue;
      if (stride_a != stride_b) return stride_a > stride_b;
      if (span->sizes[a] > span->sizes[b]) return true;
    }
    return false;
  };
  for (int i = 1; i < ndim; i++) {
    for (int j = i; j > 0 && outside(dims[j - 1], dims[j]); j--) std::swap(dims[j - 1], dims[j]);
  }

  Run<N> run;
  run.size = 1;
  for (int k = 0; k < N; k++) {
    run.data[k] = static_cast<char*>(operands[k]->data);
    run.stride[k] = ndim ? operands[k]->strides[dims[0]] : 1;
  }
  int inner = 0;  // dimensions that one run covers
  for (; inner < ndim; inner++) {
    bool joins = true;
    for (int k = 0; k < N; k++) joins &= operands[k]->strides[dims[inner]] == run.stride[k] * run.size;
    if (!joins) break;
    run.size *= out.sizes[dims[inner]];
  }
  int64_t index[MAX_DIMS] = {};
  while (true) {
    f(run);
    int d = inner;
    for (; d < ndim; d++) {
      bool wraps = ++index[d] == out.sizes[dims[d]];
      int64_t steps = wraps ? 1 - out.sizes[dims[d]] : 1;
      for (int k = 0; k < N; k++)
        run.data[k] += steps * operands[k]->strides[dims[d]] * dtype_size(operands[k]->dtype);
      if (!wraps) break;
      index[d] = 0;
    }
    if (d == ndim) return;
  }
}

// Writes sample() into every element, converted from the type it returns.
template <class F>
void fill_one_by_one(const Span& out, F sample) {
  visit(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_run<1>({&out}, [&](const Run<1>& run) {
      T* data = reinterpret_cast<T*>(run.data[0]);
      for (int64_t i = 0; i < run.size; i++) data[i * run.stride[0]] = convert<T>(sample());
    });
  });
}

// Writes sample(draws) into every element of dtype T; each element takes `words` draws.
template <class T, int words, class F>
void fill_from_draws(Generator& g, const Span& out, F sample) {
  constexpr int64_t CHUNK = 512;
  uint32_t draws[CHUNK * words];
  for_each_run<1>({&out}, [&](const Run<1>& run) {
    T* data = reinterpret_cast<T*>(run.data[0]);
    for (int64_t done = 0; done < run.size; done += CHUNK) {
      int64_t n = std::min(CHUNK, run.size - done);
      g.fill(draws, n * words);
      for (int64_t i = 0; i < n; i++) data[(done + i) * run.stride[0]] = sample(draws + i * words);
    }
  });
}

}  // namespace rl
