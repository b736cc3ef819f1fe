// Note [direct calls]
// Most public functions hand their arguments to one primitive when these are what programs pass every day: a
// tensor, an int, a bool. For such calls the Python function need not run at all, which halves the price of a
// short operation (`x.sum(1)`, `x.transpose(0, 1)`). A table says which calls those are
// (rushlight/ops/_direct.py):
//
//     "tensor input,int dim,bool keepdim=False -> sum_dim(input,dim,keepdim,None)"
//     "tensor input,int dim,bool keepdim=False -> return_types.max: max_dim(input,dim,keepdim)"
//     "tensor self,operand value -> fill_(self,value)"    the in-place form of a primitive
//     "tensor input,int dim -> sort(input,dim,False)[1]"  one of several results; [dim] is a tuple of the one
//     "native zeros"                                      a function of this directory
//
// with several of them between `|`. What follows `*` is given by name. A parameter `out` is what the
// primitive's result is written to: such calls are taken where everything about it is plain (Note [plain
// outputs], outputs.cpp). The kinds:
//
// - tensor: of no class of its own. Of such, real: not complex; floats, mask, numbers: of floating point, of
//   booleans, of anything else than booleans; contiguous; filled: with dimensions and elements; vector,
//   matrix, batch: of one, two, more dimensions; alike: of the first argument's dtype
// - number: real, and no NaN. Of such, scale: whole unless the first argument is of floats; exponent: not
//   negative if the first is of integers; one: the number 1, which goes nowhere
// - operand: a tensor or a number; term: likewise, but no tensor of booleans
// - int, bool, dtype; off: False; none: None; with a `?`, None as well
// - ints, tensors: a list or tuple; dims: ints, or a single one; sizes: ints, which methods take one by one
//
// Defaults are None, (), a bool or a number. Whatever does not fit takes the longer way, through the
// signatures and the Python function, which says what is wrong or does what is rare. So a description says
// nothing new: tests/test_direct_calls.py compares both ways.
#pragma once
#include "primitive.h"

namespace rl {

struct DirectCall;
using DirectCalls = std::vector<DirectCall>;

// Reads the descriptions of a function, once. They live as long as the process. Throws.
const DirectCalls* read_direct_calls(const char* text);
// Makes the call, of a method or a function, if one of the descriptions fits. Null without a Python error if
// none does.
PyObject* call_directly(const DirectCalls& calls, bool method, PyObject* const* args, Py_ssize_t positional,
                        PyObject* kwnames);

// A function behind "native <name>": it makes the call, or returns null without a Python error to decline.
// May throw.
using NativeCall = PyObject* (*)(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames);
struct NativeCallInit {
  NativeCallInit(const char* name, NativeCall call, bool casts_nothing = false);
};
// Note [direct calls under autocast]
// While calls are hooked (call_hooks.h) the arguments of some functions are others than the program gave.
// Such a function is called with them, directly or not. But a function that is none of those may call one of
// them, from Python: it has to, unless all it does is to call a primitive that is none of them either, or a
// native body that says this of the Python function in whose place it is: it calls nothing that is hooked.
constexpr bool CASTS_NOTHING = true;

// Whether a Python object is an int of 64 bits, and which.
inline bool read_plain_int(PyObject* o, int64_t& value) {
  if (!PyLong_CheckExact(o)) return false;
  int overflow;
  value = PyLong_AsLongLongAndOverflow(o, &overflow);
  return !overflow;
}

// What such functions share. A tensor on the CPU whose memory is what it shows; null for anything else:
inline Tensor* plain_tensor(PyObject* o) {
  if (!is_plain_tensor(o)) return nullptr;
  Tensor* t = as_tensor(o);
  return t->is_lazy() || !(t->device() == Device{}) ? nullptr : t;
}
inline bool no_keywords(PyObject* kwnames) { return !kwnames || !PyTuple_GET_SIZE(kwnames); }
inline Ref<PyObject> number(int64_t value) { return checked(PyLong_FromLongLong(value)); }

}  // namespace rl
