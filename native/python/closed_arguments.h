// Arguments whose own code runs before anybody looks at them.
#pragma once
#include "primitive.h"

namespace rl {

// Note [arguments of the user's making]
// An attribute, or a number among the inputs, may be an object whose __index__ or __float__ does what it
// likes, to the tensors of the call too. So it is asked before anybody looks at those. Lists of tensors are
// looked at again after hooks have run, and while other threads do: what is looked at is a tuple, which
// nobody can change.
bool has_open(const Primitive& op, PyObject* const* args);

// The same arguments with numbers in the place of such objects, and tuples in that of lists.
struct ClosedArguments {
  PyObject* args[MAX_ARGS];
  Ref<PyObject> made[MAX_ARGS];

  ClosedArguments(const Primitive& op, PyObject* const* given);
};

}  // namespace rl
