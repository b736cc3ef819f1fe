// Between the engine and Python: calling rules and hooks, unpacking what was saved, shaping gradients.
#pragma once
#include <utility>

#include "node.h"

namespace rl {

// The saved value in slot `at`, checked against later writes. `out` >= 0: it is that output of the node.
Ref<PyObject> unpack(Node* node, int at, int out);
// The same check alone, for a value that is shown and not used (Note [what composed operations keep]).
void check_kept(Node* node, Tensor* alias, uint32_t version, int out = -1);
// Whether a result is kept as it is, because it has no derivative in torch. A class detaches its own.
bool keeps_whole(const Node* node, const Tensor* result, int out);

// An operation that no gradient reaches reads what it saved all the same, as in torch: a program is told that
// it was written or freed.
void read_saved(Node* node);

// The gradient of an output that nobody used. `beside`: the gradients of the other outputs. Among wrappers,
// which have no data where they say, the zeros are where these say.
TensorRef zeros_for(const OutputInfo& info, Tensor* const* beside, uint32_t count);

// Makes a gradient fit the tensor it belongs to: sums over broadcast dimensions, casts, takes the real part.
TensorRef fit_gradient(Node* from, uint32_t edge, TensorRef grad);
// The operation whose derivative is that cast: who looks on is told of one of them (rule_of()).
struct Fitting {
  explicit Fitting(const Primitive* op) : before(std::exchange(now, op)) {}
  ~Fitting() { now = before; }
  Fitting(const Fitting&) = delete;
  static thread_local const Primitive* now __attribute__((tls_model("initial-exec")));

 private:
  const Primitive* before;
};
// memory_ops.cpp: the gradient summed over the dimensions along which `wanted` was expanded; null if it was
// not.
TensorRef summed_to(Tensor* grad, Sizes wanted);

// t.grad becomes `grad`. To be called once that is computed: whoever was asked on the way (a hook, a mode)
// may have exchanged the tensor.
void set_gradient(Tensor* t, TensorRef grad);

extern thread_local bool frees_graph
    __attribute__((tls_model("initial-exec")));  // the running backward releases what it has used

// "torch.FloatTensor"; complex tensors have no such class, and torch names them otherwise.
std::string type_text(const Tensor* t);

[[noreturn]] void fail_freed(Node* node);  // torch's error for saved values that are gone

void check_for_nan(Node* node, size_t nr, Tensor* result);

// The node of this thread whose rules run, or null.
const Node* derived_now();

// hooks.cpp
void run_prehooks(Node* node, Tensor** grads);

// Hooks that were added while the node itself was at work see no gradients: they were given away (`grads` is
// empty, the accumulator's was not `expected` to be shown).
void run_posthooks(Node* node, std::vector<TensorRef>& results, const std::vector<TensorRef>& grads);
void run_leaf_hooks(Tensor* leaf, TensorRef& grad);
// Note [spread gradients]: before somebody sees it, a gradient that torch has for each element is made so.
void show_dense(TensorRef& grad);
void show_dense(Tensor** grads, size_t count);
// The same before its dimensions change places or are repeated: that leaves traces in the layout of what
// follows.
TensorRef unspread(Tensor* t);
void run_post_hooks(Node* accumulator, TensorRef arrived, bool expected);

}  // namespace rl
