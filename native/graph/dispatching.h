// Tensors of classes that have a `__torch_dispatch__`: what the graph and the engine ask about them.
//
// Such a tensor may have no data of its own (it wraps others), so nothing may be done to it natively that is
// not a primitive: a saved input is the object itself, a saved output is detached by the class, gradients are
// never stolen or summed in place. See python/dispatch_mode.cpp, where primitives are handed to the class.
#pragma once
#include "../tensor/tensor.h"

namespace rl {

extern bool dispatching_classes;  // a tensor of such a class has been made
bool class_dispatches(PyTypeObject* type);
void start_dispatching();  // to be called when the first tensor of such a class is made
// The same of tensors of levels (python/levels.h): while there are no others, nobody is asked unless one of
// those is alive.
void start_dispatching_levels();
extern bool dispatching_only_levels;

inline bool dispatches(const Tensor* t) {
  return dispatching_classes && !is_plain_tensor(reinterpret_cast<PyObject*>(const_cast<Tensor*>(t))) &&
         class_dispatches(Py_TYPE(const_cast<Tensor*>(t)));
}
extern bool dispatching_now;  // somebody may be asked at all
bool is_asked(const Tensor* t);
// Whether Python is asked about what happens to t: by its class, or by a mode of this thread.
inline bool asks_dispatch(const Tensor* t) { return dispatching_now && is_asked(t); }

// The class of sparse tensors in coordinates (rushlight/_sparse), once there is one. They are wrappers of
// their indices and values that users take for plain tensors.
extern PyTypeObject* sparse_type;
inline bool is_sparse(const Tensor* t) {
  return sparse_type && Py_TYPE(const_cast<Tensor*>(t)) == sparse_type;
}
// The same of those in the compressed layouts (rushlight/_compressed).
extern PyTypeObject* compressed_type;
inline bool is_compressed(const Tensor* t) {
  return compressed_type && Py_TYPE(const_cast<Tensor*>(t)) == compressed_type;
}
inline bool is_any_sparse(const Tensor* t) { return is_sparse(t) || is_compressed(t); }

// While it lives this thread's modes are not asked: the bookkeeping of the graph is no operation of a
// program.
class ModesUnasked {
 public:
  ModesUnasked();
  ~ModesUnasked();
  ModesUnasked(const ModesUnasked&) = delete;

 private:
  bool before;
};

// t without history, as whoever is asked makes it.
TensorRef dispatched_detach(Tensor* t);

// A gradient of its own for a leaf.
TensorRef dispatched_copy(Tensor* grad, Tensor* leaf);
TensorRef take_sparse(Tensor* grad);       // the same of a sparse one that nobody else holds
Ref<PyObject> dispatched_item(Tensor* t);  // its number

// The device that a wrapper claims to be on: its storage is on the meta device, whose record has room for it.
void claim_device(Storage* storage, Device device);
Device claimed_device(const Storage* storage);

}  // namespace rl
