// Which calls may mix devices: see devices.cpp.
#pragma once
#include "primitive.h"

namespace rl {

[[noreturn]] void fail_devices(Device expected, Device found);

// Whether the tensors among the inputs are on two devices, and the operation does not see to it itself.
bool is_mixed(const Primitive& op, PyObject* const* args);

// Computes such a call on the meta device if that is honest, otherwise refuses.
PyObject* forward_mixed(const Primitive& op, PyObject* const* args, Tensor* out);

}  // namespace rl
