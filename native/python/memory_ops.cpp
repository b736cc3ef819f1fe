// Operations on a tensor's memory as such: moving to a device, resizing, bytes in and out, other dtypes on
// the same bytes; and `sum_to` and `summed_to`, by which the engine undoes broadcasting.
#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/living.h"
#include "../graph/modes.h"
#include "../graph/rules.h"
#include "../kernels/reduce.h"
#include "../tensor/iterate.h"
#include "explain.h"
#include "forward_mode.h"
#include "levels.h"
#include "primitive.h"

namespace rl {
namespace {

Tensor* input(PyObject* o) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

PyObject* to_device_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args[0]);
  DType dtype = dtype_from(args[1]);
  Device device = device_from(args[2]);
  check_linked(device);
  TensorRef result = new_tensor(t->sizes(), dtype, device);
  if (device.type == DeviceType::cpu && t->is_meta()) {
    fail(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
  }
  copy_into(result.get(), t);
  return result.release_object();
}

// sum_to(x; shape): sums over the dimensions that broadcasting added or stretched.
PyObject* sum_to_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args[0]);
  Shape shape;
  read_sizes(args[1], shape, "sum_to", "shape");
  int shift = t->ndim - shape.ndim;
  if (shift < 0) fail(PyExc_RuntimeError, "sum_to: the target has more dimensions");
  Shape kept;  // the target with leading ones
  kept.resize(t->ndim);
  for (int d = 0; d < t->ndim; d++) kept.sizes[d] = d < shift ? 1 : shape.sizes[d - shift];
  for (int d = 0; d < t->ndim; d++) {
    if (kept.sizes[d] != t->size(d) && kept.sizes[d] != 1) {
      fail(PyExc_RuntimeError,
           "size " + sizes_text(shape) + " is not expandable to size " + sizes_text(t->sizes()));
    }
  }
  TensorRef result = zeros(shape, t->dtype, t->device());
  if (t->is_meta() || t->numel == 0) return result.release_object();
  uint64_t dims = 0;
  for (int d = 0; d < t->ndim; d++) {
    if (kept.sizes[d] != t->size(d)) dims |= uint64_t(1) << d;
  }
  int64_t strides[MAX_DIMS];
  contiguous_strides(kept, strides);
  Span out = {result->data(), result->dtype, kept.ndim, kept.sizes, strides};
  MaybeNoGil released(t->numel);
  reduce(ReduceOp::sum, out, t->span(), dims);
  return result.release_object();
}

// to_bytes(tensor): the elements in order, as a bytes object.
PyObject* py_to_bytes(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = input(o);
    if (t->is_meta()) fail(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    TensorRef dense = contiguous(t);
    return PyBytes_FromStringAndSize(dense->data(), dense->numel * dense->itemsize());
  });
}

// from_bytes(bytes-like, dtype): a 1-dim tensor with a copy of the bytes.
PyObject* py_from_bytes(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "from_bytes(data, dtype) expected");
    DType dtype = dtype_from(args[1]);
    Py_buffer view;
    if (PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) < 0) return nullptr;
    int64_t count = view.len / dtype_size(dtype);
    TensorRef t;
    try {
      if (count * dtype_size(dtype) != view.len) {
        fail(PyExc_ValueError, "the number of bytes is not a multiple of the element size");
      }
      t = new_tensor(Sizes(&count, 1), dtype);
      std::memcpy(t->data(), view.buf, size_t(view.len));
    } catch (...) {
      PyBuffer_Release(&view);
      throw;
    }
    PyBuffer_Release(&view);
    return t.release_object();
  });
}

// view_dtype(tensor, dtype): the same bytes as another dtype; the last dimension grows or shrinks with its
// size.
PyObject* py_view_dtype(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "view_dtype(tensor, dtype) expected");
    Tensor* t = input(args[0]);
    DType dtype = dtype_from(args[1]);
    if (asks_dispatch(t)) {
      Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._dispatching"));
      return PyObject_CallMethod(module.get(), "view_dtype", "OO", args[0], args[1]);
    }
    if (t->flags & (Tensor::CONJ | Tensor::NEG)) {
      failf(PyExc_RuntimeError,
            "torch.Tensor.view is not supported for %s when converting to a different dtype.",
            t->flags & Tensor::CONJ ? "conjugate view tensors" : "tensors with negative bit set");
    }
    int from = t->itemsize(), to = dtype_size(dtype);
    Shape sizes, strides;
    sizes.assign(t->sizes());
    strides.assign(t->strides());
    int64_t offset = t->offset;
    int last = t->ndim - 1;
    if (from != to) {
      if (t->ndim == 0) {
        fail(PyExc_RuntimeError, "self.dim() cannot be 0 to view " + std::string(dtype_class_name(t->dtype)) +
                                     " as " + dtype_class_name(dtype) + " (different element sizes)");
      }
      if (t->stride(last) != 1 && (from > to || t->size(last) % (to / from) == 0)) {
        fail(PyExc_RuntimeError, "self.stride(-1) must be 1 to view " +
                                     std::string(dtype_class_name(t->dtype)) + " as " +
                                     dtype_class_name(dtype) + " (different element sizes), but got " +
                                     std::to_string(t->stride(last)));
      }
    }
    if (from > to) {
      int ratio = from / to;
      for (int d = 0; d < t->ndim; d++) strides.sizes[d] *= d == last ? 1 : ratio;
      sizes.sizes[last] *= ratio;
      offset *= ratio;
    } else if (from < to) {
      int ratio = to / from;
      auto must_divide = [&](const std::string& what, int64_t value) {
        if (value % ratio == 0) return;
        failf(PyExc_RuntimeError,
              "self.%s must be divisible by %d to view %s as %s (different element sizes), but got %lld",
              what.c_str(), ratio, dtype_class_name(t->dtype), dtype_class_name(dtype), (long long)value);
      };
      must_divide("size(-1)", sizes.sizes[last]);
      must_divide("storage_offset()", offset);
      for (int d = 0; d < last; d++) must_divide("stride(" + std::to_string(d) + ")", strides.sizes[d]);
      for (int d = 0; d < last; d++) strides.sizes[d] /= ratio;
      sizes.sizes[last] /= ratio;
      offset /= ratio;
    }
    // Not differentiable, so to autograd it is no view; it shares the memory and its version.
    TensorRef view = new_view(t, sizes, strides, offset);
    view->dtype = dtype;
    if (is_rare(dtype)) rare_dtypes_seen = true;
    bool loose = dtype == DType::b1 && (t->dtype != dtype || t->is_lazy());
    if (loose || view->is_lazy())
      set_lazy(view.get(), uint16_t((loose ? Tensor::LOOSE : 0) | (t->flags & Tensor::ZERO)));
    view->extra->differentiable_view = false;
    // Unlike other views it is from where it was made.
    view->flags = uint16_t((view->flags & ~Tensor::INFERENCE) | (modes.inference ? Tensor::INFERENCE : 0));
    return view.release_object();
  });
}

// resize(tensor, size, output=False): new sizes in place, contiguous; the storage grows if it must. An output
// may require grad: that nothing is recorded has been seen to.
PyObject* py_resize(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 && n != 3) fail(PyExc_TypeError, "resize(tensor, size, output) expected");
    wait_for_kernels();
    Tensor* t = input(args[0]);
    refuse_memory(t, "resize_");
    bool output = n == 3 && args[2] == Py_True;
    bool base = t->base() && t->extra->differentiable_view && t->base()->requires_grad();
    if ((t->requires_grad() || base) && !modes.inference && !(output && !modes.grad))
      fail_with_tensor(PyExc_RuntimeError, "cannot resize variables that require grad", t,
                       "Compute a tensor of the other size instead.");
    if (carrying() && !modes.inference && tangent_of(t))
      fail(PyExc_RuntimeError, "cannot resize variables that has a forward grad");
    if (t->flags & Tensor::INFERENCE) check_inplace(t);
    Shape sizes;
    read_sizes(args[1], sizes, "resize_", "size");
    wait_for_kernels();  // again: reading may have run code that let others begin
    int64_t count = view_numel(sizes), strides[MAX_DIMS], nbytes;
    if (__builtin_add_overflow(count, t->offset, &nbytes) ||
        __builtin_mul_overflow(nbytes, int64_t(t->itemsize()), &nbytes)) {
      fail(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=" + sizes_text(sizes));
    }
    bool same = sizes.ndim == t->ndim && std::equal(sizes.sizes, sizes.sizes + sizes.ndim, t->geometry);
    if (same) return Py_NewRef(args[0]);
    if (count) grow_storage(t->storage, size_t(nbytes));
    contiguous_strides(sizes, strides);
    set_geometry(t, sizes, {strides, size_t(sizes.ndim)});
    note_write(t);
    return Py_NewRef(args[0]);
  });
}

// become_view(tensor, view): the tensor takes over the geometry and the history of a view of it (unsqueeze_,
// t_, ...).
PyObject* py_become_view(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "become_view(tensor, view) expected");
    wait_for_kernels();
    Tensor *t = input(args[0]), *view = input(args[1]);
    if (t->storage != view->storage || t->dtype != view->dtype)
      fail(PyExc_RuntimeError, "not a view of the tensor");
    bool base_needs = t->base() && t->base()->requires_grad() && t->extra->differentiable_view;
    if (t->requires_grad() || base_needs || t->flags & Tensor::INFERENCE) check_inplace(t);
    set_geometry(t, view->sizes(), view->strides());
    t->offset = view->offset;
    if (t->extra) t->extra->turned = t->extra->steps;
    if (view->grad_fn) {
      Py_INCREF(view->grad_fn->object());
      leave_node(t);
      Py_XSETREF(t->grad_fn, view->grad_fn);
      t->output_nr = view->output_nr;
      join_node(t);
    }
    if (carrying()) {
      // It is the tangent of the tensor from now on, and no view that somebody made without recording: it
      // asks its base for a history.
      TensorRef tangent = tangent_of(view);
      if (tangent && tangent->base() && !modes.grad) {
        tangent->extra->origin = ViewOrigin::ordinary;
        tangent->extra->view_version = counter_of(tangent.get())->version - 1;
      }
      share_tangent(view, t);
    }
    // Without recording, the history is that of the old sizes: a view asks its base for another.
    bool stale = t->base() && !modes.grad && (t->grad_fn || t->base()->requires_grad());
    note_write(t);
    if (view->grad_fn && !t->base()) stamp_write(t);
    if (t->extra && !stale) t->extra->view_version = counter_of(t)->version;
    return Py_NewRef(args[0]);
  });
}

PyObject* py_storage_pointer(PyObject*, PyObject* o) {
  return guarded(
      [&] { return PyLong_FromVoidPtr(input(o)->storage->nbytes ? input(o)->storage->data : nullptr); });
}
PyObject* py_storage_nbytes(PyObject*, PyObject* o) {
  return guarded([&] { return PyLong_FromSize_t(input(o)->storage->nbytes); });
}
PyObject* py_storage_id(PyObject*, PyObject* o) {
  return guarded([&] { return PyLong_FromVoidPtr(input(o)->storage); });
}

TensorRef filled_like(Tensor* t, int64_t value) {
  TensorRef result = empty_like(t, t->dtype);
  if (result->is_meta()) return result;
  Scalar s;
  s.i = value;
  alignas(16) char element[16];
  s.store(t->dtype, element);
  fill(result.get(), element);
  return result;
}
// The public function of that name, where __torch_dispatch__ is asked about it.
PyObject* asked_like(const char* name, PyObject* o) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight"));
  return PyObject_CallMethod(module.get(), name, "O", o);
}
TensorRef filled_as(Tensor* t, int64_t value) {
  if (is_leveled(t)) return made_at_level(t, [value](Tensor* below) { return filled_as(below, value); });
  if (!asks_dispatch(t)) return filled_like(t, value);
  Ref<PyObject> made = checked(asked_like(value ? "ones_like" : "zeros_like", t->object()));
  if (!is_tensor(made.get())) fail(PyExc_TypeError, "expected a Tensor");
  return TensorRef(as_tensor(made.release()));
}
PyObject* py_ones_like(PyObject*, PyObject* o) {
  return guarded([&] { return filled_as(input(o), 1).release_object(); });
}
PyObject* py_zeros_like(PyObject*, PyObject* o) {
  return guarded([&] { return filled_as(input(o), 0).release_object(); });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {{"to_bytes", py_to_bytes, METH_O, nullptr},
                           {"from_bytes", FAST(py_from_bytes), nullptr},
                           {"view_dtype", FAST(py_view_dtype), nullptr},
                           {"resize", FAST(py_resize), nullptr},
                           {"become_view", FAST(py_become_view), nullptr},
                           {"storage_pointer", py_storage_pointer, METH_O, nullptr},
                           {"storage_nbytes", py_storage_nbytes, METH_O, nullptr},
                           {"storage_id", py_storage_id, METH_O, nullptr},
                           {"ones_like", py_ones_like, METH_O, nullptr},
                           {"zeros_like", py_zeros_like, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  define("to_device(x; dtype, device)", to_device_forward);
  define("sum_to(x; shape)", sum_to_forward);
  PyModule_AddFunctions(module, functions);
});

}  // namespace

TensorRef summed_to(Tensor* grad, Sizes wanted) {
  bool can = grad->ndim >= int(wanted.size());
  for (int d = 0; can && d < int(wanted.size()); d++) {
    int64_t have = grad->size(grad->ndim - int(wanted.size()) + d);
    can = wanted[d] == have || wanted[d] == 1;
  }
  if (!can) return {};
  static Primitive &sum_to = primitive("sum_to"), &sum = primitive("sum"), &view = primitive("view");
  Ref<PyObject> size(size_object(wanted));
  PyObject* args[] = {grad->object(), size.get()};
  bool recorded = modes.grad && grad->requires_grad() && !asks_dispatch(grad);
  if (!recorded || grad->ndim == int(wanted.size())) return TensorRef(as_tensor(call(sum_to, args)));
  // Torch's steps, where they can be seen: the sum of all, or a sum that keeps its dimensions and a view.
  PyObject* all[] = {grad->object(), Py_None};
  if (wanted.empty()) return TensorRef(as_tensor(call(sum, all)));
  std::vector<int64_t> kept(size_t(grad->ndim) - wanted.size(), 1);
  kept.insert(kept.end(), wanted.begin(), wanted.end());
  Ref<PyObject> kept_size(size_object(kept));
  args[1] = kept_size.get();
  TensorRef summed(as_tensor(call(sum_to, args)));
  PyObject* viewed[] = {summed->object(), size.get()};
  return TensorRef(as_tensor(call(view, viewed)));
}

}  // namespace rl
