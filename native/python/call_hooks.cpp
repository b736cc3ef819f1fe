// Rewriting the arguments of chosen functions while somebody asks for it: what autocast is made of.
//
// `hook_calls(functions, rewrite)` replaces the vectorcall entry of these objects (Primitives and Functions)
// by one that first calls `rewrite(function, [arguments])` for another list of arguments; `unhook_calls()`
// puts the old entries back. So a program that never uses autocast pays nothing for it.
#include <unordered_map>
#include <vector>

#include "primitive.h"

namespace rl {
namespace {

struct Hooked {
  PyObject* function;  // owned
  vectorcallfunc original;
};
std::unordered_map<PyObject*, Hooked> hooked;
PyObject* rewrite = nullptr;  // owned

vectorcallfunc& entry_of(PyObject* function) {
  return *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function) +
                                            Py_TYPE(function)->tp_vectorcall_offset);
}

PyObject* rewritten_call(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto found = hooked.find(function);
  if (found == hooked.end()) {  // unhooked by another thread after the entry was read
    return entry_of(function)(function, args, nargsf, kwnames);
  }
  vectorcallfunc original = found->second.original;
  // What is written to a given tensor is computed as asked for.
  Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; i++) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "out") == 0 &&
        args[PyVectorcall_NARGS(nargsf) + i] != Py_None)
      return original(function, args, nargsf, kwnames);
  }
  return guarded([&]() -> PyObject* {
    Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
    Py_ssize_t count = positional + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    Ref<PyObject> list = checked(PyList_New(count));
    for (Py_ssize_t i = 0; i < count; i++) PyList_SET_ITEM(list.get(), i, Py_NewRef(args[i]));
    Ref<PyObject> done = checked(PyObject_CallFunctionObjArgs(rewrite, function, list.get(), nullptr));
    std::vector<PyObject*> values;
    if (!PyList_Check(done.get()) || PyList_GET_SIZE(done.get()) != count)
      fail(PyExc_RuntimeError, "the arguments of a call were rewritten to others in number");
    for (Py_ssize_t i = 0; i < count; i++) values.push_back(PyList_GET_ITEM(done.get(), i));
    return original(function, values.data(), size_t(positional), kwnames);
  });
}

PyObject* py_unhook(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    for (auto& [function, entry] : hooked) {
      entry_of(function) = entry.original;
      Py_DECREF(entry.function);
    }
    hooked.clear();
    Py_CLEAR(rewrite);
    Py_RETURN_NONE;
  });
}

PyObject* py_hook(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyTuple_Check(args[0])) fail(PyExc_TypeError, "hook_calls(functions, rewrite) expected");
    if (rewrite) fail(PyExc_RuntimeError, "calls are hooked already");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) {
      PyObject* function = PyTuple_GET_ITEM(args[0], i);
      // Calls of Python's own functions do not always go through their entry.
      if (PyFunction_Check(function) || !PyVectorcall_Function(function)) {
        failf(PyExc_TypeError, "calls of %s cannot be hooked", Py_TYPE(function)->tp_name);
      }
    }
    rewrite = Py_NewRef(args[1]);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) {
      PyObject* function = PyTuple_GET_ITEM(args[0], i);
      if (hooked.count(function)) continue;
      hooked[function] = {Py_NewRef(function), entry_of(function)};
      entry_of(function) = rewritten_call;
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"hook_calls", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_hook)), METH_FASTCALL, nullptr},
    {"unhook_calls", py_unhook, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
