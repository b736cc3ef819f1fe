// Connectionist temporal classification: the likelihood of a label sequence over all its alignments, and its
// gradient.
//
// Between, before and after the labels stands a blank, so S labels make 2 S + 1 states. `log_alpha` holds for
// every time and state the logarithm of the probability of all beginnings that end there; the gradient
// computes the same for all endings (log_beta) and combines them. As in torch, the gradient takes log_probs
// for the result of log_softmax.
#include <limits>
#include <vector>

#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
#include "arguments.h"

namespace rl {
namespace {

constexpr const char* NAME = "ctc_loss";

struct Labels {
  int64_t T, N, C, states = 1;  // states: of the longest sequence of labels
  int64_t blank;
  std::vector<int64_t> input_length, target_length, start;
  TensorRef targets;

  // arguments: log_probs (T, N, C), targets (all labels in a row, int64); input_lengths, target_lengths,
  // starts, blank
  Labels(Tensor* log_probs, PyObject* const* args) {
    if (log_probs->ndim != 3)
      failf(PyExc_RuntimeError,
            "Expected 3-dimensional tensor, but got %d-dimensional tensor "
            "for argument #1 'log_probs' (while checking arguments for "
            "ctc_loss_allocate_outputs)",
            log_probs->ndim);
    if (log_probs->dtype != DType::f32 && log_probs->dtype != DType::f64) {
      fail_not_implemented("ctc_loss_cpu", log_probs->dtype);
    }
    T = log_probs->size(0), N = log_probs->size(1), C = log_probs->size(2);
    Tensor* given = tensor_argument(NAME, args[0]);
    if (given->dtype != DType::i64) fail(PyExc_RuntimeError, "ctc_loss: targets must be int64");
    if (given->is_meta() || log_probs->is_meta())
      fail(PyExc_NotImplementedError, "ctc_loss is not implemented for meta");
    targets = stable(given);
    read(args[1], input_length);
    read(args[2], target_length);
    read(args[3], start);
    blank = int_argument(NAME, "blank", args[4]);
    if (blank < 0 || blank >= C) fail(PyExc_RuntimeError, "blank must be in label range");
    for (size_t n = 0; n < size_t(N); n++) {
      int64_t length = target_length[n];
      if (input_length[n] < 0 || input_length[n] > T || length < 0 || start[n] < 0 ||
          start[n] > targets->numel || length > targets->numel - start[n]) {
        fail(PyExc_RuntimeError, "ctc_loss: a length is out of range");
      }
      for (int64_t s = 0; s < length; s++) {
        int64_t label = targets->data_as<int64_t>()[start[n] + s];
        if (label < 0 || label >= C) {
          failf(PyExc_RuntimeError, "ctc_loss: label %lld is out of range for %lld classes", (long long)label,
                (long long)C);
        }
      }
      states = std::max(states, 2 * length + 1);
    }
  }
  int64_t label(int64_t n, int64_t state) const {
    return state % 2 ? targets->data_as<int64_t>()[start[size_t(n)] + state / 2] : blank;
  }
  // Whether a state may be reached from the label before, past the blank between them.
  bool skips(int64_t n, int64_t state) const {
    return state % 2 && state > 1 && label(n, state) != label(n, state - 2);
  }

 private:
  void read(PyObject* o, std::vector<int64_t>& to) const {
    if (!PyTuple_Check(o) || PyTuple_GET_SIZE(o) != N)
      fail(PyExc_RuntimeError, "ctc_loss: one length per sequence");
    for (int64_t n = 0; n < N; n++) to.push_back(read_int(PyTuple_GET_ITEM(o, n)));
  }
};

template <class T>
T add_logs(T a, T b) {
  T high = std::max(a, b);
  if (high == -std::numeric_limits<T>::infinity()) return a + b;  // NaN if either is
  return high + std::log1p(std::exp((high == a ? b : a) - high));
}
template <class T>
T add_logs(T a, T b, T c) {
  T high = std::max(a, std::max(b, c));
  if (high == -std::numeric_limits<T>::infinity()) return a + b + c;
  return high + std::log(std::exp(a - high) + std::exp(b - high) + std::exp(c - high));
}

// alpha: T x states
template <class F>
F forward_one(const Labels& l, int64_t n, const F* log_probs, F* alpha) {
  constexpr F none = -std::numeric_limits<F>::infinity();
  int64_t steps = l.input_length[size_t(n)], states = 2 * l.target_length[size_t(n)] + 1;
  std::fill_n(alpha, l.T * l.states, none);
  if (!steps) return states == 1 ? F(-0.0) : -none;
  auto probability = [&](int64_t t, int64_t s) { return log_probs[(t * l.N + n) * l.C + l.label(n, s)]; };
  alpha[0] = probability(0, 0);
  if (states > 1) alpha[1] = probability(0, 1);
  for (int64_t t = 1; t < steps; t++) {
    const F* before = alpha + (t - 1) * l.states;
    F* now = alpha + t * l.states;
    for (int64_t s = 0; s < states; s++) {
      F sum = add_logs(before[s], s > 0 ? before[s - 1] : none, l.skips(n, s) ? before[s - 2] : none);
      now[s] = sum + probability(t, s);
    }
  }
  const F* last = alpha + (steps - 1) * l.states;
  return -(states > 1 ? add_logs(last[states - 1], last[states - 2]) : last[0]);
}

// grad: (T, N, C), zero on entry
template <class F>
void backward_one(const Labels& l, int64_t n, const F* log_probs, const F* alpha, F loss, F g, F* grad) {
  constexpr F none = -std::numeric_limits<F>::infinity();
  int64_t steps = l.input_length[size_t(n)], states = 2 * l.target_length[size_t(n)] + 1;
  std::vector<F> after(size_t(l.states), none), beta(size_t(l.states), none), sums(static_cast<size_t>(l.C));
  auto probability = [&](int64_t t, int64_t s) { return log_probs[(t * l.N + n) * l.C + l.label(n, s)]; };
  for (int64_t t = steps - 1; t >= 0; t--) {
    std::fill(sums.begin(), sums.end(), none);
    for (int64_t s = states - 1; s >= 0; s--) {
      F sum;
      if (t == steps - 1) {
        sum = s >= states - 2 ? F(0) : none;
      } else {
        sum = add_logs(after[size_t(s)], s + 1 < states ? after[size_t(s + 1)] : none,
                       s + 2 < states && l.skips(n, s + 2) ? after[size_t(s + 2)] : none);
      }
      beta[size_t(s)] = sum + probability(t, s);
      F& total = sums[size_t(l.label(n, s))];
      total = add_logs(total, alpha[t * l.states + s] + beta[size_t(s)]);
    }
    F* row = grad + (t * l.N + n) * l.C;
    const F* p = log_probs + (t * l.N + n) * l.C;
    for (int64_t c = 0; c < l.C; c++) {
      row[c] = (std::exp(p[c]) - std::exp(sums[size_t(c)] + loss - p[c])) * g;
    }
    std::swap(after, beta);
  }
}

template <class Run>
void with_type(DType dtype, Run run) {
  if (dtype == DType::f64) run(TypeTag<double>{});
  else run(TypeTag<float>{});
}

// ctc_loss(log_probs; targets, input_lengths, target_lengths, starts, blank, zero_infinity) -> loss,
// log_alpha
PyObject* ctc_loss_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* log_probs = tensor_argument(NAME, args[0]);
  Labels l(log_probs, args + 1);
  TensorRef x = contiguous(log_probs);
  int64_t sizes[] = {l.N}, alpha_sizes[] = {l.N, l.T, l.states};
  TensorRef loss = new_tensor(sizes, x->dtype), alpha = new_tensor(alpha_sizes, x->dtype);
  {
    int64_t each = l.T * l.states * 8;
    MaybeNoGil released(l.N * each);
    with_type(x->dtype, [&](auto tag) {
      using F = typename decltype(tag)::type;
      parallel_for(l.N, std::max<int64_t>(1, GRAIN / std::max<int64_t>(each, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t n = begin; n < end; n++) {
                       loss->data_as<F>()[n] =
                           forward_one(l, n, x->data_as<F>(), alpha->data_as<F>() + n * l.T * l.states);
                     }
                   });
    });
  }
  return checked(PyTuple_Pack(2, loss->object(), alpha->object())).release();
}

// ctc_loss_backward(g, log_probs, loss, log_alpha; targets, input_lengths, target_lengths, starts, blank,
// zero_infinity)
PyObject* ctc_loss_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *g = tensor_argument(NAME, args[0]), *log_probs = tensor_argument(NAME, args[1]);
  Tensor *loss = tensor_argument(NAME, args[2]), *alpha = tensor_argument(NAME, args[3]);
  Labels l(log_probs, args + 4);
  bool zero_infinity = bool_argument(NAME, "zero_infinity", args[9]);
  for (Tensor* t : {g, loss, alpha}) {
    if (t->dtype != log_probs->dtype || t->is_meta())
      fail(PyExc_RuntimeError, "ctc_loss: gradient of another type");
  }
  if (g->numel != l.N || loss->numel != l.N || alpha->numel != l.N * l.T * l.states) {
    fail(PyExc_RuntimeError, "ctc_loss: gradient of another size");
  }
  TensorRef x = contiguous(log_probs), up = contiguous(g), value = contiguous(loss), a = contiguous(alpha);
  TensorRef grad = zeros(x->sizes(), x->dtype);
  {
    int64_t each = l.T * (l.states + l.C) * 8;
    MaybeNoGil released(l.N * each);
    with_type(x->dtype, [&](auto tag) {
      using F = typename decltype(tag)::type;
      parallel_for(l.N, std::max<int64_t>(1, GRAIN / std::max<int64_t>(each, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t n = begin; n < end; n++) {
                       F at = value->data_as<F>()[n];
                       if (zero_infinity && at == std::numeric_limits<F>::infinity()) continue;
                       backward_one(l, n, x->data_as<F>(), a->data_as<F>() + n * l.T * l.states, at,
                                    up->data_as<F>()[n], grad->data_as<F>());
                     }
                   });
    });
  }
  return grad.release_object();
}

ModuleInit init([](PyObject*) {
  define(
      "ctc_loss(log_probs; targets, input_lengths, target_lengths, starts, blank, zero_infinity) -> loss, "
      "log_alpha",
      ctc_loss_forward);
  define(
      "ctc_loss_backward(g, log_probs, loss, log_alpha; targets, input_lengths, target_lengths, starts, "
      "blank, "
      "zero_infinity)",
      ctc_loss_backward_forward);
});

}  // namespace
}  // namespace rl
