// An operation that is composed of others, recorded as one node that keeps what it was called with and
// computes everything again for its derivative: see rushlight/ops/_again.py, which is where to start.
#include <utility>

#include "../graph/modes.h"
#include "primitive.h"

namespace rl {
namespace {

// again(tensors[]; call): call(tensors); ldexp(a, b; call): call(a, b). Nothing of it is recorded.
PyObject* run_again(const Primitive& op, PyObject* const* args, Tensor*) {
  GradMode off(false);
  bool forward = std::exchange(modes.forward, false);
  PyObject* made = PyObject_Vectorcall(args[op.input_count], args, size_t(op.input_count), nullptr);
  modes.forward = forward;
  Ref<PyObject> result = checked(made);
  if (!is_tensor(result.get())) fail(PyExc_TypeError, "again: a function of one result expected");
  // The history of the result is to be its own: an argument, or a view of one, has another.
  Tensor* t = as_tensor(result.get());
  if (Py_REFCNT(t->object()) == 1 && !t->base() && !t->grad_fn && !(t->flags & Tensor::REQUIRES_GRAD))
    return result.release();
  return clone(t).release_object();
}

ModuleInit init([](PyObject*) {
  define("again(tensors[]; call)", run_again, Primitive::SEES_TO_DEVICES);
  define("again_from_result(tensors[]; call)", run_again, Primitive::SEES_TO_DEVICES);
  define("ldexp(a, b; call)", run_again, Primitive::SEES_TO_DEVICES);
  define("trilinear(i1, i2, i3; call)", run_again, Primitive::SEES_TO_DEVICES);
});

}  // namespace
}  // namespace rl
