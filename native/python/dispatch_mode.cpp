// TorchDispatchMode: Python code that sees every operation below autograd.
//
// While a mode is active somewhere, `dispatched_forward` stands in the place of every primitive's forward
// function (forwards.h). In a thread that has a handler it calls handler(primitive, arguments, out or None)
// and takes what that returns for the result; recording goes on around it as ever. The handler is off while
// it runs; it puts itself back for the modes below it (rushlight/utils/_python_dispatch.py).
#include "../graph/modes.h"
#include "forwards.h"

namespace rl {
namespace {

std::vector<Forward>& reals() {
  static std::vector<Forward> all;
  return all;
}
bool timing_now = false, dispatching_now = false;

thread_local PyObject* handler = nullptr;  // owned

class WithoutHandler {
 public:
  WithoutHandler() : before(std::exchange(handler, nullptr)) {}
  ~WithoutHandler() {
    Py_XDECREF(handler);
    handler = before;
  }
  WithoutHandler(const WithoutHandler&) = delete;

  PyObject* before;
};

class WithoutForward {
 public:
  WithoutForward() : before(modes.forward) { modes.forward = false; }
  ~WithoutForward() { modes.forward = before; }
  WithoutForward(const WithoutForward&) = delete;

 private:
  bool before;
};

bool is_argument(const Primitive& op, PyObject* const* args, PyObject* o) {
  for (int i = 0; i < op.input_count; i++) {
    if (args[i] == o) return true;
  }
  return false;
}

// A result must be a tensor of its own: the caller gives it a history.
Ref<PyObject> fresh(const Primitive& op, PyObject* const* args, PyObject* o) {
  if (!is_tensor(o)) {
    failf(PyExc_TypeError, "__torch_dispatch__ must return a Tensor for %s, got %s", op.name.c_str(),
          Py_TYPE(o)->tp_name);
  }
  Tensor* t = as_tensor(o);
  if (!t->grad_fn && !(t->flags & Tensor::REQUIRES_GRAD) && !is_argument(op, args, o)) return share(o);
  return Ref<PyObject>(new_alias(t).release_object());
}

PyObject* next_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  return timing_now ? timed_forward(op, args, out) : real_forward(op)(op, args, out);
}

}  // namespace

Forward real_forward(const Primitive& op) { return reals()[op.number]; }
bool timing_forwards() { return timing_now; }
bool dispatching_forwards() { return dispatching_now; }

void arrange_forwards(bool timing, bool dispatching) {
  if (reals().empty()) {
    reals().push_back(nullptr);
    for (uint32_t number = 1; Primitive* op = primitive_number(number); number++)
      reals().push_back(op->forward);
  }
  timing_now = timing;
  dispatching_now = dispatching;
  for (uint32_t number = 1; Primitive* op = primitive_number(number); number++) {
    op->forward = dispatching ? dispatched_forward : timing ? timed_forward : reals()[number];
  }
}

PyObject* dispatched_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  if (!handler) return next_forward(op, args, out);
  Ref<PyObject> values = checked(PyTuple_New(Py_ssize_t(op.args.size())));
  for (size_t i = 0; i < op.args.size(); i++) PyTuple_SET_ITEM(values.get(), i, Py_NewRef(args[i]));
  WithoutHandler off;
  WithoutForward no_tangents;
  GradMode no_grad(false);
  PyObject* call_args[] = {const_cast<Primitive&>(op).object(), values.get(), out ? out->object() : Py_None};
  Ref<PyObject> result = checked(PyObject_Vectorcall(off.before, call_args, 3, nullptr));
  if (out) return Py_NewRef(out->object());
  bool several = op.list_output || op.outputs.size() > 1;
  if (!several) return fresh(op, args, result.get()).release();
  if (!PyTuple_Check(result.get()) && !PyList_Check(result.get()))
    failf(PyExc_TypeError, "__torch_dispatch__ must return a tuple of Tensors for %s", op.name.c_str());
  Py_ssize_t count = PySequence_Fast_GET_SIZE(result.get());
  if (!op.list_output && count != Py_ssize_t(op.outputs.size())) {
    failf(PyExc_TypeError, "__torch_dispatch__ must return %zu Tensors for %s, got %zd", op.outputs.size(),
          op.name.c_str(), count);
  }
  Ref<PyObject> list = checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SET_ITEM(list.get(), i, fresh(op, args, PySequence_Fast_GET_ITEM(result.get(), i)).release());
  return list.release();
}

namespace {

// set_dispatch_handler(callable or None): of this thread; returns the one before.
PyObject* py_set_handler(PyObject*, PyObject* given) {
  PyObject* before = std::exchange(handler, given == Py_None ? nullptr : Py_NewRef(given));
  return before ? before : Py_NewRef(Py_None);
}

// set_dispatching(bool): whether handlers are asked at all, in any thread.
PyObject* py_set_dispatching(PyObject*, PyObject* on) {
  arrange_forwards(timing_now, on == Py_True);
  Py_RETURN_NONE;
}

// run_forward(primitive, arguments, out or None): what the primitive computes, without history. Modes that
// are active are asked.
PyObject* py_run_forward(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    static PyTypeObject* type = Py_TYPE(primitive("add").object());
    if (n != 3 || Py_TYPE(args[0]) != type || !PyTuple_Check(args[1]))
      fail(PyExc_TypeError, "run_forward(primitive, arguments, out) expected");
    auto& op = *reinterpret_cast<Primitive*>(args[0]);
    if (PyTuple_GET_SIZE(args[1]) != Py_ssize_t(op.args.size())) {
      failf(PyExc_TypeError, "%s() takes %zu positional arguments but %zd were given", op.name.c_str(),
            op.args.size(), PyTuple_GET_SIZE(args[1]));
    }
    std::vector<PyObject*> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); i++) {
      PyObject* o = PyTuple_GET_ITEM(args[1], i);
      bool list = op.list_inputs >> i & 1;
      if (i < op.input_count) {
        bool right =
            list ? PyTuple_Check(o) || PyList_Check(o) : is_tensor(o) || o == Py_None || is_number(o);
        for (Py_ssize_t k = 0; right && list && k < PySequence_Fast_GET_SIZE(o); k++) {
          PyObject* element = PySequence_Fast_GET_ITEM(o, k);
          right = is_tensor(element) || element == Py_None;
        }
        if (!right)
          failf(PyExc_TypeError, "%s(): argument '%s' must be Tensor, not %s", op.name.c_str(),
                op.args[size_t(i)].c_str(), Py_TYPE(o)->tp_name);
      }
      values.push_back(o);
    }
    Tensor* out = nullptr;
    if (args[2] != Py_None) {
      if (!(op.options & Primitive::IN_PLACE) || args[2] != values[0] || !is_tensor(args[2]))
        failf(PyExc_TypeError, "%s is not written in place there", op.name.c_str());
      out = as_tensor(args[2]);
    }
    return checked(op.forward(op, values.data(), out)).release();
  });
}

PyMethodDef functions[] = {
    {"set_dispatch_handler", py_set_handler, METH_O, nullptr},
    {"set_dispatching", py_set_dispatching, METH_O, nullptr},
    {"run_forward", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_run_forward)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
