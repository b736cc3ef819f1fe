// Python code that sees every operation below autograd: TorchDispatchMode, and tensors whose class has a
// `__torch_dispatch__`.
//
// While a mode is active somewhere, and from the first tensor of such a class on, `dispatched_forward` stands
// in the place of every primitive's forward function (forwards.h). If this thread has a mode, or an argument
// is such a tensor, it calls handler(primitive, arguments, out or None) and takes what that returns for the
// result; recording goes on around it as ever. The handler is in rushlight/utils/_python_dispatch.py.
#include "../graph/dispatching.h"
#include "../graph/modes.h"
#include "../tensor/twins.h"
#include "functions.h"
#include "lazy_views.h"
#include "levels.h"
#include "rare_ops.h"
#include "tensor_type.h"

namespace rl {

bool dispatching_now = false;
bool only_classes_asked = false;

namespace {

std::vector<Forward> all_reals;  // empty until the first one is replaced
std::vector<Forward>& reals() { return all_reals; }
bool timing_now = false;

PyObject* handler = nullptr;                      // owned
PyObject *detacher = nullptr, *reader = nullptr;  // owned
thread_local bool mode_here = false, subclasses_off = false;
bool kernels_replaced = false;  // somebody has put a function in the place of a kernel (torch.library)
int threads_with_mode = 0;      // also of threads that ended with one
thread_local bool replaced_off = false;  // it is not asked here: the kernel itself runs
thread_local bool outer_grad = true;     // whether whoever caused the question records
thread_local bool shown_grad =
    true;  // what is_grad_enabled() says inside a handler: as outside, till it is set

// Below autograd: nothing is recorded, no tangents are carried along.
class BelowAutograd {
 public:
  BelowAutograd() : grad(modes.grad), forward(modes.forward), before(outer_grad), shown(shown_grad) {
    if (depth++ == 0) outer_grad = shown_grad = grad;
    modes.grad = modes.forward = false;
  }
  ~BelowAutograd() {
    depth--;
    outer_grad = before;
    shown_grad = shown;
    modes.grad = grad;
    modes.forward = forward;
  }
  BelowAutograd(const BelowAutograd&) = delete;

 private:
  bool grad, forward, before, shown;

 public:
  static thread_local int depth;
};
thread_local int BelowAutograd::depth = 0;

bool is_argument(const Primitive& op, PyObject* const* args, PyObject* o) {
  for (int i = 0; i < op.input_count; i++) {
    if (args[i] == o) return true;
  }
  return false;
}

[[noreturn]] void fail_cast(PyObject* o) {
  Ref<PyObject> text = checked(PyObject_Str(o));
  const char* shown = PyUnicode_AsUTF8(text.get());
  failf(PyExc_RuntimeError, "Unable to cast %s to Tensor", shown ? shown : "?");
}

// Two wrappers of the same memory count writes together, on the record that one has; also where the class
// moved the other there itself (`set_`), which gave it a counter of its own.
void count_together(Tensor* t, Tensor* other) {
  if (!t->is_meta() || !other->is_meta()) return;
  if (t->storage != other->storage) {
    incref(t->storage);
    decref(other->storage);
    other->storage = t->storage;
  }
  if (counter_of(t) == counter_of(other)) return;
  if (other->extra) drop_counter(other->extra);
  share_counter(t, other);
}

// The result of a view operation is a view, whoever made it.
void make_view(Tensor* of, Tensor* t) {
  Extra* extra = extra_of(t);
  extra->origin = ViewOrigin::ordinary;
  Tensor* base = of->extra && of->extra->base && of->extra->differentiable_view ? of->extra->base : of;
  if (base == t || extra->base == base) return;
  if (extra->base) extra->base->held_by -= conversion_holds(extra);
  Py_CLEAR(extra->steps);  // which lead from the base that it had
  Py_INCREF(base->object());
  set_held(extra->base, base);
  extra->differentiable_view = true;
  count_together(base, t);
  extra->view_version = counter_of(t)->version;
}

// A result must be a tensor of its own: the caller gives it a history.
Ref<PyObject> fresh(const Primitive& op, PyObject* const* args, PyObject* o) {
  if (!is_tensor(o)) fail_cast(o);
  Tensor* t = as_tensor(o);
  // A leaf that was made for the answer alone gets the history itself, as in torch: a wrapper of what has a
  // history of its own.
  bool own_leaf = !t->grad_fn && (t->flags & Tensor::REQUIRES_GRAD) && Py_REFCNT(o) == 1 && !t->extra;
  if (own_leaf) t->flags &= ~Tensor::REQUIRES_GRAD;
  Ref<PyObject> result = share(o);
  if (t->grad_fn || (t->flags & Tensor::REQUIRES_GRAD) || is_argument(op, args, o)) {
    TensorRef alias = dispatches(t) ? dispatched_detach(t) : new_alias(t);
    result = Ref<PyObject>(alias.release_object());
  }
  if (op.options & Primitive::VIEW && is_tensor(args[0]))
    make_view(as_tensor(args[0]), as_tensor(result.get()));
  return result;
}

bool any_dispatches(PyObject* o) {
  if (is_plain_tensor(o)) return false;
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
      PyObject* element = PySequence_Fast_GET_ITEM(o, i);
      if (is_tensor(element) && dispatches(as_tensor(element))) return true;
    }
    return false;
  }
  return is_tensor(o) && dispatches(as_tensor(o));
}

bool any_dispatches(const Primitive& op, PyObject* const* args) {
  for (size_t i = 0; i < op.args.size(); i++) {
    if (!is_plain_tensor(args[i]) && !surely_plain(args[i]) && any_dispatches(args[i])) return true;
  }
  return false;
}

void see_who_is_asked() {
  only_classes_asked = dispatching_now && !timing_now && !kernels_replaced && threads_with_mode == 0;
}

PyObject* next_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  return timing_now ? timed_forward(op, args, out) : run_real_forward(op, args, out);
}

}  // namespace

namespace {
// No mode, no tensor of a class that is asked, no function that is being transformed.
bool nobody_there() {
  return dispatching_only_levels && only_classes_asked && !leveled_alive && !inside_levels();
}
}  // namespace

Forward real_forward(const Primitive& op) { return reals().empty() ? op.forward : reals()[op.number]; }
bool dispatching_forwards() { return dispatching_now; }

bool may_be_asked(PyObject* const* args, Py_ssize_t count) {
  if (!dispatching_now || nobody_there()) return false;
  bool asked = mode_here || kernels_replaced || (leveled_type && inside_levels());
  for (Py_ssize_t i = 0; i < count && !asked; i++) asked = any_dispatches(args[i]);
  return asked;
}

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
  see_who_is_asked();
}
bool dispatching_classes = false, dispatching_only_levels = false;
PyTypeObject *sparse_type = nullptr, *compressed_type = nullptr;

bool asks_about(const Primitive& op, PyObject* const* args) {
  if (only_classes_asked) return handler && any_dispatches(op, args);
  if (!dispatching_now || !handler) return false;
  return mode_here || (kernels_replaced && !replaced_off) ||
         (dispatching_classes && any_dispatches(op, args));
}

namespace {
PyObject* parts = nullptr;  // owned dict: functions by the names of primitives
PyObject* above = nullptr;  // the same of what stands above kernels (rushlight/_above_kernels.py)

Ref<PyObject> called_instead(PyObject* dict, const Primitive& op, PyObject* const* args) {
  PyObject* function = dict ? PyDict_GetItemString(dict, op.name.c_str()) : nullptr;
  if (!function) return {};
  Ref<PyObject> kept = share(function);
  Ref<PyObject> result = checked(PyObject_Vectorcall(function, args, op.args.size(), nullptr));
  if (result.get() == Py_NotImplemented) return {};
  bool several = op.outputs.size() > 1;
  if (!several && !is_tensor(result.get())) fail_cast(result.get());
  if (!several) return result;
  bool right = PyTuple_Check(result.get()) && PyTuple_GET_SIZE(result.get()) == Py_ssize_t(op.outputs.size());
  for (Py_ssize_t i = 0; right && i < PyTuple_GET_SIZE(result.get()); i++)
    right = is_tensor(PyTuple_GET_ITEM(result.get(), i));
  if (!right) failf(PyExc_TypeError, "the steps of %s must return its results", op.name.c_str());
  return result;
}
}  // namespace

Ref<PyObject> taken_apart(const Primitive& op, PyObject* const* args) {
  if (above && PyDict_GET_SIZE(above)) {
    if (Ref<PyObject> result = called_instead(above, op, args)) return result;
  }
  if (!(timing_now && measuring()) && !asks_about(op, args)) return {};
  return called_instead(parts, op, args);
}

bool class_dispatches(PyTypeObject* type) {
  if (type == sparse_type || type == compressed_type || type == leveled_type)
    return true;  // nothing of it could be computed otherwise
  if (subclasses_off) return false;
  static PyObject* name = PyUnicode_InternFromString("__torch_dispatch__");
  return _PyType_Lookup(type, name) != _PyType_Lookup(TensorType, name);
}

void start_dispatching_levels() {
  if (dispatching_classes) return;
  start_dispatching();
  dispatching_only_levels = true;
}

void start_dispatching() {
  dispatching_only_levels = false;
  if (dispatching_classes) return;
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.utils._python_dispatch"));
  dispatching_classes = true;
  Ref<PyObject> done(PyObject_CallMethod(module.get(), "_start", nullptr));
  if (done) return;
  dispatching_classes = false;  // interrupted: the next one tries again
  throw PythonError{};
}

ModesUnasked::ModesUnasked() : before(std::exchange(mode_here, false)) {}
ModesUnasked::~ModesUnasked() { mode_here = before; }

bool is_asked(const Tensor* t) { return mode_here || dispatches(t); }

TensorRef dispatched_detach(Tensor* t) {
  if (is_leveled(t)) return same_at_level(t);
  if (!detacher) fail(PyExc_RuntimeError, "nobody is there to be asked about detach");
  BelowAutograd below;
  Ref<PyObject> result = checked(PyObject_CallOneArg(detacher, t->object()));
  if (!is_tensor(result.get())) fail_cast(result.get());
  TensorRef detached(as_tensor(result.release()));
  if (detached.get() != t) count_together(t, detached.get());
  return detached;
}

TensorRef take_sparse(Tensor* grad) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._dispatching"));
  Ref<PyObject> own = checked(PyObject_CallMethod(module.get(), "take_sparse", "O", grad->object()));
  if (!is_tensor(own.get())) fail_cast(own.get());
  return TensorRef(as_tensor(own.release()));
}

TensorRef dispatched_copy(Tensor* grad, Tensor* leaf) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._dispatching"));
  Ref<PyObject> own =
      checked(PyObject_CallMethod(module.get(), "own_gradient", "OO", grad->object(), leaf->object()));
  if (!is_tensor(own.get())) fail_cast(own.get());
  return TensorRef(as_tensor(own.release()));
}

Ref<PyObject> dispatched_item(Tensor* t) {
  if (is_leveled(t)) return item_at_level(t);
  if (!reader) fail(PyExc_RuntimeError, "nobody is there to be asked about item");
  BelowAutograd below;
  return checked(PyObject_CallOneArg(reader, t->object()));
}

void claim_device(Storage* storage, Device device) {
  if (storage->device.type != DeviceType::meta) fail(PyExc_RuntimeError, "only a wrapper claims a device");
  storage->bytes[0] = 1;
  storage->bytes[1] = char(device.type);
  storage->bytes[2] = char(device.index);
}
Device claimed_device(const Storage* storage) {
  if (storage->device.type != DeviceType::meta || storage->data || storage->kind != Storage::small ||
      storage->bytes[0] != 1)
    return storage->device;
  return {DeviceType(storage->bytes[1]), int8_t(storage->bytes[2])};
}

namespace {
PyObject* asked_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Ref<PyObject> values = checked(PyTuple_New(Py_ssize_t(op.args.size())));
  for (size_t i = 0; i < op.args.size(); i++) PyTuple_SET_ITEM(values.get(), i, Py_NewRef(args[i]));
  PyObject* call_args[] = {const_cast<Primitive&>(op).object(), values.get(), out ? out->object() : Py_None};
  uint32_t version = out ? counter_of(out)->version : 0;
  Ref<PyObject> result = leveled_type ? at_level(op, args, out) : Ref<PyObject>();
  if (!result) {
    BelowAutograd below;
    result = checked(PyObject_Vectorcall(handler, call_args, 3, nullptr));
  }
  if (out) {
    if (!is_tensor(result.get())) fail_cast(result.get());
    counter_of(out)->version = version;  // the write is counted once, by the caller
    return Py_NewRef(out->object());
  }
  bool several = op.list_output || op.outputs.size() > 1;
  if (!several) return fresh(op, args, result.get()).release();
  if (!PyTuple_Check(result.get()) && !PyList_Check(result.get())) {
    if (!op.list_output)
      failf(PyExc_RuntimeError, "Object of type '%s' is not an instance of 'sequence'",
            Py_TYPE(result.get())->tp_name);
    failf(PyExc_RuntimeError,
          "Unable to cast Python instance of type <class '%s'> to C++ type '?' (#define "
          "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)",
          Py_TYPE(result.get())->tp_name);
  }
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
}  // namespace

PyObject* dispatched_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  if (only_classes_asked && (nobody_there() || !any_dispatches(op, args)))
    return run_real_forward(op, args, out);
  return asks_about(op, args) ? asked_forward(op, args, out) : next_forward(op, args, out);
}

PyObject* python_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  start_dispatching();
  return asked_forward(op, args, out);
}

namespace {

// set_dispatch_handler(callable, detach, item): who is asked, in all threads.
PyObject* py_set_handler(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3) fail(PyExc_TypeError, "set_dispatch_handler(callable, detach, item) expected");
    Py_XSETREF(handler, Py_NewRef(args[0]));
    Py_XSETREF(detacher, Py_NewRef(args[1]));
    Py_XSETREF(reader, Py_NewRef(args[2]));
    Py_RETURN_NONE;
  });
}

// take_apart(dict): functions of the arguments of these primitives, made of torch's steps.
// call_above({name: function}): the function is called in the place of a primitive, whoever looks on.
template <PyObject** kept>
PyObject* py_take_apart(PyObject*, PyObject* dict) {
  return guarded([&]() -> PyObject* {
    if (!PyDict_CheckExact(dict)) fail(PyExc_TypeError, "a dict expected");
    PyObject *name, *function;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &name, &function)) {
      const char* text = PyUnicode_AsUTF8(name);
      if (!text) return nullptr;
      Primitive& op = primitive(text);
      if (op.list_output) fail(PyExc_ValueError, "a fixed number of outputs expected");
      op.options |= Primitive::TAKEN_APART;
    }
    Py_XSETREF(*kept, Py_NewRef(dict));
    Py_RETURN_NONE;
  });
}

// set_dispatch_mode(bool): whether this thread has a mode; returns whether it had one.
PyObject* py_set_mode(PyObject*, PyObject* on) {
  bool before = std::exchange(mode_here, on == Py_True);
  threads_with_mode += int(mode_here) - int(before);
  see_who_is_asked();
  return PyBool_FromLong(before);
}

// dispatch_outer_grad(): inside a handler, whether whoever caused the question records.
PyObject* py_outer_grad(PyObject*, PyObject*) { return PyBool_FromLong(outer_grad); }

// is_grad_enabled() for users: inside a handler nothing is recorded, but as in torch the switch is where the
// caller left it.
PyObject* py_shown_grad(PyObject*, PyObject*) {
  return PyBool_FromLong(modes.grad || (BelowAutograd::depth && shown_grad));
}

// below_autograd(function, arguments ...): calls it where nothing is recorded, as a handler is called.
PyObject* py_below_autograd(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 1) fail(PyExc_TypeError, "below_autograd(function, arguments ...) expected");
    BelowAutograd below;
    return PyObject_Vectorcall(args[0], args + 1, size_t(n - 1), nullptr);
  });
}

// set_grad_enabled(bool): returns what was set, to be given back; 2 means "shown as on, but below autograd".
PyObject* py_set_grad(PyObject*, PyObject* on) {
  bool below = BelowAutograd::depth && !modes.grad;
  PyObject* before = below && shown_grad ? PyLong_FromLong(2) : PyBool_FromLong(modes.grad);
  int truth = PyObject_IsTrue(on);
  if (truth < 0 || !before) {
    Py_XDECREF(before);
    return nullptr;
  }
  shown_grad = truth;
  modes.grad = truth && !(BelowAutograd::depth && PyLong_CheckExact(on));
  return before;
}

}  // namespace

PyObject* switch_grad(PyObject* on) {
  if (!modes.function_mode || !PyBool_Check(on)) return py_set_grad(nullptr, on);
  return guarded([&] {
    bool before = modes.grad;
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.autograd._native_names"));
    Ref<PyObject> function = checked(PyObject_GetAttrString(module.get(), "_set_grad_enabled"));
    Ref<PyObject> done(dispatch_call(function.get(), &on, 1, nullptr));
    return PyBool_FromLong(before);
  });
}

namespace {

PyObject* py_switch_grad(PyObject*, PyObject* on) { return switch_grad(on); }

// set_dispatch_disabled(bool): whether classes are left alone in this thread; returns what was set before.
PyObject* py_set_disabled(PyObject*, PyObject* on) {
  return PyBool_FromLong(std::exchange(subclasses_off, on == Py_True));
}

// replace_kernels(bool): whether functions stand in the place of kernels, in all threads.
PyObject* py_replace_kernels(PyObject*, PyObject* on) {
  kernels_replaced = on == Py_True;
  arrange_forwards(timing_now, dispatching_now || kernels_replaced);
  Py_RETURN_NONE;
}

// run_kernels(bool): whether this thread runs the kernels themselves; returns what was set before.
PyObject* py_run_kernels(PyObject*, PyObject* on) {
  return PyBool_FromLong(std::exchange(replaced_off, on == Py_True));
}

// set_dispatching(bool): whether the handler is asked at all, in any thread; returns whether it is.
PyObject* py_set_dispatching(PyObject*, PyObject* on) {
  arrange_forwards(timing_now, on == Py_True || dispatching_classes || kernels_replaced);
  return PyBool_FromLong(dispatching_now);
}

// asks_dispatch(tensor): whether somebody is asked about what happens to it.
PyObject* py_asks(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && asks_dispatch(as_tensor(o)));
}

// watched(tensor): whether somebody looks on what is computed of it: a handler, or the profiler.
PyObject* py_watched(PyObject*, PyObject* o) {
  bool asked = is_tensor(o) && (is_leveled(o) ? mode_here : asks_dispatch(as_tensor(o)));
  return PyBool_FromLong(measuring() || asked);
}

// dispatches(object): whether it is a tensor whose class is asked.
PyObject* py_dispatches(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && dispatches(as_tensor(o)));
}

// set_sparse_type(cls, compressed): the class of sparse tensors in coordinates, or of compressed ones.
PyObject* py_set_sparse_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyType_Check(args[0]) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(args[0]), TensorType))
      fail(PyExc_TypeError, "set_sparse_type: a class of tensors expected");
    PyTypeObject*& type = args[1] == Py_True ? compressed_type : sparse_type;
    Py_XSETREF(type, reinterpret_cast<PyTypeObject*>(Py_NewRef(args[0])));
    Py_RETURN_NONE;
  });
}

// count_with(alias, x): writes to alias count as writes to x, whose values it shows.
PyObject* py_count_with(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !is_tensor(args[0]) || !is_tensor(args[1]))
      fail(PyExc_TypeError, "count_with takes two tensors");
    Tensor *alias = as_tensor(args[0]), *x = as_tensor(args[1]);
    Storage* counter = counter_of(x);
    incref(counter);
    Extra* extra = extra_of(alias);
    drop_counter(extra);
    extra->counter = counter;
    own_counters++;
    return Py_NewRef(alias->object());
  });
}

// is_sparse(object), is_compressed(object), is_any_sparse(object): whether it is a sparse tensor in
// coordinates, a compressed one, either. One of a level is what it stands for.
PyObject* py_is_sparse(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && is_sparse(lowest(as_tensor(o))));
}
PyObject* py_is_compressed(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && is_compressed(lowest(as_tensor(o))));
}
PyObject* py_is_any_sparse(PyObject*, PyObject* o) {
  return PyBool_FromLong(is_tensor(o) && is_any_sparse(lowest(as_tensor(o))));
}

// make_wrapper(cls, meta tensor, device, offset): a tensor without data.
PyObject* py_make_wrapper(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4 || !PyType_Check(args[0]) || !is_tensor(args[1]) || !as_tensor(args[1])->is_meta())
      fail(PyExc_TypeError, "make_wrapper(cls, meta tensor, device, offset) expected");
    long long offset = PyLong_AsLongLong(args[3]);
    if (offset == -1 && PyErr_Occurred()) throw PythonError{};
    if (offset < 0) fail(PyExc_RuntimeError, "Tensor: invalid storage offset " + std::to_string(offset));
    Device device;
    if (args[2] != Py_None) device = device_from(args[2]);
    TensorRef made = as_subclass(as_tensor(args[1]), reinterpret_cast<PyTypeObject*>(args[0]));
    made->offset = offset;
    if (device.type != DeviceType::meta) claim_device(made->storage, device);
    return made.release_object();
  });
}

// without_base(result, arguments): the memory alone of what is a view and no argument itself. That is what
// who was asked is given; the view that the program gets is made of it afterwards (`fresh`).
Ref<PyObject> without_base(PyObject* result, PyObject* arguments) {
  if (PyTuple_CheckExact(result) || PyList_CheckExact(result)) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(result);
    Ref<PyObject> parts = checked(PyTuple_CheckExact(result) ? PyTuple_New(count) : PyList_New(count));
    for (Py_ssize_t i = 0; i < count; i++) {
      PyObject* part = without_base(PySequence_Fast_GET_ITEM(result, i), arguments).release();
      if (PyTuple_CheckExact(result)) PyTuple_SET_ITEM(parts.get(), i, part);
      else PyList_SET_ITEM(parts.get(), i, part);
    }
    return parts;
  }
  if (!is_plain_tensor(result) || !as_tensor(result)->base()) return share(result);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); i++) {
    if (PyTuple_GET_ITEM(arguments, i) == result) return share(result);
  }
  return Ref<PyObject>(new_alias(as_tensor(result)).release_object());
}
PyObject* py_without_base(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyTuple_Check(args[1])) fail(PyExc_TypeError, "without_base(result, tuple) expected");
    return without_base(args[0], args[1]).release();
  });
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
    Ref<PyObject> result = checked(forward_resolved(op, values.data(), out));
    return op.options & Primitive::VIEW ? without_base(result.get(), args[1]).release() : result.release();
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {{"set_dispatch_handler", FAST(py_set_handler), nullptr},
                           {"take_apart", py_take_apart<&parts>, METH_O, nullptr},
                           {"call_above", py_take_apart<&above>, METH_O, nullptr},
                           {"set_dispatch_mode", py_set_mode, METH_O, nullptr},
                           {"set_grad_enabled", py_set_grad, METH_O, nullptr},
                           {"switch_grad", py_switch_grad, METH_O, nullptr},
                           {"below_autograd", FAST(py_below_autograd), nullptr},
                           {"replace_kernels", py_replace_kernels, METH_O, nullptr},
                           {"run_kernels", py_run_kernels, METH_O, nullptr},
                           {"dispatch_outer_grad", py_outer_grad, METH_NOARGS, nullptr},
                           {"set_dispatch_disabled", py_set_disabled, METH_O, nullptr},
                           {"watched", py_watched, METH_O, nullptr},
                           {"dispatches", py_dispatches, METH_O, nullptr},
                           {"asks_dispatch", py_asks, METH_O, nullptr},
                           {"set_sparse_type", FAST(py_set_sparse_type), nullptr},
                           {"is_sparse", py_is_sparse, METH_O, nullptr},
                           {"is_compressed", py_is_compressed, METH_O, nullptr},
                           {"is_any_sparse", py_is_any_sparse, METH_O, nullptr},
                           {"count_with", FAST(py_count_with), nullptr},
                           {"make_wrapper", FAST(py_make_wrapper), nullptr},
                           {"set_dispatching", py_set_dispatching, METH_O, nullptr},
                           {"without_base", FAST(py_without_base), nullptr},
                           {"run_forward", FAST(py_run_forward), nullptr},
                           {nullptr, nullptr, 0, nullptr}};

PyMethodDef shown_grad_function = {"is_grad_enabled", py_shown_grad, METH_NOARGS, nullptr};

ModuleInit init([](PyObject* module) {
  PyModule_AddFunctions(module, functions);
  Ref<PyObject> shown = checked(PyCFunction_New(&shown_grad_function, nullptr));
  PyModule_AddObjectRef(module, "shown_grad_enabled", shown.get());
});

}  // namespace
}  // namespace rl
