// What `a @ b` is while calls are rewritten: see call_hooks.cpp.
#pragma once

#include <Python.h>

namespace rl {

extern PyObject* hooked_product;  // borrowed; null: the product itself

}  // namespace rl
