// Forward mode through user-defined Functions: their jvp is given the tangents of the inputs and returns
// those of the outputs, which are checked by torch's rules. Start with push_tangents.
#include "custom_tangents.h"

#include "../graph/dispatching.h"
#include "forward_mode.h"
#include "levels.h"
#include "tensor_type.h"

namespace rl {
namespace {

struct Push {
  FunctionNode* node;
  PyObject *inputs, *tangents, *returned;  // tuples; what forward returned
  std::vector<uint64_t> versions;          // of the tangents, before jvp ran
  std::vector<bool> moves;                 // inputs that have a tangent, not the zeros in its place
};

uint64_t version_of(PyObject* tangent) {
  return is_tensor(tangent) ? uint64_t(counter_of(as_tensor(tangent))->version) : 0;
}

// The user's jvp, given the tangents of the inputs; its answer as a tuple.
Ref<PyObject> call_jvp(const Push& call) {
  FunctionNode* node = call.node;
  Ref<PyObject> cls =
      checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(node)), "_forward_cls"));
  Ref<PyObject> jvp = checked(PyObject_GetAttrString(cls.get(), "jvp"));
  Py_ssize_t n = PyTuple_GET_SIZE(call.inputs);
  std::vector<PyObject*> args = {node->object()};
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *o = PyTuple_GET_ITEM(call.inputs, i), *tangent = PyTuple_GET_ITEM(call.tangents, i);
    if (tangent == Py_None && is_tensor(o) && !node->keep_undefined &&
        is_differentiable(as_tensor(o)->dtype)) {
      Tensor* t = as_tensor(o);
      Device device = is_leveled(t) ? claimed_device(t->storage) : t->device();
      PyTuple_SET_ITEM(call.tangents, i, zeros(t->sizes(), t->dtype, device).release_object());
      Py_DECREF(tangent);
      tangent = PyTuple_GET_ITEM(call.tangents, i);
    }
    args.push_back(tangent);
  }
  WithoutTangents off;
  Ref<PyObject> answer = checked(PyObject_Vectorcall(jvp.get(), args.data(), args.size(), nullptr));
  return PyTuple_Check(answer.get()) ? answer : checked(PyTuple_Pack(1, answer.get()));
}

// Of a tensor and its views: what they are views of in forward mode.
Tensor* root_of(Tensor* t) { return t->base() && t->extra->differentiable_view ? t->base() : t; }

// A tangent of an input that forward wrote is written as well, and returned as it is.
void check_written(const Push& call, size_t input, PyObject* tangent) {
  if (version_of(tangent) == call.versions[input]) {
    fail(PyExc_RuntimeError,
         "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward "
         "is modifying an input inplace, then the jvp function must modify the corresponding gradient "
         "inplace.");
  }
  if (PyTuple_GET_ITEM(call.tangents, Py_ssize_t(input)) != tangent) {
    fail(PyExc_RuntimeError,
         "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is "
         "modifying an input inplace, then the jvp function must modify the gradient inplace and return "
         "it as-is.");
  }
}

// The tangent of a view of an input that has one is a view of that.
void check_view(const Push& call, Tensor* out, Tensor* tangent) {
  if (root_of(out) == out) return;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call.inputs); k++) {
    PyObject* input = PyTuple_GET_ITEM(call.inputs, k);
    if (!is_tensor(input) || root_of(as_tensor(input)) != root_of(out)) continue;
    if (!call.moves[size_t(k)]) return;
    if (root_of(tangent) == tangent) {
      fail(PyExc_RuntimeError,
           "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning "
           "a view.");
    }
    Tensor* given = as_tensor(PyTuple_GET_ITEM(call.tangents, k));
    if (root_of(tangent) == root_of(given)) return;
    failf(PyExc_RuntimeError,
          "A custom Function is returning a view but the jvp is not returning a view of the %s grad input.",
          root_of(given) == given ? "given" : "same base as the given");
  }
}

// Checks what jvp returned for output `i`: torch's rules keep writes and views of a dual tensor and of its
// tangent in step. False if the output has no tangent.
bool check_tangent(const Push& call, Py_ssize_t i, PyObject* tangent, Tensor* out) {
  PyObject* returned = PyTuple_GET_ITEM(call.returned, i);
  if (!is_differentiable(out->dtype) || contains(call.node->non_differentiable, returned)) {
    if (tangent == Py_None) return false;
    failf(
        PyExc_RuntimeError,
        "Function's jvp returned a gradient at position %zd, but  the corresponding forward output is not a "
        "differentiable Tensor.You should return None at that position instead.",
        i);
  }
  if (contains(call.node->dirty, returned)) {
    Py_ssize_t k = 0, n = PyTuple_GET_SIZE(call.inputs);
    while (k < n && PyTuple_GET_ITEM(call.inputs, k) != returned) k++;
    if (k == n) {
      fail(PyExc_RuntimeError,
           "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no "
           "need to pass it to mark_dirty().");
    }
    if (call.moves[size_t(k)]) check_written(call, size_t(k), tangent);
  } else if (tangent != Py_None) {
    check_view(call, out, as_tensor(tangent));
  }
  if (tangent == Py_None) return false;
  if (tangent_of(as_tensor(tangent))) {
    fail(PyExc_RuntimeError,
         "Setting a forward grad that itself has a forward gradient at the same level0 is not supported.");
  }
  if (!is_differentiable(as_tensor(tangent)->dtype)) {
    failf(PyExc_RuntimeError,
          "Expected both tensor and its forward grad to be floating point or complex: jvp returned a tensor "
          "of %s at position %zd",
          dtype_name(as_tensor(tangent)->dtype), i);
  }
  if (!same_sizes(as_tensor(tangent), out)) {
    fail(PyExc_RuntimeError,
         "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
         "is not supported. Tensor is of size " +
             sizes_text(out->sizes()) + " while the given forward gradient is of size " +
             sizes_text(as_tensor(tangent)->sizes()) + ".");
  }
  return true;
}

// Gives the outputs the tangents that jvp returned.
void give_tangents(const Push& call, PyObject* tangents, PyObject* results) {
  Py_ssize_t n = PyTuple_GET_SIZE(results);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tangents); i++) {
    PyObject* tangent = PyTuple_GET_ITEM(tangents, i);
    if (tangent == Py_None || is_tensor(tangent)) continue;
    failf(PyExc_RuntimeError, "expected Variable or None (got %s) for grad output %zd.",
          Py_TYPE(tangent)->tp_name, i);
  }
  if (PyTuple_GET_SIZE(tangents) != n) {
    failf(PyExc_RuntimeError,
          "Function's jvp returned an invalid number of forward gradients (expected %zd but got %zd)", n,
          PyTuple_GET_SIZE(tangents));
  }
  Ref<PyObject> core = checked(PyImport_ImportModule("rushlight._C"));
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *tangent = PyTuple_GET_ITEM(tangents, i), *result = PyTuple_GET_ITEM(results, i);
    if (!is_tensor(result)) continue;  // whatever is given for it
    if (!check_tangent(call, i, tangent, as_tensor(result))) continue;
    if (contains(call.inputs, result)) write_tangent(as_tensor(result), tangent, false);  // written in place
    else checked(PyObject_CallMethod(core.get(), "set_tangent", "OO", result, tangent));
  }
}

}  // namespace

bool contains(PyObject* tuple, PyObject* o) {
  if (!tuple || !PyTuple_Check(tuple)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  }
  return false;
}

Ref<PyObject> input_tangents(PyObject* inputs) {
  Py_ssize_t n = PyTuple_GET_SIZE(inputs);
  Ref<PyObject> tuple = checked(PyTuple_New(n));
  bool any = false;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* o = PyTuple_GET_ITEM(inputs, i);
    TensorRef tangent = is_tensor(o) ? tangent_of(as_tensor(o)) : TensorRef();
    any |= bool(tangent);
    PyTuple_SET_ITEM(tuple.get(), i, tangent ? tangent.release_object() : Py_NewRef(Py_None));
  }
  return any ? tuple : Ref<PyObject>();
}

void push_tangents(FunctionNode* node, PyObject* inputs, PyObject* tangents, PyObject* returned,
                   PyObject* results) {
  Push push{node, inputs, tangents, returned, {}, {}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tangents); i++) {
    push.versions.push_back(version_of(PyTuple_GET_ITEM(tangents, i)));
    push.moves.push_back(PyTuple_GET_ITEM(tangents, i) != Py_None);
  }
  give_tangents(push, call_jvp(push).get(), results);
}

void share_saved_tangents(FunctionNode* node, PyObject* values) {
  for (uint16_t i = 0; i < node->saved_count; i++) {
    PyObject *saved = node->saved[i].object, *o = PyTuple_GET_ITEM(values, i);
    if (!saved || saved == o || !is_tensor(o)) continue;
    if (is_tensor(saved)) share_tangent(as_tensor(o), as_tensor(saved));
    else if (is_packed(saved)) share_packed_tangent(as_tensor(o), saved);
  }
}

}  // namespace rl
