// Matrix products on matrices with any strides: gemm, batched gemm, matrix times vector, dot.
//
// All operands of a call have the one dtype given. `alpha` and `beta` point to a value of that dtype's
// compute type (float for Half and BFloat16). With beta == 0 the old contents of the result are not read.
// Integers wrap around. The result must not overlap the operands. Sizes have been checked by the caller;
// empty ones are fine.
#pragma once
#include "kernels.h"

namespace rl {

struct Matrix {
  void* data;
  int64_t rows, cols, row_stride, col_stride;  // strides in elements, never negative

  Matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

struct Vector {
  void* data;
  int64_t size, stride;
};

// c = alpha * a @ b + beta * c
void gemm(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const void* alpha,
          const void* beta);

// The same for every index of the leading dimensions, which are equal in the three spans (stride 0:
// broadcast). The last two dimensions are the matrix.
void batched_gemm(const Span& c, const Span& a, const Span& b, const void* alpha, const void* beta);

// y = alpha * a @ x + beta * y
void gemv(DType dtype, const Vector& y, const Matrix& a, const Vector& x, const void* alpha,
          const void* beta);

// *result = sum of x[i] * y[i], or of conj(x[i]) * y[i]; result is one element of dtype.
void dot(DType dtype, void* result, const Vector& x, const Vector& y, bool conjugate_x);

// Whether this many multiply-adds are worth releasing the GIL for.
inline bool is_long_product(double multiply_adds) { return multiply_adds > 100000; }

// The loops of our own, for what BLAS does not do (integers, half precision), does too slowly (tiny sizes),
// or is not there to do. One table per instruction set, see simd/matmul_vectors.h.
struct MatmulLoops {
  void (*gemm)(DType dtype, const Matrix& c, const Matrix& a, const Matrix& b, const void* alpha,
               const void* beta);
  void (*gemv)(DType dtype, const Vector& y, const Matrix& a, const Vector& x, const void* alpha,
               const void* beta);
  void (*dot)(DType dtype, void* result, const Vector& x, const Vector& y, bool conjugate_x);
  // Between f16/bf16 matrices and row-major float ones: to = from, and to = from + beta * to.
  void (*widen)(DType dtype, const Matrix& from, float* to);
  void (*narrow)(DType dtype, const Matrix& to, const float* from, float beta);
  // to (row-major, dense) = the transpose of a row-major matrix of f32 or f64 with leading dimension ld.
  void (*transpose)(DType dtype, const void* from, int64_t ld, int64_t rows, int64_t cols, void* to);
};
namespace baseline {
extern const MatmulLoops matmul_loops;
}
namespace avx2 {
extern const MatmulLoops matmul_loops;
}

}  // namespace rl
