// Note [freeing chains]
// A tensor may be the last to hold another (its gradient, its tangent, whose memory it reads), which holds
// the next, and so on: freeing a chain of a million would use up the stack. Who lets go of what may continue
// such a chain does it through here; deep down, it is done by the outermost call.
#pragma once
#include "error.h"

namespace rl {

void let_go(void (*release)(void*), void* owner);
inline void let_go(PyObject* o) {
  if (!o) return;
  if (Py_REFCNT(o) > 1) Py_DECREF(o);
  else let_go([](void* last) { Py_DECREF(static_cast<PyObject*>(last)); }, o);
}

}  // namespace rl
