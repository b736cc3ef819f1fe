// Attributes that live in tables: what `self.fc1` or `self.weight` of a module costs.
//
// A module keeps parameters, buffers and submodules in dicts of its own and finds them in `__getattr__`,
// which Python calls after it has looked everywhere else and made an AttributeError of it. That took longer
// than the layer that was looked up. `find_in_tables(cls, tables)` lets a class look into the named dicts
// before anything is raised. Whatever else happens is Python's doing: an attribute that is nowhere goes on to
// `__getattr__`, a class with a `__getattr__` of its own stays as it is, and assigning one later undoes this.
// Not so with `__setattr__`: Python lets nobody call object.__setattr__ of what has one of its own in C. So
// the one of modules asks `set_plainly` first.
#include "module_call.h"
#include "primitive.h"

namespace rl {
namespace {

PyObject* table_names;    // tuple of str
PyObject* plain_getattr;  // the __getattr__ that looks into those tables
PyObject* getattr_name;   // "__getattr__"
PyObject* getattribute_name;

}  // namespace

PyObject* find_in_tables(PyObject* self, PyObject* name) {
  // What the class does not have is in the instance's dict or nowhere.
  bool in_class = _PyType_Lookup(Py_TYPE(self), name);
  PyObject* found =
      in_class ? _PyObject_GenericGetAttrWithDict(self, name, nullptr, /*suppress=*/1) : nullptr;
  if (found || PyErr_Occurred()) return found;
  Ref<PyObject> state(PyObject_GenericGetDict(self, nullptr));
  if (!state) return nullptr;
  if (!in_class) {
    found = PyDict_GetItemWithError(state.get(), name);
    if (found || PyErr_Occurred()) return Py_XNewRef(found);
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(table_names); i++) {
    PyObject* table = PyDict_GetItemWithError(state.get(), PyTuple_GET_ITEM(table_names, i));
    if (!table || !PyDict_CheckExact(table)) break;  // __getattr__ says what is wrong, or asks the table
    found = PyDict_GetItemWithError(table, name);
    if (found || PyErr_Occurred()) return Py_XNewRef(found);
  }
  if (PyErr_Occurred()) return nullptr;
  return PyObject_CallFunctionObjArgs(plain_getattr, self, name, nullptr);
}

namespace {

PyObject* py_find_in_tables(PyObject*, PyObject* args) {
  PyTypeObject* type;
  PyObject* tables = nullptr;
  if (!PyArg_ParseTuple(args, "O!|O!", &PyType_Type, &type, &PyTuple_Type, &tables)) return nullptr;
  PyObject* given = _PyType_Lookup(type, getattr_name);  // borrowed
  if (tables) {
    Py_XSETREF(table_names, Py_NewRef(tables));
    Py_XSETREF(plain_getattr, Py_XNewRef(given));
  }
  bool overridden =
      _PyType_Lookup(type, getattribute_name) != _PyType_Lookup(&PyBaseObject_Type, getattribute_name);
  if (given && given == plain_getattr && !overridden && type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    type->tp_getattro = find_in_tables;
    PyType_Modified(type);
  }
  Py_RETURN_NONE;
}

// Whether a value is of a type that never goes into a table.
bool is_never_registered(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  return type == &PyBool_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type ||
         type == &PyTuple_Type || type == &PyList_Type || type == &PyDict_Type;
}

// set_plainly(object, name, value): whether it was an ordinary attribute, which is set.
PyObject* py_set_plainly(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 3 || !PyUnicode_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "set_plainly(object, name, value) expected");
    return nullptr;
  }
  PyObject** state = _PyObject_GetDictPtr(args[0]);
  if (!state || !*state || !is_never_registered(args[2])) Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(table_names); i++) {
    PyObject* table = PyDict_GetItemWithError(*state, PyTuple_GET_ITEM(table_names, i));
    if (!table || !PyDict_CheckExact(table) || PyDict_GetItemWithError(table, args[1]) || PyErr_Occurred()) {
      if (PyErr_Occurred()) return nullptr;
      Py_RETURN_FALSE;
    }
  }
  if (PyObject_GenericSetAttr(args[0], args[1], args[2]) < 0) return nullptr;
  Py_RETURN_TRUE;
}

PyMethodDef functions[] = {
    {"set_plainly", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_set_plainly)), METH_FASTCALL,
     nullptr},
    {"find_in_tables", py_find_in_tables, METH_VARARGS,
     "find_in_tables(cls, tables=None): attributes are looked for in these dicts of an instance before "
     "__getattr__ is asked. The first call, with the tables, names the __getattr__ that does the same."},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  getattr_name = PyUnicode_InternFromString("__getattr__");
  getattribute_name = PyUnicode_InternFromString("__getattribute__");
  PyModule_AddFunctions(module, functions);
});

}  // namespace
}  // namespace rl
