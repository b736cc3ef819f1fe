// Measuring operations: what autograd.profiler reads.
//
// While it is on, every primitive's forward function is `timed`, which calls the real one and notes when, how
// long and how much memory; nothing is paid while it is off. The engine notes the derivatives it runs
// (Timing, graph/custom.h). Events end up in `events` in the order they began; an event knows the one it is
// inside of.
#include <chrono>

#include "../graph/custom.h"
#include "forwards.h"

namespace rl {
namespace {

struct Event {
  std::string name;
  int64_t start, end;  // nanoseconds
  int64_t memory;      // bytes still held that were not before
  int32_t parent;      // index, -1: none
  unsigned long thread;
  PyObject* shapes;  // of the inputs, or null
};

std::vector<Event> events;
bool running = false, shapes_wanted = false;
thread_local int32_t innermost = -1;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int32_t begin(std::string name) {
  int32_t index = int32_t(events.size());
  int32_t parent = innermost < index ? innermost : -1;
  events.push_back({std::move(name), now(), 0, int64_t(memory_stats().in_use), parent,
                    PyThread_get_thread_ident(), nullptr});
  innermost = index;
  return index;
}

void finish(int32_t index) {
  if (index < 0 || index >= int32_t(events.size())) return;  // the profiler was stopped meanwhile
  Event& event = events[size_t(index)];
  event.end = now();
  event.memory = int64_t(memory_stats().in_use) - event.memory;
  innermost = event.parent;
}

PyObject* shapes_of(const Primitive& op, PyObject* const* args) {
  Ref<PyObject> list = checked(PyList_New(0));
  for (int i = 0; i < op.input_count; i++) {
    Ref<PyObject> shape =
        is_tensor(args[i]) ? checked(size_object(as_tensor(args[i])->sizes())) : checked(PyTuple_New(0));
    if (PyList_Append(list.get(), shape.get()) < 0) throw PythonError{};
  }
  return list.release();
}


// profiler_start(with shapes)
PyObject* py_start(PyObject*, PyObject* with_shapes) {
  return guarded([&]() -> PyObject* {
    if (running) fail(PyExc_RuntimeError, "Profiler is already enabled on this thread");
    shapes_wanted = with_shapes == Py_True;
    events.clear();
    innermost = -1;
    arrange_forwards(true, dispatching_forwards());
    running = true;
    Py_RETURN_NONE;
  });
}

// profiler_stop(): [(name, start ns, end ns, bytes, parent, thread, shapes or None)]
PyObject* py_stop(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!running) fail(PyExc_RuntimeError, "Can't disable Profiler when it's not running");
    arrange_forwards(false, dispatching_forwards());
    running = false;
    innermost = -1;
    std::vector<Event> taken = std::move(events);
    events.clear();
    Ref<PyObject> list = checked(PyList_New(0));
    int64_t last = now();
    for (Event& event : taken) {
      Ref<PyObject> shapes(event.shapes ? event.shapes : Py_NewRef(Py_None));
      if (!event.end) event.end = last, event.memory = 0;
      Ref<PyObject> one =
          checked(Py_BuildValue("(sLLLikO)", event.name.c_str(), (long long)event.start, (long long)event.end,
                                (long long)event.memory, event.parent, event.thread, shapes.get()));
      if (PyList_Append(list.get(), one.get()) < 0) throw PythonError{};
    }
    return list.release();
  });
}

// profiler_begin(name): a number for profiler_end, -1 while nothing is measured.
PyObject* py_begin(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) return nullptr;
    return PyLong_FromLong(running ? begin(text) : -1);
  });
}
PyObject* py_end(PyObject*, PyObject* index) {
  long number = PyLong_AsLong(index);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  if (running) finish(int32_t(number));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"profiler_start", py_start, METH_O, nullptr},
                           {"profiler_stop", py_stop, METH_NOARGS, nullptr},
                           {"profiler_begin", py_begin, METH_O, nullptr},
                           {"profiler_end", py_end, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace

bool profiling() { return running; }

PyObject* timed_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Timing timing("aten::" + op.name + (out ? "_" : ""));
  if (shapes_wanted && timing.index >= 0) events[size_t(timing.index)].shapes = shapes_of(op, args);
  return real_forward(op)(op, args, out);
}

Timing::Timing(std::string name) : index(running ? begin(std::move(name)) : -1) {}
Timing::~Timing() {
  if (running) finish(index);
}

}  // namespace rl
