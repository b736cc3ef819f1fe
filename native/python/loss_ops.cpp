// Fused losses: what a training step computes last, as one operation and one node.
#include <string_view>

#include "../kernels/reduce.h"
#include "../tensor/iterate.h"
#include "primitive.h"

namespace rl {
namespace {

// mse_loss(x, target; reduction): (x - target)^2, reduced to its mean or sum, or as it is. x and target are
// floating; they may broadcast.
PyObject* mse_loss_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static Primitive& subtract = primitive("sub");
  static Primitive& multiply = primitive("mul");
  const char* reduction = PyUnicode_Check(args[2]) ? PyUnicode_AsUTF8(args[2]) : nullptr;
  if (!reduction) failf(PyExc_TypeError, "mse_loss(): reduction must be a str");
  Ref<PyObject> difference = checked(subtract.forward(subtract, args, nullptr));
  PyObject* both[] = {difference.get(), difference.get()};
  // Nobody else has seen the difference: square it where it is.
  Ref<PyObject> squared = checked(multiply.forward(multiply, both, as_tensor(difference.get())));
  std::string_view kind = reduction;
  if (kind == "none") return squared.release();
  Tensor* t = as_tensor(squared.get());
  TensorRef result = new_tensor({}, t->dtype, t->device());
  if (t->is_meta()) return result.release_object();
  int64_t ones[MAX_DIMS], zeros[MAX_DIMS];
  std::fill_n(ones, t->ndim, 1);
  std::fill_n(zeros, t->ndim, 0);
  Span out = {result->data(), result->dtype, t->ndim, ones, zeros};
  uint64_t dims = t->ndim == 64 ? ~uint64_t(0) : (uint64_t(1) << t->ndim) - 1;
  MaybeNoGil released(t->numel);
  reduce(kind == "mean" ? ReduceOp::mean : ReduceOp::sum, out, t->span(), dims);
  return result.release_object();
}

ModuleInit init([](PyObject*) { define("mse_loss(x, target; reduction)", mse_loss_forward); });

}  // namespace
}  // namespace rl
