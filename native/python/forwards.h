// Who stands between a primitive and its forward function: nobody, the profiler, a TorchDispatchMode.
//
// All work by replacing Primitive::forward of all primitives while they are wanted, so that nothing is paid
// otherwise. `arrange_forwards` is the one place that sets the field: dispatching comes first,
// then timing, then the real function.
#pragma once
#include "primitive.h"

namespace rl {

Forward real_forward(const Primitive& op);
void arrange_forwards(bool timing, bool dispatching);
bool dispatching_forwards();
// Somebody stands there, but asks only about operands of some classes (a sparse tensor has been made): the
// others need not go there.
extern bool only_classes_asked;
// Whether somebody may be asked about a call with these arguments.
bool may_be_asked(PyObject* const* args, Py_ssize_t count);
// Whether Python is asked about this call.
bool asks_about(const Primitive& op, PyObject* const* args);

// set_grad_enabled as no_grad and its kin call it: modes that look on at functions are told of torch's. They
// decide whether it happens, by calling it or not. Returns what was set before (new reference), or null with
// a Python error.
PyObject* switch_grad(PyObject* on);

// The result of an operation in torch's steps, if somebody looks on; empty if not. Its steps are recorded.
Ref<PyObject> taken_apart(const Primitive& op, PyObject* const* args);
bool measuring();  // whether the profiler measures this thread

PyObject* timed_forward(const Primitive& op, PyObject* const* args, Tensor* out);       // profiler.cpp
PyObject* dispatched_forward(const Primitive& op, PyObject* const* args, Tensor* out);  // dispatch_mode.cpp
// The forward function of primitives that are computed in Python: it asks, whoever the arguments are.
PyObject* python_forward(const Primitive& op, PyObject* const* args, Tensor* out);

// A result that a node keeps and hooks have not been shown yet: it may be written over an argument first
// (`overwrite`), or change something that hooks which raise must not keep from changing (`shown_after`,
// both autograd_api.cpp). They are listed while somebody sets the list, in primitive.cpp.
struct LateResult {
  Ref<Node> node;
  int at;  // among what the node has saved
  uint32_t nr;
  TensorRef out;
};
extern thread_local std::vector<LateResult>* late_results;

class LateResults {
 public:
  LateResults() : outer_(std::exchange(late_results, &late_)) {}
  ~LateResults() { end(); }
  LateResults(const LateResults&) = delete;
  // Shows hooks what nodes keep of the results: the tensor that was written with one, or the result itself.
  void show(Tensor* written = nullptr);
  void end() {
    if (late_results == &late_) late_results = outer_;
  }

 private:
  std::vector<LateResult> late_, *outer_;
};

// primitive.cpp: what was worked out from the rules there were; to be called when a primitive gets another.
void forget_plans();

}  // namespace rl
