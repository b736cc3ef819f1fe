// The forward function that all primitives of the elementwise table share (see elementwise_ops.cpp).
#pragma once
#include "primitive.h"

namespace rl {

PyObject* elementwise_forward(const Primitive& op, PyObject* const* args, Tensor* out);
// Computes straight into `out`, which is contiguous and the very elements of an operand or apart from all.
// False, and nothing is written, if the result would not be of its dtype and sizes. Throws before it writes.
bool write_elementwise(const Primitive& op, PyObject* const* args, Tensor* out);

}  // namespace rl
