// x[...] and x[...] = value.
#include "functions.h"
#include "primitive.h"

namespace rl {

PyObject* tensor_subscript(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    static Primitive& select = primitive("select");
    if (!PyLong_Check(index)) fail(PyExc_NotImplementedError, "indexing with other than an int");
    Ref<PyObject> zero = checked(PyLong_FromLong(0));
    PyObject* args[] = {self, zero.get(), index};
    return call(select, args);
  });
}

int tensor_assign_subscript(PyObject*, PyObject*, PyObject*) {
  return guarded([&]() -> int { fail(PyExc_NotImplementedError, "assignment to an index"); });
}

}  // namespace rl
