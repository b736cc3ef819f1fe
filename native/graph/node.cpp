#include "node.h"

#include <algorithm>

#include "../python/primitive.h"
#include "../python/tensor_type.h"
#include "../tensor/free_lists.h"
#include "custom.h"
#include "living.h"
#include "modes.h"

namespace rl {

PyTypeObject* NodeType = nullptr;
thread_local Modes modes;
bool anomaly = false, anomaly_check_nan = true;

namespace {

uint64_t next_sequence = 1;
std::vector<Node*> free_nodes;

// Note [freeing deep graphs]
// Freeing a node frees its inputs' nodes, and so on down a chain that may be a million long. The first
// node_dealloc on the stack does the work; those it causes only queue up here.
std::vector<Node*> doomed;
bool freeing = false;

// Note [sleeping accumulators]
// A leaf's AccumulateGrad node lives only while a graph refers to it, so `a * b` on two leaves would make and
// free two of them each time. One that nobody refers to any more goes to sleep instead: it stays in
// Extra::accumulator without owning its leaf (saved_room[0] is empty) and without a reference, and
// accumulator_of wakes it. A third of the time of a small recorded operation on leaves.
bool is_asleep(const Node* accumulator) { return !accumulator->saved_room[0].object; }

bool put_to_sleep(Node* node) {
  if (node->kind != Node::accumulate || node->extra || node->weakrefs || Py_TYPE(node) != NodeType)
    return false;
  if (is_asleep(node)) return false;
  Tensor* leaf = node->leaf();
  if (!leaf->extra || leaf->extra->accumulator != node) return false;
  node->saved_room[0].object = nullptr;
  node->saved_count = 0;
  Py_DECREF(leaf->object());  // may free the leaf, and this node with it
  return true;
}

void clear_edges(Node* node) {
  for (uint32_t i = 0; i < node->edge_count; i++) Py_CLEAR(node->edges[i].node);
  if (node->edges != node->edge_room) delete[] node->edges;
  node->edges = node->edge_room;
  node->edge_count = 0;
}

// Its leaf makes another accumulator when it needs one.
void leave_leaf(Node* node) {
  if (node->kind != Node::accumulate || is_asleep(node)) return;
  Extra* extra = node->leaf()->extra;
  if (extra && extra->accumulator == node) extra->accumulator = nullptr;
}

void clear_saved(Node* node) {
  leave_leaf(node);
  if (node->kind == Node::accumulate) Py_CLEAR(node->saved_room[0].object);
  else
    for (uint16_t i = 0; i < node->saved_count; i++) release(node->saved[i]);
  if (node->saved != node->saved_room) delete[] node->saved;
  node->saved = node->saved_room;
  node->saved_count = 0;
}

void clear_outputs(Node* node) {
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (node->outputs[i].ndim > 4) delete[] node->outputs[i].sizes;
  }
  if (node->outputs != &node->output_room) delete[] node->outputs;
  node->outputs = &node->output_room;
  node->output_count = 0;
}

void clear_extra(Node* node) {
  NodeExtra* extra = std::exchange(node->extra, nullptr);
  if (!extra) return;
  Py_XDECREF(extra->dict);
  Py_XDECREF(extra->tensor_hooks);
  Py_XDECREF(extra->retained);
  Py_XDECREF(extra->prehooks);
  Py_XDECREF(extra->posthooks);
  Py_XDECREF(reinterpret_cast<PyObject*>(extra->inner));
  Py_XDECREF(extra->geometry);
  Py_XDECREF(extra->kept);
  Py_XDECREF(extra->moved);
  Py_XDECREF(extra->detached);
  delete extra;
}

void destroy(Node* node) {
  if (node->weakrefs) PyObject_ClearWeakRefs(node->object());
  clear_saved(node);
  clear_edges(node);
  clear_outputs(node);
  clear_extra(node);
  if (node->kind == Node::custom) clear_function(as_function(node));
  drop(node->source);
  drop(node->freed_at);
  PyTypeObject* type = Py_TYPE(node);
  if (type == NodeType || (node->op && type == node->op->node_type)) {
    if (free_nodes.size() < MOST_WAITING) {
      free_nodes.push_back(node);
      Py_DECREF(type);
      return;
    }
  }
  PyObject_GC_Del(node);
  Py_DECREF(type);
}

}  // namespace

void node_dealloc(PyObject* self) {
  auto* node = reinterpret_cast<Node*>(self);
  PyObject_GC_UnTrack(self);
  if (put_to_sleep(node)) return;
  leave_leaf(node);  // what runs before its turn comes must not find it
  doomed.push_back(node);
  if (freeing) return;  // see Note [freeing deep graphs]
  freeing = true;
  while (!doomed.empty()) {
    Node* next = doomed.back();
    doomed.pop_back();
    destroy(next);
  }
  freeing = false;
}

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* node = reinterpret_cast<Node*>(self);
  Py_VISIT(Py_TYPE(self));
  for (uint32_t i = 0; i < node->edge_count; i++) Py_VISIT(node->edges[i].node);
  for (uint16_t i = 0; i < node->saved_count; i++) Py_VISIT(node->saved[i].object);
  if (NodeExtra* extra = node->extra) {
    Py_VISIT(extra->dict);
    Py_VISIT(extra->tensor_hooks);
    Py_VISIT(extra->retained);
    Py_VISIT(extra->prehooks);
    Py_VISIT(extra->posthooks);
    Py_VISIT(extra->inner);
    Py_VISIT(extra->geometry);
    Py_VISIT(extra->kept);
    Py_VISIT(extra->moved);
    Py_VISIT(extra->detached);
  }
  return node->kind == Node::custom ? visit_function(as_function(node), visit, arg) : 0;
}

int node_clear(PyObject* self) {
  auto* node = reinterpret_cast<Node*>(self);
  clear_saved(node);
  clear_edges(node);
  clear_extra(node);
  if (node->kind == Node::custom) clear_function(as_function(node));
  return 0;
}

Ref<Node> new_node(Node::Kind kind, Primitive* op, uint32_t edges, uint16_t saved) {
  Node* node;
  if (!free_nodes.empty()) {
    node = free_nodes.back();
    free_nodes.pop_back();
    Py_SET_TYPE(node, NodeType);
    Py_INCREF(NodeType);
    revive(node->object());
  } else {
    node = new_collectable<Node>(NodeType);
    if (!node) throw PythonError{};
  }
  Ref<Node> result(node);
  init_node(node, kind, op, edges, saved);
  return result;
}

namespace {

// Anomaly mode: the stack of the call that makes the node, and the node whose derivative is being recorded.
void record_trace(Node* node) {
  static thread_local bool tracing = false;
  if (tracing) return;  // what runs here is not to be traced itself
  tracing = true;
  Ref<PyObject> module(PyImport_ImportModule("rushlight.autograd.anomaly_mode"));
  Ref<PyObject> trace(module ? PyObject_CallMethod(module.get(), "_forward_trace", nullptr) : nullptr);
  tracing = false;
  if (!trace) throw PythonError{};
  NodeExtra* extra = extra_of(node);
  if (!extra->dict) extra->dict = checked(PyDict_New()).release();
  if (PyDict_SetItemString(extra->dict, "traceback_", trace.get()) < 0) throw PythonError{};
  if (Node* parent = running_node()) {
    expose(parent);
    if (PyDict_SetItemString(extra->dict, "parent_", parent->object()) < 0) throw PythonError{};
  }
}

}  // namespace

void init_node(Node* node, Node::Kind kind, Primitive* op, uint32_t edges, uint16_t saved) {
  // Field by field: clearing the whole node first is compiled to `rep stos`, half the time of this function.
  node->weakrefs = nullptr;
  node->op = op;
  node->sequence = next_sequence;
  next_sequence += kind != Node::accumulate;  // leaves are not numbered
  node->source = {};
  node->freed_at = {};
  node->kind = kind;
  node->released = false;
  node->saved_count = saved;
  node->edge_count = edges;
  node->output_count = 0;
  node->needs = node->want_args = node->want_shapes = node->want_outs = node->turned = 0;
  node->edges = node->edge_room;
  node->edge_room[0] = node->edge_room[1] = {};
  node->saved = node->saved_room;
  node->saved_room[0] = node->saved_room[1] = {};
  node->outputs = &node->output_room;
  node->output_room.ndim = 0;
  node->output_room.sizes = nullptr;
  node->run = 0;
  node->run_info = RunInfo{};
  node->grad_room = nullptr;
  node->extra = nullptr;
  if (edges > 2) node->edges = new Edge[edges]{};
  if (saved > 2) node->saved = new Saved[saved]{};
  node->source = keep(current_source());
  if (anomaly && kind != Node::accumulate) record_trace(node);
}

NodeExtra* extra_of(Node* node) {
  if (!node->extra) node->extra = new NodeExtra{};
  return node->extra;
}

void set_outputs(Node* node, uint32_t count) {
  if (count != 1) node->outputs = new OutputInfo[count]{};
  node->output_count = count;
}

void set_output(Node* node, uint32_t nr, const Tensor* t) {
  OutputInfo& info = node->outputs[nr];
  info.ndim = t->ndim;
  info.dtype = t->dtype;
  info.device = t->device();
  if (t->ndim <= 4) {
    std::memcpy(info.room, t->room, sizeof info.room);
    info.sizes = nullptr;  // Note [living outputs], living.h
  } else {
    info.sizes = new int64_t[t->ndim];
    std::copy_n(t->geometry, t->ndim, info.sizes);
  }
}

namespace {

// What `keep` gave, or a list of such.
bool keeps_tensors(PyObject* value) {
  if (PyList_Check(value)) return PyList_GET_SIZE(value) && keeps_tensors(PyList_GET_ITEM(value, 0));
  return PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 3 && is_tensor(PyTuple_GET_ITEM(value, 0));
}

// Note [what composed operations keep], python/graph_inspect.cpp. Several nodes may have the same dict.
// Returns whether there was anything to let go of.
bool release_kept(PyObject*& kept) {
  Ref<PyObject> rest = checked(PyDict_New());
  bool any = false;
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(kept, &at, &name, &value)) {
    bool tensors = keeps_tensors(value);
    any |= tensors;
    if (PyDict_SetItem(rest.get(), name, tensors ? Py_None : value) < 0) throw PythonError{};
  }
  Py_SETREF(kept, rest.release());
  return any;
}

}  // namespace

void release_saved(Node* node, Source by) {
  // The operation inside is a node of its own too where a second derivative leads through its result.
  if (node->kind == Node::copy_slices && node->extra && node->extra->inner &&
      Py_REFCNT(node->extra->inner->object()) == 1)
    release_saved(node->extra->inner, by);
  // It lets go of the operation it wraps, whether or not that has saved anything.
  if (node->kind == Node::copy_slices && !node->released) {
    node->released = true;
    if (!node->freed_at.code) node->freed_at = keep(by);
  }
  if (node->kind == Node::custom && !node->released) {
    node->released = true;
    for (uint16_t i = 0; i < node->saved_count; i++) release(node->saved[i]);
    if (!node->freed_at.code) node->freed_at = keep(by);
    return;
  }
  if (node->kind != Node::operation || node->released) return;
  node->released = true;
  bool any = node->extra && node->extra->kept && release_kept(node->extra->kept);
  int at = 0;
  for (int i = 0; node->want_args >> i; i++) {
    if (!(node->want_args >> i & 1)) continue;
    if (i < node->op->input_count) {
      release(node->saved[at]);
      any = true;
    }
    at++;
  }
  at = node->saved_count - bit_count(node->want_outs);
  for (; at < node->saved_count; at++) {
    release(node->saved[at]);
    any = true;
  }
  if (any && !node->freed_at.code) node->freed_at = keep(by);
}

std::string node_name(const Node* node) {
  switch (node->kind) {
    case Node::operation: return node->op->node_name;
    case Node::accumulate: return "torch::autograd::AccumulateGrad";
    case Node::copy_slices: return "torch::autograd::CopySlices";
    default: return Py_TYPE(node)->tp_name;
  }
}

std::string operation_name(std::string_view node) {
  size_t at = node.rfind("Backward");
  if (at == node.npos) return std::string(node);
  std::string_view form =
      node.substr(at + 8);  // torch counts the forms of an operation; the first is not told
  if (form.find_first_not_of("0123456789") != form.npos) return std::string(node);
  return std::string(node.substr(0, at)) + std::string(form == "0" ? "" : form);
}

uint64_t next_node_number() { return next_sequence; }

Ref<Node> accumulator_of(Tensor* leaf) {
  Extra* extra = extra_of(leaf);
  if (Node* known = extra->accumulator) {
    if (!is_asleep(known)) return share(known);
    revive(known->object());
    Ref<Node> woken(known);
    known->saved_room[0].object = Py_NewRef(leaf->object());
    known->saved_count = 1;
    const OutputInfo& info = known->output_room;
    bool same =
        info.ndim == leaf->ndim && info.dtype == gradient_dtype(leaf) && info.device == leaf->device();
    const int64_t* sizes = info.shape().data();
    for (int d = 0; same && d < leaf->ndim; d++) same = sizes[d] == leaf->geometry[d];
    if (!same) {
      clear_outputs(known);  // the leaf changed its shape meanwhile
      set_outputs(known, 1);
      set_output(known, 0, leaf);
      known->outputs[0].dtype = gradient_dtype(leaf);
    }
    if (anomaly) record_trace(known);
    return woken;
  }
  Ref<Node> node = new_node(Node::accumulate, nullptr, 0, 1);
  node->saved[0].object = Py_NewRef(leaf->object());
  set_outputs(node.get(), 1);
  set_output(node.get(), 0, leaf);
  node->outputs[0].dtype = gradient_dtype(leaf);
  extra->accumulator = node.get();
  if (anomaly) record_trace(node.get());
  return node;
}

void forget_accumulator(Extra* extra) {
  Node* node = std::exchange(extra->accumulator, nullptr);
  if (node && is_asleep(node)) destroy(node);
}

void tell_savers(Tensor* t) {
  if (!t->grad_fn) return;
  NodeExtra* extra = extra_of(t->grad_fn);
  if (!extra->moved) extra->moved = checked(PyDict_New()).release();
  Ref<PyObject> nr = checked(PyLong_FromLong(t->output_nr));
  TensorRef alias = new_alias(t);
  if (PyDict_SetItem(extra->moved, nr.get(), alias->object()) < 0) throw PythonError{};
}

void note_detached(Tensor* t) {
  if (!t->grad_fn) return;
  NodeExtra* extra = extra_of(t->grad_fn);
  if (!extra->detached) extra->detached = checked(PySet_New(nullptr)).release();
  Ref<PyObject> nr = checked(PyLong_FromLong(t->output_nr));
  if (PySet_Add(extra->detached, nr.get()) < 0) throw PythonError{};
}

bool was_detached(const Edge& edge) {
  if (!edge.node || !edge.node->extra || !edge.node->extra->detached) return false;
  Ref<PyObject> nr = checked(PyLong_FromLong(edge.nr));
  int found = PySet_Contains(edge.node->extra->detached, nr.get());
  if (found < 0) throw PythonError{};
  return found;
}

Edge gradient_edge(Tensor* t) {
  if (t->extra && t->extra->base) refresh_view(t);
  if (t->grad_fn) {
    Py_INCREF(t->grad_fn->object());
    return {t->grad_fn, t->output_nr};
  }
  if (t->flags & Tensor::REQUIRES_GRAD) return {accumulator_of(t).release(), 0};
  return {nullptr, 0};
}

}  // namespace rl
