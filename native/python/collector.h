// What Python's cycle collector gets to see; Note [loops], collector.cpp.
#pragma once
#include "../tensor/storage.h"

namespace rl {

bool is_atom(PyObject* o, int depth = 8);  // cannot refer to a graph; tuples as deep as that are looked into
// From now on a graph may lead to Python objects that lead back to it.
void expect_loops();
// The same for tensors and nodes that lead back to `member`, one of them, without any other object.
void expect_loop(PyObject* member);

// exchange.cpp: the Python object whose memory it is, borrowed; null if there is none.
PyObject* lender(const Storage* storage);

}  // namespace rl
