// Calls whose inputs are on two devices: tensors with data and tensors on `meta`, which have only a shape.
//
// Kernels rely on all inputs having memory, so no such call reaches one. Start with `is_mixed`, which every
// primitive asks before it computes. Note [two devices]: where torch gives a tensor on meta (a product whose
// left side is there, rows of a table that is there), so do we: a model built on meta is often fed with
// indices that have data. Where torch gives a tensor on the CPU of which no element was computed, we refuse
// in the words it has for sums.
#include "devices.h"

#include <vector>

#include "../graph/dispatching.h"
#include "elementwise_ops.h"
#include "rare_ops.h"

namespace rl {

void fail_devices(Device expected, Device found) {
  fail(PyExc_RuntimeError, "Tensor on device " + device_name(found) + " is not on the expected device " +
                               device_name(expected) + "!");
}

namespace {

bool sees_to_devices(const Primitive& op) {
  return op.options & Primitive::SEES_TO_DEVICES || real_forward(op) == elementwise_forward;
}

TensorRef on_meta(Tensor* t) { return new_tensor(t->sizes(), t->dtype, {DeviceType::meta}); }

template <class F>
void for_input_tensors(const Primitive& op, PyObject* const* args, F&& f) {
  for (int i = 0; i < op.input_count; i++) {
    if (op.list_inputs >> i & 1) {
      if (!PyTuple_Check(args[i]) && !PyList_Check(args[i])) continue;
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[i]); k++) {
        PyObject* o = PySequence_Fast_GET_ITEM(args[i], k);
        if (is_tensor(o)) f(as_tensor(o));
      }
    } else if (is_tensor(args[i])) {
      f(as_tensor(args[i]));
    }
  }
}

// Of the first input; a layer's bias, which some primitives take first, does not count.
Device device_of_values(const Primitive& op, PyObject* const* args) {
  if (op.args[0] == "bias" && is_tensor(args[1])) return as_tensor(args[1])->device();
  const Tensor* first = nullptr;
  for_input_tensors(op, args, [&](Tensor* t) { first = first ? first : t; });
  return first->device();
}

}  // namespace

bool is_mixed(const Primitive& op, PyObject* const* args) {
  if (dispatching_now && sees_to_devices(op)) return false;  // elementwise operations come here only then
  const Storage* first = nullptr;
  bool mixed = false;
  for_input_tensors(op, args, [&](Tensor* t) {
    if (!first) first = t->storage;
    mixed |= !(t->storage->device == first->device);
  });
  return mixed && !sees_to_devices(op);
}

PyObject* forward_mixed(const Primitive& op, PyObject* const* args, Tensor* out) {
  if (!is_tensor(args[0]) || !as_tensor(args[0])->is_meta() || !(op.options & Primitive::FOLLOWS_FIRST)) {
    Device expected = device_of_values(op, args);
    for_input_tensors(op, args, [&](Tensor* t) {
      if (!(t->device() == expected)) fail_devices(expected, t->device());
    });
  }
  std::vector<PyObject*> given(args, args + op.args.size());
  std::vector<TensorRef> shapes;
  for (int i = 0; i < op.input_count; i++) {
    if (!is_tensor(args[i]) || as_tensor(args[i])->is_meta()) continue;
    shapes.push_back(on_meta(as_tensor(args[i])));
    given[size_t(i)] = shapes.back()->object();
  }
  return run_forward(op, given.data(), out);
}

}  // namespace rl
