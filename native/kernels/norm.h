// Normalisation: values less their mean, over their standard deviation, and the gradient of that.
//
// Three ways lie in memory: rows (layer and rms norm: the normalised elements follow each other and each has
// a weight of its own), planes (batch and group norm of images: pieces of contiguous elements that share one
// weight) and columns (batch norm with the channel innermost). Sums are gathered in short chains and kept in
// double, so a mean of millions is accurate. `weight`, `bias` and statistics are of the compute type: float,
// or double for f64. `norm_loops` chooses the instruction set.
#pragma once
#include "kernels.h"

namespace rl {

struct NormRows {
  DType dtype;
  void *out, *mean, *rstd;        // mean is null if nothing is subtracted (rms norm)
  const void *x, *weight, *bias;  // weight and bias may be null
  int64_t n, groups;              // row r takes weights from (r % groups) * n
  double eps;
};

struct NormRowsBackward {
  DType dtype;
  void* dx;  // may be null
  const void *g, *x, *mean, *rstd, *weight;
  int64_t n, groups;
};

// `count` pieces of `n` contiguous elements, `stride` elements apart.
struct Pieces {
  int64_t count, stride, n;
};

struct NormLoops {
  void (*rows)(const NormRows& task, int64_t begin, int64_t end);
  // Adds the gradients of weight and bias (groups * n of the compute type each, or null) of these rows to dw
  // and db: of few rows at a time, as it adds without extra precision.
  void (*rows_backward)(const NormRowsBackward& task, int64_t begin, int64_t end, void* dw, void* db);

  // The mean, and the sum of squared distances from it.
  void (*moments)(DType dtype, const void* x, const Pieces& where, double* mean, double* squares);
  // out = (x - mean) * scale + shift
  void (*affine)(DType dtype, void* out, const void* x, const Pieces& where, double mean, double scale,
                 double shift);
  // Adds up g and g * (x - mean).
  void (*sums)(DType dtype, const void* g, const void* x, const Pieces& where, double mean, double* sum,
               double* product);
  // dx = a * g + b * (x - mean) + c
  void (*combine)(DType dtype, void* dx, const void* g, const void* x, const Pieces& where, double mean,
                  double a, double b, double c);

  // The same by columns begin..end of `rows` rows of `width` contiguous elements; results per column.
  void (*column_moments)(DType dtype, const void* x, int64_t rows, int64_t width, int64_t begin, int64_t end,
                         double* mean, double* squares);
  void (*column_sums)(DType dtype, const void* g, const void* x, int64_t rows, int64_t width, int64_t begin,
                      int64_t end, const double* mean, double* sum, double* product);
  // out = (x - mean) * scale + shift, and dx = a * g + b * (x - mean) + c, on the given rows; coefficients of
  // the compute type.
  void (*column_affine)(DType dtype, void* out, const void* x, int64_t width, int64_t begin, int64_t end,
                        const void* mean, const void* scale, const void* shift);
  void (*column_combine)(DType dtype, void* dx, const void* g, const void* x, int64_t width, int64_t begin,
                         int64_t end, const void* mean, const void* a, const void* b, const void* c);
};
namespace baseline {
extern const NormLoops norm_loops;
}
namespace avx2 {
extern const NormLoops norm_loops;
}

}  // namespace rl
