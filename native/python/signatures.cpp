#include "signatures.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "../tensor/error.h"
#include "../tensor/tensor.h"
#include "types.h"

namespace rl {
namespace {

// An int that 64 bits hold.
bool is_int(PyObject* o) {
  if (!PyLong_CheckExact(o)) return false;
  int overflow;
  PyLong_AsLongLongAndOverflow(o, &overflow);
  return !overflow;
}

bool is_plain_number(PyObject* o) {
  return PyFloat_CheckExact(o) || is_int(o) || PyBool_Check(o) || PyComplex_CheckExact(o);
}

// A tensor that stands for a number.
bool is_value(PyObject* o) {
  return is_tensor(o) && as_tensor(o)->ndim == 0 && !as_tensor(o)->requires_grad();
}

// Types that Python knows, told by their names.
bool is_called(PyObject* o, std::string_view name) {
  std::string_view whole = Py_TYPE(o)->tp_name;
  return whole.substr(whole.rfind('.') + 1) == name;
}

bool takes(const SignatureParameter& p, PyObject* o) {
  if (o == Py_None) return p.takes_none || p.kind == 'o';
  switch (p.kind) {
    case 'T': return is_tensor(o);
    case 'n': return is_tensor(o) || is_plain_number(o);
    case 'N': return is_plain_number(o) || is_value(o);
    case 'i': return is_int(o);  // what a tensor stands for is read by rushlight/_signatures.py
    case 'y': return is_int(o) || (is_value(o) && is_integral(as_tensor(o)->dtype));
    case 'f': return PyFloat_CheckExact(o) || is_int(o) || PyBool_Check(o) || is_value(o);
    case 'b': return PyBool_Check(o);
    case 's': return PyUnicode_Check(o);
    case 'd': return is_dtype(o);
    case 'v': return is_device(o) || PyUnicode_Check(o);
    case 'I': return (p.takes_one && is_int(o)) || all_elements(o, is_int);
    case 'L': return all_elements(o, is_tensor);
    case 'D':
      return all_elements(
          o, [](PyObject* element) { return PyFloat_CheckExact(element) || PyLong_CheckExact(element); });
    case 'm': return is_called(o, "memory_format");
    case 'l': return is_called(o, "layout");
    case 'g': return is_called(o, "Generator");
    case 'o': return true;
    default: return false;  // looked at more closely
  }
}

bool one_fits(const Signature& s, PyObject* const* args, Py_ssize_t positional, PyObject* const* by_keyword,
              PyObject* kwnames) {
  uint64_t given = 0;
  if (positional > s.positional || (s.unpacked && positional == 1 && PyLong_CheckExact(args[0]))) {
    if (!s.unpacked) return false;
    for (Py_ssize_t k = 0; k < positional; k++) {
      if (!is_int(args[k])) return false;
    }
    given = 1;
  } else {
    for (Py_ssize_t k = 0; k < positional; k++) {
      if (!takes(s.parameters[size_t(k)], args[k])) return false;
    }
    given = (uint64_t(1) << positional) - 1;
  }
  Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < keywords; i++) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    size_t k = 0;
    while (k < s.parameters.size() && s.parameters[k].name != name) k++;
    if (k == s.parameters.size() || (given >> k & 1) || !takes(s.parameters[k], by_keyword[i])) return false;
    given |= uint64_t(1) << k;
  }
  return (s.required & ~given) == 0;
}

Signature read_signature(std::string_view text) {
  Signature s{};
  bool by_keyword = false;
  if (text.starts_with('!')) text.remove_prefix(1);
  while (!text.empty()) {
    size_t end = std::min(text.find(','), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word == "*") {
      by_keyword = true;
      continue;
    }
    size_t space = word.find(' ');
    if (space == word.npos || s.parameters.size() == 60)
      fail(PyExc_RuntimeError, "cannot read the signature " + std::string(word));
    std::string_view kind = word.substr(0, space), name = word.substr(space + 1);
    SignatureParameter p{};
    p.kind = kind[0];
    p.takes_none = kind.ends_with('?');
    p.takes_one = kind.size() > 1 && kind[1] >= '0' && kind[1] <= '9';
    p.by_keyword = by_keyword;
    p.optional = name.find('=') != name.npos;
    name = name.substr(0, name.find_first_of("/#="));
    p.name = PyUnicode_FromStringAndSize(name.data(), Py_ssize_t(name.size()));
    if (!p.name) throw PythonError{};
    PyUnicode_InternInPlace(&p.name);
    if (!p.optional) s.required |= uint64_t(1) << s.parameters.size();
    if (!by_keyword) s.positional++;
    s.parameters.push_back(p);
  }
  s.unpacked = s.positional == 1 && s.parameters[0].kind == 'I' && !s.parameters[0].takes_one;
  return s;
}

}  // namespace

const Signatures* read_signatures(const char* text) {
  static std::vector<std::unique_ptr<Signatures>> all;
  auto read = std::make_unique<Signatures>();
  std::string_view rest = text;
  while (true) {
    size_t end = rest.find('|');
    read->push_back(read_signature(rest.substr(0, end)));
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  all.push_back(std::move(read));
  return all.back().get();
}

bool fits(const Signatures& signatures, PyObject* const* args, Py_ssize_t positional,
          PyObject* const* by_keyword, PyObject* kwnames) {
  for (const Signature& s : signatures) {
    if (one_fits(s, args, positional, by_keyword, kwnames)) return true;
  }
  return false;
}

}  // namespace rl
