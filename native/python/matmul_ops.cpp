// The products themselves: mm, bmm, mv, dot, vdot, matmul, linear. Start at `matmul`, which picks one by
// dimensions.
//
// mm, bmm and matmul_nd come in three forms, plain, `_nh` (a @ b.mH) and `_hn` (a.mH @ b). Each one's
// derivatives are the other two, so backward makes no transposed views: the transposition is a stride for the
// kernel. The gradient of an operand that lies by columns is made by columns too, as torch does
// (`turned_operands`). linear is x @ weight.T + bias in one step, recorded as one node named as torch names
// what it computes there.
#include "matmul_ops.h"

#include <array>
#include <utility>

#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/modes.h"
#include "../tensor/iterate.h"
#include "devices.h"
#include "forwards.h"
#include "outputs.h"
#include "tensor_type.h"

namespace rl {

Tensor* tensor_argument(const Primitive& op, PyObject* const* args, int i) {
  if (!is_tensor(args[i])) {
    failf(PyExc_TypeError, "%s(): argument '%s' (position %d) must be Tensor, not %s", op.name.c_str(),
          op.args[size_t(i)].c_str(), i + 1, Py_TYPE(args[i])->tp_name);
  }
  return as_tensor(args[i]);
}

void check_same_device(const Tensor* a, const Tensor* b) {
  if (a->device() == b->device()) return;
  fail_devices(a->device(), b->device());
}

void fail_product_shapes(int64_t m, int64_t k1, int64_t k2, int64_t n) {
  failf(PyExc_RuntimeError, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
        (long long)m, (long long)k1, (long long)k2, (long long)n);
}

void fail_unsupported(const char* kernel, DType dtype) {
  failf(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", kernel, dtype_class_name(dtype));
}

// torch has no products of bools, but notices only when there is something to multiply.
void check_not_bool(const char* kernel, const Tensor* result, int64_t terms) {
  if (result->dtype == DType::b1 && result->numel && terms && !result->is_meta())
    fail_unsupported(kernel, result->dtype);
}

void check_scalar_type(const Tensor* a, const Tensor* b) {
  if (a->dtype == b->dtype) return;
  failf(PyExc_RuntimeError, "expected scalar type %s but found %s", dtype_class_name(a->dtype),
        dtype_class_name(b->dtype));
}

Coefficients::Coefficients(DType dtype, double beta_value) : beta_is_zero(beta_value == 0) {
  DType compute = dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
  visit(compute, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *reinterpret_cast<T*>(alpha) = T(1);
    *reinterpret_cast<T*>(beta) = T(beta_value);
  });
}

Coefficients::Coefficients(DType dtype, PyObject* beta_object, PyObject* alpha_object, const char* function,
                           Summed summed) {
  DType compute = dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
  auto store = [&](const Scalar& given, char* to) {
    if (summed == Summed::no_terms || summed == Summed::nothing) return given.store(compute, to);
    if (summed == Summed::vectors) store_checked(given, dtype, to);
    store_checked(given, compute, to);
  };
  store(scalar_argument(alpha_object, function, "alpha"), alpha);
  Scalar given = scalar_argument(beta_object, function, "beta");
  store(given, beta);
  beta_is_zero = given.real_value() == 0 && given.imag == 0;
  if (summed != Summed::no_terms || beta_is_zero) return;
  Promotion promotion;
  promotion.dims = int(dtype);
  promotion.add(given);
  DType product = promotion.result();
  if (!can_cast(product, dtype)) {
    failf(PyExc_RuntimeError, "result type %s can't be cast to the desired output type %s",
          dtype_class_name(product), dtype_class_name(dtype));
  }
}

namespace {

void check_mm_dtypes(const Tensor* a, const Tensor* b) {
  if (a->dtype != b->dtype) {
    failf(PyExc_RuntimeError, "expected m1 and m2 to have the same dtype, but got: %s != %s",
          dtype_cpp_name(a->dtype), dtype_cpp_name(b->dtype));
  }
}

// Torch multiplies batches of small matrices itself and leaves larger ones to a library or to addmm, each of
// which asks for the dtypes in words of its own.
bool is_small_product(int64_t m, int64_t k, int64_t n) { return double(m) * double(k) * double(n) < 400; }
void check_bmm_dtypes(const Tensor* a, const Tensor* b, bool small) {
  if (a->dtype == b->dtype) return;
  if (small && a->dtype == DType::b1) fail_unsupported("bmm", a->dtype);
  if (small) return check_scalar_type(a, b);
  bool in_library = b->dtype == DType::f32 || b->dtype == DType::f64 || is_complex(b->dtype);
  in_library ? check_scalar_type(b, a) : check_mm_dtypes(a, b);
}

TensorRef conjugated(Tensor* t) {
  TensorRef copy = clone(t);
  // A clone is dense, so its elements can be visited in the order of memory.
  if (t->dtype == DType::c64) {
    for (int64_t i = 0; i < copy->numel; i++) copy->data_as<float>()[2 * i + 1] *= -1;
  } else {
    for (int64_t i = 0; i < copy->numel; i++) copy->data_as<double>()[2 * i + 1] *= -1;
  }
  return copy;
}

// Releases the GIL while a product of this many multiply-adds runs.
class ProductNoGil : MaybeNoGil {
 public:
  explicit ProductNoGil(double multiply_adds) : MaybeNoGil(is_long_product(multiply_adds) ? INT64_MAX : 0) {}
};

}  // namespace

Matrix matrix_of(Tensor* t, bool adjoint, TensorRef& hold) {
  if (adjoint && is_complex(t->dtype)) {
    hold = conjugated(t);
    t = hold.get();
  }
  int d = t->ndim - 2;
  Matrix m{t->data(), t->size(d), t->size(d + 1), t->stride(d), t->stride(d + 1)};
  return adjoint ? m.transposed() : m;
}

namespace {

PyObject* mm_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *a = tensor_argument(op, args, 0), *b = tensor_argument(op, args, 1);
  auto& form = *static_cast<const Form*>(op.payload);
  if (a->ndim != 2) fail(PyExc_RuntimeError, "self must be a matrix");
  if (b->ndim != 2) fail(PyExc_RuntimeError, "mat2 must be a matrix");
  check_same_device(a, b);
  int64_t m = a->size(form.adjoint_a), k = a->size(!form.adjoint_a);
  int64_t n = b->size(!form.adjoint_b), terms = b->size(form.adjoint_b);
  if (k != terms) fail_product_shapes(m, k, terms, n);
  check_mm_dtypes(a, b);
  int64_t sizes[] = {m, n};
  TensorRef result = result_in(out, sizes, a->dtype, a->device());
  check_not_bool("addmm_impl_cpu_", result.get(), k);
  if (a->is_meta()) return result.release_object();
  TensorRef hold_a, hold_b;
  Matrix ma = matrix_of(a, form.adjoint_a, hold_a), mb = matrix_of(b, form.adjoint_b, hold_b);
  Coefficients one(a->dtype);
  ProductNoGil release(double(m) * double(n) * double(k));
  gemm(a->dtype, {result->data(), m, n, n, 1}, ma, mb, one.alpha, one.beta);
  return result.release_object();
}

// One of three operands of a batched product: the geometry it is read or written with.
struct Batched {
  int ndim = 0;
  int64_t sizes[MAX_DIMS + 2], strides[MAX_DIMS + 2];
  void* data = nullptr;
  Span span(DType dtype) const { return {data, dtype, ndim, sizes, strides}; }
};

// t's leading dimensions broadcast to `batch`, then the matrix.
Batched batched_operand(const Tensor* t, int matrix_dims, Sizes batch, const Matrix& m) {
  Batched result;
  int leading = t->ndim - matrix_dims, missing = int(batch.size()) - leading;
  for (int d = 0; d < int(batch.size()); d++) {
    int own = d - missing;
    result.sizes[d] = batch[size_t(d)];
    result.strides[d] = own < 0 || t->size(own) == 1 ? 0 : t->stride(own);
  }
  int n = int(batch.size());
  result.ndim = n + 2;
  result.sizes[n] = m.rows, result.sizes[n + 1] = m.cols;
  result.strides[n] = m.row_stride, result.strides[n + 1] = m.col_stride;
  result.data = m.data;
  return result;
}

void multiply_batches(Tensor* result, Sizes batch, const Batched& a, const Batched& b,
                      const Coefficients& factors) {
  int n = int(batch.size());
  int64_t rows = a.sizes[n], cols = b.sizes[n + 1], k = a.sizes[n + 1];
  Batched c;
  c.ndim = n + 2;
  std::copy(batch.begin(), batch.end(), c.sizes);
  c.sizes[n] = rows, c.sizes[n + 1] = cols;
  contiguous_strides({c.sizes, size_t(c.ndim)}, c.strides);
  c.data = result->data();
  ProductNoGil release(double(result->numel) * double(k));
  batched_gemm(c.span(result->dtype), a.span(result->dtype), b.span(result->dtype), factors.alpha,
               factors.beta);
}

PyObject* bmm_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *a = tensor_argument(op, args, 0), *b = tensor_argument(op, args, 1);
  auto& form = *static_cast<const Form*>(op.payload);
  if (a->ndim != 3) fail(PyExc_RuntimeError, "batch1 must be a 3D tensor");
  if (b->ndim != 3) fail(PyExc_RuntimeError, "batch2 must be a 3D tensor");
  check_same_device(a, b);
  int64_t batch = a->size(0), m = a->size(1 + form.adjoint_a), k = a->size(2 - form.adjoint_a);
  int64_t terms = b->size(1 + form.adjoint_b), n = b->size(2 - form.adjoint_b);
  if (b->size(0) != batch || terms != k) {
    failf(
        PyExc_RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
        (long long)batch, (long long)k, (long long)b->size(0), (long long)terms);
  }
  bool small = is_small_product(m, k, n);
  check_bmm_dtypes(a, b, small);
  int64_t sizes[] = {batch, m, n};
  TensorRef result = result_in(out, sizes, a->dtype, a->device());
  check_not_bool(small ? "bmm" : "addmm_impl_cpu_", result.get(), k);
  if (a->is_meta()) return result.release_object();
  TensorRef hold_a, hold_b;
  Matrix ma = matrix_of(a, form.adjoint_a, hold_a), mb = matrix_of(b, form.adjoint_b, hold_b);
  Sizes leading(sizes, 1);
  multiply_batches(result.get(), leading, batched_operand(hold_a ? hold_a.get() : a, 2, leading, ma),
                   batched_operand(hold_b ? hold_b.get() : b, 2, leading, mb), Coefficients(a->dtype));
  return result.release_object();
}

// Whether torch computes the product of `large` and a matrix or vector as one over all rows (mm or mv), not
// as a batch (bmm): that decides which words its errors have. The rows of `large` must follow one another in
// memory, unless `small` requires grad; a matrix in front of `large` is never folded.
bool torch_folds(const Tensor* large, const Tensor* small, bool transposed) {
  if (small->ndim > 2) return false;
  if (shows_requires_grad(small)) return true;
  if (transposed && small->ndim == 2) return false;
  if (large->numel == 0) return true;
  int last = large->ndim - 1;
  auto dim = [&](int d) { return transposed && d == last - 1 ? last : d; };
  for (int d = 0; d < last - 1; d++) {
    if (large->stride(d) != large->stride(dim(d + 1)) * large->size(dim(d + 1))) return false;
  }
  return true;
}

bool torch_folds(const Tensor* a, const Tensor* b) {
  return a->ndim > b->ndim ? torch_folds(a, b, false) : torch_folds(b, a, true);
}

[[noreturn]] void fail_matmul_shapes(Tensor* a, Tensor* b, int64_t m, int64_t k, int64_t terms, int64_t n,
                                     const Shape& batch) {
  auto rows = [](Tensor* t, int64_t last) {
    for (int d = 0; d < t->ndim - 2; d++) last *= t->size(d);
    return (long long)last;
  };
  if (torch_folds(a, b)) {
    if (a->ndim == 1 || b->ndim == 1) {
      long long count = b->ndim == 1 ? rows(a, m) : rows(b, n);
      long long inner = b->ndim == 1 ? k : terms, vector = b->ndim == 1 ? terms : k;
      failf(PyExc_RuntimeError, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)", count, count,
            inner, vector);
    }
    if (b->ndim == 2) fail_product_shapes(rows(a, m), k, terms, n);
    fail_product_shapes(rows(b, n), terms, k, m);
  }
  long long count = 1;
  for (int d = 0; d < batch.ndim; d++) count *= batch.sizes[d];
  failf(PyExc_RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
        count, (long long)k, count, (long long)terms);
}

[[noreturn]] void fail_vector_dtypes(const Tensor* mat, const Tensor* vec) {
  failf(PyExc_RuntimeError, "addmv input tensors must have the same dtype, but got %s, %s, and %s",
        dtype_class_name(vec->dtype), dtype_class_name(mat->dtype), dtype_class_name(vec->dtype));
}

// Whether dimensions, given from the last to the first, are one without a copy.
struct Joined {
  bool lies = true;
  int64_t step = -1;
  void add(int64_t size, int64_t stride) {
    if (size == 1) return;
    lies = lies && (step < 0 || stride == step);
    step = stride * size;
  }
};

// Whether all dimensions but the last are one without a copy; of the transposed matrices, if `turned`.
bool lies_in_rows(const Tensor* t, bool turned = false) {
  Joined rows;
  if (turned) rows.add(t->size(t->ndim - 1), t->stride(t->ndim - 1));
  for (int d = t->ndim - 2 - turned; d >= 0; d--) rows.add(t->size(d), t->stride(d));
  return rows.lies;
}

// A batch that is multiplied by one matrix, as it is read: where it lies, however it is strided; but a copy
// takes less than many products of few rows (256 of 2 x 512 by 512 x 512: 16 to 2 ms).
TensorRef to_multiply(Tensor* x) {
  constexpr int64_t FEW_ROWS = 128;
  bool copies = x->ndim > 2 && !x->is_meta() && x->size(x->ndim - 2) < FEW_ROWS && !lies_in_rows(x);
  return copies ? contiguous(x) : share(x);
}

// Products where an operand has more than two dimensions; a vector counts as one row of a or one column of b.
PyObject* matmul_nd_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *a = tensor_argument(op, args, 0), *b = tensor_argument(op, args, 1);
  auto& form = *static_cast<const Form*>(op.payload);
  check_same_device(a, b);
  // Also a saved operand may be given other memory, of other dimensions, before the derivative is computed.
  if (!a->ndim || !b->ndim) {
    failf(PyExc_RuntimeError, "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
          a->ndim, b->ndim);
  }
  bool folds = torch_folds(a, b), vector = a->ndim == 1 || b->ndim == 1;
  TensorRef read = b->ndim == 2 && !form.adjoint_a ? to_multiply(a) : share(a);
  Tensor* given = std::exchange(a, read.get());
  auto dims = [](Tensor* t) { return t->ndim == 1 ? 1 : 2; };
  Shape batch;
  batch.assign(a->sizes().first(size_t(a->ndim - dims(a))));
  broadcast_into(batch, b->sizes().first(size_t(b->ndim - dims(b))));
  TensorRef hold_a, hold_b;
  auto matrix = [](Tensor* t, bool adjoint, bool row, TensorRef& hold) {
    if (t->ndim > 1) {
      if (t->is_meta()) {
        Matrix m{nullptr, t->size(t->ndim - 2), t->size(t->ndim - 1), 0, 0};
        return adjoint ? m.transposed() : m;
      }
      return matrix_of(t, adjoint, hold);
    }
    Matrix m{t->is_meta() ? nullptr : t->data(), 1, t->size(0), 1, t->stride(0)};
    return row ? m : m.transposed();
  };
  Matrix ma = matrix(a, form.adjoint_a, true, hold_a), mb = matrix(b, form.adjoint_b, false, hold_b);
  if (ma.cols != mb.rows) fail_matmul_shapes(given, b, ma.rows, ma.cols, mb.rows, mb.cols, batch);
  if (a->dtype != b->dtype) {
    if (folds && vector) fail_vector_dtypes(a->ndim == 1 ? b : a, a->ndim == 1 ? a : b);
    if (folds) check_mm_dtypes(b->ndim == 2 ? a : b, b->ndim == 2 ? b : a);
    check_bmm_dtypes(a, b, is_small_product(ma.rows, ma.cols, mb.cols));
  }
  Shape shape = batch;
  if (a->ndim > 1) shape.append(ma.rows);
  if (b->ndim > 1) shape.append(mb.cols);
  TensorRef result = result_in(out, shape, a->dtype, a->device());
  bool apart = !folds && is_small_product(ma.rows, ma.cols, mb.cols);
  const char* kernel = apart ? "bmm" : folds && vector ? "addmv_impl_cpu" : "addmm_impl_cpu_";
  check_not_bool(kernel, result.get(), ma.cols);
  if (a->is_meta()) return result.release_object();
  multiply_batches(result.get(), batch, batched_operand(hold_a ? hold_a.get() : a, dims(a), batch, ma),
                   batched_operand(hold_b ? hold_b.get() : b, dims(b), batch, mb), Coefficients(a->dtype));
  return result.release_object();
}

// The product turned round, where it has one row or column or no elements: it lies in memory as that does.
PyObject* matmul_turned_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Ref<PyObject> result(matmul_nd_forward(op, args, nullptr));
  Tensor* t = as_tensor(result.get());
  Shape shape;
  shape.assign(t->sizes());
  if (shape.ndim < 2) fail(PyExc_RuntimeError, "matmul_turned: matrices expected");
  int64_t &rows = shape.sizes[shape.ndim - 2], &columns = shape.sizes[shape.ndim - 1];
  if (t->numel && rows != 1 && columns != 1)
    fail(PyExc_RuntimeError, "matmul_turned: a row or column expected");
  std::swap(rows, columns);
  int64_t strides[MAX_DIMS];
  contiguous_strides(shape, strides);
  set_geometry(t, shape, {strides, size_t(shape.ndim)});
  return result.release();
}

TensorRef multiply_vector(Tensor* mat, Tensor* vec, bool transposed) {
  int64_t rows = mat->size(transposed), cols = mat->size(!transposed);
  if (mat->dtype != vec->dtype) fail_vector_dtypes(mat, vec);
  TensorRef result = new_tensor({&rows, 1}, mat->dtype, mat->device());
  check_not_bool(transposed ? "addmm_impl_cpu_" : "addmv_impl_cpu", result.get(), cols);
  if (mat->is_meta()) return result;
  Matrix m{mat->data(), mat->size(0), mat->size(1), mat->stride(0), mat->stride(1)};
  Coefficients one(mat->dtype);
  ProductNoGil release(double(rows) * double(cols));
  gemv(mat->dtype, vector_of(result.get()), transposed ? m.transposed() : m, vector_of(vec), one.alpha,
       one.beta);
  return result;
}

PyObject* mv_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *mat = tensor_argument(op, args, 0), *vec = tensor_argument(op, args, 1);
  if (mat->ndim != 2 || vec->ndim != 1) {
    if (mat->ndim == 0) fail(PyExc_IndexError, "Dimension specified as 0 but tensor has no dimensions");
    failf(PyExc_RuntimeError, "vector + matrix @ vector expected, got 1, %d, %d", mat->ndim, vec->ndim);
  }
  check_same_device(mat, vec);
  if (mat->size(1) != vec->size(0)) {
    failf(PyExc_RuntimeError, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
          (long long)mat->size(0), (long long)mat->size(0), (long long)mat->size(1), (long long)vec->size(0));
  }
  return multiply_vector(mat, vec, false).release_object();
}

// vecmat(a, b): a vector times a matrix.
PyObject* vecmat_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *a = tensor_argument(op, args, 0), *b = tensor_argument(op, args, 1);
  check_same_device(a, b);
  if (a->ndim != 1 || b->ndim != 2)
    failf(PyExc_RuntimeError, "vector @ matrix expected, got %dD and %dD tensors", a->ndim, b->ndim);
  if (a->size(0) != b->size(0)) fail_product_shapes(1, a->size(0), b->size(0), b->size(1));
  check_mm_dtypes(a, b);
  TensorRef result = multiply_vector(b, a, true);
  result->storage->version = 1;  // torch squeezes the row in place
  return result.release_object();
}

PyObject* dot_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *a = tensor_argument(op, args, 0), *b = tensor_argument(op, args, 1);
  auto& form = *static_cast<const Form*>(op.payload);
  if (a->ndim != 1 || b->ndim != 1) {
    failf(PyExc_RuntimeError, "1D tensors expected, but got %dD and %dD tensors", a->ndim, b->ndim);
  }
  check_same_device(a, b);
  if (a->dtype != b->dtype) {
    failf(PyExc_RuntimeError, "dot : expected both vectors to have same dtype, but found %s and %s",
          dtype_class_name(a->dtype), dtype_class_name(b->dtype));
  }
  if (a->numel != b->numel) {
    failf(PyExc_RuntimeError,
          "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of "
          "elements, but "
          "got %lld and %lld elements respectively",
          (long long)a->numel, (long long)b->numel, (long long)a->numel, (long long)b->numel);
  }
  if (a->dtype == DType::b1) fail_unsupported("dot", a->dtype);
  TensorRef result = new_tensor({}, a->dtype, a->device());
  if (a->is_meta()) return result.release_object();
  ProductNoGil release(double(a->numel));
  dot(a->dtype, result->data(), vector_of(a), vector_of(b), form.adjoint_a);
  return result.release_object();
}

void check_linear_dtypes(const Tensor* bias, const Tensor* x, const Tensor* weight) {
  if (bias->dtype != weight->dtype) {
    failf(PyExc_RuntimeError, "self and mat2 must have the same dtype, but got %s and %s",
          dtype_class_name(bias->dtype), dtype_class_name(weight->dtype));
  }
  if (x->dtype != weight->dtype) {
    failf(PyExc_RuntimeError, "mat1 and mat2 must have the same dtype, but got %s and %s",
          dtype_class_name(x->dtype), dtype_class_name(weight->dtype));
  }
}

// linear(bias, x, weight) of matrices, and linear(x, weight): there x may have any number of dimensions from
// one.
PyObject* linear_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  bool biased = op.input_count == 3;
  Tensor* bias = biased ? tensor_argument(op, args, 0) : nullptr;
  Tensor *x = tensor_argument(op, args, biased), *weight = tensor_argument(op, args, biased + 1);
  check_same_device(x, weight);
  if (biased) check_same_device(x, bias);
  if (!x->ndim || weight->ndim != 2 || (biased && bias->ndim != 1)) {
    failf(PyExc_RuntimeError, "linear: a matrix of weights and a vector of biases expected, got %dD and %dD",
          weight->ndim, biased ? bias->ndim : 1);
  }
  int64_t k = x->size(x->ndim - 1), n = weight->size(0), rows = 1;
  for (int d = 0; d < x->ndim - 1; d++) rows *= x->size(d);
  bool fits = k == weight->size(1);
  if (!fits && x->ndim > 2 && !torch_folds(x, weight, false)) {
    long long count = rows / std::max<int64_t>(x->size(x->ndim - 2), 1);
    failf(
        PyExc_RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
        count, (long long)k, count, (long long)weight->size(1));
  }
  if (!biased) {
    if (!fits) fail_product_shapes(rows, k, weight->size(1), n);
    check_mm_dtypes(x, weight);
  } else {
    check_linear_dtypes(bias, x, weight);
  }
  if (!fits) fail_product_shapes(rows, k, weight->size(1), n);
  if (biased && bias->size(0) != n) {
    failf(PyExc_RuntimeError,
          "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
          "dimension 1.  "
          "Target sizes: [%lld, %lld].  Tensor sizes: [%lld]",
          (long long)n, (long long)bias->size(0), (long long)rows, (long long)n, (long long)bias->size(0));
  }
  Shape shape;
  shape.assign(x->sizes());
  shape.sizes[shape.ndim - 1] = n;
  TensorRef result = new_tensor(shape, x->dtype, x->device());
  check_not_bool("addmm_impl_cpu_", result.get(), k);
  if (x->is_meta()) return result.release_object();
  size_t row_bytes = size_t(n) * size_t(x->itemsize());
  if (biased && rows && n) {
    TensorRef dense = contiguous(bias);
    char* to = result->data();
    for (int64_t i = 0; i < rows; i++) std::memcpy(to + size_t(i) * row_bytes, dense->data(), row_bytes);
  }
  // All leading dimensions but the last are the batch.
  TensorRef read = to_multiply(x);
  x = read.get();
  int lead = std::max(0, x->ndim - 2);
  Matrix mx{x->data(), x->ndim > 1 ? x->size(lead) : 1, k, x->ndim > 1 ? x->stride(lead) : k,
            x->stride(x->ndim - 1)};
  Matrix mw{weight->data(), k, n, weight->stride(1), weight->stride(0)};
  Sizes batch = x->sizes().first(size_t(lead));
  Coefficients factors(x->dtype, biased ? 1 : 0);
  if (!lead) {
    ProductNoGil release(double(result->numel) * double(k));
    gemm(x->dtype, {result->data(), mx.rows, n, n, 1}, mx, mw, factors.alpha, factors.beta);
    return result.release_object();
  }
  multiply_batches(result.get(), batch, batched_operand(x, x->ndim - lead, batch, mx),
                   batched_operand(weight, 2, batch, mw), factors);
  return result.release_object();
}

// torch multiplies the rows of x in one product by a matrix that requires grad, and keeps them for its
// gradient: a copy where they are not one matrix in memory, so that x may be written. The gradient would copy
// them else. Who looks on is shown torch's steps.
TensorRef in_rows(Tensor* x, const Tensor* matrix) {
  if (!matrix->requires_grad() || !recording() || asks_dispatch(x) || asks_dispatch(matrix) || !x->numel ||
      lies_in_rows(x))
    return share(x);
  static Primitive& copy = primitive("rows_copy");
  return call_on(copy, x);
}

// Where both are batches of matrices and one is a batch of one that requires grad, torch multiplies by its
// matrix. What it folds are the rows of `a`, or the columns of `b`; else it repeats both for each other's
// batch.
uint16_t copied_operands(PyObject* const* args) {
  const Tensor *a = as_tensor(args[0]), *b = as_tensor(args[1]);
  if (!a->numel || !b->numel) return 0;
  bool batches = a->ndim == 3 && b->ndim == 3 && a->size(0) != b->size(0);
  bool one_b = batches && b->size(0) == 1 && b->requires_grad();
  bool one_a = batches && a->size(0) == 1 && a->requires_grad();
  if (one_a || one_b || ((a->ndim < 3 || b->ndim < 3) && torch_folds(a, b))) {
    bool first = batches ? one_b : a->ndim > b->ndim;
    if (first) return uint16_t(!lies_in_rows(a));
    return uint16_t(!lies_in_rows(b, true) << 1);
  }
  uint16_t copied = 0;
  for (int i = 0; i < 2; i++) {
    const Tensor *own = i ? b : a, *other = i ? a : b;
    Joined batch;
    for (int d = -3; d >= -std::max(own->ndim, other->ndim); d--) {
      int at = own->ndim + d, beside = other->ndim + d;
      int64_t size = at < 0 ? 1 : own->size(at);
      batch.add(size == 1 && beside >= 0 ? other->size(beside) : size, size == 1 ? 0 : own->stride(at));
    }
    if (!batch.lies) copied |= uint16_t(1 << i);
  }
  return copied;
}

// Whether t is the transpose of a contiguous matrix, or its rows are if it has more dimensions.
bool rows_lie_by_columns(const Tensor* t) {
  if (t->ndim < 2 || !lies_in_rows(t)) return false;
  int64_t rows = 1, step = 1;
  for (int d = 0; d < t->ndim - 1; d++) {
    rows *= t->size(d);
    if (t->size(d) != 1) step = t->stride(d);
  }
  if (t->ndim == 2) step = t->stride(0);
  return step == 1 && t->stride(t->ndim - 1) == rows;
}

}  // namespace

// For mm, matmul_nd and vecmat. A batch behind a matrix or vector is multiplied turned in torch, and so lies
// its gradient.
uint16_t turned_operands(PyObject* const* args) {
  if (!is_tensor(args[0]) || !is_tensor(args[1])) return 0;
  const Tensor *a = as_tensor(args[0]), *b = as_tensor(args[1]);
  if (!a->ndim || !b->ndim) return 0;
  if (b->ndim == 2 && (a->ndim <= 2 || torch_folds(a, b)))
    return uint16_t(rows_lie_by_columns(a) | rows_lie_by_columns(b) << 1);
  return uint16_t(b->ndim > 2 && a->ndim < 3 && torch_folds(a, b) ? 2 : 0);
}

namespace {

// For linear(x, weight), which in torch multiplies by the transpose of the weight: where that does not lie by
// columns, the gradient of the weight does.
uint16_t turned_in_linear(PyObject* const* args) {
  if (!is_tensor(args[0]) || !is_tensor(args[1])) return 0;
  const Tensor *x = as_tensor(args[0]), *weight = as_tensor(args[1]);
  if (!x->ndim || weight->ndim != 2 || (x->ndim > 2 && !torch_folds(x, weight, false))) return 0;
  bool plain = weight->stride(1) == 1 && weight->stride(0) == weight->size(1);
  return uint16_t(rows_lie_by_columns(x) | !plain << 1);
}

struct Products {
  Primitive *mm, *mv, *vecmat, *dot, *matmul_nd, *matmul_turned;
  Primitive *linear, *linear_unbiased, *linear_nd_unbiased;
} products;

PyObject* py_matmul(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) failf(PyExc_TypeError, "matmul() takes 2 positional arguments but %zd were given", n);
    static const char* names[] = {"input", "other"};
    for (int i = 0; i < 2; i++) {
      if (!is_tensor(args[i])) {
        failf(PyExc_TypeError, "matmul(): argument '%s' (position %d) must be Tensor, not %s", names[i],
              i + 1, Py_TYPE(args[i])->tp_name);
      }
    }
    return matmul(as_tensor(args[0]), as_tensor(args[1]));
  });
}

bool lies_densely(const Tensor* t) { return contiguous_flags(t->sizes(), t->strides()) != 0; }

Ref<PyObject> viewed(PyObject* t, Sizes sizes) {
  static Primitive& view = primitive("view");
  Ref<PyObject> size(size_object(sizes));
  PyObject* args[] = {t, size.get()};
  return checked(call(view, args));
}

}  // namespace

PyObject* linear(PyObject* const* args) {
  static const char* names[] = {"input", "weight", "bias"};
  for (int i = 0; i < 3; i++) {
    if (is_tensor(args[i]) || (i == 2 && args[i] == Py_None)) continue;
    failf(PyExc_TypeError, "linear(): argument '%s' (position %d) must be Tensor, not %s", names[i], i + 1,
          Py_TYPE(args[i])->tp_name);
  }
  Tensor *x = as_tensor(args[0]), *weight = as_tensor(args[1]);
  Tensor* bias = args[2] == Py_None ? nullptr : as_tensor(args[2]);
  if (x->ndim == 0 || weight->ndim == 0) {
    failf(PyExc_RuntimeError, "both arguments to linear need to be at least 1D, but they are %dD and %dD",
          x->ndim, weight->ndim);
  }
  if (weight->ndim > 2) {
    failf(PyExc_RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is %dD", weight->ndim);
  }
  if (weight->ndim == 1) {
    if (bias) {
      check_linear_dtypes(bias, x, weight);
      if (x->ndim == 2 || bias->ndim > 0) fail(PyExc_RuntimeError, "mat2 must be a matrix, got 1-D tensor");
      return nullptr;
    }
    static Primitive& turned = primitive("t");
    return matmul(x, call_on(turned, weight).get());
  }
  if (!bias && x->ndim == 1) {  // in torch a row, whose dimension is taken off again
    uint64_t since = next_node_number();
    Ref<PyObject> result = checked(call(*products.linear_nd_unbiased, args));
    name_nodes(result.get(), "SqueezeBackward4", since, nullptr);
    if (is_tensor(result.get())) as_tensor(result.get())->storage->version = 1;
    return result.release();
  }
  if (!bias) {
    if (x->ndim == 2) return call(*products.linear_unbiased, args);
    TensorRef rows = in_rows(x, weight);
    PyObject* given[] = {rows->object(), args[1]};
    return call(*products.linear_nd_unbiased, given);
  }
  if (bias->ndim != 1 || (bias->size(0) == 1 && weight->size(0) != 1)) return nullptr;
  PyObject* reordered[] = {args[2], args[0], args[1]};
  if (x->ndim == 2) return call(*products.linear, reordered);
  // As in torch a view of what is added to the rows, where they and the bias lie one after the other.
  if (!lies_densely(x) || !lies_densely(bias)) return nullptr;
  Shape shape;
  shape.assign(x->sizes());
  shape.sizes[shape.ndim - 1] = weight->size(0);
  int64_t k = x->size(x->ndim - 1), count = 1;
  for (int d = 0; d < x->ndim - 1; d++) count *= x->size(d);
  Ref<PyObject> rows = viewed(args[0], std::array{count, k});
  reordered[1] = rows.get();
  return viewed(checked(call(*products.linear, reordered)).get(), shape).release();
}

namespace {

PyObject* py_linear(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3) failf(PyExc_TypeError, "linear() takes 3 positional arguments but %zd were given", n);
    PyObject* result = linear(args);
    return result || PyErr_Occurred() ? result : Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"matmul", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_matmul)), METH_FASTCALL,
     "matmul(input, other): the product torch.matmul defines, by the operands' dimensions."},
    {"linear", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_linear)), METH_FASTCALL,
     "linear(input, weight, bias): input @ weight.T + bias, or None if bias has to be broadcast otherwise."},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  constexpr uint16_t FOLLOWS_FIRST = Primitive::FOLLOWS_FIRST, WRITES_OUT = Primitive::WRITES_OUT;
  static const Form plain{false, false}, nh{false, true}, hn{true, false};
  products.mm = &define("mm(input, mat2)", mm_forward, FOLLOWS_FIRST | WRITES_OUT, &plain);
  // What einsum multiplies: of two matrices torch makes a batch of one.
  define("einsum_mm(input, mat2)", mm_forward, FOLLOWS_FIRST, &plain);
  define("einsum_bmm(input, mat2)", bmm_forward, FOLLOWS_FIRST, &plain);
  define("mm_nh(a, b)", mm_forward, 0, &nh);
  define("mm_hn(a, b)", mm_forward, 0, &hn);
  define("bmm(input, mat2)", bmm_forward, FOLLOWS_FIRST | WRITES_OUT, &plain);
  define("bmm_nh(a, b)", bmm_forward, 0, &nh);
  define("bmm_hn(a, b)", bmm_forward, 0, &hn);
  products.matmul_nd = &define("matmul_nd(a, b)", matmul_nd_forward, FOLLOWS_FIRST | WRITES_OUT, &plain);
  products.matmul_turned = &define("matmul_turned(a, b)", matmul_turned_forward, FOLLOWS_FIRST, &plain);
  for (Primitive* op : {products.matmul_nd, products.matmul_turned}) op->copied = copied_operands;
  define("matmul_nd_nh(a, b)", matmul_nd_forward, 0, &nh);
  define("matmul_nd_hn(a, b)", matmul_nd_forward, 0, &hn);
  products.mv = &define("mv(input, vec)", mv_forward);
  products.vecmat = &define("vecmat(a, b)", vecmat_forward, FOLLOWS_FIRST);
  products.dot = &define("dot(input, tensor)", dot_forward, 0, &plain);
  define("vdot(input, other)", dot_forward, 0, &hn);
  products.linear = &define("linear(bias, x, weight)", linear_forward, Primitive::KEEPS_WEIGHT);
  products.linear_unbiased =
      &define("linear_unbiased(x, weight)", linear_forward, FOLLOWS_FIRST | Primitive::KEEPS_WEIGHT);
  products.linear_nd_unbiased =
      &define("linear_nd_unbiased(x, weight)", linear_forward, FOLLOWS_FIRST | Primitive::KEEPS_WEIGHT);
  products.mm->turned = products.matmul_nd->turned = products.vecmat->turned = turned_operands;
  products.linear->turned = [](PyObject* const* args) { return uint16_t(turned_in_linear(args + 1) << 1); };
  products.linear_unbiased->turned = products.linear_nd_unbiased->turned = turned_in_linear;
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
});

// Whether torch multiplies the columns of b by the matrix a, which requires grad, and lays the result out in
// rows by a copy: its node is that of the copy.
bool turns_result(const Tensor* a, const Tensor* b) {
  if (a->ndim < 2 || b->ndim < 3 || !shows_requires_grad(a)) return false;
  return a->ndim == 2 || (a->ndim == 3 && b->ndim == 3 && a->size(0) == 1 && b->size(0) != 1);
}

// One row or column, or nothing, needs no copy: the result is a view of the product as it lies then.
bool lies_turned(const Tensor* a, const Tensor* b) {
  bool plain = Py_TYPE(a) == TensorType || Py_TYPE(a) == ParameterType;
  if (!plain || !is_plain_tensor(const_cast<Tensor*>(b)->object())) return false;
  if (a->size(a->ndim - 2) == 1 || b->size(b->ndim - 1) == 1) return true;
  // Of a sum of nothing there are as many elements as of any other.
  for (int d = 0; d < a->ndim - 1; d++)
    if (!a->size(d)) return true;
  for (int d = 0; d < b->ndim; d++)
    if (!b->size(d) && d != b->ndim - 2) return true;
  return false;
}

}  // namespace

PyObject* matmul(Tensor* a, Tensor* b) {
  PyObject* args[] = {a->object(), b->object()};
  if (a->ndim == 2 && b->ndim == 2) return call(*products.mm, args);
  if (a->ndim > 2 || b->ndim > 2 || !a->ndim || !b->ndim) {
    bool turns = turns_result(a, b);
    if (turns && lies_turned(a, b)) {
      if (Ref<PyObject> result = taken_apart(*products.matmul_nd, args)) return result.release();
      static Primitive& transpose = primitive("transpose");
      static PyObject *before_last = PyLong_FromLong(-2), *last = PyLong_FromLong(-1);
      Ref<PyObject> product = checked(call(*products.matmul_turned, args));
      PyObject* turning[] = {product.get(), before_last, last};
      return call(transpose, turning);
    }
    TensorRef rows = a->ndim > 2 && b->ndim && b->ndim <= 2 ? in_rows(a, b) : share(a);
    args[0] = rows->object();
    uint64_t since = next_node_number();
    Ref<PyObject> result = checked(call(*products.matmul_nd, args));
    if (turns && recording() && is_tensor(result.get())) {
      Node* node = as_tensor(result.get())->grad_fn;
      if (node && node->op == products.matmul_nd) name_nodes(result.get(), "CloneBackward0", since, nullptr);
    }
    return result.release();
  }
  if (a->ndim == 2) return call(*products.mv, args);
  return call(b->ndim == 2 ? *products.vecmat : *products.dot, args);
}

}  // namespace rl
