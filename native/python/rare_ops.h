// Primitives that are given a tensor of a rare dtype, see Note [rare dtypes], tensor/dtype.h.
#pragma once
#include "forwards.h"

namespace rl {

// Computes through rushlight/_rare_dtypes.py, which converts, computes with dtypes that have loops, and
// converts back, or refuses in torch's words.
PyObject* forward_rare(const Primitive& op, PyObject* const* args, Tensor* out);
// Whether such a tensor (or the wish for one, a dtype) is among the arguments and the primitive cannot take
// it.
bool needs_rare(const Primitive& op, PyObject* const* args);

constexpr uint16_t TAKES_DTYPE = 128;  // in Primitive::options: an attribute is a dtype, which may be rare

inline bool may_be_rare(const Primitive& op) { return rare_dtypes_seen || op.options & TAKES_DTYPE; }

// op.forward with that question first; nothing more than flags is looked at before the first such tensor.
inline PyObject* run_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  if (may_be_rare(op) && op.forward == real_forward(op) && needs_rare(op, args)) {
    return forward_rare(op, args, out);
  }
  return op.forward(op, args, out);
}
// The same for what stands behind the profiler and the dispatch modes.
inline PyObject* run_real_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  if (may_be_rare(op) && needs_rare(op, args)) return forward_rare(op, args, out);
  return real_forward(op)(op, args, out);
}

}  // namespace rl
