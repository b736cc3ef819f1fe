// Public functions and the __torch_function__ protocol.
//
// `Function` wraps a plain Python function: it looks whether an argument overrides __torch_function__ (about
// 10 ns), and calls the function if not. It also binds as a method. rushlight/ops/_public.py makes them.
#pragma once
#include "../graph/modes.h"
#include "../tensor/scalar.h"
#include "types.h"

namespace rl {

// The arguments of a call as Python functions are asked about them.
struct Call {
  Ref<PyObject> args, kwargs;

  Call(PyObject* const* given, Py_ssize_t positional, PyObject* kwnames)
      : args(checked(PyTuple_New(positional))), kwargs(checked(PyDict_New())) {
    for (Py_ssize_t k = 0; k < positional; k++) PyTuple_SET_ITEM(args.get(), k, Py_NewRef(given[k]));
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
      if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, k), given[positional + k]) < 0)
        throw PythonError{};
    }
  }
};

bool overrides_torch_function(PyObject* o);
bool any_overrides(PyObject* const* values, size_t count);  // of the tensors among them
// Types that plainly do not override; everything else is looked up.
inline bool surely_plain(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return type == TensorType || type == ParameterType || type == &PyLong_Type || type == &PyFloat_Type ||
         o == Py_None || type == &PyBool_Type || type == &PyUnicode_Type || is_dtype(o);
}
// Whether o, or an element of it if it is a list, overrides.
bool any_override_slowly(PyObject* o);
inline bool any_override(PyObject* o) { return !surely_plain(o) && any_override_slowly(o); }
// Whether an attribute or a method of one tensor goes through the protocol: it is of an overriding type, or a
// TorchFunctionMode is on. False at once for the tensors that most are.
bool asks_protocol_slowly(PyObject* self);
inline bool asks_protocol(PyObject* self) {
  return (modes.function_mode || !is_plain_tensor(self)) && asks_protocol_slowly(self);
}
// Tensor.<method>(self, arguments...) through the protocol. New reference; throws.
PyObject* through_protocol(const char* method, PyObject* self, PyObject* const* args = nullptr,
                           Py_ssize_t n = 0, PyObject* kwnames = nullptr);
// Makes attributes of Tensor ask the protocol, as Tensor.name.__get__ and __set__. The table must stay.
void guard_attributes(PyGetSetDef* table);
// Asks the overriding arguments in turn (subclasses before their bases). New reference; throws.
PyObject* dispatch_torch_function(PyObject* function, PyObject* args, PyObject* kwargs);
PyObject* dispatch_call(PyObject* function, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames);

// A warning is shown by code of the user's, which may resize what we were about to read or write.
class Unresized {
 public:
  explicit Unresized(const Tensor* t) : t(t), dtype(t->dtype) { sizes.assign(t->sizes()); }
  void check() const;  // an error if it is no longer what it was

 private:
  const Tensor* t;
  DType dtype;
  Shape sizes;
};

Scalar number_of(Tensor* t);  // item() with torch's errors
void warn_of_lost_imaginary(const Tensor* from, DType to, const Tensor* into = nullptr);
void warn_of_lost_history(const Tensor* t);    // once, where a number is made of what has a gradient
PyObject* power_of(PyObject* a, PyObject* b);  // a ** b

// `copy` is what the tensor that a running function writes over held before.
void note_before_write(const Tensor* of, Tensor* copy);

PyObject* tensor_subscript(PyObject* self, PyObject* index);  // index_ops.cpp
int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value);

}  // namespace rl
