// What the files of matrix products share: checks with torch's words, scalars, and operands ready for the
// kernels.
#pragma once
#include "../kernels/matmul.h"
#include "primitive.h"

namespace rl {

void check_writable(Tensor* out);  // elementwise_ops.cpp

// Which operands of a product are taken as their conjugate transpose; the payload of the mm, bmm and matmul
// family.
struct Form {
  bool adjoint_a, adjoint_b;
};

Tensor* tensor_argument(const Primitive& op, PyObject* const* args, int i);
void check_same_device(const Tensor* a, const Tensor* b);
[[noreturn]] void fail_product_shapes(int64_t m, int64_t k1, int64_t k2, int64_t n);
[[noreturn]] void fail_unsupported(const char* kernel, DType dtype);
void check_not_bool(const char* kernel, const Tensor* result, int64_t terms);
// Throws torch's error of a function that needs equal dtypes: "expected scalar type Float but found Double".
void check_scalar_type(const Tensor* a, const Tensor* b);

// What the products sum, which decides what their numbers alpha and beta are held against: the dtype that is
// computed in, for vectors the dtype itself. Without terms the result is input * beta, and torch multiplies;
// of a result without elements nothing is asked.
enum class Summed { matrices, vectors, no_terms, nothing };
inline Summed summed_terms(bool results, bool terms) {
  return !results ? Summed::nothing : !terms ? Summed::no_terms : Summed::matrices;
}

// alpha and beta in the compute type of a dtype.
struct Coefficients {
  alignas(16) char alpha[16], beta[16];
  bool beta_is_zero;

  explicit Coefficients(DType dtype, double beta = 0);
  Coefficients(DType dtype, PyObject* beta, PyObject* alpha, const char* function, Summed summed);
};

// The matrix in the last two dimensions of t, or its conjugate transpose; `hold` keeps a conjugated copy
// alive.
Matrix matrix_of(Tensor* t, bool adjoint, TensorRef& hold);
inline Vector vector_of(Tensor* t) { return {t->data(), t->size(0), t->stride(0)}; }

// t, or a copy of it where writing `out` would change it while it is read.
inline TensorRef apart_from(Tensor* t, Tensor* out) {
  return out && t->storage == out->storage ? clone(t) : share(t);
}

// Primitive::turned of a product of two matrices.
uint16_t turned_operands(PyObject* const* args);

// a @ b for operands of any dimensions, recorded; new reference; throws.
PyObject* matmul(Tensor* a, Tensor* b);
// linear(input, weight, bias or None), recorded; new reference; throws. Null where the bias is not one row or
// has to be added apart, which Python composes of other functions.
PyObject* linear(PyObject* const* args);

}  // namespace rl
