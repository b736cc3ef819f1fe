// Forward mode through user-defined Functions: their jvp is given the tangents of the inputs and returns
// those of the outputs, which are checked by torch's rules. Start with push_tangents.
#include "custom_tangents.h"

#include "forward_mode.h"
#include "tensor_type.h"

namespace rl {
namespace {

struct Push {
  FunctionNode* node;
  PyObject *inputs, *tangents;     // tuples
  std::vector<uint64_t> versions;  // of the tangents, before jvp ran
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
      PyTuple_SET_ITEM(call.tangents, i, zeros(t->sizes(), t->dtype, t->device()).release_object());
      Py_DECREF(tangent);
      tangent = PyTuple_GET_ITEM(call.tangents, i);
    }
    args.push_back(tangent);
  }
  WithoutTangents off;
  Ref<PyObject> answer = checked(PyObject_Vectorcall(jvp.get(), args.data(), args.size(), nullptr));
  return PyTuple_Check(answer.get()) ? answer : checked(PyTuple_Pack(1, answer.get()));
}

// Checks what jvp returned for output `i`: torch's rules keep writes and views of a dual tensor and of its
// tangent in step.
void check_tangent(const Push& call, Py_ssize_t i, PyObject* tangent, PyObject* result) {
  Tensor* out = as_tensor(result);
  bool differentiable = is_differentiable(out->dtype) && !contains(call.node->non_differentiable, result);
  if (tangent != Py_None && !differentiable) {
    failf(
        PyExc_RuntimeError,
        "Function's jvp returned a gradient at position %zd, but  the corresponding forward output is not a "
        "differentiable Tensor.You should return None at that position instead.",
        i);
  }
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call.inputs); k++) {
    PyObject *input = PyTuple_GET_ITEM(call.inputs, k), *given = PyTuple_GET_ITEM(call.tangents, k);
    if (!is_tensor(input) || given == Py_None) continue;
    if (input == result && contains(call.node->dirty, result)) {
      if (version_of(tangent) == call.versions[size_t(k)]) {
        fail(PyExc_RuntimeError,
             "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward "
             "is modifying an input inplace, then the jvp function must modify the corresponding gradient "
             "inplace.");
      }
      if (given != tangent) {
        fail(
            PyExc_RuntimeError,
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is "
            "modifying an input inplace, then the jvp function must modify the gradient inplace and return "
            "it as-is.");
      }
    }
    bool view = input != result && out->base() && out->storage == as_tensor(input)->storage;
    if (view && tangent != Py_None && !as_tensor(tangent)->base()) {
      fail(PyExc_RuntimeError,
           "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning "
           "a view.");
    }
    if (view && tangent != Py_None) {
      Tensor *base = as_tensor(given)->base(), *from = as_tensor(tangent)->base();
      if (base ? from != base : from != as_tensor(given)) {
        failf(
            PyExc_RuntimeError,
            "A custom Function is returning a view but the jvp is not returning a view of the %s grad input.",
            base ? "same base as the given" : "given");
      }
    }
  }
  if (tangent != Py_None && !same_sizes(as_tensor(tangent), out)) {
    fail(PyExc_RuntimeError,
         "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
         "is not supported. Tensor is of size " +
             sizes_text(out->sizes()) + " while the given forward gradient is of size " +
             sizes_text(as_tensor(tangent)->sizes()) + ".");
  }
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
    check_tangent(call, i, tangent, result);
    if (tangent == Py_None) continue;
    if (contains(call.inputs, result)) write_tangent(as_tensor(result), tangent);  // written in place
    else checked(PyObject_CallMethod(core.get(), "set_tangent", "OO", result, tangent));
  }
}

}  // namespace

bool contains(PyObject* tuple, PyObject* o) {
  if (!tuple) return false;
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

void push_tangents(FunctionNode* node, PyObject* inputs, PyObject* tangents, PyObject* results) {
  Push push{node, inputs, tangents, {}};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tangents); i++) {
    push.versions.push_back(version_of(PyTuple_GET_ITEM(tangents, i)));
  }
  give_tangents(push, call_jvp(push).get(), results);
}

void share_saved_tangents(FunctionNode* node, PyObject* values) {
  for (uint16_t i = 0; i < node->saved_count; i++) {
    PyObject *saved = node->saved[i].object, *o = PyTuple_GET_ITEM(values, i);
    if (saved && saved != o && is_tensor(saved) && is_tensor(o))
      share_tangent(as_tensor(o), as_tensor(saved));
  }
}

}  // namespace rl
