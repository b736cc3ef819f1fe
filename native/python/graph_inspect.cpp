// What programs ask about the graph and the running backward behind torch's public names
// (rushlight/autograd/_native_names.py), and the names that composed operations give to their last node.
//
// Note [names of composed operations]
// An operation that is one node in torch may be composed of several here. The user called `roll` and expects
// to read RollBackward0, so the function that composes (`node_name` of a Function, functions.cpp) gives the
// node it ends with that name: `name_nodes` puts a copy of the node's primitive, the same but for the name,
// in its place. If that node is a view of what was computed on the way, the result is no view to the user.
// The nodes in between stay in the graph; `next_functions` leads past them to what the operation was called
// with (`outer_edges`, which knows by their numbers which they are). rushlight/ops/_node_names.py says which
// names there are.
//
// Note [what composed operations keep]
// `_saved_self` of such a node shows what the operation was called with. It keeps what it needs for that in a
// dict (NodeExtra::kept): numbers as they are, tensors as what nodes save, an alias and its version
// (`keep`), never the user's object, which might come to depend on the node. A backward checks the versions,
// as torch's derivative would that reads the tensors; one that frees the graph lets them go.
//
// Note [facades]
// `linear` is one node; torch records a transposition of the weight, a product, and around them views of
// input and result. A program that walks the graph sees them: next_functions of such a node asks
// rushlight/autograd/_facades.py, which makes nodes that stand for the steps within (`facade`), each with
// edges to the next and at the end to the real ones. They are made once per node and kept with it; no
// gradient runs through them. Hooks on one are put on the node it belongs to; whatever else would need a
// gradient there is refused.
#include <algorithm>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_set>

#include "../graph/custom.h"
#include "../graph/errors.h"
#include "../graph/living.h"
#include "../graph/modes.h"
#include "../graph/rules.h"
#include "../graph/shown.h"
#include "collector.h"
#include "primitive.h"
#include "tensor_type.h"

namespace rl {
namespace {

Tensor* tensor_argument(PyObject* o) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

// The nodes of the running backward, in the order in which they run.
PyObject* py_execution_order(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::vector<Node*> order = execution_order();
    Ref<PyObject> list = checked(PyList_New(Py_ssize_t(order.size())));
    for (size_t i = 0; i < order.size(); i++) {
      expose(order[i]);
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), Py_NewRef(order[i]->object()));
    }
    return list.release();
  });
}

PyObject* py_run_keeps_graph(PyObject*, PyObject*) { return PyBool_FromLong(run_keeps_graph()); }
PyObject* py_run_accumulates(PyObject*, PyObject*) { return PyBool_FromLong(run_accumulates()); }
PyObject* py_next_sequence(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(next_node_number()); }

PyObject* py_running_node(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Node* node = running_node();
    if (!node) Py_RETURN_NONE;
    expose(node);
    return Py_NewRef(node->object());
  });
}

// node_class(name): the class of the nodes with that name.
PyObject* py_node_class(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) return nullptr;
    return Py_NewRef(reinterpret_cast<PyObject*>(node_class(text)));
  });
}

// In torch's order of CreationMeta.
constexpr ViewOrigin ORIGINS[] = {ViewOrigin::ordinary, ViewOrigin::custom, ViewOrigin::multi_output,
                                  ViewOrigin::no_grad, ViewOrigin::inference};

Extra* extra_of_view(PyObject* o) {
  Tensor* t = tensor_argument(o);
  if (!t->base() || !t->extra->differentiable_view) fail(PyExc_RuntimeError, "the tensor is not a view");
  return t->extra;
}

PyObject* py_view_origin(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    ViewOrigin origin = extra_of_view(o)->origin;
    long at = 0;
    while (ORIGINS[at] != origin) at++;
    return PyLong_FromLong(at);
  });
}

PyObject* py_set_view_origin(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    int at;
    if (!PyArg_ParseTuple(args, "Oi", &o, &at)) return nullptr;
    if (at < 0 || at >= int(std::size(ORIGINS))) fail(PyExc_ValueError, "no such CreationMeta");
    extra_of_view(o)->origin = ORIGINS[at];
    Py_RETURN_NONE;
  });
}

// Note [names of variants]
// torch numbers the forms of an operation: FmodBackward0 by a number, FmodBackward1 by a tensor,
// AcoshBackward1 in place. One primitive serves them all; where the names differ, it is marked with
// NAMED_VARIANTS and its nodes are named when they are recorded.
struct Variants {
  std::string by_tensor, of_number, in_place, in_place_by_tensor;  // empty: the usual name
};
std::map<Primitive*, Variants> variants;

// set_variant_names(primitive name, by_tensor, of_number, in_place, in_place_by_tensor)
PyObject* py_set_variant_names(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *name, *by_tensor, *of_number, *in_place, *in_place_by_tensor;
    if (!PyArg_ParseTuple(args, "sssss", &name, &by_tensor, &of_number, &in_place, &in_place_by_tensor))
      return nullptr;
    Primitive& op = primitive(name);
    op.options |= NAMED_VARIANTS;
    variants[&op] = {by_tensor, of_number, in_place, in_place_by_tensor};
    Py_RETURN_NONE;
  });
}

// name_node(result, name, since, kept, inputs): what composed functions do that are not called by that name.
// Without `since` the last operation alone gets the name; `inputs` are what torch differentiates by.
PyObject* py_name_node(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* result;
    const char* name;
    unsigned long long since = 0;
    PyObject *kept = nullptr, *inputs = nullptr;
    if (!PyArg_ParseTuple(args, "Os|KO!O!", &result, &name, &since, &PyDict_Type, &kept, &PyTuple_Type,
                          &inputs))
      return nullptr;
    std::span<PyObject* const> given;
    if (inputs) given = {&PyTuple_GET_ITEM(inputs, 0), size_t(PyTuple_GET_SIZE(inputs))};
    PyObject* first =
        PyTuple_Check(result) && PyTuple_GET_SIZE(result) ? PyTuple_GET_ITEM(result, 0) : result;
    Node* last = is_tensor(first) ? as_tensor(first)->grad_fn : nullptr;
    if (!since && last) since = last->sequence;
    if (since) name_nodes(result, name, since, kept, given, inputs);
    return Py_NewRef(result);
  });
}

// keep(tensor): what `kept` reads.
PyObject* py_keep(PyObject*, PyObject* o) {
  return guarded([&] { return kept_tensor(tensor_argument(o)).release(); });
}

// keep_held(tensor): the same, of what no step saves. It counts as held by the node.
PyObject* py_keep_held(PyObject*, PyObject* o) {
  return guarded([&] {
    Ref<PyObject> kept = kept_tensor(tensor_argument(o));
    if (kept.get() != Py_None) hold_leaf(as_tensor(PyTuple_GET_ITEM(kept.get(), 0)), as_tensor(o));
    return kept.release();
  });
}

// kept(node, what keep gave): the tensor that was kept, checked as saved ones are.
PyObject* py_kept(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *o, *alias, *leaf;
    unsigned version;
    if (!PyArg_ParseTuple(args, "O!(OIO)", NodeType, &o, &alias, &version, &leaf)) return nullptr;
    auto* node = reinterpret_cast<Node*>(o);
    if (node->released) fail_freed(node);
    check_kept(node, tensor_argument(alias), version);
    if (PyObject_TypeCheck(leaf, NodeType)) {
      auto* accumulator = reinterpret_cast<Node*>(leaf);
      if (accumulator->kind == Node::accumulate && accumulator->saved_room[0].object)
        return Py_NewRef(accumulator->leaf()->object());
    }
    if (PyLong_Check(leaf)) {  // the node's own result
      TensorRef result = new_alias(as_tensor(alias));
      Py_INCREF(o);
      result->grad_fn = node;
      result->output_nr = uint32_t(read_int(leaf));
      return result.release_object();
    }
    return original(share(alias)).release();
  });
}

std::unordered_set<uint32_t> with_facades, with_views_within;  // Primitive::number
PyObject *facade_maker = nullptr, *operand_shower = nullptr;

bool add_primitives(std::unordered_set<uint32_t>& to, PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
    if (!name) return false;
    to.insert(primitive(name).number);
  }
  return true;
}

// show_facades(maker, primitives): maker(node) gives the tuple that next_functions shows, or None.
PyObject* py_show_facades(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *maker, *names;
    if (!PyArg_ParseTuple(args, "OO!", &maker, &PyTuple_Type, &names)) return nullptr;
    if (!add_primitives(with_facades, names)) return nullptr;
    Py_XSETREF(facade_maker, Py_NewRef(maker));
    Py_RETURN_NONE;
  });
}

// show_operands(operand, primitives): operand(node, name, value) gives the list of sizes that an operand has
// within torch's operation and what the view of it is called, None where it is no view, or False where the
// derivative does not read it.
PyObject* py_show_operands(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *operand, *names;
    if (!PyArg_ParseTuple(args, "OO!", &operand, &PyTuple_Type, &names)) return nullptr;
    if (!add_primitives(with_views_within, names)) return nullptr;
    Py_XSETREF(operand_shower, Py_NewRef(operand));
    Py_RETURN_NONE;
  });
}

// facade(node it belongs to, name, primitive, edges, sizes, dict of what it shows)
PyObject* py_facade(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *of, *edges, *sizes, *about;
    const char *name, *op;
    if (!PyArg_ParseTuple(args, "O!ssO!O!O!", NodeType, &of, &name, &op, &PyTuple_Type, &edges, &PyTuple_Type,
                          &sizes, &PyDict_Type, &about))
      return nullptr;
    auto* owner = reinterpret_cast<Node*>(of);
    Py_ssize_t count = PyTuple_GET_SIZE(edges);
    std::vector<int64_t> shape;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes); i++)
      shape.push_back(read_int(PyTuple_GET_ITEM(sizes, i)));
    if (owner->kind != Node::operation || !owner->output_count || shape.size() > 64)
      fail(PyExc_ValueError, "no facade can stand here");
    Ref<Node> node = new_node(Node::operation, renamed(&primitive(op), name), uint32_t(count), 0);
    for (Py_ssize_t i = 0; i < count; i++) {
      PyObject* next;
      unsigned nr;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(edges, i), "OI", &next, &nr)) return nullptr;
      if (!PyObject_TypeCheck(next, NodeType)) continue;
      Py_INCREF(next);
      node->edges[i] = {reinterpret_cast<Node*>(next), nr};
    }
    node->sequence = owner->sequence;
    set_outputs(node.get(), 1);
    OutputInfo& info = node->outputs[0];
    info.ndim = uint8_t(shape.size());
    info.dtype = owner->outputs[0].dtype;
    info.device = owner->outputs[0].device;
    info.sizes = info.ndim > 4 ? new int64_t[info.ndim] : nullptr;
    std::ranges::copy(shape, info.ndim > 4 ? info.sizes : info.room);
    extra_of(node.get())->kept = Py_NewRef(about);
    expose(node.get());
    return Py_NewRef(node->object());
  });
}

PyObject* py_enforces_layout(PyObject*, PyObject*) { return PyBool_FromLong(enforces_layout); }
PyObject* py_set_enforces_layout(PyObject*, PyObject* on) {
  int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  enforces_layout = truth;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_is_grad_layout_enforcement_enabled", py_enforces_layout, METH_NOARGS, nullptr},
                           {"_set_grad_layout_enforcement_enabled", py_set_enforces_layout, METH_O, nullptr},
                           {"show_facades", py_show_facades, METH_VARARGS, nullptr},
                           {"show_operands", py_show_operands, METH_VARARGS, nullptr},
                           {"facade", py_facade, METH_VARARGS, nullptr},
                           {"keep", py_keep, METH_O, nullptr},
                           {"keep_held", py_keep_held, METH_O, nullptr},
                           {"kept", py_kept, METH_VARARGS, nullptr},
                           {"name_node", py_name_node, METH_VARARGS, nullptr},
                           {"set_variant_names", py_set_variant_names, METH_VARARGS, nullptr},
                           {"execution_order", py_execution_order, METH_NOARGS, nullptr},
                           {"run_keeps_graph", py_run_keeps_graph, METH_NOARGS, nullptr},
                           {"run_accumulates", py_run_accumulates, METH_NOARGS, nullptr},
                           {"running_node", py_running_node, METH_NOARGS, nullptr},
                           {"next_sequence", py_next_sequence, METH_NOARGS, nullptr},
                           {"node_class", py_node_class, METH_O, nullptr},
                           {"view_origin", py_view_origin, METH_O, nullptr},
                           {"set_view_origin", py_set_view_origin, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace

Ref<PyObject> kept_tensor(Tensor* t) {
  if (t->flags & Tensor::INFERENCE && !recording()) return share(Py_None);
  check_savable(t);
  TensorRef alias = new_alias(t);
  alias->flags |= t->flags & Tensor::REQUIRES_GRAD;
  alias->output_nr = t->output_nr;
  alias->grad_fn = t->grad_fn;
  if (t->grad_fn) Py_INCREF(t->grad_fn->object());
  Node* leaf = !t->grad_fn && t->extra && t->flags & Tensor::REQUIRES_GRAD ? t->extra->accumulator : nullptr;
  if (leaf && !leaf->saved_room[0].object) leaf = nullptr;  // asleep: no graph leads there
  return checked(Py_BuildValue("(NIO)", alias.release_object(), counter_of(t)->version,
                               leaf ? leaf->object() : Py_None));
}

// A facade knows whose it is.
bool is_facade(const Node* node) {
  PyObject* kept = node->kind == Node::operation && node->extra ? node->extra->kept : nullptr;
  return kept && PyDict_GetItemString(kept, "owner");
}

void refuse_facade(const Node* node, const char* what) {
  if (!is_facade(node)) return;
  failf(PyExc_NotImplementedError,
        "%s stands for a step within an operation that Rushlight computes as one: %s is not supported on it",
        node_name(node).c_str(), what);
}

Ref<PyObject> facades_behind(Node* node) {
  if (node->kind != Node::operation || !with_facades.contains(node->op->number) || is_facade(node)) return {};
  PyObject* kept = node->extra ? node->extra->kept : nullptr;
  if (kept && PyDict_GetItemString(kept, "")) return {};  // the last step of a composed function
  PyObject* known = kept ? PyDict_GetItemString(kept, "next") : nullptr;
  if (known && PyTuple_CheckExact(known)) return share(known);
  expose(node);
  Ref<PyObject> next = checked(PyObject_CallOneArg(facade_maker, node->object()));
  if (!PyTuple_CheckExact(next.get())) return {};
  PyObject*& place = extra_of(node)->kept;
  if (!place) place = checked(PyDict_New()).release();
  if (PyDict_SetItemString(place, "next", next.get()) < 0) throw PythonError{};
  expect_loop(node->object());  // what is hung on a facade may refer back to it
  return next;
}

SeenOperand operand_within(Node* node, int arg, int out, Tensor* value) {
  if (node->kind != Node::operation || !with_views_within.contains(node->op->number)) return {};
  const std::vector<std::string>& names = out >= 0 ? node->op->outputs : node->op->args;
  int at = out >= 0 ? out : arg;
  if (at < 0 || size_t(at) >= names.size()) return {};
  expose(node);
  Ref<PyObject> alias(new_alias(value).release_object());
  Ref<PyObject> seen = checked(
      PyObject_CallFunction(operand_shower, "OsO", node->object(), names[size_t(at)].c_str(), alias.get()));
  if (seen.get() == Py_None) return {};
  if (seen.get() == Py_False) return {{}, {}, true};
  PyObject* sizes;
  const char* view;
  if (!PyArg_ParseTuple(seen.get(), "Os", &sizes, &view)) throw PythonError{};
  Ref<PyObject> text = checked(PyObject_Str(sizes));
  const char* chars = PyUnicode_AsUTF8(text.get());
  if (!chars) throw PythonError{};
  return {chars, view};
}

namespace {
constexpr uint32_t FIRST_STAMP = 1 << 20;  // beyond the numbers of primitives
std::deque<std::string> stamped;           // the names of nodes that are not primitives' own

uint32_t stamp_named(const std::string& name) {
  auto known = std::ranges::find(stamped, name);
  if (known == stamped.end()) known = stamped.insert(stamped.end(), name);
  return FIRST_STAMP + uint32_t(known - stamped.begin());
}
}  // namespace

Primitive* renamed(Primitive* op, const std::string& name) {
  static std::map<std::pair<Primitive*, std::string>, Primitive*> known;
  Primitive*& other = known[{op, name}];
  if (!other) {
    other = new Primitive(*op);
    other->node_name = name;
    other->node_type = nullptr;
    other->stamp = stamp_named(name);
  }
  return other;
}

void stamp_write(Tensor* t) {
  const Node* node = t->grad_fn;
  t->storage->written.operation =
      node->kind == Node::operation ? node->op->stamp : stamp_named(node_name(node));
}

const std::string* stamped_by(uint32_t stamp) {
  if (stamp >= FIRST_STAMP)
    return stamp - FIRST_STAMP < stamped.size() ? &stamped[stamp - FIRST_STAMP] : nullptr;
  const Primitive* op = primitive_number(stamp);
  return op ? &op->node_name : nullptr;
}

namespace {

bool is_inner(const Node* node, uint64_t since) {
  return node && node->kind == Node::operation && node->sequence >= since;
}

// Depth first, each inner node once; a stack of its own, as there may be any number of them.
void add_outer(const Node* node, uint64_t since, std::vector<Edge>& found) {
  std::vector<std::pair<const Node*, uint32_t>> path{{node, 0}};
  std::unordered_set<const Node*> seen;
  while (!path.empty()) {
    auto& [at, next] = path.back();
    if (next == at->edge_count) {
      path.pop_back();
      continue;
    }
    Edge edge = at->edges[next++];
    if (is_inner(edge.node, since)) {
      if (seen.insert(edge.node).second) path.emplace_back(edge.node, 0);
      continue;
    }
    auto same = [&](Edge e) { return e.node == edge.node && e.nr == edge.nr; };
    if (edge.node && std::ranges::none_of(found, same)) found.push_back(edge);
  }
}

}  // namespace

bool outer_edges(const Node* node, std::vector<Edge>& found) {
  PyObject* kept = node->kind == Node::operation && node->extra ? node->extra->kept : nullptr;
  PyObject* since = kept ? PyDict_GetItemString(kept, "") : nullptr;
  if (!since || !PyTuple_CheckExact(since) || PyTuple_GET_SIZE(since) % 2 || !PyTuple_GET_SIZE(since))
    return false;
  add_outer(node, PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(since, 0)), found);
  // In the order of the arguments; what is no argument's history stays behind.
  std::vector<Edge> walked, rest;
  walked.swap(found);
  rest = walked;
  bool all = PyTuple_GET_ITEM(since, 1) == Py_True;
  for (Py_ssize_t at = 2; at < PyTuple_GET_SIZE(since); at += 2) {
    const void* address = PyLong_AsVoidPtr(PyTuple_GET_ITEM(since, at));
    unsigned long nr = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(since, at + 1));
    auto same = [&](Edge e) { return e.node == address && e.nr == nr; };
    auto next = std::ranges::find_if(walked, same);
    if (next != walked.end()) {
      found.push_back(*next);  // as often as it is an argument
      std::erase_if(rest, same);
    } else if (all) found.push_back({nullptr, 0});
  }
  if (!all) found.insert(found.end(), rest.begin(), rest.end());
  if (found.empty()) found.push_back({nullptr, 0});  // of what has no history, a view made without one
  return true;
}

namespace {

// (since, all, node, nr, node, nr ...): where the inner nodes begin, and the histories of the arguments in
// their order; `all`: those without one have their place too. The nodes are addresses only, to be compared.
Ref<PyObject> outside(uint64_t since, std::span<PyObject* const> args, bool all, PyObject* result,
                      Edge written) {
  std::vector<Edge> edges;
  for (PyObject* arg : args) {
    if (arg == result && written.node) {  // in place: its history is not what it was
      edges.push_back(written);
      continue;
    }
    const Tensor* t = is_tensor(arg) ? as_tensor(arg) : nullptr;
    Node* node = !t ? nullptr : t->grad_fn ? t->grad_fn : t->extra ? t->extra->accumulator : nullptr;
    if (node || all) edges.push_back({node, t && t->grad_fn ? t->output_nr : 0});
  }
  if (edges.size() < 2 && !all) edges.clear();
  Ref<PyObject> found = checked(PyTuple_New(Py_ssize_t(2 + 2 * edges.size())));
  PyTuple_SET_ITEM(found.get(), 0, checked(PyLong_FromUnsignedLongLong(since)).release());
  PyTuple_SET_ITEM(found.get(), 1, PyBool_FromLong(all));
  for (size_t i = 0; i < edges.size(); i++) {
    Py_ssize_t at = Py_ssize_t(2 + 2 * i);
    PyTuple_SET_ITEM(found.get(), at, checked(PyLong_FromVoidPtr(edges[i].node)).release());
    PyTuple_SET_ITEM(found.get(), at + 1, checked(PyLong_FromUnsignedLong(edges[i].nr)).release());
  }
  return found;
}

}  // namespace

void name_nodes(PyObject* result, const char* name, uint64_t since, PyObject* kept,
                std::span<PyObject* const> args, bool all, Edge written) {
  if (PyTuple_Check(result) || PyList_Check(result)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); i++)
      name_nodes(PySequence_Fast_GET_ITEM(result, i), name, since, kept, args, all, written);
    return;
  }
  if (!is_tensor(result)) return;
  bool alone = name && *name == '=';  // torch composes it too; the name is the last operation's only
  if (alone) name++;
  Tensor* t = as_tensor(result);
  Node* node = t->grad_fn;
  if (!node || node->kind != Node::operation || node->sequence < since) return;
  // A view that the caller gave and that was written in place is the caller's, though nobody holds its base.
  bool given = std::ranges::find(args, result) != args.end();
  bool inner_view = !given && t->base() && Py_REFCNT(t->base()->object()) == 1;
  // A view that was written in place has its history from its base.
  std::string_view step = node->op->name;
  bool named = !name || node->op->node_name == name;
  if (named && step.starts_with("again") && node->extra && node->extra->kept) return;
  bool repeated = given && t->extra && t->extra->steps && t->base() && t->base()->grad_fn &&
                  t->base()->grad_fn->kind == Node::copy_slices;
  bool from_base = step == "as_strided" ? name && *name != 'A' : repeated;
  if (name && !inner_view && t->base() && from_base) return;
  // A reshape is an unsafe view if it had to copy. Otherwise it is the view that it is, called so by torch if
  // the elements lie one after the other.
  if (name && t->base() && !inner_view && std::string_view(name) == "UnsafeViewBackward0") {
    const Tensor* from = !args.empty() && is_tensor(args[0]) ? as_tensor(args[0]) : t;
    if (contiguous_flags(from->sizes(), from->strides())) return;
    name = "ReshapeAliasBackward0";
  }
  if (name && node->op->node_name != name) {
    uint32_t& stamp = t->storage->written.operation;
    bool wrote = stamp == node->op->stamp;
    node->op = renamed(node->op, name);
    if (wrote) stamp = node->op->stamp;
    if (Py_TYPE(node) != NodeType) {  // a hook on what was saved has looked at it
      PyTypeObject* seen = Py_TYPE(node);
      Py_SET_TYPE(node, NodeType);
      Py_INCREF(NodeType);
      Py_DECREF(seen);
      expose(node);
    }
  }
  bool inner = false;
  for (uint32_t i = 0; name && !alone && i < node->edge_count && !inner; i++)
    inner = is_inner(node->edges[i].node, since);
  Ref<PyObject> dict = kept ? share(kept) : inner ? checked(PyDict_New()) : Ref<PyObject>();
  if (inner || (all && kept)) {
    if (PyDict_SetItemString(dict.get(), "", outside(since, args, all, result, written).get()) < 0)
      throw PythonError{};
  }
  if (dict) Py_XSETREF(extra_of(node)->kept, dict.release());
  if (!name) return;
  if (inner_view) t->extra->differentiable_view = false;
}

namespace {

// Whether it is one of the arguments, or in a list of them: what works in place, has nothing to do or writes
// an out= returns what it was given.
bool is_given(PyObject* result, std::span<PyObject* const> args) {
  for (PyObject* arg : args) {
    if (arg == result) return true;
    if (!PyTuple_Check(arg) && !PyList_Check(arg)) continue;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(arg); i++)
      if (PySequence_Fast_GET_ITEM(arg, i) == result) return true;
  }
  return false;
}

}  // namespace

void hide_inner_view(PyObject* result, std::span<PyObject* const> args) {
  if (PyTuple_Check(result)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); i++)
      hide_inner_view(PyTuple_GET_ITEM(result, i), args);
    return;
  }
  if (!is_tensor(result)) return;
  Tensor* t = as_tensor(result);
  if (!t->base() || is_given(result, args)) return;
  // What the operation was called with is still referred to by its caller.
  // A result of a user's class is a view of a plain one that nobody has.
  if (!is_plain_tensor(result)) return;
  if (Py_REFCNT(t->base()->object()) == 1) t->extra->differentiable_view = false;
}

void name_number_form(Node* node, PyObject* const* args) {
  static const std::map<const Primitive*, Primitive*> forms = [] {
    std::map<const Primitive*, Primitive*> found;
    for (auto [name, node_name] : {std::pair{"add", "AddBackward1"},
                                   {"sub", "SubBackward1"},
                                   {"mul", "MulBackward1"},
                                   {"div", "DivBackward1"},
                                   {"rsub_number", "SubBackward0"}}) {
      Primitive& op = primitive(name);
      found[&op] = renamed(&op, node_name);
    }
    return found;
  }();
  static Primitive& conj = primitive("conj");
  static Primitive* conj_view = renamed(&conj, "ConjBackward0");
  if (node->op == &conj) {  // torch's derivatives make views, but for that of a copy
    const Node* of = derived_now();
    if (!of || of->op != &conj) node->op = conj_view;
    return;
  }
  auto found = forms.find(node->op);
  if (found == forms.end()) return;
  if (!is_tensor(args[1]) || (!is_tensor(args[0]) && node->op->name != "div")) node->op = found->second;
}

void name_variant(Node* node, PyObject* const* args, bool in_place) {
  auto found = variants.find(node->op);
  if (found == variants.end()) return;
  const Variants& names = found->second;
  int last = node->op->input_count - 1;
  bool by_tensor = last > 0 && is_tensor(args[last]);
  const std::string* name = nullptr;
  if (in_place)
    name = by_tensor && !names.in_place_by_tensor.empty() ? &names.in_place_by_tensor : &names.in_place;
  if (!name || name->empty()) {
    name = !is_tensor(args[0]) ? &names.of_number : by_tensor ? &names.by_tensor : nullptr;
  }
  if (name && !name->empty()) node->op = renamed(node->op, *name);
}

}  // namespace rl
