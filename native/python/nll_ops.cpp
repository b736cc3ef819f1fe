// nll_loss and its gradient: what cross entropy and the negative log likelihood come down to, in one pass.
//
// Scores are (C), (N, C) or (N, C, ...), targets have the same shape without C; both are read as (N, C, S).
// Shapes and dtypes are checked by rushlight/nn/functional/classification.py in torch's words; what could
// read or write out of bounds is checked here again. Start with `Layout`.
#include <optional>

#include "../tensor/iterate.h"
#include "index_ops.h"

namespace rl {
namespace {

enum Kind : int64_t { none, mean, sum };  // torch's numbers for the reductions

struct Layout {
  int64_t rows = 1, classes, inner = 1;
  Layout(Sizes sizes, const Tensor* target, const Tensor* weight) {
    if (sizes.empty()) fail(PyExc_RuntimeError, "nll_loss: scores need a dimension of classes");
    classes = sizes[sizes.size() == 1 ? 0 : 1];
    if (sizes.size() > 1) rows = sizes[0];
    for (size_t d = 2; d < sizes.size(); d++) inner *= sizes[d];
    bool fits = target->dtype == DType::i64 && target->numel == rows * inner;
    if (!fits || (weight && weight->numel != classes)) {
      fail(PyExc_RuntimeError, "nll_loss: target or weight do not fit the scores");
    }
  }
};

// Calls f(position of the target, index of its score, its weight) for every target that counts; returns the
// first target that is no class, if there is one.
template <class A, class T, class F>
std::optional<int64_t> for_targets(const Layout& at, const int64_t* target, const T* weight, int64_t ignored,
                                   F f) {
  for (int64_t n = 0; n < at.rows; n++) {
    for (int64_t s = 0; s < at.inner; s++) {
      int64_t k = n * at.inner + s, c = target[k];
      if (c == ignored) continue;
      if (c < 0 || c >= at.classes) return c;
      f(k, (n * at.classes + c) * at.inner + s, weight ? A(compute_t<T>(weight[c])) : A(1));
    }
  }
  return std::nullopt;
}

template <class F>
void with_floating(DType dtype, F f) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_floating_v<T>) f(tag);
    else fail(PyExc_NotImplementedError, "nll_loss: scores must be real floating-point numbers");
  });
}

void check_target(std::optional<int64_t> wrong) {
  if (wrong) failf(PyExc_IndexError, "Target %lld is out of bounds.", (long long)*wrong);
}

struct Arguments {
  TensorRef target, weight;
  int64_t reduction, ignored;
  Arguments(const Primitive& op, PyObject* const* args, int first_attribute) {
    target = contiguous(tensor_argument(op, args, 1));
    if (args[2] != Py_None) weight = contiguous(tensor_argument(op, args, 2));
    reduction = read_int(args[first_attribute]);
    ignored = read_int(args[first_attribute + 1]);
  }
  void check(const Tensor* x) const {
    if (weight && weight->dtype != x->dtype) fail(PyExc_RuntimeError, "nll_loss: weight of another dtype");
  }
};

// nll_loss(x, target, weight; reduction, ignore_index)
PyObject* nll_loss_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* given = tensor_argument(op, args, 0);
  Arguments a(op, args, 3);
  Layout at(given->sizes(), a.target.get(), a.weight.get());
  a.check(given);
  // Without reduction the loss of one number is a number, whatever shape its target has.
  Sizes shape = a.reduction == none && given->ndim > 1 ? a.target->sizes() : Sizes{};
  TensorRef result = new_tensor(shape, given->dtype, given->device());
  if (given->is_meta()) return result.release_object();
  TensorRef x = contiguous(given);
  std::optional<int64_t> wrong;
  with_floating(x->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = double;  // sums of float32 keep their digits
    const T* scores = x->data_as<T>();
    const T* weights = a.weight ? a.weight->data_as<T>() : nullptr;
    T* out = result->data_as<T>();
    MaybeNoGil unlocked(a.target->numel);
    A total = 0, counted = 0;
    if (a.reduction == none) {
      std::fill_n(out, result->numel, T(0.f));
      wrong = for_targets<compute_t<T>>(
          at, a.target->data_as<int64_t>(), weights, a.ignored,
          [&](int64_t k, int64_t i, compute_t<T> w) { out[k] = T(-compute_t<T>(scores[i]) * w); });
      return;
    }
    wrong =
        for_targets<A>(at, a.target->data_as<int64_t>(), weights, a.ignored, [&](int64_t, int64_t i, A w) {
          total += A(compute_t<T>(scores[i])) * w;
          counted += w;
        });
    A loss = a.reduction == mean ? -total / counted : 0 - total;
    *out = T(compute_t<T>(loss));
  });
  check_target(wrong);
  return result.release_object();
}

// nll_loss_backward(g, target, weight; sizes, reduction, ignore_index): the gradient of the scores.
PyObject* nll_loss_backward_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* given = tensor_argument(op, args, 0);
  Arguments a(op, args, 4);
  Shape sizes;
  read_sizes(args[3], sizes, op.name.c_str(), "sizes");
  Layout at(sizes, a.target.get(), a.weight.get());
  a.check(given);
  if (given->numel != (a.reduction == none ? a.target->numel : 1)) {
    fail(PyExc_RuntimeError, "nll_loss_backward: the gradient does not fit");
  }
  if (given->is_meta()) return new_tensor(sizes, given->dtype, given->device()).release_object();
  TensorRef g = contiguous(given), result = zeros(sizes, given->dtype);
  std::optional<int64_t> wrong;
  with_floating(g->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = compute_t<T>;
    const T* grads = g->data_as<T>();
    const T* weights = a.weight ? a.weight->data_as<T>() : nullptr;
    const int64_t* target = a.target->data_as<int64_t>();
    T* out = result->data_as<T>();
    MaybeNoGil unlocked(a.target->numel);
    A scale = 1;
    if (a.reduction == mean) {
      double counted = 0;
      for_targets<double>(at, target, weights, a.ignored, [&](int64_t, int64_t, double w) { counted += w; });
      scale = A(1 / counted);
    }
    wrong = for_targets<A>(at, target, weights, a.ignored, [&](int64_t k, int64_t i, A w) {
      out[i] = T(-A(grads[a.reduction == none ? k : 0]) * w * scale);
    });
  });
  check_target(wrong);
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  for (const char* name : {"nll_loss", "nll_loss2d"}) {
    std::string text = name;
    define((text + "(x, target, weight; reduction, ignore_index)").c_str(), nll_loss_forward);
    define((text + "_backward(g, target, weight; sizes, reduction, ignore_index)").c_str(),
           nll_loss_backward_forward);
  }
});

}  // namespace
}  // namespace rl
