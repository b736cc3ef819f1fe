#include "errors.h"

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

}  // namespace rl
