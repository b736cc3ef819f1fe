// Errors inside the core are C++ exceptions; `guarded` turns them into Python exceptions at every entry
// point.
//
// fail(PyExc_RuntimeError, "...") words an error here; PythonError says that Python's error indicator is set
// already. Check everything first, then write: nothing may be half done when an Error leaves a function.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cmath>
#include <cstdarg>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace rl {

struct Error {
  PyObject* type;
  std::string message;
};
struct PythonError {};

[[noreturn]] inline void fail(PyObject* type, std::string message) { throw Error{type, std::move(message)}; }

[[noreturn]] __attribute__((format(printf, 2, 3))) inline void failf(PyObject* type, const char* format,
                                                                     ...) {
  char buffer[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(buffer, sizeof buffer, format, list);
  va_end(list);
  throw Error{type, buffer};
}

// To be called inside a catch (...) block.
inline void set_python_error() {
  try {
    throw;
  } catch (const Error& error) {
    PyErr_SetString(error.type, error.message.c_str());
  } catch (const PythonError&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  }
}

template <class F>
inline auto guarded(F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    set_python_error();
    if constexpr (std::is_pointer_v<decltype(f())>) return nullptr;
    else return -1;
  }
}

// Owns one reference to a Python object.
template <class T>
struct Ref {
  T* p = nullptr;
  Ref() = default;
  explicit Ref(T* owned) : p(owned) {}
  Ref(const Ref& other) : p(other.p) { Py_XINCREF(reinterpret_cast<PyObject*>(p)); }
  Ref(Ref&& other) noexcept : p(std::exchange(other.p, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(p, other.p);
    return *this;
  }
  ~Ref() { Py_XDECREF(reinterpret_cast<PyObject*>(p)); }
  T* operator->() const { return p; }
  T* get() const { return p; }
  explicit operator bool() const { return p != nullptr; }
  T* release() { return std::exchange(p, nullptr); }
  PyObject* release_object() { return reinterpret_cast<PyObject*>(release()); }
};

template <class T>
inline Ref<T> share(T* p) {
  Py_XINCREF(reinterpret_cast<PyObject*>(p));
  return Ref<T>(p);
}

// Takes ownership of what a C API call returned; throws if it failed.
inline Ref<PyObject> checked(PyObject* owned) {
  if (!owned) throw PythonError{};
  return Ref<PyObject>(owned);
}

// Forgets the error that is set if it is of this kind. Another one goes on: any Python code may have been
// interrupted by the handler of a signal.
inline void forget_error(PyObject* kind) {
  if (!PyErr_ExceptionMatches(kind)) throw PythonError{};
  PyErr_Clear();
}

// The attribute, or null if there is none.
inline Ref<PyObject> attribute_or_null(PyObject* o, const char* name) {
  Ref<PyObject> found(PyObject_GetAttrString(o, name));
  if (!found) forget_error(PyExc_AttributeError);
  return found;
}

inline bool is_true(PyObject* o) {
  int truth = PyObject_IsTrue(o);
  if (truth < 0) throw PythonError{};
  return truth;
}

// What a weak reference leads to; none if it is gone.
inline Ref<PyObject> alive(PyObject* weak) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* target = nullptr;
  if (PyWeakref_GetRef(weak, &target) < 0) throw PythonError{};
  return Ref<PyObject>(target);
#else
  PyObject* target = PyWeakref_GetObject(weak);
  return target == Py_None ? Ref<PyObject>() : share(target);
#endif
}

}  // namespace rl
