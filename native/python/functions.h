// Public functions and the __torch_function__ protocol.
//
// `Function` wraps a plain Python function: it looks whether an argument overrides __torch_function__ (about
// 10 ns), and calls the function if not. It also binds as a method. rushlight/ops/_public.py makes them.
#pragma once
#include "../graph/modes.h"
#include "../tensor/scalar.h"

namespace rl {

bool overrides_torch_function(PyObject* o);
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

Scalar number_of(Tensor* t);  // item() with torch's errors
void warn_of_lost_imaginary(const Tensor* from, DType to);
void warn_of_lost_history(const Tensor* t);    // once, where a number is made of what has a gradient
PyObject* power_of(PyObject* a, PyObject* b);  // a ** b

// `copy` is what the tensor that a running function writes over held before.
void note_before_write(const Tensor* of, Tensor* copy);

PyObject* tensor_subscript(PyObject* self, PyObject* index);  // index_ops.cpp
int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value);

}  // namespace rl
