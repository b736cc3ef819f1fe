// The primitives of cdist and pdist: distances between the rows of batches of matrices or of one matrix, and
// their gradients. Shapes are checked here; rushlight/ops/distance.py broadcasts the batches first.
#include "../kernels/distance.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

TensorRef contiguous_argument(const Primitive& op, PyObject* o, int dims) {
  Tensor* t = tensor_argument(op.name.c_str(), o);
  if (t->ndim != dims)
    failf(PyExc_RuntimeError, "%s: expected %d dimensions, got %d", op.name.c_str(), dims, t->ndim);
  if (t->dtype != DType::f32 && t->dtype != DType::f64)
    fail_not_implemented(op.name[0] == 'c' ? "cdist" : "pdist", t->dtype);
  if (t->is_contiguous()) return share(t);
  TensorRef copy = new_tensor(t->sizes(), t->dtype, t->device());
  if (!t->is_meta()) copy_into(copy.get(), t);
  return copy;
}

TensorRef batch_of_matrices(const Primitive& op, PyObject* o) { return contiguous_argument(op, o, 3); }

double read_order(const Primitive& op, PyObject* p) {
  double order = PyFloat_AsDouble(p);
  if (order == -1 && PyErr_Occurred()) throw PythonError{};
  if (!(order >= 0))
    failf(PyExc_RuntimeError, "%s only supports non-negative p values",
          op.name[0] == 'c' ? "cdist" : "pdist");
  return order;
}

Distances read_shape(const Primitive& op, const Tensor* a, const Tensor* b, PyObject* p) {
  if (a->dtype != b->dtype || a->size(0) != b->size(0) || a->size(2) != b->size(2))
    failf(PyExc_RuntimeError, "%s: the matrices do not fit each other", op.name.c_str());
  return {a->dtype, a->size(0), a->size(1), b->size(1), a->size(2), read_order(op, p)};
}

// cdist(a, b; p)
PyObject* cdist_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  TensorRef a = batch_of_matrices(op, args[0]), b = batch_of_matrices(op, args[1]);
  Distances shape = read_shape(op, a.get(), b.get(), args[2]);
  int64_t sizes[] = {shape.batches, shape.rows, shape.others};
  TensorRef result = new_tensor(sizes, a->dtype, a->device());
  if (result->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(result->numel * (shape.length + 1));
  best_distance_loops().all(shape, a->data(), b->data(), result->data());
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
  best_distance_loops().all_backward(shape, g->data(), a->data(), b->data(), distances->data(),
                                     result->data());
  return result.release_object();
}

int64_t pair_count(const Primitive& op, int64_t rows) {
  int64_t twice;
  if (rows < 2) return 0;
  if (__builtin_mul_overflow(rows, rows - 1, &twice))
    failf(PyExc_RuntimeError, "%s: too many pairs of rows", op.name.c_str());
  return twice / 2;
}

// pdist(x; p)
PyObject* pdist_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  TensorRef x = contiguous_argument(op, args[0], 2);
  Distances shape{x->dtype, 1, x->size(0), 0, x->size(1), read_order(op, args[1])};
  int64_t sizes[] = {pair_count(op, shape.rows)};
  TensorRef result = new_tensor(sizes, x->dtype, x->device());
  if (result->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(result->numel * (shape.length + 1));
  best_distance_loops().pairs(shape, x->data(), result->data());
  return result.release_object();
}

// pdist_backward(g, x, distances; p)
PyObject* pdist_backward_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  TensorRef g = contiguous_argument(op, args[0], 1), x = contiguous_argument(op, args[1], 2),
            distances = contiguous_argument(op, args[2], 1);
  Distances shape{x->dtype, 1, x->size(0), 0, x->size(1), read_order(op, args[3])};
  int64_t pairs = pair_count(op, shape.rows);
  for (Tensor* t : {g.get(), distances.get()}) {
    if (t->dtype != x->dtype || t->size(0) != pairs)
      failf(PyExc_RuntimeError, "%s: the gradient does not fit the distances", op.name.c_str());
  }
  TensorRef result = new_tensor(x->sizes(), x->dtype, x->device());
  if (result->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(pairs * (shape.length + 1));
  best_distance_loops().pairs_backward(shape, g->data(), x->data(), distances->data(), result->data());
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("cdist(a, b; p)", cdist_forward, Primitive::FOLLOWS_FIRST);
  define("cdist_backward(g, a, b, distances; p)", cdist_backward_forward);
  define("pdist(x; p)", pdist_forward, Primitive::FOLLOWS_FIRST);
  define("pdist_backward(g, x, distances; p)", pdist_backward_forward);
});

}  // namespace
}  // namespace rl
