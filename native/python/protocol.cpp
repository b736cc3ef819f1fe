// The __torch_function__ protocol: who is asked, and how. Read `overrides_torch_function` first; the order in
// which overriding arguments are asked is rushlight/overrides.py's business.
#include <algorithm>
#include <string_view>
#include <vector>

#include "functions.h"
#include "primitive.h"
#include "tensor_type.h"

namespace rl {
namespace {

PyObject* protocol_name = nullptr;      // "__torch_function__"
PyObject* disabled_protocol = nullptr;  // what Parameter has there

}  // namespace

bool any_override_slowly(PyObject* o) {
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
      PyObject* element = PySequence_Fast_GET_ITEM(o, i);
      if (!surely_plain(element) && overrides_torch_function(element)) return true;
    }
    return false;
  }
  return overrides_torch_function(o);
}

bool overrides_torch_function(PyObject* o) {
  if (is_plain_tensor(o)) return false;
  PyObject* method = _PyType_Lookup(Py_TYPE(o), protocol_name);
  return method && method != disabled_protocol;
}

bool any_overrides(PyObject* const* values, size_t count) {
  return std::any_of(values, values + count,
                     [](PyObject* o) { return is_tensor(o) && overrides_torch_function(o); });
}

PyObject* dispatch_torch_function(PyObject* function, PyObject* args, PyObject* kwargs) {
  static PyObject* dispatch = nullptr;
  if (!dispatch) {
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.overrides"));
    dispatch = checked(PyObject_GetAttrString(module.get(), "_dispatch")).release();
  }
  PyObject* list[] = {function, args, kwargs ? kwargs : Py_None};
  return checked(PyObject_Vectorcall(dispatch, list, 3, nullptr)).release();
}

// The call handed to the protocol as a tuple and a dict.
PyObject* dispatch_call(PyObject* function, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Call call(args, positional, kwnames);
  return dispatch_torch_function(function, call.args.get(), call.kwargs.get());
}

bool asks_protocol_slowly(PyObject* self) {
  return modes.function_mode || (modes.torch_function && overrides_torch_function(self));
}

PyObject* through_protocol(const char* method, PyObject* self, PyObject* const* args, Py_ssize_t n,
                           PyObject* kwnames) {
  Ref<PyObject> function = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), method));
  std::vector<PyObject*> all{self};
  all.insert(all.end(), args, args + n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
  return dispatch_call(function.get(), all.data(), n + 1, kwnames);
}

namespace {

struct GuardedAttribute {
  const char* name;
  getter get;
  setter set;
  void* closure;
};

PyObject* attribute_through_protocol(const char* name, const char* method, PyObject* self, PyObject* value) {
  Ref<PyObject> descriptor = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), name));
  Ref<PyObject> function = checked(PyObject_GetAttrString(descriptor.get(), method));
  PyObject* args[] = {self, value};
  return dispatch_call(function.get(), args, value ? 2 : 1, nullptr);
}
PyObject* guarded_get(PyObject* self, void* closure) {
  auto* attribute = static_cast<GuardedAttribute*>(closure);
  if (asks_protocol(self)) [[unlikely]]
    return guarded([&] { return attribute_through_protocol(attribute->name, "__get__", self, nullptr); });
  return attribute->get(self, attribute->closure);
}
int guarded_set(PyObject* self, PyObject* value, void* closure) {
  auto* attribute = static_cast<GuardedAttribute*>(closure);
  if (asks_protocol(self)) [[unlikely]] {
    return guarded([&]() -> int {
      Py_DECREF(attribute_through_protocol(attribute->name, value ? "__set__" : "__delete__", self, value));
      return 0;
    });
  }
  if (!attribute->set) {
    PyErr_Format(PyExc_AttributeError, "attribute '%s' of 'torch._C.TensorBase' objects is not writable",
                 attribute->name);
    return -1;
  }
  return attribute->set(self, value, attribute->closure);
}

}  // namespace

void guard_attributes(PyGetSetDef* table) {
  for (PyGetSetDef* entry = table; entry->name; entry++) {
    if (std::string_view(entry->name).starts_with("__")) continue;
    auto* attribute = new GuardedAttribute{entry->name, entry->get, entry->set, entry->closure};
    entry->closure = attribute;
    entry->get = guarded_get;
    entry->set = guarded_set;
  }
}

namespace {

PyObject* disabled_torch_function(PyObject*, PyObject*) { Py_RETURN_NOTIMPLEMENTED; }
PyObject* set_torch_function_enabled(PyObject*, PyObject* on) {
  bool before = modes.torch_function;
  modes.torch_function = on == Py_True;
  return PyBool_FromLong(before);
}
PyObject* is_torch_function_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes.torch_function); }
PyObject* is_function_mode_enabled(PyObject*, PyObject*) { return PyBool_FromLong(modes.function_mode); }
PyObject* set_function_mode(PyObject*, PyObject* on) {
  bool before = modes.function_mode;
  modes.function_mode = on == Py_True;
  return PyBool_FromLong(before);
}
bool asks(PyObject* o) { return modes.function_mode || (modes.torch_function && any_override(o)); }
PyObject* has_torch_function_unary(PyObject*, PyObject* o) {
  return guarded([&] { return PyBool_FromLong(asks(o)); });
}
PyObject* has_torch_function_variadic(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    for (Py_ssize_t i = 0; i < n; i++) {
      if (asks(args[i])) return Py_NewRef(Py_True);
    }
    return Py_NewRef(Py_False);
  });
}
PyObject* has_torch_function(PyObject*, PyObject* o) {
  return guarded([&] {
    Ref<PyObject> list = checked(PySequence_Fast(o, "expected a sequence"));
    Py_ssize_t n = PySequence_Fast_GET_SIZE(list.get());
    return has_torch_function_variadic(nullptr, PySequence_Fast_ITEMS(list.get()), n);
  });
}

PyMethodDef functions[] = {
    {"_disabled_torch_function_impl", disabled_torch_function, METH_VARARGS, nullptr},
    {"set_torch_function_enabled", set_torch_function_enabled, METH_O, nullptr},
    {"_is_torch_function_enabled", is_torch_function_enabled, METH_NOARGS, nullptr},
    {"_is_torch_function_mode_enabled", is_function_mode_enabled, METH_NOARGS, nullptr},
    {"set_function_mode", set_function_mode, METH_O, nullptr},
    {"has_torch_function", has_torch_function, METH_O, nullptr},
    {"_has_torch_function", has_torch_function, METH_O, nullptr},
    {"_has_torch_function_unary", has_torch_function_unary, METH_O, nullptr},
    {"_has_torch_function_variadic",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(has_torch_function_variadic)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  protocol_name = PyUnicode_InternFromString("__torch_function__");
  PyModule_AddFunctions(module, functions);
  disabled_protocol = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
});

}  // namespace
}  // namespace rl
