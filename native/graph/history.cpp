// How in-place writes change the recorded history.
//
// Note [views and in-place]
// A view shares memory with its base. When an operation writes into a view, the base's values change too, so
// the base's history is rewritten: its new grad_fn is a CopySlices node, which takes the gradient of the
// base, hands the part under the view to the operation that wrote, and puts what that returns for the view
// back in its place. The written view and all its siblings then have a stale grad_fn. They notice when it is
// next asked for: a view remembers the storage version its grad_fn is right for (Extra::view_version), and if
// the base has been written since, its grad_fn becomes AsStrided of the base. Views are made on the base's
// storage, so offset and strides of the view within the storage say all that is needed. Where they do not
// (conj, neg, complex as real), or inside _force_original_view_tracking(True), the view operations are kept
// (Extra::steps: primitives by number, with their arguments) and repeated. Such a view that was turned in
// place afterwards (transpose_) is written and asked for its history as if it had not been, if only the order
// of its elements tells: that is what torch does, and what its own tests hold it to.
#include <algorithm>

#include "../python/collector.h"
#include "../python/lazy_views.h"
#include "../python/tensor_type.h"
#include "../tensor/reach.h"
#include "../tensor/twins.h"
#include "custom.h"
#include "dispatching.h"
#include "errors.h"
#include "living.h"
#include "modes.h"

namespace rl {

thread_local bool replays_views = false;

namespace {

bool is_view(const Tensor* t) { return t->extra && t->extra->base && t->extra->differentiable_view; }

PyObject* int_tuple(Sizes values) {
  PyObject* tuple = PyTuple_New(Py_ssize_t(values.size()));
  if (!tuple) throw PythonError{};
  for (size_t i = 0; i < values.size(); i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
  return tuple;
}

// torch forbids in-place writes around views whose own derivative the rewriting would lose. `indirect`: the
// base was written, not this view. `step`: the view of it that is meant instead; empty for the view itself.
[[noreturn]] void fail_view(Tensor* t, ViewOrigin origin, bool indirect, const std::string& step = {}) {
  bool inference = origin == ViewOrigin::inference;
  std::string written = indirect ? "its base or another view of its base has been" : "is being";
  std::string text =
      !step.empty() ? "Output 0 of " + step
      : t->grad_fn ? "Output " + std::to_string(t->output_nr) + " of " + operation_name(node_name(t->grad_fn))
                   : "";
  bool recorded = !text.empty();
  if (inference || origin == ViewOrigin::no_grad || !recorded) {
    text = recorded ? text + " is a view of a view which was created in" : "A view was created in";
    text += inference ? " inference mode and " + written + " modified inplace in normal mode."
                      : " no_grad mode and " + written + " modified inplace with grad mode enabled.";
  } else {
    text += " is a view and " + written + " modified inplace.";
  }
  if (origin == ViewOrigin::multi_output) {
    text +=
        " This view is the output of a function that returns multiple views. Such functions do not allow the "
        "output views to be modified inplace. You should replace the inplace operation by an out-of-place "
        "one.";
  } else if (origin == ViewOrigin::custom) {
    text +=
        " This view was created inside a custom Function (or because an input was returned as-is) and the "
        "autograd logic to handle view+inplace would override the custom backward associated with the custom "
        "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning "
        "the "
        "output of the custom Function.";
  } else {
    text +=
        std::string(
            " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
            "code by moving both the view and the inplace either both inside the ") +
        (inference ? "inference_mode" : "no_grad") +
        " block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to "
        "be tracked).";
  }
  fail_at(PyExc_RuntimeError, text,
          {{"The memory was written", indirect ? t->storage->written : current_source()}}, "");
}

Primitive& as_strided() {
  static Primitive& op = primitive("as_strided");
  return op;
}

// The step that as_strided() is: layout and start are those of whatever it is applied to.
PyObject* strided_step(const Tensor* t) {
  return checked(Py_BuildValue("(INNL)", as_strided().number, int_tuple(t->sizes()), int_tuple(t->strides()),
                               (long long)t->offset))
      .release();
}

// x.as_strided(), also where x has been given memory since that does not reach so far: as a node it may.
TensorRef strided(Tensor* x, PyObject* sizes, PyObject* strides, PyObject* offset) {
  Shape size, stride;
  read_sizes(sizes, size, "as_strided", "size");
  read_sizes(strides, stride, "as_strided", "stride");
  auto bytes = uint64_t(bytes_reached(size, stride, PyLong_AsLongLong(offset), x->itemsize()));
  Ref<PyObject> layout(int_tuple(x->strides())), start = checked(PyLong_FromLongLong(x->offset));
  bool reaches = bytes <= x->storage->nbytes;
  TensorRef from = reaches ? share(x) : raw_alias(x);
  if (!reaches) {
    Storage* larger = new_storage(std::max<uint64_t>(bytes, x->storage->nbytes), x->device());
    decref(std::exchange(from->storage, larger));
    from->flags |= Tensor::REQUIRES_GRAD;
  }
  PyObject* args[] = {from->object(), sizes, strides, offset, layout.get(), start.get()};
  TensorRef made(as_tensor(call(as_strided(), args)));
  if (!reaches && made->grad_fn) {
    Py_CLEAR(made->grad_fn->edges[0].node);
    made->grad_fn->edges[0] = gradient_edge(x);
  }
  return made;
}

}  // namespace

TensorRef view_again(Tensor* view, Tensor* of) {
  TensorRef made = share(of);
  PyObject* steps = view->extra->steps;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); i++) {
    PyObject* step = PyTuple_GET_ITEM(steps, i);
    Primitive& op = *primitive_number(uint32_t(PyLong_AsUnsignedLong(PyTuple_GET_ITEM(step, 0))));
    PyObject** given = &PyTuple_GET_ITEM(step, 1);
    if (&op == &as_strided()) {
      made = strided(made.get(), given[0], given[1], given[2]);
      continue;
    }
    std::vector<PyObject*> args = {made->object()};
    args.insert(args.end(), given, given + PyTuple_GET_SIZE(step) - 1);
    made = TensorRef(as_tensor(call(op, args.data())));
  }
  return made;
}

namespace {

// What the steps make of the base as it is now; null if that is not the view any more, turned or not. Of a
// view that was given other memory it is what it was: torch repeats the steps without a look at the view.
TensorRef repeated(Tensor* view, Tensor* base) {
  TensorRef made = view_again(view, base);
  bool placed = view->extra->turned ||
                (made->offset == view->offset && std::ranges::equal(made->strides(), view->strides()));
  bool same = same_sizes(made.get(), view) && placed;
  bool moved = view->storage != base->storage;
  bool alike = made->dtype == view->dtype && (made->flags & Tensor::LAZY) == (view->flags & Tensor::LAZY);
  return alike && (same || moved) ? std::move(made) : TensorRef();
}

// The view gets the history of `made`, which is as that one is.
void adopt(Tensor* view, Tensor* made) {
  Ref<Node> before = share(view->grad_fn);
  leave_node(view);
  leave_node(made);
  std::swap(view->grad_fn, made->grad_fn);
  view->output_nr = made->output_nr;
  join_node(view);
  move_retained(view, before.get());
}

}  // namespace

void move_retained(Tensor* t, Node* from) {
  // Other hooks stay with the node that made the tensor then; new ones begin a dictionary of their own.
  if (from && from != t->grad_fn && t->extra) Py_CLEAR(t->extra->hooks);
  if (!(t->flags & Tensor::RETAINS_GRAD) || !from || from == t->grad_fn || !from->extra) return;
  PyObject* list = from->extra->retained;
  for (Py_ssize_t i = list ? PyList_GET_SIZE(list) : 0; i-- > 0;) {
    PyObject* weak = PyTuple_GET_ITEM(PyList_GET_ITEM(list, i), 1);
    if (alive(weak).get() != t->object()) continue;
    Ref<PyObject> kept = share(weak);
    if (PySequence_DelItem(list, i) < 0) throw PythonError{};
    if (!t->grad_fn) continue;
    NodeExtra* extra = extra_of(t->grad_fn);
    if (!extra->retained) extra->retained = checked(PyList_New(0)).release();
    Ref<PyObject> entry = checked(Py_BuildValue("(IO)", t->output_nr, kept.get()));
    if (PyList_Append(extra->retained, entry.get()) < 0) throw PythonError{};
  }
}

void refuse_stale_view(Tensor* t, const std::string& step) {
  if (is_view(t)) {
    if (t->extra->origin == ViewOrigin::ordinary || t->storage != t->extra->base->storage) return;
    if (!t->grad_fn && !t->extra->base->requires_grad()) return;
    fail_view(t, t->extra->origin, true, step);
  }
  if (t->flags & Tensor::SAVED) return;  // itself, and no view: one of unsafe_split's
  // An alias that was saved of a view knows its history only.
  for (const Node* node = t->grad_fn; node && node->kind == Node::operation; node = node->edges[0].node) {
    if (!(node->op->options & Primitive::VIEW)) return;
    if (node->op->list_output) fail_view(t, ViewOrigin::multi_output, true, step);
  }
}

uint32_t conversion_holds(const Extra* extra) {
  uint32_t conversions = 0;
  for (Py_ssize_t i = 0; extra->steps && i < PyTuple_GET_SIZE(extra->steps); i++) {
    PyObject* number = PyTuple_GET_ITEM(PyTuple_GET_ITEM(extra->steps, i), 0);
    const Primitive* op = primitive_number(uint32_t(PyLong_AsUnsignedLong(number)));
    if (op && op->options & Primitive::CONVERTS) conversions++;
  }
  return conversions ? 2 * conversions - 1 : 0;
}

void keep_steps(const Primitive& op, PyObject* const* args, Tensor* view) {
  Tensor* from = as_tensor(args[0]);
  PyObject* before = is_view(from) ? from->extra->steps : nullptr;
  // What is behind a wrapper may have no strides of its own: its views are made as they were, as in torch.
  bool keeps = replays_views || op.options & Primitive::CONVERTS || dispatches(from);
  if ((!keeps && !before) || !is_view(view)) return;
  if (op.number == as_strided().number) keeps = false;
  Py_ssize_t first = before ? PyTuple_GET_SIZE(before) : is_view(from);
  Ref<PyObject> steps = checked(PyTuple_New(first + 1));
  for (Py_ssize_t i = 0; i < first; i++) {
    PyObject* step = before ? Py_NewRef(PyTuple_GET_ITEM(before, i)) : strided_step(from);
    PyTuple_SET_ITEM(steps.get(), i, step);
  }
  Ref<PyObject> last;
  if (keeps) {
    last = checked(PyTuple_New(Py_ssize_t(op.args.size())));
    PyTuple_SET_ITEM(last.get(), 0, checked(PyLong_FromUnsignedLong(op.number)).release());
    for (size_t i = 1; i < op.args.size(); i++)
      PyTuple_SET_ITEM(last.get(), Py_ssize_t(i), Py_NewRef(args[i]));
  } else {
    last = Ref<PyObject>(strided_step(view));
  }
  PyTuple_SET_ITEM(steps.get(), first, last.release());
  view->extra->base->held_by -= conversion_holds(view->extra);
  Py_XSETREF(view->extra->steps, steps.release());
  view->extra->base->held_by += conversion_holds(view->extra);
}

namespace {
void renew_view(Tensor* t, Tensor* base);
}

// If it cannot be made anew, whoever asks next is told so too.
void refresh_view(Tensor* t, bool asked) {
  if (!is_view(t) || !counts_writes(t)) return;  // a tensor of inference mode is nobody's view
  Extra* extra = t->extra;
  Tensor* base = extra->base;
  if (extra->view_version == counter_of(t)->version) return;
  if (!t->grad_fn && !base->requires_grad()) return;
  if (extra->origin != ViewOrigin::ordinary && (asked || recording())) fail_view(t, extra->origin, true);
  if (extra->origin != ViewOrigin::ordinary) return;
  renew_view(t, base);
  extra->view_version = counter_of(t)->version;
}

namespace {

void renew_view(Tensor* t, Tensor* base) {
  Extra* extra = t->extra;
  // The base was cut off by detach_(): so is the view, by a node that leads nowhere.
  bool cut = !base->requires_grad();
  bool converts = (base->flags | t->flags) & Tensor::LAZY || base->dtype != t->dtype;
  if (cut && (converts || !is_differentiable(base->dtype))) return;
  GradMode on(true);
  KeptModes outside;
  modes.inference = false;  // whoever asks there gets the history, too
  ModesUnasked unasked;
  if (TensorRef made = cut || !extra->steps ? TensorRef() : repeated(t, base); made && made->grad_fn) {
    bool same = t->grad_fn && t->grad_fn->kind == Node::operation &&
                t->grad_fn->op->number == made->grad_fn->op->number;
    if (same) made->grad_fn->op = t->grad_fn->op;  // under the name it had
    return adopt(t, made.get());
  }
  // Other memory cannot be read as parts or pairs.
  if (t->storage != base->storage && converts) return;
  static Primitive& as_real = primitive("view_as_real");
  static Primitive& as_complex = primitive("view_as_complex");
  // The base as its memory holds it, its parts or pairs, and last what this view makes of them when read.
  TensorRef whole = cut ? new_alias(base) : flip_lazy(base, base->flags & Tensor::LAZY);
  if (cut) whole->flags |= Tensor::REQUIRES_GRAD;
  if (is_complex(base->dtype) && !is_complex(t->dtype)) whole = call_on(as_real, whole.get());
  if (!is_complex(base->dtype) && is_complex(t->dtype)) whole = call_on(as_complex, whole.get());
  whole = flip_lazy(whole.get(), t->flags & Tensor::LAZY);
  Ref<PyObject> sizes(int_tuple(t->sizes())), strides(int_tuple(t->strides()));
  Ref<PyObject> offset = checked(PyLong_FromLongLong(t->offset));
  TensorRef fresh = strided(whole.get(), sizes.get(), strides.get(), offset.get());
  if (cut) Py_CLEAR(fresh->grad_fn->edges[0].node);
  adopt(t, fresh.get());
}

void check_not_inference(const Tensor* t) {
  if (!modes.inference && !counts_writes(t)) {
    fail_at(PyExc_RuntimeError,
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to "
            "get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for "
            "more details.",
            {{"It was made in inference mode", t->storage->written}, {"It is written", current_source()}},
            "Write to a clone() of it, or make it under no_grad() instead of inference_mode().");
  }
}

}  // namespace

namespace {
[[noreturn]] void fail_leaf() {
  fail_at(PyExc_RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation.",
          {{"It is written", current_source()}},
          "Write to it inside `with torch.no_grad():`, or compute a new tensor instead of writing in place.");
}
}  // namespace

void check_inplace(Tensor* t) {
  if (!recording()) return check_not_inference(t);
  if (t->flags & Tensor::REQUIRES_GRAD && !t->grad_fn && !is_view(t)) fail_leaf();
  check_not_inference(t);
  if (!is_view(t)) return;
  if (t->extra->origin != ViewOrigin::ordinary) fail_view(t, t->extra->origin, false);
  Tensor* base = t->extra->base;
  if (!base->grad_fn && (base->requires_grad() || t->requires_grad())) {
    fail_at(PyExc_RuntimeError,
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            {{"The view is written", current_source()}},
            "Write inside `with torch.no_grad():`, or clone the leaf first and write into the clone.");
  }
  // To torch a view is a leaf until it is asked for the history that its base has gained.
  if (!t->grad_fn && base->requires_grad()) fail_leaf();
}

namespace {

// What its new history saved may be the tensor itself: Note [what is saved itself], primitive.cpp.
void tell_collector(Tensor* t) {
  if (!t->saved_by && !(t->flags & Tensor::HELD)) return;
  expect_loop(t->object());
}

}  // namespace

void rewrite_history(Tensor* t, Ref<Node> node) { rewrite_history(t, std::move(node), 0, 0); }

void rewrite_history(Tensor* t, Ref<Node> node, uint32_t at, uint32_t nr) {
  if (!is_view(t)) {
    leave_node(t);
    Ref<Node> before(std::exchange(t->grad_fn, node.release()));
    t->output_nr = nr;
    join_node(t);
    move_retained(t, before.get());
    t->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
    tell_collector(t);
    return;
  }
  Tensor* base = t->extra->base;
  // A view of another dtype is one of the parts of complex numbers, or of real numbers as complex ones.
  int convert = !is_complex(base->dtype) - !is_complex(t->dtype);
  if (base->dtype != t->dtype && !convert) {
    fail(PyExc_NotImplementedError,
         "in-place writes into a view whose bytes are read as another dtype are not differentiable");
  }
  // The base may have been given other memory since, which cannot be read so.
  static Primitive& as_real = primitive("view_as_real");
  static Primitive& as_complex = primitive("view_as_complex");
  TensorRef whole = share(base);
  if (convert) {
    Primitive& conversion = convert < 0 ? as_real : as_complex;
    TensorRef raw = raw_alias(base);
    PyObject* args[] = {raw->object()};
    whole = TensorRef(as_tensor(checked(conversion.forward(conversion, args, nullptr)).release()));
  }
  TensorRef place = share(t);
  if (t->extra->turned) {
    GradMode off(false);
    ModesUnasked unasked;
    if (TensorRef made = repeated(t, base)) place = std::move(made);
  }
  // The operation's edges, with the base's old history in the place of the view's own.
  Ref<Node> copy = new_node(Node::copy_slices, nullptr, std::max(node->edge_count, at + 1), 0);
  copy->edges[at] = gradient_edge(base);
  for (uint32_t i = 0; i < node->edge_count; i++) {
    if (i == at) continue;
    Edge edge = node->edges[i];
    if (edge.node) Py_INCREF(edge.node->object());
    copy->edges[i] = edge;
  }
  set_outputs(copy.get(), 1);
  set_output(copy.get(), 0, base);
  NodeExtra* extra = extra_of(copy.get());
  extra->geometry = Py_BuildValue("(NNNLIIiHH)", int_tuple(whole->strides()), int_tuple(place->sizes()),
                                  int_tuple(place->strides()), (long long)(place->offset - whole->offset), at,
                                  nr, convert, base->flags & Tensor::LAZY, t->flags & Tensor::LAZY);
  if (!extra->geometry) throw PythonError{};
  extra->inner = node.release();
  leave_node(base);
  Ref<Node> before(std::exchange(base->grad_fn, copy.release()));
  base->output_nr = 0;
  join_node(base);
  move_retained(base, before.get());
  base->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
  tell_collector(base);
  t->storage->written.operation = THROUGH_VIEW;
  t->extra->view_version = counter_of(t)->version - 1;  // stale by construction
  refresh_view(t);
}

namespace {

PyObject* py_set_view_replay(PyObject*, PyObject* on) {
  bool before = replays_views;
  replays_views = on == Py_True;
  return PyBool_FromLong(before);
}
PyObject* py_view_replay(PyObject*, PyObject*) { return PyBool_FromLong(replays_views); }

// take_history(tensor, result): the history of `result`, as if the operation that made it had written
// `tensor`.
PyObject* py_take_history(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *o, *result;
    if (!PyArg_ParseTuple(args, "OO", &o, &result)) return nullptr;
    if (!is_tensor(o) || !is_tensor(result)) fail(PyExc_TypeError, "take_history(): expected two tensors");
    Tensor *t = as_tensor(o), *made = as_tensor(result);
    if (!same_sizes(t, made) || t->dtype != made->dtype || !(t->device() == made->device()))
      fail(PyExc_ValueError, "take_history(): the tensors must be alike");
    if (made->grad_fn && made->grad_fn->edge_count) {
      check_inplace(t);
      rewrite_history(t, share(made->grad_fn), 0, made->output_nr);
    }
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {{"take_history", py_take_history, METH_VARARGS, nullptr},
                           {"_set_view_replay_enabled", py_set_view_replay, METH_O, nullptr},
                           {"_is_view_replay_enabled", py_view_replay, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
