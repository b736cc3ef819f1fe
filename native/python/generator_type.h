// rushlight.Generator as a Python object, and reading one from an argument.
#pragma once
#include "../kernels/random.h"
#include "../tensor/error.h"

namespace rl {

// The generator of a `generator=` argument; the default one for None. `function` is named in the TypeError.
Generator& generator_argument(PyObject* o, const char* function);

}  // namespace rl
