// What modules do natively: attribute_tables.cpp, module_call.cpp.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace rl {

// The tp_getattro of classes that keep attributes in tables.
PyObject* find_in_tables(PyObject* self, PyObject* name);

}  // namespace rl
