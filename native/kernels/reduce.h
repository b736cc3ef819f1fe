// Reductions and scans: many elements become one, along any set of dimensions.
//
// `reduce` is the entry point; `along` its sister for what keeps the size (running sums, softmax). Both look
// the loops up in the tables of the processor's instruction set and know themselves only how to walk over a
// geometry: read `ReduceKernel` to see what is left to a loop, then reduce.cpp for the walk.
#pragma once
#include "elementwise.h"

namespace rl {

enum class ReduceOp : uint8_t {
  sum,
  mean,
  nansum,
  prod,
  max,
  min,
  any,
  all,
  count_nonzero,
  var,
  std,
  norm,
  logsumexp,
  argmax,  // along one dimension; values too if wanted
  argmin,
};

struct ReduceParams {
  double p = 2;           // norm: which one
  double correction = 1;  // var, std: the divisor is count - correction, but at least 0
  int64_t count = 0;      // how many elements make one result; filled in by `reduce`
};

// Reduces `in` over the dimensions whose bits are set in `dims`. `out` has as many dimensions as `in`, of
// size 1 where reduced. Result types: int64 (or any other integer type) for sums, products of integers and
// counts; bool or uint8 for any and all; the real type for a norm or variance of complex numbers; int64 for
// argmax and argmin; else that of `in` (for floating sums any floating type). Nothing to reduce gives the
// neutral element; NaN for mean, var and std; for max, min and their indices the caller must have refused.
// argmax and argmin reduce exactly one dimension; `values`, if not null, receives the extreme elements
// themselves. The first of equal elements wins, the first NaN wins over everything. The work is divided by
// size alone, so the number of threads never changes a result. False if the operation is not defined for the
// type: max, nansum, var and logsumexp of complex numbers, mean, norm, var, and logsumexp of integers.
bool reduce(ReduceOp op, Span out, Span in, uint64_t dims, ReduceParams params = {},
            const Span* values = nullptr);

// Operations whose result has as many elements as their input, each depending on its whole line along a
// dimension.
enum class LineOp : uint8_t {
  cumsum,
  cumprod,
  logcumsumexp,
  logcumsumexp_backward,
  logcumsumexp_tangent,
  cummax,  // the last of equal elements wins, and so does the last NaN
  cummin,
  softmax,
  log_softmax,
  softmax_backward,
  log_softmax_backward,
};

// Runs `op` along `dim`. All operands have the same sizes, and their types are those of `in`, except that
// sums and products of integers are int64 and so are indices:
//   {out, in}              cumsum, cumprod, logcumsumexp, softmax, log_softmax
//   {values, indices, in}  cummax, cummin
//   {out, grad, result}    softmax_backward, log_softmax_backward
//   {out, grad, in, result}     logcumsumexp_backward: the sum of grad[i] * exp(in[k] - result[i]) over i >=
//   k {out, tangent, in, result}  logcumsumexp_tangent: the sum of tangent[k] * exp(in[k] - result[i]) over k
//   <= i
// False if the operation is not defined for the type: anything but sums and products of complex numbers and
// logcumsumexp itself, anything but sums, products and extremes of integers.
bool along(LineOp op, int dim, const Span* operands, int count);

// How one operation reduces one element type. An accumulator (acc_size bytes) holds a partial result;
// `base` is the position of x along the reduced dimension, for those who report positions.
struct ReduceKernel {
  int acc_size;
  bool positional;  // accumulators must be fed and combined in the order of positions
  void (*init)(void* acc, int64_t n);
  // n contiguous elements go into each of `count` accumulators; the next one's elements start `stride`
  // further on.
  void (*rows)(const void* x, int64_t count, int64_t stride, int64_t n, int64_t base, void* acc,
               const ReduceParams& params);
  // n rows of `width` contiguous elements, `stride` apart, go into `width` accumulators.
  void (*columns)(const void* x, int64_t n, int64_t stride, int64_t width, int64_t base, void* acc,
                  const ReduceParams& params);
  void (*combine)(void* acc, const void* other, int64_t n);
  // Writes n results, `stride` elements apart; `values` only if positional.
  void (*finish)(const void* acc, int64_t n, void* out, DType out_dtype, int64_t stride, void* values,
                 int64_t values_stride, const ReduceParams& params);
  int short_row = 5;  // the longest row of which many are sooner turned and reduced as columns
};

// `lines` independent lines of n elements. Element i of line j of operand k is data[k][i * step[k] + j *
// line[k]]. Where the lines lie side by side (line[k] is 1 for all k) the loop runs across them; there are at
// most LINES then.
using LineKernel = void (*)(void* const* data, const int64_t* step, const int64_t* line, int64_t n,
                            int64_t lines);
constexpr int64_t LINES = 256;

// Tables of one instruction set; null where undefined. Each of these lives in a file of its own below simd/,
// and RL_CHOOSE calls the one of the instruction set that `cpu_capability` names.
#define RL_REDUCE_TABLES                                                                \
  const ReduceKernel* sum_kernel(ReduceOp op, DType dtype, const ReduceParams& params); \
  const ReduceKernel* extreme_kernel(ReduceOp op, DType dtype, bool magnitudes);        \
  const ReduceKernel* moment_kernel(ReduceOp op, DType dtype);                          \
  const ReduceKernel* index_kernel(ReduceOp op, DType dtype);                           \
  LineKernel scan_kernel(LineOp op, DType dtype);                                       \
  LineKernel softmax_kernel(LineOp op, DType dtype);
namespace baseline {
RL_REDUCE_TABLES
}
#if RL_HAVE_AVX2
namespace avx2 {
RL_REDUCE_TABLES
}
#define RL_CHOOSE(function, ...) \
  (cpu_capability()[0] == 'A' ? avx2::function(__VA_ARGS__) : baseline::function(__VA_ARGS__))
#else
#define RL_CHOOSE(function, ...) baseline::function(__VA_ARGS__)
#endif

}  // namespace rl
