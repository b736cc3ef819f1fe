// Forward mode through user-defined Functions, see custom_tangents.cpp.
#pragma once
#include "../graph/custom.h"
#include "../graph/modes.h"
#include "forward_mode.h"

namespace rl {

// A Function's methods compute without tangents, and see none.
class WithoutTangents {
 public:
  WithoutTangents() : before(modes.forward), wanted(tangents_wanted) {
    modes.forward = tangents_wanted = false;
  }
  ~WithoutTangents() {
    modes.forward = before;
    tangents_wanted = wanted;
  }
  WithoutTangents(const WithoutTangents&) = delete;

 private:
  bool before, wanted;
};

// Whether a tuple (or null: none) holds this very object.
bool contains(PyObject* tuple, PyObject* o);
// The tangents of the inputs, None for those that have none; empty if none has.
Ref<PyObject> input_tangents(PyObject* inputs);
// Calls the Function's jvp and gives its results the tangents that it returns. `returned` is what forward
// returned, of which inputs become views of themselves among the results.
void push_tangents(FunctionNode* node, PyObject* inputs, PyObject* tangents, PyObject* returned,
                   PyObject* results);
// Forward over reverse: what is saved for backward has the tangents that its tensors have by now.
// `values`: what was saved, a tuple.
void share_saved_tangents(FunctionNode* node, PyObject* values);

}  // namespace rl
