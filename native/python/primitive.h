// Primitives: the operations that Python rules differentiate and everything else is composed of.
//
// A Primitive is a Python callable with positional arguments, `rushlight._C.ops.NAME`. Its signature reads
//     "gather(x, index; dim)"               tensor inputs, then attributes
//     "max_dim(x; dim, keepdim) -> values, indices"
//     "cat(tensors[]; dim)"                 an input that is a list of tensors (or None in it)
// An input may be a tensor, a Python number (it stays a number) or None. The forward function computes;
// `call` records a Node when an input requires grad, saving what the rules of the needed inputs name. Rules
// are Python functions set by rushlight/ops/_rules.py. To add an operation: define("name(x; dim)", forward)
// in an *_ops.cpp file, derivative("name", x=...) in the family's Python file.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "../graph/node.h"
#include "types.h"

namespace rl {

struct Primitive;
// Returns a new reference to a tensor, or to a tuple of tensors if the signature names several outputs (or
// `outs[]`). `out`: write the result there (in-place call); only passed to primitives defined with
// Primitive::IN_PLACE.
using Forward = PyObject* (*)(const Primitive& op, PyObject* const* args, Tensor* out);

constexpr int MAX_ARGS = 16;  // of a primitive: there is a bit for each in masks of 16

struct RuleParam {
  // grad: gradient of output `index`; grads: list of all; arg: argument; shape: its Size; out: output
  // `index`; outs: tuple of all outputs; needs: tuple of bools, which inputs need a gradient; turned: whether
  // the gradient of an input is to be transposed in memory
  enum Kind : uint8_t { grad, grads, arg, shape, out, needs, turned } kind;
  uint8_t index;
};

struct Rule {
  PyObject* function = nullptr;
  std::vector<RuleParam> params;
  uint16_t want_args = 0, want_shapes = 0, want_outs = 0;
  // Rules of these forms the engine computes itself (see `form_of` in rushlight/ops/_rules.py).
  enum Form : uint8_t { any, identity, negation, product, square, power } form = any;
  bool takes_undefined = false;  // is given None for a gradient that did not arrive, instead of zeros
};

struct Primitive {
  // SCALARS_PROMOTE: the scalar attributes take part in type promotion (x ** 0.5 of integers is floating).
  // SEES_TO_DEVICES: takes 0-dim tensors as numbers, copies between devices, or looks at indices itself.
  // FOLLOWS_FIRST: is on meta if its first input is (both: Note [two devices], devices.cpp).
  // KEEPS_WEIGHT: of its last input torch saves a view, which keeps its memory whatever the input is given.
  // WRITES_OUT: computes into an `out` that is no input (Note [plain outputs]), as elementwise operations do.
  // 8, 16, 128, 512 and 8192 are NAMED_VARIANTS (graph/custom.h), CHECKS_SCALARS, TAKES_DTYPE (rare_ops.h),
  // CONTIGUOUS_RESULT and LIES_AS_SECOND (the others: elementwise_ops.cpp).
  enum Option : uint16_t {
    VIEW = 1,
    IN_PLACE = 2,
    SCALARS_PROMOTE = 4,
    SEES_TO_DEVICES = 32,
    FOLLOWS_FIRST = 64,
    KEEPS_WEIGHT = 256,
    TAKEN_APART = 2048,  // has steps for who looks on (rushlight/_taken_apart.py)
    CONVERTS = 4096,  // a view whose strides do not tell how it was made: graph/history.cpp keeps its steps
    WRITES_OUT = 16384,
    ASKS_FIRST = 1024,  // has attributes or lists of tensors: Note [arguments of the user's making]
  };

  PyObject_HEAD vectorcallfunc vectorcall;
  std::string name;
  std::vector<std::string> args, outputs;
  int input_count;
  uint16_t list_inputs;  // bit per argument that is a list of tensors
  bool list_output;      // "-> outs[]"
  uint16_t options;
  uint32_t number;  // counted from 1, see primitive_number
  uint32_t stamp;   // what it leaves on memory it writes: its number, or one of its name if it was renamed
  Forward forward;
  const void* payload;  // what the forward function of a whole family needs to know
  // Bit per input that torch computes with a copy of, or null: what is kept of it is a copy too, so that it
  // may be written.
  uint16_t (*copied)(PyObject* const* args);
  // Bit per input whose gradient torch computes as the transpose of a contiguous matrix, or with channels
  // last (which is asked of primitives whose rules name it and that have no function here). Arguments may be
  // of any kind and size.
  uint16_t (*turned)(PyObject* const* args);
  std::vector<Rule> rules;  // per input
  Rule joint;
  Rule seen;  // joint as well: the steps of torch's derivative, for who looks on (rushlight/_seen_rules.py)
  bool has_rules, no_derivative;
  bool reads_all;  // a derivative reads all tensors that were saved, also those that are only shown
  bool recorded;   // there is, or was, a node of it: its rules are settled
  std::string node_name;
  PyTypeObject* node_type;
  // What is saved for `_saved_*` alone, and the inputs that never have a gradient (rushlight/ops/_rules.py).
  uint16_t shown_args, shown_shapes, shown_outs, constants;
  // Where torch shows hooks the arguments, or the results, in another order (that of its names): the
  // arguments that come first, and all results.
  std::vector<uint8_t> packed_args, packed_outs;
  uint16_t undetached;     // outputs without a derivative in torch, which keeps them as they are
  PyObject* while_hooked;  // what records it where hooks on saved tensors look on, or null: ops/_again.py

  PyObject* object() { return reinterpret_cast<PyObject*>(this); }
};

Primitive& define(const char* signature, Forward forward, uint16_t options = 0,
                  const void* payload = nullptr);
Primitive& primitive(const char* name);        // throws if there is none
Primitive* primitive_number(uint32_t number);  // null for 0

// The primitive whose next call is recorded as it is, whatever its `while_hooked` says; or null.
extern thread_local const Primitive* unhooked;

// How primitives are called, unless somebody rewrites their calls (call_hooks.cpp).
PyObject* primitive_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames);
// Computes and records. New reference; throws.
PyObject* call(Primitive& op, PyObject* const* args);
// The same of arguments that run no code of the user's (Note [arguments of the user's making]).
PyObject* call_settled(Primitive& op, PyObject* const* args);
// The in-place form: the result is written into args[0], whose history is rewritten. New reference to
// args[0].
PyObject* call_in_place(Primitive& op, PyObject* const* args);
// Convenience for C++ callers with tensors only.
template <class... T>
TensorRef call_on(Primitive& op, T*... args) {
  PyObject* list[] = {reinterpret_cast<PyObject*>(args)...};
  return TensorRef(as_tensor(call(op, list)));
}

// A file registers what it adds to the module with a static ModuleInit; it runs when rushlight._C is
// imported.
struct ModuleInit {
  explicit ModuleInit(void (*run)(PyObject* module)) { all().push_back(run); }
  static std::vector<void (*)(PyObject*)>& all();
};

}  // namespace rl
