// Products added to a tensor: addmm, addmv, addr, addbmm, baddbmm, each with its in-place form; and the cross
// product.
//
// Every one starts from beta * input broadcast to the shape of the result (`start`) and lets the kernel
// accumulate. In place, the result is the input itself; operands that share its memory are copied first.
#include "../tensor/iterate.h"
#include "matmul_ops.h"

namespace rl {
namespace {

void check_in_place_size(Tensor* out, Sizes sizes) {
  if (out->ndim == int(sizes.size()) && std::equal(sizes.begin(), sizes.end(), out->geometry)) return;
  fail(PyExc_RuntimeError, "Bad in-place call: input tensor size " + sizes_text(out->sizes()) +
                               " and output tensor size " + sizes_text(sizes) + " should match");
}

// The tensor to accumulate into: `out`, or a new one that holds `input` broadcast to `sizes` unless beta is
// 0.
TensorRef start(Tensor* input, Sizes sizes, const Coefficients& factors, Tensor* out,
                bool keep_layout = false) {
  if (out) {
    check_in_place_size(out, sizes);
    if (!out->is_meta()) check_writable(out);
    return share(out);
  }
  Ref<PyObject> size = checked(size_object(sizes));
  PyObject* args[] = {input->object(), size.get()};
  Primitive& expand = primitive("expand");
  TensorRef expanded(as_tensor(expand.forward(expand, args, nullptr)));  // checks the shape in torch's words
  bool same = std::equal(sizes.begin(), sizes.end(), input->sizes().begin(), input->sizes().end());
  TensorRef result = same && keep_layout ? empty_like(input, input->dtype)
                                         : new_tensor(sizes, input->dtype, input->device());
  if (!factors.beta_is_zero && !input->is_meta()) copy_into(result.get(), expanded.get());
  return result;
}

void check_add_dtypes(const Tensor* input, const Tensor* mat1, const Tensor* mat2) {
  if (input->dtype != mat2->dtype) {
    failf(PyExc_RuntimeError, "self and mat2 must have the same dtype, but got %s and %s",
          dtype_class_name(input->dtype), dtype_class_name(mat2->dtype));
  }
  if (mat1->dtype != mat2->dtype) {
    failf(PyExc_RuntimeError, "mat1 and mat2 must have the same dtype, but got %s and %s",
          dtype_class_name(mat1->dtype), dtype_class_name(mat2->dtype));
  }
}

PyObject* addmm_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor* input = tensor_argument(op, args, 0);
  Tensor *mat1 = tensor_argument(op, args, 1), *mat2 = tensor_argument(op, args, 2);
  check_add_dtypes(input, mat1, mat2);
  if (mat1->ndim != 2) failf(PyExc_RuntimeError, "mat1 must be a matrix, got %d-D tensor", mat1->ndim);
  if (mat2->ndim != 2) failf(PyExc_RuntimeError, "mat2 must be a matrix, got %d-D tensor", mat2->ndim);
  check_same_device(input, mat1);
  check_same_device(mat1, mat2);
  int64_t sizes[] = {mat1->size(0), mat2->size(1)}, k = mat1->size(1);
  if (k != mat2->size(0)) fail_product_shapes(sizes[0], k, mat2->size(0), sizes[1]);
  Summed summed = summed_terms(sizes[0] && sizes[1], k);
  Coefficients factors(input->dtype, args[3], args[4], op.name.c_str(), summed);
  TensorRef result = start(input, sizes, factors, out);
  check_not_bool("addmm_impl_cpu_", result.get(), k);
  if (result->is_meta()) return result.release_object();
  TensorRef a = apart_from(mat1, out), b = apart_from(mat2, out), hold;
  Matrix mc = matrix_of(result.get(), false, hold);
  Matrix ma = matrix_of(a.get(), false, hold), mb = matrix_of(b.get(), false, hold);
  double work = double(sizes[0]) * double(sizes[1]) * double(k);
  MaybeNoGil release(is_long_product(work) ? INT64_MAX : 0);
  gemm(input->dtype, mc, ma, mb, factors.alpha, factors.beta);
  return result.release_object();
}

PyObject* addmv_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor* input = tensor_argument(op, args, 0);
  Tensor *mat = tensor_argument(op, args, 1), *vec = tensor_argument(op, args, 2);
  if (mat->ndim != 2 || vec->ndim != 1 || input->ndim > 1) {
    failf(PyExc_RuntimeError, "vector + matrix @ vector expected, got %d, %d, %d", input->ndim, mat->ndim,
          vec->ndim);
  }
  check_same_device(input, mat);
  check_same_device(mat, vec);
  int64_t rows = mat->size(0);
  if (mat->size(1) != vec->size(0) || (input->numel != rows && input->numel != 1)) {
    failf(PyExc_RuntimeError, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
          (long long)input->numel, (long long)rows, (long long)mat->size(1), (long long)vec->size(0));
  }
  if (input->dtype != mat->dtype || mat->dtype != vec->dtype) {
    failf(PyExc_RuntimeError, "addmv input tensors must have the same dtype, but got %s, %s, and %s",
          dtype_class_name(input->dtype), dtype_class_name(mat->dtype), dtype_class_name(vec->dtype));
  }
  Coefficients factors(input->dtype, args[3], args[4], op.name.c_str(), Summed::vectors);
  TensorRef result = start(input, {&rows, 1}, factors, out);
  check_not_bool("addmv_impl_cpu", result.get(), mat->size(1));
  if (result->is_meta()) return result.release_object();
  TensorRef a = apart_from(mat, out), x = apart_from(vec, out), hold;
  Matrix ma = matrix_of(a.get(), false, hold);
  MaybeNoGil release(is_long_product(double(mat->numel)) ? INT64_MAX : 0);
  gemv(input->dtype, vector_of(result.get()), ma, vector_of(x.get()), factors.alpha, factors.beta);
  return result.release_object();
}

// The outer product is a matrix product over one term; unlike the others, addr promotes its operands.
PyObject* addr_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor* input = tensor_argument(op, args, 0);
  Tensor *vec1 = tensor_argument(op, args, 1), *vec2 = tensor_argument(op, args, 2);
  if (vec1->ndim != 1)
    failf(PyExc_RuntimeError, "addr: Expected 1-D argument vec1, but got %d-D", vec1->ndim);
  if (vec2->ndim != 1)
    failf(PyExc_RuntimeError, "addr: Expected 1-D argument vec2, but got %d-D", vec2->ndim);
  if (out && out->ndim != 2) {
    failf(PyExc_RuntimeError, "2D tensor expected, got %dD tensor for input", out->ndim);
  }
  check_same_device(input, vec1);
  check_same_device(vec1, vec2);
  DType dtype = promote(promote(input->dtype, vec1->dtype), vec2->dtype);
  for (int i = 3; i <= 4; i++) {
    Scalar s = scalar_argument(args[i], "addr", i == 3 ? "beta" : "alpha");
    if ((is_integral(dtype) || is_bool(dtype)) &&
        (s.kind == Scalar::floating || s.kind == Scalar::complex_)) {
      failf(PyExc_RuntimeError,
            "For integral input tensors, argument %s must not be a floating point number.",
            i == 3 ? "beta" : "alpha");
    }
  }
  if (out && !can_cast(dtype, out->dtype)) {
    failf(PyExc_RuntimeError, "result type %s can't be cast to the desired output type %s",
          dtype_class_name(dtype), dtype_class_name(out->dtype));
  }
  Coefficients factors(dtype, args[3], args[4], "addr", Summed::vectors);
  int64_t sizes[] = {vec1->size(0), vec2->size(0)};
  TensorRef widened = cast(input, dtype), u = cast(vec1, dtype), v = cast(vec2, dtype);
  bool own = out && out->dtype == dtype;
  if (out && !own) {
    check_in_place_size(out, sizes);
    check_writable(out);
  }
  TensorRef result = start(widened.get(), sizes, factors, own ? out : nullptr, true);
  if (result->is_meta()) return result.release_object();
  u = apart_from(u.get(), own ? out : nullptr), v = apart_from(v.get(), own ? out : nullptr);
  TensorRef hold;
  Vector x = vector_of(u.get()), y = vector_of(v.get());
  gemm(dtype, matrix_of(result.get(), false, hold), {x.data, x.size, 1, x.stride, 1},
       {y.data, 1, y.size, 1, y.stride}, factors.alpha, factors.beta);
  if (!out || own) return result.release_object();
  copy_into(out, result.get());
  return Py_NewRef(out->object());
}

// torch first expands the input to the size of the result; asked when something else is wrong as well.
void check_expands(Tensor* input, Sizes sizes) {
  Ref<PyObject> size = checked(size_object(sizes));
  PyObject* args[] = {input->object(), size.get()};
  Primitive& expand = primitive("expand");
  Ref<PyObject> expanded = checked(expand.forward(expand, args, nullptr));
}

[[noreturn]] void fail_input_dtypes(const Tensor* input, const Tensor* batch1, const Tensor* batch2) {
  failf(PyExc_RuntimeError, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
        dtype_cpp_name(input->dtype), dtype_cpp_name(batch1->dtype), dtype_cpp_name(batch2->dtype));
}

void check_batches(Tensor* input, const Tensor* batch1, const Tensor* batch2, bool summed) {
  if (batch1->ndim == 3 && batch2->ndim == 3) return;
  int needed[] = {summed ? 1 : 0, 1, 2};
  for (int i = 0; i < 3; i++) {
    const Tensor* t = i < 2 ? batch1 : batch2;
    if (t->ndim > needed[i]) continue;
    if (t->ndim == 0)
      failf(PyExc_IndexError, "Dimension specified as %d but tensor has no dimensions", needed[i]);
    failf(PyExc_IndexError, "Dimension out of range (expected to be in range of [%d, %d], but got %d)",
          -t->ndim, t->ndim - 1, needed[i]);
  }
  int64_t sizes[] = {batch1->size(0), batch1->size(1), batch2->size(2)};
  check_expands(input, Sizes(sizes, 3).subspan(summed ? 1 : 0));
  if (!summed && input->dtype != batch1->dtype) fail_input_dtypes(input, batch1, batch2);
  fail(PyExc_RuntimeError, batch1->ndim != 3 ? "batch1 must be a 3D tensor" : "batch2 must be a 3D tensor");
}

PyObject* baddbmm_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor* input = tensor_argument(op, args, 0);
  Tensor *batch1 = tensor_argument(op, args, 1), *batch2 = tensor_argument(op, args, 2);
  check_batches(input, batch1, batch2, false);
  check_same_device(input, batch1);
  check_same_device(batch1, batch2);
  int64_t sizes[] = {batch1->size(0), batch1->size(1), batch2->size(2)}, k = batch1->size(2);
  bool fits = batch2->size(0) == sizes[0] && batch2->size(1) == k;
  if (!fits || input->dtype != batch1->dtype || batch1->dtype != batch2->dtype) check_expands(input, sizes);
  if (!fits && input->dtype == batch1->dtype) {
    failf(
        PyExc_RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
        (long long)sizes[0], (long long)k, (long long)batch2->size(0), (long long)batch2->size(1));
  }
  if (input->dtype != batch1->dtype) fail_input_dtypes(input, batch1, batch2);
  if (out && out->dtype != batch2->dtype) {
    failf(PyExc_RuntimeError,
          "Bad in-place call: input tensor dtype %s and output tensor dtype %s should match",
          dtype_cpp_name(out->dtype), dtype_cpp_name(batch2->dtype));
  }
  if (batch1->dtype != batch2->dtype && batch1->dtype == DType::b1) fail_unsupported("baddbmm", DType::b1);
  check_scalar_type(batch1, batch2);
  Summed summed = summed_terms(sizes[0] && sizes[1] && sizes[2], k);
  Coefficients factors(input->dtype, args[3], args[4], op.name.c_str(), summed);
  TensorRef result = start(input, sizes, factors, out);
  check_not_bool("baddbmm", result.get(), k);
  if (result->is_meta()) return result.release_object();
  TensorRef a = apart_from(batch1, out), b = apart_from(batch2, out);
  MaybeNoGil release(is_long_product(double(result->numel) * double(k)) ? INT64_MAX : 0);
  batched_gemm(result->span(), a->span(), b->span(), factors.alpha, factors.beta);
  return result.release_object();
}

// The sum over the batch accumulates product after product.
PyObject* addbmm_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor* input = tensor_argument(op, args, 0);
  Tensor *batch1 = tensor_argument(op, args, 1), *batch2 = tensor_argument(op, args, 2);
  check_batches(input, batch1, batch2, true);
  check_same_device(input, batch1);
  check_same_device(batch1, batch2);
  int64_t batch = batch1->size(0), k = batch1->size(2);
  int64_t sizes[] = {batch1->size(1), batch2->size(2)};
  bool alike = input->dtype == batch1->dtype && batch1->dtype == batch2->dtype;
  if (batch2->size(0) != batch || batch2->size(1) != k || !alike) check_expands(input, sizes);
  if (out && !std::ranges::equal(out->sizes(), sizes)) check_expands(input, sizes);
  if (batch2->size(0) != batch) {
    failf(PyExc_RuntimeError, "batch1 and batch2 must have same number of batches, got %lld and %lld",
          (long long)batch, (long long)batch2->size(0));
  }
  if (batch2->size(1) != k) {
    failf(PyExc_RuntimeError, "Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)",
          (long long)batch1->size(1), (long long)k, (long long)batch2->size(1), (long long)batch2->size(2));
  }
  check_add_dtypes(input, batch1, batch2);
  Summed summed = summed_terms(sizes[0] && sizes[1], batch && k);
  Coefficients factors(input->dtype, args[3], args[4], op.name.c_str(), summed), more(input->dtype, 1);
  TensorRef result = start(input, sizes, factors, out);
  check_not_bool("addmm_impl_cpu_", result.get(), batch * k);
  if (result->is_meta()) return result.release_object();
  TensorRef a = apart_from(batch1, out), b = apart_from(batch2, out), hold;
  Matrix mc = matrix_of(result.get(), false, hold);
  Matrix ma = matrix_of(a.get(), false, hold), mb = matrix_of(b.get(), false, hold);
  MaybeNoGil release(is_long_product(double(batch1->numel) * double(sizes[1])) ? INT64_MAX : 0);
  if (batch == 0) {  // only beta * input is left: a product over no terms
    ma.cols = mb.rows = 0;
    gemm(input->dtype, mc, ma, mb, factors.alpha, factors.beta);
  }
  for (int64_t i = 0; i < batch; i++) {
    gemm(input->dtype, mc, ma, mb, factors.alpha, i == 0 ? factors.beta : more.beta);
    ma.data = static_cast<char*>(ma.data) + a->stride(0) * a->itemsize();
    mb.data = static_cast<char*>(mb.data) + b->stride(0) * b->itemsize();
  }
  return result.release_object();
}

PyObject* linalg_cross_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *a = tensor_argument(op, args, 0), *b = tensor_argument(op, args, 1);
  check_same_device(a, b);
  if (a->ndim != b->ndim)
    fail(PyExc_RuntimeError, "linalg.cross: inputs must have the same number of dimensions.");
  int64_t asked = read_int(args[2]);
  int dim = wrap_dim(asked, a->ndim);
  if (a->ndim == 0) fail(PyExc_IndexError, "Dimension specified as -1 but tensor has no dimensions");
  if (a->size(dim) != 3 || b->size(dim) != 3) {
    failf(PyExc_RuntimeError, "linalg.cross: inputs dimension %lld must have length 3. Got %lld and %lld",
          (long long)asked, (long long)a->size(dim), (long long)b->size(dim));
  }
  Shape shape;
  shape.assign(a->sizes());
  broadcast_into(shape, b->sizes());
  if (a->dtype == DType::b1) fail_unsupported("cross", a->dtype);
  check_scalar_type(a, b);
  TensorRef result = new_tensor(shape, a->dtype, a->device());
  if (a->is_meta() || result->numel == 0) return result.release_object();
  int64_t steps[3][MAX_DIMS];
  broadcast_strides(result.get(), shape, steps[0]);
  broadcast_strides(a, shape, steps[1]);
  broadcast_strides(b, shape, steps[2]);
  visit(a->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Integers wrap around, which only unsigned arithmetic does by definition.
    using C = std::conditional_t<std::is_integral_v<T>, uint64_t, compute_t<T>>;
    T* to = result->data_as<T>();
    const T *x = a->data_as<T>(), *y = b->data_as<T>();
    int64_t sc = steps[0][dim], sa = steps[1][dim], sb = steps[2][dim], index[MAX_DIMS] = {};
    for (;;) {
      C x0 = C(x[0]), x1 = C(x[sa]), x2 = C(x[2 * sa]), y0 = C(y[0]), y1 = C(y[sb]), y2 = C(y[2 * sb]);
      to[0] = T(x1 * y2 - x2 * y1);
      to[sc] = T(x2 * y0 - x0 * y2);
      to[2 * sc] = T(x0 * y1 - x1 * y0);
      int d = shape.ndim - 1;
      for (; d >= 0; d--) {
        if (d == dim) continue;
        if (++index[d] < shape.sizes[d]) {
          to += steps[0][d], x += steps[1][d], y += steps[2][d];
          break;
        }
        int64_t back = shape.sizes[d] - 1;
        to -= back * steps[0][d], x -= back * steps[1][d], y -= back * steps[2][d];
        index[d] = 0;
      }
      if (d < 0) return;
    }
  });
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  Primitive& addmm = define("addmm(input, mat1, mat2; beta, alpha)", addmm_forward, Primitive::IN_PLACE);
  addmm.turned = [](PyObject* const* args) { return uint16_t(turned_operands(args + 1) << 1); };
  define("addmv(input, mat, vec; beta, alpha)", addmv_forward, Primitive::IN_PLACE);
  define("addr(input, vec1, vec2; beta, alpha)", addr_forward, Primitive::IN_PLACE);
  define("addbmm(input, batch1, batch2; beta, alpha)", addbmm_forward, Primitive::IN_PLACE);
  define("baddbmm(input, batch1, batch2; beta, alpha)", baddbmm_forward, Primitive::IN_PLACE);
  define("linalg_cross(input, other; dim)", linalg_cross_forward);
});

}  // namespace
}  // namespace rl
