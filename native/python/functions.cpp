#include "functions.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/modes.h"
#include "direct_calls.h"
#include "forward_mode.h"
#include "forwards.h"
#include "keywords.h"
#include "outputs.h"
#include "primitive.h"
#include "profiler.h"
#include "signatures.h"
#include "tensor_type.h"

namespace rl {
namespace {

struct Function {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* wrapped;
  PyObject* dict;
  PyObject* node_name;  // Note [names of composed operations]: a str, a callable that returns one, or null
  PyObject* no_complex_gradient;    // rushlight/ops/_lacking.py: the name by which torch refuses it, or null
  PyObject* no_forward_mode;        // the same, or a callable that returns one
  PyObject* while_watched;          // rushlight/_dispatching.py: called instead while somebody may be asked
  PyObject* direct;                 // Note [direct calls]: the descriptions of them, a str, or null
  const DirectCalls* direct_calls;  // the same as they were read, null before the first call
  const Signatures* signatures;     // Note [signatures]: null if it has none or was not called yet
  Py_ssize_t accepted;  // as many tensors in a tuple `out` rushlight/_outputs.py has accepted; 0: not known
  bool looked_up;       // whether they have been asked for
  bool takes_self;      // a method: the first argument is not in its signatures
  bool is_method;       // takes no `out`, which is for functions
  bool is_described;    // a native method in torch
};

PyTypeObject* FunctionType = nullptr;
PyTypeObject* BuiltinType = nullptr;  // Note [functions in classes]
PyObject* out_name = nullptr;         // "out"
// Names in a program are interned; one that was put together while it ran need not be.
bool is_out(PyObject* name) {
  return name == out_name || (!PyUnicode_CHECK_INTERNED(name) && PyUnicode_Compare(name, out_name) == 0);
}

Function* self_function(PyObject* self) { return reinterpret_cast<Function*>(self); }

// A call that failed because of too many positional arguments may be of a form that torch still takes:
// x.add_(alpha, other). The function that knows such forms is the attribute `old_form`; see
// ops/_old_forms.py.
PyObject* call_old_form(Function* f, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (!f->dict || !PyFunction_Check(f->wrapped) || !PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(f->wrapped));
  if (PyVectorcall_NARGS(nargsf) <= code->co_argcount) return nullptr;
  PyObject* old_form = PyDict_GetItemString(f->dict, "old_form");
  if (!old_form) return nullptr;
  Ref<PyObject> keep(Py_NewRef(old_form));
  PyErr_Clear();
  return PyObject_Vectorcall(old_form, args, nargsf, kwnames);
}

// Note [signatures]: what torch parses natively refuses arguments of other types before anything is computed:
// sum(x, 0, 1) is an error, as is flip(x, 1). The signatures (rushlight/_signatures.txt) are attached at the
// first call; `fits` lets through what is surely right, and rushlight/_signatures.py decides about the rest.
// False, with a Python error set, if the call is refused. `instead` becomes the arguments to call it with, if
// torch makes others of them: floats of ints beyond 64 bits.
bool signatures_take(Function* f, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames,
                     Ref<PyObject>& instead) {
  return guarded([&]() -> int {
           auto* self = reinterpret_cast<PyObject*>(f);
           if (!f->looked_up) {
             Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._signatures"));
             Ref<PyObject> found = checked(PyObject_CallMethod(module.get(), "signatures_of", "O", self));
             if (found.get() == Py_False) return 1;  // the package is not complete yet
             if (found.get() != Py_None) {
               const char* text;
               int takes_self;
               if (!PyArg_ParseTuple(found.get(), "sp", &text, &takes_self)) throw PythonError{};
               f->signatures = read_signatures(text);
               f->takes_self = takes_self;
             }
             f->looked_up = true;
           }
           if (!f->signatures) return 1;
           int skipped = f->takes_self;
           if (positional >= skipped && (!skipped || is_tensor(args[0])) &&
               fits(*f->signatures, args + skipped, positional - skipped, args + positional, kwnames))
             return 1;
           Call call(args, positional, kwnames);
           Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._signatures"));
           Ref<PyObject> made = checked(
               PyObject_CallMethod(module.get(), "examine", "OOO", self, call.args.get(), call.kwargs.get()));
           if (made.get() != Py_None) instead = std::move(made);
           return 1;
         }) == 1;
}

// Note [out]: what is asked of an `out=` before anything is computed (rushlight/_outputs.py). False, with a
// Python error set, if it is refused. Where the call was made in asking, `done` is its result.
bool takes_out(Function* f, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames,
               Ref<PyObject>& done) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
    if (!is_out(PyTuple_GET_ITEM(kwnames, i))) continue;
    if (f->is_method) {
      Ref<PyObject> name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(f), "__name__"));
      if (name) PyErr_Format(PyExc_TypeError, "%S() got an unexpected keyword argument 'out'", name.get());
      return false;
    }
    PyObject* out = args[positional + i];
    if (out == Py_None) continue;
    Py_ssize_t count = PyTuple_CheckExact(out) ? PyTuple_GET_SIZE(out) : 0;
    bool known = is_tensor(out) || (count && count == f->accepted);
    if (known && is_plain_output(args, positional + PyTuple_GET_SIZE(kwnames), positional + i)) return true;
    return guarded([&]() -> int {
             auto* self = reinterpret_cast<PyObject*>(f);
             Call call(args, positional, kwnames);
             Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._outputs"));
             Ref<PyObject> made = checked(
                 PyObject_CallMethod(module.get(), "check", "OOO", self, call.args.get(), call.kwargs.get()));
             if (made.get() != Py_None) done = std::move(made);
             if (count) f->accepted = count;
             return 1;
           }) == 1;
  }
  return true;
}

PyObject* try_directly(Function* f, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (!f->direct_calls) {
    f->direct_calls = guarded([&]() -> const DirectCalls* {
      const char* text = PyUnicode_AsUTF8(f->direct);
      if (!text) throw PythonError{};
      return read_direct_calls(text);
    });
    if (!f->direct_calls) return nullptr;
  }
  return call_directly(*f->direct_calls, f->is_method, args, positional, kwnames);
}

// The Python function itself, or what stands in for it.
PyObject* call_wrapped(Function* f, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                       bool tried = false) {
  Ref<PyObject> watched;
  Py_ssize_t count = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  bool asked = dispatching_now && may_be_asked(args, count);
  if (f->direct && !tried && !asked) {
    PyObject* result = try_directly(f, args, PyVectorcall_NARGS(nargsf), kwnames);
    if (result || PyErr_Occurred()) return result;
  }
  if (f->while_watched && asked) watched = share(f->while_watched);
  PyObject* callee = watched ? watched.get() : f->wrapped;
  if (!f->looked_up || f->signatures) {
    Ref<PyObject> instead;
    if (!signatures_take(f, args, PyVectorcall_NARGS(nargsf), kwnames, instead)) return nullptr;
    if (instead) {
      PyObject *given, *by_name;
      if (!PyArg_ParseTuple(instead.get(), "O!O!", &PyTuple_Type, &given, &PyDict_Type, &by_name))
        return nullptr;
      return PyObject_Call(reinterpret_cast<PyObject*>(f), given, by_name);
    }
  }
  if (kwnames) {
    Ref<PyObject> done;
    if (!takes_out(f, args, PyVectorcall_NARGS(nargsf), kwnames, done)) return nullptr;
    if (done) return done.release();
    Ref<PyObject> names = translated(f->wrapped, kwnames);
    if (names) return PyObject_Vectorcall(callee, args, nargsf, names.get());
    Py_ssize_t positional = PyVectorcall_NARGS(nargsf), at = whole_keyword(f->wrapped, positional, kwnames);
    if (at >= 0) return call_with_whole(f->wrapped, callee, args, positional, kwnames, at);
  }
  PyObject* result = PyObject_Vectorcall(callee, args, nargsf, kwnames);
  return result ? result : call_old_form(f, args, nargsf, kwnames);
}

// The call with an `out=` that `__torch_dispatch__` is asked about (rushlight/_dispatching.py).
PyObject* dispatch_out(PyObject* function, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Call call(args, positional, kwnames);
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight._dispatching"));
  return PyObject_CallMethod(module.get(), "ask_out", "OOO", function, call.args.get(), call.kwargs.get());
}

// A call that failed because of its arguments, worded as torch words it (rushlight/_arguments.py). Keeps the
// error that is set if there is nothing better to say.
void reword_error(PyObject* function, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Ref<PyObject> sentence;
  Ref<PyObject> module(PyImport_ImportModule("rushlight._arguments"));
  Ref<PyObject> list(PyTuple_New(positional)), kwargs(PyDict_New());
  if (module && list && kwargs && value) {
    for (Py_ssize_t k = 0; k < positional; k++) PyTuple_SET_ITEM(list.get(), k, Py_NewRef(args[k]));
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
      PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, k), args[positional + k]);
    sentence = Ref<PyObject>(
        PyObject_CallMethod(module.get(), "reword", "OOOO", function, list.get(), kwargs.get(), value));
  }
  if (sentence && !PyUnicode_Check(sentence.get())) return PyErr_Restore(type, value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  if (sentence) PyErr_SetObject(PyExc_TypeError, sentence.get());
}

PyObject* call_function(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames,
                        bool tried = false);

// Whether a mode or a class of the arguments is asked what the call does.
bool asks_others(PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (modes.function_mode) return true;
  if (!modes.torch_function) return false;
  Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  return std::any_of(args, args + n, any_override);
}

// Whether a direct call is all there is to do: nobody looks on or is asked.
[[gnu::always_inline]] inline bool goes_directly(const Function* f, PyObject* const* args, size_t nargsf,
                                                 PyObject* kwnames) {
  if (!f->direct_calls || !f->direct || dispatching_now || profiling() || modes.function_mode) return false;
  Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!is_plain_tensor(args[i]) && any_override(args[i])) return !modes.torch_function;
  }
  return true;
}

PyObject* function_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Function* f = self_function(self);
  PyObject* result = nullptr;
  bool directly = goes_directly(f, args, nargsf, kwnames);
  if (directly) {
    result = call_directly(*f->direct_calls, f->is_method, args, PyVectorcall_NARGS(nargsf), kwnames);
    if (result) return result;
  }
  if (!directly || !PyErr_Occurred()) result = call_function(self, args, nargsf, kwnames, directly);
  if (!result && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_AttributeError)))
    reword_error(self, args, PyVectorcall_NARGS(nargsf), kwnames);
  return result;
}

PyObject* call_function(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames, bool tried) {
  Function* f = self_function(self);
  if (asks_others(args, nargsf, kwnames)) {
    return guarded([&] { return dispatch_call(self, args, PyVectorcall_NARGS(nargsf), kwnames); });
  }
  if (kwnames && dispatching_forwards()) {
    Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
      PyObject* out = args[positional + i];
      if (!is_out(PyTuple_GET_ITEM(kwnames, i)) || !is_tensor(out) || !asks_dispatch(as_tensor(out)))
        continue;
      return guarded([&] { return dispatch_out(self, args, positional, kwnames); });
    }
  }
  if (!profiling()) return call_wrapped(f, args, nargsf, kwnames, tried);
  return guarded([&]() -> PyObject* {
    CallTiming timing(self, args, PyVectorcall_NARGS(nargsf));
    return call_wrapped(f, args, nargsf, kwnames);
  });
}

// What the tensors that a function writes over held before, if it says so (before_write).
struct BeforeWrite {
  static thread_local BeforeWrite* innermost;
  BeforeWrite* outer = std::exchange(innermost, this);
  const Tensor* of;  // the function's first argument
  TensorRef copy;
  explicit BeforeWrite(const Tensor* of) : of(of) {}
  ~BeforeWrite() { innermost = outer; }
  BeforeWrite(const BeforeWrite&) = delete;

  // As a node keeps it to show it: with a history of its own, that of a copy.
  Ref<PyObject> to_keep() {
    static Primitive& alias = primitive("alias");
    GradMode on(true);
    TensorRef shown = call_on(alias, copy.get());
    if (shown->grad_fn) shown->grad_fn->op = renamed(&alias, "CloneBackward0");
    return kept_tensor(shown.get());
  }
};
thread_local BeforeWrite* BeforeWrite::innermost = nullptr;

}  // namespace

void note_before_write(const Tensor* of, Tensor* copy) {
  for (BeforeWrite* call = BeforeWrite::innermost; call; call = call->outer) {
    if (call->of == of) call->copy = share(copy);
  }
}

namespace {

// Gives views whose base was written their histories now, which are none of the nodes that the call records.
// A view that must not be used is refused by the call; so is a write into one that has no history yet
// (check_inplace). False, with a Python error set, if it was interrupted.
bool refresh_views(PyObject* const* args, Py_ssize_t n, bool writes) {
  auto refresh = [](Tensor* t) {
    try {
      refresh_view(t);
    } catch (...) {
      set_python_error();
      forget_error(PyExc_RuntimeError);
    }
  };
  return guarded([&]() -> int {
           for (Py_ssize_t i = 0; i < n; i++)
             if (is_tensor(args[i]) && as_tensor(args[i])->base() &&
                 !(writes && i == 0 && !as_tensor(args[i])->grad_fn))
               refresh(as_tensor(args[i]));
           return 1;
         }) == 1;
}

// What the table says `...` of is the result: without its history, which would hold the node.
void keep_result(PyObject* kept, PyObject* result) {
  PyObject *key, *value;
  if (!PyDict_CheckExact(kept) || !is_tensor(result)) return;
  for (Py_ssize_t at = 0; PyDict_Next(kept, &at, &key, &value);) {
    if (value != Py_Ellipsis) continue;
    Tensor* t = as_tensor(result);
    Ref<PyObject> entry =
        checked(Py_BuildValue("(NII)", new_alias(t).release_object(), counter_of(t)->version, t->output_nr));
    if (PyDict_SetItem(kept, key, entry.get()) < 0) throw PythonError{};
  }
}

// One node for what is composed here, so that the hooks are shown what torch's node keeps. NotImplemented if
// the steps are to be recorded: see rushlight/ops/_again.py.
PyObject* recorded_again(PyObject* self, PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject* recorded = nullptr;
  for (Py_ssize_t i = 0; i < positional + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0); i++) {
    bool asked = is_tensor(args[i]) && asks_dispatch(as_tensor(args[i]));
    if (asked || any_override(args[i])) Py_RETURN_NOTIMPLEMENTED;
  }
  if (!recorded) {
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.ops._again"));
    recorded = checked(PyObject_GetAttrString(module.get(), "recorded")).release();
  }
  Call call(args, positional, kwnames);
  return checked(PyObject_CallFunctionObjArgs(recorded, self, self_function(self)->node_name, call.args.get(),
                                              call.kwargs.get(), nullptr))
      .release();
}

// Whether the name says that the first argument is written: `zero_`.
bool is_in_place(PyObject* self) {
  Ref<PyObject> name(PyObject_GetAttrString(self_function(self)->wrapped, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!text) PyErr_Clear();
  std::string_view word = text ? text : "";
  return word.ends_with('_') && !word.ends_with("__");
}

// Whether the arguments are plain tensors of no history, or no tensors: what is computed of them directly
// records nothing, and has no node to be named.
bool records_nothing(PyObject* const* args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    if (is_plain_tensor(args[i]) ? as_tensor(args[i])->requires_grad() || as_tensor(args[i])->base()
                                 : !surely_plain(args[i]))
      return false;
  }
  return true;
}

PyObject* named_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  // The answer of a class may have a history of its own; the call it makes in turn comes back here.
  if (asks_others(args, nargsf, kwnames)) return function_vectorcall(self, args, nargsf, kwnames);
  Py_ssize_t count = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (self_function(self)->direct && !dispatching_now && !profiling() && records_nothing(args, count)) {
    PyObject* result = try_directly(self_function(self), args, PyVectorcall_NARGS(nargsf), kwnames);
    if (result) {
      hide_inner_view(result, {args, size_t(count)});
      return result;
    }
    if (PyErr_Occurred()) {
      if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_AttributeError))
        reword_error(self, args, PyVectorcall_NARGS(nargsf), kwnames);
      return nullptr;
    }
  }
  Tensor* first = PyVectorcall_NARGS(nargsf) && is_tensor(args[0]) ? as_tensor(args[0]) : nullptr;
  bool writes = modes.grad && first && first->base() && !first->grad_fn && is_in_place(self);
  if (modes.grad && !refresh_views(args, PyVectorcall_NARGS(nargsf), writes)) return nullptr;
  uint64_t since = next_node_number();
  Edge written = first ? Edge{first->grad_fn, first->output_nr} : Edge{nullptr, 0};  // compared, not followed
  if (saved_hooks_active() && recording() && !carrying() && !modes.function_mode) {
    PyObject* result =
        guarded([&] { return recorded_again(self, args, PyVectorcall_NARGS(nargsf), kwnames); });
    if (!result || result != Py_NotImplemented) return result;
    Py_DECREF(result);
  }
  BeforeWrite before(first);
  PyObject* result = function_vectorcall(self, args, nargsf, kwnames);
  if (!result) return result;
  bool given = false;  // what works in place, or has nothing to do, returns an argument
  for (Py_ssize_t i = 0; i < PyVectorcall_NARGS(nargsf); i++) given |= args[i] == result;
  Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
  std::span<PyObject* const> all_args(args, size_t(positional + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0)));
  if (next_node_number() == since) {
    hide_inner_view(result, all_args);
    return result;
  }
  Ref<PyObject> owned(result);
  return guarded([&]() -> PyObject* {
    Ref<PyObject> name = share(self_function(self)->node_name);
    if (!PyUnicode_Check(name.get())) {
      nargsf = size_t(positional);
      // Called in a way the namer does not know, the node keeps the name it has.
      name = Ref<PyObject>(PyObject_Vectorcall(name.get(), args, nargsf, kwnames));
      if (!name) {
        forget_error(PyExc_TypeError);
        return owned.release();
      }
    }
    // (name or None, what to keep, the tensors that torch differentiates by)
    Ref<PyObject> kept, inputs;
    if (PyTuple_Check(name.get()) && PyTuple_GET_SIZE(name.get()) >= 2) {
      kept = share(PyTuple_GET_ITEM(name.get(), 1));
      if (PyTuple_GET_SIZE(name.get()) > 2) inputs = share(PyTuple_GET_ITEM(name.get(), 2));
      name = share(PyTuple_GET_ITEM(name.get(), 0));
    }
    // Torch shows a copy of what was there before the write.
    bool self_kept =
        given && kept && PyDict_CheckExact(kept.get()) && PyDict_GetItemString(kept.get(), "self");
    if (self_kept && before.copy) {
      if (PyDict_SetItemString(kept.get(), "self", before.to_keep().get()) < 0) throw PythonError{};
    } else if (self_kept && PyDict_DelItemString(kept.get(), "self") < 0) throw PythonError{};
    if (kept) keep_result(kept.get(), result);
    const char* text = PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
    std::span<PyObject* const> known = all_args;
    bool all = inputs && PyTuple_CheckExact(inputs.get());
    if (all) known = {&PyTuple_GET_ITEM(inputs.get(), 0), size_t(PyTuple_GET_SIZE(inputs.get()))};
    if (text || kept) name_nodes(result, text, since, kept.get(), known, all, written);
    else hide_inner_view(result, all_args);
    return owned.release();
  });
}

bool is_dual(PyObject* o) {
  if (is_tensor(o)) return bool(tangent_of(as_tensor(o)));
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    if (is_dual(PySequence_Fast_GET_ITEM(o, i))) return true;
  }
  return false;
}

// "cdist": torch has a node for it, without a forward formula; "aten::gcd": it has not even that.
void refuse_forward_mode(PyObject* name) {
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (!text) return;
  failf(PyExc_NotImplementedError, "Trying to use forward AD with %s that does not support it%s.", text,
        strncmp(text, "aten::", 6) ? " because it has not been implemented yet" : "");
}

void refuse_complex_gradient(PyObject* name, PyObject* result) {
  PyObject* first = PyTuple_Check(result) && PyTuple_GET_SIZE(result) ? PyTuple_GET_ITEM(result, 0) : result;
  if (!PyUnicode_Check(name) || !is_tensor(first)) return;
  if (!as_tensor(first)->requires_grad() || !is_complex(as_tensor(first)->dtype)) return;
  failf(PyExc_RuntimeError, "%s does not support automatic differentiation for outputs with complex dtype.",
        PyUnicode_AsUTF8(name));
}

// Of an `out` and duals others complain (rushlight/_outputs.py).
bool gives_out(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
    if (is_out(PyTuple_GET_ITEM(kwnames, i)) && args[positional + i] != Py_None) return true;
  }
  return false;
}

// A function that torch cannot differentiate in every way: refuses what torch refuses.
PyObject* lacking_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Function* f = self_function(self);
  Ref<PyObject> no_complex_gradient = share(f->no_complex_gradient),
                no_forward_mode = share(f->no_forward_mode);
  Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
  return guarded([&]() -> PyObject* {
    if (carrying() && no_forward_mode && !gives_out(args, positional, kwnames)) {
      Py_ssize_t n = positional + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
      bool dual = false;
      for (Py_ssize_t i = 0; i < n && !dual; i++) dual = is_dual(args[i]);
      Ref<PyObject> name = share(no_forward_mode.get());
      if (dual && !PyUnicode_Check(name.get()))
        name = checked(PyObject_Vectorcall(no_forward_mode.get(), args, size_t(positional), kwnames));
      if (dual) refuse_forward_mode(name.get());
    }
    auto call = f->node_name ? named_vectorcall : function_vectorcall;
    Ref<PyObject> result = checked(call(self, args, nargsf, kwnames));
    // What was written, in place or to an `out`, torch lets pass.
    bool written = (positional && result.get() == args[0]) || gives_out(args, positional, kwnames);
    if (no_complex_gradient && !written) refuse_complex_gradient(no_complex_gradient.get(), result.get());
    return result.release();
  });
}

void choose_vectorcall(Function* f) {
  bool lacking = f->no_complex_gradient || f->no_forward_mode;
  f->vectorcall = lacking ? lacking_vectorcall : f->node_name ? named_vectorcall : function_vectorcall;
}

// Facts about a function, which tables in Python tell it (rushlight/ops/_facts.py): pointers in the struct,
// at the offset that is the closure. None stands for null.
PyObject*& fact(PyObject* self, void* offset) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + reinterpret_cast<size_t>(offset));
}
PyObject* get_fact(PyObject* self, void* offset) {
  PyObject* value = fact(self, offset);
  return Py_NewRef(value ? value : Py_None);
}
int set_fact(PyObject* self, PyObject* value, void* offset) {
  if (offset == reinterpret_cast<void*>(offsetof(Function, direct)))
    self_function(self)->direct_calls = nullptr;
  Py_XSETREF(fact(self, offset), value && value != Py_None ? Py_NewRef(value) : nullptr);
  choose_vectorcall(self_function(self));
  return 0;
}
PyGetSetDef fact_at(const char* name, size_t offset, const char* doc) {
  return {name, get_fact, set_fact, doc, reinterpret_cast<void*>(offset)};
}

PyObject* function_get(PyObject* self, PyObject* object, PyObject*) {
  if (!object) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

// Note [functions in classes]: what is native in torch does not become a method of the class that a program
// puts it into (`activation = torch.tanh`); what torch has in Python does. Both say so where Python asks for
// their kind (inspect.isbuiltin, isinstance(f, types.FunctionType)).
PyObject* builtin_get(PyObject* self, PyObject*, PyObject*) { return Py_NewRef(self); }
PyObject* get_class(PyObject* self, void*) {
  PyTypeObject* kind = Py_TYPE(self) == BuiltinType        ? &PyCFunction_Type
                       : self_function(self)->is_described ? &PyMethodDescr_Type
                                                           : &PyFunction_Type;
  return Py_NewRef(reinterpret_cast<PyObject*>(kind));
}

// make_builtin(functions), make_described(functions): they are native functions, or methods, in torch.
template <bool described>
PyObject* mark_native(PyObject*, PyObject* list) {
  return guarded([&]() -> PyObject* {
    Ref<PyObject> all = checked(PySequence_Fast(list, "expected functions"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all.get()); i++) {
      PyObject* one = PySequence_Fast_GET_ITEM(all.get(), i);
      if (!PyObject_TypeCheck(one, FunctionType)) fail(PyExc_TypeError, "expected public functions");
      if (described) {
        self_function(one)->is_described = true;
      } else if (Py_TYPE(one) == FunctionType) {
        Py_SET_TYPE(one, BuiltinType);
        Py_INCREF(BuiltinType);
        Py_DECREF(FunctionType);
      }
    }
    Py_RETURN_NONE;
  });
}

PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* wrapped;
  int is_method = 0;
  if (!PyArg_ParseTuple(args, "O|p", &wrapped, &is_method)) return nullptr;
  auto* f = reinterpret_cast<Function*>(type->tp_alloc(type, 0));
  if (!f) return nullptr;
  f->vectorcall = function_vectorcall;
  f->wrapped = Py_NewRef(wrapped);
  f->is_method = is_method;
  return reinterpret_cast<PyObject*>(f);
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self_function(self)->wrapped);
  Py_VISIT(self_function(self)->dict);
  Py_VISIT(self_function(self)->node_name);
  Py_VISIT(self_function(self)->no_complex_gradient);
  Py_VISIT(self_function(self)->no_forward_mode);
  Py_VISIT(self_function(self)->while_watched);
  Py_VISIT(self_function(self)->direct);
  return 0;
}
int function_clear(PyObject* self) {
  Py_CLEAR(self_function(self)->wrapped);
  Py_CLEAR(self_function(self)->dict);
  Py_CLEAR(self_function(self)->node_name);
  Py_CLEAR(self_function(self)->no_complex_gradient);
  Py_CLEAR(self_function(self)->no_forward_mode);
  Py_CLEAR(self_function(self)->while_watched);
  Py_CLEAR(self_function(self)->direct);
  return 0;
}
void function_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  function_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Name, docstring, signature and so on are the wrapped function's.
PyObject* function_getattro(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) PyErr_Clear();
  if (text && (!strcmp(text, "__doc__") || !strcmp(text, "__module__"))) {
    return PyObject_GetAttr(self_function(self)->wrapped, name);
  }
  PyObject* found = _PyObject_GenericGetAttrWithDict(self, name, nullptr, /*suppress=*/1);
  return found || PyErr_Occurred() ? found : PyObject_GetAttr(self_function(self)->wrapped, name);
}
PyObject* function_repr(PyObject* self) {
  PyObject* name = PyObject_GetAttrString(self_function(self)->wrapped, "__name__");
  if (!name) return nullptr;
  PyObject* text = PyUnicode_FromFormat("<built-in method %S of type object>", name);
  Py_DECREF(name);
  return text;
}
PyObject* function_reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(self_function(self)->wrapped, "__qualname__");
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Function, dict), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(Function, wrapped), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef getset[] = {fact_at("node_name", offsetof(Function, node_name),
                                "What the node that the function ends with is called."),
                        fact_at("no_complex_gradient", offsetof(Function, no_complex_gradient),
                                "The name by which torch refuses gradients of complex results."),
                        fact_at("no_forward_mode", offsetof(Function, no_forward_mode),
                                "The name by which torch refuses forward mode, or what returns it."),
                        fact_at("while_watched", offsetof(Function, while_watched),
                                "What is called in its place while somebody may be asked."),
                        fact_at("direct", offsetof(Function, direct),
                                "The calls for which it need not run: a primitive does all."),
                        {"__class__", get_class, nullptr, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", function_reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_new, reinterpret_cast<void*>(function_new)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(function_get)},
                       {Py_tp_getattro, reinterpret_cast<void*>(function_getattro)},
                       {Py_tp_repr, reinterpret_cast<void*>(function_repr)},
                       {Py_tp_members, members},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getset},
                       {0, nullptr}};
constexpr unsigned FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
PyType_Spec spec = {"rushlight._C.Function", sizeof(Function), 0,
                    FLAGS | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_BASETYPE, slots};

// The same but for how it is found in a class: without the flag of methods Python asks builtin_get.
PyTypeObject* new_builtin_type() {
  std::vector<PyType_Slot> own(std::begin(slots), std::end(slots));
  for (PyType_Slot& slot : own) {
    if (slot.slot == Py_tp_descr_get) slot.pfunc = reinterpret_cast<void*>(builtin_get);
  }
  PyType_Spec builtin = {"rushlight._C.Builtin", sizeof(Function), 0, FLAGS, own.data()};
  PyObject* base = reinterpret_cast<PyObject*>(FunctionType);
  auto* made = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&builtin, base)).release());
  FunctionType->tp_flags &= ~Py_TPFLAGS_BASETYPE;  // nobody else derives from it
  return made;
}

PyObject* set_parameter_type(PyObject*, PyObject* type) {
  if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), TensorType)) {
    PyErr_SetString(PyExc_TypeError, "Parameter must be a subclass of Tensor");
    return nullptr;
  }
  Py_INCREF(type);
  Py_XSETREF(ParameterType, reinterpret_cast<PyTypeObject*>(type));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"set_parameter_type", set_parameter_type, METH_O, nullptr},
                           {"make_builtin", mark_native<false>, METH_O, nullptr},
                           {"make_described", mark_native<true>, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_functions(PyObject* module) {
  out_name = PyUnicode_InternFromString("out");
  FunctionType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  BuiltinType = new_builtin_type();
  PyModule_AddObjectRef(module, "Builtin", reinterpret_cast<PyObject*>(BuiltinType));
  PyModule_AddObjectRef(module, "Function", reinterpret_cast<PyObject*>(FunctionType));
  PyModule_AddFunctions(module, functions);
}

}  // namespace rl
