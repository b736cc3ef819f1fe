// The primitives of cdist and pdist: distances between the rows of batches of matrices or of one matrix, and
// their gradients. Shapes are checked here; rushlight/ops/distance.py broadcasts the batches first.
#include "../kernels/distance.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

TensorRef contiguous_argument(const Primitive& op, PyObject* o, int least, int most) {
  Tensor* t = tensor_argument(op.name.c_str(), o);
  if (t->ndim < least || t->ndim > most)
    failf(PyExc_RuntimeError, "%s: a tensor has %d dimensions", op.name.c_str(), t->ndim);
  if (t->dtype != DType::f32 && t->dtype != DType::f64)
    fail_not_implemented(op.name[0] == 'c' ? "cdist" : "pdist", t->dtype);
  if (t->is_contiguous()) return share(t);
  TensorRef copy = new_tensor(t->sizes(), t->dtype, t->device());
  if (!t->is_meta()) copy_into(copy.get(), t);
  return copy;
}

TensorRef matrices(const Primitive& op, PyObject* o) { return contiguous_argument(op, o, 2, MAX_DIMS); }

double read_order(const Primitive& op, PyObject* p) {
  double order = PyFloat_AsDouble(p);
  if (order == -1 && PyErr_Occurred()) throw PythonError{};
  if (!(order >= 0))
    failf(PyExc_RuntimeError, "%s only supports non-negative p values",
          op.name[0] == 'c' ? "cdist" : "pdist");
  return order;
}

Distances read_shape(const Primitive& op, const Tensor* a, const Tensor* b, PyObject* p) {
  int rows = a->ndim - 2, length = a->ndim - 1;
  bool fits = a->dtype == b->dtype && a->ndim == b->ndim && a->size(length) == b->size(length) &&
              std::equal(a->geometry, a->geometry + rows, b->geometry);
  if (!fits) failf(PyExc_RuntimeError, "%s: the matrices do not fit each other", op.name.c_str());
  int64_t batches = numel_of(a->sizes().first(size_t(rows)));
  return {a->dtype, batches, a->size(rows), b->size(rows), a->size(length), read_order(op, p)};
}

Shape distances_of(const Tensor* a, const Tensor* b) {
  Shape sizes;
  sizes.assign(a->sizes());
  sizes.sizes[a->ndim - 1] = b->size(b->ndim - 2);
  return sizes;
}

// cdist(a, b; p)
PyObject* cdist_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  TensorRef a = matrices(op, args[0]), b = matrices(op, args[1]);
  Distances shape = read_shape(op, a.get(), b.get(), args[2]);
  TensorRef result = new_tensor(distances_of(a.get(), b.get()), a->dtype, a->device());
  if (result->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(result->numel * (shape.length + 1));
  best_distance_loops().all(shape, a->data(), b->data(), result->data());
  return result.release_object();
}

// cdist_backward(g, a, b, distances; p): the gradient of a
PyObject* cdist_backward_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  TensorRef g = matrices(op, args[0]), a = matrices(op, args[1]), b = matrices(op, args[2]),
            distances = matrices(op, args[3]);
  Distances shape = read_shape(op, a.get(), b.get(), args[4]);
  Shape sizes = distances_of(a.get(), b.get());
  for (Tensor* t : {g.get(), distances.get()}) {
    if (t->dtype != a->dtype || !std::ranges::equal(Sizes(sizes), t->sizes()))
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
  TensorRef x = contiguous_argument(op, args[0], 2, 2);
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
  TensorRef g = contiguous_argument(op, args[0], 1, 1), x = contiguous_argument(op, args[1], 2, 2),
            distances = contiguous_argument(op, args[2], 1, 1);
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
