// What rushlight/autograd calls: running the engine, modes, detach, hooks, and where a graph was cut.
#include <algorithm>

#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/errors.h"
#include "../graph/living.h"
#include "../graph/modes.h"
#include "../graph/shown.h"
#include "../tensor/unlocked.h"
#include "collector.h"
#include "direct_calls.h"
#include "explain.h"
#include "forward_mode.h"
#include "forwards.h"
#include "functions.h"
#include "graph_log.h"
#include "lazy_views.h"
#include "levels.h"
#include "tensor_type.h"

namespace rl {

namespace {

Tensor* tensor_argument(PyObject* o, const char* function) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "%s(): expected a Tensor, got %s", function, Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

// Owned reference. A gradient edge is a tuple (node, output number, ...).
Edge edge_of(PyObject* o, const char* function) {
  if (!PyTuple_Check(o)) return gradient_edge(tensor_argument(o, function));
  if (PyTuple_GET_SIZE(o) < 2 || !PyObject_TypeCheck(PyTuple_GET_ITEM(o, 0), NodeType)) {
    failf(PyExc_TypeError, "%s(): expected a Tensor or a GradientEdge", function);
  }
  auto* node = reinterpret_cast<Node*>(PyTuple_GET_ITEM(o, 0));
  refuse_facade(node, "a gradient edge");
  int64_t nr = read_int(PyTuple_GET_ITEM(o, 1));
  if (nr < 0 || nr >= int64_t(node->output_count)) {
    failf(PyExc_RuntimeError, "%s(): %s has no output %lld", function, node_name(node).c_str(),
          (long long)nr);
  }
  Py_INCREF(node->object());
  return {node, uint32_t(nr)};
}

// A tuple of the gradients, None where none arrived.
PyObject* captured(const std::vector<Capture>& captures) {
  Ref<PyObject> result = checked(PyTuple_New(Py_ssize_t(captures.size())));
  for (size_t i = 0; i < captures.size(); i++) {
    PyObject* grad = captures[i].result ? captures[i].result->object() : Py_None;
    PyTuple_SET_ITEM(result.get(), i, Py_NewRef(grad));
  }
  return result.release();
}

// run_backward(tensors, gradients, keep_graph, create_graph, inputs or None, accumulate, allow_unused)
// Instead of a tensor there may be a gradient edge, a tuple (node, output number, ...). Everything is checked
// by then (rushlight/autograd/__init__.py words the errors). Returns the captured gradients.
PyObject* py_run_backward(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 6) fail(PyExc_TypeError, "run_backward takes 6 arguments");
    PyObject *tensors = args[0], *gradients = args[1], *inputs = args[4];
    bool keep = args[2] == Py_True, create = args[3] == Py_True, accumulate = args[5] == Py_True;
    if (!PyTuple_Check(tensors) || !PyTuple_Check(gradients) ||
        PyTuple_GET_SIZE(tensors) != PyTuple_GET_SIZE(gradients)) {
      fail(PyExc_TypeError, "tensors and gradients must be tuples of the same length");
    }
    // Edges are owned until the run is over.
    struct Held {
      std::vector<Edge> edges;
      ~Held() {
        for (Edge& e : edges) Py_XDECREF(reinterpret_cast<PyObject*>(e.node));
      }
    } held;
    std::vector<Root> roots;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); i++) {
      Edge edge = edge_of(PyTuple_GET_ITEM(tensors, i), "backward");
      held.edges.push_back(edge);
      PyObject* grad = PyTuple_GET_ITEM(gradients, i);
      if (!edge.node) {  // a view made without recording requires grad with its base and leads nowhere
        failf(PyExc_RuntimeError, "element %zd of tensors does not require grad and does not have a grad_fn",
              i);
      }
      if (grad == Py_None) continue;
      roots.push_back({edge, tensor_argument(grad, "backward")});
    }
    std::vector<Capture> captures;
    bool capturing = inputs != Py_None;
    if (capturing) {
      if (!PyTuple_Check(inputs)) fail(PyExc_TypeError, "inputs must be a tuple");
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
        PyObject* input = PyTuple_GET_ITEM(inputs, i);
        Edge edge = edge_of(input, "grad");
        held.edges.push_back(edge);
        captures.push_back({edge, {}, is_tensor(input) ? as_tensor(input) : nullptr});
      }
    }
    LoggedRun logged(roots);
    run_backward(roots, capturing ? &captures : nullptr, keep, create, accumulate);
    if (!capturing) Py_RETURN_NONE;
    return captured(captures);
  });
}

// Whether the gradient of such a tensor can be asked for with nothing else to check.
bool is_plain_root(PyObject* o) {
  if (!is_plain_tensor(o)) return false;
  Tensor* t = as_tensor(o);
  return is_floating(t->dtype) && !t->is_meta() && !asks_dispatch(t);
}

TensorRef one_like(Tensor* t) {
  TensorRef one = empty_like(t, t->dtype);
  Scalar number;
  number.kind = Scalar::floating;
  number.d = 1;
  number.store(t->dtype, one->data());
  return one;
}

// Backward from a number, the gradient of itself being 1. False, and nothing is done, if it is not such a
// plain case; then the general way is taken, which words what is wrong.
bool backward_loss(PyObject* loss, bool keep_graph) {
  if (!is_plain_root(loss) || as_tensor(loss)->numel != 1 || modes.inference || profiling()) return false;
  Edge edge = gradient_edge(as_tensor(loss));
  if (!edge.node) return false;
  Ref<Node> held(edge.node);
  TensorRef one = one_like(as_tensor(loss));
  std::vector<Root> roots{{edge, one.get()}};
  LoggedRun logged(roots);
  run_backward(roots, nullptr, keep_graph, false, true);
  return true;
}

// backward_loss(tensor, keep_graph): whether it was such a plain case.
PyObject* py_backward_loss(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "backward_loss(tensor, keep_graph) expected");
    return PyBool_FromLong(backward_loss(args[0], args[1] == Py_True));
  });
}

// loss.backward() (Note [direct calls]).
PyObject* backward_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  bool plain = positional == 1 && no_keywords(kwnames) && backward_loss(args[0], false);
  return plain ? Py_NewRef(Py_None) : nullptr;
}
const NativeCallInit direct_backward("backward", backward_call);

// A tensor, or those of a tuple or list, where None may stand for one if `gaps`; false if there is anything
// else.
bool tensors_of(PyObject* o, std::vector<TensorRef>& found, bool gaps = false) {
  if (is_plain_tensor(o)) {
    found.push_back(Ref(as_tensor(Py_NewRef(o))));
    return true;
  }
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    PyObject* each = PySequence_Fast_GET_ITEM(o, i);
    bool gap = gaps && each == Py_None;
    if (!gap && !is_plain_tensor(each)) return false;
    found.push_back(gap ? TensorRef() : Ref(as_tensor(Py_NewRef(each))));
  }
  return true;
}

// plain_gradients(outputs, inputs, gradients or None, keep_graph, create_graph): a tuple, as `grad` returns
// it, or None, and nothing is done, if this is no plain case: as with backward_loss.
PyObject* py_plain_gradients(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 5) fail(PyExc_TypeError, "plain_gradients takes 5 arguments");
    std::vector<TensorRef> outputs, inputs, gradients;
    if (modes.function_mode || modes.inference || profiling() || !tensors_of(args[0], outputs) ||
        !tensors_of(args[1], inputs) || outputs.empty() || inputs.empty())
      Py_RETURN_NONE;
    if (args[2] == Py_None) {
      gradients.resize(outputs.size());
    } else if (!tensors_of(args[2], gradients, true) || gradients.size() != outputs.size()) {
      Py_RETURN_NONE;
    }
    for (size_t i = 0; i < outputs.size(); i++) {
      Tensor *root = outputs[i].get(), *given = gradients[i].get();
      if (!is_plain_root(root->object()) || (!given && root->numel != 1)) Py_RETURN_NONE;
      // A leaf says itself which dtype its gradient has.
      if (given && (!root->grad_fn || !is_plain_root(given->object()) || given->dtype != root->dtype ||
                    !same_sizes(given, root)))
        Py_RETURN_NONE;
    }
    for (TensorRef& input : inputs) {
      if (!input->requires_grad() || asks_dispatch(input.get())) Py_RETURN_NONE;
    }
    std::vector<Ref<Node>> held;
    std::vector<Root> roots;
    std::vector<Capture> captures;
    for (TensorRef& output : outputs) {
      Edge edge = gradient_edge(output.get());
      if (!edge.node) Py_RETURN_NONE;
      held.emplace_back(edge.node);
      TensorRef& gradient = gradients[roots.size()];
      if (!gradient) gradient = one_like(output.get());
      roots.push_back({edge, gradient.get()});
    }
    for (TensorRef& input : inputs) {
      Edge edge = gradient_edge(input.get());
      held.emplace_back(edge.node);
      captures.push_back({edge, {}, input.get()});
    }
    LoggedRun logged(roots);
    run_backward(roots, &captures, args[3] == Py_True, args[4] == Py_True, false);
    return captured(captures);
  });
}

PyObject* py_detach(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(o, "detach");
    TensorRef alias = is_leveled(t)      ? detached_at_level(t)
                      : asks_dispatch(t) ? dispatched_detach(t)
                                         : new_alias(t);
    Extra* extra = extra_of(alias.get());
    if (t->flags & Tensor::INFERENCE && !modes.inference) count_apart(alias.get());
    if (t->requires_grad()) {
      alias->flags |= Tensor::CUT_DETACH;
      extra->cut = keep(current_source());
    } else {  // nothing to cut: it tells of the cut further up
      alias->flags |= t->flags & (Tensor::CUT_DETACH | Tensor::CUT_NO_GRAD | Tensor::ORIGIN_INHERITED);
      if (t->extra && t->extra->cut.code) extra->cut = keep(t->extra->cut);
    }
    return alias.release_object();
  });
}

const NativeCallInit detach_call{"detach",
                                 [](PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
                                   bool plain =
                                       count == 1 && no_keywords(kwnames) && is_plain_tensor(args[0]);
                                   return plain ? py_detach(nullptr, args[0]) : nullptr;
                                 },
                                 CASTS_NOTHING};

PyObject* py_requires_grad(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "requires_grad_(tensor, on) expected");
    set_requires_grad(tensor_argument(args[0], "requires_grad_"), is_true(args[1]));
    return Py_NewRef(args[0]);
  });
}

PyObject* py_retain_grad(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(o, "retain_grad");
    bool of_base = t->base() && t->extra->differentiable_view && t->base()->requires_grad();
    if (!t->requires_grad() && !(of_base && is_differentiable(t->dtype))) {
      fail_with_tensor(PyExc_RuntimeError, "can't retain_grad on Tensor that has requires_grad=False", t,
                       "Nothing it was computed from requires grad, or it was computed without recording.");
    }
    // A view without a history is a leaf to torch until it is asked for that of its base.
    if (t->base() && t->grad_fn) refresh_view(t, true);
    if (!t->grad_fn || t->flags & Tensor::RETAINS_GRAD) Py_RETURN_NONE;
    NodeExtra* extra = extra_of(t->grad_fn);
    if (!extra->retained) extra->retained = checked(PyList_New(0)).release();
    Ref<PyObject> weak = checked(PyWeakref_NewRef(o, nullptr));
    Ref<PyObject> entry = checked(Py_BuildValue("(IO)", t->output_nr, weak.get()));
    if (PyList_Append(extra->retained, entry.get()) < 0) throw PythonError{};
    t->flags |= Tensor::RETAINS_GRAD;
    Py_RETURN_NONE;
  });
}

// leaf_hooks(tensor, post): the dict of a leaf's hooks, made at first use.
PyObject* py_leaf_hooks(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "leaf_hooks(tensor, post) expected");
    Tensor* t = tensor_argument(args[0], "register_hook");
    Extra* extra = extra_of(t);
    PyObject*& slot = args[1] == Py_True ? extra->post_hooks : extra->hooks;
    if (!slot) slot = new_hook_dict();
    expect_loops();
    return Py_NewRef(slot);
  });
}

// Why a tensor has no history: (reason, place or None), reason one of "detached", "no_grad", "created",
// "inherited", "not_differentiable".
PyObject* py_origin(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(o, "origin");
    Source cut = t->extra ? t->extra->cut : Source{nullptr, 0};
    Source source = cut.code ? cut : t->storage->written;
    constexpr uint16_t both = Tensor::CUT_DETACH | Tensor::CUT_NO_GRAD;
    const char* reason = (t->flags & both) == both             ? "not_differentiable"
                         : t->flags & Tensor::CUT_DETACH       ? "detached"
                         : t->flags & Tensor::CUT_NO_GRAD      ? "no_grad"
                         : t->flags & Tensor::ORIGIN_INHERITED ? "inherited"
                                                               : "created";
    Ref<PyObject> where(source_as_tuple(source));
    return Py_BuildValue("(sO)", reason, where.get());
  });
}

// stamp(tensor): remembers the user's line as the one that made the data; returns the tensor.
PyObject* py_stamp(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(o, "stamp");
    if (!t->storage->written.code) t->storage->written = keep(current_source());
    return Py_NewRef(o);
  });
}

PyObject* py_gradient_edge(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Edge edge = gradient_edge(tensor_argument(o, "get_gradient_edge"));
    if (!edge.node) fail(PyExc_AssertionError, "Expected gradient function to be set");
    expose(edge.node);
    return Py_BuildValue("(NI)", edge.node, edge.nr);
  });
}

PyObject* py_is_view(PyObject*, PyObject* o) {
  Tensor* t = as_tensor(o);
  return PyBool_FromLong(is_tensor(o) && t->base() && t->extra->differentiable_view &&
                         !(t->flags & Tensor::INFERENCE));
}

template <bool Modes::*field>
PyObject* get_mode(PyObject*, PyObject*) {
  return PyBool_FromLong(modes.*field);
}
PyObject* py_recording(PyObject*, PyObject*) { return PyBool_FromLong(recording()); }
template <bool Modes::*field>
PyObject* set_mode(PyObject*, PyObject* on) {
  bool before = modes.*field;
  int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  modes.*field = truth;
  return PyBool_FromLong(before);
}

template <bool& flag>
PyObject* get_flag(PyObject*, PyObject*) {
  return PyBool_FromLong(flag);
}
template <bool& flag>
PyObject* set_flag(PyObject*, PyObject* on) {
  int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  return PyBool_FromLong(std::exchange(flag, truth != 0));
}

// Makes a fresh view a tensor of its own that shares memory only: what unsafe_split returns.
PyObject* py_forget_base(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(o, "forget_base");
    if (t->extra) {
      if (t->extra->base) t->extra->base->held_by -= conversion_holds(t->extra);
      set_held(t->extra->base, nullptr);
      t->extra->origin = ViewOrigin::ordinary;
      t->extra->differentiable_view = false;
      if (!(t->flags & Tensor::INFERENCE)) count_apart(t);
      if (t->is_lazy()) set_lazy(t, t->flags & Tensor::LAZY);  // it needs one
    }
    return Py_NewRef(o);
  });
}
// The writes into t are counted apart from those into its base.
PyObject* py_count_apart(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    count_apart(tensor_argument(o, "count_apart"));
    return Py_NewRef(o);
  });
}
// The same as a view that shares t's history: what Tensor.as_subclass does.
PyObject* py_view_as_subclass(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "as_subclass(tensor, cls) expected");
    if (!PyType_Check(args[1]))
      failf(PyExc_TypeError, "cls must be a type (got %s)", Py_TYPE(args[1])->tp_name);
    Tensor* t = tensor_argument(args[0], "as_subclass");
    if (is_any_sparse(t))  // of which there is no other view: it says so
      checked(PyObject_CallMethod(args[0], is_sparse(t) ? "untyped_storage" : "stride", nullptr));
    static Primitive& alias = primitive("alias");
    TensorRef view = call_on(alias, t);
    // What stands for others inside a transform stays that; torch gives plain tensors back, too.
    auto* type = reinterpret_cast<PyTypeObject*>(args[1]);
    if (is_leveled(t) && PyType_IsSubtype(type, TensorType)) return view.release_object();
    return moved_to_class(view.get(), reinterpret_cast<PyTypeObject*>(args[1])).release_object();
  });
}
PyObject* py_as_subclass(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyType_Check(args[1])) fail(PyExc_TypeError, "as_subclass(tensor, cls) expected");
    Tensor* t = tensor_argument(args[0], "as_subclass");
    TensorRef result = as_subclass(t, reinterpret_cast<PyTypeObject*>(args[1]));
    Edge edge = modes.grad && t->grad_fn ? gradient_edge(t) : Edge{nullptr, 0};
    if (edge.node) {
      result->grad_fn = edge.node;
      result->output_nr = edge.nr;
    }
    return result.release_object();
  });
}

// conj(x): the conjugate of a complex tensor or number, anything else as it is. Every product rule calls it.
PyObject* py_conj(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (is_tensor(o) && is_complex(as_tensor(o)->dtype)) {
      static Primitive& conj = primitive("conj");
      return call(conj, &o);
    }
    if (PyComplex_Check(o))
      return PyComplex_FromDoubles(PyComplex_RealAsDouble(o), -PyComplex_ImagAsDouble(o));
    return Py_NewRef(o);
  });
}

// Counts a write made by Python code that went around the primitives (random fills, copies through NumPy).
PyObject* py_note_write(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    note_write(tensor_argument(o, "note_write"));
    return Py_NewRef(o);
  });
}

// check_inplace(tensor): throws torch's errors for writing in place into leaves that require grad.
// check_inplace(written, ...): the others are what is read for it, and may require grad.
PyObject* py_check_inplace(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (!n) fail(PyExc_TypeError, "check_inplace: a tensor expected");
    Tensor* t = tensor_argument(args[0], "in-place operation");
    bool recorded = t->requires_grad() || (t->base() && t->base()->requires_grad());
    for (Py_ssize_t i = 1; i < n; i++) recorded |= is_tensor(args[i]) && as_tensor(args[i])->requires_grad();
    if (recorded || t->flags & Tensor::INFERENCE) check_inplace(t);
    Py_RETURN_NONE;
  });
}

// before_write(tensor): what it holds now with the history that it has now, for a composed operation that
// writes over it: what that saves of its input must not be found overwritten. The tensor itself where nothing
// is recorded.
PyObject* py_before_write(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(o, "before_write");
    if (!recording() || !is_plain_tensor(o)) return Py_NewRef(o);
    if (t->base()) refresh_view(t);
    if (!t->grad_fn) return Py_NewRef(o);
    TensorRef kept = clone(t);
    if (carrying()) share_tangent(t, kept.get(), true);
    Py_INCREF(t->grad_fn->object());
    kept->grad_fn = t->grad_fn;
    kept->output_nr = t->output_nr;
    note_before_write(t, kept.get());
    return kept.release_object();
  });
}

// The result that a node keeps is by now that of t, which was written with it.
void save_written(Node* node, uint32_t nr, Tensor* t, const Tensor* result) {
  if (node->kind != Node::operation || nr >= 16 || !(node->want_outs >> nr & 1)) return;
  int at = node->saved_count - bit_count(node->want_outs) + bit_count(node->want_outs & ((1 << nr) - 1));
  Saved& saved = node->saved[at];
  if (!saved.object || !is_tensor(saved.object) || as_tensor(saved.object)->storage != result->storage)
    return;
  Saved own = save_alias(t, false);
  as_tensor(own.object)->output_nr = nr;
  std::swap(saved, own);
  release(own);
}

// become(tensor, result): the general in-place form. `result` was computed out of place from `tensor`; its
// values are copied into `tensor`, which takes over its history.
PyObject* py_become(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "become(tensor, result) expected");
    Tensor *t = tensor_argument(args[0], "become"), *result = tensor_argument(args[1], "become");
    static Primitive& copy = primitive("copy");
    if (!same_sizes(t, result)) {
      fail(PyExc_RuntimeError, "output with shape " + sizes_text(t->sizes()) +
                                   " doesn't match the broadcast shape " + sizes_text(result->sizes()));
    }
    if (!can_cast(result->dtype, t->dtype)) {
      failf(PyExc_RuntimeError, "result type %s can't be cast to the desired output type %s",
            dtype_class_name(result->dtype), dtype_class_name(t->dtype));
    }
    if (t == result) return Py_NewRef(args[0]);
    auto is_dual = [](const Tensor* x) { return x->extra && x->extra->tangent; };
    bool plain = result->grad_fn && result->dtype == t->dtype && recording() &&
                 !(carrying() && (is_dual(t) || is_dual(result)));
    // A view's base is told of the operation, if that takes its gradient to the view and nowhere else.
    int64_t at = -1;
    if (plain && t->base() && t->extra->differentiable_view) {
      refresh_view(t);
      Node* node = result->grad_fn;
      for (uint32_t i = 0; i < node->edge_count && t->grad_fn; i++) {
        if (node->edges[i].node == t->grad_fn && node->edges[i].nr == t->output_nr) at = i;
      }
      plain = at >= 0;
    }
    if (!plain) return call_in_place(copy, args);
    // The operation's own node becomes t's history, so that grad_fn names the operation and not a copy.
    check_inplace(t);
    Ref<Node> node = share(result->grad_fn);  // who is told of the write may change the result
    uint32_t nr = result->output_nr;
    announce_write(t);
    PyObject* list[] = {args[0], args[1]};
    Ref<PyObject> done(forward_resolved(copy, list, t));
    if (!done) throw PythonError{};
    note_write(t);
    if (at >= 0) {
      Ref<Node> inner = share(node.get());
      rewrite_history(t, std::move(node), uint32_t(at), nr);
      save_written(inner.get(), nr, t, result);
      return Py_NewRef(args[0]);
    }
    leave_node(t);
    Ref<Node> before(std::exchange(t->grad_fn, node.release()));
    t->output_nr = nr;
    join_node(t);
    move_retained(t, before.get());
    stamp_write(t);
    save_written(t->grad_fn, nr, t, result);
    return Py_NewRef(args[0]);
  });
}

}  // namespace

void LateResults::show(Tensor* written) {
  end();
  for (const LateResult& one : late_) {
    auto kept = [&] { return one.at < one.node->saved_count ? one.node->saved[one.at].object : nullptr; };
    if (one.node->released || !kept() || !is_tensor(kept())) continue;
    bool own = written && as_tensor(kept())->storage == written->storage;
    Saved shown = save_tensor(own ? written : one.out.get(), false, one.node.get());
    if (!kept()) {  // a hook ran the backward that frees it
      release(shown);
      continue;
    }
    Saved& slot = one.node->saved[one.at];
    if (is_tensor(shown.object)) as_tensor(shown.object)->output_nr = one.nr;
    std::swap(slot, shown);
    release(shown);
  }
}

namespace {

// shown_after(compute, then): compute(), of whose results hooks are shown what nodes keep once then(result)
// has run; returns the result.
PyObject* py_shown_after(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "shown_after(compute, then) expected");
    LateResults late;
    Ref<PyObject> result = checked(PyObject_CallNoArgs(args[0]));
    checked(PyObject_CallOneArg(args[1], result.get()));
    late.show();
    return result.release();
  });
}

// overwrite(tensor, function, args, kwargs): the in-place form of any function, of which the tensor is the
// first argument: what it returns, or the tensor where that is what it was given.
PyObject* py_overwrite(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4 || !PyTuple_Check(args[2]) || !PyDict_Check(args[3]))
      fail(PyExc_TypeError, "overwrite(tensor, function, args, kwargs) expected");
    checked(py_check_inplace(nullptr, args, 1));
    Ref<PyObject> before = checked(py_before_write(nullptr, args[0]));
    Py_ssize_t count = PyTuple_GET_SIZE(args[2]);
    // A tensor without history is read by the derivatives of the other arguments.
    bool read = false;
    for (Py_ssize_t i = 0; i < count; i++) {
      PyObject* other = PyTuple_GET_ITEM(args[2], i);
      read |= is_tensor(other) && as_tensor(other)->requires_grad();
    }
    if (read && recording() && before.get() == args[0] && is_plain_tensor(args[0])) {
      TensorRef copy = clone(as_tensor(args[0]));
      note_before_write(as_tensor(args[0]), copy.get());
      before = Ref<PyObject>(copy.release_object());
    }
    Ref<PyObject> given = checked(PyTuple_New(count + 1));
    PyTuple_SET_ITEM(given.get(), 0, Py_NewRef(before.get()));
    for (Py_ssize_t i = 0; i < count; i++)
      PyTuple_SET_ITEM(given.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args[2], i)));
    LateResults late;
    Ref<PyObject> result = checked(PyObject_Call(args[1], given.get(), args[3]));
    late.end();
    PyObject* pair[] = {args[0], result.get()};
    Ref<PyObject> written =
        result.get() == before.get() ? share(args[0]) : checked(py_become(nullptr, pair, 2));
    late.show(as_tensor(args[0]));
    return written.release();
  });
}

// set_version(tensor, number)
PyObject* py_set_version(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    unsigned version;
    if (!PyArg_ParseTuple(args, "OI", &o, &version)) return nullptr;
    counter_of(tensor_argument(o, "set_version"))->version = version;
    Py_RETURN_NONE;
  });
}

// silent_writes(tensor[, number]): how often its memory was written through .data. Who writes back what was
// there may set it back.
PyObject* py_silent_writes(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *o, *number = nullptr;
    if (!PyArg_ParseTuple(args, "O|O!", &o, &PyLong_Type, &number)) return nullptr;
    Tensor* t = tensor_argument(o, "silent_writes");
    unsigned long before = t->storage ? t->storage->silent_version : 0;
    if (number) {
      unsigned long wanted = PyLong_AsUnsignedLong(number);
      if (PyErr_Occurred()) return nullptr;
      if (t->storage) t->storage->silent_version = uint32_t(wanted);
    }
    return PyLong_FromUnsignedLong(before);
  });
}

// Whether a graph waits for the gradient of this leaf.
bool is_awaited(const Tensor* t) {
  return t->extra && t->extra->accumulator && Py_REFCNT(t->extra->accumulator->object()) > 0;
}

// swap(a, b): the two Python objects exchange everything but their identity and what refers to them weakly.
PyObject* py_swap(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *x, *y;
    if (!PyArg_ParseTuple(args, "OO", &x, &y)) return nullptr;
    wait_for_kernels();
    Tensor *a = tensor_argument(x, "swap_tensors"), *b = tensor_argument(y, "swap_tensors");
    if (a == b) Py_RETURN_NONE;
    if (a->weakrefs || b->weakrefs) {
      failf(PyExc_RuntimeError, "Cannot swap %s because it has weakref associated with it",
            a->weakrefs ? "t1" : "t2");
    }
    if (Py_TYPE(a)->tp_basicsize != Py_TYPE(b)->tp_basicsize) {
      fail(PyExc_RuntimeError, "Cannot swap t1 and t2 if they have different slots");
    }
    // What holds one of them would find the other's values, or itself as its own base or gradient.
    auto has_tangent = [](const Tensor* t, const Tensor* tangent) {
      return t->extra && t->extra->tangent == tangent;
    };
    for (const Tensor* t : {a, b}) {
      if (t->saved_by || t->held_by || has_tangent(t == a ? b : a, t))
        fail(PyExc_RuntimeError, "swap: a tensor that something else holds cannot be exchanged");
    }
    for (Tensor* t : {a, b}) {
      if (t->extra) forget_accumulator(t->extra);
      leave_node(t);
    }
    PyTypeObject* type = Py_TYPE(a);
    Py_SET_TYPE(a, Py_TYPE(b));
    Py_SET_TYPE(b, type);
    // Everything after the object header; sizes in `room` are pointed to from inside.
    const size_t start = sizeof(PyObject), size = size_t(type->tp_basicsize) - start;
    char *pa = reinterpret_cast<char*>(a) + start, *pb = reinterpret_cast<char*>(b) + start;
    std::swap_ranges(pa, pa + size, pb);
    if (a->geometry == b->room) a->geometry = a->room;
    if (b->geometry == a->room) b->geometry = b->room;
    join_node(a);
    join_node(b);
    expect_loop(a->object());  // whoever held one of them holds the other's history now
    expect_loop(b->object());
    Py_RETURN_NONE;
  });
}

// use_count(t): how many hold it, counting all of Python as one.
PyObject* py_use_count(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Tensor* t = tensor_argument(o, "_use_count");
    return PyLong_FromSize_t(size_t(1) + t->saved_by + t->held_by + is_awaited(t));
  });
}

PyObject* py_current_run(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(current_run()); }

PyObject* py_all_runs_accumulate(PyObject*, PyObject*) { return PyBool_FromLong(all_runs_accumulate()); }

// will_run(node, output number)
PyObject* py_will_run(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* node;
    int nr;
    if (!PyArg_ParseTuple(args, "O!i", NodeType, &node, &nr)) return nullptr;
    refuse_facade(reinterpret_cast<Node*>(node), "whether it runs");
    return PyBool_FromLong(will_run(reinterpret_cast<Node*>(node)));
  });
}

PyObject* py_call_when_done(PyObject*, PyObject* callback) {
  return guarded([&]() -> PyObject* {
    call_when_done(callback);
    Py_RETURN_NONE;
  });
}

PyObject* py_put_back_when_done(PyObject*, PyObject* callback) {
  return guarded([&]() -> PyObject* {
    put_back_when_done(callback);
    Py_RETURN_NONE;
  });
}

// recorded(up to seven values): which of them a node recorded now would lead to, as bits, and 1 << 7 with
// them while hooks on saved tensors are active. What is composed otherwise for a gradient asks it on every
// call.
PyObject* py_recorded(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    long bits = 0;
    for (Py_ssize_t i = 0; recording() && i < std::min<Py_ssize_t>(count, 7); i++)
      if (is_tensor(args[i]) && shows_requires_grad(as_tensor(args[i]))) bits |= 1 << i;
    return PyLong_FromLong(bits && saved_hooks_active() ? bits | 1 << 7 : bits);
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {
    {"run_backward", FAST(py_run_backward), nullptr},
    {"backward_loss", FAST(py_backward_loss), nullptr},
    {"plain_gradients", FAST(py_plain_gradients), nullptr},
    {"set_version", py_set_version, METH_VARARGS, nullptr},
    {"silent_writes", py_silent_writes, METH_VARARGS, nullptr},
    {"swap", py_swap, METH_VARARGS, nullptr},
    {"use_count", py_use_count, METH_O, nullptr},
    {"current_run", py_current_run, METH_NOARGS, nullptr},
    {"all_runs_accumulate", py_all_runs_accumulate, METH_NOARGS, nullptr},
    {"will_run", py_will_run, METH_VARARGS, nullptr},
    {"call_when_done", py_call_when_done, METH_O, nullptr},
    {"put_back_when_done", py_put_back_when_done, METH_O, nullptr},
    {"detach", py_detach, METH_O, nullptr},
    {"requires_grad_", FAST(py_requires_grad), nullptr},
    {"retain_grad", py_retain_grad, METH_O, nullptr},
    {"leaf_hooks", FAST(py_leaf_hooks), nullptr},
    {"origin", py_origin, METH_O, nullptr},
    {"stamp", py_stamp, METH_O, nullptr},
    {"gradient_edge", py_gradient_edge, METH_O, nullptr},
    {"is_view", py_is_view, METH_O, nullptr},
    {"as_subclass", FAST(py_as_subclass), nullptr},
    {"forget_base", py_forget_base, METH_O, nullptr},
    {"count_apart", py_count_apart, METH_O, nullptr},
    {"view_as_subclass", FAST(py_view_as_subclass), nullptr},
    {"conj", py_conj, METH_O, nullptr},
    {"note_write", py_note_write, METH_O, nullptr},
    {"check_inplace", FAST(py_check_inplace), nullptr},
    {"before_write", py_before_write, METH_O, nullptr},
    {"become", FAST(py_become), nullptr},
    {"overwrite", FAST(py_overwrite), nullptr},
    {"shown_after", FAST(py_shown_after), nullptr},
    {"recorded", FAST(py_recorded), nullptr},
    {"is_grad_enabled", py_recording, METH_NOARGS, nullptr},
    {"is_inference_mode_enabled", get_mode<&Modes::inference>, METH_NOARGS, nullptr},
    {"set_inference_mode", set_mode<&Modes::inference>, METH_O, nullptr},
    {"is_anomaly_enabled", get_flag<anomaly>, METH_NOARGS, nullptr},
    {"set_anomaly_enabled", set_flag<anomaly>, METH_O, nullptr},
    {"is_anomaly_check_nan_enabled", get_flag<anomaly_check_nan>, METH_NOARGS, nullptr},
    {"set_anomaly_check_nan", set_flag<anomaly_check_nan>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
