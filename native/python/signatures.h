// Which arguments a public function takes, as torch's parser of arguments sees it.
//
// rushlight/_signatures.txt has a line for each function that torch parses natively. `fits` is the quick look
// at a call (a few nanoseconds): whether some signature of the function surely takes these arguments. What
// does not surely fit is decided, and refused in torch's words, by rushlight/_signatures.py.
#pragma once
#include <Python.h>

#include <cstdint>
#include <vector>

namespace rl {

struct SignatureParameter {
  PyObject* name;  // interned
  char kind;       // the letter of _signatures.txt
  bool optional, by_keyword, takes_none;
  bool takes_one;  // a list of ints that may be a single one
};

struct Signature {
  std::vector<SignatureParameter> parameters;
  int positional;     // how many of them, the first, may be given by position
  uint64_t required;  // the ones without default
  bool unpacked;      // its only positional parameter is a list of ints, which may be given one by one
};

using Signatures = std::vector<Signature>;

// Reads "T input,i dim=,*,T? out=|..."; they live as long as the process. Throws.
const Signatures* read_signatures(const char* text);
bool fits(const Signatures& signatures, PyObject* const* args, Py_ssize_t positional,
          PyObject* const* by_keyword, PyObject* kwnames);

// Whether all elements of a list or tuple are such; no other sequence is looked into.
template <class Takes>
bool all_elements(PyObject* o, Takes takes) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
    if (!takes(PySequence_Fast_GET_ITEM(o, i))) return false;
  }
  return true;
}

}  // namespace rl
