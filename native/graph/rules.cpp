#include "rules.h"

#include "../python/forward_mode.h"
#include "../python/functions.h"
#include "../python/lazy_views.h"
#include "../python/levels.h"
#include "../python/primitive.h"
#include "../python/rare_ops.h"
#include "custom.h"
#include "dispatching.h"
#include "errors.h"
#include "living.h"
#include "modes.h"
#include "reuse.h"
#include "shown.h"

namespace rl {

thread_local bool frees_graph = false;

void fail_freed(Node* node) {
  Source freed = node->freed_at;
  fail_at(
      PyExc_RuntimeError,
      "Trying to backward through the graph a second time (or directly access saved tensors after they have "
      "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
      "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
      "if "
      "you need to access saved tensors after calling backward.",
      {{("The values of " + node_name(node) + " were saved").c_str(), node->source},
       {"They were freed by the backward", freed}},
      "If you meant to differentiate twice, pass retain_graph=True to the first backward; if not, compute "
      "the "
      "loss again, or detach() what carries over from the last iteration.");
}

std::string type_text(const Tensor* t) {
  if (is_sparse(t)) return std::string("torch.sparse.") + dtype_class_name(t->dtype) + "Tensor";
  if (is_compressed(t)) return std::string("SparseCsrtorch.") + dtype_class_name(t->dtype) + "Tensor";
  if (t->is_meta() && claimed_device(t->storage).type == DeviceType::meta) {
    return std::string("Meta") + dtype_class_name(t->dtype) + "Type";
  }
  return type_text(t->dtype);
}

TensorRef zeros_for(const OutputInfo& info, Tensor* const* beside, uint32_t count) {
  Device device = info.device;
  for (uint32_t i = 0; dispatching_classes && i < count; i++) {
    if (beside[i]) device = claimed_device(beside[i]->storage);
  }
  return zeros(info.shape(), info.dtype, device);
}

namespace {

// Which argument was saved at a place; -1 if that is none.
int argument_saved(const Node* node, int at) {
  if (node->kind != Node::operation || node->op->list_inputs) return -1;
  int arg = 0;
  for (uint16_t rest = at < 0 ? 0 : node->want_args; rest; rest >>= 1, arg++) {
    if ((rest & 1) && at-- == 0) return arg;
  }
  return -1;
}

// Where the gradient of the argument goes that was saved there; nowhere if it needs none.
Edge behind(const Node* node, int at) {
  int arg = argument_saved(node, at);
  return arg >= 0 && uint32_t(arg) < node->edge_count ? node->edges[arg] : Edge{};
}

// ", which is output 0 of Mul,": the history of a tensor that was saved and written since; empty for a leaf.
// `stamped`: what was written is known by its memory, not by `from`, the history that it had.
std::string history_text(const Tensor* t, Edge from, bool stamped) {
  // A tensor that was written by a recorded operation is that operation's output by now.
  const std::string* writer = stamped ? stamped_by(t->storage->written.operation) : nullptr;
  const Node* producer = from.node;
  bool through_view = stamped && t->storage->written.operation == THROUGH_VIEW;
  if (!producer && !writer && !through_view) return {};
  // A view whose base was written is cut out of it anew, see Note [views and in-place].
  bool view =
      stamped && producer && producer->kind == Node::operation && producer->op->options & Primitive::VIEW;
  bool lazy = view && (producer->op->name == "conj_view" || producer->op->name == "neg_view");
  std::string name = view && !lazy  ? "AsStrided"
                     : lazy         ? operation_name(node_name(producer))
                     : through_view ? "torch::autograd::CopySlices"
                     : writer       ? operation_name(*writer)
                                    : operation_name(node_name(producer));
  if (name == "NotImplemented") name = "torch::autograd::NotImplemented";
  return ", which is output " + std::to_string(from.nr) + " of " + name + ",";
}

// Where a composed function that is one operation in torch was given t (rushlight/ops/_lacking.py, `once`),
// of which t is a view; null if t is none.
const Node* given_to_one(const Tensor* t) {
  for (const Node* node = t->grad_fn; node && node->kind == Node::operation; node = node->edges[0].node) {
    if (!(node->op->options & Primitive::VIEW)) return nullptr;
    if (node->op->name == "once") return node;
  }
  return nullptr;
}

// Throws, unless the derivative does not read what was written. `operand` is its place among the saved
// arguments; -1 if it is none of them.
void refuse_modified(Node* node, Tensor* t, uint32_t expected, int out, int operand = -1) {
  // torch multiplies with a view of some operands, and keeps that.
  SeenOperand within = operand_within(node, argument_saved(node, operand), out, t);
  if (within.unread) return;
  if (out < 0) refuse_stale_view(t, within.view);
  std::string sizes = within.sizes.empty() ? sizes_text(t->sizes()) : within.sizes, which;
  if (const Node* given = out < 0 ? given_to_one(t) : nullptr) {
    sizes = sizes_text(given->outputs[0].shape());
    Edge from = given->edges[0];
    which = history_text(t, from.node && from.node->kind == Node::accumulate ? Edge{} : from, true);
  } else if (within.sizes.empty() && (out < 0 || shows_output(node, uint32_t(out)))) {
    // The tensor itself knows its history, if it was saved itself.
    bool itself = out < 0 && t->flags & Tensor::SAVED;
    if (itself) refresh_view(t);
    Edge from = out >= 0 ? Edge{node, uint32_t(out)} : Edge{t->grad_fn, t->output_nr};
    if (out < 0) from.nr = 0;  // torch notes the place among the outputs only of its own outputs
    which = history_text(t, from, out < 0 && !itself);
  } else if (out < 0 && behind(node, operand).node) {
    which = ", which is output 0 of AsStrided,";
  }
  fail_at(
      PyExc_RuntimeError,
      "one of the variables needed for gradient computation has been modified by an inplace operation: [" +
          type_text(t) + " " + sizes + "]" + which + " is at version " +
          std::to_string(counter_of(t)->version) + "; expected version " + std::to_string(expected) +
          " instead. " +
          (anomaly ? "Hint: the backtrace further above shows the operation that failed to compute its "
                     "gradient. The variable in question was changed in there or anywhere later. Good luck!"
                   : "Hint: enable anomaly detection to find the operation that failed to compute its "
                     "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."),
      {{("It was saved by " + node_name(node)).c_str(), node->source},
       {"It was changed", t->storage->written}},
      "Change a clone() instead, or write the in-place operation out of place.");
}

// Of a list the sum of all versions is known: the one that may have been written so many times is meant.
void refuse_one_modified(Node* node, PyObject* list, uint32_t times) {
  Tensor* found = nullptr;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(list); k++) {
    PyObject* one = PyTuple_GET_ITEM(list, k);
    if (!is_tensor(one)) continue;
    uint32_t version = counter_of(as_tensor(one))->version;
    if (!found || (version > counter_of(found)->version && counter_of(found)->version < times))
      found = as_tensor(one);
  }
  uint32_t version = counter_of(found)->version;
  refuse_modified(node, found, version - std::min(version, version < times ? 1 : times), -1);
}

void warn_silent(Node* node, Tensor* t) {
  static bool warned = false;
  if (warned) return;
  warned = true;
  warn(with_places(
      "a value needed for gradient computation was changed through .data or its storage, which "
      "autograd does not see: the gradient is computed with the changed value and is probably wrong.",
      {{("It was saved by " + node_name(node)).c_str(), node->source},
       {"It was changed", t->storage->written}},
      "Use detach() under torch.no_grad() instead of .data: such writes are noticed."));
}

void check_version(Node* node, Tensor* t, const Saved& saved, int out) {
  if (counter_of(t)->version != saved.version)
    refuse_modified(node, t, saved.version, out, int(&saved - node->saved));
  if (t->storage->silent_version == saved.silent_version) return;
  if (counter_of(t) == t->storage) warn_silent(node, t);
}

// What a saved alias stands for, where its tensor was given other memory since: see tell_savers.
bool has_moved(const Tensor* alias) {
  return alias->grad_fn && alias->grad_fn->extra && alias->grad_fn->extra->moved;
}
TensorRef moved(Tensor* alias) {
  Ref<PyObject> nr = checked(PyLong_FromLong(alias->output_nr));
  PyObject* memory = PyDict_GetItemWithError(alias->grad_fn->extra->moved, nr.get());
  if (!memory) return share(alias);
  TensorRef result = new_alias(as_tensor(memory));
  Py_INCREF(alias->grad_fn->object());
  result->grad_fn = alias->grad_fn;
  result->output_nr = alias->output_nr;
  return result;
}

// One that is saved itself has no history any more: it is known by where its gradient goes.
bool was_detached(const Node* node, const Tensor* saved, int at) {
  return was_detached(saved->grad_fn ? Edge{saved->grad_fn, saved->output_nr} : behind(node, at));
}

// An alias of a leaf stands for the leaf itself when the rule is being recorded. Looked for behind the edge
// of the argument it was: another leaf may share its memory.
Ref<PyObject> with_history(Node* node, Tensor* alias, int at) {
  bool leaf = alias->flags & Tensor::REQUIRES_GRAD && !(alias->flags & Tensor::SAVED);
  if (!modes.grad || !leaf) return share(alias->object());
  Node* next = behind(node, at).node;
  if (!next || next->kind != Node::accumulate) return share(alias->object());
  if (next->leaf()->storage == alias->storage) return share(next->leaf()->object());
  TensorRef old = new_alias(alias);  // it has other memory by now, and its gradient goes there all the same
  Py_INCREF(next->object());
  old->grad_fn = next;
  return Ref<PyObject>(old.release_object());
}

int slot_of_arg(const Node* node, int arg) { return arg ? bit_count(node->want_args & ((1 << arg) - 1)) : 0; }
int slot_of_shape(const Node* node, int arg) {
  return bit_count(node->want_args) + bit_count(node->want_shapes & ((1 << arg) - 1));
}
int slot_of_out(const Node* node, int out) {
  return bit_count(node->want_args) + bit_count(node->want_shapes) +
         bit_count(node->want_outs & ((1 << out) - 1));
}

// Calls one rule; `needs` is only built for joint rules.
Ref<PyObject> call_rule(Node* node, const Rule& rule, Tensor* const* grads, PyObject* needs) {
  struct Arguments {  // owned; only as many as there are, for this runs once per rule
    PyObject* values[24];
    size_t count = 0;
    ~Arguments() {
      while (count) Py_DECREF(values[--count]);
    }
  } args;
  auto grad_of = [&](uint32_t nr) -> Ref<PyObject> {
    if (grads[nr]) return share(grads[nr]->object());
    if (rule.takes_undefined) return share(Py_None);
    return Ref<PyObject>(zeros_for(node->outputs[nr], grads, node->output_count).release_object());
  };
  for (const RuleParam& param : rule.params) {
    Ref<PyObject> value;
    switch (param.kind) {
      case RuleParam::grad: value = grad_of(param.index); break;
      case RuleParam::grads: {
        value = checked(PyList_New(node->output_count));
        for (uint32_t i = 0; i < node->output_count; i++)
          PyList_SET_ITEM(value.get(), i, grad_of(i).release());
        break;
      }
      case RuleParam::arg: value = unpack(node, slot_of_arg(node, param.index), -1); break;
      case RuleParam::shape: value = share(node->saved[slot_of_shape(node, param.index)].object); break;
      case RuleParam::out: value = unpack(node, slot_of_out(node, param.index), param.index); break;
      case RuleParam::needs: value = share(needs); break;
      case RuleParam::turned: value = share(node->turned >> param.index & 1 ? Py_True : Py_False); break;
    }
    args.values[args.count++] = value.release();
  }
  // A subclass is not told of the steps of a derivative, as torch takes them below Python.
  Switched<&Modes::torch_function> below(modes.torch_function && !any_overrides(args.values, args.count));
  return checked(PyObject_Vectorcall(rule.function, args.values, args.count, nullptr));
}

// Calls a primitive from a rule; without the bookkeeping of `call` where nothing is recorded.
Ref<PyObject> call_in_rule(Primitive& op, PyObject* const* args) {
  if (modes.grad || carrying() || modes.inference) return checked(call(op, args));
  return checked(run_forward(op, args, nullptr));
}

constexpr int64_t WORTH_LENDING = 4096;  // elements

// The gradient that sum() passes on: one number 1, read over and over. A product with it is the other factor.
bool is_all_ones(const Tensor* g) {
  if ((g->numel == 0) | g->is_lazy() || g->is_meta()) return false;
  for (int d = 0; d < g->ndim; d++) {
    if (g->size(d) != 1 && g->stride(d) != 0) return false;
  }
  Scalar one = load(g->dtype, g->data());
  return one.kind == Scalar::floating && one.d == 1;
}

// Whether the gradient for this node is read by products alone, which leave it as it is, and shown to no
// hook.
bool only_multiplies(const Node* node) {
  if (node->kind != Node::operation || node->extra || node->op->list_inputs || node->op->joint.function)
    return false;
  for (uint32_t i = 0; i < node->edge_count; i++) {
    if (node->edges[i].node && node->op->rules[i].form != Rule::product) return false;
  }
  return true;
}

// Whether the exponent that a node of `x ** s` has saved is 2.
bool is_two(PyObject* s) {
  if (s && PyFloat_CheckExact(s)) return PyFloat_AS_DOUBLE(s) == 2;
  int overflow;
  return s && PyLong_CheckExact(s) && PyLong_AsLongAndOverflow(s, &overflow) == 2;
}

// g * (2 * x), written over the 2 * x.
Ref<PyObject> square_rule(Tensor* g, Tensor* x) {
  static Primitive& mul = primitive("mul");
  Ref<PyObject> two = checked(PyLong_FromLong(2));
  PyObject* slope_args[] = {x->object(), two.get()};
  Ref<PyObject> slope = checked(run_forward(mul, slope_args, nullptr));
  Tensor* t = as_tensor(slope.get());
  PyObject* args[] = {g->object(), slope.get()};
  if (g->dtype != t->dtype || !same_sizes(g, t) || !lies_in_order(g) || !t->is_contiguous())
    return checked(run_forward(mul, args, nullptr));
  if (is_all_ones(g)) return slope;
  return checked(mul.forward(mul, args, t));
}

// The rules that most programs spend their time in are of a few forms. The engine runs them without entering
// the interpreter (a chain of 100 products: 1.4x faster); what Python says remains the definition, and
// anything but plain tensors and numbers takes that way. Empty if this rule is not such a one.
// `later`: the inputs whose rules are still to be called; they read g, and perhaps the same saved value.
// `next`: whom the gradient is for, if nobody but the engine sees it on the way; else null.
Ref<PyObject> call_known_rule(Node* node, const Rule& rule, Tensor* const* grads, uint16_t later,
                              const Node* next = nullptr) {
  Tensor* g = grads[0];
  if (rule.form == Rule::any || !g || !is_plain_tensor(g->object())) return {};
  if (rule.form == Rule::identity) return share(g->object());
  if (rule.form == Rule::negation) {
    static Primitive& neg = primitive("neg");
    PyObject* args[] = {g->object()};
    return call_in_rule(neg, args);
  }
  bool squares = rule.form == Rule::square || rule.form == Rule::power;
  if (squares) {
    if (!modes.unrecorded || modes.grad || carrying() || asks_dispatch(g)) return {};
    if (rule.form == Rule::power && !is_two(node->saved[slot_of_arg(node, rule.params[2].index)].object))
      return {};
  }
  const RuleParam& other = rule.params[1];
  bool is_arg = other.kind == RuleParam::arg;
  int slot = is_arg ? slot_of_arg(node, other.index) : slot_of_out(node, other.index);
  Ref<PyObject> value = unpack(node, slot, is_arg ? -1 : other.index);
  bool real = is_plain_tensor(value.get())
                  ? !is_complex(as_tensor(value.get())->dtype)
                  : PyFloat_CheckExact(value.get()) || PyLong_CheckExact(value.get());
  if (!real || (squares && !is_tensor(value.get()))) return {};
  if (squares) return square_rule(g, as_tensor(value.get()));
  static Primitive& mul = primitive("mul");
  PyObject* args[] = {g->object(), value.get()};
  if (modes.unrecorded && is_tensor(value.get()) && !asks_dispatch(g)) {  // see Note [reusing buffers]
    Tensor* v = as_tensor(value.get());
    if (!later && may_overwrite(g, 1, v)) return checked(mul.forward(mul, args, as_new(g)));
    auto read_later = [&] {
      for (int j = 0; later >> j; j++) {
        const Rule& next = node->op->rules[size_t(j)];
        uint16_t reads = is_arg ? next.want_args : next.want_outs;
        if ((later >> j & 1) && (reads >> other.index & 1)) return true;
      }
      return false;
    };
    // A user's own tensor may have a .grad or hooks, which are not the gradient's.
    if (frees_graph && value.get() == node->saved[slot].object && !v->extra && may_overwrite(v, 2, v, true) &&
        !read_later() && g->dtype == v->dtype && same_sizes(g, v) && lies_in_order(g)) {
      // The node gives the value up at once: if something fails later, it must not be found overwritten.
      release(node->saved[slot]);
      if (!node->freed_at.code) node->freed_at = keep(current_source());
      leave_node(v);
      Py_CLEAR(v->grad_fn);
      v->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
      v->output_nr = 0;
      as_new(v);
      if (is_all_ones(g)) return value;
      return checked(mul.forward(mul, args, v));
    }
    // Somebody else reads the value too, so it is not given away but lent.
    if (v->numel >= WORTH_LENDING && next && only_multiplies(next) && g->dtype == v->dtype &&
        same_sizes(g, v) && is_all_ones(g))
      return Ref<PyObject>(new_alias(v).release_object());
  }
  return call_in_rule(mul, args);
}

TensorRef as_gradient(Node* node, PyObject* o) {
  if (o == Py_None) return {};
  if (!is_tensor(o)) {
    failf(PyExc_TypeError, "the derivative rule of %s returned %s, expected a Tensor or None",
          node_name(node).c_str(), Py_TYPE(o)->tp_name);
  }
  return share(as_tensor(o));
}

// What hooks have packed is unpacked before anything is computed, in the order in which it was packed; a list
// where its first tensor was.
void unpack_in_order(Node* node) {
  int args = bit_count(node->want_args), outs = node->saved_count - bit_count(node->want_outs);
  std::vector<std::pair<uint64_t, int>> packed;
  for (int at = 0; at < int(node->saved_count); at++) {
    PyObject* value = node->saved[at].object;
    if (value && PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value)) value = PyTuple_GET_ITEM(value, 0);
    if ((at < args || at >= outs) && value && is_packed(value)) packed.emplace_back(packed_number(value), at);
  }
  std::sort(packed.begin(), packed.end());
  for (auto [number, at] : packed) {
    int out = -1;
    for (int left = at - outs; left >= 0; left -= node->want_outs >> out & 1) out++;
    unpack(node, at, out);
  }
}

// Reads every tensor that was saved. Torch does before it asks which gradients are wanted: what was freed,
// written over or packed is noticed also if only rules name it that are not called.
void unpack_all(Node* node) {
  if (any_packed) unpack_in_order(node);
  int at = 0;
  for (int i = 0; node->want_args >> i; i++) {
    if (!(node->want_args >> i & 1)) continue;
    if (i < node->op->input_count) unpack(node, at, -1);
    at++;
  }
  at = node->saved_count - bit_count(node->want_outs);
  for (int i = 0; node->want_outs >> i; i++) {
    if (!(node->want_outs >> i & 1)) continue;
    // A class or a mode is asked for a result by who uses it.
    const Saved& saved = node->saved[at];
    if (saved.object && is_tensor(saved.object)) check_version(node, as_tensor(saved.object), saved, i);
    else unpack(node, at, i);
    at++;
  }
}

// What the unpack hooks of one node have returned while its rules run: each is asked once, however many rules
// name the value.
struct Unpacked {
  explicit Unpacked(Node* node) : node(node), outer(now) { now = this; }
  ~Unpacked() { now = outer; }
  Unpacked(const Unpacked&) = delete;

  Node* node;
  Unpacked* outer;
  std::vector<std::pair<PyObject*, Ref<PyObject>>> values;
  static thread_local Unpacked* now __attribute__((tls_model("initial-exec")));
};
thread_local Unpacked* Unpacked::now __attribute__((tls_model("initial-exec"))) = nullptr;

// One rule per input, one edge per input: what most operations are.
void apply_separate_rules(Node* node, Tensor* const* grads, std::vector<TensorRef>& results,
                          const std::vector<bool>* wanted) {
  Primitive& op = *node->op;
  uint32_t needs = 0;
  for (uint32_t i = 0; i < node->edge_count; i++) {
    if (node->edges[i].node && (!wanted || (*wanted)[i])) needs |= 1u << i;
  }
  if (wanted && needs != node->needs) unpack_all(node);
  auto apply = [&](uint32_t i, uint16_t later) {
    const Rule& rule = op.rules[i];
    const Node* next = wanted || anomaly ? nullptr : node->edges[i].node;
    Ref<PyObject> grad = call_known_rule(node, rule, grads, later, next);
    if (!grad) grad = call_rule(node, rule, grads, Py_None);
    if (is_plain_tensor(grad.get())) results[i] = TensorRef(as_tensor(grad.release()));
    else results[i] = as_gradient(node, grad.get());
  };
  // Who looks on sees what torch does: there the first input comes last, by its name.
  if (needs & 1 && needs != 1 && grads[0] && asks_dispatch(grads[0])) {
    for (uint32_t i = 1; needs >> i; i++) {
      if (needs >> i & 1) apply(i, uint16_t((needs >> (i + 1) << (i + 1)) | 1));
    }
    return apply(0, 0);
  }
  for (uint32_t i = 0; needs; i++, needs >>= 1) {
    if (needs & 1) apply(i, uint16_t(needs >> 1 << (i + 1)));
  }
}

// rule_of(): the name of the primitive whose derivative is being computed, or None.
PyObject* py_rule_of(PyObject*, PyObject*) {
  Unpacked* now = Unpacked::now;
  const Primitive* op = now ? now->node->op : Fitting::now;
  if (!op) Py_RETURN_NONE;
  return PyUnicode_FromString(op->name.c_str());
}
PyMethodDef rule_of_function[] = {{"rule_of", py_rule_of, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
ModuleInit init_rule_of([](PyObject* module) { PyModule_AddFunctions(module, rule_of_function); });

Ref<PyObject> unpack_once(Node* node, PyObject* packed, int out) {
  Unpacked* now = Unpacked::now;
  if (!now || now->node != node) return unpack_packed(node, packed, out);
  for (auto& [key, value] : now->values) {
    if (key == packed) return share(value.get());
  }
  // What a hook computes (a checkpoint's function, say) is no part of this derivative.
  struct Outside {
    Derives no{false};
    Unpacked* before = std::exchange(Unpacked::now, nullptr);
    ~Outside() { Unpacked::now = before; }
  };
  Ref<PyObject> value;
  {
    Outside outside;
    value = unpack_packed(node, packed, out);
  }
  now->values.emplace_back(packed, share(value.get()));
  return value;
}

// A primitive that was renamed is a copy, perhaps of before there was such a rule.
const Rule& rule_seen(const Node* node) { return primitive_number(node->op->number)->seen; }

// Whether somebody looks on who is to be shown torch's steps. Of what is recorded, and of nodes that have not
// saved what those steps read, the rules themselves are seen.
bool is_seen(const Node* node, Tensor* const* grads) {
  const Rule& seen = rule_seen(node);
  if (!seen.function || modes.grad || carrying()) return false;
  if ((seen.want_args & ~node->want_args) | (seen.want_shapes & ~node->want_shapes) |
      (seen.want_outs & ~node->want_outs))
    return false;
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (grads[i] && asks_dispatch(grads[i])) return true;
  }
  for (uint32_t i = 0; i < node->saved_count; i++) {
    PyObject* value = node->saved[i].object;
    if (value && is_tensor(value) && asks_dispatch(as_tensor(value))) return true;
  }
  return false;
}

// What a composed operation keeps is read by none of its steps, perhaps; torch's derivative would read it.
void check_all_kept(Node* node) {
  PyObject *name, *value;
  auto check = [&](PyObject* one) {
    if (!PyTuple_CheckExact(one) || PyTuple_GET_SIZE(one) != 3 || !is_tensor(PyTuple_GET_ITEM(one, 0)))
      return;
    PyObject* nr = PyTuple_GET_ITEM(one, 2);  // of the node's own result
    check_kept(node, as_tensor(PyTuple_GET_ITEM(one, 0)), uint32_t(read_int(PyTuple_GET_ITEM(one, 1))),
               PyLong_CheckExact(nr) ? int(read_int(nr)) : -1);
  };
  for (Py_ssize_t at = 0; PyDict_Next(node->extra->kept, &at, &name, &value);) {
    // Of lists a step may be left that has not run.
    if (node->released && value == Py_None && !PyUnicode_CompareWithASCIIString(name, "lists"))
      fail_freed(node);
    check(value);
    for (Py_ssize_t k = 0; PyList_CheckExact(value) && k < PyList_GET_SIZE(value); k++)
      check(PyList_GET_ITEM(value, k));
  }
}

// Whether a number stands where torch has a tensor: its derivative computes with that, not with a number. It
// does in what a program multiplies by 2, not in what a derivative does (name_number_form).
bool by_number(const Node* node) {
  std::string_view name = node->op->node_name;
  if (name == "MulBackward1" || name == "DivBackward1" || name.starts_with("Foreach")) return false;
  for (int i = 0, at = 0; node->want_args >> i && i < node->op->input_count; i++) {
    if (!(node->want_args >> i & 1)) continue;
    PyObject* value = node->saved[at++].object;
    if (value && (PyFloat_Check(value) || PyLong_Check(value) || PyComplex_Check(value))) return true;
  }
  return false;
}

void apply_operation(Node* node, Tensor* const* grads, std::vector<TensorRef>& results,
                     const std::vector<bool>* wanted) {
  Primitive& op = *node->op;
  Unpacked once(node);
  Derives derives((modes.grad || inside_levels()) && !by_number(node));  // what is below may be recorded
  if (node->extra && node->extra->kept) check_all_kept(node);
  if (op.reads_all) unpack_all(node);
  else if (any_packed) unpack_in_order(node);
  bool seen = dispatching_now && is_seen(node, grads);
  if (!op.list_inputs && !op.joint.function && !seen)
    return apply_separate_rules(node, grads, results, wanted);
  // First edge of each input, to know which inputs are wanted and where results go.
  uint32_t first[17];
  uint32_t at = 0, lists = node->edge_count - uint32_t(op.input_count - bit_count(op.list_inputs));
  for (int i = 0; i < op.input_count; i++) {
    first[i] = at;
    // With one list input its length is what is left; several list inputs do not occur.
    at += op.list_inputs >> i & 1 ? lists : 1;
  }
  first[op.input_count] = at;
  uint16_t needs = 0;
  for (int i = 0; i < op.input_count; i++) {
    for (uint32_t e = first[i]; e < first[i + 1]; e++) {
      if (node->edges[e].node && (!wanted || (*wanted)[e])) needs |= uint16_t(1 << i);
    }
  }
  if (wanted && needs != node->needs) unpack_all(node);
  if (!needs) return;
  auto place = [&](int i, PyObject* value) {
    if (op.list_inputs >> i & 1) {
      if (value == Py_None) return;
      Ref<PyObject> list = checked(PySequence_Fast(value, "a rule for a list of tensors must return a list"));
      if (PySequence_Fast_GET_SIZE(list.get()) != Py_ssize_t(first[i + 1] - first[i])) {
        failf(PyExc_RuntimeError, "the rule of %s returned %zd gradients, expected %u", op.name.c_str(),
              PySequence_Fast_GET_SIZE(list.get()), first[i + 1] - first[i]);
      }
      for (uint32_t e = first[i]; e < first[i + 1]; e++) {
        if (node->edges[e].node)
          results[e] = as_gradient(node, PySequence_Fast_GET_ITEM(list.get(), e - first[i]));
      }
    } else {
      results[first[i]] = as_gradient(node, value);
    }
  };
  if (op.joint.function || seen) {
    Ref<PyObject> flags = checked(PyTuple_New(op.input_count));
    for (int i = 0; i < op.input_count; i++)
      PyTuple_SET_ITEM(flags.get(), i, PyBool_FromLong(needs >> i & 1));
    Ref<PyObject> all;
    if (seen) all = call_rule(node, rule_seen(node), grads, flags.get());
    // It may leave a case to the rules themselves.
    bool left = !all || all.get() == Py_NotImplemented;
    if (left && op.joint.function) all = call_rule(node, op.joint, grads, flags.get());
    if (!left || op.joint.function) {
      if (!PyTuple_Check(all.get()) || PyTuple_GET_SIZE(all.get()) != op.input_count) {
        failf(PyExc_RuntimeError, "the joint rule of %s must return a tuple of %d gradients", op.name.c_str(),
              op.input_count);
      }
      for (int i = 0; i < op.input_count; i++) {
        if (needs >> i & 1) place(i, PyTuple_GET_ITEM(all.get(), i));
      }
      return;
    }
  }
  for (int i = 0; i < op.input_count; i++) {
    if (!(needs >> i & 1)) continue;
    const Rule& rule = op.rules[size_t(i)];
    Ref<PyObject> grad = call_known_rule(node, rule, grads, uint16_t(needs >> (i + 1) << (i + 1)));
    if (!grad) grad = call_rule(node, rule, grads, Py_None);
    place(i, grad.get());
  }
}

}  // namespace

const Node* derived_now() { return Unpacked::now ? Unpacked::now->node : nullptr; }

void read_saved(Node* node) {
  Unpacked once(node);
  if (node->extra && node->extra->kept) check_all_kept(node);
  unpack_all(node);
}

namespace {

// See Note [views and in-place].
void apply_copy_slices(Node* node, Tensor* const* grads, std::vector<TensorRef>& results,
                       const std::vector<bool>* wanted) {
  static Primitive& pick = primitive("pick");
  static Primitive& replace = primitive("replace");
  if (node->released) fail_freed(node);
  NodeExtra* extra = node->extra;
  Node* inner = extra->inner;
  PyObject *layout, *sizes, *strides, *offset;
  unsigned at;  // which of the edges is the base's
  unsigned nr;  // which of the inner operation's outputs was written
  int convert;  // -1: the view is of the parts of a complex base, 1: of a real base as complex numbers
  uint16_t base_lazy, lazy;  // Note [lazy views]: conj and neg are their own adjoints
  if (!PyArg_ParseTuple(extra->geometry, "OOOOIIiHH", &layout, &sizes, &strides, &offset, &at, &nr, &convert,
                        &base_lazy, &lazy))
    throw PythonError{};
  auto converted = [&](Tensor* t, bool to_real) {
    static Primitive& copy = primitive("contiguous_copy");
    static Primitive& as_real = primitive("view_as_real");
    static Primitive& as_complex = primitive("view_as_complex");
    return call_on(to_real ? as_real : as_complex, call_on(copy, t).get());
  };
  TensorRef whole = flipped(grads[0], base_lazy);
  if (convert) whole = converted(whole.get(), convert < 0);
  // Recorded as torch's steps: a copy of the gradient, and one of the part that is cut out of it.
  bool recorded = modes.grad && whole->requires_grad() && !dispatches(whole.get());
  if (recorded) {
    static Primitive& copy = primitive("copy");
    TensorRef memory = new_alias(whole.get());
    PyObject* copy_args[] = {memory->object(), whole->object()};
    whole = TensorRef(as_tensor(call(copy, copy_args)));
  }
  PyObject* pick_args[] = {whole->object(), layout, sizes, strides, offset};
  TensorRef part(as_tensor(call(pick, pick_args)));
  if (recorded) {
    static Primitive& clone = primitive("clone");
    if (part->grad_fn && part->grad_fn->op == &pick) part->grad_fn->op = renamed(&pick, "AsStridedBackward0");
    part = call_on(clone, part.get());
  }
  if (lazy) part = flipped(part.get(), lazy);
  std::vector<TensorRef> inner_results;
  std::vector<bool> inner_wanted(inner->edge_count, true);
  for (uint32_t i = 0; wanted && i < inner->edge_count; i++) inner_wanted[i] = i == at || (*wanted)[i];
  std::vector<Tensor*> inner_grads(inner->output_count);
  inner_grads.at(nr) = part.get();
  apply_node(inner, inner_grads.data(), inner_results, &inner_wanted);
  for (uint32_t i = 0; i < inner->edge_count; i++) {
    if (i != at && inner_results[i]) results[i] = fit_gradient(inner, i, std::move(inner_results[i]));
  }
  if (node->edges[at].node && (!wanted || (*wanted)[at])) {
    TensorRef view_grad = at < inner_results.size() ? inner_results[at] : TensorRef();
    if (!view_grad) view_grad = zeros(part->sizes(), part->dtype, part->device());
    if (lazy) view_grad = flipped(view_grad.get(), lazy);
    PyObject* replace_args[] = {whole->object(), view_grad->object(), layout, sizes, strides, offset};
    results[at] = TensorRef(as_tensor(call(replace, replace_args)));
    Node* made = results[at]->grad_fn;
    if (made && made->op == &replace) made->op = renamed(&replace, "torch::autograd::CopySlices");
    if (convert) results[at] = converted(results[at].get(), convert > 0);
    results[at] = flipped(results[at].get(), base_lazy);
  }
}

}  // namespace

void check_kept(Node* node, Tensor* alias, uint32_t version, int out) {
  if (counter_of(alias)->version != version) refuse_modified(node, alias, version, out);
}

bool keeps_whole(const Node* node, const Tensor* result, int out) {
  if (node->kind != Node::operation || dispatches(result)) return false;
  return primitive_number(node->op->number)->undetached >> out & 1;
}

Ref<PyObject> unpack(Node* node, int at, int out) {
  const Saved& saved = node->saved[at];
  if (!saved.object) fail_freed(node);
  if (is_packed(saved.object)) return unpack_once(node, saved.object, out);
  if (is_tensor(saved.object)) {
    TensorRef kept = share(as_tensor(saved.object));
    if (out < 0 && has_moved(kept.get())) kept = moved(kept.get());
    Tensor* alias = kept.get();
    check_version(node, alias, saved, out);
    if (out < 0 && was_detached(node, alias, at)) {
      fail_at(
          PyExc_RuntimeError,
          "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not "
          "supported, please use out-of-place `.detach()` instead",
          {{("It was saved by " + node_name(node)).c_str(), node->source}}, "");
    }
    if (out < 0) {
      if (node->kind == Node::custom) return share(alias->object());
      // Whoever looks on knows tensors by their identity.
      bool asked = asks_dispatch(alias);
      GradMode as_recorded(modes.grad || asked);
      Ref<PyObject> value = with_history(node, alias, at);
      return asked ? original(std::move(value)) : value;
    }
    bool asked = asks_dispatch(alias) && is_differentiable(alias->dtype) && !keeps_whole(node, alias, out);
    // A rule that is not recorded has no use for the history of an output; a user's backward may ask for it.
    bool recorded = modes.grad || node->kind == Node::custom;
    if ((!recorded && !asked) || (dispatches(alias) && !asked)) return share(alias->object());
    TensorRef value = asked ? dispatched_detach(alias) : new_alias(alias);
    if (!recorded) return Ref<PyObject>(value.release_object());
    if (carrying()) share_tangent(alias, value.get());
    if (is_differentiable(value->dtype)) {
      Py_INCREF(node->object());
      value->grad_fn = node;
      value->output_nr = uint32_t(out);
    }
    return Ref<PyObject>(value.release_object());
  }
  // A tuple of tensors, some of them perhaps packed or None. Held: an unpack hook may free the node's values.
  Ref<PyObject> values = share(saved.object);
  PyObject* first = nullptr;
  for (Py_ssize_t k = 0; PyTuple_CheckExact(values.get()) && k < PyTuple_GET_SIZE(values.get()); k++) {
    PyObject* one = PyTuple_GET_ITEM(values.get(), k);
    if (!first || !is_tensor(first)) first = is_tensor(one) || is_packed(one) ? one : first;
  }
  if (!first) return share(values.get());
  uint32_t versions = 0;
  bool packed = false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(values.get()); k++) {
    PyObject* one = PyTuple_GET_ITEM(values.get(), k);
    if (is_tensor(one)) versions += counter_of(as_tensor(one))->version;
    packed |= is_packed(one) || (is_tensor(one) && has_moved(as_tensor(one)));
  }
  if (versions != saved.version) refuse_one_modified(node, values.get(), versions - saved.version);
  if (!packed) return share(values.get());
  Ref<PyObject> list = checked(PyTuple_New(PyTuple_GET_SIZE(values.get())));
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(values.get()); k++) {
    PyObject* one = PyTuple_GET_ITEM(values.get(), k);
    PyObject* value = is_packed(one)                                ? unpack_once(node, one, -1).release()
                      : is_tensor(one) && has_moved(as_tensor(one)) ? moved(as_tensor(one)).release_object()
                                                                    : Py_NewRef(one);
    PyTuple_SET_ITEM(list.get(), k, value);
  }
  return list;
}

void apply_node(Node* node, Tensor* const* grads, std::vector<TensorRef>& results,
                const std::vector<bool>* wanted, Tensor** given) {
  results.assign(node->edge_count, TensorRef());
  switch (node->kind) {
    case Node::operation: return apply_operation(node, grads, results, wanted);
    case Node::copy_slices: return apply_copy_slices(node, grads, results, wanted);
    case Node::custom: return apply_function(node, grads, results, given);
    case Node::accumulate: return;
  }
}

}  // namespace rl
