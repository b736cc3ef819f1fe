// What is added to an error that a primitive raises: what its operands are and where they were made.
#pragma once
#include "primitive.h"

namespace rl {

// Throws `error` again, with a paragraph about the operands (worded by rushlight/_errors.py).
[[noreturn]] void explain(const Error& error, const Primitive& op, PyObject* const* args);
// Throws `sentence` with a paragraph about one tensor and the advice.
[[noreturn]] void fail_with_tensor(PyObject* type, const std::string& sentence, Tensor* t,
                                   const char* advice);

}  // namespace rl
