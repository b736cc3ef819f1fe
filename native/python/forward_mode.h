// Forward mode: tangents that travel with tensors while a dual level is open (see forward_mode.cpp).
#pragma once
#include "primitive.h"

namespace rl {

extern thread_local bool
    tangents_wanted;  // false inside _set_fwd_grad_enabled(False) and a Function's methods

// The tangent of t in the open level, or empty. A view made before its base became dual finds its part of the
// base's tangent.
TensorRef tangent_of(Tensor* t);
// Forward over reverse: a saved value has the tangent of the tensor it stands for. `copy`: which is about to
// be written in place, with its tangent.
void share_tangent(Tensor* from, Tensor* to, bool copy = false);
void drop_tangent(Tensor* t);    // in the open level
void forget_dual(Extra* extra);  // which is about to be freed
// After op(args) gave `result`: sets the tangents of the outputs if an input has one.
void give_tangents(Primitive& op, PyObject* const* args, PyObject* result);
// Before an in-place call: what the tangent of args[0] becomes (None: it has none and gets none).
Ref<PyObject> tangent_of_write(Primitive& op, PyObject* const* args);
void write_tangent(Tensor* t, PyObject* tangent, bool copies);

}  // namespace rl
