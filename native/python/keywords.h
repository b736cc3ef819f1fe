// Keywords that torch takes and the Python function of the call does not have: other names, and the whole of
// what is a list of positional arguments.
#pragma once
#include "../tensor/error.h"

namespace rl {

// kwnames with NumPy's names replaced where the function knows torch's only; null if there is nothing to do.
Ref<PyObject> translated(PyObject* function, PyObject* kwnames);
// A function of `*size` takes the sizes as one keyword, too: x.view(size=(2, 3)). Where the keyword is that
// name, or -1. A parameter called `dims_` is `dims` to the caller.
Py_ssize_t whole_keyword(PyObject* function, Py_ssize_t positional, PyObject* kwnames);
// Calls `callee`, which has the parameters of `function`, with keyword number `at` moved behind the
// positional arguments, of which some may be keywords, too: reshape(input=x, shape=(2, 3)).
PyObject* call_with_whole(PyObject* function, PyObject* callee, PyObject* const* args, Py_ssize_t positional,
                          PyObject* kwnames, Py_ssize_t at);

}  // namespace rl
