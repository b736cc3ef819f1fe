// Copies: clones, casts, and writes of other values (`copy_`, `fill_`). Start at `copy_forward`.
#include "../graph/custom.h"
#include "../graph/errors.h"
#include "../tensor/iterate.h"
#include "../tensor/reach.h"
#include "functions.h"
#include "primitive.h"

namespace rl {

void check_writable(Tensor* out);
TensorRef safe_to_read(Tensor* in, Tensor* out);

namespace {

Tensor* input(PyObject* const* args, int i = 0) {
  if (!is_tensor(args[i])) fail(PyExc_TypeError, "expected a Tensor");
  return as_tensor(args[i]);
}

PyObject* clone_forward(const Primitive&, PyObject* const* args, Tensor*) {
  return clone(input(args)).release_object();
}

PyObject* contiguous_copy_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  TensorRef result = new_tensor(t->sizes(), t->dtype, t->device());
  copy_into(result.get(), t);
  return result.release_object();
}

// clone_strided(x; stride): a copy that lies in memory by these strides.
PyObject* clone_strided_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  Shape strides;
  read_sizes(args[1], strides, op.name.c_str(), "stride");
  if (strides.ndim != t->ndim)
    fail(PyExc_RuntimeError, "clone_strided: one stride for each dimension expected");
  for (int64_t stride : Sizes(strides)) {
    if (stride < 0) fail(PyExc_RuntimeError, "clone_strided: strides must be non-negative");
  }
  int item = dtype_size(t->dtype);
  if (t->numel && bytes_reached(t->sizes(), strides, 0, item) > t->numel * item)
    fail(PyExc_RuntimeError, "clone_strided: strides without gaps expected");
  TensorRef result = new_strided(t->sizes(), strides, t->dtype, t->device());
  copy_into(result.get(), t);
  return result.release_object();
}

PyObject* to_dtype_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  TensorRef result = empty_like(t, dtype_from(args[1]));
  warn_of_lost_imaginary(t, result->dtype);
  copy_into(result.get(), t);
  return result.release_object();
}

// Whether both read the same memory in the same way: nothing is to be copied then, also where it repeats
// itself.
bool same_elements(const Tensor* a, const Tensor* b) {
  return a->storage == b->storage && a->offset == b->offset && a->dtype == b->dtype && same_sizes(a, b) &&
         std::ranges::equal(a->strides(), b->strides()) && !((a->flags ^ b->flags) & Tensor::LAZY);
}

// copy(x, source): x's values are replaced by source's, broadcast and cast; x.copy_(source) in place.
PyObject* copy_forward(const Primitive&, PyObject* const* args, Tensor* out) {
  Tensor* t = input(args);
  TensorRef result = out ? share(out) : empty_like(t, t->dtype);
  Scalar number;
  if (!result->is_meta() && is_tensor(args[1]) && as_tensor(args[1])->is_meta())
    fail(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
  if (out && is_tensor(args[1]) && same_elements(out, as_tensor(args[1]))) return result.release_object();
  if (out && !out->is_meta()) check_writable(out);
  if (is_tensor(args[1])) {
    Tensor* source = as_tensor(args[1]);
    Shape shape;
    shape.assign(t->sizes());
    broadcast_into(shape, source->sizes());
    if (shape.ndim != t->ndim || !std::equal(shape.sizes, shape.sizes + shape.ndim, t->geometry)) {
      if (out && !out->is_meta()) safe_to_read(source, out);  // a partial overlap torch tells of first
      fail(PyExc_RuntimeError, "output with shape " + sizes_text(t->sizes()) +
                                   " doesn't match the broadcast shape " + sizes_text(shape));
    }
    if (result->is_meta()) return result.release_object();
    if (result->numel) warn_of_lost_imaginary(source, result->dtype, out);
    TensorRef from = share(source);
    if (out && source->storage == out->storage && source != out) from = safe_to_read(source, out);
    copy_into(result.get(), from.get());
  } else if (scalar_from_python(args[1], number)) {
    alignas(16) char element[16];
    number.store(t->dtype, element);
    fill(result.get(), element);
  } else {
    failf(PyExc_TypeError, "copy_(): argument 'other' must be Tensor, not %s", Py_TYPE(args[1])->tp_name);
  }
  return result.release_object();
}

// fill(x, value): value a number or a 0-dim tensor.
PyObject* fill_forward(const Primitive&, PyObject* const* args, Tensor* out) {
  Tensor* t = input(args);
  Scalar number;
  if (is_tensor(args[1])) {
    Tensor* value = as_tensor(args[1]);
    if (value->ndim != 0) {
      failf(PyExc_RuntimeError,
            "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim);
    }
    if (!t->is_meta()) number = item(value);
    if (t->numel) warn_of_lost_imaginary(value, t->dtype);
  } else if (!scalar_from_python(args[1], number)) {
    failf(PyExc_TypeError, "fill_(): argument 'value' must be Number, not %s", Py_TYPE(args[1])->tp_name);
  }
  alignas(16) char element[16];
  if (is_tensor(args[1])) number.store(t->dtype, element);
  else store_filling(number, t->dtype, element, t->numel);
  TensorRef result = out ? share(out) : empty_like(t, t->dtype);
  fill(result.get(), element);  // an expanded tensor may be filled: all its elements become the same
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("clone(x)", clone_forward);
  define("contiguous_copy(x)", contiguous_copy_forward);
  define("clone_strided(x; stride)", clone_strided_forward);
  define("rows_copy(x)", contiguous_copy_forward);  // by a product: its view of it is the only one
  define("to_dtype(x; dtype)", to_dtype_forward);
  define("copy(x, source)", copy_forward, Primitive::IN_PLACE | Primitive::SEES_TO_DEVICES);
  define("fill(x, value)", fill_forward, Primitive::IN_PLACE | Primitive::SEES_TO_DEVICES);
});

}  // namespace

// Once per process, as torch does. The casts of a running backward are its own affair.
void warn_of_lost_imaginary(const Tensor* from, DType to, const Tensor* into) {
  if (!is_complex(from->dtype) || is_complex(to) || to == DType::b1 || !from->numel || from->is_meta() ||
      current_run()) {
    return;
  }
  Unresized source(from), target(into ? into : from);
  warn_once("Casting complex values to real discards the imaginary part");
  source.check();
  target.check();
}

void Unresized::check() const {
  if (t->dtype == dtype && std::ranges::equal(t->sizes(), Sizes(sizes))) return;
  fail(PyExc_RuntimeError, "a tensor was resized while a warning about it was shown, from " +
                               sizes_text(sizes) + " to " + sizes_text(t->sizes()));
}

}  // namespace rl
