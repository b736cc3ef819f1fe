// A Python number inside an expression: kept as a number, never made a tensor.
#pragma once
#include "tensor.h"

namespace rl {

struct Scalar {
  enum Kind : uint8_t { boolean, integer, floating, complex_ } kind = integer;
  bool is_unsigned = false;  // an integer beyond int64: `i` holds the bits of an uint64
  int64_t i = 0;
  double d = 0, imag = 0;

  // The dtype a number of this kind has by itself.
  DType dtype() const;
  double real_value() const {
    return kind == floating || kind == complex_ ? d : is_unsigned ? double(uint64_t(i)) : double(i);
  }
  // Writes one element of `to` (16 bytes are always enough); integers wrap as C casts do.
  void store(DType to, void* element) const;
  PyObject* to_python() const;
};

// True and filled if `o` is a Python or NumPy number (bool, int, float, complex, anything with __index__ or
// __float__ that is not a tensor, string or sequence). Integers beyond uint64 throw torch's overflow error.
bool scalar_from_python(PyObject* o, Scalar& out);
bool is_number(PyObject* o);
// A number or a tensor of one element; throws otherwise.
Scalar scalar_argument(PyObject* o, const char* function, const char* name);
Scalar item(Tensor* t);  // t must have one element and data
Scalar load(DType dtype, const void* element);
// Whether the number fits into an integer dtype as torch counts; what the dtype takes.
bool fits_integer(const Scalar& s, DType to);
struct IntegerRange {
  int64_t low, high;
};
IntegerRange integer_range(DType t);
// The same with torch's check: "value cannot be converted to type uint8_t without overflow".
// How many elements are to be filled with it matters for the rare dtypes: torch checks one element (`single`)
// as a double or complex half, many as what the loop takes.
void store_checked(const Scalar& s, DType to, void* element, bool single = true);
// The same for what fills `count` elements: a single half is a double to torch, so that what is beyond is
// infinite.
void store_filling(const Scalar& s, DType to, void* element, int64_t count);

DType default_dtype();
void set_default_dtype(DType dtype);

// Type promotion over dimensioned tensors, zero-dimensional tensors and numbers, as torch ranks them.
struct Promotion {
  int dims = -1, zero = -1, number = -1;  // DType values, -1: none seen
  void add(const Tensor* t) { join(t->ndim ? dims : zero, t->dtype); }
  void add(const Scalar& s) { join(number, s.dtype()); }
  DType result() const;

 private:
  static void join(int& slot, DType t) { slot = slot < 0 ? int(t) : int(promote(DType(slot), t)); }
};

}  // namespace rl
