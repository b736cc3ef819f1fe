// Public functions and the __torch_function__ protocol.
//
// `Function` wraps a plain Python function: it looks whether an argument overrides __torch_function__ (about
// 10 ns), and calls the function if not. It also binds as a method. rushlight/ops/_public.py makes them.
#pragma once
#include "../tensor/scalar.h"

namespace rl {

bool overrides_torch_function(PyObject* o);
// Asks the overriding arguments in turn (subclasses before their bases). New reference; throws.
PyObject* dispatch_torch_function(PyObject* function, PyObject* args, PyObject* kwargs);

Scalar number_of(Tensor* t);                   // item() with torch's errors
PyObject* power_of(PyObject* a, PyObject* b);  // a ** b

PyObject* tensor_subscript(PyObject* self, PyObject* index);  // index_ops.cpp
int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value);

}  // namespace rl
