// Errors of primitives say more than torch's sentence: which tensors took part, their shapes, and the user's
// lines that made them. The wording is Python's (rushlight/_errors.py); here its material is gathered. Only a
// failing call comes here.
#include "explain.h"

namespace rl {
namespace {

// The line that computed or created t; nothing if only the line of its ancestor is known.
Source place_of(const Tensor* t) {
  if (t->grad_fn) return t->grad_fn->source;
  if (t->flags & Tensor::ORIGIN_INHERITED) return {nullptr, 0};
  return t->storage->written;
}

void add(PyObject* list, const std::string& name, PyObject* o) {
  if (!is_tensor(o)) return;
  Ref<PyObject> where = checked(source_as_tuple(place_of(as_tensor(o))));
  Ref<PyObject> entry = checked(Py_BuildValue("(sOO)", name.c_str(), o, where.get()));
  if (PyList_Append(list, entry.get()) < 0) throw PythonError{};
}

[[noreturn]] void fail_worded(PyObject* type, const std::string& sentence, PyObject* operands,
                              const char* advice) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._errors"));
  Ref<PyObject> text = checked(
      PyObject_CallMethod(module.get(), "explain_operands", "sOz", sentence.c_str(), operands, advice));
  const char* worded = PyUnicode_AsUTF8(text.get());
  if (!worded) throw PythonError{};
  fail(type, worded);
}

}  // namespace

void explain(const Error& error, const Primitive& op, PyObject* const* args) {
  bool plain =
      error.type == PyExc_RuntimeError || error.type == PyExc_IndexError || error.type == PyExc_ValueError;
  // After the blank line stands what a primitive advises, or, indented, what was explained further in.
  size_t end = error.message.find("\n\n");
  bool advised = end != std::string::npos;
  if (!plain || PyErr_Occurred() || (advised && error.message.compare(end, 3, "\n\n ") == 0)) throw error;
  Ref<PyObject> operands = checked(PyList_New(0));
  for (int i = 0; i < op.input_count; i++) {
    if (!(op.list_inputs >> i & 1)) {
      add(operands.get(), op.args[size_t(i)], args[i]);
      continue;
    }
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[i]) && k < 8; k++) {
      add(operands.get(), op.args[size_t(i)] + "[" + std::to_string(k) + "]",
          PySequence_Fast_GET_ITEM(args[i], k));
    }
  }
  fail_worded(error.type, error.message.substr(0, end), operands.get(),
              advised ? error.message.c_str() + end + 2 : nullptr);
}

void fail_with_tensor(PyObject* type, const std::string& sentence, Tensor* t, const char* advice) {
  Ref<PyObject> operands = checked(PyList_New(0));
  add(operands.get(), "tensor", t->object());
  fail_worded(type, sentence, operands.get(), advice);
}

namespace {

PyObject* py_place_of(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) fail(PyExc_TypeError, "place_of(tensor) expected");
    return source_as_tuple(place_of(as_tensor(o)));
  });
}

PyMethodDef functions[] = {
    {"place_of", py_place_of, METH_O, "(file, line, function) that made a tensor, or None."},
    {nullptr, nullptr, 0, nullptr}};
ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
