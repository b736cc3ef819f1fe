#include "primitive.h"

#include <algorithm>

#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/errors.h"
#include "../graph/living.h"
#include "../graph/modes.h"
#include "../graph/shown.h"
#include "../tensor/twins.h"
#include "closed_arguments.h"
#include "devices.h"
#include "elementwise_ops.h"
#include "explain.h"
#include "forward_mode.h"
#include "forwards.h"
#include "lazy_views.h"
#include "levels.h"
#include "rare_ops.h"
#include "tensor_type.h"

namespace rl {

thread_local const Primitive* unhooked = nullptr;
thread_local std::vector<LateResult>* late_results = nullptr;

namespace {

// ---- recording
// -------------------------------------------------------------------------------------------------

// Bit per input that requires a gradient; `flags` are those of any input. Throws if an input is neither
// tensor, number nor None.
uint16_t inputs_needing_grad(const Primitive& op, PyObject* const* args, uint16_t& flags) {
  uint16_t needs = 0;
  for (int i = 0; i < op.input_count; i++) {
    PyObject* o = args[i];
    if (op.list_inputs >> i & 1) {
      if (!PyTuple_Check(o)) {
        failf(PyExc_TypeError, "%s(): argument '%s' must be tuple of Tensors, not %s", op.name.c_str(),
              op.args[i].c_str(), Py_TYPE(o)->tp_name);
      }
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(o); k++) {
        PyObject* element = PyTuple_GET_ITEM(o, k);
        if (!is_tensor(element) && element != Py_None) {
          failf(PyExc_TypeError, "expected Tensor as element %zd in argument %d, but got %s", k, i,
                Py_TYPE(element)->tp_name);
        }
        if (!is_tensor(element)) continue;
        flags |= as_tensor(element)->flags;
        if (shows_requires_grad(as_tensor(element))) needs |= uint16_t(1 << i);
      }
    } else if (is_plain_tensor(o) || is_tensor(o)) {
      flags |= as_tensor(o)->flags;
      if (shows_requires_grad(as_tensor(o))) needs |= uint16_t(1 << i);
    } else if (o != Py_None && !is_number(o)) {
      failf(PyExc_TypeError, "%s(): argument '%s' must be Tensor, not %s", op.name.c_str(),
            op.args[i].c_str(), Py_TYPE(o)->tp_name);
    }
  }
  return needs;
}

// A view whose base gained a history after the view was made requires grad, but its own fields do not say so
// yet.
void refresh_inputs(const Primitive& op, PyObject* const* args) {
  for (int i = 0; i < op.input_count; i++) {
    if (op.list_inputs >> i & 1) {
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[i]); k++) {
        PyObject* element = PyTuple_GET_ITEM(args[i], k);
        if (is_tensor(element) && as_tensor(element)->base()) refresh_view(as_tensor(element));
      }
    } else if (is_tensor(args[i]) && as_tensor(args[i])->base()) {
      refresh_view(as_tensor(args[i]));
    }
  }
}

}  // namespace

void check_savable(const Tensor* t) {
  if (t->flags & Tensor::INFERENCE) {
    fail_at(
        PyExc_RuntimeError,
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference "
        "mode in computation tracked by autograd. To work around this, you can make a clone to get a normal "
        "tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.",
        {{"It was made in inference mode", t->storage->written}, {"It is used", current_source()}}, "");
  }
}

// Note [what is saved itself]
// An input is saved itself, as torch does: its attributes and weak references live as long as the graph, and
// what is saved is whatever memory it was given meanwhile (`x.data = ...`). A leaf is held by its graph
// anyway; anything else closes a loop if it is written in place by what was computed from it, and then the
// collector is told (rewrite_history). An alias is saved of a result, which its own node would keep alive for
// ever.
Saved save_tensor(Tensor* t, bool keep_history, Node* by) {
  check_savable(t);
  if (saved_hooks_active()) {
    return {pack_with_current_hooks(t, keep_history, by).release(), 0, 0};
  }
  // Indices have no history by which they could hold the node, and an alias would not be of their class.
  if (!keep_history)
    return dispatches(t) && !is_differentiable(t->dtype) ? save_itself(t) : save_alias(t, false);
  // A view has a new history when its base is written, also one that was made where nothing was recorded.
  if (t->base()) t->base()->flags |= Tensor::HELD;
  return save_itself(t);
}

Saved save_alias(Tensor* t, bool keep_history) {
  bool asked = !keep_history && asks_dispatch(t) && is_differentiable(t->dtype);
  TensorRef alias = asked ? dispatched_detach(t) : new_alias(t);
  if (carrying()) share_tangent(t, alias.get());
  if (keep_history) {
    alias->flags |= t->flags & Tensor::REQUIRES_GRAD;
    alias->output_nr = t->output_nr;
    alias->grad_fn = t->grad_fn;
    if (t->grad_fn) Py_INCREF(t->grad_fn->object());
  }
  alias->saved_by++;
  return {alias.release_object(), counter_of(t)->version, t->storage->silent_version};
}

void hold_leaf(Tensor* alias, Tensor* t) {
  if (!(t->flags & Tensor::REQUIRES_GRAD) || t->grad_fn || t->base()) return;
  Extra* extra = extra_of(alias);
  extra->differentiable_view = false;
  Py_INCREF(t->object());
  set_held(extra->base, t);
}

namespace {

Saved save_list(PyObject* list);

Saved save_value(PyObject* o, bool copy) {
  if (is_tensor(o)) {
    Tensor* t = as_tensor(o);
    if (!copy) return save_tensor(t, true);
    // Written in place by this very operation, or copied by torch; with a history of its own, as torch's is.
    static Primitive& duplicate = primitive("clone");
    return save_tensor(call_on(duplicate, t).get(), true);
  }
  // An attribute may hold tensors too: the indices of x[:, index].
  for (Py_ssize_t k = 0; PyTuple_CheckExact(o) && k < PyTuple_GET_SIZE(o); k++) {
    if (is_tensor(PyTuple_GET_ITEM(o, k))) return save_list(o);
  }
  // A list is the user's, who may change it before the derivative is computed.
  return {PyList_CheckExact(o) ? checked(PyList_AsTuple(o)).release() : Py_NewRef(o), 0, 0};
}

Saved save_list(PyObject* list) {
  Py_ssize_t n = PyTuple_GET_SIZE(list);
  Ref<PyObject> tuple = checked(PyTuple_New(n));
  uint32_t versions = 0;  // versions only grow, so their sum changes if any of them does
  for (Py_ssize_t k = 0; k < n; k++) {
    Saved one = save_value(PyTuple_GET_ITEM(list, k), false);
    versions += one.version;
    PyTuple_SET_ITEM(tuple.get(), k, one.object);
  }
  return {tuple.release(), versions, 0};
}

PyObject* shape_of(PyObject* o) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    Ref<PyObject> list = checked(PyList_New(n));
    for (Py_ssize_t k = 0; k < n; k++)
      PyList_SET_ITEM(list.get(), k, shape_of(PySequence_Fast_GET_ITEM(o, k)));
    return list.release();
  }
  if (is_tensor(o)) return size_object(as_tensor(o)->sizes());
  if (o == Py_None) Py_RETURN_NONE;
  return size_object({});
}

// What the rules of the needed inputs want saved. Worked out once per primitive and set of inputs where these
// are few.
struct Plan {
  uint16_t want_args = 0, want_shapes = 0, want_outs = 0;
  uint8_t saved = 0;
  bool ready = false;
};
std::vector<Plan>& plans() {  // by Primitive::number and needs < 4
  static std::vector<Plan> all;
  return all;
}

// Whether one of the inputs that need a gradient has no derivative.
bool lacks_rule(const Primitive& op, uint16_t needs) {
  if (op.joint.function || op.no_derivative) return false;
  for (int i = 0; i < op.input_count; i++) {
    if ((needs >> i & 1) && !op.rules[i].function) return true;
  }
  return false;
}

Plan make_plan(Primitive& op, uint16_t needs, bool seen = false) {
  Plan plan;
  auto want = [&](const Rule& rule) {
    plan.want_args |= rule.want_args;
    plan.want_shapes |= rule.want_shapes;
    plan.want_outs |= rule.want_outs;
  };
  if (op.joint.function) {
    want(op.joint);
  } else {
    for (int i = 0; i < op.input_count; i++) {
      if (!(needs >> i & 1)) continue;
      if (!op.rules[i].function) {
        failf(PyExc_RuntimeError, "the derivative for '%s' is not implemented.", op.args[i].c_str());
      }
      want(op.rules[i]);
    }
  }
  if (seen) want(op.seen);
  plan.want_args |= op.shown_args;
  plan.want_shapes |= op.shown_shapes;
  plan.want_outs |= op.shown_outs;
  plan.saved = uint8_t(bit_count(plan.want_args) + bit_count(plan.want_shapes) + bit_count(plan.want_outs));
  plan.ready = op.recorded = true;
  return plan;
}

Plan plan_for(Primitive& op, uint16_t needs) {
  if (needs >= 4) return make_plan(op, needs);
  size_t at = size_t(op.number) * 4 + needs;
  if (at >= plans().size()) plans().resize(at + 256);
  Plan& plan = plans()[at];
  if (!plan.ready) plan = make_plan(op, needs);
  return plan;
}

[[gnu::always_inline]] inline void save_input(const Primitive& op, PyObject* const* args, int i, Saved* slot,
                                              bool copied, bool in_place) {
  bool list = i < op.input_count && (op.list_inputs >> i & 1);
  if (!list && !in_place && is_plain_tensor(args[i]) && !copied) {
    Tensor* t = as_tensor(args[i]);
    bool alias = op.options & Primitive::KEEPS_WEIGHT && i == op.input_count - 1 && !saved_hooks_active() &&
                 !(t->flags & Tensor::INFERENCE) && (t->grad_fn || !t->base());
    *slot = alias ? save_alias(t, true) : save_tensor(t, true);
    if (alias) hold_leaf(as_tensor(slot->object), t);
  } else *slot = list ? save_list(args[i]) : save_value(args[i], copied || (in_place && i == 0));
}

// Packs what torch shows hooks first, and returns a bit for each.
[[gnu::noinline]] uint16_t pack_first(const Primitive& op, PyObject* const* args, Node* node, uint16_t copied,
                                      bool in_place) {
  uint16_t packed = 0;
  for (int i : op.packed_args) {
    if (!(node->want_args >> i & 1)) continue;
    Saved* slot = node->saved + bit_count(node->want_args & ((1u << i) - 1));
    save_input(op, args, i, slot, copied >> i & 1, in_place);
    packed |= uint16_t(1 << i);
  }
  return packed;
}

Ref<Node> record_inputs(Primitive& op, PyObject* const* args, uint16_t needs, bool in_place) {
  bool seen = dispatching_now && op.seen.function && asks_about(op, args);
  Plan plan = seen ? make_plan(op, needs, true) : plan_for(op, needs);
  uint16_t want_args = plan.want_args, want_shapes = plan.want_shapes;
  uint32_t edges = uint32_t(op.input_count);
  for (int i = 0; op.list_inputs >> i; i++) {
    if (op.list_inputs >> i & 1) edges += uint32_t(PyTuple_GET_SIZE(args[i])) - 1;
  }
  Ref<Node> node = new_node(Node::operation, &op, edges, plan.saved);
  node->needs = needs;
  node->want_args = want_args;
  node->want_shapes = want_shapes;
  node->want_outs = plan.want_outs;
  Edge* edge = node->edges;
  for (int i = 0; i < op.input_count; i++) {
    if (op.list_inputs >> i & 1) {
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[i]); k++, edge++) {
        PyObject* element = PyTuple_GET_ITEM(args[i], k);
        if (is_tensor(element)) *edge = gradient_edge(as_tensor(element));
      }
    } else {
      if (needs >> i & 1) *edge = gradient_edge(as_tensor(args[i]));
      edge++;
    }
  }
  if (op.turned) node->turned = op.turned(args);
  uint16_t copied = op.copied ? op.copied(args) : 0;
  uint16_t packed = saved_hooks_active() ? pack_first(op, args, node.get(), copied, in_place) : uint16_t(0);
  Saved* slot = node->saved;
  for (int i = 0; want_args >> i; i++) {
    if (!(want_args >> i & 1)) continue;
    if (!(packed >> i & 1)) save_input(op, args, i, slot, copied >> i & 1, in_place);
    slot++;
  }
  for (int i = 0; want_shapes >> i; i++) {
    if (want_shapes >> i & 1) *slot++ = {shape_of(args[i]), 0, 0};
  }
  return node;
}

void set_history(Tensor* out, Node* node, uint32_t nr) {
  if (!is_differentiable(out->dtype)) return;
  Py_INCREF(node->object());
  leave_node(out);
  Py_XSETREF(out->grad_fn, node);
  out->output_nr = nr;
  if (out->ndim <= 4) node->outputs[nr].sizes = reinterpret_cast<int64_t*>(out);  // what join_node does
}

void describe_outputs(Node* node, PyObject* result) {
  if (!PyTuple_Check(result) && !PyList_Check(result)) [[likely]] {
    node->output_count = 1;
    return set_output(node, 0, as_tensor(result));
  }
  uint32_t count = uint32_t(PySequence_Fast_GET_SIZE(result));
  set_outputs(node, count);
  for (uint32_t i = 0; i < count; i++) set_output(node, i, as_tensor(PySequence_Fast_GET_ITEM(result, i)));
}

// Pack hooks are shown a result with its history. One that was written in place has it already.
void save_outputs(Node* node, PyObject* result, bool fresh) {
  bool several = PyTuple_Check(result) || PyList_Check(result);
  Saved* first = node->saved + node->saved_count - bit_count(node->want_outs);
  std::vector<uint32_t> with_gradient;
  if (several && saved_hooks_active()) with_gradient = shown_outputs(node);
  auto save = [&](int i, Saved* slot) {
    Tensor* out = as_tensor(several ? PySequence_Fast_GET_ITEM(result, i) : result);
    // What has no gradient in torch, a factor or a statistic, is shown to hooks without a history.
    bool apart = several && saved_hooks_active() && is_differentiable(out->dtype) &&
                 is_plain_tensor(out->object()) && !asks_dispatch(out) &&
                 std::ranges::find(with_gradient, uint32_t(i)) == with_gradient.end();
    TensorRef alias = apart ? new_alias(out) : TensorRef();
    if (fresh && saved_hooks_active() && !apart) set_history(out, node, uint32_t(i));
    if (fresh && late_results && saved_hooks_active()) {
      *slot = save_alias(out, false);
      as_tensor(slot->object)->output_nr = uint32_t(i);
      late_results->push_back(
          {share(node), int(slot - node->saved), uint32_t(i), apart ? std::move(alias) : share(out)});
      return;
    }
    if (apart) {
      *slot = save_tensor(alias.get(), false, node);
      return;
    }
    if (dispatching_now && primitive_number(node->op->number)->undetached >> i & 1 && !dispatches(out)) {
      ModesUnasked unasked;
      *slot = save_tensor(out, false, node);
    } else {
      *slot = save_tensor(out, false, node);
    }
    if (is_tensor(slot->object)) as_tensor(slot->object)->output_nr = uint32_t(i);
  };
  bool ordered = several && saved_hooks_active() && !node->op->packed_outs.empty();
  for (int at = 0, i = 0; ordered ? at < int(node->op->packed_outs.size()) : node->want_outs >> i != 0;
       at++, i++) {
    if (ordered) i = node->op->packed_outs[size_t(at)];
    if (node->want_outs >> i & 1) save(i, first + bit_count(node->want_outs & ((1u << i) - 1)));
  }
}

// The saved outputs of a node get the tangents that the outputs have by now.
void share_output_tangents(Node* node, PyObject* result) {
  bool several = PyTuple_Check(result) || PyList_Check(result);
  Saved* slot = node->saved + node->saved_count - bit_count(node->want_outs);
  for (int i = 0; node->want_outs >> i; i++) {
    if (!(node->want_outs >> i & 1)) continue;
    Tensor* out = as_tensor(several ? PySequence_Fast_GET_ITEM(result, i) : result);
    if (slot->object && is_tensor(slot->object)) share_tangent(out, as_tensor(slot->object));
    else if (slot->object && is_packed(slot->object)) share_packed_tangent(out, slot->object);
    slot++;
  }
}

template <class F>
void for_outputs(PyObject* result, F f) {
  if (PyTuple_Check(result) || PyList_Check(result)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); i++) {
      f(as_tensor(PySequence_Fast_GET_ITEM(result, i)), uint32_t(i));
    }
  } else {
    f(as_tensor(result), 0);
  }
}

void stamp(Tensor* t, Source source) {
  if (t->storage->written.code) return;
  t->storage->written = keep(source);
}

// A result without history remembers why: it (or what it was computed from) was cut off by no_grad or detach,
// or made without requires_grad. The message of a failing backward() names that line.
void note_origin(const Primitive& op, PyObject* const* args, uint16_t needs, PyObject* result) {
  if (modes.unrecorded) return;  // the engine marks the gradients that reach the user
  if (needs && !op.no_derivative) {
    Source now = current_source();
    for_outputs(result, [&](Tensor* out, uint32_t) {
      if (!is_differentiable(out->dtype)) return;
      out->flags |= Tensor::CUT_NO_GRAD;
      if (op.options & Primitive::VIEW) {
        Extra* extra = extra_of(out);
        drop(extra->cut);
        extra->cut = keep(now);
      } else {
        stamp(out, now);
      }
    });
    return;
  }
  if (needs && modes.grad) {  // both marks: cut by an operation that has no derivative, argmax say
    Source now = current_source();
    for_outputs(result, [&](Tensor* out, uint32_t) {
      out->flags |= Tensor::CUT_NO_GRAD | Tensor::CUT_DETACH;
      stamp(out, now);
    });
    return;
  }
  for (int i = 0; i < op.input_count; i++) {
    if (op.list_inputs >> i & 1 || !is_tensor(args[i])) continue;
    Tensor* in = as_tensor(args[i]);
    const Source& origin = in->extra && in->extra->cut.code ? in->extra->cut : in->storage->written;
    if (!origin.code) continue;
    for_outputs(result, [&](Tensor* out, uint32_t) {
      stamp(out, origin);
      out->flags |=
          uint16_t(Tensor::ORIGIN_INHERITED | (in->flags & (Tensor::CUT_NO_GRAD | Tensor::CUT_DETACH)));
    });
    return;
  }
}

void set_view_origin(PyObject* input, PyObject* result) {
  bool several = PyTuple_Check(result) || PyList_Check(result);
  ViewOrigin origin = modes.inference ? ViewOrigin::inference
                      : !modes.grad   ? ViewOrigin::no_grad
                      : several       ? ViewOrigin::multi_output
                                      : ViewOrigin::ordinary;
  // A view of a view that must not be written must not be written either.
  if (is_tensor(input) && as_tensor(input)->base()) {
    ViewOrigin before = as_tensor(input)->extra->origin;
    if (origin == ViewOrigin::ordinary || before == ViewOrigin::inference) origin = before;
  }
  if (origin == ViewOrigin::ordinary) return;
  for_outputs(result, [&](Tensor* out, uint32_t) {
    if (out->extra) out->extra->origin = origin;
  });
}

// Elementwise operations compare the devices of their operands themselves.
bool mixes_devices(const Primitive& op, PyObject* const* args) {
  if (op.forward == elementwise_forward || (op.input_count == 1 && !op.list_inputs)) return false;
  return is_mixed(op, args) && !asks_about(op, args);
}

Ref<PyObject> compute(const Primitive& op, PyObject* const* args, Tensor* out) {
  try {
    if (op.forward == elementwise_forward) return checked(elementwise_forward(op, args, out));
    if (mixes_devices(op, args)) return checked(forward_mixed(op, args, out));
    return checked(run_forward(op, args, out));
  } catch (const Error& error) {
    explain(error, op, args);
  }
}

// The same where an input or `out` is a lazy view (Note [lazy views], lazy_views.cpp).
Ref<PyObject> compute_lazy(const Primitive& op, PyObject* const* args, Tensor* out) {
  try {
    if (mixes_devices(op, args)) return checked(forward_mixed(op, args, out));
    return checked(forward_resolved(op, args, out));
  } catch (const Error& error) {
    explain(error, op, args);
  }
}

// A conversion that ends all gradients asks for no history, not even for one that is refused.
bool to_integers(const Primitive& op, PyObject* const* args) {
  static const Primitive& to = primitive("to_dtype");
  return &op == &to && is_dtype(args[1]) && !is_differentiable(dtype_from(args[1]));
}

// Where not all inputs are ordinary tensors: brings views up to date, and says which inputs need a gradient.
Ref<PyObject> compute_any(const Primitive& op, PyObject* const* args, uint16_t& needs) {
  uint16_t flags = 0;
  needs = inputs_needing_grad(op, args, flags);
  if (modes.grad && !op.no_derivative && !to_integers(op, args)) {
    bool any_view = false;
    for (int i = 0; i < op.input_count; i++) {
      bool list = op.list_inputs >> i & 1;  // a tuple, as was seen
      PyObject* const* all = list ? PySequence_Fast_ITEMS(args[i]) : args + i;
      any_view |= std::any_of(all, all + (list ? PyTuple_GET_SIZE(args[i]) : 1),
                              [](PyObject* o) { return is_tensor(o) && as_tensor(o)->base(); });
    }
    if (any_view) {
      refresh_inputs(op, args);
      needs = inputs_needing_grad(op, args, flags);
    }
  }
  return flags & Tensor::LAZY ? compute_lazy(op, args, nullptr) : compute(op, args, nullptr);
}

bool is_comparison(const Primitive& op) {
  return op.name.size() == 2 &&
         (op.name == "eq" || op.name == "ne" || op.name[0] == 'l' || op.name[0] == 'g');
}

}  // namespace

namespace {

// What the node of a comparison in place is recorded as: two gradients of zeros, for which nothing is kept.
ModuleInit init([](PyObject*) {
  define("_constant_of(a, b)", [](const Primitive&, PyObject* const*, Tensor*) -> PyObject* {
    fail(PyExc_RuntimeError, "_constant_of is recorded, not called");
  });
});

// Inference tensors alone have no history, whatever they require: as in torch, an operation is recorded only
// if one of its inputs was made outside inference mode (a number counts as such). A copy of one is the way
// out of that: it is written into a tensor made outside.
bool is_outside(const Primitive& op, PyObject* const* args) {
  if (op.name == "clone" || op.name == "to_dtype") return false;
  auto ordinary = [](PyObject* o) {
    return is_tensor(o) ? !(as_tensor(o)->flags & Tensor::INFERENCE) : is_number(o);
  };
  for (int i = 0; i < op.input_count; i++) {
    if (!(op.list_inputs >> i & 1)) {
      if (ordinary(args[i])) return false;
      continue;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[i]); k++) {
      if (ordinary(PyTuple_GET_ITEM(args[i], k))) return false;
    }
  }
  return true;
}

// Saved-tensor hooks see the inputs before anything is computed, as in torch: a hook that throws (a
// checkpoint that has all it needs) keeps the operation from running.
Ref<Node> record_before(Primitive& op, PyObject* const* args) {
  if (op.no_derivative) return {};
  uint16_t flags = 0;
  if (!inputs_needing_grad(op, args, flags)) return {};
  refresh_inputs(op, args);
  uint16_t needs = inputs_needing_grad(op, args, flags);
  return needs && !is_outside(op, args) ? record_inputs(op, args, needs, false) : Ref<Node>();
}

// Where hooks look on, the operation as rushlight/ops/_again.py records it: with a node that keeps what
// torch's does. Empty if it is recorded as it is, as for whoever is asked about it.
Ref<PyObject> recorded_hooked(Primitive& op, PyObject* const* args) {
  if (std::exchange(unhooked, nullptr) == &op || carrying() || modes.function_mode || op.list_inputs)
    return {};
  bool needs = false;
  for (int i = 0; i < op.input_count; i++) {
    if (!is_tensor(args[i])) continue;
    if (!is_plain_tensor(args[i]) || asks_dispatch(as_tensor(args[i]))) return {};
    needs |= as_tensor(args[i])->requires_grad();
  }
  if (!needs || is_outside(op, args)) return {};
  Ref<PyObject> result = checked(PyObject_Vectorcall(op.while_hooked, args, op.args.size(), nullptr));
  if (result.get() == Py_NotImplemented) return {};
  Py_ssize_t count = PyTuple_Check(result.get()) ? PyTuple_GET_SIZE(result.get()) : 1;
  bool right = !op.list_output && size_t(count) == op.outputs.size();
  for (Py_ssize_t i = 0; right && i < count; i++)
    right = is_tensor(PyTuple_Check(result.get()) ? PyTuple_GET_ITEM(result.get(), i) : result.get());
  if (!right) failf(PyExc_TypeError, "%s: what records it must return its results", op.name.c_str());
  return result;
}

PyObject* call_closed(Primitive& op, PyObject* const* args);
PyObject* write_closed(Primitive& op, PyObject* const* args);

// Where tensors of a level may be among the arguments (levels.h).
[[gnu::noinline]] PyObject* call_raised(Primitive& op, PyObject* const* args) {
  if ((op.options & Primitive::ASKS_FIRST) && has_open(op, args)) [[unlikely]]
    return call_closed(op, Raised(op, ClosedArguments(op, args).args, false).args);
  Raised raised(op, args, false);
  if (op.options & Primitive::TAKEN_APART && raised.args == args) {
    if (Ref<PyObject> result = taken_apart(op, args)) return result.release();
  }
  return call_closed(op, raised.args);
}
[[gnu::noinline]] PyObject* write_raised(Primitive& op, PyObject* const* args) {
  if ((op.options & Primitive::ASKS_FIRST) && has_open(op, args)) [[unlikely]]
    return write_closed(op, Raised(op, ClosedArguments(op, args).args, true).args);
  return write_closed(op, Raised(op, args, true).args);
}

}  // namespace

PyObject* call(Primitive& op, PyObject* const* args) {
  if (leveled_alive) [[unlikely]]
    return call_raised(op, args);
  if (op.options & (Primitive::ASKS_FIRST | Primitive::TAKEN_APART)) {
    if (op.options & Primitive::TAKEN_APART) {
      if (Ref<PyObject> result = taken_apart(op, args)) return result.release();
    }
    if (has_open(op, args)) [[unlikely]]
      return call_closed(op, ClosedArguments(op, args).args);
  }
  return call_closed(op, args);
}
PyObject* call_settled(Primitive& op, PyObject* const* args) {
  return leveled_alive || op.options & Primitive::TAKEN_APART ? call(op, args) : call_closed(op, args);
}
PyObject* call_in_place(Primitive& op, PyObject* const* args) {
  if (leveled_alive) [[unlikely]]
    return write_raised(op, args);
  if ((op.options & Primitive::ASKS_FIRST) && has_open(op, args)) [[unlikely]]
    return write_closed(op, ClosedArguments(op, args).args);
  return write_closed(op, args);
}

namespace {

PyObject* call_closed(Primitive& op, PyObject* const* args) {
  uint16_t needs = 0;
  Ref<Node> node;
  if (saved_hooks_active() && recording()) {
    if (op.while_hooked) {
      if (Ref<PyObject> result = recorded_hooked(op, args)) return result.release();
    }
    node = record_before(op, args);
  }
  bool plain = true;  // tensors that are no views, as most are: looked at once
  for (int i = 0; plain && i < op.input_count; i++) {
    plain = is_plain_tensor(args[i]) && !as_tensor(args[i])->base();
    if (plain && shows_requires_grad(as_tensor(args[i]))) needs |= uint16_t(1 << i);
  }
  Ref<PyObject> result = plain ? compute(op, args, nullptr) : compute_any(op, args, needs);
  Ref<Node> recorded;
  if (op.options & Primitive::VIEW) {
    set_view_origin(args[0], result.get());
    Extra* extra = as_tensor(args[0])->extra;
    bool keeps = op.options & Primitive::CONVERTS || replays_views || (extra && extra->steps) ||
                 (!plain && dispatches(as_tensor(args[0])));
    if (keeps && is_tensor(result.get())) keep_steps(op, args, as_tensor(result.get()));
  }
  bool records = needs && recording() && !op.no_derivative && (plain || !to_integers(op, args));
  if (records && !node &&
      !((!plain || as_tensor(args[0])->flags & Tensor::INFERENCE) && is_outside(op, args)))
    node = record_inputs(op, args, needs, false);
  if (node) {
    if (op.options & NAMED_VARIANTS) name_variant(node.get(), args, false);
    if (modes.derives) [[unlikely]]
      name_number_form(node.get(), args);
    describe_outputs(node.get(), result.get());
    if (node->want_outs) save_outputs(node.get(), result.get(), true);
    for_outputs(result.get(), [&](Tensor* out, uint32_t nr) { set_history(out, node.get(), nr); });
    if (carrying()) recorded = node;
  } else {
    // A view made in inference mode of a tensor from outside is a tensor like that one.
    if (modes.inference && !(op.options & Primitive::VIEW)) {
      for_outputs(result.get(), [](Tensor* out, uint32_t) { out->flags |= Tensor::INFERENCE; });
    }
    note_origin(op, args, needs, result.get());
  }
  if (carrying()) {
    give_tangents(op, args, result.get());
    if (recorded) share_output_tangents(recorded.get(), result.get());
  }
  return result.release();
}

// Throws what writing into `self` would throw, writing into a copy.
void try_write(Primitive& op, PyObject* const* args, Tensor* self) {
  TensorRef scratch = clone(self);
  Py_XDECREF(op.forward(op, args, scratch.get()));
  if (PyErr_Occurred()) throw PythonError{};
}

PyObject* write_closed(Primitive& op, PyObject* const* args) {
  if (!is_tensor(args[0])) failf(PyExc_TypeError, "%s_(): argument 'self' must be Tensor", op.name.c_str());
  Tensor* self = as_tensor(args[0]);
  uint16_t flags = 0, needs = inputs_needing_grad(op, args, flags);
  bool base_needs = self->base() && self->base()->requires_grad() && self->extra->differentiable_view;
  // Torch writes before it refuses to count the write: what else is wrong with the call is said first.
  if (!modes.inference && !counts_writes(self)) try_write(op, args, self);
  static Primitive& copy = primitive("copy");
  if (needs && !is_differentiable(self->dtype) && &op == &copy) needs = 0;  // whole numbers get no history
  if (needs || base_needs || (self->flags & Tensor::INFERENCE)) check_inplace(self);
  if (recording() && !op.no_derivative) refresh_inputs(op, args);
  bool records = (needs || base_needs) && recording() && is_differentiable(self->dtype);
  // The gradients of a comparison are zeros; a logical operation leaves the history as it is, as in torch.
  bool logical = op.no_derivative && op.name.starts_with("logical_");
  bool constant = records && op.no_derivative && !logical && is_comparison(op);
  if (logical) records = false;
  bool refused = records && op.no_derivative && !constant;
  if (refused || (records && lacks_rule(op, needs))) {
    try_write(op, args, self);  // what else is wrong with the call is said first
  }
  if (refused) {
    failf(PyExc_RuntimeError, "the derivative for '%s_' is not implemented", op.name.c_str());
  }
  Ref<PyObject> tangent;
  if (carrying()) tangent = tangent_of_write(op, args);
  Ref<Node> node, recorded;
  if (constant && records) {
    static Primitive &of_one = primitive("floor"), &of_two = primitive("_constant_of");  // have such rules
    bool two = is_tensor(args[1]);
    Primitive& step = two ? of_two : of_one;
    node = record_inputs(step, args, uint16_t(needs | (base_needs ? 1 : 0)), true);
    std::string name = op.node_name;
    if (two) name.back() = '1';
    node->op = renamed(&step, name);
  } else if (records) {
    node = record_inputs(op, args, uint16_t(needs | (base_needs ? 1 : 0)), true);
    if (op.options & NAMED_VARIANTS) name_variant(node.get(), args, true);
  }
  if (carrying()) recorded = node;
  announce_write(self);
  Ref<PyObject> result = flags & Tensor::LAZY ? compute_lazy(op, args, self) : compute(op, args, self);
  note_write(self);
  if (node) {
    describe_outputs(node.get(), self->object());
    self->storage->written.operation = node->op->stamp;
    rewrite_history(self, node);
    if (node->want_outs) save_outputs(node.get(), self->object(), false);
  }
  if (tangent) {
    write_tangent(self, tangent.get(), &op == &copy);
    if (recorded) share_output_tangents(recorded.get(), self->object());
  }
  return Py_NewRef(self->object());
}

}  // namespace

void forget_plans() { plans().clear(); }

}  // namespace rl
