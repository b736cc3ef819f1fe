// The Python type `rushlight.Tensor`: its life, its attributes and its operators.
//
// Methods that are not once-per-operation hot are Python functions attached to the type by
// rushlight/_tensor.py and rushlight/ops. Here are: allocation and the free list, cycle collection, the
// attributes, the number slots.
#include "tensor_type.h"

#include <algorithm>
#include <cstddef>

#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/errors.h"
#include "../graph/living.h"
#include "../graph/modes.h"
#include "../tensor/chains.h"
#include "../tensor/free_lists.h"
#include "../tensor/twins.h"
#include "../tensor/unlocked.h"
#include "collector.h"
#include "explain.h"
#include "forward_mode.h"
#include "functions.h"
#include "levels.h"
#include "primitive.h"

namespace rl {

void free_extra(Extra* extra);

namespace {

std::vector<Tensor*> free_tensors;

Tensor* self_tensor(PyObject* self) { return as_tensor(self); }

// ---- life

void clear_extra(Tensor* t) {
  Extra* extra = std::exchange(t->extra, nullptr);
  if (!extra) return;
  forget_accumulator(extra);
  if (extra->dual) [[unlikely]]
    forget_dual(extra);
  let_go(reinterpret_cast<PyObject*>(extra->tangent));  // Note [freeing chains], tensor/chains.h
  if (extra->base) extra->base->held_by -= conversion_holds(extra);
  for (Tensor* held : {extra->base, extra->grad}) {
    if (!held) continue;
    held->held_by--;
    let_go(held->object());
  }
  Py_XDECREF(extra->hooks);
  Py_XDECREF(extra->post_hooks);
  Py_XDECREF(extra->steps);
  drop(extra->cut);
  drop_counter(extra);
  free_extra(extra);
}

void clear_tensor(Tensor* t) {
  leave_node(t);
  Py_CLEAR(t->grad_fn);
  clear_extra(t);
  Py_CLEAR(t->dict);
}

void tensor_dealloc(PyObject* self) {
  Tensor* t = self_tensor(self);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (is_leveled(self)) leveled_alive--;
  if (t->weakrefs) {
    leave_node(t);  // a callback may ask the node for this tensor
    PyObject_ClearWeakRefs(self);
  }
  if (t->grad_fn || t->extra || t->dict) clear_tensor(t);
  if (t->geometry && t->geometry != t->room) std::free(t->geometry);
  if (t->storage) decref(t->storage);
  if (type == TensorType && free_tensors.size() < MOST_WAITING) {
    free_tensors.push_back(t);
  } else {
    type->tp_free(self);
  }
  Py_DECREF(type);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Tensor* t = self_tensor(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(t->dict);
  Py_VISIT(t->grad_fn);
  // Nobody else holds that storage, so its reference to the lender is ours.
  if (t->storage && t->storage->refs == 1 && t->storage->kind == Storage::external)
    Py_VISIT(lender(t->storage));
  if (t->extra) {
    Py_VISIT(t->extra->base);
    Py_VISIT(t->extra->grad);
    Py_VISIT(t->extra->tangent);
    Py_VISIT(t->extra->hooks);
    Py_VISIT(t->extra->post_hooks);
  }
  return 0;
}

int tensor_gc_clear(PyObject* self) {
  clear_tensor(self_tensor(self));
  return 0;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    // Tensor(...) is worded in Python (rushlight/_tensor.py); a subclass gets an empty shell that shares the
    // result.
    static PyObject* construct = nullptr;
    if (!construct) {
      Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._tensor"));
      construct = checked(PyObject_GetAttrString(module.get(), "_construct")).release();
    }
    Ref<PyObject> made = checked(PyObject_Call(construct, args, kwargs));
    if (!is_tensor(made.get())) fail(PyExc_TypeError, "expected a Tensor");
    if (type == TensorType) return made.release();
    bool is_view = PyTuple_GET_SIZE(args) == 1 && is_tensor(PyTuple_GET_ITEM(args, 0));  // of the argument
    Tensor* t = as_tensor(made.get());
    return (is_view ? moved_to_class(t, type) : as_subclass(t, type)).release_object();
  });
}

// ---- attributes

int tensor_setattro(PyObject* self, PyObject* name, PyObject* value) {
  int result = PyObject_GenericSetAttr(self, name, value);
  if (result < 0 || !value || (!self_tensor(self)->dict && is_plain_tensor(self)) || is_atom(value))
    return result;
  return guarded([&]() -> int {
    expect_loops();
    return 0;
  });
}

PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] { return size_object(self_tensor(self)->sizes()); });
}
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(dtype_object(self_tensor(self)->dtype)); }
PyObject* get_device(PyObject* self, void*) {
  return guarded([&] { return device_object(claimed_device(self_tensor(self)->storage)); });
}
template <DeviceType type>
PyObject* get_is_on(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(claimed_device(self_tensor(self)->storage).type == type); });
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(self_tensor(self)->ndim); }
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromLong(self_tensor(self)->itemsize()); }
PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(self_tensor(self)->numel * self_tensor(self)->itemsize());
}
PyObject* get_version(PyObject* self, void*) {
  Tensor* t = self_tensor(self);
  if (!counts_writes(t)) {
    PyErr_SetString(PyExc_RuntimeError, "Inference tensors do not track version counter.");
    return nullptr;
  }
  return PyLong_FromUnsignedLong(counter_of(t)->version);
}
// A leaf that went through saved-tensor hooks: another tensor, whose gradient goes to the leaf all the same.
bool stands_for_leaf(const Tensor* t) { return t->grad_fn && t->grad_fn->kind == Node::accumulate; }

PyObject* get_is_leaf(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = self_tensor(self);
    if (t->base()) refresh_view(t, true);
    return PyBool_FromLong(!t->grad_fn || stands_for_leaf(t));
  });
}
PyObject* get_requires_grad(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(shows_requires_grad(self_tensor(self))); });
}
PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = self_tensor(self);
    if (t->base()) refresh_view(t, true);
    if (!t->grad_fn || stands_for_leaf(t)) Py_RETURN_NONE;
    expose(t->grad_fn);
    return Py_NewRef(t->grad_fn->object());
  });
}
int set_grad_fn(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    if (!value) fail(PyExc_RuntimeError, "Deletion of _grad_fn not allowed. Detach tensor instead!");
    if (value != Py_None) fail(PyExc_RuntimeError, "_grad_fn can be only set to None");
    Tensor* t = self_tensor(self);
    if (t->base() && t->extra->differentiable_view && !(t->flags & Tensor::INFERENCE)) {
      fail(PyExc_RuntimeError,
           "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel "
           "(DDP) for "
           "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and "
           "hence "
           "detach_() cannot be called on these gradients. To fix this error, please refer to the "
           "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.");
    }
    note_detached(t);
    leave_node(t);
    Py_CLEAR(t->grad_fn);
    t->output_nr = 0;
    t->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
    return 0;
  });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(self_tensor(self)->output_nr);
}
PyObject* get_base(PyObject* self, void*) {
  Tensor* t = self_tensor(self);
  bool view = t->base() && t->extra->differentiable_view && !(t->flags & Tensor::INFERENCE);
  Tensor* base = view ? t->extra->base : nullptr;
  return Py_NewRef(base ? base->object() : Py_None);
}
PyObject* get_retains_grad(PyObject* self, void*) {
  return PyBool_FromLong(self_tensor(self)->flags & Tensor::RETAINS_GRAD);  // also of what was detached since
}
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    if (!value || !PyBool_Check(value)) fail(PyExc_RuntimeError, "requires_grad must be a bool");
    Tensor* t = self_tensor(self);
    if (t->base() && t->extra->origin == ViewOrigin::ordinary) refresh_view(t);
    if (t->grad_fn && value == Py_True) {
      fail_with_tensor(PyExc_RuntimeError, "you can only change requires_grad flags of leaf variables.", t,
                       "It requires grad already, as what it was computed from does.");
    }
    set_requires_grad(self_tensor(self), value == Py_True);
    return 0;
  });
}

// Who asks for a gradient that there is not going to be.
void warn_of_no_gradient(const Tensor* t) {
  if (!t->grad_fn || t->flags & Tensor::RETAINS_GRAD || (t->extra && t->extra->grad)) return;
  warn(
      "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
      "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated "
      "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf "
      "Tensor by mistake, make sure you access the leaf Tensor instead. See "
      "github.com/pytorch/pytorch/pull/30531 for more information.");
}

PyObject* get_grad(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = self_tensor(self);
    warn_of_no_gradient(t);
    return Py_NewRef(t->extra && t->extra->grad ? t->extra->grad->object() : Py_None);
  });
}

PyObject* get_grad_dtype(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = self_tensor(self);
    if (t->grad_fn) fail(PyExc_RuntimeError, "grad_dtype can only be accessed on leaf tensors.");
    return Py_NewRef(takes_any_gradient(t) ? Py_None : dtype_object(gradient_dtype(t)));
  });
}

int set_grad_dtype(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    Tensor* t = self_tensor(self);
    if (!value || (value != Py_None && !is_dtype(value))) {
      failf(PyExc_RuntimeError, "grad_dtype must be a torch.dtype or None, but got %s",
            value ? Py_TYPE(value)->tp_name : "nothing");
    }
    warn_of_no_gradient(t);  // torch looks whether there is one
    Tensor* grad = t->extra ? t->extra->grad : nullptr;
    if (grad && value != Py_None && grad->dtype != dtype_from(value)) {
      failf(
          PyExc_RuntimeError,
          "Cannot set grad_dtype to '%s' because there is already a gradient with dtype '%s'. Please clear "
          "the gradient (.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the "
          "existing gradient's dtype.",
          dtype_class_name(dtype_from(value)), dtype_cpp_name(grad->dtype));
    }
    if (t->grad_fn) fail(PyExc_RuntimeError, "grad_dtype can only be set on leaf tensors.");
    extra_of(t)->grad_dtype = value == Py_None ? ANY_DTYPE : uint8_t(1 + uint8_t(dtype_from(value)));
    // The engine casts to what the accumulator asks for.
    if (t->extra->accumulator) t->extra->accumulator->outputs[0].dtype = gradient_dtype(t);
    return 0;
  });
}

int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    Tensor* t = self_tensor(self);
    if (!value || value == Py_None) {
      if (t->extra) set_held(t->extra->grad, nullptr);
      return 0;
    }
    if (!is_tensor(value)) {
      failf(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s",
            Py_TYPE(value)->tp_name);
    }
    Tensor* grad = as_tensor(value);
    if (grad == t) fail(PyExc_RuntimeError, "can't assign Variable as its own grad");
    DType expected = gradient_dtype(t);
    if (!takes_any_gradient(t) && grad->dtype != expected) {
      failf(PyExc_RuntimeError,
            "attempting to assign a gradient with dtype '%s' to a tensor with grad_dtype '%s'. The gradient "
            "must "
            "match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's "
            "grad_dtype "
            "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. "
            "Diverging the dtypes of a tensor and its gradient may break downstream systems that assume they "
            "match.",
            dtype_cpp_name(grad->dtype), dtype_class_name(expected));
    }
    if (!(claimed_device(grad->storage) == claimed_device(t->storage))) {
      failf(PyExc_RuntimeError,
            "attempting to assign a gradient with device type '%s' to a tensor with device type '%s'. Please "
            "ensure "
            "that the gradient and the tensor are on the same device",
            grad->is_meta() ? "meta" : "cpu", t->is_meta() ? "meta" : "cpu");
    }
    if (is_any_sparse(t) ? !is_any_sparse(grad) : is_compressed(grad))
      fail(PyExc_RuntimeError,
           "attempting to assign a gradient to a tensor that has data of a different type");
    if (!same_sizes(grad, t)) {
      failf(PyExc_RuntimeError,
            "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please ensure that the "
            "gradient "
            "and the tensor are the same size",
            sizes_text(grad->sizes()).c_str(), sizes_text(t->sizes()).c_str());
    }
    Py_INCREF(value);
    Extra* extra = extra_of(t);
    grad->flags |= Tensor::HELD;
    set_held(extra->grad, grad);
    // x.grad with a history leads back to x: only the collector can free such a pair.
    if (grad->grad_fn) expect_loop(self);
    return 0;
  });
}

// The hooks of a leaf, as dicts; None if there are none.
template <PyObject* Extra::*field>
PyObject* get_hooks(PyObject* self, void*) {
  Tensor* t = self_tensor(self);
  PyObject* hooks = t->extra ? t->extra->*field : nullptr;
  return Py_NewRef(hooks ? hooks : Py_None);
}
template <PyObject* Extra::*field>
int set_hooks(PyObject* self, PyObject* value, void* name) {
  return guarded([&]() -> int {
    if (!value) failf(PyExc_RuntimeError, "Deletion of %s not allowed!", static_cast<const char*>(name));
    if (value != Py_None && !PyDict_Check(value)) {
      failf(PyExc_TypeError, "the hooks must be a dict or None, not %s", Py_TYPE(value)->tp_name);
    }
    Extra* extra = extra_of(self_tensor(self));
    Py_XSETREF(extra->*field, value == Py_None ? nullptr : Py_NewRef(value));
    if (value != Py_None) expect_loops();
    return 0;
  });
}

PyObject* get_data(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Tensor* t = self_tensor(self);
    if (is_leveled(t)) check_data_at_level(t);
    TensorRef alias = is_leveled(t)      ? detached_at_level(t)
                      : asks_dispatch(t) ? dispatched_detach(t)
                                         : new_alias(t);
    if (!(modes.inference && t->flags & Tensor::INFERENCE)) count_apart(alias.get());
    alias->flags |= Tensor::DATA_ALIAS;
    return alias.release_object();
  });
}

int set_data(PyObject* self, PyObject* value, void*) {
  return guarded([&]() -> int {
    if (!value) fail(PyExc_RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!");
    if (!is_tensor(value)) {
      failf(PyExc_TypeError, "Variable data has to be a tensor, but got %s", Py_TYPE(value)->tp_name);
    }
    wait_for_kernels();
    Tensor *t = self_tensor(self), *from = as_tensor(value);
    if (is_leveled(t) || is_leveled(from)) refuse_new_data(t);
    if (t->requires_grad() && !is_differentiable(from->dtype)) {
      fail(PyExc_RuntimeError,
           "data set to a tensor that requires gradients must be floating point or complex dtype");
    }
    if (!(t->device() == from->device())) {
      fail(PyExc_RuntimeError,
           "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible "
           "tensor type.");
    }
    // The accumulator asks for the old dtype. Graphs recorded so far keep it; the next one gets its own.
    if (t->dtype != from->dtype && t->extra) forget_accumulator(t->extra);
    set_geometry(t, from->sizes(), from->strides());
    change_storage(t, from->storage, Py_REFCNT(value) == 1);
    t->offset = from->offset;
    t->dtype = from->dtype;
    set_lazy(t, from->flags & Tensor::LAZY);
    // Other memory has other rules, but what was made in inference mode makes nothing else a tensor of it.
    if (!(from->flags & Tensor::INFERENCE)) t->flags &= uint16_t(~Tensor::INFERENCE);
    else if (t->flags & Tensor::INFERENCE && t->extra) drop_counter(t->extra);  // it counts none
    tell_savers(t);
    return 0;
  });
}

PyObject* get_transposed(PyObject* self, void* last_two) {
  return guarded([&]() -> PyObject* {
    Tensor* t = self_tensor(self);
    if (t->ndim == 0) {
      warn_once(std::string("Tensor.") + (last_two ? "mT" : "T") +
                " is deprecated on 0-D tensors. This function is the identity in these cases.");
      if (last_two) return Py_NewRef(self);
    }
    if (last_two) {
      static Primitive& transpose = primitive("transpose");
      if (t->ndim < 2) {
        failf(PyExc_RuntimeError,
              "tensor.mT is only supported on matrices or batches of matrices. Got %d-D tensor.", t->ndim);
      }
      Ref<PyObject> a(PyLong_FromLong(-2)), b(PyLong_FromLong(-1));
      PyObject* args[] = {self, a.get(), b.get()};
      return call(transpose, args);
    }
    static Primitive& permute = primitive("permute");
    if (t->ndim != 2 && t->ndim != 0) {
      warn_once(
          "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
          "will "
          "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
          "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.");
    }
    Ref<PyObject> dims = checked(PyTuple_New(t->ndim));
    for (int d = 0; d < t->ndim; d++) PyTuple_SET_ITEM(dims.get(), d, PyLong_FromLong(t->ndim - 1 - d));
    PyObject* args[] = {self, dims.get()};
    return call(permute, args);
  });
}

PyObject* get_dict(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    expect_loops();
    return PyObject_GenericGetDict(self, nullptr);
  });
}

int last_two_marker;
PyGetSetDef getset[] = {
    {"shape", get_shape, nullptr, "The sizes of the dimensions.", nullptr},
    {"dtype", get_dtype, nullptr, nullptr, nullptr},
    {"device", get_device, nullptr, nullptr, nullptr},
    {"is_cpu", get_is_on<DeviceType::cpu>, nullptr, "Whether this tensor is in main memory.", nullptr},
    {"is_cuda", get_is_on<DeviceType::cuda>, nullptr, "Whether this tensor is on a GPU.", nullptr},
    {"is_meta", get_is_on<DeviceType::meta>, nullptr, "Whether this tensor has sizes but no data.", nullptr},
    {"ndim", get_ndim, nullptr, nullptr, nullptr},
    {"itemsize", get_itemsize, nullptr, nullptr, nullptr},
    {"nbytes", get_nbytes, nullptr, nullptr, nullptr},
    {"_version", get_version, nullptr, "How often the memory was written in place.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, nullptr, nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, nullptr, nullptr},
    {"grad_fn", get_grad_fn, nullptr, nullptr, nullptr},
    {"_grad_fn", get_grad_fn, set_grad_fn, nullptr, nullptr},
    {"output_nr", get_output_nr, nullptr, nullptr, nullptr},
    {"_base", get_base, nullptr, "The tensor this one is a view of, or None.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, nullptr, nullptr},
    {"grad", get_grad, set_grad, nullptr, nullptr},
    {"_grad", get_grad, set_grad, nullptr, nullptr},
    {"_backward_hooks", get_hooks<&Extra::hooks>, set_hooks<&Extra::hooks>, nullptr,
     const_cast<char*>("_backwards_hooks")},
    {"_post_accumulate_grad_hooks", get_hooks<&Extra::post_hooks>, set_hooks<&Extra::post_hooks>, nullptr,
     const_cast<char*>("_post_accumulate_grad_hooks")},
    {"grad_dtype", get_grad_dtype, set_grad_dtype, "The dtype of `.grad`; None: any.", nullptr},
    {"data", get_data, set_data, nullptr, nullptr},
    {"T", get_transposed, nullptr, nullptr, nullptr},
    {"mT", get_transposed, nullptr, nullptr, &last_two_marker},
    {"__dict__", get_dict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(Tensor, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(Tensor, weakrefs), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

Py_ssize_t tensor_length(PyObject* self) {
  if (asks_protocol(self)) {
    return guarded([&]() -> Py_ssize_t {
      Ref<PyObject> answer = checked(through_protocol("__len__", self));
      Py_ssize_t length = PyNumber_AsSsize_t(answer.get(), PyExc_OverflowError);
      if (length == -1 && PyErr_Occurred()) throw PythonError{};
      return length;
    });
  }
  Tensor* t = self_tensor(self);
  if (t->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return Py_ssize_t(t->size(0));
}

Py_hash_t tensor_hash(PyObject* self) { return Py_hash_t(self); }  // id(), as torch has it

}  // namespace

Tensor* allocate_tensor() {
  Tensor* t;
  if (!free_tensors.empty()) {
    t = free_tensors.back();
    free_tensors.pop_back();
    revive(t->object());
    Py_INCREF(TensorType);
  } else {
    t = new_collectable<Tensor>(TensorType);
    if (!t) throw PythonError{};
  }
  // Everything but the object header and the room for sizes.
  constexpr size_t before = offsetof(Tensor, dict), room = offsetof(Tensor, room),
                   after = offsetof(Tensor, grad_fn);
  std::memset(reinterpret_cast<char*>(t) + before, 0, room - before);
  std::memset(reinterpret_cast<char*>(t) + after, 0, sizeof(Tensor) - after);
  return t;
}

TensorRef as_subclass(Tensor* t, PyTypeObject* type) {
  if (is_leveled(t) && type != leveled_type) {
    fail(PyExc_NotImplementedError,
         "a tensor that stands for others inside a transform of torch.func cannot become one of another "
         "class");
  }
  if (!PyType_IsSubtype(type, TensorType)) {
    fail(PyExc_TypeError,
         "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make "
         "sure "
         "your class inherits from Tensor.");
  }
  if (type == leveled_type) start_dispatching_levels();
  else if ((!dispatching_classes || dispatching_only_levels) && class_dispatches(type)) start_dispatching();
  if (type != ParameterType) expect_loops();  // through its class
  PyObject* shell = type->tp_alloc(type, 0);
  if (!shell) throw PythonError{};
  TensorRef result(as_tensor(shell));
  if (type == leveled_type) leveled_alive++;
  result->dtype = t->dtype;
  set_geometry(result.get(), t->sizes(), t->strides());
  result->offset = t->offset;
  result->storage = t->storage;
  incref(t->storage);
  share_counter(t, result.get());
  result->flags |= t->flags & Tensor::INFERENCE;
  if (t->is_lazy()) set_lazy(result.get(), t->flags & Tensor::LAZY);
  return result;
}

TensorRef moved_to_class(Tensor* fresh, PyTypeObject* type) {
  // What a class answers for (__torch_dispatch__) stays its own.
  if (dispatches(fresh) && !is_any_sparse(fresh) && !is_leveled(fresh)) {
    if (!PyType_IsSubtype(Py_TYPE(fresh->object()), type)) {
      failf(PyExc_RuntimeError,
            "Creating a new Tensor subclass %s but the raw Tensor object is already associated to a python "
            "object of type %s which is not a subclass of the requested type",
            type->tp_name, Py_TYPE(fresh->object())->tp_name);
    }
    return share(fresh);
  }
  TensorRef result = as_subclass(raw_alias(fresh).get(), type);
  leave_node(fresh);
  result->grad_fn = std::exchange(fresh->grad_fn, nullptr);
  result->output_nr = fresh->output_nr;
  join_node(result.get());
  std::swap(result->extra, fresh->extra);
  result->flags = fresh->flags;
  return result;
}

bool base_requires_grad(const Tensor* t) {
  return t->extra->differentiable_view && t->base()->requires_grad() && !(t->flags & Tensor::INFERENCE) &&
         is_differentiable(t->dtype);
}

void set_requires_grad(Tensor* t, bool on) {
  if (t->base() && t->extra->origin == ViewOrigin::ordinary) refresh_view(t);
  if (!on && t->grad_fn) {
    fail_with_tensor(
        PyExc_RuntimeError,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
        "in a subgraph that doesn't require differentiation use var_no_grad = var.detach().",
        t, nullptr);
  }
  if (on && !is_differentiable(t->dtype)) {
    fail(PyExc_RuntimeError, "only Tensors of floating point and complex dtype can require gradients");
  }
  if (on && (t->flags & Tensor::INFERENCE) && !modes.inference) {
    fail_with_tensor(PyExc_RuntimeError,
                     "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
                     t, "Take a clone() of it, or make it under no_grad() instead of inference_mode().");
  }
  if (t->grad_fn) return;
  if (t->base()) t->base()->flags |= Tensor::HELD;  // by this leaf, and so by every graph made from it
  // From here on writes to it matter to autograd, also if it came from `.data`.
  if (on) t->flags = uint16_t((t->flags | Tensor::REQUIRES_GRAD) & ~Tensor::DATA_ALIAS);
  else t->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
}

void init_tensor_type(PyObject* module) {
  guard_attributes(getset);
  std::vector<PyType_Slot> slots = {{Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
                                    {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
                                    {Py_tp_clear, reinterpret_cast<void*>(tensor_gc_clear)},
                                    {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
                                    {Py_tp_setattro, reinterpret_cast<void*>(tensor_setattro)},
                                    {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
                                    {Py_tp_getset, getset},
                                    {Py_tp_members, members},
                                    {Py_mp_length, reinterpret_cast<void*>(tensor_length)}};
  add_operator_slots(slots);
  slots.push_back({0, nullptr});
  // A base without anything, by whose name Python's descriptors of methods speak of tensors, as in torch.
  PyType_Slot nothing[] = {{0, nullptr}};
  PyType_Spec base = {"torch._C.TensorBase", sizeof(PyObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, nothing};
  TensorBaseType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&base)).release());
  PyType_Spec spec = {"rushlight.Tensor", sizeof(Tensor), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  TensorType = reinterpret_cast<PyTypeObject*>(
      checked(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(TensorBaseType))).release());
  name_operators();
  PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(TensorType));
}

}  // namespace rl
