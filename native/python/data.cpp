// Data in and out: building tensors from Python numbers and nested sequences, and reading them back.
//
// `from_data` infers shape and dtype from nested lists in one pass, checks in a second while it fills. Arrays
// of other libraries come in through exchange.cpp.
#include "../graph/modes.h"
#include "../kernels/elementwise.h"
#include "../kernels/ranges.h"
#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
#include "../tensor/reach.h"
#include "factories.h"
#include "functions.h"
#include "primitive.h"
#include "profiler.h"

namespace rl {
namespace {

// An element is read as torch reads an int, which says of one that is too large something else than of a
// number in an expression.
void check_range(PyObject* o) {
  int overflow = 0;
  if (PyLong_Check(o)) PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long");
}

bool is_list_like(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

// ---- nested sequences

struct Inferred {
  Shape shape;
  int dtype = -1;
};

void join(Inferred& found, DType t) {
  found.dtype = found.dtype < 0 ? int(t) : int(promote(DType(found.dtype), t));
}

// Sequences that are neither list nor tuple (range, array.array, user classes) are turned into tuples on the
// way; a class of the user's is read by its length and its elements, as torch does. `measuring` is set where
// the first element is read for the shape: there is no shape without it.
Ref<PyObject> as_sequence(PyObject* o, bool measuring = false) {
  if (is_list_like(o)) return share(o);
  if (PyUnicode_Check(o) || PyBytes_Check(o) || !PySequence_Check(o) || is_tensor(o)) return Ref<PyObject>();
  Py_ssize_t size = PySequence_Size(o);
  bool own = PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE);
  if (size < 0) {
    if (own) throw PythonError{};
    forget_error(PyExc_Exception);  // an array without dimensions is a number
    return Ref<PyObject>();
  }
  if (!own) return checked(PySequence_Tuple(o));
  Ref<PyObject> elements = checked(PyTuple_New(size));
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject* element = PySequence_GetItem(o, i);
    if (!element && measuring && i == 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
      PyErr_Clear();
      failf(PyExc_ValueError, "could not determine the shape of object type '%s'", Py_TYPE(o)->tp_name);
    }
    if (!element) throw PythonError{};
    PyTuple_SET_ITEM(elements.get(), i, element);
  }
  return elements;
}

void infer_shape(PyObject* data, Inferred& found) {
  Ref<PyObject> at = share(data);
  for (;;) {
    if (is_tensor(at.get())) {
      if (found.shape.ndim > 0) return;  // inside a sequence it counts as a number
      if (found.shape.ndim + as_tensor(at.get())->ndim > MAX_DIMS)
        fail(PyExc_ValueError, "too many dimensions 'Tensor'");
      for (int64_t s : as_tensor(at.get())->sizes()) found.shape.append(s);
      return;
    }
    Ref<PyObject> sequence = as_sequence(at.get(), true);
    // Text is a sequence of text, without end.
    if (PyUnicode_Check(at.get()) && found.shape.ndim) fail(PyExc_ValueError, "too many dimensions 'str'");
    if (!sequence) return;
    if (found.shape.ndim == MAX_DIMS)
      fail(PyExc_ValueError, "too many dimensions '" + std::string(Py_TYPE(at.get())->tp_name) + "'");
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence.get());
    found.shape.append(n);
    if (n == 0) return;
    at = item_of(sequence.get(), 0);
    if (at.get() == data) fail(PyExc_ValueError, "a sequence that contains itself has no shape");
  }
}

void infer_dtype(PyObject* data, Inferred& found, int depth) {
  if (PyFloat_CheckExact(data)) return join(found, default_dtype());
  if (PyLong_CheckExact(data)) return join(found, DType::i64);
  if (PyBool_Check(data)) return join(found, DType::b1);
  if (is_tensor(data)) return join(found, as_tensor(data)->dtype);
  Ref<PyObject> sequence = as_sequence(data);
  if (sequence) {
    if (depth > MAX_DIMS) fail(PyExc_ValueError, "too many nested sequences");
    if (PySequence_Fast_GET_SIZE(sequence.get()) == 0) join(found, default_dtype());
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); i++) {
      infer_dtype(item_of(sequence.get(), i).get(), found, depth + 1);
    }
    return;
  }
  // NumPy's scalars know their dtype; plain numbers have that of their kind.
  if (Ref<PyObject> dtype = attribute_or_null(data, "dtype"); dtype) {
    Ref<PyObject> name = checked(PyObject_Str(dtype.get()));
    const char* text = PyUnicode_AsUTF8(name.get());
    if (!text) throw PythonError{};
    for (int i = 0; i < ALL_DTYPE_COUNT; i++) {
      if (!strcmp(text, dtype_name(DType(i)))) return join(found, DType(i));
    }
  }
  Scalar s;
  check_range(data);
  if (PyUnicode_Check(data) || !is_number(data) || !scalar_from_python(data, s)) {
    if (PyUnicode_Check(data) || PyBytes_Check(data)) {
      // The shape is taken from first elements: a first one that is text has too many dimensions.
      if (depth == 0 || found.dtype >= 0) {
        failf(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(data)->tp_name);
      }
      failf(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(data)->tp_name);
    }
    failf(PyExc_RuntimeError, "Could not infer dtype of %s", Py_TYPE(data)->tp_name);
  }
  join(found, s.dtype());
}

// Whole numbers are what Python takes for an index, or a Python number; NumPy's others are not.
bool is_taken(PyObject* o, DType dtype) {
  if (!is_integral(dtype) && dtype != DType::b1) return true;
  if (PyIndex_Check(o) || PyFloat_Check(o) || PyComplex_CheckExact(o)) return true;
  return dtype == DType::b1 && std::string_view(Py_TYPE(o)->tp_name).starts_with("numpy.bool");
}

void store_element(PyObject* o, DType dtype, char* to) {
  if (is_integral(dtype) && dtype != DType::u64) check_range(o);
  if (PyFloat_CheckExact(o)) {
    double d = PyFloat_AS_DOUBLE(o);
    if (dtype == DType::f32) {
      float f = float(d);
      std::memcpy(to, &f, 4);
      return;
    }
    if (dtype == DType::f64) {
      std::memcpy(to, &d, 8);
      return;
    }
  }
  Scalar s;
  if (dtype == DType::u64 && !PyIndex_Check(o) && is_number(o))
    fail(PyExc_TypeError, "an integer is required");
  if (is_tensor(o)) {
    Tensor* t = as_tensor(o);
    bool whole = is_integral(dtype) || dtype == DType::b1;
    if (whole && (t->numel != 1 || is_differentiable(t->dtype)))
      fail(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    if (t->numel != 1) fail(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    if (!whole) warn_of_lost_history(t);
    s = number_of(t);
  } else if (dtype == DType::u64 && PyLong_Check(o)) {
    scalar_from_python(o, s);
    if (s.kind == Scalar::integer && !s.is_unsigned && s.i < 0)
      fail(PyExc_OverflowError, "can't convert negative int to unsigned");
  } else if (dtype == DType::b1 && PyLong_CheckExact(o)) {
    s.kind = Scalar::boolean;
    s.i = PyObject_IsTrue(o);
  } else if (is_differentiable(dtype) && PyLong_CheckExact(o)) {
    s.kind = Scalar::floating;
    s.d = PyLong_AsDouble(o);
    if (s.d == -1 && PyErr_Occurred()) throw PythonError{};
  } else if (PyUnicode_Check(o) || !is_taken(o, dtype) || !scalar_from_python(o, s)) {
    if (is_list_like(o)) failf(PyExc_TypeError, "not a sequence");
    failf(PyExc_TypeError,
          is_integral(dtype) || dtype == DType::b1 ? "'%s' object cannot be interpreted as an integer"
                                                   : "must be real number, not %s",
          Py_TYPE(o)->tp_name);
  }
  if (s.kind == Scalar::complex_ && dtype == DType::b1)
    s.d = s.d != 0 || s.imag != 0, s.kind = Scalar::floating;
  if (s.kind == Scalar::complex_ && !is_complex(dtype)) {
    fail(PyExc_TypeError, is_integral(dtype) ? "'complex' object cannot be interpreted as an integer"
                                             : "must be real number, not complex");
  }
  if (is_integral(dtype)) {
    if (!fits_integer(s, dtype)) {
      failf(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", dtype_name(dtype));
    }
  }
  s.store(dtype, to);
}

void store_nested(PyObject* data, int dim, const Shape& shape, DType dtype, char*& to) {
  if (dim == shape.ndim) {
    if (is_list_like(data)) {
      failf(PyExc_TypeError,
            is_integral(dtype) ? "'%s' object cannot be interpreted as an integer"
                               : "must be real number, not %s",
            Py_TYPE(data)->tp_name);
    }
    store_element(data, dtype, to);
    to += dtype_size(dtype);
    return;
  }
  if (is_tensor(data)) {
    Tensor* t = as_tensor(data);
    bool same =
        t->ndim == shape.ndim - dim && std::equal(t->geometry, t->geometry + t->ndim, shape.sizes + dim);
    if (!same)
      failf(PyExc_ValueError, "expected a tensor of shape %s at dim %d, but got %s",
            sizes_text({shape.sizes + dim, size_t(shape.ndim - dim)}).c_str(), dim,
            sizes_text(t->sizes()).c_str());
    if (t->is_meta()) fail(PyExc_RuntimeError, "Tensor.item() cannot be called on meta tensors");
    TensorRef dense = contiguous(cast(t, dtype).get());
    size_t nbytes = size_t(dense->numel) * size_t(dtype_size(dtype));
    std::memcpy(to, dense->data(), nbytes);
    to += nbytes;
    return;
  }
  Ref<PyObject> sequence = as_sequence(data);
  if (!sequence) fail(PyExc_TypeError, "not a sequence");
  Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence.get());
  if (n != shape.sizes[dim]) {
    failf(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %zd)",
          (long long)shape.sizes[dim], dim, n);
  }
  for (Py_ssize_t i = 0; i < n; i++)
    store_nested(item_of(sequence.get(), i).get(), dim + 1, shape, dtype, to);
}

}  // namespace

TensorRef from_data(PyObject* data, PyObject* wanted, Device device) {
  check_linked(device);
  if (PyUnicode_Check(data) || PyBytes_Check(data))
    failf(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(data)->tp_name);
  Inferred found;
  infer_shape(data, found);
  DType dtype;
  if (wanted != Py_None) {
    dtype = dtype_from(wanted);
  } else {
    infer_dtype(data, found, 0);
    dtype = found.dtype < 0 ? default_dtype() : DType(found.dtype);
  }
  TensorRef t = new_tensor(found.shape, dtype, {});
  if (t->numel) {
    char* to = t->data();
    store_nested(data, 0, found.shape, dtype, to);
  }
  if (device.type != DeviceType::cpu) t = new_tensor(found.shape, dtype, device);
  t->storage->written = keep(current_source());
  return t;
}

TensorRef filled(Sizes sizes, const Scalar& value, DType dtype, Device device) {
  alignas(16) char element[16];
  store_filling(value, dtype, element, numel_of(sizes));
  TensorRef t;
  {
    PartTiming timing("aten::empty");
    t = new_tensor(sizes, dtype, device);
  }
  PartTiming timing("aten::fill_");
  if (!t->is_meta()) {
    bool zero = true;
    for (int i = 0; i < dtype_size(dtype); i++) zero &= element[i] == 0;
    if (zero) {
      MaybeNoGil released(t->numel);
      std::memset(t->storage->data, 0, t->storage->nbytes);
    } else {
      fill(t.get(), element);
    }
  }
  t->storage->written = keep(current_source());
  return t;
}

TensorRef numbers_in_steps(const Scalar& start, const Scalar& step, int64_t count, DType dtype,
                           Device device) {
  if (is_rare(dtype))
    failf(PyExc_NotImplementedError, "\"arange_cpu\" not implemented for '%s'", dtype_class_name(dtype));
  TensorRef t = new_tensor(Sizes(&count, 1), dtype, device);
  t->storage->written = keep(current_source());
  if (t->is_meta()) return t;
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = t->data_as<T>();
    MaybeNoGil released(count);
    if (start.kind <= Scalar::integer && step.kind <= Scalar::integer && !is_floating_v<T>) {
      uint64_t a = uint64_t(start.i), b = uint64_t(step.i);
      for (int64_t i = 0; i < count; i++) to[i] = convert<T>(int64_t(a + b * uint64_t(i)));
    } else {
      double a = start.real_value(), b = step.real_value();
      for (int64_t i = 0; i < count; i++) to[i] = convert<T>(a + b * double(i));
    }
  });
  return t;
}

namespace {

// from_data(data, dtype or None, device or None)
PyObject* py_from_data(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3) fail(PyExc_TypeError, "from_data(data, dtype, device) expected");
    return from_data(args[0], args[1], device_from(args[2])).release_object();
  });
}

// ---- factories

// empty(size, dtype or None, device or None)
PyObject* py_empty(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3) fail(PyExc_TypeError, "empty(size, dtype, device) expected");
    Shape shape;
    read_sizes(args[0], shape, "empty", "size");
    PartTiming timing("aten::empty");
    TensorRef t = new_tensor(shape, dtype_or(args[1], default_dtype()), device_from(args[2]));
    t->storage->written = keep(current_source());
    return t.release_object();
  });
}

// empty_strided(size, stride, dtype or None, device or None)
PyObject* py_empty_strided(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4) fail(PyExc_TypeError, "empty_strided(size, stride, dtype, device) expected");
    Shape sizes, strides;
    read_sizes(args[0], sizes, "empty_strided", "size");
    read_sizes(args[1], strides, "empty_strided", "stride");
    for (int64_t size : Sizes(sizes)) {
      if (size < 0) numel_of(sizes);  // says so
    }
    if (sizes.ndim != strides.ndim) {
      failf(PyExc_RuntimeError, "dimensionality of sizes (%d) must match dimensionality of strides (%d)",
            sizes.ndim, strides.ndim);
    }
    DType dtype = dtype_or(args[2], default_dtype());
    int64_t room = bytes_reached(sizes, strides, 0, dtype_size(dtype)) / dtype_size(dtype);
    if (view_numel(sizes) == 0) room = 0;
    for (int64_t stride : Sizes(strides)) {
      if (stride < 0) fail(PyExc_RuntimeError, "empty_strided: strides must be non-negative");
    }
    TensorRef memory = new_tensor(Sizes(&room, 1), dtype, device_from(args[3]));
    return new_alias(memory.get(), sizes, strides, 0).release_object();
  });
}

// empty_like(tensor, dtype, device): dense, with the dimensions in the order of the tensor's strides.
PyObject* py_empty_like(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3 || !is_tensor(args[0])) fail(PyExc_TypeError, "empty_like(tensor, dtype, device) expected");
    Tensor* like = as_tensor(args[0]);
    Device device = device_from(args[2]);
    DType dtype = dtype_from(args[1]);
    TensorRef t = empty_like(like, dtype, device);
    t->storage->written = keep(current_source());
    return t.release_object();
  });
}

// fill_fresh(tensor, value): fills a tensor that nobody has seen yet; no version, no history.
PyObject* py_fill_fresh(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !is_tensor(args[0])) fail(PyExc_TypeError, "fill_fresh(tensor, value) expected");
    alignas(16) char element[16];
    Tensor* t = as_tensor(args[0]);
    store_filling(scalar_argument(args[1], "full_like", "fill_value"), t->dtype, element, t->numel);
    fill(t, element);
    return Py_NewRef(args[0]);
  });
}

// full(size, value, dtype or None, device or None)
PyObject* py_full(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4) fail(PyExc_TypeError, "full(size, value, dtype, device) expected");
    Shape shape;
    read_sizes(args[0], shape, "full", "size");
    Scalar value = scalar_argument(args[1], "full", "fill_value");
    return filled(shape, value, dtype_or(args[2], value.dtype()), device_from(args[3])).release_object();
  });
}

// arange(start, step, count, dtype, device): start + i * step, computed in int64 or double.
PyObject* py_arange(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 5) fail(PyExc_TypeError, "arange(start, step, count, dtype, device) expected");
    Scalar start = scalar_argument(args[0], "arange", "start"),
           step = scalar_argument(args[1], "arange", "step");
    int64_t count = read_int(args[2]);
    return numbers_in_steps(start, step, count, dtype_from(args[3]), device_from(args[4])).release_object();
  });
}

const RangeLoops& range_loops() {
#if defined(RL_HAVE_AVX2)
  if (cpu_capability()[0] == 'A') return avx2::range_loops;
#endif
  return baseline::range_loops;
}

}  // namespace

// Symmetric, as torch computes it, in the result's own precision.
TensorRef numbers_between(const Scalar& start, const Scalar& end, int64_t steps, DType dtype, Device device) {
  if (is_rare(dtype))
    failf(PyExc_NotImplementedError, "\"linspace_cpu\" not implemented for '%s'", dtype_class_name(dtype));
  TensorRef t = new_tensor(Sizes(&steps, 1), dtype, device);
  t->storage->written = keep(current_source());
  if (t->is_meta() || steps == 0) return t;
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = t->data_as<T>();
    if constexpr (is_complex_v<T>) {
      T a(typename T::value_type(start.real_value()), typename T::value_type(start.imag));
      T b(typename T::value_type(end.real_value()), typename T::value_type(end.imag));
      T step = steps > 1 ? (b - a) / T(typename T::value_type(steps - 1)) : T(0);
      for (int64_t i = 0; i < steps; i++) {
        auto k = typename T::value_type(i < steps / 2 ? i : steps - 1 - i);
        to[i] = i < steps / 2 ? a + step * k : b - step * k;
      }
    } else {
      // torch's bits: one rounding for a float or a double, and one after each step of shorter floats.
      using C = std::conditional_t<std::is_same_v<T, double> || std::is_integral_v<T>, double, float>;
      constexpr bool shorter = is_floating_v<T> && !std::is_same_v<T, C>;
      auto rounded = [](C x) { return shorter ? C(convert<T>(x)) : x; };
      C a = rounded(C(start.real_value())), b = rounded(C(end.real_value()));
      C step = steps > 1 ? rounded(rounded(b - a) / rounded(C(steps - 1))) : C(0);
      MaybeNoGil released(steps);
      if constexpr (std::is_same_v<T, float>) return range_loops().between_f32(to, steps, a, b, step);
      if constexpr (std::is_same_v<T, double>) return range_loops().between_f64(to, steps, a, b, step);
      for (int64_t i = 0; i < steps; i++) {
        bool early = i < steps / 2 || steps == 1;
        C k = rounded(C(early ? i : steps - 1 - i)), from = early ? a : b, by = early ? step : -step;
        to[i] = convert<T>(shorter ? from + rounded(by * k) : std::fma(by, k, from));
      }
    }
  });
  return t;
}

namespace {

// linspace(start, end, steps, dtype, device)
PyObject* py_linspace(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 5) fail(PyExc_TypeError, "linspace(start, end, steps, dtype, device) expected");
    Scalar start = scalar_argument(args[0], "linspace", "start"),
           end = scalar_argument(args[1], "linspace", "end");
    int64_t steps = read_int(args[2]);
    if (steps < 0) fail(PyExc_RuntimeError, "number of steps must be non-negative");
    return numbers_between(start, end, steps, dtype_from(args[3]), device_from(args[4])).release_object();
  });
}

// triangle_indices(first, last, columns, offset, upper, dtype, device): the places of the triangle in rows
// first..last, each of which has one: row numbers, then column numbers.
PyObject* py_triangle_indices(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 7) fail(PyExc_TypeError, "triangle_indices() takes 7 arguments");
    int64_t first = read_int(args[0]), last = read_int(args[1]), columns = read_int(args[2]),
            offset = read_int(args[3]);
    bool upper = is_true(args[4]);
    DType dtype = dtype_from(args[5]);
    if (dtype != DType::i32 && dtype != DType::i64)
      fail(PyExc_TypeError, "triangle_indices() gives int32 or int64");
    if (first < 0 || last < first || columns < 0) fail(PyExc_ValueError, "triangle_indices(): no such rows");
    auto bound = [&](__int128 column) { return int64_t(std::clamp<__int128>(column, 0, columns)); };
    auto begin = [&](int64_t row) { return upper ? bound(__int128(row) + offset) : 0; };
    auto end = [&](int64_t row) { return upper ? columns : bound(__int128(row) + offset + 1); };
    // Between rows that have all columns and rows that have none, their number changes by one from row to
    // row.
    auto row_at = [&](__int128 row) { return int64_t(std::clamp<__int128>(row, first, last)); };
    auto sum = [&](int64_t from, int64_t to) {
      if (from == to) return __int128(0);
      return (__int128(end(from) - begin(from)) + (end(to - 1) - begin(to - 1))) * (to - from) / 2;
    };
    __int128 start = -__int128(offset) - !upper;
    int64_t changes = row_at(start), rests = row_at(start + columns);
    __int128 total = sum(first, changes) + sum(changes, rests) + sum(rests, last);
    if (total > INT64_MAX / 32) {
      const int64_t wrapped[] = {2, int64_t(total)};
      fail_overflow(wrapped);
    };
    int64_t count = int64_t(total), sizes[] = {2, count};
    TensorRef t = new_tensor(sizes, dtype, device_from(args[6]));
    t->storage->written = keep(current_source());
    if (t->is_meta() || count == 0) return t.release_object();
    auto run = [&](auto* to) {
      using T = std::remove_pointer_t<decltype(to)>;
      MaybeNoGil released(count);
      int64_t at = 0;
      for (int64_t row = first; row < last; row++) {
        int64_t from = begin(row), length = std::min(end(row) - from, count - at);
        std::fill_n(to + at, length, T(row));
        for (int64_t i = 0; i < length; i++) to[count + at + i] = T(from + i);
        at += length;
      }
    };
    dtype == DType::i32 ? run(t->data_as<int32_t>()) : run(t->data_as<int64_t>());
    return t.release_object();
  });
}

// ---- back to Python

PyObject* py_item(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) fail(PyExc_TypeError, "item(): expected a Tensor");
    return number_of(as_tensor(o)).to_python();
  });
}

// ---- settings

PyObject* py_memory_stats(PyObject*, PyObject*) {
  const MemoryStats& s = memory_stats();
  return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n}", "allocated_bytes", Py_ssize_t(s.in_use), "cached_bytes",
                       Py_ssize_t(s.cached), "peak_bytes", Py_ssize_t(s.peak), "allocations",
                       Py_ssize_t(s.requests), "system_allocations", Py_ssize_t(s.system_requests));
}
PyObject* py_empty_cache(PyObject*, PyObject*) {
  empty_cache();
  Py_RETURN_NONE;
}
PyObject* py_reset_peak(PyObject*, PyObject*) {
  reset_peak_memory();
  Py_RETURN_NONE;
}
PyObject* py_flush_denormal(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!PyBool_Check(o))
      failf(PyExc_RuntimeError, "flush_denormal expects a bool, but got %s", type_label(o).c_str());
    return PyBool_FromLong(set_flush_denormal(o == Py_True));
  });
}
PyObject* py_get_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
PyObject* py_set_threads(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_long(o))
      failf(PyExc_RuntimeError, "set_num_threads expects an int, but got %s", type_label(o).c_str());
    int64_t n = read_int(o);
    if (n < INT_MIN || n > INT_MAX) fail(PyExc_ValueError, "Overflow when unpacking long");
    if (n < 1 || n > 1024) fail(PyExc_RuntimeError, "set_num_threads expects a positive integer");
    set_num_threads(int(n));
    Py_RETURN_NONE;
  });
}
PyObject* py_default_dtype(PyObject*, PyObject*) { return Py_NewRef(dtype_object(default_dtype())); }
PyObject* py_set_default_dtype(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_dtype(o))
      fail(PyExc_TypeError,
           "invalid dtype object: only floating-point types are supported as the default type");
    DType t = dtype_from(o);
    if (!is_floating(t)) {
      failf(PyExc_TypeError, "only floating-point types are supported as the default type");
    }
    if (is_rare(t)) failf(PyExc_TypeError, "couldn't find storage object %sStorage", dtype_class_name(t));
    set_default_dtype(t);
    Py_RETURN_NONE;
  });
}
PyObject* py_package_directory(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    set_package_directory(o);
    Py_RETURN_NONE;
  });
}

// result_type(a, b): tensors or numbers
PyObject* py_result_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n == 0) fail(PyExc_TypeError, "result_type(): expected Tensors or Numbers");
    Promotion promotion;
    for (Py_ssize_t i = 0; i < n; i++) {
      Scalar s;
      if (is_tensor(args[i])) promotion.add(as_tensor(args[i]));
      else if (scalar_from_python(args[i], s)) promotion.add(s);
      else
        failf(PyExc_TypeError, "result_type(): expected Tensor or Number, got %s", Py_TYPE(args[i])->tp_name);
    }
    return Py_NewRef(dtype_object(promotion.result()));
  });
}
PyObject* py_promote_types(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "promote_types() takes two dtypes");
    return Py_NewRef(dtype_object(promote(dtype_from(args[0]), dtype_from(args[1]))));
  });
}
PyObject* py_can_cast(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "can_cast() takes two dtypes");
    return PyBool_FromLong(can_cast(dtype_from(args[0]), dtype_from(args[1])));
  });
}

// ---- small facts about a tensor that are hot enough to be methods here

Tensor* self_of(PyObject* o) { return as_tensor(o); }
// A method without arguments: asks the protocol first.
template <const char* name, auto value>
PyObject* fact(PyObject* self, PyObject* const*, Py_ssize_t n, PyObject* kwnames) {
  if (n || kwnames) [[unlikely]] {
    if (kwnames) PyErr_Format(PyExc_TypeError, "TensorBase.%s() takes no keyword arguments", name);
    else PyErr_Format(PyExc_TypeError, "TensorBase.%s() takes no arguments (%zd given)", name, n);
    return nullptr;
  }
  if (asks_protocol(self)) [[unlikely]]
    return guarded([&] { return through_protocol(name, self); });
  return value(self_of(self));
}
#define FACT(name, expression)          \
  constexpr char name##_name[] = #name; \
  constexpr auto m_##name = fact<name##_name, [](Tensor* t) -> PyObject* { return expression; }>
FACT(numel, PyLong_FromLongLong(t->numel));
FACT(nelement, PyLong_FromLongLong(t->numel));
FACT(dim, PyLong_FromLong(t->ndim));
FACT(ndimension, PyLong_FromLong(t->ndim));
FACT(storage_offset, PyLong_FromLongLong(t->offset));
FACT(data_ptr,
     PyLong_FromVoidPtr(t->is_meta() || t->numel == 0 || t->flags & Tensor::ZERO ? nullptr : t->address()));
FACT(element_size, PyLong_FromLong(t->itemsize()));
FACT(is_floating_point, PyBool_FromLong(is_floating(t->dtype)));
FACT(is_complex, PyBool_FromLong(is_complex(t->dtype)));
FACT(is_inference, PyBool_FromLong(t->flags& Tensor::INFERENCE));
#undef FACT

PyObject* geometry_of(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, bool strides) {
  return guarded([&]() -> PyObject* {
    if (asks_protocol(self)) return through_protocol(strides ? "stride" : "size", self, args, n, kwnames);
    Tensor* t = self_of(self);
    const char* name = strides ? "stride" : "size";
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), at = n ? 0 : total;  // where dim is
    if (n > 1) {
      failf(PyExc_TypeError, "%s() takes from 0 to 1 positional arguments but %zd were given", name, n);
    }
    for (Py_ssize_t i = n; i < total && at == total; i++) {
      PyObject* known = PyTuple_GET_ITEM(kwnames, i - n);
      if (!PyUnicode_CompareWithASCIIString(known, "dim") || !PyUnicode_CompareWithASCIIString(known, "axis"))
        at = i;
    }
    bool given = at < total && args[at] != Py_None;
    bool number = given && (is_tensor(args[at])
                                ? as_tensor(args[at])->ndim == 0 && is_integral(as_tensor(args[at])->dtype)
                                : PyIndex_Check(args[at]) && !PyBool_Check(args[at]) && is_number(args[at]));
    if (given && !number) {
      failf(PyExc_TypeError, "%s(): argument 'dim'%s must be int, not %s", name, n ? " (position 1)" : "",
            is_tensor(args[at]) ? "Tensor" : Py_TYPE(args[at])->tp_name);
    }
    for (Py_ssize_t i = n; i < total; i++) {
      const char* known = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, i - n));
      if (i == at) continue;
      bool twice = known && !strcmp(known, "dim");
      failf(PyExc_TypeError, "%s() got %s argument '%s'", name,
            twice ? "multiple values for" : "an unexpected keyword", known ? known : "?");
    }
    if (!given) {
      if (!strides) return size_object(t->sizes());
      Shape steps;
      steps.assign(t->strides());
      Ref<PyObject> tuple = checked(PyTuple_New(steps.ndim));  // may collect garbage, which may change t
      for (int d = 0; d < steps.ndim; d++)
        PyTuple_SET_ITEM(tuple.get(), d, PyLong_FromLongLong(steps.sizes[d]));
      return tuple.release();
    }
    int64_t dim = read_int(args[at]);
    if (t->ndim == 0) {
      failf(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    }
    int d = wrap_dim(dim, t->ndim);
    return PyLong_FromLongLong(strides ? t->stride(d) : t->size(d));
  });
}
PyObject* m_size(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return geometry_of(self, args, n, kwnames, false);
}
PyObject* m_stride(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return geometry_of(self, args, n, kwnames, true);
}
PyObject* m_is_contiguous(PyObject* self, PyObject*) {
  Tensor* t = self_of(self);
  bool lazy = t->is_lazy() && contiguous_flags(t->sizes(), t->strides());
  return PyBool_FromLong(t->is_contiguous() || lazy);
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
#define NAMED(f) FAST(f) | METH_KEYWORDS
PyMethodDef tensor_methods[] = {
    {"numel", NAMED(m_numel), "The number of elements."},
    {"nelement", NAMED(m_nelement), "The number of elements."},
    {"dim", NAMED(m_dim), "The number of dimensions."},
    {"ndimension", NAMED(m_ndimension), "The number of dimensions."},
    {"storage_offset", NAMED(m_storage_offset), "Where in its storage the tensor begins, in elements."},
    {"data_ptr", NAMED(m_data_ptr), "The address of the first element."},
    {"element_size", NAMED(m_element_size), "The size of one element in bytes."},
    {"size", NAMED(m_size), "size(dim=None): the sizes, or one of them."},
    {"stride", NAMED(m_stride), "stride(dim=None): the steps between neighbours, in elements."},
    {"_is_contiguous", m_is_contiguous, METH_NOARGS, nullptr},
    {"is_floating_point", NAMED(m_is_floating_point), "Whether the dtype is one of real fractions."},
    {"is_complex", NAMED(m_is_complex), "Whether the dtype is complex."},
    {"is_inference", NAMED(m_is_inference), "Whether the tensor was made in inference mode."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {{"from_data", FAST(py_from_data), nullptr},
                           {"empty", FAST(py_empty), nullptr},
                           {"empty_strided", FAST(py_empty_strided), nullptr},
                           {"empty_like", FAST(py_empty_like), nullptr},
                           {"fill_fresh", FAST(py_fill_fresh), nullptr},
                           {"full", FAST(py_full), nullptr},
                           {"arange", FAST(py_arange), nullptr},
                           {"linspace", FAST(py_linspace), nullptr},
                           {"triangle_indices", FAST(py_triangle_indices), nullptr},
                           {"item", py_item, METH_O, nullptr},
                           {"memory_stats", py_memory_stats, METH_NOARGS, nullptr},
                           {"empty_cache", py_empty_cache, METH_NOARGS, nullptr},
                           {"reset_peak_memory_stats", py_reset_peak, METH_NOARGS, nullptr},
                           {"get_num_threads", py_get_threads, METH_NOARGS, nullptr},
                           {"set_num_threads", py_set_threads, METH_O, nullptr},
                           {"set_flush_denormal", py_flush_denormal, METH_O, nullptr},
                           {"get_default_dtype", py_default_dtype, METH_NOARGS, nullptr},
                           {"set_default_dtype", py_set_default_dtype, METH_O, nullptr},
                           {"set_package_directory", py_package_directory, METH_O, nullptr},
                           {"result_type", FAST(py_result_type), nullptr},
                           {"promote_types", FAST(py_promote_types), nullptr},
                           {"can_cast", FAST(py_can_cast), nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  PyModule_AddFunctions(module, functions);
  for (PyMethodDef* m = tensor_methods; m->ml_name; m++) {
    Ref<PyObject> method = checked(PyDescr_NewMethod(TensorBaseType, m));
    if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(TensorType), m->ml_name, method.get()) < 0) {
      throw PythonError{};
    }
  }
});

}  // namespace
}  // namespace rl
