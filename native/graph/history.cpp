// How in-place writes change the recorded history.
//
// Note [views and in-place]
// A view shares memory with its base. When an operation writes into a view, the base's values change too, so
// the base's history is rewritten: its new grad_fn is a CopySlices node, which takes the gradient of the
// base, hands the part under the view to the operation that wrote, and puts what that returns for the view
// back in its place. The written view and all its siblings then have a stale grad_fn. They notice when it is
// next asked for: a view remembers the storage version its grad_fn is right for (Extra::view_version), and if
// the base has been written since, its grad_fn becomes AsStrided of the base. Views are made on the base's
// storage, so offset and strides of the view within the storage say all that is needed.
#include "../python/primitive.h"
#include "errors.h"
#include "modes.h"

namespace rl {
namespace {

bool is_view(const Tensor* t) { return t->extra && t->extra->base && t->extra->differentiable_view; }

PyObject* int_tuple(Sizes values) {
  PyObject* tuple = PyTuple_New(Py_ssize_t(values.size()));
  if (!tuple) throw PythonError{};
  for (size_t i = 0; i < values.size(); i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
  return tuple;
}

}  // namespace

void refresh_view(Tensor* t) {
  if (!is_view(t)) return;
  Extra* extra = t->extra;
  Tensor* base = extra->base;
  if (extra->view_version == t->storage->version || t->storage != base->storage) return;
  extra->view_version = t->storage->version;
  // Only a base that has a history by now can have been rewritten; a leaf base was written under no_grad.
  if (!base->grad_fn) return;
  GradMode on(true);
  static Primitive& as_strided = primitive("as_strided");
  Ref<PyObject> sizes(int_tuple(t->sizes())), strides(int_tuple(t->strides()));
  Ref<PyObject> offset = checked(PyLong_FromLongLong(t->offset));
  Ref<PyObject> layout(int_tuple(base->strides())), start = checked(PyLong_FromLongLong(base->offset));
  PyObject* args[] = {base->object(), sizes.get(), strides.get(), offset.get(), layout.get(), start.get()};
  TensorRef fresh(as_tensor(call(as_strided, args)));
  std::swap(t->grad_fn, fresh->grad_fn);
  t->output_nr = fresh->output_nr;
}

void check_inplace(Tensor* t) {
  if (t->flags & Tensor::INFERENCE && !modes.inference) {
    fail(PyExc_RuntimeError,
         "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to "
         "get a "
         "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more "
         "details.");
  }
  if (!modes.grad) return;
  if (t->flags & Tensor::REQUIRES_GRAD && !t->grad_fn) {
    fail_at(
        PyExc_RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation.",
        {{"It is written", current_source()}},
        "Write to it inside `with torch.no_grad():`, or compute a new tensor instead of writing in place.");
  }
  if (!is_view(t)) return;
  Tensor* base = t->extra->base;
  if (base->flags & Tensor::REQUIRES_GRAD && !base->grad_fn) {
    fail_at(PyExc_RuntimeError,
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            {{"The view is written", current_source()}},
            "Write inside `with torch.no_grad():`, or clone the leaf first and write into the clone.");
  }
  if (!t->requires_grad() && !base->requires_grad()) return;
  if (t->extra->origin == ViewOrigin::multi_output) {
    fail_at(
        PyExc_RuntimeError,
        "Output " + std::to_string(t->output_nr) + " of " +
            (t->grad_fn ? operation_name(t->grad_fn) : "a view") +
            " is a view and is being modified inplace. This view is the output of a function that returns "
            "multiple views. Such functions do not allow the output views to be modified inplace. You should "
            "replace the inplace operation by an out-of-place one.",
        {{"It is written", current_source()}}, "");
  }
  if (t->extra->origin == ViewOrigin::no_grad) {
    fail_at(
        PyExc_RuntimeError,
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that "
        "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        "both "
        "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
        "tracked) or both outside (if you want the inplace to be tracked).",
        {{"It is written", current_source()}}, "");
  }
}

void rewrite_history(Tensor* t, Ref<Node> node) {
  if (!is_view(t)) {
    Py_XSETREF(t->grad_fn, node.release());
    t->output_nr = 0;
    t->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
    return;
  }
  Tensor* base = t->extra->base;
  if (base->dtype != t->dtype) {
    fail(PyExc_NotImplementedError,
         "in-place writes into a view of another dtype (view_as_real, view_as_complex) are not "
         "differentiable yet");
  }
  // Edges: the base's old history first, then the operation's other inputs (its first was the view itself).
  uint32_t others = node->edge_count > 0 ? node->edge_count - 1 : 0;
  Ref<Node> copy = new_node(Node::copy_slices, nullptr, 1 + others, 0);
  copy->edges[0] = gradient_edge(base);
  for (uint32_t i = 0; i < others; i++) {
    Edge edge = node->edges[i + 1];
    if (edge.node) Py_INCREF(edge.node->object());
    copy->edges[i + 1] = edge;
  }
  set_outputs(copy.get(), 1);
  set_output(copy.get(), 0, base);
  NodeExtra* extra = extra_of(copy.get());
  extra->geometry = Py_BuildValue("(NNNL)", int_tuple(base->strides()), int_tuple(t->sizes()),
                                  int_tuple(t->strides()), (long long)(t->offset - base->offset));
  if (!extra->geometry) throw PythonError{};
  extra->inner = node.release();
  Py_XSETREF(base->grad_fn, copy.release());
  base->output_nr = 0;
  base->flags &= uint16_t(~Tensor::REQUIRES_GRAD);
  t->extra->view_version = t->storage->version - 1;  // stale by construction
  refresh_view(t);
}

}  // namespace rl
