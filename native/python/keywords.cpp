// See keywords.h.
#include "keywords.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "primitive.h"

namespace rl {
namespace {

// NumPy's names for arguments, which torch takes everywhere: x.sum(axis=0, keepdims=True).
struct Synonym {
  const char *theirs, *ours;
  PyObject *theirs_name = nullptr, *ours_name = nullptr;
};
Synonym synonyms[] = {{"axis", "dim"},   {"keepdims", "keepdim"}, {"x", "input"},    {"a", "input"},
                      {"x1", "input"},   {"x2", "other"},         {"axis0", "dim0"}, {"axis1", "dim1"},
                      {"input", "self"}, {"x", "self"},           {"a", "self"},     {"x1", "self"}};

// Whether the Python function names such a parameter.
bool has_parameter(PyObject* function, PyObject* name) {
  if (!PyFunction_Check(function)) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  Ref<PyObject> names(PyCode_GetVarnames(code));
  if (!names) {
    PyErr_Clear();
    return false;
  }
  Py_ssize_t count = code->co_argcount + code->co_kwonlyargcount;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (PyUnicode_Compare(PyTuple_GET_ITEM(names.get(), i), name) == 0) return true;
  }
  return false;
}

}  // namespace

Ref<PyObject> translated(PyObject* function, PyObject* kwnames) {
  Ref<PyObject> result;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    for (const Synonym& synonym : synonyms) {
      // Keywords are interned, as identifiers in source code are; a name built at run time may not be.
      if (name != synonym.theirs_name &&
          (PyUnicode_CHECK_INTERNED(name) || PyUnicode_Compare(name, synonym.theirs_name) != 0))
        continue;
      if (has_parameter(function, name)) break;
      if (!has_parameter(function, synonym.ours_name)) continue;
      if (!result) {
        result = Ref<PyObject>(PyTuple_New(PyTuple_GET_SIZE(kwnames)));
        if (!result) {
          PyErr_Clear();
          return result;
        }
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++)
          PyTuple_SET_ITEM(result.get(), k, Py_NewRef(PyTuple_GET_ITEM(kwnames, k)));
      }
      Py_DECREF(PyTuple_GET_ITEM(result.get(), i));
      PyTuple_SET_ITEM(result.get(), i, Py_NewRef(synonym.ours_name));
      break;
    }
  }
  return result;
}

Py_ssize_t whole_keyword(PyObject* function, Py_ssize_t positional, PyObject* kwnames) {
  if (!PyFunction_Check(function)) return -1;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  if (!(code->co_flags & CO_VARARGS) || positional > code->co_argcount) return -1;
  Ref<PyObject> names(PyCode_GetVarnames(code));
  if (!names) {
    PyErr_Clear();
    return -1;
  }
  const char* own =
      PyUnicode_AsUTF8(PyTuple_GET_ITEM(names.get(), code->co_argcount + code->co_kwonlyargcount));
  if (!own) {
    PyErr_Clear();
    return -1;
  }
  std::string_view wanted = own;
  if (wanted.ends_with('_')) wanted.remove_suffix(1);
  // Lists of numbers; what else is gathered (tensors, shapes) torch's Python gathers, without a name.
  if (wanted != "size" && wanted != "shape" && wanted != "dims" && wanted != "repeats") return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    const char* given = PyUnicode_AsUTF8(name);
    if (!given) {
      PyErr_Clear();
      return -1;
    }
    if (wanted == given && !has_parameter(function, name)) return i;
  }
  return -1;
}

PyObject* call_with_whole(PyObject* function, PyObject* callee, PyObject* const* args, Py_ssize_t positional,
                          PyObject* kwnames, Py_ssize_t at) {
  Py_ssize_t keywords = PyTuple_GET_SIZE(kwnames);
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  Ref<PyObject> parameters(PyCode_GetVarnames(code));
  if (!parameters) return nullptr;
  std::vector<PyObject*> moved(args, args + positional);
  std::vector<Py_ssize_t> taken = {at};
  for (Py_ssize_t p = positional; p < code->co_argcount; p++) {
    for (Py_ssize_t i = 0; i < keywords; i++) {
      if (PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, i), PyTuple_GET_ITEM(parameters.get(), p)) != 0)
        continue;
      moved.push_back(args[positional + i]);
      taken.push_back(i);
    }
    if (Py_ssize_t(moved.size()) == p) return PyObject_Vectorcall(callee, args, size_t(positional), kwnames);
  }
  moved.push_back(args[positional + at]);
  size_t leading = moved.size();
  Ref<PyObject> names(PyTuple_New(keywords - Py_ssize_t(taken.size())));
  if (!names) return nullptr;
  for (Py_ssize_t i = 0, k = 0; i < keywords; i++) {
    if (std::find(taken.begin(), taken.end(), i) != taken.end()) continue;
    moved.push_back(args[positional + i]);
    PyTuple_SET_ITEM(names.get(), k++, Py_NewRef(PyTuple_GET_ITEM(kwnames, i)));
  }
  return PyObject_Vectorcall(callee, moved.data(), leading, names.get());
}

namespace {

ModuleInit init([](PyObject*) {
  for (Synonym& synonym : synonyms) {
    synonym.theirs_name = PyUnicode_InternFromString(synonym.theirs);
    synonym.ours_name = PyUnicode_InternFromString(synonym.ours);
  }
});

}  // namespace
}  // namespace rl
