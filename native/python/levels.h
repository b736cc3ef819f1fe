// The levels of torch.func: tensors that stand for others while a function is transformed.
//
// Each transform that is at work in this thread (`grad`, `jvp`, `vmap`) is a level, numbered from the outside
// in. A tensor of a level (class Leveled, rushlight/func/_tensor.py) has no memory: it holds a value of some
// level below, which under `vmap` has one dimension more, the first, along which the examples lie. Levels of
// `grad` and `jvp` record histories and tangents on these tensors as on any other; what an operation computes
// is computed by the same operation, of the values, a level lower: where recording, and carrying tangents, is
// as it was when the transform began. So the derivatives of two levels never mix. Start with `Raised`, which
// brings the arguments of a call to one level, and `at_level`, which computes there.
#pragma once
#include <string_view>

#include "primitive.h"

namespace rl {

extern PyTypeObject* leveled_type;  // null until the first transform
extern int64_t leveled_alive;       // how many tensors of levels there are: none, and nobody looks for them
inline bool is_leveled(const PyObject* o) { return leveled_type && Py_TYPE(o) == leveled_type; }
inline bool is_leveled(const Tensor* t) { return is_leveled(reinterpret_cast<const PyObject*>(t)); }

// A tensor of the level of that number with this value.
TensorRef wrap_at_level(Tensor* value, PyObject* number, bool batched);

bool inside_levels();  // whether there is a level in this thread
bool transforming();   // whether a function is being transformed by the program, not a batch of gradients by
                       // us
bool in_batch_of_gradients();  // whether it is a backward of a batch (`is_grads_batched`), which has words of
                               // its own
// level_refusals.cpp: a write of what differs among the examples of a batch (at a level so deep) into what is
// the same for all; and of a tensor that was there before a function that is differentiated began, unless the
// write is but part of an operation that writes nothing.
[[noreturn]] void refuse_batch_write(const Primitive& op, PyObject* const* args, int64_t batch,
                                     int64_t depth);
[[noreturn]] void refuse_captured_write(const Primitive& op, PyObject* const* args);
bool is_part_of_operation(const Primitive& op, PyObject* const* args);
// A random operation on what is the same for all examples of a batch.
void check_randomness(const Primitive& op, std::string_view randomness);

// Refuses to draw, for all examples of a batch at once, what should differ or was not to be drawn.
void check_drawing(const Primitive& op);
// Refuses what gives other memory to a tensor that has none: `resize_` and such.
inline void refuse_memory(const Tensor* t, const char* name) {
  if (!is_leveled(t)) return;
  failf(PyExc_NotImplementedError, "%s is not supported on tensors inside a transform of torch.func", name);
}
// Refuses to read a number of a batch, or to decide by it: `aten::item`, `aten::is_nonzero`.
void refuse_reading(Tensor* t, const char* operation);

// The arguments of a call, tensors among its inputs all of the highest level of any: constants of that level
// are made of those that are not. What belongs to a level that has ended is what it stood for.
class Raised {
 public:
  Raised(const Primitive& op, PyObject* const* given, bool in_place);
  Raised(const Raised&) = delete;
  PyObject* const* args;

 private:
  PyObject* room[MAX_ARGS];
  Ref<PyObject> made[MAX_ARGS];
};

// What op computes of tensors of a level, as tensors of that level; empty if no argument is one.
Ref<PyObject> at_level(const Primitive& op, PyObject* const* args, Tensor* out);

// What `make` makes of the value of a tensor, as a tensor of the same level; of a level that has ended, of
// what it stands for.
TensorRef made_at_level(Tensor* t, const std::function<TensorRef(Tensor*)>& make);
TensorRef same_at_level(Tensor* t);      // another tensor of that level with the same value, without history
TensorRef detached_at_level(Tensor* t);  // the same of the value without history at any level
Ref<PyObject> item_at_level(Tensor* t);
Tensor* lowest(Tensor* t);  // what stands behind it, below all levels

// Whether `into` has a batch wherever `source` has one, so that it can be written with that; and the same
// elements with a batch wherever `source` has one.
bool takes_examples(Tensor* into, Tensor* source);
TensorRef with_examples(Tensor* t, Tensor* source);
void check_data_at_level(Tensor* t);           // refuses .data of a tensor of a batch
[[noreturn]] void refuse_new_data(Tensor* t);  // and to give it other data

}  // namespace rl
