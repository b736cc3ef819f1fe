// The end of the interpreter. A thread that wants the GIL back then is ended where it stands, which no C++
// function survives that has something to clean up: the process aborted if a daemon thread was in a kernel.
// So from the exit handlers on kernels keep the GIL.
#include "../tensor/unlocked.h"
#include "primitive.h"

namespace rl {
namespace {

PyObject* finish_kernels(PyObject*, PyObject*) {
  changes_waiting++;  // for ever
  wait_for_kernels();
  Py_RETURN_NONE;
}

PyMethodDef function = {"_finish_kernels", finish_kernels, METH_NOARGS, nullptr};

ModuleInit init([](PyObject*) {
  Ref<PyObject> atexit = checked(PyImport_ImportModule("atexit"));
  Ref<PyObject> handler = checked(PyCFunction_New(&function, nullptr));
  checked(PyObject_CallMethod(atexit.get(), "register", "O", handler.get()));
});

}  // namespace
}  // namespace rl
