// The Python type of primitives, and the table of them: `define` is what every family of operations calls.
// How one is called and recorded is in primitive.cpp.
#include <algorithm>
#include <map>
#include <string_view>

#include "../graph/custom.h"
#include "elementwise_ops.h"
#include "forwards.h"
#include "primitive.h"
#include "rare_ops.h"
#include "window.h"

namespace rl {

namespace {

PyTypeObject* PrimitiveType = nullptr;
PyObject* ops_namespace = nullptr;  // rushlight._C.ops
std::map<std::string, Primitive*, std::less<>>& table() {
  static std::map<std::string, Primitive*, std::less<>> all;
  return all;
}

std::vector<Primitive*>& numbered() {
  static std::vector<Primitive*> all;
  return all;
}

}  // namespace

std::vector<void (*)(PyObject*)>& ModuleInit::all() {
  static std::vector<void (*)(PyObject*)> functions;
  return functions;
}

PyObject* primitive_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto& op = *reinterpret_cast<Primitive*>(self);
  return guarded([&]() -> PyObject* {
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if ((kwnames && PyTuple_GET_SIZE(kwnames)) || n != Py_ssize_t(op.args.size())) {
      failf(PyExc_TypeError, "%s() takes %zu positional arguments but %zd were given", op.name.c_str(),
            op.args.size(), n);
    }
    return call(op, args);
  });
}

namespace {

// unhooked(primitive, *args): itself, also where hooks look on.
PyObject* py_unhooked(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 1 || Py_TYPE(args[0]) != PrimitiveType)
      fail(PyExc_TypeError, "unhooked(primitive, ...) expected");
    auto& op = *reinterpret_cast<Primitive*>(args[0]);
    if (n - 1 != Py_ssize_t(op.args.size())) {
      failf(PyExc_TypeError, "%s() takes %zu positional arguments but %zd were given", op.name.c_str(),
            op.args.size(), n - 1);
    }
    struct Unhooked {
      const Primitive* before = unhooked;
      ~Unhooked() { unhooked = before; }
    } restore;
    unhooked = &op;
    return call(op, args + 1);
  });
}

// in_place(primitive, self, *args)
PyObject* py_in_place(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 2 || Py_TYPE(args[0]) != PrimitiveType)
      fail(PyExc_TypeError, "in_place(primitive, self, ...) expected");
    auto& op = *reinterpret_cast<Primitive*>(args[0]);
    if (!(op.options & Primitive::IN_PLACE))
      failf(PyExc_TypeError, "%s has no in-place form", op.name.c_str());
    if (n - 1 != Py_ssize_t(op.args.size())) {
      failf(PyExc_TypeError, "%s_() takes %zu positional arguments but %zd were given", op.name.c_str(),
            op.args.size(), n - 1);
    }
    return call_in_place(op, args + 1);
  });
}

PyObject* primitive_repr(PyObject* self) {
  return PyUnicode_FromFormat("<primitive %s>", reinterpret_cast<Primitive*>(self)->name.c_str());
}

PyObject* strings(const std::vector<std::string>& list) {
  PyObject* tuple = PyTuple_New(Py_ssize_t(list.size()));
  for (size_t i = 0; tuple && i < list.size(); i++)
    PyTuple_SET_ITEM(tuple, i, PyUnicode_FromString(list[i].c_str()));
  return tuple;
}
Primitive& self_op(PyObject* self) { return *reinterpret_cast<Primitive*>(self); }
PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(self_op(self).name.c_str()); }
PyObject* get_args(PyObject* self, void*) { return strings(self_op(self).args); }
PyObject* get_outputs(PyObject* self, void*) { return strings(self_op(self).outputs); }
PyObject* get_inputs(PyObject* self, void*) { return PyLong_FromLong(self_op(self).input_count); }
PyObject* get_settled(PyObject* self, void*) {
  return PyBool_FromLong(self_op(self).has_rules || self_op(self).no_derivative);
}
PyObject* get_differentiable(PyObject* self, void*) { return PyBool_FromLong(self_op(self).has_rules); }
PyObject* get_in_place(PyObject* self, void*) {
  return PyBool_FromLong(self_op(self).options & Primitive::IN_PLACE);
}
PyObject* get_view(PyObject* self, void*) { return PyBool_FromLong(self_op(self).options & Primitive::VIEW); }

PyObject* get_elementwise(PyObject* self, void*) {
  return PyBool_FromLong(real_forward(self_op(self)) == elementwise_forward);
}
PyObject* get_list_inputs(PyObject* self, void*) { return PyLong_FromLong(self_op(self).list_inputs); }

// What a node saved is what the rules named when it was made.
void check_unused(const Primitive& op) {
  if (op.recorded) failf(PyExc_RuntimeError, "%s was recorded with other rules", op.name.c_str());
}

uint16_t channels_last_first(PyObject* const* args) {
  return is_tensor(args[0]) && is_channels_last(as_tensor(args[0]));
}

// set_rule(input index, -1 for a joint rule or -2 for the one that is seen, function, [(kind, index), ...],
// takes_undefined, form)
PyObject* set_rule(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Primitive& op = self_op(self);
    int input, takes_undefined, form;
    PyObject *function, *params;
    if (!PyArg_ParseTuple(args, "iOO!pi", &input, &function, &PyList_Type, &params, &takes_undefined, &form))
      return nullptr;
    if (input < -2 || input >= op.input_count) fail(PyExc_ValueError, "no such input");
    Rule rule;
    // How many there are of what a parameter of each kind counts.
    const size_t outputs = op.outputs.size(), one_each = op.list_output ? 0 : outputs;
    const size_t inputs = size_t(op.input_count);
    const size_t counts[] = {one_each, 1, op.args.size(), inputs, one_each, 1, inputs};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); i++) {
      int kind, index;
      Ref<PyObject> param = item_of(params, i);
      if (!PyTuple_Check(param.get()) || !PyArg_ParseTuple(param.get(), "ii", &kind, &index)) {
        if (PyErr_Occurred()) throw PythonError{};
        fail(PyExc_TypeError, "bad rule parameter");
      }
      if (kind < 0 || kind > RuleParam::turned || index < 0 || size_t(index) >= counts[kind])
        fail(PyExc_ValueError, "bad rule parameter");
      rule.params.push_back({RuleParam::Kind(kind), uint8_t(index)});
      if (kind == RuleParam::arg) rule.want_args |= uint16_t(1 << index);
      if (kind == RuleParam::shape) rule.want_shapes |= uint16_t(1 << index);
      if (kind == RuleParam::out) rule.want_outs |= uint16_t(1 << index);
      if (kind == RuleParam::turned && !op.turned) op.turned = channels_last_first;
    }
    if (rule.params.size() > 24) fail(PyExc_ValueError, "too many parameters in a rule");
    rule.takes_undefined = takes_undefined;
    auto reads = [&](size_t k, bool outs) {
      return rule.params[k].kind == RuleParam::arg || (outs && rule.params[k].kind == RuleParam::out);
    };
    bool fits = form < Rule::product ||
                (form == Rule::power ? rule.params.size() == 3 && reads(1, true) && reads(2, false)
                                     : rule.params.size() == 2 && reads(1, true));
    if (form < 0 || form > Rule::power || !fits) fail(PyExc_ValueError, "bad form of a rule");
    if (input > -2) check_unused(op);  // a node that has not saved for the rule that is seen is not shown it
    rule.function = Py_NewRef(function);
    rule.form = Rule::Form(form);
    (input == -2 ? op.seen : input < 0 ? op.joint : op.rules[size_t(input)]) = rule;
    forget_plans();
    op.has_rules |= input > -2;
    Py_RETURN_NONE;
  });
}
// set_shown(arguments, shapes, outputs, constant inputs): a bit each
PyObject* set_shown(PyObject* self, PyObject* args) {
  unsigned arguments, shapes, outputs, constants;
  if (!PyArg_ParseTuple(args, "IIII", &arguments, &shapes, &outputs, &constants)) return nullptr;
  return guarded([&]() -> PyObject* {
    Primitive& op = self_op(self);
    check_unused(op);
    op.shown_args = uint16_t(arguments & ((1u << op.args.size()) - 1));
    op.shown_shapes = uint16_t(shapes & ((1u << op.input_count) - 1));
    op.shown_outs = uint16_t(outputs & ((1u << op.outputs.size()) - 1));
    op.constants = uint16_t(constants);
    op.reads_all = (op.shown_args & ((1u << op.input_count) - 1)) | op.shown_outs;
    forget_plans();
    Py_RETURN_NONE;
  });
}
// set_packed(arguments, outputs): two tuples, the places of those that hooks are shown first, in that order
PyObject* set_packed(PyObject* self, PyObject* args) {
  PyObject *arguments, *outputs;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &arguments, &PyTuple_Type, &outputs)) return nullptr;
  return guarded([&]() -> PyObject* {
    Primitive& op = self_op(self);
    check_unused(op);
    auto read = [](PyObject* places, size_t count) {
      std::vector<uint8_t> found;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++) {
        int64_t place = read_int(PyTuple_GET_ITEM(places, i));
        if (place < 0 || size_t(place) >= count) fail(PyExc_IndexError, "no such argument or output");
        if (std::ranges::find(found, uint8_t(place)) == found.end()) found.push_back(uint8_t(place));
      }
      return found;
    };
    op.packed_args = read(arguments, op.args.size());
    op.packed_outs = read(outputs, op.outputs.size());
    for (uint8_t i = 0; !op.packed_outs.empty() && i < op.outputs.size(); i++)  // all have their place
      if (std::ranges::find(op.packed_outs, i) == op.packed_outs.end()) op.packed_outs.push_back(i);
    Py_RETURN_NONE;
  });
}
PyObject* set_undetached(PyObject* self, PyObject* mask) {
  long outputs = PyLong_AsLong(mask);
  if (outputs == -1 && PyErr_Occurred()) return nullptr;
  self_op(self).undetached = uint16_t(outputs & ((1 << self_op(self).outputs.size()) - 1));
  Py_RETURN_NONE;
}
PyObject* set_while_hooked(PyObject* self, PyObject* function) {
  Py_XSETREF(self_op(self).while_hooked, Py_NewRef(function));
  Py_RETURN_NONE;
}
PyObject* set_no_derivative(PyObject* self, PyObject*) {
  self_op(self).no_derivative = true;
  Py_RETURN_NONE;
}
PyObject* set_node_name(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  self_op(self).node_name = text;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"set_rule", set_rule, METH_VARARGS, nullptr},
                         {"set_shown", set_shown, METH_VARARGS, nullptr},
                         {"set_packed", set_packed, METH_VARARGS, nullptr},
                         {"set_undetached", set_undetached, METH_O, nullptr},
                         {"set_while_hooked", set_while_hooked, METH_O, nullptr},
                         {"set_no_derivative", set_no_derivative, METH_NOARGS, nullptr},
                         {"set_node_name", set_node_name, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"args", get_args, nullptr, "names of the arguments", nullptr},
    {"outputs", get_outputs, nullptr, nullptr, nullptr},
    {"input_count", get_inputs, nullptr, "how many of them are tensor inputs", nullptr},
    {"settled", get_settled, nullptr, "has rules or is declared non-differentiable", nullptr},
    {"differentiable", get_differentiable, nullptr, nullptr, nullptr},
    {"has_in_place", get_in_place, nullptr, nullptr, nullptr},
    {"is_view", get_view, nullptr, nullptr, nullptr},
    {"is_elementwise", get_elementwise, nullptr, nullptr, nullptr},
    {"list_inputs", get_list_inputs, nullptr, "bit per input that is a list of tensors", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Primitive, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_repr, reinterpret_cast<void*>(primitive_repr)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"rushlight._C.Primitive", sizeof(Primitive), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  std::string name;
  for (char c : text) {
    if (c == ',') {
      names.push_back(name);
      name.clear();
    } else if (c != ' ') {
      name += c;
    }
  }
  if (!name.empty()) names.push_back(name);
  return names;
}

std::string camel_case(std::string_view name) {
  std::string result;
  bool up = true;
  for (char c : name) {
    if (c == '_') {
      up = true;
    } else {
      result += up ? char(std::toupper(c)) : c;
      up = std::isdigit(c);  // Log1PBackward0
    }
  }
  return result;
}

PyMethodDef module_functions[] = {
    {"unhooked", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_unhooked)), METH_FASTCALL, nullptr},
    {"in_place", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_in_place)), METH_FASTCALL,
     "in_place(primitive, self, *args): the trailing-underscore form of a primitive."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_primitives(PyObject* module) {
  PrimitiveType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  PyModule_AddObjectRef(module, "Primitive", reinterpret_cast<PyObject*>(PrimitiveType));
  PyModule_AddFunctions(module, module_functions);
  Ref<PyObject> types = checked(PyImport_ImportModule("types"));
  Ref<PyObject> maker = checked(PyObject_GetAttrString(types.get(), "SimpleNamespace"));
  ops_namespace = checked(PyObject_CallNoArgs(maker.get())).release();
  PyModule_AddObjectRef(module, "ops", ops_namespace);
}

Primitive& define(const char* signature, Forward forward, uint16_t options, const void* payload) {
  std::string_view text = signature;
  size_t open = text.find('('), close = text.find(')'), semicolon = text.find(';'), arrow = text.find("->");
  auto* op = PyObject_New(Primitive, PrimitiveType);
  if (!op) throw PythonError{};
  // PyObject_New gives raw memory; construct the C++ members without touching the object header.
  PyObject header = *reinterpret_cast<PyObject*>(op);
  new (op) Primitive{};
  *reinterpret_cast<PyObject*>(op) = header;
  op->vectorcall = primitive_vectorcall;
  op->name = text.substr(0, open);
  std::string_view inputs = text.substr(open + 1, std::min(semicolon, close) - open - 1);
  op->args = split_names(inputs);
  op->input_count = int(op->args.size());
  for (int i = 0; i < op->input_count; i++) {
    if (op->args[i].ends_with("[]")) {
      op->args[i].resize(op->args[i].size() - 2);
      op->list_inputs |= uint16_t(1 << i);
    }
  }
  if (semicolon != text.npos) {
    for (auto& name : split_names(text.substr(semicolon + 1, close - semicolon - 1)))
      op->args.push_back(name);
  }
  if (op->args.size() > MAX_ARGS) failf(PyExc_ImportError, "primitive %s: too many arguments", signature);
  op->outputs = arrow == text.npos ? std::vector<std::string>{"out"} : split_names(text.substr(arrow + 2));
  if (op->outputs[0].ends_with("[]")) {
    op->outputs[0].resize(op->outputs[0].size() - 2);
    op->list_output = true;
  }
  // `other` and `mat2` come before `self`.
  if (op->args.size() > 1 && (op->args[1] == "b" || op->args[1] == "mat2") && !op->list_inputs)
    op->packed_args = {1, 0};
  op->forward = forward;
  op->options = options;
  if (std::ranges::find(op->args, "dtype") != op->args.end()) op->options |= TAKES_DTYPE;
  if (op->list_inputs || int(op->args.size()) > op->input_count) op->options |= Primitive::ASKS_FIRST;
  op->payload = payload;
  op->rules.resize(size_t(op->input_count));
  numbered().push_back(op);
  op->number = op->stamp = uint32_t(numbered().size());
  op->node_name = camel_case(op->name) + "Backward0";
  if (!table().emplace(op->name, op).second)
    failf(PyExc_ImportError, "primitive %s is defined twice", op->name.c_str());
  if (PyObject_SetAttrString(ops_namespace, op->name.c_str(), op->object()) < 0) throw PythonError{};
  return *op;
}

Primitive* primitive_number(uint32_t number) {
  return number && number <= numbered().size() ? numbered()[number - 1] : nullptr;
}

Primitive& primitive(const char* name) {
  auto found = table().find(std::string_view(name));
  if (found == table().end()) failf(PyExc_SystemError, "there is no primitive '%s'", name);
  return *found->second;
}

}  // namespace rl
