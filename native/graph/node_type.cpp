// The Python type of nodes: what `grad_fn` shows, can be asked and be called with. What a node is, and how it
// comes and goes, is in node.cpp.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "../python/collector.h"
#include "../python/primitive.h"
#include "../python/tensor_type.h"
#include "custom.h"
#include "living.h"
#include "modes.h"
#include "rules.h"
#include "shown.h"

namespace rl {

bool shows_edge(const Node* node, uint32_t edge) {
  // A written view has the edges of the operation that wrote; that of the base is always among them.
  if (node->kind == Node::copy_slices && node->extra && node->extra->geometry &&
      edge == PyLong_AsUnsignedLong(PyTuple_GET_ITEM(node->extra->geometry, 4)))
    return true;
  if (node->kind == Node::copy_slices && !node->edges[edge].node && node->extra && node->extra->inner &&
      edge < node->extra->inner->edge_count)
    return shows_edge(node->extra->inner, edge);
  if (node->kind != Node::operation || node->edges[edge].node) return true;
  // torch's form of the operation takes a number there, or something else that has no history.
  static const std::set<std::string_view> others = {"AddBackward1",
                                                    "SubBackward1",
                                                    "RsubBackward1",
                                                    "MulBackward1",
                                                    "DivBackward1",
                                                    "FmodBackward0",
                                                    "RemainderBackward0",
                                                    "torch::autograd::NotImplemented",
                                                    "NotImplemented",
                                                    "XlogyBackward1",
                                                    "XlogyBackward2",
                                                    "ConjPhysicalBackward1",
                                                    "RreluWithNoiseBackward0",
                                                    "RreluWithNoiseBackward1",
                                                    "MaskedFillBackward0",
                                                    "IndexFillBackward0",
                                                    "FillBackward0",
                                                    "FillBackward2",
                                                    "ZeroBackward0"};
  if (others.contains(node->op->node_name)) {
    // What is filled has its place, also without a history: a view that was made without recording.
    return edge == 0 &&
           (node->op->node_name == "MaskedFillBackward0" || node->op->node_name == "IndexFillBackward0");
  }
  if (edge >= 3 && node->op->node_name == "NativeBatchNormBackward0") return false;
  // Which input the edge belongs to; a list of tensors has as many as are left over.
  uint32_t input = 0, inputs = uint32_t(node->op->input_count);
  for (uint32_t at = 0; input < inputs; input++) {
    bool list = node->op->list_inputs >> input & 1;
    at += list ? node->edge_count - (inputs - 1) : 1;
    if (edge < at) break;
  }
  if (input >= inputs) return true;
  return !(node->op->constants >> input & 1) && (node->op->joint.function || node->op->rules[input].function);
}

namespace {

// Whether the rule takes the gradient of this output.
bool differentiates(const Rule& rule, uint32_t output) {
  for (const RuleParam& param : rule.params) {
    if (param.kind == RuleParam::grads || (param.kind == RuleParam::grad && param.index == output))
      return true;
  }
  return false;
}

}  // namespace

bool shows_output(const Node* node, uint32_t output) {
  if (node->kind != Node::operation || node->output_count == 1) return true;
  if (differentiates(node->op->joint, output)) return true;
  return std::ranges::any_of(node->op->rules, [&](const Rule& rule) { return differentiates(rule, output); });
}

std::vector<uint32_t> shown_outputs(const Node* node) {
  std::vector<uint32_t> shown;
  for (uint32_t i = 0; i < node->output_count; i++) {
    if (shows_output(node, i)) shown.push_back(i);
  }
  return shown;
}

namespace {

Node* self_node(PyObject* self) { return reinterpret_cast<Node*>(self); }

PyObject* node_get_name(PyObject* self, PyObject*) {
  return PyUnicode_FromString(node_name(self_node(self)).c_str());
}

// The edges that are shown, without facades.
PyObject* node_edges(PyObject* self, PyObject*) {
  Node* node = self_node(self);
  PyObject* result = PyList_New(0);
  std::vector<Edge> edges;
  if (!outer_edges(node, edges)) {
    for (uint32_t i = 0; i < node->edge_count; i++) {
      if (shows_edge(node, i)) edges.push_back(node->edges[i]);
    }
  }
  for (size_t i = 0; result && i < edges.size(); i++) {
    Node* next = edges[i].node;
    if (next) expose(next);
    PyObject* one = Py_BuildValue("(OI)", next ? next->object() : Py_None, edges[i].nr);
    if (!one || PyList_Append(result, one) < 0) Py_CLEAR(result);
    Py_XDECREF(one);
  }
  if (!result) return nullptr;
  PyObject* tuple = PyList_AsTuple(result);
  Py_DECREF(result);
  return tuple;
}

PyObject* node_next_functions(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Ref<PyObject> facades = facades_behind(self_node(self));
    return facades ? facades.release() : node_edges(self, nullptr);
  });
}

PyObject* node_facade(PyObject* self, void*) { return PyBool_FromLong(is_facade(self_node(self))); }
PyObject* node_get_source(PyObject* self, void*) { return source_as_tuple(self_node(self)->source); }
// An accumulator runs as soon as it can: its number is the highest there is.
PyObject* node_sequence(PyObject* self, PyObject*) {
  Node* node = self_node(self);
  return PyLong_FromUnsignedLongLong(node->kind == Node::accumulate ? UINT64_MAX : node->sequence);
}
PyObject* node_set_sequence(PyObject* self, PyObject* number) {
  unsigned long long value = PyLong_AsUnsignedLongLong(number);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return nullptr;
  self_node(self)->sequence = value;
  Py_RETURN_NONE;
}
// What a composed operation was called with and torch would save, or None.
PyObject* node_kept(PyObject* self, void*) {
  NodeExtra* extra = self_node(self)->extra;
  if (!extra || !extra->kept) Py_RETURN_NONE;
  return PyDictProxy_New(extra->kept);  // not to be changed
}
PyObject* node_released(PyObject* self, void*) { return PyBool_FromLong(self_node(self)->released); }
PyObject* node_refuse(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { fail_freed(self_node(self)); });
}
PyObject* node_requires_grad(PyObject*, void*) { Py_RETURN_TRUE; }
PyObject* node_metadata(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    NodeExtra* extra = extra_of(self_node(self));
    if (!extra->dict) extra->dict = checked(PyDict_New()).release();
    expect_loops();
    return Py_NewRef(extra->dict);
  });
}
PyObject* node_variable(PyObject* self, void*) {
  Node* node = self_node(self);
  if (node->kind != Node::accumulate) {
    std::string name = node_name(node);
    if (size_t end = name.rfind(':'); end != std::string::npos)
      name.erase(0, end + 1);  // as the class is named
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", name.c_str());
    return nullptr;
  }
  return Py_NewRef(node->leaf()->object());
}

PyObject* node_hooks(PyObject* self, PyObject* which) {
  return guarded([&]() -> PyObject* {
    // The dict (or list) that holds one kind of hooks, made at first use; rushlight/autograd/graph.py fills
    // it.
    refuse_facade(self_node(self), "hooks of this kind");
    const char* name = PyUnicode_AsUTF8(which);
    if (!name) return nullptr;
    NodeExtra* extra = extra_of(self_node(self));
    std::string_view kind = name;
    PyObject** slot = kind == "pre"    ? &extra->prehooks
                      : kind == "post" ? &extra->posthooks
                                       : &extra->tensor_hooks;
    if (!*slot) *slot = slot == &extra->tensor_hooks ? checked(PyList_New(0)).release() : new_hook_dict();
    expect_loops();
    return Py_NewRef(*slot);
  });
}

// Which of the outputs take a gradient in torch.
PyObject* node_shown(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Node* node = self_node(self);
    Ref<PyObject> result = checked(PyTuple_New(node->output_count));
    for (uint32_t i = 0; i < node->output_count; i++)
      PyTuple_SET_ITEM(result.get(), i, PyBool_FromLong(shows_output(node, i)));
    return result.release();
  });
}

// The gradient as (sizes, dtype, device) per output.
PyObject* node_outputs(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Node* node = self_node(self);
    Ref<PyObject> result = checked(PyTuple_New(node->output_count));
    for (uint32_t i = 0; i < node->output_count; i++) {
      // A Function's output that takes no gradient is shown as a number.
      bool taken = node->kind != Node::custom || as_function(node)->differentiable_outputs[i];
      const OutputInfo& info = node->outputs[i];
      PyObject* one =
          !taken ? Py_BuildValue("(NON)", size_object({}), dtype_object(DType::f32), device_object({}))
                 : Py_BuildValue("(NON)", size_object(info.shape()), dtype_object(info.dtype),
                                 device_object(info.device));
      if (!one) return nullptr;
      PyTuple_SET_ITEM(result.get(), i, one);
    }
    return result.release();
  });
}

// What is saved: (name, slot, output number or -1) of every value; shapes are named `x_shape`.
PyObject* node_saved_names(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Node* node = self_node(self);
    Ref<PyObject> result = checked(PyList_New(0));
    if (node->kind != Node::operation) return result.release();
    int at = 0;
    auto add = [&](const std::string& name, int out) {
      Ref<PyObject> one = checked(Py_BuildValue("(sii)", name.c_str(), at++, out));
      if (PyList_Append(result.get(), one.get()) < 0) throw PythonError{};
    };
    const Primitive& op = *node->op;
    for (size_t i = 0; i < 16; i++) {
      if (node->want_args >> i & 1) add(op.args[i], -1);
    }
    for (size_t i = 0; i < 16; i++) {
      if (node->want_shapes >> i & 1) add(op.args[i] + "_shape", -1);
    }
    for (size_t i = 0; i < 16; i++) {
      if (node->want_outs >> i & 1) add(op.list_output ? op.outputs[0] : op.outputs[i], int(i));
    }
    return result.release();
  });
}

}  // namespace

Ref<PyObject> original(Ref<PyObject> value) {
  if (!is_tensor(value.get()) || !as_tensor(value.get())->grad_fn) return value;
  Tensor* alias = as_tensor(value.get());
  Tensor* living = living_output(alias->grad_fn, alias->output_nr);
  bool same = living && living->storage == alias->storage && living->offset == alias->offset &&
              living->dtype == alias->dtype && same_sizes(living, alias) &&
              std::ranges::equal(living->strides(), alias->strides()) &&
              (living->flags & Tensor::LAZY) == (alias->flags & Tensor::LAZY);
  return same ? share(living->object()) : value;
}

namespace {

PyObject* node_unpack(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int at, out;
    if (!PyArg_ParseTuple(args, "ii", &at, &out)) return nullptr;
    Node* node = self_node(self);
    if (at < 0 || at >= node->saved_count || out >= int(node->output_count))
      fail(PyExc_IndexError, "no such saved value");
    // As it was recorded, whatever the mode of the one who asks.
    GradMode on(modes.grad || !node->saved[at].object || !is_packed(node->saved[at].object));
    Ref<PyObject> value = unpack(node, at, out);
    PyObject* kept = node->saved[at].object;  // an unpack hook may have freed it
    bool packed = !kept || is_packed(kept);
    // Statistics and factors that are kept for the derivative have no history in torch.
    if (out >= 0 && is_tensor(value.get()) && as_tensor(value.get())->grad_fn == node &&
        !shows_output(node, uint32_t(out)))
      return new_alias(as_tensor(value.get())).release_object();
    return out < 0 && !packed ? original(std::move(value)).release() : value.release();
  });
}

// An output whose object is gone, if the node saved it; None if it did not or was freed.
Ref<PyObject> saved_output(Node* node, uint32_t nr, bool looks) {
  if (node->kind != Node::operation || node->released || nr >= 16 || !(node->want_outs >> nr & 1))
    return share(Py_None);
  int at = node->saved_count - bit_count(uint16_t(node->want_outs >> nr));
  // Who looks at a graph calls no hooks of those who made it.
  if (looks && node->saved[at].object && is_packed(node->saved[at].object)) return share(Py_None);
  GradMode on(true);
  return unpack(node, at, int(nr));
}

// _output(nr): what this output holds, with its history; None if it is gone.
PyObject* node_output(PyObject* self, PyObject* number) {
  return guarded([&]() -> PyObject* {
    long nr = PyLong_AsLong(number);
    if (nr == -1 && PyErr_Occurred()) return nullptr;
    bool exists = nr >= 0 && nr < long(self_node(self)->output_count);
    if (!exists) Py_RETURN_NONE;
    Tensor* living = living_output(self_node(self), uint32_t(nr));
    if (!living) return saved_output(self_node(self), uint32_t(nr), false).release();
    TensorRef result = new_alias(living);  // another object, as what was saved of a result is
    result->grad_fn = self_node(Py_NewRef(self));
    result->output_nr = uint32_t(nr);
    return result.release_object();
  });
}

// _input(i): the tensor behind the edge of input i, whether or not it was saved; None if it is gone.
PyObject* node_input(PyObject* self, PyObject* number) {
  return guarded([&]() -> PyObject* {
    long at = PyLong_AsLong(number);
    if (at == -1 && PyErr_Occurred()) return nullptr;
    std::vector<Edge> edges;
    Node* node = self_node(self);
    if (!outer_edges(node, edges)) edges.assign(node->edges, node->edges + node->edge_count);
    if (at < 0 || at >= long(edges.size()) || !edges[size_t(at)].node) Py_RETURN_NONE;
    Edge edge = edges[size_t(at)];
    bool leaf = edge.node->kind == Node::accumulate;
    Tensor* living = leaf ? edge.node->leaf() : living_output(edge.node, edge.nr);
    return living ? Py_NewRef(living->object()) : saved_output(edge.node, edge.nr, true).release();
  });
}

PyObject* node_primitive(PyObject* self, void*) {
  Node* node = self_node(self);
  return Py_NewRef(node->kind == Node::operation ? node->op->object() : Py_None);
}

void add_to(TensorRef& sum, TensorRef grad) {
  static Primitive& plus = primitive("add");
  if (!sum) {
    sum = std::move(grad);
    return;
  }
  PyObject* args[] = {sum->object(), grad->object()};
  sum = TensorRef(as_tensor(call(plus, args)));
}

// The derivative of an operation that is composed of several steps, of which `last` is the last: what these
// pass on to its arguments, `outer`.
std::vector<TensorRef> through_steps(Node* last, const std::vector<Tensor*>& grads,
                                     const std::vector<Edge>& outer) {
  PyObject* since = PyDict_GetItemString(last->extra->kept, "");
  uint64_t first = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(since, 0));
  std::map<uint64_t, std::pair<Node*, std::vector<TensorRef>>> steps;  // that wait, by their numbers
  std::vector<TensorRef> found(outer.size());
  auto arrive = [&](const Edge& edge, TensorRef grad) {
    if (edge.node->kind != Node::accumulate && edge.node->sequence >= first) {
      auto& [node, waiting] = steps[edge.node->sequence];
      node = edge.node;
      waiting.resize(node->output_count);
      add_to(waiting[edge.nr], std::move(grad));
      return;
    }
    size_t places = 0;
    for (size_t i = 0; i < outer.size(); i++) {
      if (outer[i].node != edge.node || outer[i].nr != edge.nr) continue;
      if (!places++) add_to(found[i], share(grad.get()));
    }
    if (places > 1) {
      failf(
          PyExc_NotImplementedError,
          "%s is composed of several steps here and was given a tensor twice: a call is not supported on it",
          node_name(last).c_str());
    }
  };
  for (uint32_t i = 0; i < last->output_count; i++) {
    if (grads[i]) arrive({last, i}, share(grads[i]));
  }
  while (!steps.empty()) {
    auto [node, waiting] = std::move(std::prev(steps.end())->second);
    steps.erase(std::prev(steps.end()));
    std::vector<Tensor*> given;
    for (const TensorRef& grad : waiting) given.push_back(grad.get());
    std::vector<TensorRef> results(node->edge_count);
    apply_node(node, given.data(), results, nullptr);
    for (uint32_t i = 0; i < results.size(); i++) {
      if (results[i] && node->edges[i].node) {
        arrive(node->edges[i], fit_gradient(node, i, std::move(results[i])));
      }
    }
  }
  return found;
}

// grad_fn(grad, ...): the derivative alone, without hooks.
PyObject* node_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Node* node = self_node(self);
    if (node->kind == Node::custom) {
      failf(PyExc_TypeError, "'%s' object is not callable", Py_TYPE(self)->tp_name);
    }
    if (kwargs && PyDict_GET_SIZE(kwargs)) fail(PyExc_TypeError, "keyword arguments are not supported");
    refuse_facade(node, "a call");
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    std::vector<uint32_t> outputs = shown_outputs(node);
    if (n != Py_ssize_t(outputs.size())) {
      failf(PyExc_TypeError, "expected %zu arguments, got %zd instead", outputs.size(), n);
    }
    std::vector<Tensor*> grads(node->output_count);
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      if (o != Py_None && !is_tensor(o)) {
        failf(PyExc_TypeError, "argument %zd is not a Variable", i);
      }
      if (o != Py_None) grads[outputs[size_t(i)]] = as_tensor(o);
    }
    bool any = std::any_of(grads.begin(), grads.end(), [](Tensor* g) { return g; });
    std::vector<TensorRef> results(node->edge_count);
    std::vector<Edge> outer;
    if (any && node->kind == Node::operation && outer_edges(node, outer)) {
      results = through_steps(node, grads, outer);
      Ref<PyObject> tuple = checked(PyTuple_New(Py_ssize_t(results.size())));
      for (size_t i = 0; i < results.size(); i++) {
        PyObject* grad = results[i] ? results[i].release_object() : Py_NewRef(Py_None);
        PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), grad);
      }
      return results.size() == 1 ? Py_NewRef(PyTuple_GET_ITEM(tuple.get(), 0)) : tuple.release();
    }
    if (node->kind == Node::accumulate) {
      if (any) accumulate_grad(node->leaf(), share(grads[0]), modes.grad);
    } else if (any) {
      apply_node(node, grads.data(), results, nullptr);
      for (TensorRef& result : results) show_dense(result);
    }
    // Torch leaves summing back and converting to the engine as well, but in these.
    static const Primitive &expand = primitive("expand"), &to = primitive("to_dtype");
    for (uint32_t i = 0; node->kind == Node::operation && i < results.size(); i++) {
      Node* next = node->edges[i].node;
      if (!results[i] || !next) continue;
      bool real = is_complex(results[i]->dtype) && !is_complex(next->outputs[node->edges[i].nr].dtype);
      if (real || node->op == &expand || node->op == &to) {
        results[i] = fit_gradient(node, i, std::move(results[i]));
      }
    }
    Ref<PyObject> list = checked(PyList_New(0));
    for (uint32_t i = 0; i < results.size(); i++) {
      if (!shows_edge(node, i)) continue;
      if (PyList_Append(list.get(), results[i] ? results[i]->object() : Py_None) < 0) throw PythonError{};
    }
    if (PyList_GET_SIZE(list.get()) == 1) return Py_NewRef(PyList_GET_ITEM(list.get(), 0));
    return checked(PyList_AsTuple(list.get())).release();
  });
}

// `_saved_x` and `_raw_saved_x` are looked up by the names torch has for them
// (rushlight/autograd/_saved_names.py).
PyObject* node_getattro(PyObject* self, PyObject* name) {
  PyObject* value = PyObject_GenericGetAttr(self, name);
  if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text || (std::strncmp(text, "_saved_", 7) != 0 && std::strncmp(text, "_raw_saved_", 11) != 0))
    return value;
  PyErr_Clear();
  return guarded([&]() -> PyObject* {
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.autograd._saved_names"));
    return PyObject_CallMethod(module.get(), "saved_attribute", "OO", self, name);
  });
}

PyMethodDef node_methods[] = {
    {"_outputs", node_outputs, METH_NOARGS, nullptr},
    {"_shown", node_shown, METH_NOARGS, nullptr},
    {"_edges", node_edges, METH_NOARGS, nullptr},
    {"_names_saved", node_saved_names, METH_NOARGS, nullptr},
    {"_unpack", node_unpack, METH_VARARGS, nullptr},
    {"_output", node_output, METH_O, nullptr},
    {"_input", node_input, METH_O, nullptr},
    {"name", node_get_name, METH_NOARGS, "The name of the operation, as torch spells it."},
    {"_sequence_nr", node_sequence, METH_NOARGS, nullptr},
    {"_set_sequence_nr", node_set_sequence, METH_O, nullptr},
    {"_hooks", node_hooks, METH_O, nullptr},
    {"_refuse", node_refuse, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef node_getset[] = {
    {"_primitive", node_primitive, nullptr, nullptr, nullptr},
    {"next_functions", node_next_functions, nullptr, nullptr, nullptr},
    {"metadata", node_metadata, nullptr, nullptr, nullptr},
    {"variable", node_variable, nullptr, nullptr, nullptr},
    {"_kept", node_kept, nullptr, nullptr, nullptr},
    {"_facade", node_facade, nullptr, nullptr, nullptr},
    {"_released", node_released, nullptr, nullptr, nullptr},
    {"requires_grad", node_requires_grad, nullptr, nullptr, nullptr},
    {"_source", node_get_source, nullptr, "(file, line, function) of the user's line", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef node_members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(Node, weakrefs), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyType_Slot node_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                            {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                            {Py_tp_call, reinterpret_cast<void*>(node_call)},
                            {Py_tp_getattro, reinterpret_cast<void*>(node_getattro)},
                            {Py_tp_methods, node_methods},
                            {Py_tp_getset, node_getset},
                            {Py_tp_members, node_members},
                            {0, nullptr}};
constexpr unsigned NODE_FLAGS =
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION;
PyType_Spec node_spec = {"rushlight.autograd.graph.Node", sizeof(Node), 0, NODE_FLAGS, node_slots};

}  // namespace

void init_node_type(PyObject* module) {
  NodeType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&node_spec)).release());
  PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(NodeType));
}

// The Python class of the nodes of that name, made at first use.
PyTypeObject* node_class(const std::string& name) {
  static std::unordered_map<std::string, PyTypeObject*> classes;
  size_t colon = name.rfind(':');
  std::string plain = colon == std::string::npos ? name : name.substr(colon + 1);
  PyTypeObject*& type = classes[plain];
  if (type) return type;
  char* kept = strdup(("builtins." + plain).c_str());  // the type keeps the pointer
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                         {0, nullptr}};
  PyType_Spec spec = {kept, sizeof(Node), 0, NODE_FLAGS & ~unsigned(Py_TPFLAGS_BASETYPE), slots};
  Ref<PyObject> bases = checked(PyTuple_Pack(1, NodeType));
  type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())).release());
  type->tp_name = kept + std::strlen("builtins.");  // what errors of the interpreter name
  return type;
}

void expose(Node* node) {
  if (Py_TYPE(node) != NodeType || node->kind == Node::custom) return;
  static PyTypeObject* accumulate_type = nullptr;
  static PyTypeObject* copy_slices_type = nullptr;
  PyTypeObject** type = node->kind == Node::operation    ? &node->op->node_type
                        : node->kind == Node::accumulate ? &accumulate_type
                                                         : &copy_slices_type;
  if (!*type) *type = node_class(node_name(node));
  Py_INCREF(*type);
  Py_SET_TYPE(node, *type);
  Py_DECREF(NodeType);
}

}  // namespace rl
