#include "errors.h"

#include "../python/lazy_views.h"
#include "../python/levels.h"
#include "../python/primitive.h"
#include "dispatching.h"
#include "rules.h"

namespace rl {

namespace {

// A file's name or a line of it may hold what is no UTF-8.
std::string printable(PyObject* text) {
  Ref<PyObject> bytes = checked(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  return PyBytes_AS_STRING(bytes.get());
}

}  // namespace

std::string place_text(const Place& place) {
  Ref<PyObject> where = checked(source_as_tuple(place.source));
  if (where.get() == Py_None) return "";
  PyObject *file, *function;
  int line;
  if (!PyArg_ParseTuple(where.get(), "OiO", &file, &line, &function)) throw PythonError{};
  std::string text = std::string("  ") + place.what + " at\n    File \"" + printable(file) + "\", line " +
                     std::to_string(line) + ", in " + printable(function) + "\n";
  Ref<PyObject> linecache = checked(PyImport_ImportModule("linecache"));
  Ref<PyObject> source = checked(PyObject_CallMethod(linecache.get(), "getline", "Oi", file, line));
  Ref<PyObject> stripped = checked(PyObject_CallMethod(source.get(), "strip", nullptr));
  if (PyUnicode_GetLength(stripped.get()) > 0) text += "      " + printable(stripped.get()) + "\n";
  return text;
}

std::string with_places(const std::string& sentence, const std::vector<Place>& places,
                        const std::string& advice) {
  std::string text;
  for (const Place& place : places) text += place_text(place);
  if (!advice.empty()) text += "  " + advice + "\n";
  if (text.empty()) return sentence;
  text.pop_back();
  return sentence + "\n\n" + text;
}

void fail_at(PyObject* type, const std::string& sentence, const std::vector<Place>& places,
             const std::string& advice) {
  fail(type, with_places(sentence, places, advice));
}

void warn(const std::string& text) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._warn"));
  checked(PyObject_CallMethod(module.get(), "warn", "s", text.c_str()));
}

void warn_once(const std::string& text, const char* about) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._warn"));
  checked(PyObject_CallMethod(module.get(), "warn_once", "sOz", text.c_str(), PyExc_UserWarning, about));
}

namespace {
[[noreturn]] void fail_for_nan(Node* node, size_t nr) {
  fail_at(
      PyExc_RuntimeError,
      "Function '" + node_name(node) + "' returned nan values in its " + std::to_string(nr) + "th output.",
      {{"The forward operation ran", node->source}}, "");
}
}  // namespace

void check_for_nan(Node* node, size_t nr, Tensor* result) {
  Ref<PyObject> held;  // of a sparse tensor: its values
  if (is_any_sparse(result)) {
    held = checked(PyObject_CallMethod(result->object(), "memory", nullptr));
    if (!is_plain_tensor(held.get())) return;
    result = as_tensor(held.get());
  }
  if (!is_differentiable(result->dtype)) return;
  // A class knows what is inside, a mode looks on.
  if (!held && !is_leveled(result) && asks_dispatch(result)) {
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._dispatching"));
    Ref<PyObject> any = checked(PyObject_CallMethod(module.get(), "any_nan", "O", result->object()));
    if (any.get() == Py_True) fail_for_nan(node, nr);
    return;
  }
  if (result->is_meta()) return;
  bool parts = is_complex(result->dtype);
  TensorRef wide = contiguous(cast(resolved(result).get(), parts ? DType::c128 : DType::f64).get());
  auto* values = reinterpret_cast<const double*>(wide->data());
  for (int64_t k = 0; k < wide->numel << parts; k++) {
    if (values[k] != values[k]) fail_for_nan(node, nr);
  }
}

}  // namespace rl
