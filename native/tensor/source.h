// Where in the user's program something happened: a code object and an instruction in it.
//
// Taking one costs about 20 ns: it looks at the interpreter's frames directly and skips Rushlight's own
// files. The line number and the text are worked out only when an error is worded (rushlight/_errors.py).
#pragma once
#include "error.h"

namespace rl {

struct Source {
  PyCodeObject* code;  // owned by whoever stores the Source; may be null
  int lasti;
  uint32_t operation = 0;  // on a storage: which primitive wrote last, if it was recorded (Primitive::number)
};

// The innermost frame outside Rushlight's own directory, as a borrowed code object. {nullptr, 0} if there is
// none.
Source current_source();
void set_package_directory(PyObject* path);  // ends with the separator

inline Source keep(Source s) {
  Py_XINCREF(reinterpret_cast<PyObject*>(s.code));
  return s;
}
inline void drop(Source& s) { Py_CLEAR(s.code); }

// (filename, line, function) or None.
PyObject* source_as_tuple(const Source& s);

}  // namespace rl
