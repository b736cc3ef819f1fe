// The end of the interpreter, and forks: neither may meet a kernel that runs without the GIL.
//
// A thread that wants the GIL back at the end is ended where it stands, which no C++ function survives that
// has something to clean up: the process aborted if a daemon thread was in a kernel. So from the exit
// handlers on kernels keep the GIL. And a child has only the thread that forked: what the others were doing
// stays half done there, and the locks they held (of a generator, of the plans of transforms) stay closed for
// ever. So a fork waits for kernels, and those that begin meanwhile keep the GIL.
#include "../tensor/unlocked.h"
#include "primitive.h"

namespace rl {
namespace {

PyObject* keep_the_gil(PyObject*, PyObject*) {
  changes_waiting++;  // at the end for ever; in a child it is zero again
  wait_for_kernels();
  Py_RETURN_NONE;
}

PyObject* release_it_again(PyObject*, PyObject*) {
  changes_waiting--;
  Py_RETURN_NONE;
}

PyMethodDef keep = {"_keep_the_gil", keep_the_gil, METH_NOARGS, nullptr},
            release = {"_release_it_again", release_it_again, METH_NOARGS, nullptr};

ModuleInit init([](PyObject*) {
  Ref<PyObject> keeper = checked(PyCFunction_New(&keep, nullptr));
  checked(PyObject_CallMethod(checked(PyImport_ImportModule("atexit")).get(), "register", "O", keeper.get()));
  Ref<PyObject> os = checked(PyImport_ImportModule("os"));
  if (!PyObject_HasAttrString(os.get(), "register_at_fork")) return;
  Ref<PyObject> releaser = checked(PyCFunction_New(&release, nullptr));
  Ref<PyObject> handlers =
      checked(Py_BuildValue("{sOsO}", "before", keeper.get(), "after_in_parent", releaser.get()));
  Ref<PyObject> add = checked(PyObject_GetAttrString(os.get(), "register_at_fork"));
  checked(PyObject_VectorcallDict(add.get(), nullptr, 0, handlers.get()));
});

}  // namespace
}  // namespace rl
