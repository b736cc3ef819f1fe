// What the profiler asks of the public functions, see profiler.cpp.
#pragma once
#include "../graph/custom.h"
#include "types.h"

namespace rl {

size_t requested_memory();  // bytes in use, as tensors asked for them (tensor/storage.cpp)

// Notes a call of a public function between its construction and its end, if this thread is measured.
struct CallTiming {
  CallTiming(PyObject* function, PyObject* const* args, Py_ssize_t count);
  ~CallTiming();
  CallTiming(const CallTiming&) = delete;
  int index = -1;
};

// The same of a part of a function that torch shows as an operation of its own.
struct PartTiming {
  explicit PartTiming(const char* name, PyObject* const* args = nullptr, Py_ssize_t count = 0);
  PartTiming(PyTypeObject* function, int64_t sequence, PyObject* inputs);  // a user's autograd.Function
  ~PartTiming();
  PartTiming(const PartTiming&) = delete;
  int index = -1;
};

}  // namespace rl
