// Writing to a plain `out=` at once: see Note [plain outputs] in outputs.cpp.
#pragma once
#include <algorithm>

#include "primitive.h"

namespace rl {

// Computes the primitive into `out`, a tensor or a tuple of some, and counts the write. False if that is not
// how this call is to be made, or would be refused: then nothing has happened.
bool write_directly(Primitive& op, PyObject* const* args, PyObject* out);

// Whether rushlight/_outputs.py has nothing to say of a call whose `out` is args[at], a tensor or a tuple of
// some: no gradient is wanted, nothing overlaps.
bool is_plain_output(PyObject* const* args, Py_ssize_t count, Py_ssize_t at);

// What a forward function with the option WRITES_OUT puts its result into: `out`, which is contiguous, or
// memory of its own if there is none. Throws if `out` has other sizes or another dtype.
inline TensorRef result_in(Tensor* out, Sizes sizes, DType dtype, Device device) {
  if (!out) return new_tensor(sizes, dtype, device);
  if (out->dtype != dtype || !std::ranges::equal(sizes, out->sizes()))
    fail(PyExc_RuntimeError, "the result does not fit into `out`");
  return share(out);
}

}  // namespace rl
