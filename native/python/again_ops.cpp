// An operation that is composed of others, recorded as one node that keeps what it was called with and
// computes everything again for its derivative: see rushlight/ops/_again.py, which is where to start.
#include <utility>

#include "../graph/modes.h"
#include "primitive.h"

namespace rl {
namespace {

// A result that is to have a history of its own: an argument, or a view of one, has another.
Ref<PyObject> own_result(const Primitive& op, PyObject* o) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "%s: a function of tensors expected", op.name.c_str());
  Tensor* t = as_tensor(o);
  if (Py_REFCNT(t->object()) == 1 && !t->base() && !t->grad_fn && !(t->flags & Tensor::REQUIRES_GRAD))
    return share(o);
  return Ref<PyObject>(clone(t).release_object());
}

// again(tensors[]; call): call(tensors); ldexp(a, b; call): call(a, b). Nothing of it is recorded.
PyObject* run_again(const Primitive& op, PyObject* const* args, Tensor*) {
  GradMode off(false);
  bool forward = std::exchange(modes.forward, false);
  PyObject* made = PyObject_Vectorcall(args[op.input_count], args, size_t(op.input_count), nullptr);
  modes.forward = forward;
  Ref<PyObject> result = checked(made);
  Py_ssize_t count = Py_ssize_t(op.outputs.size());
  if (count == 1) return own_result(op, result.get()).release();
  if (!PyTuple_Check(result.get()) || PyTuple_GET_SIZE(result.get()) != count)
    failf(PyExc_TypeError, "%s: a function of %zd results expected", op.name.c_str(), count);
  Ref<PyObject> several = checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SET_ITEM(several.get(), i, own_result(op, PyTuple_GET_ITEM(result.get(), i)).release());
  return several.release();
}

// listed(results[]) -> outs[]: results of one operation on lists, each with its own history so far, as
// results of one node that keeps what torch's does (rushlight/_foreach.py).
PyObject* run_listed(const Primitive&, PyObject* const* args, Tensor*) {
  Ref<PyObject> outs = checked(PyTuple_New(PyTuple_GET_SIZE(args[0])));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i++) {
    PyObject* result = PyTuple_GET_ITEM(args[0], i);
    if (!is_tensor(result)) fail(PyExc_TypeError, "listed(): a tuple of tensors expected");
    PyTuple_SET_ITEM(outs.get(), i, new_alias(as_tensor(result)).release_object());
  }
  return outs.release();
}

ModuleInit init([](PyObject*) {
  define("listed(results[]) -> outs[]", run_listed, Primitive::SEES_TO_DEVICES);
  define("again(tensors[]; call)", run_again, Primitive::SEES_TO_DEVICES);
  define("again_from_result(tensors[]; call)", run_again, Primitive::SEES_TO_DEVICES);
  for (const char* signature :
       {"ldexp(a, b; call)", "trilinear(i1, i2, i3; call)", "frexp(x; call) -> mantissa, exponent",
        "linalg_lu(A; call) -> P, L, U",
        "triangular_solve(b, A; call, upper, transpose, unitriangular) -> solution, copy",
        "masked_index(x, mask, indices[]; call)", "masked_index_put(x, values, mask, indices[]; call)",
        "max_pool_at(g, x, indices; call)",
        "embedding_bag(weight, factors, indices, offsets; call, mode, padding, scale, sparse) -> out, bag, "
        "sizes, "
        "places",
        "safe_softmax(x; call, dim)"})
    define(signature, run_again, Primitive::SEES_TO_DEVICES);
});

}  // namespace
}  // namespace rl
