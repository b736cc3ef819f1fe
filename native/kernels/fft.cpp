// One pass of a Fourier transform, its lines divided over threads.
#include "fft.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "../tensor/parallel.h"
#include "elementwise.h"

namespace rl {
namespace {

FftPass chosen() {
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = !std::strcmp(cpu_capability(), "AVX2");
  if (has_avx2) return avx2::fft_lines;
#endif
  return baseline::fft_lines;
}

char* at(const Span& span, int d, int64_t index) {
  return static_cast<char*>(span.data) + index * span.strides[d] * dtype_size(span.dtype);
}

}  // namespace

bool fft_pass(Transform kind, const Span& to, const Span& from, int axis, bool forward, double scale) {
  if (to.numel() == 0 || from.numel() == 0) return true;
  int split = -1;
  for (int d = 0; d < to.ndim; d++) {
    if (d != axis && to.sizes[d] > 1 && (split < 0 || to.sizes[d] > to.sizes[split])) split = d;
  }
  if (split < 0) return chosen()(kind, to, from, axis, forward, scale);
  int64_t length = to.sizes[split], each = to.numel() / length;
  std::atomic<bool> complete = true;
  // Slices of at least a vector of lines, and enough work to wake a thread for.
  parallel_for(length, std::max<int64_t>(8, 65536 / std::max<int64_t>(each, 1)),
               [&](int64_t begin, int64_t end) {
                 if (begin == 0 && end == length) {
                   if (!chosen()(kind, to, from, axis, forward, scale)) complete = false;
                   return;
                 }
                 int64_t to_sizes[MAX_DIMS], from_sizes[MAX_DIMS];
                 std::copy(to.sizes, to.sizes + to.ndim, to_sizes);
                 std::copy(from.sizes, from.sizes + from.ndim, from_sizes);
                 to_sizes[split] = from_sizes[split] = end - begin;
                 Span part_to{at(to, split, begin), to.dtype, to.ndim, to_sizes, to.strides};
                 Span part_from{at(from, split, begin), from.dtype, from.ndim, from_sizes, from.strides};
                 if (!chosen()(kind, part_to, part_from, axis, forward, scale)) complete = false;
               });
  return complete;
}

}  // namespace rl
