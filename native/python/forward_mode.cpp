// Forward mode. A dual tensor is a tensor with a tangent in its Extra; while a dual level is open
// (carrying(), in every thread), every primitive that sees one asks Python for the tangents of its outputs
// (rushlight/ops/_tangents.py knows the formulas) and hangs them on.
//
// Tangents carry the number of the level they belong to, so that those of a level that is closed do not
// count. They are let go of then, too: the tangent of a result is computed from it, and a graph that keeps
// the result would lead back to itself. Memory is laid out as the primal's, so that the tangent of a view is
// the same view of the tangent. Start with give_tangents.
#include "forward_mode.h"

#include <algorithm>
#include <unordered_set>

#include "../graph/modes.h"
#include "collector.h"
#include "levels.h"
#include "tensor_type.h"

namespace rl {

uint64_t dual_level = 0;
thread_local bool tangents_wanted = true;

namespace {

uint64_t last_level = 0;  // numbers are never used twice
PyObject* formulas = nullptr;

struct WithoutForward : Switched<&Modes::forward> {
  WithoutForward() : Switched(false) {}
};

std::unordered_set<Extra*> duals;  // those with a tangent in the open level

void set_tangent(Tensor* t, TensorRef tangent) {
  Extra* extra = extra_of(t);
  if (tangent) {
    extra->dual = true;
    duals.insert(extra);
    if (tangent->grad_fn) expect_loop(t->object());  // while the level is open
  }
  Tensor* old = std::exchange(extra->tangent, tangent.release());
  extra->tangent_level = dual_level;
  if (old) Py_DECREF(old->object());
}

bool has_tangent(PyObject* o) { return is_tensor(o) && tangent_of(as_tensor(o)); }

bool any_tangent(const Primitive& op, PyObject* const* args) {
  for (int i = 0; i < op.input_count; i++) {
    if (op.list_inputs >> i & 1) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[i]); k++) {
        if (has_tangent(PySequence_Fast_GET_ITEM(args[i], k))) return true;
      }
    } else if (has_tangent(args[i])) {
      return true;
    }
  }
  return false;
}

PyObject* tangent_or_none(PyObject* o) {
  if (!is_tensor(o)) return Py_NewRef(Py_None);
  TensorRef tangent = tangent_of(as_tensor(o));
  return tangent ? tangent.release_object() : Py_NewRef(Py_None);
}

// formulas(op, args, tangents, result or None) -> a tangent or None per output
Ref<PyObject> ask(Primitive& op, PyObject* const* args, PyObject* result) {
  if (!formulas) fail(PyExc_RuntimeError, "forward mode is not set up");
  Ref<PyObject> values = checked(PyTuple_New(Py_ssize_t(op.args.size())));
  for (size_t i = 0; i < op.args.size(); i++) PyTuple_SET_ITEM(values.get(), i, Py_NewRef(args[i]));
  Ref<PyObject> tangents = checked(PyTuple_New(op.input_count));
  for (int i = 0; i < op.input_count; i++) {
    if (!(op.list_inputs >> i & 1)) {
      PyTuple_SET_ITEM(tangents.get(), i, tangent_or_none(args[i]));
      continue;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(args[i]);
    Ref<PyObject> list = checked(PyTuple_New(n));
    for (Py_ssize_t k = 0; k < n; k++)
      PyTuple_SET_ITEM(list.get(), k, tangent_or_none(PySequence_Fast_GET_ITEM(args[i], k)));
    PyTuple_SET_ITEM(tangents.get(), i, list.release());
  }
  WithoutForward off;
  Derives derives(modes.grad);
  PyObject* call_args[] = {op.object(), values.get(), tangents.get(), result};
  Ref<PyObject> answer = checked(PyObject_Vectorcall(formulas, call_args, 4, nullptr));
  if (!PyTuple_Check(answer.get())) fail(PyExc_TypeError, "a formula for tangents must return a tuple");
  return answer;
}

// Whether t lies on its base as a tangent of t would on one of the base: of the same dtype, or the parts of
// complex numbers, or those made of parts.
bool lies_on(const Tensor* t, const Tensor* base) {
  if (t->dtype == base->dtype) return true;
  if (is_complex(t->dtype)) return to_real(t->dtype) == base->dtype;
  return is_complex(base->dtype) && to_real(base->dtype) == t->dtype;
}

// `of` as it lies in memory, from another place on: a view that the graph knows, so that a write into either
// is seen by the history of the other.
TensorRef strided_part(Tensor* of, const Tensor* t, int64_t from) {
  static Primitive& as_strided = primitive("as_strided");
  Ref<PyObject> sizes(size_object(t->sizes())), strides(size_object(t->strides())),
      layout(size_object(of->strides()));
  Ref<PyObject> offset = checked(PyLong_FromLongLong(from)), start = checked(PyLong_FromLongLong(of->offset));
  PyObject* args[] = {of->object(), sizes.get(), strides.get(), offset.get(), layout.get(), start.get()};
  WithoutForward off;
  return TensorRef(as_tensor(call(as_strided, args)));
}

// The same elements of the base's tangent as t has of its base; none where they would begin between two, or
// the tangent is of another dtype than the base.
TensorRef part_of(Tensor* tangent_of_base, Tensor* base, Tensor* t) {
  int64_t moved = tangent_of_base->offset - base->offset;
  bool alike = t->dtype == base->dtype && !((t->flags ^ base->flags) & Tensor::LAZY);
  if (is_leveled(tangent_of_base)) {  // a batch of tangents has its own way to be viewed
    if (!alike) return {};
    bool whole =
        t->offset == base->offset && same_sizes(t, base) && std::ranges::equal(t->strides(), base->strides());
    return whole ? share(tangent_of_base) : strided_part(tangent_of_base, t, t->offset + moved);
  }
  if (alike) return strided_part(tangent_of_base, t, t->offset + moved);
  bool converted = t->dtype != base->dtype;
  if (converted) {
    int64_t bytes = moved * dtype_size(base->dtype);
    if (tangent_of_base->dtype != base->dtype || bytes % dtype_size(t->dtype)) return {};
    moved = bytes / dtype_size(t->dtype);
  }
  if (t->extra->steps && !moved) {
    WithoutForward off;
    return view_again(t, tangent_of_base);
  }
  TensorRef part = new_view(tangent_of_base, t->sizes(), t->strides(), t->offset + moved);
  if (converted) part->dtype = t->dtype;
  if (uint16_t bits = (t->flags ^ base->flags) & Tensor::LAZY)
    set_lazy(part.get(), (part->flags ^ bits) & Tensor::LAZY);
  return part;
}

// Whether every view of the one is the same view of the other; steps along a dimension of one element are
// never made.
bool same_layout(const Tensor* a, const Tensor* b) {
  if (!same_sizes(a, b) || (a->flags ^ b->flags) & Tensor::LAZY) return false;
  if (a->numel == 0) return true;
  for (int d = 0; d < a->ndim; d++)
    if (a->size(d) > 1 && a->stride(d) != b->stride(d)) return false;
  return true;
}

// Zeros that lie as t does, for as many examples as a tangent of a level has.
TensorRef zeros_of_level(Tensor* tangent, const Tensor* t) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.func._named"));
  Ref<PyObject> zeros = checked(PyObject_CallMethod(module.get(), "zeros_as", "ONN", tangent->object(),
                                                    size_object(t->sizes()), size_object(t->strides())));
  if (!is_tensor(zeros.get())) fail(PyExc_TypeError, "zeros_as must make a tensor");
  return TensorRef(as_tensor(zeros.release()));
}

// A tangent with the layout of t, so that views of one are views of the other.
TensorRef laid_out_like(Tensor* t, Tensor* tangent) {
  if (is_leveled(t) && !is_leveled(tangent)) return share(tangent);
  if (same_layout(t, tangent) || !is_dense(t->sizes(), t->strides())) return share(tangent);
  static Primitive& copy = primitive("copy");
  TensorRef target = is_leveled(tangent)
                         ? zeros_of_level(tangent, t)
                         : new_strided(t->sizes(), t->strides(), tangent->dtype, tangent->device());
  if (!is_leveled(tangent) && tangent->dtype == t->dtype) set_lazy(target.get(), t->flags & Tensor::LAZY);
  PyObject* args[] = {target->object(), tangent->object()};
  WithoutForward off;
  return TensorRef(as_tensor(call_in_place(copy, args)));
}

}  // namespace

TensorRef tangent_of(Tensor* t) {
  if (!t->extra || !dual_level) return {};
  if (t->extra->tangent_level == dual_level) {  // null: known to have none, whatever its base has
    return t->extra->tangent ? share(t->extra->tangent) : TensorRef();
  }
  Tensor* base = t->extra->base;
  if (!base || !t->extra->differentiable_view || !base->extra || !lies_on(t, base)) return {};
  Tensor* whole = base->extra->tangent;
  if (!whole || base->extra->tangent_level != dual_level) return {};
  if (is_leveled(t)) {
    if (!t->extra->steps) return {};
    WithoutForward off;
    TensorRef part = view_again(t, whole);
    set_tangent(t, part);
    return part;
  }
  if (!same_layout(base, whole)) return {};
  TensorRef part = part_of(whole, base, t);
  if (part) set_tangent(t, part);
  return part;
}

void share_tangent(Tensor* from, Tensor* to, bool copy) {
  TensorRef tangent = tangent_of(from);
  if (!tangent) return;
  if (copy) {
    WithoutForward off;
    static Primitive& clone_op = primitive("clone");
    tangent = call_on(clone_op, tangent.get());
  }
  set_tangent(to, tangent);
}

void forget_dual(Extra* extra) { duals.erase(extra); }

void drop_tangent(Tensor* t) {
  if (tangent_of(t)) set_tangent(t, {});
}

void give_tangents(Primitive& op, PyObject* const* args, PyObject* result) {
  // In inference mode nothing is carried, but views of tensors from outside are tensors like those.
  if (op.no_derivative || (modes.inference && !(op.options & Primitive::VIEW)) || !any_tangent(op, args))
    return;
  Ref<PyObject> tangents = ask(op, args, result);
  bool several = PyTuple_Check(result) || PyList_Check(result);
  Py_ssize_t count = several ? PySequence_Fast_GET_SIZE(result) : 1;
  if (PyTuple_GET_SIZE(tangents.get()) != count)
    failf(PyExc_RuntimeError, "the tangents of %s: expected %zd", op.name.c_str(), count);
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* tangent = PyTuple_GET_ITEM(tangents.get(), i);
    Tensor* out = as_tensor(several ? PySequence_Fast_GET_ITEM(result, i) : result);
    if (!is_tensor(tangent) || !is_differentiable(out->dtype)) continue;
    bool view = op.options & Primitive::VIEW;
    set_tangent(out, view ? share(as_tensor(tangent)) : laid_out_like(out, as_tensor(tangent)));
  }
}

Ref<PyObject> tangent_of_write(Primitive& op, PyObject* const* args) {
  if (modes.inference || !is_differentiable(as_tensor(args[0])->dtype) || !any_tangent(op, args)) return {};
  if (op.no_derivative) {  // filled with random numbers, say: nothing of the old value is left
    TensorRef old = tangent_of(as_tensor(args[0]));
    if (!old) return {};
    TensorRef zero = is_leveled(old.get()) ? zeros_of_level(old.get(), old.get())
                                           : zeros(old->sizes(), old->dtype, old->device());
    return Ref<PyObject>(zero.release_object());
  }
  // What a level below records of the tangent keeps the old values and the old tangent, which are
  // about to be written.
  PyObject* given[MAX_ARGS];
  TensorRef old;
  if (is_leveled(args[0])) {
    Tensor* self = as_tensor(args[0]);
    TensorRef tangent = tangent_of(self);
    WithoutForward off;
    static Primitive& clone = primitive("clone");
    old = TensorRef(as_tensor(call(clone, args)));
    PyObject* tangent_args[] = {tangent ? tangent->object() : nullptr};
    if (tangent) set_tangent(old.get(), TensorRef(as_tensor(call(clone, tangent_args))));
    for (size_t i = 0; i < op.args.size(); i++) given[i] = args[i] == args[0] ? old->object() : args[i];
    args = given;
  }
  Ref<PyObject> tangents = ask(op, args, Py_None);
  return share(PyTuple_GET_ITEM(tangents.get(), 0));
}

// One of those elements of each line that lie in one place in `as`.
static Ref<PyObject> without_repetition(Tensor* t, const Tensor* as) {
  Ref<PyObject> part = share(t->object());
  for (int d = 0; d < as->ndim; d++) {
    if (as->stride(d) == 0 && as->size(d) > 1)
      part = checked(PyObject_CallMethod(part.get(), "narrow", "iii", d, 0, 1));
  }
  return part;
}

void write_tangent(Tensor* t, PyObject* tangent, bool copies) {
  if (!is_tensor(tangent)) return;
  WithoutForward off;
  static Primitive& clone = primitive("clone");
  static Primitive& copy = primitive("copy");
  TensorRef into = tangent_of(t), apart;
  Tensor* base = t->base();
  if (as_tensor(tangent)->flags & Tensor::ZERO && into) {  // nothing of the old one is left
    static Primitive& fill_op = primitive("fill");
    PyObject* args[] = {into->object(), PyLong_FromLong(0)};
    Ref<PyObject> zero(args[1]);
    Py_DECREF(call_in_place(fill_op, args));
    return;
  }
  if (!into && base && is_leveled(t) && t->extra->differentiable_view && t->extra->steps) {
    // Made of the tangent, which may belong to a batch though what it is written into does not.
    set_tangent(base, zeros_of_level(is_leveled(tangent) ? as_tensor(tangent) : base, base));
    into = tangent_of(t);
  } else if (!into && base && t->extra->differentiable_view && lies_on(t, base) &&
             is_dense(base->sizes(), base->strides())) {
    bool batch = is_leveled(tangent);
    TensorRef whole = batch ? zeros_of_level(as_tensor(tangent), base)
                            : new_strided(base->sizes(), base->strides(), base->dtype, base->device());
    alignas(16) char zero[16] = {};
    if (!whole->is_meta()) fill(whole.get(), zero);
    if (!batch) set_lazy(whole.get(), base->flags & Tensor::LAZY);  // as same_layout wants it
    if ((into = part_of(whole.get(), base, t))) {
      set_tangent(base, whole);
      set_tangent(t, into);
      if (copies) apart = call_on(clone, as_tensor(tangent));
      if (copies) tangent = apart->object();
    }
  }
  if (into && is_leveled(t) && !takes_examples(into.get(), as_tensor(tangent))) {
    bool part = base && t->extra->differentiable_view && t->extra->steps && tangent_of(base);
    TensorRef whole = with_examples(part ? tangent_of(base).get() : into.get(), as_tensor(tangent));
    if (part) set_tangent(base, share(whole.get()));
    into = part ? view_again(t, whole.get()) : whole;
    set_tangent(t, share(into.get()));
  }
  if (into) {
    // What may be written where elements share their place (zero_, fill_) leaves the same in all of them.
    Ref<PyObject> to = without_repetition(into.get(), into.get());
    bool whole = to.get() == into->object() || !same_sizes(into.get(), as_tensor(tangent));
    Ref<PyObject> from = whole ? share(tangent) : without_repetition(as_tensor(tangent), into.get());
    PyObject* args[] = {whole ? into->object() : to.get(), from.get()};
    Py_DECREF(call_in_place(copy, args));
    return;
  }
  bool shared = copies || Py_REFCNT(tangent) > 1 || as_tensor(tangent)->base();  // with another tensor
  apart = shared ? call_on(clone, as_tensor(tangent)) : share(as_tensor(tangent));
  set_tangent(t, laid_out_like(t, apart.get()));
}

namespace {

Tensor* tensor_or_fail(PyObject* o) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

PyObject* py_tangent(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* { return tangent_or_none(o); });
}

// set_tangent(tensor, tangent or None): for make_dual and unpack_dual, and for Functions that define jvp.
PyObject* py_set_tangent(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "set_tangent(tensor, tangent) expected");
    Tensor* t = tensor_or_fail(args[0]);
    if (!dual_level) fail(PyExc_RuntimeError, "there is no open dual level");
    set_tangent(t, args[1] == Py_None ? TensorRef() : laid_out_like(t, tensor_or_fail(args[1])));
    Py_RETURN_NONE;
  });
}

PyObject* py_enter_level(PyObject*, PyObject*) {
  dual_level = ++last_level;
  Py_RETURN_NONE;
}
PyObject* py_exit_level(PyObject*, PyObject*) {
  dual_level = 0;
  std::vector<Ref<Tensor>> ended;  // all are taken out before the first is freed, and others with it
  ended.reserve(duals.size());
  for (Extra* extra : duals) {
    extra->dual = false;
    if (extra->tangent) ended.emplace_back(std::exchange(extra->tangent, nullptr));
  }
  duals.clear();
  Py_RETURN_NONE;
}
PyObject* py_set_forward(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* { return PyBool_FromLong(std::exchange(modes.forward, is_true(on))); });
}
PyObject* py_carries(PyObject*, PyObject*) { return PyBool_FromLong(carrying()); }
PyObject* py_set_wanted(PyObject*, PyObject* on) {
  return guarded([&]() -> PyObject* {
    bool before = std::exchange(tangents_wanted, is_true(on));
    modes.forward = tangents_wanted;
    return PyBool_FromLong(before);
  });
}
PyObject* py_wanted(PyObject*, PyObject*) { return PyBool_FromLong(tangents_wanted); }
PyObject* py_set_formulas(PyObject*, PyObject* function) {
  Py_XSETREF(formulas, Py_NewRef(function));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"tangent", py_tangent, METH_O, "The tangent of a tensor in the open dual level, or None."},
    {"set_tangent", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_set_tangent)), METH_FASTCALL,
     nullptr},
    {"enter_dual_level", py_enter_level, METH_NOARGS, nullptr},
    {"exit_dual_level", py_exit_level, METH_NOARGS, nullptr},
    {"set_forward_mode", py_set_forward, METH_O, "Switches tangents on or off; returns what it was."},
    {"carries_tangents", py_carries, METH_NOARGS, "Whether operations compute tangents now."},
    {"_set_fwd_grad_enabled", py_set_wanted, METH_O, "Whether tangents are carried; returns what it was."},
    {"_is_fwd_grad_enabled", py_wanted, METH_NOARGS, nullptr},
    {"set_tangent_formulas", py_set_formulas, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
