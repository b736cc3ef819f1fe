// What torch's batching transform refuses, refused by the loop that stands for it here.
//
// In torch all examples are computed at once, so nothing may depend on the values of one: item(), `if`,
// random numbers. Here the examples come one after the other, and nothing would notice. So while a thread is
// in such a loop, the memory of an example, and of what is computed from it, is marked: `batched_forward`
// stands before every primitive (forwards.h) and hands the mark on. Who reads a number asks
// `check_unbatched`.
#include "batching.h"

#include "forwards.h"
#include "tensor_type.h"

namespace rl {

namespace {

int loops = 0;  // of all threads, under the GIL

bool any_batched(PyObject* o) {
  if (is_tensor(o)) return is_batched(as_tensor(o));
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    PyObject* element = PySequence_Fast_GET_ITEM(o, i);
    if (is_tensor(element) && is_batched(as_tensor(element))) return true;
  }
  return false;
}

void mark(PyObject* o) {
  if (is_tensor(o)) {
    as_tensor(o)->storage->marks |= Storage::BATCHED;
    return;
  }
  if (!PyTuple_Check(o) && !PyList_Check(o)) return;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    PyObject* element = PySequence_Fast_GET_ITEM(o, i);
    if (is_tensor(element)) as_tensor(element)->storage->marks |= Storage::BATCHED;
  }
}

}  // namespace

void fail_batched(const char* operation) {
  failf(PyExc_RuntimeError,
        "Batching rule not implemented for %s. We could not generate a fallback.\n\n"
        "  The gradients of a batch are computed together, so that nothing may depend on the value of one.",
        operation);
}

PyObject* batched_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  bool batched = false;
  for (size_t i = 0; modes.batching && !batched && i < op.args.size(); i++) batched = any_batched(args[i]);
  PyObject* result = behind_batching()(op, args, out);
  if (batched && result) {
    mark(result);
    if (out) mark(out->object());
  }
  return result;
}

namespace {

// enter_batch(), leave_batch(before): whether this thread is in such a loop; what was before is put back.
PyObject* py_enter(PyObject*, PyObject*) {
  if (loops++ == 0) arrange_batching(true);
  return PyBool_FromLong(std::exchange(modes.batching, true));
}
PyObject* py_leave(PyObject*, PyObject* before) {
  modes.batching = before == Py_True;
  if (--loops == 0) arrange_batching(false);
  Py_RETURN_NONE;
}

// set_batching(bool): switches it off where a rule reads numbers of its own; returns what was set before.
PyObject* py_set(PyObject*, PyObject* on) {
  return PyBool_FromLong(std::exchange(modes.batching, on == Py_True));
}

// mark_batched(tensor, bool): whether it is an example.
PyObject* py_mark(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !is_tensor(args[0])) fail(PyExc_TypeError, "mark_batched(): expected a Tensor and a bool");
    uint8_t& marks = as_tensor(args[0])->storage->marks;
    marks = uint8_t(args[1] == Py_True ? marks | Storage::BATCHED : marks & ~Storage::BATCHED);
    Py_RETURN_NONE;
  });
}

// marked_batched(tensor): whether it is an example of the loop that this thread is in.
PyObject* py_marked(PyObject*, PyObject* t) {
  return PyBool_FromLong(is_tensor(t) && is_batched(as_tensor(t)));
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {
    {"enter_batch", py_enter, METH_NOARGS, nullptr}, {"leave_batch", py_leave, METH_O, nullptr},
    {"set_batching", py_set, METH_O, nullptr},       {"mark_batched", FAST(py_mark), nullptr},
    {"marked_batched", py_marked, METH_O, nullptr},  {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
