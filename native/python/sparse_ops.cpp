// Operations that make, read and multiply sparse tensors. They are computed in Python, by the kernels in
// rushlight/_sparse; here they only get their names, so that they are recorded and differentiated as others.
#include "forwards.h"

namespace rl {
namespace {

ModuleInit init([](PyObject*) {
  for (const char* signature : {
           "sparse_coo(indices, values; size, coalesced)",
           "sparse_at(x, indices)",
           "to_dense(x; dtype, masked_grad)",
           "to_sparse(x; sparse_dim)",
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
       }) {
    define(signature, python_forward);
  }
});

}  // namespace
}  // namespace rl
