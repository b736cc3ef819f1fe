// See closed_arguments.h.
#include "closed_arguments.h"

namespace rl {

bool is_open(PyObject* o, int depth) {
  if (PyLong_CheckExact(o) || o == Py_None || PyBool_Check(o) || PyFloat_CheckExact(o)) return false;
  if (!PyTuple_Check(o) && !PyList_Check(o)) return runs_code(o);
  if (depth == 0) return true;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); k++) {
    if (is_open(PySequence_Fast_GET_ITEM(o, k), depth - 1)) return true;
  }
  return false;
}

namespace {

Ref<PyObject> closed(PyObject* o, int depth = 0) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    if (depth > 100) fail(PyExc_ValueError, "an argument is nested too deeply");
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    Ref<PyObject> tuple = checked(PyTuple_New(n));
    for (Py_ssize_t k = 0; k < n; k++)
      PyTuple_SET_ITEM(tuple.get(), k, closed(item_of(o, k).get(), depth + 1).release());
    return tuple;
  }
  if (!runs_code(o)) return share(o);
  Scalar value;
  if (!PyIndex_Check(o) && is_number(o) && scalar_from_python(o, value)) return checked(value.to_python());
  Ref<PyObject> number(PyIndex_Check(o) ? PyNumber_Index(o) : PyNumber_Float(o));
  if (number) return number;
  forget_error(PyExc_TypeError);  // of NumPy's booleans, which say that they are no index
  return share(o);
}

}  // namespace

ClosedArguments::ClosedArguments(const Primitive& op, PyObject* const* given) {
  for (int i = 0; i < int(op.args.size()); i++) {
    bool tensors = i < op.input_count && (op.list_inputs >> i & 1) && !PyTuple_Check(given[i]);
    if (tensors && !PyList_Check(given[i])) {
      failf(PyExc_TypeError, "%s(): argument '%s' (position %d) must be tuple of Tensors, not %s",
            op.name.c_str(), op.args[size_t(i)].c_str(), i + 1, Py_TYPE(given[i])->tp_name);
    }
    made[i] = tensors              ? checked(PyList_AsTuple(given[i]))
              : i < op.input_count ? (runs_code(given[i]) ? closed(given[i]) : share(given[i]))
                                   : closed(given[i]);
    args[i] = made[i].get();
  }
}

}  // namespace rl
