// The primitives of cdist: distances between the rows of batches of matrices, and their gradient. Shapes are
// checked here; rushlight/ops/distance.py broadcasts the batches first.
#include "../kernels/distance.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

TensorRef batch_of_matrices(const Primitive& op, PyObject* o) {
  Tensor* t = tensor_argument(op.name.c_str(), o);
  if (t->ndim != 3) failf(PyExc_RuntimeError, "%s: expected 3 dimensions, got %d", op.name.c_str(), t->ndim);
  if (t->dtype != DType::f32 && t->dtype != DType::f64) fail_not_implemented("cdist", t->dtype);
  if (t->is_contiguous()) return share(t);
  TensorRef copy = new_tensor(t->sizes(), t->dtype, t->device());
  if (!t->is_meta()) copy_into(copy.get(), t);
  return copy;
}

Distances read_shape(const Primitive& op, const Tensor* a, const Tensor* b, PyObject* p) {
  double order = PyFloat_AsDouble(p);
  if (order == -1 && PyErr_Occurred()) throw PythonError{};
  if (a->dtype != b->dtype || a->size(0) != b->size(0) || a->size(2) != b->size(2))
    failf(PyExc_RuntimeError, "%s: the matrices do not fit each other", op.name.c_str());
  if (!(order >= 0)) fail(PyExc_RuntimeError, "cdist only supports non-negative p values");
  return {a->dtype, a->size(0), a->size(1), b->size(1), a->size(2), order};
}

// cdist(a, b; p)
PyObject* cdist_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  TensorRef a = batch_of_matrices(op, args[0]), b = batch_of_matrices(op, args[1]);
  Distances shape = read_shape(op, a.get(), b.get(), args[2]);
  int64_t sizes[] = {shape.batches, shape.rows, shape.others};
  TensorRef result = new_tensor(sizes, a->dtype, a->device());
  if (result->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(result->numel * (shape.length + 1));
  all_distances(shape, a->data(), b->data(), result->data());
  return result.release_object();
}

// cdist_backward(g, a, b, distances; p): the gradient of a
PyObject* cdist_backward_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  TensorRef g = batch_of_matrices(op, args[0]), a = batch_of_matrices(op, args[1]),
            b = batch_of_matrices(op, args[2]), distances = batch_of_matrices(op, args[3]);
  Distances shape = read_shape(op, a.get(), b.get(), args[4]);
  int64_t sizes[] = {shape.batches, shape.rows, shape.others};
  for (Tensor* t : {g.get(), distances.get()}) {
    if (t->dtype != a->dtype || !std::equal(sizes, sizes + 3, t->geometry))
      failf(PyExc_RuntimeError, "%s: the gradient does not fit the distances", op.name.c_str());
  }
  TensorRef result = new_tensor(a->sizes(), a->dtype, a->device());
  if (result->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(g->numel * (shape.length + 1));
  distances_backward(shape, g->data(), a->data(), b->data(), distances->data(), result->data());
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("cdist(a, b; p)", cdist_forward, Primitive::FOLLOWS_FIRST);
  define("cdist_backward(g, a, b, distances; p)", cdist_backward_forward);
});

}  // namespace
}  // namespace rl
