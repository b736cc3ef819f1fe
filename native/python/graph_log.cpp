// The logger `torch.autograd.graph`: on the level DEBUG it is told of every node that a backward runs.
//
// Loggers remember whether they are enabled in a table that `logging` empties when any level changes, so a
// backward looks into that table only. The hooks that write are in rushlight/autograd/_logged.py.
#include "graph_log.h"

#include "../graph/custom.h"
#include "tensor_type.h"

namespace rl {

bool LoggedRun::wanted() {
  static PyObject *answers = nullptr, *logger = nullptr;
  static PyObject* debug = PyLong_FromLong(10);
  if (!answers) {
    static PyObject* name = PyUnicode_InternFromString("logging");
    PyObject* logging = PyDict_GetItem(PyImport_GetModuleDict(), name);
    if (!logging) return false;  // nobody can have asked for it
    if (Ref<PyObject> get = attribute_or_null(logging, "getLogger"); get) {
      Ref<PyObject> found = checked(PyObject_CallFunction(get.get(), "s", "torch.autograd.graph"));
      Ref<PyObject> table = attribute_or_null(found.get(), "_cache");
      if (table && PyDict_Check(table.get())) logger = found.release(), answers = table.release();
    }
    if (!answers) return false;
  }
  if (PyObject* known = PyDict_GetItem(answers, debug)) return known == Py_True;
  Ref<PyObject> enabled = checked(PyObject_CallMethod(logger, "isEnabledFor", "O", debug));
  return enabled.get() == Py_True;
}

LoggedRun::LoggedRun(const std::vector<Root>& roots) {
  if (!wanted()) return;
  Ref<PyObject> nodes = checked(PyList_New(0));
  for (const Root& root : roots) {
    expose(root.edge.node);
    if (PyList_Append(nodes.get(), root.edge.node->object()) < 0) throw PythonError{};
  }
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.autograd._logged"));
  stop = checked(PyObject_CallMethod(module.get(), "register", "O", nodes.get()));
}

LoggedRun::~LoggedRun() {
  if (!stop) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!Ref<PyObject>(PyObject_CallNoArgs(stop.get()))) PyErr_WriteUnraisable(stop.get());
  PyErr_Restore(type, value, traceback);
}

}  // namespace rl
