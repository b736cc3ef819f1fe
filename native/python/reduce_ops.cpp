// The primitives that reduce or scan: arguments, result types and shapes; the loops are in kernels/reduce.h.
//
// Read `Reduction` first: it holds what every reduction has in common. Each group of operations with the same
// arguments has one forward function; the table at the end names them all.
#include <optional>

#include "../graph/errors.h"
#include "../graph/rules.h"
#include "../kernels/reduce.h"
#include "../tensor/iterate.h"
#include "arguments.h"
#include "elementwise_ops.h"
#include "functions.h"
#include "outputs.h"

namespace rl {
namespace {

struct Entry {
  ReduceOp op;
  const char* name;    // what error sentences call it
  const char* kernel;  // torch's name for the loop, which its "not implemented" sentences use
};

// One tensor, the dimensions to reduce, and the shape of the result.
struct Reduction {
  TensorRef x;
  uint64_t dims;
  Shape shape;                // of the result
  Shape kept;                 // the same with reduced dimensions of size 1
  int64_t strides[MAX_DIMS];  // of the result in the geometry of `kept`

  Reduction(TensorRef tensor, uint64_t reduced, bool keepdim) : x(std::move(tensor)), dims(reduced) {
    kept.resize(x->ndim);
    int64_t step = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
      kept.sizes[d] = dims >> d & 1 ? 1 : x->size(d);
      strides[d] = step;
      step *= kept.sizes[d];
    }
    for (int d = 0; d < x->ndim; d++) {
      if (keepdim || !(dims >> d & 1)) shape.append(kept.sizes[d]);
    }
  }

  TensorRef result(DType dtype, Tensor* out = nullptr) const {
    return result_in(out, shape, dtype, x->device());
  }
  Span span_of(Tensor* result) const {
    return {result->is_meta() ? nullptr : result->data(), result->dtype, kept.ndim, kept.sizes, strides};
  }
  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < x->ndim; d++)
      if (dims >> d & 1) n *= x->size(d);
    return n;
  }
  // Reduces into `out`; false if there is no such loop for the type.
  bool run(ReduceOp op, Tensor* out, ReduceParams params = {}, Tensor* values = nullptr) const {
    if (x->is_meta()) return true;
    Span other;
    if (values) other = span_of(values);
    MaybeNoGil released(x->numel);
    return reduce(op, span_of(out), x->span(), dims, params, values ? &other : nullptr);
  }
};

DType sum_dtype(DType in) { return is_differentiable(in) ? in : DType::i64; }

// x as the type to be summed in; integers stay as they are where the kernel widens them itself.
TensorRef summable(Tensor* x, DType dtype) {
  bool widened = (!is_differentiable(x->dtype) && !is_differentiable(dtype)) ||
                 (dtype == DType::f32 && (x->dtype == DType::f16 || x->dtype == DType::bf16));
  return widened ? share(x) : cast(x, dtype);
}

// The dtype of a sum, product or mean; asked before its dimensions are looked at.
DType summed_dtype(const Entry& entry, Tensor* x, PyObject* dtype_argument) {
  DType dtype = dtype_or(dtype_argument, sum_dtype(x->dtype));
  if (entry.op == ReduceOp::mean && !is_differentiable(dtype)) {
    failf(PyExc_RuntimeError,
          "mean(): could not infer output dtype. %s dtype must be either a floating point or complex dtype. "
          "Got: %s",
          dtype_argument == Py_None ? "Input" : "Optional",
          dtype_class_name(dtype_argument == Py_None ? x->dtype : dtype));
  }
  return dtype;
}

PyObject* sum_like(const Entry& entry, Tensor* x, uint64_t dims, bool keepdim, DType dtype, Tensor* given) {
  ReduceOp op = entry.op;
  if (op == ReduceOp::nansum && is_complex(x->dtype)) {
    fail(PyExc_RuntimeError, "nansum on CPU does not support complex inputs");
  }
  if (op == ReduceOp::sum) warn_of_lost_imaginary(x, dtype);
  if (dtype == DType::b1) op = op == ReduceOp::prod ? ReduceOp::all : ReduceOp::any;
  Reduction reduction(op == entry.op ? summable(x, dtype) : share(x), dims, keepdim);
  // A complex mean is a complex quotient, of which an infinite half spoils the other, as in torch.
  bool divided = op == ReduceOp::mean && is_complex(dtype);
  TensorRef out = reduction.result(dtype, divided ? nullptr : given);
  if (!reduction.run(divided ? ReduceOp::sum : op, out.get())) fail_not_implemented(entry.kernel, x->dtype);
  if (divided) {
    static Primitive& quotient = primitive("div");
    Ref<PyObject> count = checked(PyFloat_FromDouble(double(reduction.count())));
    PyObject* list[] = {out->object(), count.get()};
    return checked(elementwise_forward(quotient, list, nullptr)).release();
  }
  return out.release_object();
}

const Entry& entry_of(const Primitive& op) { return *static_cast<const Entry*>(op.payload); }

// name(x; dtype): everything to one number
PyObject* sum_all_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  return sum_like(entry, x, all_dims(x->ndim), false, summed_dtype(entry, x, args[1]), out);
}

// name(x; dim, keepdim, dtype)
PyObject* sum_dim_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  bool keepdim = bool_argument(entry.name, "keepdim", args[2]);
  DType dtype = summed_dtype(entry, x, args[3]);
  return sum_like(entry, x, dims_argument(entry.name, args[1], x->ndim), keepdim, dtype, out);
}

// prod_dim(x; dim, keepdim, dtype): one dimension only
PyObject* prod_dim_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int d = dim_argument(entry.name, args[1], x);
  bool keepdim = bool_argument(entry.name, "keepdim", args[2]);
  return sum_like(entry, x, one_dim(d, x->ndim), keepdim, summed_dtype(entry, x, args[3]), out);
}

// The first of the dimensions to reduce that has size 0, as the caller named it; or none.
std::optional<long long> empty_dim(const char* function, PyObject* dims, const Tensor* x) {
  auto size = [&](int64_t d) { return x->ndim ? x->size(wrap_dim(d, x->ndim)) : 1; };
  if (!PyTuple_Check(dims) && !PyList_Check(dims)) {
    int64_t d = int_argument(function, "dim", dims);
    return size(d) ? std::nullopt : std::optional<long long>(d);
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(dims); i++) {
    int64_t d = int_element(function, "dim", item_of(dims, i).get());
    if (size(d) == 0) return d;
  }
  return std::nullopt;
}

// Whether no dimension is named, so that all are reduced.
bool names_no_dim(PyObject* dim) {
  return dim == Py_None || ((PyTuple_Check(dim) || PyList_Check(dim)) && !PySequence_Fast_GET_SIZE(dim));
}

// The extremes have no neutral element: what is reduced must not be empty unless the result is.
void check_not_empty(const Entry& entry, Tensor* x, PyObject* dim, PyObject* error) {
  if (x->numel) return;
  if (names_no_dim(dim)) {
    failf(error, "%s(): Expected reduction dim to be specified for input.numel() == 0.%s", entry.name,
          error == PyExc_IndexError ? "" : " Specify the reduction dim with the 'dim' argument.");
  }
  if (auto d = empty_dim(entry.name, dim, x)) {
    if (error == PyExc_IndexError && *d < 0) *d += x->ndim;  // argmax and argmin count it from the front
    failf(PyExc_IndexError, "%s(): Expected reduction dim %lld to have non-zero size.", entry.name, *d);
  }
}

// max(x), min(x)
PyObject* extreme_all_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  check_not_empty(entry, x, Py_None, PyExc_RuntimeError);
  if (is_complex(x->dtype)) fail_not_implemented(entry.kernel, x->dtype);
  Reduction reduction(share(x), all_dims(x->ndim), false);
  TensorRef out = reduction.result(x->dtype);
  reduction.run(entry.op, out.get());
  return out.release_object();
}

// amax(x; dim, keepdim), amin
PyObject* extreme_forward(const Primitive& op, PyObject* const* args, Tensor* given) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  uint64_t dims = dims_argument(entry.name, args[1], x->ndim);
  bool keepdim = bool_argument(entry.name, "keepdim", args[2]);
  check_not_empty(entry, x, args[1], PyExc_RuntimeError);
  if (is_complex(x->dtype) && x->numel) fail_not_implemented(entry.kernel, x->dtype);
  Reduction reduction(share(x), dims, keepdim);
  TensorRef out = reduction.result(x->dtype, given);
  reduction.run(entry.op, out.get());
  return out.release_object();
}

// aminmax(x; dim, keepdim) -> min, max: dim is None or an int
PyObject* aminmax_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("aminmax", args[0]);
  bool keepdim = bool_argument("aminmax", "keepdim", args[2]);
  uint64_t dims = all_dims(x->ndim);
  if (args[1] != Py_None) {
    int d = dim_argument("aminmax", args[1], x);
    dims = one_dim(d, x->ndim);
    if (x->ndim && x->size(d) == 0) {
      failf(PyExc_IndexError, "aminmax: Expected reduction dim %d to have non-zero size.", d);
    }
  } else if (!x->numel) {
    fail(PyExc_RuntimeError,
         "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  }
  if (is_complex(x->dtype) && !x->ndim && args[1] != Py_None) {
    failf(PyExc_RuntimeError, "aminmax not implemented for %s", dtype_class_name(x->dtype));
  }
  if (is_complex(x->dtype)) fail_not_implemented("aminmax_cpu", x->dtype);
  Reduction reduction(share(x), dims, keepdim);
  TensorRef low = reduction.result(x->dtype), high = reduction.result(x->dtype);
  reduction.run(ReduceOp::min, low.get());
  reduction.run(ReduceOp::max, high.get());
  return checked(PyTuple_Pack(2, low->object(), high->object())).release();
}

// max_dim(x; dim, keepdim) -> values, indices; min_dim
PyObject* extreme_dim_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int d = dim_argument(entry.name, args[1], x);
  bool keepdim = bool_argument(entry.name, "keepdim", args[2]);
  if (x->ndim && x->size(d) == 0) {
    failf(PyExc_IndexError, "%s(): Expected reduction dim %d to have non-zero size.", entry.name, d);
  }
  if (is_complex(x->dtype)) failf(PyExc_RuntimeError, "%s(): does not support complex input", entry.name);
  Reduction reduction(share(x), one_dim(d, x->ndim), keepdim);
  TensorRef values = reduction.result(x->dtype), indices = reduction.result(DType::i64);
  reduction.run(entry.op, indices.get(), {}, values.get());
  return checked(PyTuple_Pack(2, values->object(), indices->object())).release();
}

// argmax(x; dim, keepdim), argmin: dim None is the flattened tensor
PyObject* index_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  bool keepdim = bool_argument(entry.name, "keepdim", args[2]);
  if (is_complex(x->dtype)) failf(PyExc_RuntimeError, "%s(): does not support complex input", entry.name);
  if (x->dtype == DType::b1) failf(PyExc_RuntimeError, "%s(): does not support bool input", entry.name);
  if (args[1] != Py_None) {
    int d = dim_argument(entry.name, args[1], x);
    check_not_empty(entry, x, args[1], PyExc_IndexError);
    Reduction reduction(share(x), one_dim(d, x->ndim), keepdim);
    TensorRef out = reduction.result(DType::i64);
    reduction.run(entry.op, out.get());
    return out.release_object();
  }
  check_not_empty(entry, x, Py_None, PyExc_IndexError);
  TensorRef dense = contiguous(x);
  int64_t stride = 1;
  Reduction reduction(new_alias(dense.get(), Sizes(&dense->numel, 1), Sizes(&stride, 1), dense->offset), 1,
                      false);
  if (keepdim) {
    reduction.shape.resize(x->ndim);
    std::fill(reduction.shape.sizes, reduction.shape.sizes + x->ndim, 1);
  }
  TensorRef out = reduction.result(DType::i64);
  reduction.run(entry.op, out.get());
  return out.release_object();
}

// any(x; dim, keepdim), all: of nothing, with dim=(), is every element's truth
PyObject* truth_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  uint64_t dims = dims_argument(entry.name, args[1], x->ndim, false);
  Reduction reduction(share(x), dims, bool_argument(entry.name, "keepdim", args[2]));
  TensorRef out = reduction.result(x->dtype == DType::u8 ? DType::u8 : DType::b1);
  reduction.run(entry.op, out.get());
  return out.release_object();
}

// count_nonzero(x; dim)
PyObject* count_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  Reduction reduction(share(x), dims_argument(entry.name, args[1], x->ndim), false);
  TensorRef out = reduction.result(DType::i64);
  reduction.run(entry.op, out.get());
  return out.release_object();
}

// The variance of complex numbers is that of their real parts plus that of their imaginary parts.
void run_variance(const Reduction& reduction, bool root, Tensor* out, double correction) {
  ReduceParams params;
  params.correction = correction;
  Tensor* x = reduction.x.get();
  if (!is_complex(x->dtype)) {
    reduction.run(root ? ReduceOp::std : ReduceOp::var, out, params);
    return;
  }
  if (x->is_meta()) return;
  TensorRef imaginary = new_tensor(out->sizes(), out->dtype);
  Span span = x->span();
  int64_t doubled[MAX_DIMS];
  for (int d = 0; d < x->ndim; d++) doubled[d] = 2 * x->stride(d);
  span.dtype = out->dtype;
  span.strides = doubled;
  MaybeNoGil released(x->numel);
  reduce(ReduceOp::var, reduction.span_of(out), span, reduction.dims, params);
  span.data = static_cast<char*>(span.data) + dtype_size(out->dtype);
  reduce(ReduceOp::var, reduction.span_of(imaginary.get()), span, reduction.dims, params);
  auto add = [&](auto* to, const auto* from) {
    for (int64_t i = 0; i < out->numel; i++) {
      to[i] += from[i];
      if (root) to[i] = std::sqrt(to[i]);
    }
  };
  if (out->dtype == DType::f32) add(out->data_as<float>(), imaginary->data_as<float>());
  else add(out->data_as<double>(), imaginary->data_as<double>());
}

// var(x; dim, correction, keepdim), std, and with `-> var, mean` (`std, mean`) both at once
PyObject* variance_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  bool both = op.outputs.size() == 2;
  Tensor* x = tensor_argument(entry.name, args[0]);
  if (!is_differentiable(x->dtype)) {
    if (both) failf(PyExc_RuntimeError, "%s only support floating point and complex dtypes", entry.name);
    fail(PyExc_RuntimeError, "std and var only support floating point and complex dtypes");
  }
  Scalar correction;
  correction.i = 1;
  if (is_tensor(args[2]) && as_tensor(args[2])->ndim == 0) {
    correction = scalar_argument(args[2], entry.name, "correction");
  } else if (args[2] != Py_None && !scalar_from_python(args[2], correction)) {
    failf(PyExc_TypeError, "%s(): argument 'correction' must be Number, not %s", entry.name,
          Py_TYPE(args[2])->tp_name);
  }
  if (correction.kind == Scalar::complex_ && correction.imag != 0)
    fail(PyExc_RuntimeError, "value cannot be converted to type double without overflow");
  uint64_t dims = dims_argument(entry.name, args[1], x->ndim);
  Reduction reduction(share(x), dims, bool_argument(entry.name, "keepdim", args[3]));
  TensorRef out = reduction.result(to_real(x->dtype));
  double count = out->numel ? double(reduction.count()) : 0;  // of no results, none, as torch counts
  if (count - correction.real_value() <= 0) {
    Unresized before(x);
    warn(std::string(entry.name) +
         "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
         "(input numel divided by output numel).");
    before.check();
  }
  run_variance(reduction, entry.op == ReduceOp::std, out.get(), correction.real_value());
  if (!both) return out.release_object();
  TensorRef mean = reduction.result(x->dtype);
  reduction.run(ReduceOp::mean, mean.get());
  return checked(PyTuple_Pack(2, out->object(), mean->object())).release();
}

// vector_norm(x; ord, dim, keepdim, dtype)
PyObject* norm_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char name[] = "linalg.vector_norm";
  Tensor* x = tensor_argument(name, args[0]);
  Scalar order;
  if (!scalar_from_python(args[1], order)) {
    failf(PyExc_TypeError, "linalg_vector_norm(): argument 'ord' (position 2) must be Number, not %s",
          Py_TYPE(args[1])->tp_name);
  }
  if (!is_differentiable(x->dtype)) {
    failf(PyExc_RuntimeError, "%s: Expected a floating point or complex tensor as input. Got %s", name,
          dtype_class_name(x->dtype));
  }
  if (order.kind == Scalar::complex_) {
    failf(PyExc_RuntimeError, "%s: Expected a non-complex scalar as the order of norm.", name);
  }
  DType dtype = dtype_or(args[4], x->dtype);
  if (!is_differentiable(dtype)) {
    failf(PyExc_RuntimeError, "%s: dtype should be floating point or complex, but got %s", name,
          dtype_class_name(dtype));
  }
  if (is_complex(dtype) != is_complex(x->dtype)) {
    failf(PyExc_RuntimeError, "%s: dtype should be %s for %s inputs, but got %s", name,
          is_complex(x->dtype) ? "complex" : "real", is_complex(x->dtype) ? "complex" : "real",
          dtype_class_name(dtype));
  }
  if (promote(x->dtype, dtype) != dtype) {
    failf(
        PyExc_RuntimeError,
        "%s: the dtype of the input (%s) should be convertible without narrowing to the specified dtype (%s)",
        name, dtype_class_name(x->dtype), dtype_class_name(dtype));
  }
  bool keepdim = bool_argument(name, "keepdim", args[3]);
  ReduceParams params;
  params.p = order.real_value();
  if (x->numel == 0 && (params.p < 0 || params.p == INFINITY)) {
    char text[32];
    snprintf(text, sizeof text, "%g", params.p);
    if (names_no_dim(args[2])) {
      failf(
          PyExc_RuntimeError,
          "%s cannot compute the %s norm on an empty tensor because the operation does not have an identity",
          name, text);
    }
    if (auto d = empty_dim(name, args[2], x)) {
      failf(PyExc_RuntimeError,
            "%s cannot compute the %s norm on the dimension %lldbecause this dimension is empty and the "
            "operation does not have an identity",
            name, text, *d);
    }
  }
  uint64_t dims = dims_argument(name, args[2], x->ndim);
  Reduction reduction(cast(x, dtype), dims, keepdim);
  TensorRef out = reduction.result(to_real(dtype));
  // A single number has its absolute value for a norm, which its power may be too large for. Not if a
  // dimension is named that is not there: torch takes the power.
  bool listed = PyTuple_Check(args[2]) || PyList_Check(args[2]);
  bool named = !x->ndim && (listed ? PySequence_Fast_GET_SIZE(args[2]) > 0 : args[2] != Py_None);
  if (reduction.count() == 1 && params.p != 0 && !named) params.p = 1;
  // An order beyond the range of float is infinite where torch computes in it: the root is 1, whatever the
  // sum.
  bool wide = dtype == DType::f64 || dtype == DType::c128;
  if (!wide && !x->is_meta() && std::isfinite(params.p) && std::isinf(float(params.p))) {
    alignas(16) char one[16];
    Scalar{.i = 1}.store(out->dtype, one);
    fill(out.get(), one);
    return out.release_object();
  }
  reduction.run(ReduceOp::norm, out.get(), params);
  return out.release_object();
}

// logsumexp(x; dim, keepdim): of real numbers
PyObject* logsumexp_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("logsumexp", args[0]);
  if (is_complex(x->dtype)) fail_not_implemented("logsumexp", x->dtype);
  uint64_t dims = dims_argument("logsumexp", args[1], x->ndim);
  Reduction reduction(cast(x, is_floating(x->dtype) ? x->dtype : default_dtype()), dims,
                      bool_argument("logsumexp", "keepdim", args[2]));
  TensorRef out = reduction.result(reduction.x->dtype);
  reduction.run(ReduceOp::logsumexp, out.get());
  return out.release_object();
}

// restore(g; size, dim, keepdim): the inverse geometry of a reduction. The reduced dimensions come back,
// expanded.
PyObject* restore_forward(const Primitive&, PyObject* const* args, Tensor*) {
  TensorRef kept = unspread(tensor_argument("restore", args[0]));
  Tensor* g = kept.get();
  Shape size, strides;
  read_sizes(args[1], size, "restore", "size");
  uint64_t dims = dims_argument("restore", args[2], size.ndim);
  bool keepdim = bool_argument("restore", "keepdim", args[3]);
  strides.resize(size_t(size.ndim));
  int at = 0;
  bool fits = true;
  for (int d = 0; fits && d < size.ndim; d++) {
    bool reduced = dims >> d & 1;
    int source = reduced && !keepdim ? -1 : at++;
    fits = source < g->ndim && (source < 0 || g->size(source) == (reduced ? 1 : size.sizes[d]));
    if (fits) strides.sizes[d] = reduced ? 0 : g->stride(source);
  }
  if (!fits || at != g->ndim) {
    fail(PyExc_RuntimeError,
         "restore: " + sizes_text(g->sizes()) + " is not a reduction of " + sizes_text(size));
  }
  return new_view(g, size, strides, g->offset).release_object();
}

// ---- operations that keep the size
// ---------------------------------------------------------------------------------

struct LineEntry {
  LineOp op;
  const char* name;
  const char* kernel;
};

// A span read from the far end of `dim`.
Span reversed(Span span, int dim, int64_t* strides) {
  std::copy(span.strides, span.strides + span.ndim, strides);
  if (span.ndim && span.sizes[dim] > 1) {
    span.data = static_cast<char*>(span.data) + (span.sizes[dim] - 1) * strides[dim] * dtype_size(span.dtype);
    strides[dim] = -strides[dim];
  }
  span.strides = strides;
  return span;
}

void run_along(const LineEntry& entry, int dim, Tensor* const* tensors, int count, bool backwards = false) {
  Tensor* x = tensors[count - 1];
  if (x->is_meta() || !x->numel) return;
  Span spans[4];
  int64_t strides[4][MAX_DIMS];
  for (int k = 0; k < count; k++) {
    spans[k] = tensors[k]->span();
    if (backwards) spans[k] = reversed(spans[k], dim, strides[k]);
  }
  bool found;
  {
    MaybeNoGil released(x->numel);
    found = along(entry.op, dim, spans, count);
  }
  if (!found) fail_not_implemented(entry.kernel, x->dtype);
}

const LineEntry& line_entry_of(const Primitive& op) { return *static_cast<const LineEntry*>(op.payload); }

// cumsum(x; dim, dtype, reverse), cumprod: reverse runs from the end, which is what their gradients need
PyObject* cumulate_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const LineEntry& entry = line_entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int d = dim_argument(entry.name, args[1], x);
  DType dtype = dtype_or(args[2], sum_dtype(x->dtype));
  if (dtype == DType::b1) {
    if (x->ndim && x->numel) fail_not_implemented(entry.kernel, dtype);
    return clone(cast(x, dtype).get()).release_object();
  }
  // Integers are added in int64, whose low bits are those of any narrower sum.
  TensorRef from = is_differentiable(x->dtype) || is_differentiable(dtype) ? cast(x, dtype) : share(x);
  TensorRef out = new_tensor(x->sizes(), sum_dtype(dtype), x->device());
  Tensor* operands[] = {out.get(), from.get()};
  run_along(entry, d, operands, 2, bool_argument(entry.name, "reverse", args[3]));
  return cast(out.get(), dtype).release_object();
}

// logcumsumexp(x; dim, reverse)
PyObject* logcumsumexp_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const LineEntry& entry = line_entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int d = dim_argument(entry.name, args[1], x);
  if (!is_floating(x->dtype) && !is_complex(x->dtype)) fail_not_implemented(entry.kernel, x->dtype);
  TensorRef out = new_tensor(x->sizes(), x->dtype, x->device());
  Tensor* operands[] = {out.get(), x};
  run_along(entry, d, operands, 2, bool_argument(entry.name, "reverse", args[2]));
  return out.release_object();
}

// logcumsumexp_backward(g, x, result; dim, reverse), logcumsumexp_tangent: of real numbers
PyObject* logcumsumexp_derivative_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const LineEntry& entry = line_entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[1]);
  TensorRef g = cast(tensor_argument(entry.name, args[0]), x->dtype);
  TensorRef result = cast(tensor_argument(entry.name, args[2]), x->dtype);
  int d = dim_argument(entry.name, args[3], x);
  if (!same_sizes(g.get(), x) || !same_sizes(result.get(), x)) {
    failf(PyExc_RuntimeError, "%s: all tensors must have the same size", entry.name);
  }
  TensorRef out = new_tensor(x->sizes(), x->dtype, x->device());
  Tensor* operands[] = {out.get(), g.get(), x, result.get()};
  run_along(entry, d, operands, 4, bool_argument(entry.name, "reverse", args[4]));
  return out.release_object();
}

// cummax(x; dim) -> values, indices; cummin
PyObject* cumulate_extreme_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const LineEntry& entry = line_entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int d = dim_argument(entry.name, args[1], x);
  if (!x->ndim && is_complex(x->dtype)) return itself_at_zero(x);
  TensorRef values = new_tensor(x->sizes(), x->dtype, x->device());
  TensorRef indices = new_tensor(x->sizes(), DType::i64, x->device());
  Tensor* operands[] = {values.get(), indices.get(), x};
  run_along(entry, d, operands, 3);
  return checked(PyTuple_Pack(2, values->object(), indices->object())).release();
}

// As the loops of softmax read it: its result is contiguous, and lines that lie across it would be taken
// element by element (0.2 of torch).
TensorRef along_its_lines(Tensor* x, int dim) {
  if (dim + 1 == x->ndim && x->strides()[dim] == 1) return share(x);
  return contiguous(x);
}

// softmax(x; dim), log_softmax
PyObject* softmax_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const LineEntry& entry = line_entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int d = dim_argument(entry.name, args[1], x);
  if (!is_floating(x->dtype) && x->numel && d + 1 >= x->ndim) {  // torch has a kernel of its own for these
    fail_not_implemented((std::string(entry.name) + "_lastdim_kernel_impl").c_str(), x->dtype);
  }
  TensorRef out = new_tensor(x->sizes(), x->dtype, x->device()), from = along_its_lines(x, d);
  Tensor* operands[] = {out.get(), from.get()};
  run_along(entry, d, operands, 2);
  return out.release_object();
}

// softmax_backward(g, result; dim), log_softmax_backward
PyObject* softmax_backward_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const LineEntry& entry = line_entry_of(op);
  Tensor *g = tensor_argument(entry.name, args[0]), *result = tensor_argument(entry.name, args[1]);
  int d = dim_argument(entry.name, args[2], result);
  if (!same_sizes(g, result)) {
    fail(PyExc_RuntimeError,
         "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but " +
             sizes_text(g->sizes()) + " does not equal " + sizes_text(result->sizes()) +
             " (while checking arguments for " + entry.name + ")");
  }
  TensorRef grad = along_its_lines(cast(g, result->dtype).get(), d), from = along_its_lines(result, d);
  TensorRef out = new_tensor(result->sizes(), result->dtype, result->device());
  Tensor* operands[] = {out.get(), grad.get(), from.get()};
  run_along(entry, d, operands, 3);
  return out.release_object();
}

ModuleInit init([](PyObject*) {
  constexpr uint16_t WRITES_OUT = Primitive::WRITES_OUT;
  using R = ReduceOp;
  using L = LineOp;
  static const Entry sum{R::sum, "sum", "sum_cpu"}, mean{R::mean, "mean", "mean_cpu"},
      prod{R::prod, "prod", "prod_cpu"}, nansum{R::nansum, "nansum", "nansum_cpu"},
      max{R::max, "max", "max_all"}, min{R::min, "min", "min_all"}, max_dim{R::argmax, "max", "max_cpu"},
      min_dim{R::argmin, "min", "min_cpu"}, amax{R::max, "amax", "max_values_cpu"},
      amin{R::min, "amin", "min_values_cpu"}, argmax{R::argmax, "argmax", "argmax_cpu"},
      argmin{R::argmin, "argmin", "argmin_cpu"}, any{R::any, "any", ""}, all{R::all, "all", ""},
      count{R::count_nonzero, "count_nonzero", ""}, var{R::var, "var", ""}, std{R::std, "std", ""},
      var_mean{R::var, "var_mean", ""}, std_mean{R::std, "std_mean", ""};
  define("sum(x; dtype)", sum_all_forward, WRITES_OUT, &sum);
  define("sum_dim(x; dim, keepdim, dtype)", sum_dim_forward, WRITES_OUT, &sum);
  define("mean(x; dtype)", sum_all_forward, WRITES_OUT, &mean);
  define("mean_dim(x; dim, keepdim, dtype)", sum_dim_forward, WRITES_OUT, &mean);
  define("prod(x; dtype)", sum_all_forward, WRITES_OUT, &prod);
  define("prod_dim(x; dim, keepdim, dtype)", prod_dim_forward, WRITES_OUT, &prod);
  define("nansum(x; dim, keepdim, dtype)", sum_dim_forward, 0, &nansum);
  define("max(x)", extreme_all_forward, 0, &max);
  define("min(x)", extreme_all_forward, 0, &min);
  define("max_dim(x; dim, keepdim) -> values, indices", extreme_dim_forward, 0, &max_dim);
  define("min_dim(x; dim, keepdim) -> values, indices", extreme_dim_forward, 0, &min_dim);
  define("amax(x; dim, keepdim)", extreme_forward, WRITES_OUT, &amax);
  define("amin(x; dim, keepdim)", extreme_forward, WRITES_OUT, &amin);
  define("aminmax(x; dim, keepdim) -> min, max", aminmax_forward);
  define("argmax(x; dim, keepdim)", index_forward, 0, &argmax);
  define("argmin(x; dim, keepdim)", index_forward, 0, &argmin);
  define("any(x; dim, keepdim)", truth_forward, 0, &any);
  define("all(x; dim, keepdim)", truth_forward, 0, &all);
  define("count_nonzero(x; dim)", count_forward, 0, &count);
  define("var(x; dim, correction, keepdim)", variance_forward, 0, &var);
  define("std(x; dim, correction, keepdim)", variance_forward, 0, &std);
  define("var_mean(x; dim, correction, keepdim) -> var, mean", variance_forward, 0, &var_mean);
  define("std_mean(x; dim, correction, keepdim) -> std, mean", variance_forward, 0, &std_mean);
  define("vector_norm(x; ord, dim, keepdim, dtype)", norm_forward);
  define("logsumexp(x; dim, keepdim)", logsumexp_forward);
  define("restore(g; size, dim, keepdim)", restore_forward, Primitive::VIEW);

  static const LineEntry cumsum{L::cumsum, "cumsum", "cumsum_out_cpu"},
      cumprod{L::cumprod, "cumprod", "cumprod_out_cpu"},
      logcumsumexp{L::logcumsumexp, "logcumsumexp", "logcumsumexp_out_cpu"},
      logcumsumexp_backward{L::logcumsumexp_backward, "logcumsumexp_backward", "logcumsumexp_backward"},
      logcumsumexp_tangent{L::logcumsumexp_tangent, "logcumsumexp_tangent", "logcumsumexp_tangent"},
      cummax{L::cummax, "cummax", "cummax_cpu"}, cummin{L::cummin, "cummin", "cummin_cpu"},
      softmax{L::softmax, "softmax", "softmax_kernel_impl"},
      log_softmax{L::log_softmax, "log_softmax", "log_softmax_kernel_impl"},
      softmax_backward{L::softmax_backward, "softmax_backward", "softmax_backward_kernel_impl"},
      log_softmax_backward{L::log_softmax_backward, "log_softmax_backward",
                           "log_softmax_backward_kernel_impl"};
  define("cumsum(x; dim, dtype, reverse)", cumulate_forward, 0, &cumsum);
  define("cumprod(x; dim, dtype, reverse)", cumulate_forward, 0, &cumprod);
  define("logcumsumexp(x; dim, reverse)", logcumsumexp_forward, 0, &logcumsumexp);
  define("logcumsumexp_backward(g, x, result; dim, reverse)", logcumsumexp_derivative_forward, 0,
         &logcumsumexp_backward);
  define("logcumsumexp_tangent(t, x, result; dim, reverse)", logcumsumexp_derivative_forward, 0,
         &logcumsumexp_tangent);
  define("cummax(x; dim) -> values, indices", cumulate_extreme_forward, 0, &cummax);
  define("cummin(x; dim) -> values, indices", cumulate_extreme_forward, 0, &cummin);
  define("softmax(x; dim)", softmax_forward, 0, &softmax);
  define("log_softmax(x; dim)", softmax_forward, 0, &log_softmax);
  define("softmax_backward(g, result; dim)", softmax_backward_forward, 0, &softmax_backward);
  define("log_softmax_backward(g, result; dim)", softmax_backward_forward, 0, &log_softmax_backward);
});

}  // namespace
}  // namespace rl
