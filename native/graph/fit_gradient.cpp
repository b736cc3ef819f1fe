// Gradients as those they belong to take them: summed over what was broadcast, cast, real where those are.
#include "../python/primitive.h"
#include "../python/rare_ops.h"
#include "../python/types.h"
#include "custom.h"
#include "dispatching.h"
#include "errors.h"
#include "modes.h"
#include "rules.h"

namespace rl {

namespace {

TensorRef real_part(TensorRef grad) {
  static Primitive& real = primitive("real");
  bool seen = asks_dispatch(grad.get()) || (modes.grad && grad->requires_grad());
  if (!seen || is_any_sparse(grad.get())) return call_on(real, grad.get());
  // Whoever is asked knows it as torch's two views, and so it is recorded.
  static Primitive &pairs = primitive("view_as_real"), &select = primitive("select");
  TensorRef both = call_on(pairs, grad.get());
  Ref<PyObject> dim = checked(PyLong_FromLong(both->ndim - 1)), first = checked(PyLong_FromLong(0));
  PyObject* args[] = {both->object(), dim.get(), first.get()};
  return TensorRef(as_tensor(call(select, args)));
}

}  // namespace

thread_local const Primitive* Fitting::now = nullptr;

TensorRef fit_gradient(Node* from, uint32_t index, TensorRef grad) {
  const Edge& edge = from->edges[index];
  const OutputInfo& info = edge.node->outputs[edge.nr];
  Sizes wanted = info.shape();
  DType dtype = info.dtype;
  // A leaf whose grad_dtype is None takes what comes, but a conversion of its dtype is undone.
  if (edge.node->kind == Node::accumulate && takes_any_gradient(edge.node->leaf())) {
    static Primitive& to = primitive("to_dtype");
    if (from->op != &to) dtype = grad->dtype;
  }
  bool same = grad->ndim == wanted.size() && std::equal(wanted.begin(), wanted.end(), grad->geometry);
  // A wrapper's data is where it likes; of the tensor that the gradient is for only its place is known.
  bool placed = grad->device() == info.device || dispatches(grad.get()) ||
                (dispatching_classes && info.device.type == DeviceType::meta);
  if (same && grad->dtype == dtype && placed) return grad;
  if (!same) {
    TensorRef summed = summed_to(grad.get(), wanted);
    if (!summed) {
      failf(PyExc_RuntimeError,
            "Function %s returned an invalid gradient at index %u - got %s but expected shape compatible "
            "with %s",
            node_name(from).c_str(), index, sizes_text(grad->sizes()).c_str(), sizes_text(wanted).c_str());
    }
    grad = std::move(summed);
  }
  if (is_complex(grad->dtype) && !is_complex(dtype)) {
    if (from->kind == Node::custom) {
      fail(PyExc_RuntimeError,
           "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, "
           "but got false.  (Could this error message be improved?  If so, please report an enhancement "
           "request to PyTorch.)");
    }
    grad = real_part(std::move(grad));
  }
  if (grad->dtype != dtype) {
    static Primitive& to = primitive("to_dtype");
    PyObject* args[] = {grad->object(), dtype_object(dtype)};
    Fitting converted(from->op == &to ? &to : nullptr);
    grad = TensorRef(as_tensor(call(to, args)));
  }
  if (!placed) {
    static Primitive& to_device = primitive("to_device");
    if (grad->ndim != 0 && from->op != &to_device) {  // a number may be anywhere
      failf(PyExc_RuntimeError,
            "Function %s returned an invalid gradient at index %u - expected device %s but got %s",
            node_name(from).c_str(), index, device_name(info.device).c_str(),
            device_name(grad->device()).c_str());
    }
    Ref<PyObject> device(device_object(info.device));
    PyObject* args[] = {grad->object(), dtype_object(grad->dtype), device.get()};
    grad = TensorRef(as_tensor(call(to_device, args)));
  }
  return grad;
}

}  // namespace rl
