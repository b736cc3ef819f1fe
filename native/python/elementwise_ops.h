// The forward function that all primitives of the elementwise table share (see elementwise_ops.cpp).
#pragma once
#include "primitive.h"

namespace rl {

PyObject* elementwise_forward(const Primitive& op, PyObject* const* args, Tensor* out);

}  // namespace rl
