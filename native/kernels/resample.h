// Linear maps that act on each spatial dimension by itself: interpolation, average pooling, padding by
// reflection, replication and wrapping round, and the adjoints of all of them.
//
// A `Taps` is the matrix of one dimension, by rows: which inputs an output is made of, and their weights. The
// adjoint of such a map is the map of the transposed matrices, so that one loop serves forward and backward.
#pragma once
#include <vector>

#include "kernels.h"

namespace rl {

struct Taps {
  int64_t in = 1, out = 1;
  std::vector<int64_t> first;  // out + 1 of them: the taps of output o are [first[o], first[o + 1])
  std::vector<int64_t> index;
  std::vector<double> weight;
  bool copies = false;    // every output is one input, unchanged
  bool identity = false;  // and the same one

  void start(int64_t n_in, int64_t n_out) {
    in = n_in, out = n_out;
    first.assign(1, 0);
    first.reserve(size_t(n_out) + 1);
  }
  void add(int64_t i, double w) { index.push_back(i), weight.push_back(w); }
  void end_row() { first.push_back(int64_t(index.size())); }
  void settle();  // sets copies and identity; called when all rows are there
  Taps transposed() const;
};

// Weights as torch has them for bytes: whole numbers of 16 bits, as many times larger than the weights as the
// largest of them allows. Inputs that a row names several times (at the edges) are one tap.
struct ByteTaps {
  int64_t in, out;
  int precision = 0;  // the weights' factor is 2 to this power
  std::vector<int64_t> first{0}, index;
  std::vector<int16_t> weight;

  explicit ByteTaps(const Taps& t);
};

// y = the map applied to every plane of x; taps[d] belong to depth, height, width, and at each place there
// are `channels` numbers side by side. Integers and bool only where all taps copy; u8 also elsewhere: rounded
// as torch rounds, and clamped.
void resample(DType dtype, const Taps (&taps)[3], int64_t planes, int64_t channels, void* y, const void* x);

// Lines of `in` elements of `size` bytes become lines of `out`: first those at the places `before`, then the
// line itself from `skip` on, then those at the places `after`.
struct PaddedLines {
  int64_t planes, in, out, skip, size;
  std::vector<int64_t> before, after;
};
void pad_lines(const PaddedLines& lines, void* y, const void* x);

// y = x, contiguous, in a border of `count` dimensions: before[d] and after[d] places of dimension d, which
// is in[d] long. `value` is what stands in the border, an element of `size` bytes: 1, 2, 4, 8 or 16.
struct Border {
  int count;
  const int64_t *in, *before, *after;
  const void* value;
  int64_t size;
};
void put_in_border(const Border& border, void* y, const void* x);

// One pass along a dimension, per instruction set: y (outer, taps.out, inner) from x (outer, taps.in, inner).
struct ResamplePasses {
  void (*f32)(float* y, const float* x, int64_t outer, const Taps& taps, int64_t inner);
  void (*f64)(double* y, const double* x, int64_t outer, const Taps& taps, int64_t inner);
  void (*c64)(std::complex<float>* y, const std::complex<float>* x, int64_t outer, const Taps& taps,
              int64_t inner);
  void (*c128)(std::complex<double>* y, const std::complex<double>* x, int64_t outer, const Taps& taps,
               int64_t inner);
  // Rounded and clamped; sums of numbers beyond all reason wrap.
  void (*bytes)(uint8_t* y, const uint8_t* x, int64_t outer, const ByteTaps& taps, int64_t inner);
};
namespace baseline {
extern const ResamplePasses resample_passes;
}
namespace avx2 {
extern const ResamplePasses resample_passes;
}

}  // namespace rl
