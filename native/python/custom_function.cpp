// torch.autograd.Function: `apply` records a node whose derivative is the user's own.
//
// The node is the `ctx` that forward and backward are given (FunctionNode, graph/custom.h): its class is made
// per Function by rushlight/autograd/function.py and named like torch's (`MyFnBackward`). Start with
// `function_apply`; `finish_output` is the place where an output gets its history, `apply_function` runs the
// user's backward.
#include <algorithm>
#include <cstddef>

#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/errors.h"
#include "../graph/living.h"
#include "../graph/modes.h"
#include "../graph/rules.h"
#include "collector.h"
#include "custom_tangents.h"
#include "forward_mode.h"
#include "levels.h"
#include "primitive.h"
#include "profiler.h"
#include "tensor_type.h"

namespace rl {
namespace {

PyTypeObject* FunctionBaseType = nullptr;

// Names looked up at every call, and what the class Function itself has under them.
PyObject *name_forward, *name_setup_context, *name_backward, *name_vjp, *name_backward_cls, *name_forward_cls,
    *name_clear_on_access, *name_boxed;
PyObject *default_setup_context, *default_backward, *default_vjp;
PyObject* default_function;  // the class itself
PyObject* bind_arguments;    // (forward, args, kwargs, with_ctx) -> tuple of positional arguments

FunctionNode* self_function(PyObject* self) { return reinterpret_cast<FunctionNode*>(self); }

bool is_view(const Tensor* t) { return t->extra && t->extra->base && t->extra->differentiable_view; }

// ---- outputs

struct Call {
  FunctionNode* node;
  PyObject* inputs;  // tuple
  bool executable;
  bool recording;                 // outside of forward
  bool single;                    // one output at most
  Ref<PyObject> tangents;         // of the inputs, a tuple; empty if no input has one
  bool carrying;                  // inside a dual level
  bool separate_context = false;  // the Function has a setup_context of its own
};

int64_t tensor_position(PyObject* inputs, PyObject* o) {
  int64_t at = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
    PyObject* input = PyTuple_GET_ITEM(inputs, i);
    if (input == o) return at;
    at += is_tensor(input);
  }
  return -1;
}

void set_history(Tensor* t, Node* node, uint32_t nr) {
  Py_INCREF(node->object());
  leave_node(t);
  Py_XSETREF(t->grad_fn, node);
  t->output_nr = nr;
  join_node(t);
  t->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
}

void take_over_written(const Call& call, Tensor* t, uint32_t nr, int64_t at) {
  if (!t->grad_fn && shows_requires_grad(t)) {
    fail_at(PyExc_RuntimeError, "a leaf Variable that requires grad has been used in an in-place operation.",
            {{"It is written by a Function that is applied", call.node->source}},
            "Give the Function a clone() of it.");
  }
  if (at < 0) {
    const char* said =
        "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
        "should be passed to ctx.mark_dirty().";
    if (is_view(t)) fail(PyExc_RuntimeError, said);
    warn(said);
  }
  if (is_view(t) && !call.single) {
    fail(PyExc_RuntimeError,
         "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
         "return more than one Tensor. This is not supported by the current autograd engine. You should "
         "either "
         "make sure the input is not a view (using .clone() for example) or make your Function only return "
         "one "
         "Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single "
         "Tensor and a second one that does the other operations). You can ask on the forum "
         "https://discuss.pytorch.org/ if you need help to do this change.");
  }
  {
    GradMode on(true);
    check_inplace(t);
  }
  if (t->extra) {
    set_held(t->extra->grad, nullptr);
    Py_CLEAR(t->extra->hooks);
  }
  rewrite_history(t, share(static_cast<Node*>(call.node)), at < 0 ? 0 : uint32_t(at), nr);
  if (!is_view(t)) stamp_write(t);
}

// An input that forward returned as it is: a view of it, made by its own class if that is not ours.
TensorRef view_of_input(const Call& call, Tensor* t) {
  if (call.separate_context &&
      (contains(call.node->to_save, t->object()) || contains(call.node->saved_for_forward, t->object()))) {
    fail(PyExc_RuntimeError,
         "An input that has been returned as-is as output is being saved for backward. This is not supported "
         "if you override setup_context. You should return and save a view of the input instead, e.g. with "
         "x.view_as(x) or setup ctx inside the forward function itself.");
  }
  if (Py_TYPE(t) != TensorType) {
    Ref<PyObject> view = checked(PyObject_CallMethod(t->object(), "view_as", "O", t->object()));
    if (is_tensor(view.get()) && view.get() != t->object()) return TensorRef(as_tensor(view.release()));
  }
  int64_t strides[MAX_DIMS];  // as view_as lays them out, which differs in dimensions of size 1
  bool laid = view_strides(t, t->sizes(), strides);
  return new_view(t, t->sizes(), laid ? Sizes(strides, size_t(t->ndim)) : t->strides(), t->offset);
}

// What the caller gets for output `nr`; gives it its history.
TensorRef finish_output(const Call& call, Tensor* t, uint32_t nr, uint32_t& differentiable) {
  FunctionNode* node = call.node;
  int64_t at = tensor_position(call.inputs, t->object());
  bool modified = contains(node->dirty, t->object());
  bool records =
      call.executable && is_differentiable(t->dtype) && !contains(node->non_differentiable, t->object());
  if (!records) {
    if (!shows_requires_grad(t)) {
      return at >= 0 && !modified ? view_of_input(call, t) : share(t);
    }
    if (at >= 0) return dispatches(t) ? dispatched_detach(t) : new_alias(t);
    if (!is_view(t) && !(t->flags & Tensor::INFERENCE)) {
      leave_node(t);
      Py_CLEAR(t->grad_fn);
      t->output_nr = 0;
      t->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
    }
    return share(t);
  }
  differentiable++;
  node->differentiable_outputs.set(nr);
  set_output(node, nr, t);
  if (modified) {
    take_over_written(call, t, nr, at);
    return share(t);
  }
  TensorRef result = at >= 0 ? view_of_input(call, t) : share(t);
  set_history(result.get(), node, nr);
  return result;
}

// A mark that was set as an attribute of ctx may be anything.
void check_mark(PyObject* mark, const char* name) {
  if (!mark || PyTuple_Check(mark)) return;
  failf(PyExc_RuntimeError, "autograd internal error: %s attribute is expected to be a tuple but is %s", name,
        Py_TYPE(mark)->tp_name);
}

template <class Visit>
void for_each(PyObject* tuple_or_null, Visit visit) {
  for (Py_ssize_t i = 0; tuple_or_null && PyTuple_Check(tuple_or_null) && i < PyTuple_GET_SIZE(tuple_or_null);
       i++)
    visit(i, PyTuple_GET_ITEM(tuple_or_null, i));
}

// Looks at what forward saved and marked when it is over, in torch's order, and counts the writes.
void check_marks(const Call& call, PyObject* to_save) {
  check_mark(call.node->non_differentiable, "non_differentiable");
  check_mark(call.node->dirty, "dirty_tensors");
  if (call.executable) check_mark(to_save, "to_save");
  for_each(call.executable ? to_save : nullptr, [](Py_ssize_t i, PyObject* o) {
    if (is_tensor(o) || o == Py_None) return;
    failf(PyExc_TypeError, "save_for_backward can only save variables, but argument %zd is of type %s", i,
          Py_TYPE(o)->tp_name);
  });
  for_each(call.node->non_differentiable, [](Py_ssize_t, PyObject* o) {
    if (is_tensor(o)) return;
    failf(PyExc_RuntimeError, "mark_non_differentiable only accepts variable arguments, but got %s",
          Py_TYPE(o)->tp_name);
  });
  for_each(call.node->dirty, [](Py_ssize_t i, PyObject* o) {
    if (!is_tensor(o)) {
      failf(PyExc_RuntimeError, "mark_dirty can only accept variables, but argument %zd is of type %s", i,
            Py_TYPE(o)->tp_name);
    }
    check_inplace(as_tensor(o));  // nothing is recorded yet: whether it is one of inference mode
    note_write(as_tensor(o));
  });
}

void check_dirty_returned(const FunctionNode* node, PyObject* outputs) {
  for_each(node->dirty, [outputs](Py_ssize_t, PyObject* o) {
    if (contains(outputs, o)) return;
    fail(PyExc_RuntimeError,
         "Some elements marked as dirty during the forward method were not returned as output. The inputs "
         "that are modified inplace must all be outputs of the Function.");
  });
}

// `values`: a tuple of tensors and None, or null.
void save_values(FunctionNode* node, PyObject* values) {
  Py_ssize_t n = values ? PyTuple_GET_SIZE(values) : 0;
  if (n > UINT16_MAX) fail(PyExc_RuntimeError, "save_for_backward: too many tensors");
  if (n > 2) node->saved = new Saved[size_t(n)]{};
  node->saved_count = uint16_t(n);
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* o = PyTuple_GET_ITEM(values, i);
    if (o == Py_None) {
      node->saved[i] = {Py_NewRef(o), 0, 0};
      continue;
    }
    Tensor* t = as_tensor(o);
    // The history of a view that was written here leads back to this node: it is kept as the output it is.
    bool written = t->grad_fn && is_view(t) && contains(node->dirty, o);
    bool own = t->grad_fn == node || written;
    if (own) {
      if (!node->saved_output) {
        node->saved_output = new int32_t[size_t(n)];
        std::fill_n(node->saved_output, n, -1);
      }
      node->saved_output[i] = t->grad_fn == node ? int32_t(t->output_nr) : 0;  // a written view: the only one
    }
    bool itself = !own && !t->grad_fn && !saved_hooks_active() && !(t->flags & Tensor::INFERENCE);
    node->saved[i] = itself ? save_itself(t) : save_tensor(t, !own, node);
  }
}

void check_pure_view(const Call& call, Py_ssize_t outputs) {
  Py_ssize_t tensors = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(call.inputs); i++)
    tensors += is_tensor(PyTuple_GET_ITEM(call.inputs, i));
  if (tensors == 1 && outputs == 1) return;
  fail(PyExc_RuntimeError,
       "Pure view custom Function can only have one input Tensor and one output Tensor. Open an issue if you "
       "need to support more.");
}

// Turns what forward returned into what apply returns.
Ref<PyObject> finish(Call& call, PyObject* raw) {
  FunctionNode* node = call.node;
  bool several = PyTuple_Check(raw);
  Ref<PyObject> outputs = several ? share(raw) : checked(PyTuple_Pack(1, raw));
  Py_ssize_t n = PyTuple_GET_SIZE(outputs.get());
  if (node->pure_view) check_pure_view(call, n);
  // Held: a pack hook or jvp may ask for other values to be saved, which is too late.
  Ref<PyObject> to_save = share(node->to_save);
  check_marks(call, to_save.get());
  set_outputs(node, uint32_t(n));
  node->tensor_outputs.resize(size_t(n));
  node->differentiable_outputs.resize(size_t(n));
  call.single = n <= 1;
  Ref<PyObject> results = checked(PyTuple_New(n));
  uint32_t differentiable = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* o = PyTuple_GET_ITEM(outputs.get(), i);
    if (!is_tensor(o)) {
      PyTuple_SET_ITEM(results.get(), i, Py_NewRef(o));
      continue;
    }
    node->tensor_outputs.set(size_t(i));
    TensorRef result = finish_output(call, as_tensor(o), uint32_t(i), differentiable);
    if (!result->grad_fn) set_output(node, uint32_t(i), result.get());  // for zeros in its place
    PyTuple_SET_ITEM(results.get(), i, result.release_object());
  }
  check_dirty_returned(node, outputs.get());
  // See Note [views and in-place]: the derivative of a view made here is the user's, not that of the view.
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* o = PyTuple_GET_ITEM(results.get(), i);
    bool written = contains(node->dirty, o) && tensor_position(call.inputs, o) >= 0;
    if (!is_tensor(o) || !is_view(as_tensor(o)) || written) continue;
    Extra* extra = as_tensor(o)->extra;
    ViewOrigin single = !node->pure_view  ? ViewOrigin::custom
                        : call.executable ? ViewOrigin::ordinary
                                          : extra->origin;  // made without a history
    extra->origin = differentiable > 1 ? ViewOrigin::multi_output : single;
    if (as_tensor(o)->grad_fn == node) extra->view_version = counter_of(as_tensor(o))->version;
  }
  Py_CLEAR(node->to_save);
  // Before anything is saved: what jvp reads is what was saved for it.
  if (call.tangents) {
    GradMode mode(call.recording);
    push_tangents(node, call.inputs, call.tangents.get(), outputs.get(), results.get());
  }
  if (call.executable) save_values(node, to_save.get());
  if (call.carrying && call.executable) share_saved_tangents(node, to_save.get());
  Py_CLEAR(node->saved_for_forward);
  Py_CLEAR(node->to_save);
  Py_CLEAR(node->dirty);
  Py_CLEAR(node->non_differentiable);
  return several ? results : share(PyTuple_GET_ITEM(results.get(), 0));
}

// ---- apply

// The positional arguments of forward: keyword arguments and, with setup_context, defaults put in their
// places.
Ref<PyObject> positional(PyObject* forward, PyObject* const* args, Py_ssize_t n, PyObject* kwnames,
                         bool separate_context) {
  PyObject* plain = PyMethod_Check(forward) ? PyMethod_GET_FUNCTION(forward) : forward;
  bool defaults = false;
  if (separate_context && PyFunction_Check(plain)) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(plain));
    Py_ssize_t filled = n + (plain != forward);
    bool fits = code->co_flags & CO_VARARGS ? filled >= code->co_argcount : filled == code->co_argcount;
    defaults = !fits || PyFunction_GET_DEFAULTS(plain) || PyFunction_GET_KW_DEFAULTS(plain);
  }
  Ref<PyObject> given = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(args[i]));
  if (!defaults && !(kwnames && PyTuple_GET_SIZE(kwnames))) return given;
  Ref<PyObject> named = checked(PyDict_New());
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
    if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0) throw PythonError{};
  }
  Ref<PyObject> bound = checked(PyObject_CallFunctionObjArgs(
      bind_arguments, forward, given.get(), named.get(), separate_context ? Py_False : Py_True, nullptr));
  if (!PyTuple_Check(bound.get())) fail(PyExc_TypeError, "apply(): the arguments could not be bound");
  return bound;
}

Ref<PyObject> call_forward(PyObject* forward, PyObject* ctx, PyObject* inputs) {
  Py_ssize_t n = PyTuple_GET_SIZE(inputs);
  PyObject* room[9];
  std::vector<PyObject*> heap;
  PyObject** list = room;
  if (n > 8) {
    heap.resize(size_t(n) + 1);
    list = heap.data();
  }
  list[0] = ctx;
  std::copy_n(&PyTuple_GET_ITEM(inputs, 0), n, list + 1);
  size_t skipped = ctx ? 0 : 1;
  return checked(PyObject_Vectorcall(forward, list + skipped, size_t(n) + 1 - skipped, nullptr));
}

// An attribute of a Function's class that says how it is to be called.
bool class_flag(PyObject* cls, PyObject* name) {
  Ref<PyObject> flag = checked(PyObject_GetAttr(cls, name));
  if (!PyBool_Check(flag.get()))
    failf(PyExc_RuntimeError, "%s must be a bool, got %s", PyUnicode_AsUTF8(name),
          Py_TYPE(flag.get())->tp_name);
  return flag.get() == Py_True;
}

// Where functions are transformed, a Function acts at one level after the other
// (rushlight/func/_function.py).
Ref<PyObject> apply_at_levels(PyObject* cls, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.func._function"));
  Ref<PyObject> apply = checked(PyObject_GetAttrString(module.get(), "apply"));
  std::vector<PyObject*> given{cls};
  given.insert(given.end(), args, args + n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
  return checked(PyObject_Vectorcall(apply.get(), given.data(), size_t(n) + 1, kwnames));
}

// apply_function(Function, arguments ...): as `Function.apply`, whatever is being transformed.
PyObject* apply_here(PyObject* cls, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    Ref<PyObject> backward_cls = checked(PyObject_GetAttr(cls, name_backward_cls));
    Ref<PyObject> forward = checked(PyObject_GetAttr(cls, name_forward));
    Ref<PyObject> setup = checked(PyObject_GetAttr(cls, name_setup_context));
    bool separate_context = setup.get() != default_setup_context;
    bool clears = class_flag(cls, name_clear_on_access);
    auto* type = reinterpret_cast<PyTypeObject*>(backward_cls.get());
    if (!PyType_Check(backward_cls.get()) || !PyType_IsSubtype(type, FunctionBaseType)) {
      fail(PyExc_TypeError, "_backward_cls must be a class of graph nodes");
    }
    Ref<PyObject> inputs = positional(forward.get(), args, n, kwnames, separate_context);
    n = PyTuple_GET_SIZE(inputs.get());
    Ref<PyObject> ctx = checked(type->tp_alloc(type, 0));
    PyObject_GC_UnTrack(ctx.get());
    expect_loops();  // through its attributes, or its class
    FunctionNode* node = self_function(ctx.get());
    node->kind = Node::custom;  // freed as such also if something fails before it is set up
    node->clears = clears;
    uint32_t tensors = 0;
    bool any = false;
    node->tensor_arguments.resize(size_t(n));
    Ref<PyObject> needs = checked(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* o = PyTuple_GET_ITEM(inputs.get(), i);
      bool need = false;
      if (is_tensor(o)) {
        tensors++;
        node->tensor_arguments.set(size_t(i));
        if (as_tensor(o)->base()) refresh_view(as_tensor(o));
        need = shows_requires_grad(as_tensor(o));
      }
      any |= need;
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(need));
    }
    node->argument_count = uint32_t(n);
    node->needs_input_grad = needs.release();
    Call call{node, inputs.get(), any && modes.grad, modes.grad, true, {}, carrying(), separate_context};
    if (carrying()) call.tangents = input_tangents(inputs.get());
    init_node(node, Node::custom, nullptr, call.executable ? tensors : 0, 0);
    if (call.executable) {
      Edge* edge = node->edges;
      for (Py_ssize_t i = 0; i < n; i++) {
        PyObject* o = PyTuple_GET_ITEM(inputs.get(), i);
        if (is_tensor(o)) *edge++ = gradient_edge(as_tensor(o));
      }
    }
    PartTiming timing(reinterpret_cast<PyTypeObject*>(cls), int64_t(node->sequence), inputs.get());
    GradMode off(false);
    WithoutTangents no_tangents;
    Ref<PyObject> raw = call_forward(forward.get(), separate_context ? nullptr : ctx.get(), inputs.get());
    if (separate_context)
      checked(PyObject_CallFunctionObjArgs(setup.get(), ctx.get(), inputs.get(), raw.get(), nullptr));
    return finish(call, raw.get()).release();
  });
}

PyObject* py_apply_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n < 1) {
    PyErr_SetString(PyExc_TypeError, "apply_function(Function, arguments ...) expected");
    return nullptr;
  }
  return apply_here(args[0], args + 1, n - 1, nullptr);
}

PyObject* function_apply(PyObject* cls, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  bool transformed = transforming() && PyType_Check(cls) && PyType_Check(default_function) &&
                     PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls),
                                      reinterpret_cast<PyTypeObject*>(default_function));
  if (!transformed) return apply_here(cls, args, n, kwnames);
  return guarded([&]() -> PyObject* { return apply_at_levels(cls, args, n, kwnames).release(); });
}

// ---- backward

Ref<PyObject> user_backward(PyObject* cls) {
  Ref<PyObject> backward = checked(PyObject_GetAttr(cls, name_backward));
  Ref<PyObject> vjp = checked(PyObject_GetAttr(cls, name_vjp));
  if (vjp.get() == default_vjp) return backward;
  if (backward.get() != default_backward) {
    fail(PyExc_RuntimeError,
         "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
         "implement one of them.");
  }
  return vjp;
}

// `given`: the gradients again, where they may be taken away.
Ref<PyObject> call_backward(FunctionNode* node, Tensor* const* grads, Tensor** given) {
  size_t n = node->output_count;
  Ref<PyObject> cls = checked(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(node)), name_forward_cls));
  Ref<PyObject> function = user_backward(cls.get());
  Ref<PyObject> list = checked(PyList_New(Py_ssize_t(n)));
  for (size_t i = 0; i < n; i++) {
    PyObject* grad = grads[i] ? Py_NewRef(grads[i]->object()) : nullptr;
    bool wants_zeros = !node->keep_undefined && node->tensor_outputs[i];
    if (!grad && wants_zeros && node->keep_undefined_constants) wants_zeros = node->differentiable_outputs[i];
    if (!grad && wants_zeros) {
      grad = zeros_for(node->outputs[i], grads, uint32_t(n)).release_object();
    }
    PyList_SET_ITEM(list.get(), i, grad ? grad : Py_NewRef(Py_None));
  }
  if (class_flag(cls.get(), name_boxed)) {
    // Backward frees them by taking them out of the list.
    for (size_t i = 0; given && i < n; i++) Py_CLEAR(given[i]);
    PyObject* args[] = {node->object(), list.get()};
    return checked(PyObject_Vectorcall(function.get(), args, 2, nullptr));
  }
  std::vector<PyObject*> args = {node->object()};
  for (size_t i = 0; i < n; i++) args.push_back(PyList_GET_ITEM(list.get(), i));
  return checked(PyObject_Vectorcall(function.get(), args.data(), args.size(), nullptr));
}

// The user's gradients, one per argument of forward; extra ones must be None.
Ref<PyObject> checked_gradients(FunctionNode* node, Ref<PyObject> answer) {
  if (!PyTuple_Check(answer.get())) answer = checked(PyTuple_Pack(1, answer.get()));
  Py_ssize_t n = PyTuple_GET_SIZE(answer.get()), expected = node->argument_count;
  bool fits = n >= expected;
  for (Py_ssize_t i = expected; fits && i < n; i++) fits = PyTuple_GET_ITEM(answer.get(), i) == Py_None;
  if (!fits) {
    fail_at(PyExc_RuntimeError,
            "function " + node_name(node) + " returned an incorrect number of gradients (expected " +
                std::to_string(expected) + ", got " + std::to_string(n) + ")",
            {{"The Function was applied", node->source}},
            "backward returns one gradient per argument of forward, None for those that have none.");
  }
  return answer;
}

// ---- attributes of ctx

PyObject* get_saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    FunctionNode* node = self_function(self);
    if (node->saved_for_forward) return Py_NewRef(node->saved_for_forward);
    if (node->clears && node->accessed) {
      fail(PyExc_RuntimeError,
           "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
           "autograd.Function. Either access saved_tensors only once, or set "
           "clear_saved_tensors_on_access=False.");
    }
    if (node->released) fail_freed(node);
    Ref<PyObject> result = checked(PyTuple_New(node->saved_count));
    for (int i = 0; i < node->saved_count; i++) {
      int out = node->saved_output ? node->saved_output[i] : -1;
      Ref<PyObject> value = unpack(node, i, out);
      PyObject* kept = node->saved[i].object;  // an unpack hook may have freed it
      if (out < 0 && kept && !is_packed(kept)) value = original(std::move(value));
      PyTuple_SET_ITEM(result.get(), i, value.release());
    }
    if (node->clears) {
      node->accessed = true;
      for (int i = 0; i < node->saved_count; i++) release(node->saved[i]);
    }
    return result.release();
  });
}

// Frees what was saved as soon as backward has read it, unless the graph is to be kept.
PyObject* maybe_clear_saved_tensors(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!run_keeps_graph()) release_saved(self_function(self), current_source());
    Py_RETURN_NONE;
  });
}

PyObject* get_raw_saved_tensors(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    FunctionNode* node = self_function(self);
    if (node->released) fail_freed(node);
    int count = node->clears && node->accessed ? 0 : node->saved_count;
    Ref<PyObject> core = checked(PyImport_ImportModule("rushlight._C"));
    Ref<PyObject> result = checked(PyTuple_New(count));
    for (int i = 0; i < count; i++) {
      int out = node->saved_output ? node->saved_output[i] : -1;
      PyObject* one = PyObject_CallMethod(core.get(), "raw_saved", "Oii", self, i, out);
      if (!one) return nullptr;
      PyTuple_SET_ITEM(result.get(), i, one);
    }
    return result.release();
  });
}

template <PyObject* FunctionNode::*field>
PyObject* get_object(PyObject* self, void*) {
  PyObject* value = self_function(self)->*field;
  return Py_NewRef(value ? value : Py_None);
}
template <PyObject* FunctionNode::*field>
int set_object(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(self_function(self)->*field, value && value != Py_None ? Py_NewRef(value) : nullptr);
  return 0;
}

int set_materialize(PyObject* self, PyObject* value, void*) {
  if (!value || !PyBool_Check(value)) {
    PyErr_SetString(PyExc_TypeError,
                    "set_materialize_grads received an invalid combination of arguments - got (), but "
                    "expected (bool)");
    return -1;
  }
  self_function(self)->keep_undefined = value == Py_False;
  return 0;
}
PyObject* get_materialize(PyObject*, void*) {
  PyErr_SetString(PyExc_AttributeError,
                  "attribute 'materialize_grads' of 'torch._C._FunctionBase' objects is not readable");
  return nullptr;
}

int set_pure_view(PyObject* self, PyObject* value, void*) {
  if (!value || !PyBool_Check(value)) {
    PyErr_SetString(
        PyExc_TypeError,
        "set_pure_view received an invalid combination of arguments - got (), but expected (bool)");
    return -1;
  }
  self_function(self)->pure_view = value == Py_True;
  return 0;
}
PyObject* get_pure_view(PyObject*, void*) {
  PyErr_SetString(PyExc_AttributeError,
                  "attribute '_is_pure_view' of 'torch._C._FunctionBase' objects is not readable");
  return nullptr;
}

int set_materialize_constants(PyObject* self, PyObject* value, void*) {
  int truth = value ? PyObject_IsTrue(value) : 1;
  if (truth < 0) return -1;
  self_function(self)->keep_undefined_constants = !truth;
  return 0;
}
PyObject* get_materialize_constants(PyObject* self, void*) {
  return PyBool_FromLong(!self_function(self)->keep_undefined_constants);
}

PyObject* get_requires_grad(PyObject* self, void*) {
  return PyBool_FromLong(self_function(self)->edge_count > 0);
}

PyObject* tuple_of(PyObject* const* args, Py_ssize_t n) {
  PyObject* tuple = PyTuple_New(n);
  for (Py_ssize_t i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
  return tuple;
}

template <PyObject* FunctionNode::*field>
PyObject* keep_all(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  PyObject* all = tuple_of(args, n);
  if (!all) return nullptr;
  Py_XSETREF(self_function(self)->*field, all);
  Py_RETURN_NONE;
}

PyObject* save_for_forward(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; i++) {
    if (is_tensor(args[i]) || args[i] == Py_None) continue;
    PyErr_SetString(PyExc_AssertionError,
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                    "attributes on ctx.");
    return nullptr;
  }
  return keep_all<&FunctionNode::saved_for_forward>(self, args, n);
}

PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
  if (set_materialize(self, value, nullptr) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref<PyObject> made = checked(type->tp_alloc(type, 0));
    init_node(self_function(made.get()), Node::custom, nullptr, 0, 0);
    return made.release();
  });
}

// set_function_defaults(Function, bind): the class whose methods count as not overridden.
PyObject* set_function_defaults(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *cls, *bind;
    if (!PyArg_ParseTuple(args, "OO", &cls, &bind)) return nullptr;
    default_setup_context = checked(PyObject_GetAttr(cls, name_setup_context)).release();
    default_backward = checked(PyObject_GetAttr(cls, name_backward)).release();
    default_vjp = checked(PyObject_GetAttr(cls, name_vjp)).release();
    bind_arguments = Py_NewRef(bind);
    default_function = Py_NewRef(cls);
    Py_RETURN_NONE;
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef methods[] = {
    {"apply", FAST(function_apply) | METH_KEYWORDS | METH_CLASS,
     "apply($type, /, *args, **kwargs)\n--\n\nRuns forward and records its derivative."},
    {"save_for_backward", FAST(keep_all<&FunctionNode::to_save>),
     "save_for_backward($self, /, *tensors)\n--\n\nKeeps tensors for backward, as ctx.saved_tensors."},
    {"save_for_forward", FAST(save_for_forward),
     "save_for_forward($self, /, *tensors)\n--\n\nKeeps tensors for jvp, as ctx.saved_tensors."},
    {"mark_dirty", FAST(keep_all<&FunctionNode::dirty>),
     "mark_dirty($self, /, *args)\n--\n\nSays which inputs forward has written."},
    {"mark_non_differentiable", FAST(keep_all<&FunctionNode::non_differentiable>),
     "mark_non_differentiable($self, /, *args)\n--\n\nSays which outputs have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "set_materialize_grads($self, value, /)\n--\n\nWhether gradients that are not there come as zeros."},
    {"maybe_clear_saved_tensors", maybe_clear_saved_tensors, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
#define TUPLE(field)                                                                         \
  {                                                                                          \
#field, get_object < &FunctionNode::field>, set_object < &FunctionNode::field>, nullptr, \
        const_cast < char*>(#field)                                                          \
  }
PyGetSetDef getset[] = {
    {"saved_tensors", get_saved_tensors, nullptr, "What save_for_backward was given.", nullptr},
    {"_raw_saved_tensors", get_raw_saved_tensors, nullptr, nullptr, nullptr},
    {"materialize_grads", get_materialize, set_materialize, nullptr, nullptr},
    {"_is_pure_view", get_pure_view, set_pure_view, nullptr, nullptr},
    {"_materialize_non_diff_grads", get_materialize_constants, set_materialize_constants, nullptr, nullptr},
    {"requires_grad", get_requires_grad, nullptr, nullptr, nullptr},
    TUPLE(to_save),
    TUPLE(saved_for_forward),
    TUPLE(non_differentiable),
    TUPLE(needs_input_grad),
    {"dirty_tensors", get_object<&FunctionNode::dirty>, set_object<&FunctionNode::dirty>, nullptr,
     const_cast<char*>("dirty_tensors")},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    // The first field after the base, which ends with a pointer; offsetof is for structs without a base.
    {"__dictoffset__", T_PYSSIZET, sizeof(Node), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyMethodDef functions[] = {{"set_function_defaults", set_function_defaults, METH_VARARGS, nullptr},
                           {"apply_function", FAST(py_apply_function), nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  name_forward = PyUnicode_InternFromString("forward");
  name_setup_context = PyUnicode_InternFromString("setup_context");
  name_backward = PyUnicode_InternFromString("backward");
  name_vjp = PyUnicode_InternFromString("vjp");
  name_backward_cls = PyUnicode_InternFromString("_backward_cls");
  name_forward_cls = PyUnicode_InternFromString("_forward_cls");
  name_clear_on_access = PyUnicode_InternFromString("clear_saved_tensors_on_access");
  name_boxed = PyUnicode_InternFromString("boxed_grads_call");
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                         {Py_tp_new, reinterpret_cast<void*>(function_new)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, getset},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec = {"torch._C._FunctionBase", sizeof(FunctionNode), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, slots};
  Ref<PyObject> bases = checked(PyTuple_Pack(1, NodeType));
  FunctionBaseType =
      reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())).release());
  PyModule_AddObjectRef(module, "_FunctionBase", reinterpret_cast<PyObject*>(FunctionBaseType));
  PyModule_AddFunctions(module, functions);
});

}  // namespace

void clear_function(FunctionNode* node) {
  Py_CLEAR(node->attributes);
  Py_CLEAR(node->to_save);
  Py_CLEAR(node->saved_for_forward);
  Py_CLEAR(node->non_differentiable);
  Py_CLEAR(node->dirty);
  Py_CLEAR(node->needs_input_grad);
  delete[] std::exchange(node->saved_output, nullptr);
  delete[] std::exchange(node->tensor_arguments.more, nullptr);
  delete[] std::exchange(node->tensor_outputs.more, nullptr);
  delete[] std::exchange(node->differentiable_outputs.more, nullptr);
}

int visit_function(FunctionNode* node, visitproc visit, void* arg) {
  Py_VISIT(node->attributes);
  Py_VISIT(node->to_save);
  Py_VISIT(node->saved_for_forward);
  Py_VISIT(node->non_differentiable);
  Py_VISIT(node->dirty);
  Py_VISIT(node->needs_input_grad);
  return 0;
}

void apply_function(Node* base, Tensor* const* grads, std::vector<TensorRef>& results, Tensor** given) {
  FunctionNode* node = as_function(base);
  Ref<PyObject> answer = checked_gradients(node, call_backward(node, grads, given));
  uint32_t edge = 0;
  bool hooked = node->extra && node->extra->posthooks;  // hooks see what was returned, wanted or not
  for (uint32_t i = 0; i < node->argument_count; i++) {
    PyObject* grad = PyTuple_GET_ITEM(answer.get(), i);
    bool tensor = node->tensor_arguments[i];
    if (grad != Py_None && !tensor) {
      failf(
          PyExc_RuntimeError,
          "function %s returned a gradient different than None at position %u, but the corresponding forward "
          "input was not a Variable",
          node_name(node).c_str(), i + 1);
    }
    if (grad != Py_None && !is_tensor(grad)) {
      failf(PyExc_RuntimeError, "expected Variable or None (got %s)", Py_TYPE(grad)->tp_name);
    }
    if (!tensor) continue;
    if (edge >= results.size()) break;
    bool wanted = node->edges[edge].node;
    if (grad != Py_None && (wanted || hooked)) results[edge] = share(as_tensor(grad));
    // Also a gradient that nobody asked for tells of a mistake.
    if (grad != Py_None && !wanted && anomaly && anomaly_check_nan)
      check_for_nan(node, edge, as_tensor(grad));
    edge++;
  }
}

}  // namespace rl
