// The hooks of tensors and nodes: in what order they are called, what they may answer, and the gradients that
// tensors retain.
#include "../python/primitive.h"
#include "custom.h"
#include "dispatching.h"
#include "modes.h"
#include "rules.h"
#include "shown.h"

namespace rl {

namespace {

std::string hook_name(PyObject* hook) {
  Ref<PyObject> name = attribute_or_null(hook, "__name__");
  if (!name || !PyUnicode_Check(name.get())) return "<unknown>";
  const char* text = PyUnicode_AsUTF8(name.get());
  if (!text) throw PythonError{};
  return text;
}

// What a hook returned in the place of `before` (null: there was none).
TensorRef checked_answer(PyObject* hook, PyObject* answer, Tensor* before) {
  if (answer == Py_None) return {};
  if (!is_tensor(answer)) {
    failf(PyExc_TypeError, "expected Variable, but hook returned '%s'", Py_TYPE(answer)->tp_name);
  }
  if (!before) fail(PyExc_RuntimeError, "can't replace a None gradient with a non-None value");
  Tensor* changed = as_tensor(answer);
  if (changed->dtype != before->dtype || is_sparse(changed) != is_sparse(before) ||
      is_compressed(changed) != is_compressed(before) ||
      !(claimed_device(changed->storage) == claimed_device(before->storage))) {
    failf(PyExc_RuntimeError, "hook '%s' has changed the type of value (was %s got %s)",
          hook_name(hook).c_str(), type_text(before).c_str(), type_text(changed).c_str());
  }
  if (!same_sizes(changed, before)) {
    failf(PyExc_RuntimeError, "hook '%s' has changed the size of value", hook_name(hook).c_str());
  }
  return share(changed);
}

// The hook's answer replaces the gradient unless it is None.
void run_tensor_hook(PyObject* hook, TensorRef& grad) {
  Ref<PyObject> answer = checked(PyObject_CallOneArg(hook, grad ? grad->object() : Py_None));
  if (answer.get() != Py_None) grad = checked_answer(hook, answer.get(), grad.get());
}

// Checks that a hook of a node returned None (false) or a tuple of n gradients.
bool returned_tuple(PyObject* hook, PyObject* answer, size_t n) {
  if (answer == Py_None) return false;
  if (!PyTuple_Check(answer)) {
    failf(PyExc_TypeError, "expected tuple, but hook returned '%s'", Py_TYPE(answer)->tp_name);
  }
  if (PyTuple_GET_SIZE(answer) != Py_ssize_t(n)) {
    failf(PyExc_RuntimeError,
          "hook '%s' has returned an incorrect number of values (got %zd, but expected %zu)",
          hook_name(hook).c_str(), PyTuple_GET_SIZE(answer), n);
  }
  return true;
}

Ref<PyObject> tuple_of(const Tensor* const* grads, size_t n) {
  Ref<PyObject> tuple = checked(PyTuple_New(Py_ssize_t(n)));
  for (size_t i = 0; i < n; i++) {
    auto* o = grads[i] ? reinterpret_cast<PyObject*>(const_cast<Tensor*>(grads[i])) : Py_None;
    PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(o));
  }
  return tuple;
}

}  // namespace

// The gradient of a tensor that is no leaf: a copy in row-major order, a sum from the second time on.
void retain_gradient(Tensor* t, Tensor* grad) {
  TensorRef before = share(extra_of(t)->grad);
  if (!before) {
    static Primitive& duplicate = primitive("contiguous_copy");
    return set_gradient(t, call_on(duplicate, grad));
  }
  static Primitive& plus = primitive("add");
  PyObject* args[] = {before->object(), grad->object()};
  set_gradient(t, TensorRef(as_tensor(call(plus, args))));
}

// Note [spread gradients]
// The gradient of a mean is the same for all elements, and stays one number that is read over and over: the
// next product makes a tensor of it anyway. Torch divides after it has expanded; who is shown the gradient (a
// hook, a Function, grad()) may write into it. Such a tensor and its views are flagged (Tensor::SPREAD). What
// is computed with it lies as if it had been copied (`unfold` in python/elementwise_ops.cpp).
void show_dense(TensorRef& grad) {
  if (!grad || !(grad->flags & Tensor::SPREAD)) return;
  grad = clone(grad.get());
}

TensorRef unspread(Tensor* t) {
  TensorRef dense = share(t);
  show_dense(dense);
  return dense;
}

void show_dense(Tensor** grads, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!grads[i] || !(grads[i]->flags & Tensor::SPREAD)) continue;
    TensorRef grad(std::exchange(grads[i], nullptr));
    show_dense(grad);
    grads[i] = grad.release();
  }
}

void run_prehooks(Node* node, Tensor** grads) {
  NodeExtra* extra = node->extra;
  show_dense(grads, node->output_count);
  if (extra->tensor_hooks) {
    Ref<PyObject> hooks = checked(PyList_AsTuple(extra->tensor_hooks));
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(hooks.get()); k++) {
      unsigned nr;
      PyObject* hook;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(hooks.get(), k), "IO", &nr, &hook)) throw PythonError{};
      if (nr >= node->output_count) continue;
      TensorRef grad(std::exchange(grads[nr], nullptr));
      if (PyDict_Check(hook)) {  // Tensor._backward_hooks
        Ref<PyObject> all = checked(PyDict_Values(hook));
        for (Py_ssize_t n = 0; n < PyList_GET_SIZE(all.get()); n++)
          run_tensor_hook(PyList_GET_ITEM(all.get(), n), grad);
      } else {
        run_tensor_hook(hook, grad);
      }
      grads[nr] = grad.release();
    }
  }
  if (extra->retained) {
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(extra->retained); k++) {
      unsigned nr;
      PyObject* weak;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(extra->retained, k), "IO", &nr, &weak)) throw PythonError{};
      Ref<PyObject> target = alive(weak);
      if (nr >= node->output_count || !grads[nr] || !target || !is_tensor(target.get())) continue;
      TensorRef kept = share(as_tensor(target.get()));
      retain_gradient(kept.get(), grads[nr]);
    }
  }
}

void run_node_prehooks(Node* node, Tensor** grads) {
  show_dense(grads, node->output_count);
  Ref<PyObject> hooks = checked(PyDict_Values(node->extra->prehooks));
  std::vector<uint32_t> shown = shown_outputs(node);
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(hooks.get()); k++) {
    PyObject* hook = PyList_GET_ITEM(hooks.get(), k);
    std::vector<Tensor*> out;
    for (uint32_t i : shown) out.push_back(grads[i]);
    Ref<PyObject> given = tuple_of(out.data(), out.size());
    Ref<PyObject> answer = checked(PyObject_CallOneArg(hook, given.get()));
    if (!returned_tuple(hook, answer.get(), shown.size())) continue;
    for (size_t i = 0; i < shown.size(); i++) {
      TensorRef grad = checked_answer(hook, PyTuple_GET_ITEM(answer.get(), i), grads[shown[i]]);
      Py_XSETREF(grads[shown[i]], grad.release());
    }
  }
}

void run_posthooks(Node* node, std::vector<TensorRef>& results, const std::vector<TensorRef>& grads) {
  Ref<PyObject> hooks = checked(PyDict_Values(node->extra->posthooks));
  std::vector<uint32_t> edges, outputs = shown_outputs(node);
  for (uint32_t i = 0; i < results.size(); i++) {
    show_dense(results[i]);
    if (shows_edge(node, i)) edges.push_back(i);
  }
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(hooks.get()); k++) {
    std::vector<Tensor*> in, out;
    for (uint32_t i : edges) in.push_back(results[i].get());
    for (uint32_t i : outputs) {
      if (i < grads.size()) out.push_back(grads[i].get());
    }
    Ref<PyObject> given_in = tuple_of(in.data(), in.size()), given_out = tuple_of(out.data(), out.size());
    PyObject* args[] = {given_in.get(), given_out.get()};
    PyObject* hook = PyList_GET_ITEM(hooks.get(), k);
    Ref<PyObject> answer = checked(PyObject_Vectorcall(hook, args, 2, nullptr));
    if (!returned_tuple(hook, answer.get(), edges.size())) continue;
    for (size_t i = 0; i < edges.size(); i++) {
      TensorRef& result = results[edges[i]];
      result = checked_answer(hook, PyTuple_GET_ITEM(answer.get(), i), result.get());
    }
  }
}

void run_leaf_hooks(Tensor* leaf, TensorRef& grad) {
  if (!leaf->extra || !leaf->extra->hooks) return;
  show_dense(grad);
  Ref<PyObject> hooks = checked(PyDict_Values(leaf->extra->hooks));
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(hooks.get()); k++) {
    run_tensor_hook(PyList_GET_ITEM(hooks.get(), k), grad);
  }
}

void run_post_hooks(Node* accumulator, TensorRef arrived, bool expected) {
  Tensor* leaf = accumulator->leaf();
  if (leaf->extra && leaf->extra->post_hooks) {
    Ref<PyObject> hooks = checked(PyDict_Values(leaf->extra->post_hooks));
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(hooks.get()); k++) {
      PyObject* hook = PyList_GET_ITEM(hooks.get(), k);
      Ref<PyObject> answer = checked(PyObject_CallOneArg(hook, leaf->object()));
      if (answer.get() != Py_None && answer.get() != leaf->object()) {
        checked_answer(hook, answer.get(), leaf);
        fail(PyExc_RuntimeError, "Tensor post accumulate grad hooks should return None.");
      }
    }
  }
  if (accumulator->extra && accumulator->extra->posthooks) {
    std::vector<TensorRef> none, grads;
    if (expected) grads.push_back(std::move(arrived));
    run_posthooks(accumulator, none, grads);
  }
}

namespace {

// mark_spread(gradient): itself, flagged. See Note [spread gradients].
PyObject* py_mark_spread(PyObject*, PyObject* o) {
  if (is_tensor(o) && !as_tensor(o)->is_contiguous()) as_tensor(o)->flags |= Tensor::SPREAD;
  return Py_NewRef(o);
}
PyMethodDef functions[] = {{"mark_spread", py_mark_spread, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
