#include "source.h"

#if PY_VERSION_HEX < 0x030e0000
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#define RL_FAST_FRAMES 1
#endif

namespace rl {
namespace {

std::string package_directory;

bool is_own(PyCodeObject* code) {
  PyObject* name = code->co_filename;
  size_t length = package_directory.size();
  if (!length || !PyUnicode_IS_COMPACT_ASCII(name) || size_t(PyUnicode_GET_LENGTH(name)) < length)
    return false;
  const char* text = reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(name));
  return std::memcmp(text, package_directory.data(), length) == 0;
}

}  // namespace

void set_package_directory(PyObject* path) {
  const char* text = PyUnicode_AsUTF8(path);
  if (!text) throw PythonError{};
  package_directory = text;
}

#ifdef RL_FAST_FRAMES
Source current_source() {
  PyThreadState* state = PyThreadState_GET();
#if PY_VERSION_HEX >= 0x030d0000
  _PyInterpreterFrame* frame = state->current_frame;
#else
  _PyInterpreterFrame* frame = state->cframe->current_frame;
#endif
  for (; frame; frame = frame->previous) {
#if PY_VERSION_HEX >= 0x030d0000
    if (frame->owner == FRAME_OWNED_BY_CSTACK || !PyCode_Check(frame->f_executable)) continue;
    auto* code = reinterpret_cast<PyCodeObject*>(frame->f_executable);
    int lasti = int((frame->instr_ptr - _PyCode_CODE(code)) * sizeof(_Py_CODEUNIT));
#else
#if PY_VERSION_HEX >= 0x030c0000
    if (frame->owner == FRAME_OWNED_BY_CSTACK) continue;
#endif
    PyCodeObject* code = frame->f_code;
    int lasti = int((frame->prev_instr - _PyCode_CODE(code)) * sizeof(_Py_CODEUNIT));
#endif
    if (!is_own(code)) return {code, lasti};
  }
  return {nullptr, 0};
}
#else
Source current_source() {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    int lasti = PyFrame_GetLasti(frame);
    bool own = is_own(code);
    Py_DECREF(code);  // the frame keeps it alive
    PyFrameObject* back = own ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    if (!own) return {code, lasti};
    frame = back;
  }
  return {nullptr, 0};
}
#endif

PyObject* source_as_tuple(const Source& s) {
  if (!s.code) Py_RETURN_NONE;
  int line = PyCode_Addr2Line(s.code, s.lasti);
  return Py_BuildValue("(OiO)", s.code->co_filename, line, s.code->co_name);
}

}  // namespace rl
