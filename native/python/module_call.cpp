// What calling a module costs: `net(x)`.
//
// A call goes through `ModuleCall.__call__` (rushlight/nn/_call.py), a Python function that takes any
// arguments, to run `forward` and nothing else, as long as nobody registered a hook. That took as long as a
// small layer. So classes whose `__call__` it is call `forward` from here; whatever is not plain goes the
// Python way, which says what a call does. As with attributes (attribute_tables.cpp) a `__call__` of a
// class's own stays what it is, and assigning one later, to the class or to Module, undoes this.
#include "module_call.h"

#include <algorithm>

#include "primitive.h"

namespace rl {
namespace {

PyObject* plain_call;  // ModuleCall.__call__
PyObject* note_error;  // _note_module(error, module)
PyObject* call_name;   // "__call__"
PyObject *hooked_name, *forward_name;
bool hooked_everywhere = false;  // a hook of all modules was registered once

// The longer way, by the Python function.
PyObject* call_by_python(PyObject* self, PyObject* args, PyObject* kwargs) {
  Py_ssize_t count = PyTuple_GET_SIZE(args);
  Ref<PyObject> all(PyTuple_New(count + 1));
  if (!all) return nullptr;
  PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  return PyObject_Call(plain_call, all.get(), kwargs);
}

// Lets the error that is set tell in which module it arose.
void tell_module(PyObject* module) {
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  if (traceback) PyException_SetTraceback(error, traceback);
  Ref<PyObject> told(PyObject_CallFunctionObjArgs(note_error, error, module, nullptr));
  if (told) return PyErr_Restore(type, error, traceback);
  PyObject *own_type, *own, *own_traceback;
  PyErr_Fetch(&own_type, &own, &own_traceback);
  PyErr_NormalizeException(&own_type, &own, &own_traceback);
  PyException_SetContext(own, error);
  PyErr_Restore(own_type, own, own_traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
}

PyObject* call_forward(PyObject* self, PyObject* forward, PyObject* args, PyObject* kwargs) {
  constexpr Py_ssize_t FEW = 8;
  Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (count >= FEW || !PyType_HasFeature(Py_TYPE(forward), Py_TPFLAGS_METHOD_DESCRIPTOR)) {
    Ref<PyObject> bound(PyObject_GetAttr(self, forward_name));
    return bound ? PyObject_Call(bound.get(), args, kwargs) : nullptr;
  }
  PyObject* given[FEW] = {self};
  for (Py_ssize_t i = 0; i < count; i++) given[i + 1] = PyTuple_GET_ITEM(args, i);
  return PyObject_VectorcallDict(forward, given, size_t(count + 1), kwargs);
}

PyObject* call_module(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject** state = _PyObject_GetDictPtr(self);
  bool plain = state && *state && PyDict_CheckExact(*state) && !hooked_everywhere &&
               Py_TYPE(self)->tp_getattro == find_in_tables;
  if (plain) {
    plain = _PyType_Lookup(Py_TYPE(self), hooked_name) == Py_False &&
            !PyDict_GetItemWithError(*state, hooked_name) && !PyDict_GetItemWithError(*state, forward_name);
    if (PyErr_Occurred()) return nullptr;
  }
  PyObject* forward = plain ? _PyType_Lookup(Py_TYPE(self), forward_name) : nullptr;  // borrowed
  if (!forward) return call_by_python(self, args, kwargs);
  Ref<PyObject> held(Py_NewRef(forward));
  PyObject* result = call_forward(self, forward, args, kwargs);
  if (!result && PyErr_ExceptionMatches(PyExc_Exception)) tell_module(self);
  return result;
}

// call_natively(cls, call=None, note=None): the first call, with ModuleCall.__call__ and what is told of an
// error, names the function that does the same.
PyObject* py_call_natively(PyObject*, PyObject* args) {
  PyTypeObject* type;
  PyObject *call = nullptr, *note = nullptr;
  if (!PyArg_ParseTuple(args, "O!|OO", &PyType_Type, &type, &call, &note)) return nullptr;
  if (call && note) {
    Py_XSETREF(plain_call, Py_NewRef(call));
    Py_XSETREF(note_error, Py_NewRef(note));
  }
  PyObject* given = _PyType_Lookup(type, call_name);  // borrowed
  if (given && given == plain_call && type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    type->tp_call = call_module;
    PyType_Modified(type);
  }
  Py_RETURN_NONE;
}

PyObject* py_hook_all_modules(PyObject*, PyObject*) {
  hooked_everywhere = true;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"call_natively", py_call_natively, METH_VARARGS,
     "call_natively(cls, call=None, note=None): instances of a module class run `forward` without the Python "
     "function `call`, which does the same; `note(error, module)` is told of errors."},
    {"hook_all_modules", py_hook_all_modules, METH_NOARGS,
     "From now on all calls of modules look for hooks."},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  call_name = PyUnicode_InternFromString("__call__");
  hooked_name = PyUnicode_InternFromString("_hooked");
  forward_name = PyUnicode_InternFromString("forward");
  PyModule_AddFunctions(module, functions);
});

}  // namespace
}  // namespace rl
