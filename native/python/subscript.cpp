// x[...] and x[...] = value: reading an index and composing the primitives it stands for.
//
// Ints, slices, None and Ellipsis become views (select, slice, unsqueeze), one primitive each, so that the
// graph has torch's nodes. Tensors, sequences and bools are collected in a list for the primitives `index`
// and `index_put` (advanced_index.cpp). One int and one slice take a short way. Start with `tensor_subscript`
// and `Walker`.
#include "../graph/errors.h"
#include "../graph/modes.h"
#include "../graph/rules.h"
#include "explain.h"
#include "functions.h"
#include "index_ops.h"
#include "tensor_type.h"
#include "types.h"

namespace rl {

void check_apart(const Tensor* in, const Tensor* out);  // elementwise_ops.cpp
namespace {

Ref<PyObject> number(int64_t i) { return checked(PyLong_FromLongLong(i)); }

[[noreturn]] void fail_kind(PyObject* o) {
  failf(PyExc_IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        "(got %s)",
        Py_TYPE(o)->tp_name);
}

[[noreturn]] void fail_index_of_number(int64_t i) {
  if (i) {
    fail(PyExc_IndexError,
         ("index " + std::to_string(i) + " is out of bounds for dimension 0 with size 0").c_str());
  }
  fail(PyExc_IndexError,
       "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
       "convert "
       "a 0-dim tensor to a number");
}

TensorRef select_at(Tensor* t, int dim, PyObject* index, int named_dim) {
  static Primitive& select = primitive("select");
  int overflow;
  long long i = PyLong_AsLongLongAndOverflow(index, &overflow);
  if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long");
  if (t->ndim == 0) fail_index_of_number(i);
  if (i < -t->size(dim) || i >= t->size(dim)) {
    fail_with_tensor(PyExc_IndexError,
                     "index " + std::to_string(i) + " is out of bounds for dimension " +
                         std::to_string(named_dim) + " with size " + std::to_string(t->size(dim)),
                     t, nullptr);
  }
  Ref<PyObject> at = number(dim);
  PyObject* args[] = {t->object(), at.get(), index};
  return TensorRef(as_tensor(call_settled(select, args)));
}

// t itself if the slice takes everything and `skip_full`.
TensorRef slice_at(Tensor* t, int dim, PyObject* slice, bool skip_full) {
  static Primitive& op = primitive("slice");
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) throw PythonError{};
  if (step < 0) fail(PyExc_ValueError, "step must be greater than zero");
  if (t->ndim == 0) fail(PyExc_IndexError, "slice() cannot be applied to a 0-dim tensor.");
  if (skip_full && start == 0 && stop >= t->size(dim) && step == 1) return share(t);
  Ref<PyObject> at = number(dim), from = number(start), to = number(stop), by = number(step);
  PyObject* args[] = {t->object(), at.get(), from.get(), to.get(), by.get()};
  return TensorRef(as_tensor(call_settled(op, args)));
}

TensorRef unsqueeze_at(Tensor* t, int dim) {
  static Primitive& unsqueeze = primitive("unsqueeze");
  Ref<PyObject> at = number(dim);
  PyObject* args[] = {t->object(), at.get()};
  return TensorRef(as_tensor(call_settled(unsqueeze, args)));
}

// The index tensor of a list, tuple, range or array: int64, or a mask if it holds bools.
TensorRef tensor_from_sequence(PyObject* sequence) {
  if (PyList_CheckExact(sequence)) {  // a plain list of ints, the most frequent kind
    Py_ssize_t n = PyList_GET_SIZE(sequence), i = 0;
    int64_t size = n;
    TensorRef index = new_tensor(Sizes(&size, 1), DType::i64);
    for (int overflow = 0; i < n && PyLong_CheckExact(PyList_GET_ITEM(sequence, i)); i++) {
      index->data_as<int64_t>()[i] = PyLong_AsLongLongAndOverflow(PyList_GET_ITEM(sequence, i), &overflow);
      if (overflow) break;
    }
    if (i == n) return index;
  }
  static PyObject* convert = nullptr;
  if (!convert) {
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.ops.index"));
    convert = checked(PyObject_GetAttrString(module.get(), "_index_tensor")).release();
  }
  Ref<PyObject> made = checked(PyObject_CallOneArg(convert, sequence));
  if (!is_tensor(made.get())) fail(PyExc_TypeError, "expected a Tensor");
  return TensorRef(as_tensor(made.release()));
}

// True addresses one slice of a new dimension, False none.
TensorRef tensor_from_bool(bool on) {
  int64_t n = on ? 1 : 0;
  return zeros(Sizes(&n, 1), DType::i64);
}

bool is_byte_or_bool(const Tensor* t) { return t->dtype == DType::b1 || t->dtype == DType::u8; }

bool is_array(PyObject* o) {
  for (PyTypeObject* type = Py_TYPE(o); type; type = type->tp_base) {
    if (std::string_view(type->tp_name) == "numpy.ndarray") return true;
  }
  return false;
}

// x[[0, 1]] is one index, but x[[slice(0, 1), 0]] is read as x[0:1, 0]: torch's rule for short sequences. An
// array is one index, however many dimensions it has.
bool stands_for_tuple(PyObject* o) {
  if (PyTuple_Check(o)) return true;
  if (is_tensor(o) || !PySequence_Check(o) || is_array(o)) return false;
  Py_ssize_t n = PySequence_Size(o);
  if (n < 0) {
    forget_error(PyExc_Exception);
    return false;
  }
  if (n >= 32 || Py_TYPE(o) == &PyRange_Type) return false;
  bool any = false;
  for (Py_ssize_t i = 0; i < n && !any; i++) {
    Ref<PyObject> item(PySequence_GetItem(o, i));
    if (!item) {
      forget_error(PyExc_Exception);
      return false;
    }
    PyObject* p = item.get();
    any = is_tensor(p) || PySequence_Check(p) || PySlice_Check(p) || p == Py_Ellipsis || p == Py_None;
  }
  if (any) {
    warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
        "pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor "
        "index, x[torch.tensor(seq)], which will result either in an error or a different result");
  }
  return any;
}

// Goes through the items of an index from left to right.
struct Walker {
  Tensor* self;
  TensorRef view;      // what the views so far have made of self
  int dim = 0;         // the dimension of `view` that the next item addresses
  int named_dim = 0;   // the items before it, as errors count dimensions
  int covered = 0;     // dimensions of `view` that `list` speaks of
  Ref<PyObject> list;  // tensors and None, or empty if no tensor has been seen
  bool written;        // whether the elements are assigned to

  explicit Walker(Tensor* t, bool to_write = false) : self(t), view(share(t)), written(to_write) {}

  // `alone`: the one item was given as it is, not in a tuple.
  void walk(PyObject* const* items, Py_ssize_t n, bool alone = false) {
    int specified = 0;
    for (Py_ssize_t i = 0; i < n; i++) specified += dims_of(items[i]);
    if (specified > self->ndim && !self->ndim && alone) {
      if (PyLong_Check(items[0])) select_at(self, 0, items[0], 0);  // which refuses it
      if (PySlice_Check(items[0])) slice_at(self, 0, items[0], false);
    }
    if (specified > self->ndim)
      failf(PyExc_IndexError, "too many indices for tensor of dimension %d", self->ndim);
    for (Py_ssize_t i = 0; i < n; i++) take(items[i], self->ndim - specified);
  }

 private:
  // How many dimensions of self an item addresses.
  static int dims_of(PyObject* o) {
    if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
    if (is_tensor(o) && is_byte_or_bool(as_tensor(o))) return as_tensor(o)->ndim;
    return 1;
  }

  void take(PyObject* o, int unspecified) {
    if (PyLong_CheckExact(o)) {
      view = select_at(view.get(), dim, o, named_dim++);
    } else if (PySlice_Check(o)) {
      view = slice_at(view.get(), dim++, o, true);
      named_dim++;
    } else if (o == Py_Ellipsis) {
      dim += unspecified;
      named_dim++;
    } else if (o == Py_None) {
      view = unsqueeze_at(view.get(), dim++);
      named_dim++;
    } else if (PyBool_Check(o)) {
      take_bool(o == Py_True);
    } else if (is_tensor(o)) {
      take_tensor(share(as_tensor(o)));
    } else if (PySequence_Check(o)) {
      take_tensor(tensor_from_sequence(o));
    } else {
      if (!PyIndex_Check(o)) fail_kind(o);
      Ref<PyObject> index(PyNumber_Index(o));
      if (!index) {
        forget_error(PyExc_TypeError);
        fail_kind(o);
      }
      view = select_at(view.get(), dim, index.get(), named_dim++);
    }
  }

  void take_bool(bool on) {
    view = unsqueeze_at(view.get(), dim);
    named_dim++;
    record(tensor_from_bool(on), 1);
  }

  void take_tensor(TensorRef t) {
    if (t->ndim == 0 && !is_differentiable(t->dtype) && !t->is_meta()) {
      Scalar value = item(t.get());
      if (is_byte_or_bool(t.get())) return take_bool(value.i != 0);
      view = select_at(view.get(), dim, number(value.i).get(), named_dim++);
      return;
    }
    if (written && modes.grad && view->requires_grad()) check_inplace(view.get());  // asked before the index
    if (t->dtype != DType::i64 && t->dtype != DType::i32 && !is_byte_or_bool(t.get())) {
      fail(PyExc_IndexError, "tensors used as indices must be long, int, byte or bool tensors");
    }
    int dims = is_byte_or_bool(t.get()) ? t->ndim : 1;
    named_dim++;
    record(std::move(t), dims);
  }

  void record(TensorRef index, int dims) {
    if (!list) list = checked(PyList_New(0));
    for (; covered < dim; covered++) append(Py_None);
    append(index->object());
    covered += dims;
    dim += dims;
  }
  void append(PyObject* o) {
    if (PyList_Append(list.get(), o) < 0) throw PythonError{};
  }
};

void walk_any(Walker& walker, PyObject* index) {
  if (stands_for_tuple(index)) {
    Ref<PyObject> tuple = checked(PySequence_Tuple(index));
    walker.walk(&PyTuple_GET_ITEM(tuple.get(), 0), PyTuple_GET_SIZE(tuple.get()));
  } else {
    walker.walk(&index, 1, true);
  }
}

bool any_override(PyObject* self, PyObject* index) {
  if (modes.function_mode) return true;
  if (!modes.torch_function) return false;
  if (!is_plain_tensor(self) && overrides_torch_function(self)) return true;
  return !PySlice_Check(index) && rl::any_override(index);  // what is no tensor may override as well
}

// The value without leading dimensions of size 1, which assignment ignores.
TensorRef without_leading_ones(Tensor* value) {
  int ones = 0;
  while (ones < value->ndim && value->size(ones) == 1) ones++;
  if (ones == 0) return share(value);
  static Primitive& view = primitive("view");
  Ref<PyObject> size(size_object(value->sizes().subspan(size_t(ones))));
  PyObject* args[] = {value->object(), size.get()};
  return TensorRef(as_tensor(call(view, args)));
}

// torch's words for a value that does not fit, which are those of expand().
void check_expands(const Tensor* value, const Tensor* target) {
  int shift = target->ndim - value->ndim;
  if (shift < 0) {
    fail(PyExc_RuntimeError, "expand(" + type_text(value) + "{" + sizes_text(value->sizes()) +
                                 "}, size=" + sizes_text(target->sizes()) +
                                 "): the number of sizes provided (" + std::to_string(target->ndim) +
                                 ") must be greater or equal to the number of dimensions in the tensor (" +
                                 std::to_string(value->ndim) + ")");
  }
  for (int d = value->ndim - 1; d >= 0; d--) {
    int64_t have = value->size(d), want = target->size(d + shift);
    if (have == 1 || have == want) continue;
    failf(PyExc_RuntimeError,
          "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
          "dimension %d.  "
          "Target sizes: %s.  Tensor sizes: %s",
          (long long)want, (long long)have, d + shift, sizes_text(target->sizes()).c_str(),
          sizes_text(value->sizes()).c_str());
  }
}

// The only index, beside dimensions that are taken whole, if it is a tensor of this dtype; else null.
Tensor* only_index(PyObject* list, DType dtype) {
  Tensor* found = nullptr;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list); k++) {
    PyObject* o = PySequence_Fast_GET_ITEM(list, k);
    if (o == Py_None) continue;
    if (found || !is_tensor(o) || as_tensor(o)->dtype != dtype) return nullptr;
    found = as_tensor(o);
  }
  return found;
}

// A single value is written as by masked_fill, which takes no bytes for a mask that fits.
void refuse_bytes(const Tensor* view, PyObject* list) {
  Tensor* mask = only_index(list, DType::u8);
  if (!mask || PySequence_Fast_GET_SIZE(list) > view->ndim) return;
  int at = 0;
  while (PySequence_Fast_GET_ITEM(list, at) == Py_None) at++;
  if (at + mask->ndim > view->ndim) return;
  for (int d = 0; d < mask->ndim; d++)
    if (mask->size(d) != view->size(at + d)) return;
  fail(PyExc_RuntimeError, "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char");
}

// Writing by index into memory that several elements share is deprecated in torch, a mask twice over.
void warn_of_expanded(const Tensor* view, bool fills) {
  bool shares = false;
  for (int d = 0; d < view->ndim; d++) shares |= view->stride(d) == 0 && view->size(d) > 1;
  if (!shares || !view->numel) return;
  auto tell = [](const char* name, const char* form) {
    warn(std::string("Use of ") + name +
         " on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
         "This also applies to advanced indexing e.g. tensor[" +
         form);
  };
  tell("index_put_", "indices] = tensor");
  if (fills) tell("masked_fill_", "mask] = scalar");
}

// refuse_bytes(x, indices): the same for index_put.
PyObject* py_refuse_bytes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2 || !is_tensor(args[0]) || !PyTuple_Check(args[1]))
      fail(PyExc_TypeError, "refuse_bytes() takes a tensor and a tuple of indices");
    refuse_bytes(as_tensor(args[0]), args[1]);
    Py_RETURN_NONE;
  });
}

// A value in another dtype with the history of the value: the engine casts what comes back for it, so that
// torch has no node for the cast.
static TensorRef cast_unseen(Tensor* t, DType dtype) {
  static Primitive& to_dtype = primitive("to_dtype");
  bool seen =
      !recording() || !t->grad_fn || !is_differentiable(dtype) || is_complex(t->dtype) != is_complex(dtype);
  GradMode keep(modes.grad && seen);
  PyObject* args[] = {t->object(), dtype_object(dtype)};
  TensorRef cast(as_tensor(call(to_dtype, args)));
  if (!seen) {
    Edge edge = gradient_edge(t);
    cast->grad_fn = edge.node;
    cast->output_nr = edge.nr;
  }
  return cast;
}

PyMethodDef index_functions[] = {
    {"refuse_bytes", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_refuse_bytes)), METH_FASTCALL,
     nullptr},
    {},
};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, index_functions); });

void assign(Tensor* self, PyObject* index, PyObject* value) {
  bool is_value_tensor = is_tensor(value);
  // Of NumPy's numbers those that are integers, or floats and complex numbers of Python's.
  bool taken = is_value_tensor || PyFloat_Check(value) || PyComplex_Check(value) ||
               (is_number(value) && PyIndex_Check(value));
  if (!taken) {
    failf(PyExc_TypeError, "can't assign a %s to a torch.%sTensor", type_label(value).c_str(),
          dtype_class_name(self->dtype));
  }
  int overflow = 0;
  if (PyLong_Check(value)) PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long");
  Ref<PyObject> rounded;
  if (!is_value_tensor && (self->dtype == DType::f16 || self->dtype == DType::bf16)) {
    // Halves take any number here, where fill_() refuses what is beyond them.
    Scalar number;
    alignas(16) char element[16];
    if (scalar_from_python(value, number) && number.kind <= Scalar::floating) {
      number.store(self->dtype, element);
      rounded = checked(PyFloat_FromDouble(load(self->dtype, element).d));
      value = rounded.get();
    }
  }
  if (Scalar number; !is_value_tensor && scalar_from_python(value, number)) {
    alignas(16) char element[16];
    store_checked(number, self->dtype, element);  // refuses what does not fit, before the index is looked at
  }
  if (index == Py_False) return;
  if (index == Py_True) index = Py_None;  // all of it, with casts, where a mask would insist on the dtype
  Walker walker(self, true);
  walk_any(walker, index);
  TensorRef from = is_value_tensor ? without_leading_ones(as_tensor(value)) : TensorRef();
  bool fills = from && from->ndim == 0 && walker.list && only_index(walker.list.get(), DType::b1);
  if (fills && from->dtype != self->dtype) {
    // Under a mask a single value is cast if it fits, as for masked_fill; other indices insist on the dtype.
    if (alignas(16) char fits[16]; !from->is_meta()) store_checked(item(from.get()), self->dtype, fits);
    from = cast_unseen(from.get(), self->dtype);
  }
  if (walker.list) {
    static Primitive& index_put = primitive("index_put");
    if (!from || from->numel == 1) refuse_bytes(walker.view.get(), walker.list.get());
    // That a tensor is one of inference mode is told after whatever else is wrong.
    if (recording() && !(walker.view->flags & Tensor::INFERENCE) &&
        (walker.view->requires_grad() || (from && from->requires_grad())))
      check_inplace(walker.view.get());
    bool single = !from || from->numel == 1;
    warn_of_expanded(walker.view.get(), single && only_index(walker.list.get(), DType::b1));
    // What a lazy view shows is worked out in memory of its own before anything is written.
    if (from && !fills && !from->is_lazy() && !walker.view->is_lazy())
      check_apart(from.get(), walker.view.get());
    PyObject* args[] = {walker.view->object(), walker.list.get(), from ? from->object() : value, Py_False};
    Py_DECREF(call_in_place(index_put, args));
  } else if (from) {
    // A value of the very shape stays as it is: `x[1:] *= 2` assigns the view to itself.
    if (same_sizes(as_tensor(value), walker.view.get())) from = share(as_tensor(value));
    static Primitive& copy = primitive("copy");
    check_expands(from.get(), walker.view.get());
    bool fits = from->dtype == self->dtype || (is_differentiable(self->dtype) && !is_complex(from->dtype));
    bool number =
        as_tensor(value)->ndim == 0 && fits && walker.view->ndim;  // read before anything is written
    bool shares = from->storage == walker.view->storage && !number;
    if ((shares || (as_tensor(value)->ndim && from->requires_grad())) &&
        !same_sizes(from.get(), walker.view.get())) {
      // As in torch. A part of what is written may overlap once it is expanded.
      static Primitive& expand = primitive("expand");
      Ref<PyObject> sizes = checked(size_object(walker.view->sizes()));
      PyObject* expand_args[] = {from->object(), sizes.get()};
      from = TensorRef(as_tensor(call(expand, expand_args)));
    }
    static Primitive& fill = primitive("fill");
    fills = number;
    if (fills && !walker.view->is_meta()) check_writable(walker.view.get());
    PyObject* args[] = {walker.view->object(), from->object()};
    Py_DECREF(call_in_place(fills ? fill : copy, args));
  } else {
    if (!walker.view->is_meta()) check_writable(walker.view.get());  // fill_() takes an expanded tensor
    static Primitive& fill = primitive("fill");
    // Where it is recorded torch makes a tensor of the number first, and its node has an edge for that.
    const Tensor* base = walker.view->base();
    bool recorded = recording() && (walker.view->requires_grad() || (base && base->requires_grad()));
    if (Scalar number; recorded && scalar_from_python(value, number)) {
      from = new_tensor({}, self->dtype);
      number.store(self->dtype, from->data());
    }
    PyObject* args[] = {walker.view->object(), from ? from->object() : value};
    Py_DECREF(call_in_place(fill, args));
  }
}

}  // namespace

PyObject* tensor_subscript(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    if (any_override(self, index)) return through_protocol("__getitem__", self, &index, 1);
    Tensor* t = as_tensor(self);
    if (PyLong_CheckExact(index)) return select_at(t, 0, index, 0).release_object();
    if (PySlice_Check(index)) return slice_at(t, 0, index, false).release_object();
    Walker walker(t);
    if (PyTuple_CheckExact(index)) walker.walk(&PyTuple_GET_ITEM(index, 0), PyTuple_GET_SIZE(index));
    else walk_any(walker, index);
    if (walker.list) {
      static Primitive& op = primitive("index");
      PyObject* args[] = {walker.view->object(), walker.list.get()};
      return call(op, args);
    }
    if (walker.view.get() == t) {
      static Primitive& alias = primitive("alias");
      return call(alias, &self);
    }
    return walker.view.release_object();
  });
}

int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value) {
  return guarded([&]() -> int {
    if (!value) fail(PyExc_TypeError, "Tensor does not support deleting items");
    if (any_override(self, index) || (modes.torch_function && rl::any_override(value))) {
      PyObject* args[] = {index, value};
      Py_DECREF(through_protocol("__setitem__", self, args, 2));
      return 0;
    }
    assign(as_tensor(self), index, value);
    return 0;
  });
}

}  // namespace rl
