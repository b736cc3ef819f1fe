// Arguments whose own code runs before anybody looks at them.
#pragma once
#include "primitive.h"

namespace rl {

// Note [arguments of the user's making]
// An attribute, or a number among the inputs, may be an object whose __index__ or __float__ does what it
// likes, to the tensors of the call too. So it is asked before anybody looks at those. Lists of tensors are
// looked at again after hooks have run, and while other threads do: what is looked at is a tuple, which
// nobody can change. Inline: apart from its calls, `a * b` took 120 instead of 105 ns.
bool is_open(PyObject* o, int depth = 3);

inline bool runs_code(PyObject* o) {
  if (PyLong_Check(o) || PyFloat_Check(o) || is_tensor(o)) return false;
  PyNumberMethods* number = Py_TYPE(o)->tp_as_number;  // NumPy's floats are known for what they are
  return number &&
         (number->nb_index || (number->nb_float && PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE)));
}

inline bool is_open_input(const Primitive& op, PyObject* const* args, int i) {
  if (op.list_inputs >> i & 1) return !PyTuple_Check(args[i]);
  return !is_plain_tensor(args[i]) && runs_code(args[i]);
}

inline bool has_open(const Primitive& op, PyObject* const* args) {
  int count = int(op.args.size());
  for (int i = 0; i < count; i++) {
    if (i < op.input_count ? is_open_input(op, args, i) : is_open(args[i])) return true;
  }
  return false;
}

// The same arguments with numbers in the place of such objects, and tuples in that of lists.
struct ClosedArguments {
  PyObject* args[MAX_ARGS];
  Ref<PyObject> made[MAX_ARGS];

  ClosedArguments(const Primitive& op, PyObject* const* given);
};

}  // namespace rl
