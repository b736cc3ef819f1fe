// Rewriting the arguments of chosen functions while somebody asks for it: what autocast is made of.
//
// `choose_calls(functions, rewrite, product)` says once which Primitives and Functions these are;
// `hook_calls(True)` replaces their vectorcall entries by one that first calls `rewrite(function,
// [arguments])` for another list of arguments, and makes `a @ b` a call of `product`; `hook_calls(False)`
// puts the old entries back. So a program that never uses autocast pays nothing for it, and who enters a
// block in every step pays little.
#include "call_hooks.h"

#include <unordered_map>
#include <vector>

#include "primitive.h"

namespace rl {

PyObject* hooked_product = nullptr;

namespace {

struct Chosen {
  PyObject* function;  // owned
  vectorcallfunc original;
};
std::vector<Chosen> chosen;
std::unordered_map<PyObject*, size_t> places;  // in `chosen`
PyObject* rewrite = nullptr;                   // owned, as is
PyObject* product = nullptr;
bool hooked = false;

vectorcallfunc& entry_of(PyObject* function) {
  return *reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function) +
                                            Py_TYPE(function)->tp_vectorcall_offset);
}

PyObject* rewritten_call(PyObject* function, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  vectorcallfunc original = chosen[places.find(function)->second].original;
  if (!hooked) return original(function, args, nargsf, kwnames);  // the entry was read before
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

PyObject* py_choose(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3 || !PyTuple_Check(args[0])) {
      fail(PyExc_TypeError, "choose_calls(functions, rewrite, product) expected");
    }
    if (rewrite) fail(PyExc_RuntimeError, "calls are chosen already");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) {
      PyObject* function = PyTuple_GET_ITEM(args[0], i);
      // Calls of Python's own functions do not always go through their entry.
      if (PyFunction_Check(function) || !PyVectorcall_Function(function)) {
        failf(PyExc_TypeError, "calls of %s cannot be hooked", Py_TYPE(function)->tp_name);
      }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) {
      PyObject* function = PyTuple_GET_ITEM(args[0], i);
      if (places.emplace(function, chosen.size()).second) chosen.push_back({Py_NewRef(function), nullptr});
    }
    rewrite = Py_NewRef(args[1]);
    product = Py_NewRef(args[2]);
    Py_RETURN_NONE;
  });
}

PyObject* py_hook(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    if (!PyBool_Check(on)) fail(PyExc_TypeError, "hook_calls(on) expected");
    if (hooked == (on == Py_True)) Py_RETURN_NONE;
    hooked = on == Py_True;
    hooked_product = hooked ? product : nullptr;
    for (Chosen& one : chosen) {
      vectorcallfunc& entry = entry_of(one.function);
      if (hooked) one.original = entry;
      entry = hooked ? rewritten_call : one.original;
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"choose_calls", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_choose)), METH_FASTCALL,
     "choose_calls(functions, rewrite, product): whose arguments `rewrite` is asked for while calls are "
     "hooked."},
    {"hook_calls", py_hook, METH_O, "hook_calls(on): whether calls of what was chosen are rewritten."},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
