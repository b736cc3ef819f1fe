// Saved-tensor hooks: what a user does with a value between forward and backward.
//
// While a pair of hooks is active (a per-thread stack, filled by rushlight/autograd/graph.py), every value a
// node saves is given to the pack hook; the node keeps what that returned as a Packed object, together with
// the history of the value, and the unpack hook turns it into a tensor again. SavedTensor, what
// `grad_fn._raw_saved_self` gives, sets hooks on one value after the fact.
#include "../python/collector.h"
#include "../python/forward_mode.h"
#include "custom.h"
#include "dispatching.h"
#include "living.h"
#include "modes.h"
#include "rules.h"
#include "watching.h"

namespace rl {

thread_local bool hooks_active __attribute__((tls_model("initial-exec"))) = false;

namespace {

struct Packed {
  PyObject_HEAD PyObject* value;  // what the pack hook returned
  PyObject* unpack_hook;
  Node* history;  // of the value that was saved: its grad_fn, or the accumulator of a leaf
  uint32_t output_nr;
  bool own;         // value is an alias of what the pack hook was given and returned
  Tensor* dual;     // has the tangent of the value that was saved; null: it had none
  uint64_t number;  // of what hooks have packed in this thread
};

// A handle on one saved value of a node.
struct SavedTensor {
  PyObject_HEAD Node* node;
  int at, out;
  int sub;          // which element of a list of tensors, -1: it is no list
  PyObject* value;  // owned: what torch would have saved and the node has not; else null
};

PyTypeObject* PackedType = nullptr;
PyTypeObject* SavedTensorType = nullptr;

struct HookStack {
  std::vector<std::pair<PyObject*, PyObject*>> pairs;
  PyObject* disabled = nullptr;  // the message of disable_saved_tensors_hooks
  bool resting = false;          // they are kept, and not run
};
thread_local HookStack hooks;
thread_local PyObject* write_watcher __attribute__((tls_model("initial-exec"))) = nullptr;

Packed* as_packed(PyObject* o) { return reinterpret_cast<Packed*>(o); }

int packed_traverse(PyObject* self, visitproc visit, void* arg) {
  Packed* packed = as_packed(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(packed->value);
  Py_VISIT(packed->unpack_hook);
  Py_VISIT(packed->history);
  Py_VISIT(packed->dual);
  return 0;
}
int packed_clear(PyObject* self) {
  Packed* packed = as_packed(self);
  Py_CLEAR(packed->value);
  Py_CLEAR(packed->unpack_hook);
  Py_CLEAR(packed->history);
  Py_CLEAR(packed->dual);
  return 0;
}
void packed_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  packed_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int saved_tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* handle = reinterpret_cast<SavedTensor*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(handle->node);
  Py_VISIT(handle->value);
  return 0;
}
// The node stays until the end: every method reads it.
int saved_tensor_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<SavedTensor*>(self)->value);
  return 0;
}
void saved_tensor_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  saved_tensor_clear(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(reinterpret_cast<SavedTensor*>(self)->node));
  type->tp_free(self);
  Py_DECREF(type);
}

// What the node keeps there now; empty if it was freed.
Ref<PyObject> handle_value(const SavedTensor* handle) {
  if (handle->value) return Ref<PyObject>(handle->node->released ? nullptr : Py_NewRef(handle->value));
  if (handle->at < 0 || handle->at >= handle->node->saved_count) return {};
  PyObject* value = handle->node->saved[handle->at].object;
  if (!value || handle->sub < 0) return Ref<PyObject>(Py_XNewRef(value));
  if (!PyTuple_CheckExact(value) || handle->sub >= PyTuple_GET_SIZE(value)) return {};
  return share(PyTuple_GET_ITEM(value, handle->sub));
}

// Note [what hooks are shown]
// Hooks that are active when a value is saved get the very tensor: an input, or a result of the node
// with its history. Hooks that are set on a saved value later get its values only. A tensor that is returned
// as it is, the most frequent answer, is kept as its values (`own`) and given its history when it is
// unpacked. If a result is held otherwise, what was returned may lead to the node again (Note [loops]).
Ref<PyObject> pack(Tensor* t, const Edge& edge, bool itself, PyObject* pack_hook, PyObject* unpack_hook) {
  Ref<Node> history(edge.node);
  bool subclass = Py_TYPE(t) != TensorType && Py_TYPE(t) != ParameterType;
  TensorRef shown = itself || subclass ? share(t) : new_alias(t);
  uint32_t version = counter_of(t)->version;
  Ref<PyObject> value;
  {
    GradMode off(false);
    value = checked(PyObject_CallOneArg(pack_hook, shown->object()));
  }
  if (counter_of(t)->version != version) {
    fail(PyExc_RuntimeError,
         "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
         "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please open "
         "an "
         "issue if you need to perform in-place operations on the input to a pack hook.");
  }
  bool own = value.get() == t->object() && t->grad_fn && !subclass;
  if (own) value = Ref<PyObject>(new_alias(t).release_object());
  expect_loops();
  auto* packed = as_packed(PackedType->tp_alloc(PackedType, 0));
  if (!packed) throw PythonError{};
  any_packed = true;
  static thread_local uint64_t count = 0;
  packed->number = ++count;
  packed->value = value.release();
  packed->unpack_hook = Py_NewRef(unpack_hook);
  packed->history = history.release();
  packed->output_nr = edge.nr;
  packed->own = own;
  Ref<PyObject> kept(reinterpret_cast<PyObject*>(packed));
  if (carrying()) share_packed_tangent(t, kept.get());
  return kept;
}

// The tangent that the value has by the level that is open now, or empty.
TensorRef packed_tangent(const Packed* packed) {
  return packed->dual && carrying() ? tangent_of(packed->dual) : TensorRef();
}

// t's values with the history of what was saved there: another tensor, unless neither has one. `unseen`: who
// looks on is not told of it.
Ref<PyObject> with_saved_history(Node* node, const Packed* packed, Tensor* t, int out, bool unseen = false) {
  Node* history = out >= 0 ? node : packed->history;
  TensorRef tangent = packed_tangent(packed);
  if (!is_differentiable(t->dtype) || !(history || t->requires_grad() || tangent)) return share(t->object());
  bool told = asks_dispatch(t) && !unseen && !(out >= 0 && keeps_whole(node, t, out));
  TensorRef with = told ? dispatched_detach(t) : new_alias(t);
  if (tangent) share_tangent(packed->dual, with.get());
  if (!history) return Ref<PyObject>(with.release_object());
  Py_INCREF(history->object());
  // Of a leaf it is the accumulator itself: the gradient reaches the leaf whose value this is.
  with->grad_fn = history;
  with->output_nr = out >= 0 ? uint32_t(out) : packed->output_nr;
  return Ref<PyObject>(with.release_object());
}

// What the pack hook returned.
Ref<PyObject> shown_packed(Node* node, const Packed* packed, int out) {
  Node* history = out >= 0 ? node : packed->history;
  Tensor* t = packed->own ? as_tensor(packed->value) : nullptr;
  if (!t || (history && t->grad_fn == history)) return share(packed->value);
  return original(with_saved_history(node, packed, t, out, true));
}

[[noreturn]] void fail_freed() {
  fail(PyExc_RuntimeError,
       "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the "
       "graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
       "to backward through the graph a second time or if you need to access saved variables after calling "
       "backward.");
}

// register_hooks(pack, unpack)
PyObject* register_hooks(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    auto* handle = reinterpret_cast<SavedTensor*>(self);
    bool two = PyTuple_GET_SIZE(args) == 2;
    PyObject* pack_hook = two ? PyTuple_GET_ITEM(args, 0) : Py_None;
    PyObject* unpack_hook = two ? PyTuple_GET_ITEM(args, 1) : Py_None;
    if (!PyCallable_Check(pack_hook) || !PyCallable_Check(unpack_hook)) {
      fail(PyExc_TypeError,
           "register_hooks(): incompatible function arguments. The following argument types are supported:\n "
           "   two callables");
    }
    Ref<PyObject> value = handle_value(handle);
    if (!value) fail_freed();
    if (value.get() == Py_None) {
      fail(PyExc_RuntimeError, "Calling register_hooks on a saved tensor with value None is forbidden");
    }
    if (handle->value) {
      failf(PyExc_NotImplementedError, "%s of Rushlight does not need this value: hooks on it would not run",
            node_name(handle->node).c_str());
    }
    if (is_packed(value.get())) {
      fail(PyExc_RuntimeError,
           "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair "
           "of "
           "hooks is allowed at a time.");
    }
    if (!is_tensor(value.get())) fail(PyExc_RuntimeError, "register_hooks expects a saved tensor");
    // Whether it can still be read; a value changed since is not to be packed as if it were the saved one.
    unpack(handle->node, handle->at, handle->out);
    Edge edge = handle->out < 0 ? gradient_edge(as_tensor(value.get())) : Edge{nullptr, 0};
    Ref<PyObject> packed = pack(as_tensor(value.get()), edge, false, pack_hook, unpack_hook);
    // The pack hook may have run the backward that frees it, or have set hooks itself.
    if (handle_value(handle).get() != value.get()) fail_freed();
    Saved& saved = handle->node->saved[handle->at];
    if (handle->sub < 0) {
      release(saved);
      saved.object = packed.release();
      Py_RETURN_NONE;
    }
    Ref<PyObject> before = share(saved.object);
    Py_ssize_t n = PyTuple_GET_SIZE(before.get());
    Ref<PyObject> list = checked(PyTuple_New(n));
    for (Py_ssize_t k = 0; k < n; k++) {
      PyObject* one = k == handle->sub ? packed.get() : PyTuple_GET_ITEM(before.get(), k);
      PyTuple_SET_ITEM(list.get(), k, Py_NewRef(one));
    }
    saved.version -= counter_of(as_tensor(value.get()))->version;  // of a list it is the sum
    uncount_saved(value.get());
    Py_XSETREF(saved.object, list.release());
    Py_RETURN_NONE;
  });
}

PyObject* unpack_handle(PyObject* self) {
  return guarded([&]() -> PyObject* {
    auto* handle = reinterpret_cast<SavedTensor*>(self);
    if (!handle_value(handle)) rl::fail_freed(handle->node);
    if (handle->value) return Py_NewRef(handle->value);
    Ref<PyObject> kept = handle_value(handle);
    // As it was recorded, whatever the mode of the one who asks.
    GradMode on(modes.grad || !is_packed(kept.get()));
    Ref<PyObject> value = unpack(handle->node, handle->at, handle->out);
    if (handle->sub >= 0) value = share(PyTuple_GET_ITEM(value.get(), handle->sub));
    return handle->out < 0 && !is_packed(kept.get()) ? original(std::move(value)).release() : value.release();
  });
}
PyObject* saved_tensor_unpack(PyObject* self, PyObject*) { return unpack_handle(self); }

// What is kept, whatever was written to it since: the tensor, or what the pack hook made of it. None if it
// was freed; of a result its values.
PyObject* saved_tensor_data(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    auto* handle = reinterpret_cast<SavedTensor*>(self);
    Ref<PyObject> value = handle_value(handle);
    if (!value) Py_RETURN_NONE;
    if (is_packed(value.get())) {
      return shown_packed(handle->node, as_packed(value.get()), handle->out).release();
    }
    bool result = handle->out >= 0 || (handle->value && is_tensor(handle->value) &&
                                       as_tensor(handle->value)->grad_fn == handle->node);
    if (result && is_tensor(value.get())) return new_alias(as_tensor(value.get())).release_object();
    return original(std::move(value)).release();
  });
}
PyObject* saved_tensor_unpack_hook(PyObject* self, void*) {
  auto* handle = reinterpret_cast<SavedTensor*>(self);
  Ref<PyObject> value = handle_value(handle);
  return Py_NewRef(value && is_packed(value.get()) ? as_packed(value.get())->unpack_hook : Py_None);
}

PyObject* saved_tensor_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "Trying to create a SavedTensor object from Python is forbidden.");
  return nullptr;
}

PyMethodDef saved_tensor_methods[] = {
    {"register_hooks", register_hooks, METH_VARARGS, "Packs this value now and unpacks it when it is used."},
    {"unpack", saved_tensor_unpack, METH_NOARGS, "The saved tensor."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef saved_tensor_getset[] = {
    {"data", saved_tensor_data, nullptr, "The saved tensor, or what a pack hook made of it.", nullptr},
    {"unpack_hook", saved_tensor_unpack_hook, nullptr, "The hook that unpacks it, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* new_handle(Node* node, int at, int out, int sub, PyObject* unsaved) {
  auto* made = reinterpret_cast<SavedTensor*>(SavedTensorType->tp_alloc(SavedTensorType, 0));
  if (!made) throw PythonError{};
  Py_INCREF(node->object());
  made->node = node;
  made->at = at;
  made->out = out;
  made->sub = sub;
  made->value = Py_XNewRef(unsaved);
  return reinterpret_cast<PyObject*>(made);
}

// make_saved(tensor): a handle on the tensor as a node would save it, through the hooks if there are any.
// The node is one that no graph has.
PyObject* py_make_saved(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) fail(PyExc_TypeError, "make_saved: a tensor expected");
    Tensor* t = as_tensor(o);
    static Primitive& alias = primitive("alias");
    Ref<Node> node = new_node(Node::operation, &alias, 0, 1);
    node->saved[0] = saved_hooks_active() ? save_tensor(t, true) : save_itself(t);
    return new_handle(node.get(), 0, -1, -1, nullptr);
  });
}

// raw_saved(node, slot, output number or -1), or (node, value) of a value that the node has not saved. None
// for a number that the node has in the place of a tensor.
PyObject* py_raw_saved(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *o, *unsaved = nullptr;
    int at = -1, out = -1;
    bool saved = PyTuple_GET_SIZE(args) != 2;
    bool parsed = saved ? PyArg_ParseTuple(args, "O!ii", NodeType, &o, &at, &out)
                        : PyArg_ParseTuple(args, "O!O", NodeType, &o, &unsaved);
    if (!parsed) return nullptr;
    auto* node = reinterpret_cast<Node*>(o);
    if (saved && (at < 0 || at >= node->saved_count)) fail(PyExc_IndexError, "no such saved value");
    auto handle = [&](int sub) { return new_handle(node, at, out, sub, unsaved); };
    if (!saved) return handle(-1);
    PyObject* value = node->saved[at].object;
    if (value && (PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value))) Py_RETURN_NONE;
    if (!value || !PyTuple_CheckExact(value)) return handle(-1);
    Ref<PyObject> list = checked(PyTuple_New(PyTuple_GET_SIZE(value)));
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(value); k++) PyTuple_SET_ITEM(list.get(), k, handle(int(k)));
    return list.release();
  });
}

void refresh_active() { hooks_active = !hooks.pairs.empty() && !hooks.resting && !hooks.disabled; }

PyObject* py_push_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *pack_hook, *unpack_hook;
    if (!PyArg_ParseTuple(args, "OO", &pack_hook, &unpack_hook)) return nullptr;
    if (hooks.disabled) {
      const char* text = PyUnicode_AsUTF8(hooks.disabled);
      if (!text) return nullptr;
      fail(PyExc_RuntimeError, text);
    }
    hooks.pairs.emplace_back(Py_NewRef(pack_hook), Py_NewRef(unpack_hook));
    refresh_active();
    Py_RETURN_NONE;
  });
}
void pop_hooks() {
  auto [pack_hook, unpack_hook] = hooks.pairs.back();
  hooks.pairs.pop_back();
  refresh_active();
  Py_DECREF(pack_hook);
  Py_DECREF(unpack_hook);
}
PyObject* py_pop_hooks(PyObject*, PyObject*) {
  if (!hooks.pairs.empty()) pop_hooks();
  Py_RETURN_NONE;
}
// top_saved_hooks(whether also hooks that do not run): the innermost pair, or None.
PyObject* py_top_hooks(PyObject*, PyObject* args) {
  int also_resting = 0;
  if (!PyArg_ParseTuple(args, "|p", &also_resting)) return nullptr;
  if (hooks.pairs.empty() || (hooks.resting && !also_resting)) Py_RETURN_NONE;
  return PyTuple_Pack(2, hooks.pairs.back().first, hooks.pairs.back().second);
}
// rest_saved_hooks(bool): whether this thread's hooks do not run; returns whether they did not.
PyObject* py_rest_hooks(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    bool before = std::exchange(hooks.resting, is_true(on));
    refresh_active();
    return PyBool_FromLong(before);
  });
}
void set_disabled(PyObject* message) {
  PyObject* before = std::exchange(hooks.disabled, message == Py_None ? nullptr : Py_NewRef(message));
  refresh_active();
  Py_XDECREF(before);
}
// disable_saved_hooks(message, whether it may be done while there are some)
PyObject* py_disable_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* message;
    int beside_others = 0;
    if (!PyArg_ParseTuple(args, "O|p", &message, &beside_others)) return nullptr;
    if (!PyUnicode_Check(message)) {
      fail(
          PyExc_TypeError,
          "_saved_tensors_hooks_disable(): incompatible function arguments. The following argument types are "
          "supported:\n    a str");
    }
    if (!hooks.pairs.empty() && !beside_others) {
      const char* text = PyUnicode_AsUTF8(message);
      if (!text) return nullptr;
      fail(PyExc_RuntimeError, text);
    }
    set_disabled(message);
    Py_RETURN_NONE;
  });
}
// allow_saved_hooks(the message that forbids them still, or None)
PyObject* py_allow_hooks(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    if (message != Py_None && !PyUnicode_Check(message)) fail(PyExc_TypeError, "the message must be a str");
    set_disabled(message);
    Py_RETURN_NONE;
  });
}

// The message of disable_saved_hooks, or None.
PyObject* py_disabled_hooks(PyObject*, PyObject*) {
  return Py_NewRef(hooks.disabled ? hooks.disabled : Py_None);
}

// watch_writes(callable or None): returns who watched before.
PyObject* py_watch_writes(PyObject*, PyObject* watcher) {
  PyObject* before = std::exchange(write_watcher, watcher == Py_None ? nullptr : Py_NewRef(watcher));
  return before ? before : Py_NewRef(Py_None);
}

PyMethodDef functions[] = {{"watch_writes", py_watch_writes, METH_O, nullptr},
                           {"raw_saved", py_raw_saved, METH_VARARGS, nullptr},
                           {"make_saved", py_make_saved, METH_O, nullptr},
                           {"push_saved_hooks", py_push_hooks, METH_VARARGS, nullptr},
                           {"pop_saved_hooks", py_pop_hooks, METH_NOARGS, nullptr},
                           {"top_saved_hooks", py_top_hooks, METH_VARARGS, nullptr},
                           {"disabled_saved_hooks", py_disabled_hooks, METH_NOARGS, nullptr},
                           {"disable_saved_hooks", py_disable_hooks, METH_VARARGS, nullptr},
                           {"allow_saved_hooks", py_allow_hooks, METH_O, nullptr},
                           {"rest_saved_hooks", py_rest_hooks, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  PyType_Slot packed_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(packed_dealloc)},
                                {Py_tp_traverse, reinterpret_cast<void*>(packed_traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(packed_clear)},
                                {0, nullptr}};
  PyType_Spec packed_spec = {"rushlight._C.Packed", sizeof(Packed), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             packed_slots};
  PackedType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&packed_spec)).release());
  PyType_Slot saved_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(saved_tensor_dealloc)},
                               {Py_tp_traverse, reinterpret_cast<void*>(saved_tensor_traverse)},
                               {Py_tp_clear, reinterpret_cast<void*>(saved_tensor_clear)},
                               {Py_tp_new, reinterpret_cast<void*>(saved_tensor_new)},
                               {Py_tp_methods, saved_tensor_methods},
                               {Py_tp_getset, saved_tensor_getset},
                               {0, nullptr}};
  PyType_Spec saved_spec = {"torch._C._autograd.SavedTensor", sizeof(SavedTensor), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, saved_slots};
  SavedTensorType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&saved_spec)).release());
  PyModule_AddObjectRef(module, "SavedTensor", reinterpret_cast<PyObject*>(SavedTensorType));
  PyModule_AddFunctions(module, functions);
});

}  // namespace

KeptHooks::KeptHooks() {
  if (!hooks_active) return;
  for (auto [pack_hook, unpack_hook] : hooks.pairs) before.emplace_back(share(pack_hook), share(unpack_hook));
}
KeptHooks::~KeptHooks() {
  if (!hooks_active && before.empty()) return;
  auto kept = [&](size_t i) {
    return i < before.size() && hooks.pairs[i].first == before[i].first.get() &&
           hooks.pairs[i].second == before[i].second.get();
  };
  size_t same = 0;
  while (same < hooks.pairs.size() && kept(same)) same++;
  while (hooks.pairs.size() > same) pop_hooks();
  for (; same < before.size(); same++) {
    hooks.pairs.emplace_back(before[same].first.release(), before[same].second.release());
  }
  refresh_active();
}

bool writes_watched() { return write_watcher; }

void announce_write(Tensor* t) {
  if (!write_watcher) return;
  Ref<PyObject> watcher = share(write_watcher);
  checked(PyObject_CallOneArg(watcher.get(), t->object()));
}

bool any_packed = false;
uint64_t packed_number(PyObject* packed) { return as_packed(packed)->number; }
bool is_packed(PyObject* o) { return Py_TYPE(o) == PackedType; }

void share_packed_tangent(Tensor* from, PyObject* o) {
  if (!tangent_of(from)) return;
  Packed* packed = as_packed(o);
  int64_t none = 0;
  if (!packed->dual)
    packed->dual = new_tensor({&none, 1}, from->dtype).release();  // its elements are nobody's
  share_tangent(from, packed->dual);
}

Ref<PyObject> pack_with_current_hooks(Tensor* t, bool keep_history, Node* by) {
  // Held for the call: a hook may leave its own context.
  Ref<PyObject> pack_hook = share(hooks.pairs.back().first), unpack_hook = share(hooks.pairs.back().second);
  Edge edge = keep_history ? gradient_edge(t) : Edge{nullptr, 0};
  bool itself = keep_history || by;
  return pack(t, edge, itself, pack_hook.get(), unpack_hook.get());
}

Ref<PyObject> unpack_packed(Node* node, PyObject* o, int out) {
  Ref<PyObject> kept = share(o);  // the hook may free the node's values
  Packed* packed = as_packed(o);
  Ref<PyObject> shown = shown_packed(node, packed, out);
  Ref<PyObject> value = checked(PyObject_CallOneArg(packed->unpack_hook, shown.get()));
  if (!is_tensor(value.get())) {
    failf(PyExc_TypeError,
          "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
          Py_TYPE(value.get())->tp_name);
  }
  return with_saved_history(node, packed, as_tensor(value.get()), out);
}

}  // namespace rl
