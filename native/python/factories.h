// Tensors from numbers, as factories make them; data.cpp has their bodies, factories.cpp the calls that need
// no Python. They have no history, and remember the line that made them.
#pragma once
#include "../tensor/scalar.h"

namespace rl {

// `wanted`: a dtype, or None for that of the data.
TensorRef from_data(PyObject* data, PyObject* wanted, Device device);
TensorRef filled(Sizes sizes, const Scalar& value, DType dtype, Device device);
// start + i * step, computed in int64 or double.
TensorRef numbers_in_steps(const Scalar& start, const Scalar& step, int64_t count, DType dtype,
                           Device device);
// `steps` numbers from start to end.
TensorRef numbers_between(const Scalar& start, const Scalar& end, int64_t steps, DType dtype, Device device);
// On the memory of an array of NumPy's (exchange.cpp): null, without an error, for anything else and for what
// needs more thought, as what is not writable where it has to be.
TensorRef on_plain_array(PyObject* o, bool writable);

}  // namespace rl
