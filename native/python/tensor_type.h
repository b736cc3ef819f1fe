// What the files of the Tensor type share.
#pragma once
#include <vector>

#include "../tensor/tensor.h"

namespace rl {

void set_requires_grad(Tensor* t, bool on);  // with torch's checks
// Strides that show t's elements with `sizes` without moving them; false if there are none.
bool view_strides(const Tensor* t, Sizes sizes, int64_t* strides);
bool base_requires_grad(const Tensor* view);  // and so the view does

// A view requires grad if its base does, also one made under no_grad: no gradient comes back along it, but as
// in torch the result says that it was computed from something that has one.
inline bool shows_requires_grad(const Tensor* t) {
  return t->requires_grad() || (t->base() && base_requires_grad(t));
}
// A tensor of a Python subclass on t's storage, without history.
TensorRef as_subclass(Tensor* t, PyTypeObject* type);
// A tensor that nobody has seen yet, with its history and base, as one of a class.
TensorRef moved_to_class(Tensor* fresh, PyTypeObject* type);

void add_operator_slots(std::vector<PyType_Slot>& slots);  // operators.cpp
void name_operators();                                     // named_operators.cpp, after the type is made

void init_node_type(PyObject* module);
void init_tensor_type(PyObject* module);
void init_primitives(PyObject* module);
void init_functions(PyObject* module);

}  // namespace rl
