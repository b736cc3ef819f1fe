// Operations that make, read and multiply sparse tensors. They are computed in Python, by the kernels in
// rushlight/_sparse; here they only get their names, so that they are recorded and differentiated as others.
// Native is what no composition of operations does: walking two lists of entries side by side.
#include "../tensor/unlocked.h"
#include "arguments.h"
#include "forwards.h"

namespace rl {
namespace {

TensorRef places_argument(PyObject* o) {
  if (!is_plain_tensor(o) || as_tensor(o)->dtype != DType::i64 || as_tensor(o)->ndim != 1 ||
      as_tensor(o)->is_meta())
    fail(PyExc_RuntimeError, "merge_places: vectors of int64 expected");
  return stable(as_tensor(o));
}

// merge_places(a, b) -> (of_a, of_b, count): where the entries of two lists go when they are walked side by
// side, equal heads together. Lists that are not sorted are merged so, too, as torch does.
PyObject* py_merge_places(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *first, *second;
    if (!PyArg_ParseTuple(args, "OO", &first, &second)) return nullptr;
    TensorRef a = places_argument(first), b = places_argument(second);
    TensorRef of_a = new_tensor(a->sizes(), DType::i64), of_b = new_tensor(b->sizes(), DType::i64);
    const int64_t n = a->numel, m = b->numel;
    int64_t i = 0, j = 0, count = 0;
    {
      MaybeNoGil unlocked(n + m);
      const auto *x = reinterpret_cast<const int64_t*>(a->data()),
                 *y = reinterpret_cast<const int64_t*>(b->data());
      auto *to_x = reinterpret_cast<int64_t*>(of_a->data()), *to_y = reinterpret_cast<int64_t*>(of_b->data());
      while (i < n || j < m) {
        const bool left = j == m || (i < n && x[i] <= y[j]), right = i == n || (j < m && y[j] <= x[i]);
        if (left) to_x[i++] = count;
        if (right) to_y[j++] = count;
        count++;
      }
    }
    return Py_BuildValue("(NNL)", of_a.release_object(), of_b.release_object(), (long long)count);
  });
}

PyMethodDef functions[] = {{"merge_places", py_merge_places, METH_VARARGS, nullptr}, {}};

ModuleInit init([](PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
  for (const char* signature : {
           "sparse_coo(indices, values; size, coalesced)",
           "sparse_at(x, indices)",
           "to_dense(x; dtype, masked_grad)",
           "to_mkldnn(x; dtype)",
           "to_sparse(x; sparse_dim, source)",
           "coalesce(x)",
           "values(x)",
           "sparse_mask(x, mask)",
           "sparse_sum(x; dim)",
           "sparse_addmm(input, sparse, dense; beta, alpha)",
           "sparse_sparse_matmul(a, b)",
           "sparse_softmax(x; dim)",
           "sparse_log_softmax(x; dim)",
           "sparse_softmax_backward(g, result; dim)",
           "sparse_log_softmax_backward(g, result; dim)",
           "sparse_compressed(compressed, plain, values; size, layout)",
           "compressed_at(x, like)",
           "to_compressed(x; layout, blocksize, dense_dim, source)",
           "sampled_addmm(x, a, b; beta, alpha)",
           "sparse_mm_reduce(x, dense; reduce)",
       }) {
    define(signature, python_forward);
  }
});

}  // namespace
}  // namespace rl
