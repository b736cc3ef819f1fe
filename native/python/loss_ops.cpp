// Fused losses: what a training step computes last, as one operation and one node.
#include <string_view>

#include "../kernels/reduce.h"
#include "../tensor/iterate.h"
#include "primitive.h"

namespace rl {
namespace {

Ref<PyObject> difference_of(PyObject* const* args) {
  static Primitive& subtract = primitive("sub");
  return checked(subtract.forward(subtract, args, nullptr));
}

// Losses of elements, reduced to their mean or sum, or as they are.
PyObject* reduced(const Primitive& op, Ref<PyObject> losses, PyObject* reduction) {
  const char* text = PyUnicode_Check(reduction) ? PyUnicode_AsUTF8(reduction) : nullptr;
  if (!text) failf(PyExc_TypeError, "%s(): reduction must be a str", op.name.c_str());
  std::string_view kind = text;
  if (kind == "none") return losses.release();
  Tensor* t = as_tensor(losses.get());
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

// mse_loss(x, target; reduction): (x - target)^2, reduced. x and target are floating; they may broadcast.
PyObject* mse_loss_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  static Primitive& multiply = primitive("mul");
  Ref<PyObject> difference = difference_of(args);
  PyObject* both[] = {difference.get(), difference.get()};
  // Nobody else has seen the difference: square it where it is.
  Ref<PyObject> squared = checked(multiply.forward(multiply, both, as_tensor(difference.get())));
  return reduced(op, std::move(squared), args[2]);
}

// smooth_l1_loss(x, target; reduction, beta): of x and target of one floating dtype and size.
PyObject* smooth_l1_loss_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  static Primitive& smooth = primitive("smooth_absolute");
  Ref<PyObject> difference = difference_of(args);
  PyObject* given[] = {difference.get(), args[3]};
  Ref<PyObject> losses = checked(smooth.forward(smooth, given, as_tensor(difference.get())));
  return reduced(op, std::move(losses), args[2]);
}

ModuleInit init([](PyObject*) {
  define("mse_loss(x, target; reduction)", mse_loss_forward);
  define("smooth_l1_loss(x, target; reduction, beta)", smooth_l1_loss_forward);
});

}  // namespace
}  // namespace rl
