// Measuring operations: what autograd.profiler reads.
//
// While it is on, every primitive's forward function is `timed_forward` (forwards.h), which calls the real
// one and notes when, how long and how much memory; nothing is paid while it is off. Public functions note
// themselves around that (functions.cpp), the engine the derivatives it runs (Timing, graph/custom.h). Only
// the thread that started it is measured, unless all are asked for. Events end up in `events` in the order
// they began; an event knows the one it is inside of. Start with `begin`.
#include "profiler.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/modes.h"
#include "rare_ops.h"
#include "types.h"

namespace rl {

bool profiler_running = false;

namespace {

struct Event {
  std::string name;
  int64_t start, end;   // nanoseconds
  int64_t memory;       // bytes still held that were not before
  int32_t parent;       // index, -1: none
  int32_t scope;        // torch's numbers: 0 a function, 1 a derivative, 7 named by the user
  int64_t sequence;     // of the node that is recorded or run; -1: none
  PyObject* arguments;  // what is noted of them, or null
  PyObject* result;     // the shape of the result, or null
  PyObject* stack;      // where it was called, or null
  int32_t thread;       // counted from 1, the one that started it
};

std::vector<Event> events;
bool shapes_wanted = false, stacks_wanted = false;
bool all_threads = false;
std::vector<unsigned long> threads;  // by their numbers; the first one started it
uint64_t profiles = 0;
thread_local uint64_t profile_seen = 0;  // of which `innermost` is
thread_local int32_t innermost = -1;
thread_local bool noting = true;  // as _enable_record_function has it
bool paused = false;              // as the profile itself has it (toggle_collection_dynamic)

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

bool measuring() {
  return profiler_running && !paused && noting && (all_threads || PyThread_get_thread_ident() == threads[0]);
}

namespace {

// "file(line): function" of every frame, innermost first.
PyObject* current_stack() {
  Ref<PyObject> list = checked(PyList_New(0));
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Ref<PyObject> line(
        PyUnicode_FromFormat("%U(%d): %U", code->co_filename, PyFrame_GetLineNumber(frame), code->co_name));
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
    if (!line || PyList_Append(list.get(), line.get()) < 0) {
      Py_XDECREF(frame);
      throw PythonError{};
    }
  }
  return list.release();
}

bool memory_wanted = false;
int64_t level = 0;  // the memory in use when the last outermost event ended

// What came or went since: tensors that died between two operations, mostly.
void note_memory() {
  int64_t use = int64_t(requested_memory());
  if (memory_wanted && use != level) {
    int64_t time = now();
    events.push_back({"[memory]", time, time, use - level, -1, 0, -1, nullptr, nullptr, nullptr, 1});
  }
  level = use;
}

int32_t this_thread() {
  unsigned long now = PyThread_get_thread_ident();
  auto found = std::ranges::find(threads, now);
  if (found == threads.end()) found = threads.insert(found, now);
  return int32_t(found - threads.begin()) + 1;
}

int32_t begin(std::string name, int32_t scope, int64_t sequence) {
  Ref<PyObject> stack(stacks_wanted ? current_stack() : nullptr);
  if (!profiler_running) return -1;  // see Note [collected while noting]
  if (std::exchange(profile_seen, profiles) != profiles) innermost = -1;
  if (innermost < 0 || innermost >= int32_t(events.size())) note_memory();
  int32_t index = int32_t(events.size());
  int32_t parent = innermost < index ? innermost : -1;
  events.push_back({std::move(name), now(), 0, int64_t(requested_memory()), parent, scope, sequence, nullptr,
                    nullptr, nullptr, this_thread()});
  events.back().stack = stack.release();
  innermost = index;
  return index;
}

void finish(int32_t index) {
  if (index < 0 || index >= int32_t(events.size())) return;  // the profiler was stopped meanwhile
  Event& event = events[size_t(index)];
  event.end = now();
  event.memory = int64_t(requested_memory()) - event.memory;
  innermost = event.parent;
  if (innermost < 0) level = int64_t(requested_memory());
}

// Note [collected while noting]
// A list that is made may start Python's collector, and a finalizer may resize the tensor, change the list or
// stop the profiler: what is read is held or copied before, and whether the event is there asked afterwards.
Ref<PyObject> number_list(Sizes given) {
  Shape numbers;
  numbers.assign(given);
  Ref<PyObject> list = checked(PyList_New(numbers.ndim));
  for (int d = 0; d < numbers.ndim; d++) {
    PyObject* number = PyLong_FromLongLong(numbers.sizes[d]);
    if (!number) throw PythonError{};
    PyList_SET_ITEM(list.get(), d, number);
  }
  return list;
}

// What is noted of an argument: (sizes, strides, dtype) of a tensor, a list of such of a list of tensors,
// None, and of everything else its type.
Ref<PyObject> about(PyObject* value) {
  if (value == Py_None) return share(value);
  if (is_tensor(value)) {
    Tensor* t = as_tensor(value);
    Ref<PyObject> sizes = number_list(t->sizes());
    Ref<PyObject> strides = is_any_sparse(t) ? checked(PyList_New(0)) : number_list(t->strides());
    return checked(PyTuple_Pack(3, sizes.get(), strides.get(), dtype_object(t->dtype)));
  }
  Ref<PyObject> list;
  if (PyTuple_Check(value) || PyList_Check(value)) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(value); k++) {
      Ref<PyObject> one = share(PySequence_Fast_GET_ITEM(value, k));
      if (!is_tensor(one.get())) break;
      if (!list) list = checked(PyList_New(0));
      if (PyList_Append(list.get(), about(one.get()).get()) < 0) throw PythonError{};
    }
  }
  return list ? std::move(list) : share(reinterpret_cast<PyObject*>(Py_TYPE(value)));
}

Ref<PyObject> about_all(PyObject* const* args, Py_ssize_t count) {
  Ref<PyObject> list = checked(PyList_New(0));
  for (Py_ssize_t i = 0; i < count; i++) {
    if (PyList_Append(list.get(), about(args[i]).get()) < 0) throw PythonError{};
  }
  return list;
}

bool is_measured(int32_t index) { return profiler_running && index >= 0 && size_t(index) < events.size(); }

// See Note [collected while noting].
void note(int32_t index, PyObject* Event::*what, Ref<PyObject> noted) {
  if (is_measured(index)) Py_XSETREF(events[size_t(index)].*what, noted.release());
}
void note_arguments(int32_t index, PyObject* const* args, Py_ssize_t count) {
  if (shapes_wanted && index >= 0) note(index, &Event::arguments, about_all(args, count));
}

class Measured {
 public:
  Measured(std::string name, int32_t scope, int64_t sequence)
      : index(measuring() ? begin(std::move(name), scope, sequence) : -1) {}
  ~Measured() {
    if (profiler_running) finish(index);
  }
  Measured(const Measured&) = delete;
  int32_t index;
};

bool is_recorded(const Primitive& op, PyObject* const* args) {
  if (!modes.grad || op.no_derivative) return false;
  for (int i = 0; i < op.input_count; i++) {
    if (is_tensor(args[i]) && as_tensor(args[i])->requires_grad()) return true;
  }
  return false;
}

// profiler_start(with shapes, with stacks, with memory, of all threads=False)
PyObject* py_start(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int shapes, stacks, memory, all = 0;
    if (!PyArg_ParseTuple(args, "ppp|p", &shapes, &stacks, &memory, &all)) return nullptr;
    if (profiler_running) fail(PyExc_RuntimeError, "Profiler is already enabled on this thread.");
    shapes_wanted = shapes;
    stacks_wanted = stacks;
    memory_wanted = memory;
    level = int64_t(requested_memory());
    events.clear();
    innermost = -1;
    profile_seen = ++profiles;
    all_threads = all;
    threads.assign(1, PyThread_get_thread_ident());
    paused = false;
    arrange_forwards(true, dispatching_forwards());
    profiler_running = true;
    Py_RETURN_NONE;
  });
}

// profiler_stop(): [(name, start ns, end ns, bytes, parent, scope, sequence, arguments, result, stack,
// thread)]
PyObject* py_stop(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!profiler_running) fail(PyExc_RuntimeError, "Can't disable Profiler when it's not profiler_running");
    arrange_forwards(false, dispatching_forwards());
    profiler_running = false;
    if (innermost < 0) note_memory();
    innermost = -1;
    std::vector<Event> taken = std::move(events);
    events.clear();
    Ref<PyObject> list = checked(PyList_New(0));
    int64_t last = now();
    for (Event& event : taken) {
      auto owned = [](PyObject* o) { return Ref<PyObject>(o ? o : Py_NewRef(Py_None)); };
      Ref<PyObject> arguments = owned(event.arguments), result = owned(event.result),
                    stack = owned(event.stack);
      if (!event.end) event.end = last, event.memory = 0;
      Ref<PyObject> one = checked(Py_BuildValue("(sLLLiiLOOOi)", event.name.c_str(), (long long)event.start,
                                                (long long)event.end, (long long)event.memory, event.parent,
                                                event.scope, (long long)event.sequence, arguments.get(),
                                                result.get(), stack.get(), event.thread));
      if (PyList_Append(list.get(), one.get()) < 0) throw PythonError{};
    }
    return list.release();
  });
}

// profiler_begin(name, arguments ...): a number for profiler_end, -1 while nothing is measured.
PyObject* py_begin(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count < 1) fail(PyExc_TypeError, "profiler_begin() needs a name");
    const char* text = PyUnicode_AsUTF8(args[0]);
    if (!text) return nullptr;
    int32_t index = measuring() ? begin(text, 7, -1) : -1;
    note_arguments(index, args + 1, count - 1);
    return PyLong_FromLong(index);
  });
}
PyObject* py_end(PyObject*, PyObject* index) {
  long number = PyLong_AsLong(index);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  if (profiler_running) finish(int32_t(number));  // also on another thread than the one that began it
  Py_RETURN_NONE;
}
// profiler_note(bool): whether anything is noted in this thread while a profile is taken.
PyObject* py_note(PyObject*, PyObject* on) {
  noting = on == Py_True;
  Py_RETURN_NONE;
}
// profiler_pause(bool): whether the profile that is being taken leaves out what happens from now on.
PyObject* py_pause(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    if (!profiler_running) Py_RETURN_NONE;
    if (!paused && innermost < 0) note_memory();
    paused = on == Py_True;
    level = int64_t(requested_memory());
    Py_RETURN_NONE;
  });
}
PyObject* py_enabled(PyObject*, PyObject*) { return PyBool_FromLong(profiler_running); }

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {{"profiler_start", py_start, METH_VARARGS, nullptr},
                           {"profiler_stop", py_stop, METH_NOARGS, nullptr},
                           {"profiler_begin", FAST(py_begin), nullptr},
                           {"profiler_end", py_end, METH_O, nullptr},
                           {"profiler_note", py_note, METH_O, nullptr},
                           {"profiler_pause", py_pause, METH_O, nullptr},
                           {"_profiler_enabled", py_enabled, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace

PyObject* timed_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  // A node is recorded after an operation, but before one that writes in place.
  int64_t sequence = is_recorded(op, args) ? int64_t(next_node_number()) - (out ? 1 : 0) : -1;
  Measured measured("primitive::" + op.name + (out ? "_" : ""), 0, sequence);
  note_arguments(measured.index, args, Py_ssize_t(op.args.size()));
  Ref<PyObject> result(run_real_forward(op, args, out));
  if (shapes_wanted && is_measured(measured.index) && result && is_tensor(result.get())) {
    note(measured.index, &Event::result, number_list(as_tensor(result.get())->sizes()));
  }
  return result.release();
}

CallTiming::CallTiming(PyObject* function, PyObject* const* args, Py_ssize_t count) {
  if (!measuring()) return;
  Ref<PyObject> name = checked(PyObject_GetAttrString(function, "__name__"));
  const char* text = PyUnicode_AsUTF8(name.get());
  if (!text) throw PythonError{};
  if (!strcmp(text, "backward")) return;  // no operation: the derivatives it runs are
  index = begin(std::string("aten::") + text, 0, -1);
  note_arguments(index, args, count);
}
CallTiming::~CallTiming() {
  if (profiler_running) finish(index);
}

PartTiming::PartTiming(const char* name, PyObject* const* args, Py_ssize_t count) {
  if (!measuring()) return;
  index = begin(name, 0, -1);
  if (count) note_arguments(index, args, count);
}
PartTiming::PartTiming(PyTypeObject* function, int64_t sequence, PyObject* inputs) {
  if (!measuring()) return;
  index = begin(function->tp_name, 0, sequence);
  note_arguments(index, &PyTuple_GET_ITEM(inputs, 0), PyTuple_GET_SIZE(inputs));
}
PartTiming::~PartTiming() {
  if (profiler_running) finish(index);
}

Timing::Timing(std::string name, int scope) : index(-1) {
  if (!measuring()) return;
  Node* node = running_node();
  bool numbered = node && node->kind != Node::accumulate;  // leaves are not made in an order
  index = begin(std::move(name), scope, numbered ? int64_t(node->sequence) : -1);
}
void Timing::note_arguments(Tensor* const* grads, size_t count) const {
  if (!shapes_wanted || !is_measured(index)) return;
  Ref<PyObject> list = checked(PyList_New(0));
  for (size_t i = 0; i < count; i++) {
    Ref<PyObject> one = grads[i] ? about(grads[i]->object()) : share(Py_None);
    if (PyList_Append(list.get(), one.get()) < 0) throw PythonError{};
  }
  note(index, &Event::arguments, std::move(list));
}
Timing::~Timing() {
  if (profiler_running) finish(index);
}

}  // namespace rl
