// How much of what is freed waits for the next one who needs the same: tensors, nodes, storages, blocks; and
// where tensors and nodes come from if none waits.
#pragma once
#include <cstddef>

#include "error.h"

namespace rl {

// The address sanitizer sees a use of freed memory only if that memory was given back.
#ifdef __SANITIZE_ADDRESS__
constexpr bool REUSES_FREED = false;
#else
constexpr bool REUSES_FREED = true;
#endif
constexpr size_t MOST_WAITING = REUSES_FREED ? 4096 : 0;  // objects of one kind

// An object that the collector knows of, or null. Python 3.11 may collect garbage when it makes one, and so
// run anybody's code; but who asks for a tensor has looked at others and goes on with what he saw there. So
// there is no collection now: the next container brings it. (Later Pythons wait for the interpreter.)
template <class T>
T* new_collectable(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030c0000
  bool collects = PyGC_Disable();
  T* made = PyObject_GC_New(T, type);
  if (collects) PyGC_Enable();
  return made;
#else
  return PyObject_GC_New(T, type);
#endif
}

}  // namespace rl
