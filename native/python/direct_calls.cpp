// See direct_calls.h.
#include "direct_calls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>

#include "call_hooks.h"
#include "outputs.h"
#include "signatures.h"

namespace rl {

struct DirectCall {
  static constexpr size_t MOST = 12;  // parameters, and arguments of the primitive

  struct Kind {
    const char* name;
    bool (*takes)(PyObject* o, PyObject* first);
    bool listed = false;  // a list or a tuple
    bool spread = false;  // a method takes its elements one by one, too
    bool tensor = false;  // takes a plain tensor and nothing else
  };
  struct Parameter {
    const Kind* kind;
    bool or_none;
    PyObject* name;       // interned
    PyObject* otherwise;  // what it is if it was not given; null if it must be
  };
  std::vector<Parameter> parameters;
  size_t positional = 0;  // how many of them, the first, may be given by position
  size_t least = 0;       // how many must be given
  bool spreads = false;   // one of them may be given as several
  Primitive* op = nullptr;
  bool in_place = false;
  int itself = -1;  // the parameter that is the result, where nothing is to be done
  struct Argument {
    int parameter;       // or -1 for
    PyObject* constant;  // None, (), a bool or a number
    bool alone;          // given as a tuple of the one: `[dim]`
  };
  std::vector<Argument> arguments;
  int out = -1;  // the parameter that the result is written to, or -1
  PyTypeObject *kind = nullptr, *written_kind = nullptr;  // of return_types, or null; the second with `out`
  int part = -1;                                          // which of several results it is, or -1 for all
  NativeCall native = nullptr;
  bool casts_nothing = false;  // Note [direct calls under autocast]
  bool plain = false;          // each value goes to the primitive as it is, and its result to the caller
};

namespace {

struct Native {
  NativeCall call;
  bool casts_nothing;
};
std::map<std::string, Native, std::less<>>& natives() {
  static std::map<std::string, Native, std::less<>> all;
  return all;
}

[[noreturn]] void fail_reading(std::string_view text) {
  fail(PyExc_RuntimeError, "cannot read the direct call " + std::string(text));
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// None, (), True, False or a number; null if the word is none of them. They live for ever.
PyObject* constant(std::string_view word) {
  if (word == "None") return Py_None;
  if (word == "True") return Py_True;
  if (word == "False") return Py_False;
  if (word == "()") return checked(PyTuple_New(0)).release();
  std::string digits(word);
  char* end;
  long whole = std::strtol(digits.c_str(), &end, 10);
  if (!digits.empty() && !*end) return checked(PyLong_FromLong(whole)).release();
  double value = std::strtod(digits.c_str(), &end);
  return digits.empty() || *end ? nullptr : checked(PyFloat_FromDouble(value)).release();
}

template <class F>
void for_words(std::string_view text, F f) {
  while (!text.empty()) {
    size_t end = std::min(text.find(','), text.size());
    f(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool is_plain_int(PyObject* o) {
  int64_t value;
  return read_plain_int(o, value);
}

bool is_real_number(PyObject* o) {
  if (PyFloat_CheckExact(o)) return !std::isnan(PyFloat_AS_DOUBLE(o));
  return is_plain_int(o);
}

bool is_of_floats(PyObject* o) { return o && is_plain_tensor(o) && is_differentiable(as_tensor(o)->dtype); }

template <bool (*takes)(const Tensor*)>
bool is_such_tensor(PyObject* o, PyObject*) {
  return is_plain_tensor(o) && takes(as_tensor(o));
}

bool is_alike(PyObject* o, PyObject* first) {
  return is_plain_tensor(o) && first && is_plain_tensor(first) &&
         as_tensor(o)->dtype == as_tensor(first)->dtype;
}

bool is_exponent(PyObject* o, PyObject* first) {
  return is_real_number(o) && (PyFloat_CheckExact(o) || is_of_floats(first) || PyLong_AsLongLong(o) >= 0);
}

// What Note [direct calls] says of each. `first` is the first argument, null while it is not known.
constexpr DirectCall::Kind KINDS[] = {
    {"tensor", [](PyObject* o, PyObject*) { return is_plain_tensor(o); }, false, false, true},
    {"real", is_such_tensor<[](const Tensor* t) { return !is_complex(t->dtype); }>},
    {"floats", is_such_tensor<[](const Tensor* t) { return is_floating(t->dtype); }>},
    {"mask", is_such_tensor<[](const Tensor* t) { return t->dtype == DType::b1; }>},
    {"numbers", is_such_tensor<[](const Tensor* t) { return t->dtype != DType::b1; }>},
    {"contiguous", is_such_tensor<[](const Tensor* t) { return t->is_contiguous() && !t->is_lazy(); }>},
    {"filled", is_such_tensor<[](const Tensor* t) { return t->ndim && t->numel; }>},
    {"vector", is_such_tensor<[](const Tensor* t) { return t->ndim == 1; }>},
    {"matrix", is_such_tensor<[](const Tensor* t) { return t->ndim == 2; }>},
    {"batch", is_such_tensor<[](const Tensor* t) { return t->ndim >= 3; }>},
    {"alike", is_alike},
    {"number", [](PyObject* o, PyObject*) { return is_real_number(o); }},
    {"scale", [](PyObject* o,
                 PyObject* first) { return is_plain_int(o) || (is_real_number(o) && is_of_floats(first)); }},
    {"exponent", is_exponent},
    {"one", [](PyObject* o, PyObject*) { return is_plain_int(o) && PyLong_AsLongLong(o) == 1; }},
    {"operand", [](PyObject* o, PyObject*) { return is_plain_tensor(o) || is_real_number(o); }},
    {"term",
     [](PyObject* o, PyObject*) {
       return is_real_number(o) || (is_plain_tensor(o) && as_tensor(o)->dtype != DType::b1);
     }},
    {"int", [](PyObject* o, PyObject*) { return is_plain_int(o); }},
    {"bool", [](PyObject* o, PyObject*) { return bool(PyBool_Check(o)); }},
    {"off", [](PyObject* o, PyObject*) { return o == Py_False; }},
    {"none", [](PyObject* o, PyObject*) { return o == Py_None; }},
    {"dtype", [](PyObject* o, PyObject*) { return is_dtype(o); }},
    {"ints", [](PyObject* o, PyObject*) { return all_elements(o, is_plain_int); }, true},
    {"dims", [](PyObject* o, PyObject*) { return is_plain_int(o) || all_elements(o, is_plain_int); }, true},
    {"sizes", [](PyObject* o, PyObject*) { return all_elements(o, is_plain_int); }, true, true},
    {"tensors", [](PyObject* o, PyObject*) { return all_elements(o, is_plain_tensor); }, true},
};

// "kind name" or "kind? name=default"
DirectCall::Parameter read_parameter(std::string_view word) {
  size_t space = std::min(word.find(' '), word.size()), at = std::min(word.find('='), word.size());
  std::string_view kind = word.substr(0, space);
  DirectCall::Parameter parameter{nullptr, kind.ends_with('?'), nullptr, nullptr};
  if (parameter.or_none) kind.remove_suffix(1);
  auto known = std::ranges::find(KINDS, kind, &DirectCall::Kind::name);
  if (known == std::end(KINDS) || space >= at) fail_reading(word);
  parameter.kind = known;
  std::string name(word.substr(space + 1, at - space - 1));
  parameter.name = checked(PyUnicode_InternFromString(name.c_str())).release();
  if (at < word.size() && !(parameter.otherwise = constant(word.substr(at + 1)))) fail_reading(word);
  return parameter;
}

DirectCall read_one(std::string_view text) {
  DirectCall call;
  text = trimmed(text);
  if (text.starts_with("native ")) {
    auto found = natives().find(text.substr(7));
    if (found == natives().end()) fail_reading(text);
    call.native = found->second.call;
    call.casts_nothing = found->second.casts_nothing;
    return call;
  }
  size_t arrow = text.find(" -> ");
  if (arrow == text.npos) fail_reading(text);
  bool by_position = true;
  for_words(text.substr(0, arrow), [&](std::string_view word) {
    if (word == "*") {
      by_position = false;
      return;
    }
    call.parameters.push_back(read_parameter(word));
    call.positional += by_position;
    call.least += !call.parameters.back().otherwise;
    call.spreads |= call.parameters.back().kind->spread;
  });
  auto parameter = [&](std::string_view word) {
    for (size_t k = 0; k < call.parameters.size(); k++) {
      if (PyUnicode_CompareWithASCIIString(call.parameters[k].name, std::string(word).c_str()) == 0)
        return int(k);
    }
    return -1;
  };
  std::string_view made = text.substr(arrow + 4);
  call.out = parameter("out");
  if (call.itself = parameter(made); call.itself >= 0) return call;
  if (made.size() > 4 && made.ends_with(']')) {  // name(...)[0]
    if (made[made.size() - 3] != '[') fail_reading(text);
    call.part = made[made.size() - 2] - '0';
    made.remove_suffix(3);
  }
  size_t open = made.find('(');
  if (open == made.npos || !made.ends_with(')')) fail_reading(text);
  std::string name(made.substr(0, open));
  if (size_t colon = name.find(": "); colon != name.npos) {
    if (!name.starts_with("return_types.")) fail_reading(text);
    auto type_called = [&](std::string type) {
      Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.return_types"));
      Ref<PyObject> kind = checked(PyObject_GetAttrString(module.get(), type.c_str()));
      if (!PyType_Check(kind.get()) ||
          !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(kind.get()), &PyTuple_Type))
        fail_reading(text);
      return reinterpret_cast<PyTypeObject*>(kind.release());
    };
    call.kind = type_called(name.substr(13, colon - 13));
    if (call.out >= 0) call.written_kind = type_called(name.substr(13, colon - 13) + "_out");
    name = name.substr(colon + 2);
  }
  call.in_place = name.ends_with('_');
  if (call.in_place) name.pop_back();
  call.op = &primitive(name.c_str());
  if (call.in_place && !(call.op->options & Primitive::IN_PLACE)) fail_reading(text);
  for_words(made.substr(open + 1, made.size() - open - 2), [&](std::string_view word) {
    bool alone = word.starts_with('[') && word.ends_with(']');
    if (alone) word = word.substr(1, word.size() - 2);
    DirectCall::Argument argument{parameter(word), nullptr, alone};
    if (argument.parameter < 0 && !(argument.constant = constant(word))) fail_reading(text);
    call.arguments.push_back(argument);
  });
  bool parted = call.part >= 0 && !call.op->list_output && call.op->outputs.size() > 1;
  if (call.part >= 0 && (!parted || size_t(call.part) >= call.op->outputs.size() || call.out >= 0))
    fail_reading(text);
  if (call.arguments.size() != call.op->args.size() || call.arguments.size() > DirectCall::MOST ||
      call.parameters.size() > DirectCall::MOST)
    fail_reading(text);
  if (call.out >= 0 && (call.in_place || call.op->outputs.size() != (call.kind ? 2 : 1) ||
                        call.op->options & Primitive::VIEW || call.op->list_output))
    fail_reading(text);
  call.plain = !call.spreads && std::ranges::none_of(call.arguments, [](auto& one) { return one.alone; }) &&
               (call.out < 0 || size_t(call.out) >= call.positional);
  return call;
}

// What the parameters are, some of them made here.
struct Bound {
  PyObject* values[DirectCall::MOST];
  PyObject* made[2 * DirectCall::MOST];
  size_t made_count = 0;

  Bound() { values[0] = nullptr; }  // not known yet
  ~Bound() {
    for (size_t i = 0; i < made_count; i++) Py_DECREF(made[i]);
  }
  Bound(const Bound&) = delete;

  PyObject* hold(PyObject* owned) {
    if (!owned) throw PythonError{};
    return made[made_count++] = owned;
  }

  bool bind(const DirectCall& call, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames,
            bool method) {
    if (method && positional == 0) return false;  // self has no name
    const size_t count = call.parameters.size();
    size_t k = 0;
    for (Py_ssize_t at = 0; at < positional; k++) {
      if (k == call.positional) return false;
      if (call.parameters[k].kind->spread && method && PyLong_CheckExact(args[at])) {
        values[k] = hold(PyTuple_New(positional - at));
        for (Py_ssize_t i = 0; at < positional; at++, i++) {
          if (!is_plain_int(args[at])) return false;
          PyTuple_SET_ITEM(values[k], i, Py_NewRef(args[at]));
        }
      } else if (!put(call, k, args[at++])) {
        return false;
      }
    }
    for (size_t rest = k; rest < count; rest++) values[rest] = call.parameters[rest].otherwise;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
      size_t named = k;
      while (named < count && call.parameters[named].name != PyTuple_GET_ITEM(kwnames, i)) named++;
      bool unknown = named == count || (method && int(named) == call.out);  // which methods do not take
      if (unknown || !put(call, named, args[positional + i])) return false;
    }
    for (; k < count; k++) {
      if (!values[k]) return false;
    }
    return true;
  }

 private:
  // A list is the user's, who may change it: a tuple is taken of it.
  bool put(const DirectCall& call, size_t k, PyObject* value) {
    const DirectCall::Parameter& parameter = call.parameters[k];
    if (parameter.kind->listed && PyList_Check(value)) value = hold(PyList_AsTuple(value));
    if (!(value == Py_None && parameter.or_none) && !parameter.kind->takes(value, values[0])) return false;
    values[k] = value;
    return true;
  }
};

Ref<PyObject> as_kind(PyTypeObject* kind, Ref<PyObject> result) {
  if (!kind || !result) return result;
  Ref<PyObject> values = checked(PyTuple_Pack(1, result.get()));
  return checked(PyTuple_Type.tp_new(kind, values.get(), nullptr));
}

}  // namespace

// What a call comes to, once it is computed.
static PyObject* finished(const DirectCall& call, Ref<PyObject> result) {
  if (call.part >= 0 && result) return Py_NewRef(PyTuple_GET_ITEM(result.get(), call.part));
  return call.kind ? as_kind(call.kind, std::move(result)).release() : result.release();
}

// A call of nothing but positional arguments, with a description that is plain. Null without a Python error
// if that does not fit, and `listed` if there are lists, of which tuples are to be taken.
static PyObject* call_plainly(const DirectCall& call, PyObject* const* args, size_t count, bool& listed) {
  PyObject *values[DirectCall::MOST], *given[DirectCall::MOST];
  size_t k = 0;
  for (; k < count; k++) {
    const auto& [kind, or_none, name, otherwise] = call.parameters[k];
    PyObject* o = args[k];
    bool fits = kind->tensor && is_plain_tensor(o);
    if (kind->listed && PyList_Check(o)) {
      listed = true;
      return nullptr;
    }
    if (!fits && !(o == Py_None && or_none) && !kind->takes(o, k ? values[0] : nullptr)) return nullptr;
    values[k] = o;
  }
  for (; k < call.parameters.size(); k++) {
    if (!(values[k] = call.parameters[k].otherwise)) return nullptr;
  }
  if (call.itself >= 0) return Py_NewRef(values[call.itself]);
  const size_t wanted = call.arguments.size();
  for (size_t i = 0; i < wanted; i++) {
    const auto& argument = call.arguments[i];
    given[i] = argument.parameter < 0 ? argument.constant : values[argument.parameter];
  }
  Ref<PyObject> result(call.in_place ? call_in_place(*call.op, given) : call_settled(*call.op, given));
  return finished(call, std::move(result));
}

NativeCallInit::NativeCallInit(const char* name, NativeCall call, bool casts_nothing) {
  natives().emplace(name, Native{call, casts_nothing});
}

const DirectCalls* read_direct_calls(const char* text) {
  static std::map<std::string, std::unique_ptr<DirectCalls>, std::less<>> all;
  std::string_view rest = text;
  if (auto known = all.find(rest); known != all.end()) return known->second.get();
  auto read = std::make_unique<DirectCalls>();
  while (true) {
    size_t end = rest.find('|');
    read->push_back(read_one(rest.substr(0, end)));
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  return (all[text] = std::move(read)).get();
}

PyObject* call_directly(const DirectCalls& calls, bool method, PyObject* const* args, Py_ssize_t positional,
                        PyObject* kwnames) {
  const size_t given_count = size_t(positional + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
  return guarded([&]() -> PyObject* {
    for (const DirectCall& call : calls) {
      if (hooked_product) [[unlikely]] {
        bool hooked = call.op && call.op->vectorcall != primitive_vectorcall;
        if (call.op ? hooked : call.native && !call.casts_nothing) continue;
      }
      if (call.native) {
        PyObject* result = call.native(args, positional, kwnames);
        if (result || PyErr_Occurred()) return result;
        continue;
      }
      if (given_count < call.least || (size_t(positional) > call.positional && !call.spreads)) continue;
      if (call.plain && !kwnames) {
        bool listed = false;
        PyObject* result = call_plainly(call, args, size_t(positional), listed);
        if (result) return result;
        if (!listed) continue;
      }
      Bound bound;
      if (!bound.bind(call, args, positional, kwnames, method)) continue;
      if (call.itself >= 0) return Py_NewRef(bound.values[call.itself]);
      PyObject* given[DirectCall::MOST];
      for (size_t i = 0; i < call.arguments.size(); i++) {
        const auto& [parameter, constant, alone] = call.arguments[i];
        given[i] = parameter < 0 ? constant : bound.values[parameter];
        if (alone) given[i] = bound.hold(PyTuple_Pack(1, given[i]));
      }
      PyObject* out = call.out < 0 ? Py_None : bound.values[call.out];
      if (out != Py_None) {
        if (method || !write_directly(*call.op, given, out)) return nullptr;
        return as_kind(call.written_kind, share(out)).release();
      }
      Ref<PyObject> result(call.in_place ? call_in_place(*call.op, given) : call_settled(*call.op, given));
      return finished(call, std::move(result));
    }
    return nullptr;
  });
}

}  // namespace rl
