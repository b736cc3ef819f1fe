// Computing with lazy views, see Note [lazy views] in lazy_views.cpp.
#pragma once
#include "primitive.h"

namespace rl {

// op.forward(op, args, out) with what is lazy among args and out resolved first, and out written back. New
// reference, or null with Python's error set.
PyObject* forward_resolved(const Primitive& op, PyObject* const* args, Tensor* out);

// A tensor of zeros for good is written: what torch says of its ZeroTensors, of copy_() in other words.
[[noreturn]] void fail_zero_write(bool copies);

// The conjugate, the negative, or both, as a recorded view: `bits` are flipped.
TensorRef flip_lazy(Tensor* t, uint16_t bits);
// The same computed at once.
TensorRef flipped(Tensor* t, uint16_t bits);

}  // namespace rl
