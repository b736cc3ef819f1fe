// Fused losses: what a training step computes last, as one operation and one node.
#include <algorithm>
#include <ranges>
#include <string_view>
#include <vector>

#include "../kernels/reduce.h"
#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
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

// The mean or sum of losses of differences, large and as they lie in memory: block by block, in the
// first-level cache, instead of writing differences and losses down (a million: 190 to 80 us). `losses`
// computes those of n differences in their place. Null if this is another case.
template <class F>
TensorRef summed(PyObject* const* args, PyObject* reduction, const F& losses) {
  constexpr int64_t LEAST = 16384, BLOCK = 2048, SHARE = 16 * BLOCK;
  Tensor *x = is_tensor(args[0]) ? as_tensor(args[0]) : nullptr,
         *target = is_tensor(args[1]) ? as_tensor(args[1]) : nullptr;
  const char* kind = PyUnicode_Check(reduction) ? PyUnicode_AsUTF8(reduction) : nullptr;
  if (!x || !target || !kind || x->numel < LEAST || x->dtype != target->dtype ||
      (x->dtype != DType::f32 && x->dtype != DType::f64) || x->device() != target->device() || x->is_meta() ||
      !std::ranges::equal(x->sizes(), target->sizes()) || !x->is_contiguous() || !target->is_contiguous())
    return {};
  bool mean = std::string_view(kind) == "mean";
  if (!mean && std::string_view(kind) != "sum") return {};
  static const Elementwise& subtract = *find_elementwise("sub");
  ReduceParams params;
  params.count = x->numel;
  const ReduceKernel* kernel = RL_CHOOSE(sum_kernel, mean ? ReduceOp::mean : ReduceOp::sum, x->dtype, params);
  const int64_t n = x->numel, item = x->itemsize(), shares = (n + SHARE - 1) / SHARE;
  TensorRef result = new_tensor({}, x->dtype, x->device());
  char *of_x = static_cast<char*>(x->data()), *of_target = static_cast<char*>(target->data());
  MaybeNoGil released(n);
  // Each share has its sum, whichever thread computes it: the result does not depend on their number.
  std::vector<char> sums(size_t(shares * kernel->acc_size));
  kernel->init(sums.data(), shares);
  parallel_for(shares, 2, [&](int64_t begin, int64_t end) {
    alignas(64) char differences[BLOCK * sizeof(double)];
    for (int64_t share = begin; share < end; share++)
      for (int64_t i = share * SHARE, last = std::min(n, i + SHARE); i < last; i += BLOCK) {
        int64_t count = std::min(BLOCK, last - i), steps[] = {item, item, item};
        char* data[] = {differences, of_x + i * item, of_target + i * item};
        subtract.loops[int(x->dtype)](data, steps, count, nullptr);
        losses(x->dtype, differences, item, count);
        kernel->rows(differences, 1, 0, count, 0, sums.data() + share * kernel->acc_size, params);
      }
  });
  for (int64_t share = 1; share < shares; share++)
    kernel->combine(sums.data(), sums.data() + share * kernel->acc_size, 1);
  kernel->finish(sums.data(), 1, result->data(), result->dtype, 1, nullptr, 0, params);
  return result;
}

// mse_loss(x, target; reduction): (x - target)^2, reduced. x and target are floating; they may broadcast.
PyObject* mse_loss_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  static Primitive& multiply = primitive("mul");
  static const Elementwise& product = *find_elementwise("mul");
  auto square = [](DType dtype, char* x, int64_t item, int64_t n) {
    char* data[] = {x, x, x};
    int64_t steps[] = {item, item, item};
    product.loops[int(dtype)](data, steps, n, nullptr);
  };
  if (TensorRef sum = summed(args, args[2], square)) return sum.release_object();
  Ref<PyObject> difference = difference_of(args);
  PyObject* both[] = {difference.get(), difference.get()};
  // Nobody else has seen the difference: square it where it is.
  Ref<PyObject> squared = checked(multiply.forward(multiply, both, as_tensor(difference.get())));
  return reduced(op, std::move(squared), args[2]);
}

// smooth_l1_loss(x, target; reduction, beta): of x and target of one floating dtype and size.
PyObject* smooth_l1_loss_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  static Primitive& smooth = primitive("smooth_absolute");
  static const Elementwise& loss = *find_elementwise("smooth_absolute");
  Param beta{};
  if (PyFloat_Check(args[3])) {
    beta.real = PyFloat_AS_DOUBLE(args[3]);
    auto smoothen = [&](DType dtype, char* x, int64_t item, int64_t n) {
      char* data[] = {x, x};
      int64_t steps[] = {item, item};
      loss.loops[int(dtype)](data, steps, n, &beta);
    };
    if (TensorRef sum = summed(args, args[2], smoothen)) return sum.release_object();
  }
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
