// What transforms of functions (rushlight/func) do with each call: dressing up the function that they return,
// taking apart the arguments that it is given, beginning and ending a level of gradients. In Python each
// costs more than a small operation; what is not plain is left to the functions there.
#include "forwards.h"
#include "levels.h"

namespace rl {
namespace {

// Any other callable: the attributes that it has, by name.
bool dress_by_name(PyObject* wrapper, PyObject* wrapped) {
  static PyObject* names[] = {
    PyUnicode_InternFromString("__module__"),
    PyUnicode_InternFromString("__name__"),
    PyUnicode_InternFromString("__qualname__"),
    PyUnicode_InternFromString("__doc__"),
#if PY_VERSION_HEX < 0x030E0000
    PyUnicode_InternFromString("__annotations__"),
#else
    PyUnicode_InternFromString("__annotate__"),
#endif
#if PY_VERSION_HEX >= 0x030C0000
    PyUnicode_InternFromString("__type_params__"),
#endif
  };
  static PyObject *dict_name = PyUnicode_InternFromString("__dict__"),
                  *wrapped_name = PyUnicode_InternFromString("__wrapped__");
  for (PyObject* name : names) {
    Ref<PyObject> value(PyObject_GetAttr(wrapped, name));
    if (!value) {
      if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
      PyErr_Clear();
    } else if (PyObject_SetAttr(wrapper, name, value.get()) < 0) {
      return false;
    }
  }
  Ref<PyObject> own(PyObject_GetAttr(wrapper, dict_name)), others(PyObject_GetAttr(wrapped, dict_name));
  if (!others) {
    if (!own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    PyErr_Clear();
  }
  if (!own || (others && PyDict_Update(own.get(), others.get()) < 0)) return false;
  return PyObject_SetAttr(wrapper, wrapped_name, wrapped) == 0;
}

// dressed(wrapper, wrapped): functools.update_wrapper.
PyObject* py_dressed(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 2) {
    PyErr_SetString(PyExc_TypeError, "dressed(wrapper, wrapped) expected");
    return nullptr;
  }
#if PY_VERSION_HEX < 0x030E0000
  if (PyFunction_Check(args[0]) && PyFunction_Check(args[1])) {
    auto* to = reinterpret_cast<PyFunctionObject*>(args[0]);
    auto* from = reinterpret_cast<PyFunctionObject*>(args[1]);
    static PyObject* name = PyUnicode_InternFromString("__wrapped__");
    if (!to->func_dict && !(to->func_dict = PyDict_New())) return nullptr;
    if (from->func_dict && PyDict_Update(to->func_dict, from->func_dict) < 0) return nullptr;
    if (PyDict_SetItem(to->func_dict, name, args[1]) < 0) return nullptr;
    Py_XSETREF(to->func_name, Py_NewRef(from->func_name));
    Py_XSETREF(to->func_qualname, Py_NewRef(from->func_qualname));
    Py_XSETREF(to->func_doc, Py_XNewRef(from->func_doc));
    Py_XSETREF(to->func_module, Py_XNewRef(from->func_module));
    Py_XSETREF(to->func_annotations, Py_XNewRef(from->func_annotations));
#if PY_VERSION_HEX >= 0x030C0000
    Py_XSETREF(to->func_typeparams, Py_XNewRef(from->func_typeparams));
#endif
    return Py_NewRef(args[0]);
  }
#endif
  return dress_by_name(args[0], args[1]) ? Py_NewRef(args[0]) : nullptr;
}

bool is_leaf(PyObject* o, PyObject* nodes) {
  if (is_plain_tensor(o)) return true;
  if (PyTuple_Check(o)) return false;
  PyObject* node = PyDict_GetItemWithError(nodes, reinterpret_cast<PyObject*>(Py_TYPE(o)));
  return !node && !PyErr_Occurred();
}

// The spec of a container of leaves: of tuples and lists by their length, of dicts by their keys, if these
// are strings. Borrowed; null without a Python error if it is not known.
PyObject* known_spec(PyObject* tree, PyObject* specs, Py_ssize_t count) {
  if (!PyDict_Check(specs)) return nullptr;
  if (!PyDict_CheckExact(tree)) {
    Ref<PyObject> length = checked(PyLong_FromSsize_t(count));
    return PyDict_GetItemWithError(specs, length.get());
  }
  Ref<PyObject> keys = checked(PyTuple_New(count));
  PyObject *key, *value;
  Py_ssize_t i = 0;
  for (Py_ssize_t at = 0; i < count && PyDict_Next(tree, &at, &key, &value); i++) {
    if (!PyUnicode_CheckExact(key)) return nullptr;  // 1 and True are equal
    PyTuple_SET_ITEM(keys.get(), i, Py_NewRef(key));
  }
  return i == count ? PyDict_GetItemWithError(specs, keys.get()) : nullptr;
}

// flatten_plainly(tree, nodes, specs, of_leaf, plain): ([leaves], spec) of a leaf, or of a tuple, list or
// dict of leaves whose spec is known; None of others. `nodes` says of which types containers are, `plain`
// what it must say of the three; `specs` are dicts of specs of each.
PyObject* py_flatten(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    bool right = n == 5 && PyDict_Check(args[1]) && PyTuple_Check(args[2]) && PyTuple_Check(args[4]) &&
                 PyTuple_GET_SIZE(args[2]) == 3 && PyTuple_GET_SIZE(args[4]) == 3;
    if (!right) fail(PyExc_TypeError, "flatten_plainly(tree, nodes, specs, of_leaf, plain) expected");
    PyObject *tree = args[0], *nodes = args[1];
    auto nothing = [] { return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None); };
    int which = PyTuple_CheckExact(tree) ? 0 : PyList_CheckExact(tree) ? 1 : PyDict_CheckExact(tree) ? 2 : -1;
    if (which < 0) {
      if (!is_leaf(tree, nodes)) return nothing();
      Ref<PyObject> leaves = checked(PyList_New(1));
      PyList_SET_ITEM(leaves.get(), 0, Py_NewRef(tree));
      return PyTuple_Pack(2, leaves.get(), args[3]);
    }
    PyObject* kind = reinterpret_cast<PyObject*>(Py_TYPE(tree));
    if (PyDict_GetItemWithError(nodes, kind) != PyTuple_GET_ITEM(args[4], which)) return nothing();
    Ref<PyObject> leaves = checked(which == 2 ? PyDict_Values(tree) : PySequence_List(tree));
    Py_ssize_t count = PyList_GET_SIZE(leaves.get());
    for (Py_ssize_t i = 0; i < count; i++) {
      if (!is_leaf(PyList_GET_ITEM(leaves.get(), i), nodes)) return nothing();
    }
    PyObject* spec = known_spec(tree, PyTuple_GET_ITEM(args[2], which), count);
    return spec ? PyTuple_Pack(2, leaves.get(), spec) : nothing();
  });
}

// Tensors in tuples, lists and dicts as those of a level; null without a Python error where there is anything
// else than numbers and strings beside them.
PyObject* raised_in(PyObject* o, PyObject* number, bool batched, int depth = 0) {
  if (is_tensor(o)) return wrap_at_level(as_tensor(o), number, batched).release_object();
  if (PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyUnicode_CheckExact(o) || PyBool_Check(o) ||
      o == Py_None)
    return Py_NewRef(o);
  if (depth > 100) return nullptr;
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    Ref<PyObject> parts = checked(PySequence_Tuple(o));
    Py_ssize_t count = PyTuple_GET_SIZE(parts.get());
    Ref<PyObject> made = checked(PyTuple_CheckExact(o) ? PyTuple_New(count) : PyList_New(count));
    for (Py_ssize_t i = 0; i < count; i++) {
      PyObject* one = raised_in(PyTuple_GET_ITEM(parts.get(), i), number, batched, depth + 1);
      if (!one) return nullptr;
      if (PyTuple_CheckExact(o)) PyTuple_SET_ITEM(made.get(), i, one);
      else PyList_SET_ITEM(made.get(), i, one);
    }
    return made.release();
  }
  if (!PyDict_CheckExact(o)) return nullptr;
  Ref<PyObject> copy = checked(PyDict_Copy(o)), made = checked(PyDict_New());
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(copy.get(), &at, &key, &value);) {
    Ref<PyObject> one(raised_in(value, number, batched, depth + 1));
    if (!one) return nullptr;
    if (PyDict_SetItem(made.get(), key, one.get()) < 0) throw PythonError{};
  }
  return made.release();
}

// raise_all(structure, number, batched): None of what has others than the containers and leaves above.
PyObject* py_raise_all(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3 || !PyLong_Check(args[1]))
      fail(PyExc_TypeError, "raise_all(structure, number, batched) expected");
    PyObject* made = raised_in(args[0], args[1], args[2] == Py_True);
    return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
  });
}

// The functions of this module that begin and end things, as Python calls them.
PyObject* own(const char* name) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._C"));
  return checked(PyObject_GetAttrString(module.get(), name)).release();
}

// begin_gradients(message): a level of gradients begins, where everything is recorded and hooks on saved
// tensors are refused with the message; returns (number, the message before, whether was recorded), which
// end_gradients takes.
PyObject* py_begin_gradients(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    static PyObject *disabled = own("disabled_saved_hooks"), *disable = own("disable_saved_hooks"),
                    *allow = own("allow_saved_hooks"), *push = own("push_level"), *pop = own("pop_level"),
                    *kind = PyLong_FromLong(0), *none = PyUnicode_InternFromString("");
    Ref<PyObject> before = checked(PyObject_CallNoArgs(disabled));
    checked(PyObject_CallOneArg(disable, message));
    PyObject* about[] = {kind, kind, none};
    Ref<PyObject> number(PyObject_Vectorcall(push, about, 3, nullptr)), recording;
    if (number) recording = Ref<PyObject>(switch_grad(Py_True));
    if (recording) return PyTuple_Pack(3, number.get(), before.get(), recording.get());
    PyObject *type, *error, *traceback;  // all is as it was
    PyErr_Fetch(&type, &error, &traceback);
    if (number) Ref<PyObject>(PyObject_CallOneArg(pop, number.get()));
    Ref<PyObject>(PyObject_CallOneArg(allow, before.get()));
    PyErr_Restore(type, error, traceback);
    return nullptr;
  });
}

PyObject* py_end_gradients(PyObject*, PyObject* begun) {
  return guarded([&]() -> PyObject* {
    static PyObject *allow = own("allow_saved_hooks"), *pop = own("pop_level");
    if (!PyTuple_CheckExact(begun) || PyTuple_GET_SIZE(begun) != 3)
      fail(PyExc_TypeError, "end_gradients takes what begin_gradients returned");
    Ref<PyObject> recorded(switch_grad(PyTuple_GET_ITEM(begun, 2)));
    Ref<PyObject> ended(recorded ? PyObject_CallOneArg(pop, PyTuple_GET_ITEM(begun, 0)) : nullptr);
    return ended ? PyObject_CallOneArg(allow, PyTuple_GET_ITEM(begun, 1)) : nullptr;
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {{"dressed", FAST(py_dressed), nullptr},
                           {"flatten_plainly", FAST(py_flatten), nullptr},
                           {"raise_all", FAST(py_raise_all), nullptr},
                           {"begin_gradients", py_begin_gradients, METH_O, nullptr},
                           {"end_gradients", py_end_gradients, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
