// Methods and functions that look at a tensor, convert it or cut it up, as programs call them every day: Note
// [direct calls]. Each answers the calls that need no thought and leaves the rest, and all errors, to the
// Python function of its name.
#include <algorithm>
#include <cfloat>

#include "../graph/modes.h"
#include "direct_calls.h"
#include "functions.h"
#include "levels.h"
#include "tensor_type.h"

namespace rl {
namespace {

// A dimension counted from the front; -1 if it is none.
int plain_dim(PyObject* o, int ndim) {
  int64_t dim;
  if (!read_plain_int(o, dim) || dim < -ndim || dim >= ndim) return -1;
  return int(dim < 0 ? dim + ndim : dim);
}

// ---- conversions

PyObject* converted(Tensor* t, DType dtype) {
  if (t->dtype == dtype) return Py_NewRef(t->object());
  static Primitive& to_dtype = primitive("to_dtype");
  PyObject* args[] = {t->object(), dtype_object(dtype)};
  return call(to_dtype, args);
}

// x.to(dtype), x.to("cpu"), x.to(device=..., dtype=...), x.to(other); `non_blocking` means nothing here.
PyObject* to_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional >= 1 ? plain_tensor(args[0]) : nullptr;
  if (!t || positional > 2) return nullptr;
  static PyObject *name_dtype = PyUnicode_InternFromString("dtype"),
                  *name_device = PyUnicode_InternFromString("device"),
                  *name_non_blocking = PyUnicode_InternFromString("non_blocking");
  DType dtype = t->dtype;
  Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (positional + keywords < 2) return nullptr;
  auto is_cpu = [](PyObject* o) {
    if (PyUnicode_CheckExact(o)) return PyUnicode_CompareWithASCIIString(o, "cpu") == 0;
    return is_device(o) && device_from(o) == Device{};
  };
  bool dtype_given = false, other = false;
  if (positional == 2) {
    if (is_dtype(args[1])) {
      dtype = dtype_from(args[1]);
      dtype_given = true;
    } else if (Tensor* model = plain_tensor(args[1])) {
      dtype = model->dtype;
      other = true;
    } else if (!is_cpu(args[1])) {
      return nullptr;
    }
  }
  for (Py_ssize_t i = 0; i < keywords; i++) {
    PyObject *name = PyTuple_GET_ITEM(kwnames, i), *value = args[positional + i];
    if (name == name_dtype && is_dtype(value) && !dtype_given && !other) {
      dtype = dtype_from(value);
      dtype_given = true;
    } else if (!(name == name_device && positional == 1 && is_cpu(value)) &&
               !(name == name_non_blocking && PyBool_Check(value))) {
      return nullptr;
    }
  }
  return converted(t, dtype);
}

template <DType dtype>
PyObject* cast_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional == 1 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  return t ? converted(t, dtype) : nullptr;
}

PyObject* cpu_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  bool plain = positional == 1 && no_keywords(kwnames) && plain_tensor(args[0]);
  return plain ? Py_NewRef(args[0]) : nullptr;
}

PyObject* type_as_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 2 || !no_keywords(kwnames)) return nullptr;
  Tensor *t = plain_tensor(args[0]), *model = plain_tensor(args[1]);
  return t && model ? converted(t, model->dtype) : nullptr;
}

// x.type() is the name of a type, x.type(dtype) a conversion.
PyObject* type_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional >= 1 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  if (!t || positional > 2) return nullptr;
  if (positional == 2) return is_dtype(args[1]) ? converted(t, dtype_from(args[1])) : nullptr;
  switch (t->dtype) {
    case DType::f32: return PyUnicode_FromString("torch.FloatTensor");
    case DType::f64: return PyUnicode_FromString("torch.DoubleTensor");
    case DType::i64: return PyUnicode_FromString("torch.LongTensor");
    default: return nullptr;
  }
}

PyObject* item_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional == 1 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  return t ? checked(number_of(t).to_python()).release() : nullptr;
}

// ---- what a tensor is

PyObject* is_contiguous_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional == 1 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  return t ? PyBool_FromLong(t->is_contiguous()) : nullptr;
}

PyObject* is_floating_point_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  bool plain = positional == 1 && no_keywords(kwnames) && is_plain_tensor(args[0]);
  return plain ? PyBool_FromLong(is_floating(as_tensor(args[0])->dtype)) : nullptr;
}

PyObject* is_complex_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  bool plain = positional == 1 && no_keywords(kwnames) && is_plain_tensor(args[0]);
  return plain ? PyBool_FromLong(is_complex(as_tensor(args[0])->dtype)) : nullptr;
}

PyObject* numel_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional == 1 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  return t ? number(t->numel).release() : nullptr;
}

PyObject* promote_types_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 2 || !no_keywords(kwnames) || !is_dtype(args[0]) || !is_dtype(args[1])) return nullptr;
  DType a = dtype_from(args[0]), b = dtype_from(args[1]);
  return is_rare(a) || is_rare(b) ? nullptr : Py_NewRef(dtype_object(promote(a, b)));
}

// nan_to_num(x) with the largest numbers of the dtype for infinities.
PyObject* nan_to_num_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional == 1 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  if (!t || (t->dtype != DType::f32 && t->dtype != DType::f64)) return nullptr;
  static Primitive& op = primitive("nan_to_num");
  static PyObject *zero = PyFloat_FromDouble(0), *high = PyFloat_FromDouble(FLT_MAX),
                  *low = PyFloat_FromDouble(-FLT_MAX), *highest = PyFloat_FromDouble(DBL_MAX),
                  *lowest = PyFloat_FromDouble(-DBL_MAX);
  bool wide = t->dtype == DType::f64;
  PyObject* given[] = {args[0], zero, wide ? highest : high, wide ? lowest : low};
  return call(op, given);
}

PyObject* requires_grad_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional < 1 || positional > 2 || !no_keywords(kwnames)) return nullptr;
  Tensor* t = plain_tensor(args[0]);
  if (transforming()) return nullptr;  // refused in words
  if (!t || !is_differentiable(t->dtype) || (positional == 2 && !PyBool_Check(args[1]))) return nullptr;
  set_requires_grad(t, positional == 1 || args[1] == Py_True);
  return Py_NewRef(args[0]);
}

// Whether all elements are equal: nothing is recorded, and no tensor made for the answer.
PyObject* equal_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 2 || !no_keywords(kwnames)) return nullptr;
  Tensor *a = plain_tensor(args[0]), *b = plain_tensor(args[1]);
  if (!a || !b || a->dtype != b->dtype || is_rare(a->dtype)) return nullptr;
  if (!same_sizes(a, b)) return Py_NewRef(Py_False);
  if (!a->is_contiguous() || !b->is_contiguous() || a->numel > 1024)
    return nullptr;  // has a kernel of its own
  bool equal = true;
  visit(a->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *left = a->data_as<T>(), *right = b->data_as<T>();
    for (int64_t i = 0; i < a->numel; i++) equal &= left[i] == right[i];
  });
  return Py_NewRef(equal ? Py_True : Py_False);
}

// ---- views

// x.expand_as(other), x.view_as(other)
template <bool expands>
PyObject* sized_as_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 2 || !no_keywords(kwnames) || !plain_tensor(args[0]) || !plain_tensor(args[1]))
    return nullptr;
  static Primitive& op = primitive(expands ? "expand" : "view");
  Ref<PyObject> sizes(size_object(as_tensor(args[1])->sizes()));
  PyObject* given[] = {args[0], sizes.get()};
  return call(op, given);
}

PyObject* flatten_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional < 1 || positional > 3 || !no_keywords(kwnames)) return nullptr;
  Tensor* t = plain_tensor(args[0]);
  if (!t || !t->is_contiguous() || t->ndim == 0) return nullptr;
  int start = positional > 1 ? plain_dim(args[1], t->ndim) : 0;
  int end = positional > 2 ? plain_dim(args[2], t->ndim) : t->ndim - 1;
  if (start < 0 || end < start) return nullptr;
  if (start == end) return Py_NewRef(args[0]);
  Shape shape;
  for (int d = 0; d < t->ndim; d++) {
    if (d > start && d <= end) shape.sizes[shape.ndim - 1] *= t->size(d);
    else shape.append(t->size(d));
  }
  static Primitive& view = primitive("view");
  Ref<PyObject> sizes(size_object(shape));
  PyObject* given[] = {args[0], sizes.get()};
  return call(view, given);
}

PyObject* narrow_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 4 || !no_keywords(kwnames)) return nullptr;
  Tensor* t = plain_tensor(args[0]);
  int64_t start, length;
  if (!t || !read_plain_int(args[2], start) || !read_plain_int(args[3], length)) return nullptr;
  int dim = plain_dim(args[1], t->ndim);
  if (dim < 0 || start < 0 || length < 0 || length > t->size(dim) || start > t->size(dim) - length)
    return nullptr;
  static Primitive& slice = primitive("slice");
  Ref<PyObject> end = number(start + length), step = number(1);
  PyObject* given[] = {args[0], args[1], args[2], end.get(), step.get()};
  return call(slice, given);
}

PyObject* movedim_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 3 || !no_keywords(kwnames)) return nullptr;
  Tensor* t = plain_tensor(args[0]);
  if (!t) return nullptr;
  int from = plain_dim(args[1], t->ndim), to = plain_dim(args[2], t->ndim);
  if (from < 0 || to < 0) return nullptr;
  Shape order;
  for (int d = 0; d < t->ndim; d++) {
    if (d != from) order.append(d);
  }
  std::copy_backward(order.sizes + to, order.sizes + order.ndim, order.sizes + t->ndim);
  order.sizes[to] = from;
  order.ndim = t->ndim;
  Ref<PyObject> dims = checked(PyTuple_New(t->ndim));
  for (int d = 0; d < t->ndim; d++) PyTuple_SET_ITEM(dims.get(), d, number(order.sizes[d]).release());
  static Primitive& permute = primitive("permute");
  PyObject* given[] = {args[0], dims.get()};
  return call(permute, given);
}

// x.split(size), x.split([size, ...], dim)
PyObject* split_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject* name_dim = PyUnicode_InternFromString("dim");
  Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  bool named = keywords == 1 && positional == 2 && PyTuple_GET_ITEM(kwnames, 0) == name_dim;
  if (positional < 2 || positional > 3 || (keywords && !named)) return nullptr;
  Tensor* t = plain_tensor(args[0]);
  if (!t || t->ndim == 0) return nullptr;
  int dim = positional == 3 || named ? plain_dim(args[2], t->ndim) : 0;
  if (dim < 0) return nullptr;
  int64_t length = t->size(dim), size;
  static Primitive &split = primitive("split"), &with_sizes = primitive("split_with_sizes");
  Ref<PyObject> sizes, first = number(0);
  PyObject* along = positional == 3 || named ? args[2] : first.get();
  if (read_plain_int(args[1], size)) {
    if (size <= 0) return nullptr;
    int64_t count = std::max<int64_t>(length / size + (length % size != 0), 1);
    sizes = checked(PyTuple_New(count));
    Ref<PyObject> whole = number(size);
    for (int64_t i = 0; i < count - 1; i++) PyTuple_SET_ITEM(sizes.get(), i, Py_NewRef(whole.get()));
    PyTuple_SET_ITEM(sizes.get(), count - 1, number(length - size * (count - 1)).release());
    PyObject* given[] = {args[0], sizes.get(), along};
    return call(split, given);
  }
  if (!PyTuple_Check(args[1]) && !PyList_Check(args[1])) return nullptr;
  int64_t total = 0;
  sizes = checked(PySequence_Tuple(args[1]));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes.get()); i++) {
    if (!read_plain_int(PyTuple_GET_ITEM(sizes.get(), i), size) || size < 0 ||
        __builtin_add_overflow(total, size, &total))
      return nullptr;
  }
  if (total != length) return nullptr;
  PyObject* given[] = {args[0], sizes.get(), along};
  return call(with_sizes, given);
}

// x.chunk(count), x.chunk(count, dim)
PyObject* chunk_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject* name_dim = PyUnicode_InternFromString("dim");
  Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  bool named = keywords == 1 && positional == 2 && PyTuple_GET_ITEM(kwnames, 0) == name_dim;
  if (positional < 2 || positional > 3 || (keywords && !named)) return nullptr;
  Tensor* t = plain_tensor(args[0]);
  int64_t count;
  if (!t || !read_plain_int(args[1], count) || count <= 0) return nullptr;
  int dim = positional == 3 || named ? plain_dim(args[2], t->ndim) : t->ndim ? 0 : -1;
  if (dim < 0 || t->size(dim) == 0) return nullptr;
  int64_t length = t->size(dim), size = length / count + (length % count != 0);
  Ref<PyObject> wanted = number(size);
  PyObject* given[] = {args[0], wanted.get(), positional == 3 || named ? args[2] : nullptr};
  return split_call(given, given[2] ? 3 : 2, nullptr);
}

const NativeCallInit calls[] = {{"to", to_call, CASTS_NOTHING},
                                {"float", cast_call<DType::f32>, CASTS_NOTHING},
                                {"double", cast_call<DType::f64>, CASTS_NOTHING},
                                {"half", cast_call<DType::f16>, CASTS_NOTHING},
                                {"bfloat16", cast_call<DType::bf16>, CASTS_NOTHING},
                                {"long", cast_call<DType::i64>, CASTS_NOTHING},
                                {"int", cast_call<DType::i32>, CASTS_NOTHING},
                                {"bool", cast_call<DType::b1>, CASTS_NOTHING},
                                {"cpu", cpu_call, CASTS_NOTHING},
                                {"type_as", type_as_call, CASTS_NOTHING},
                                {"type", type_call, CASTS_NOTHING},
                                {"item", item_call, CASTS_NOTHING},
                                {"is_contiguous", is_contiguous_call, CASTS_NOTHING},
                                {"is_floating_point", is_floating_point_call, CASTS_NOTHING},
                                {"is_complex", is_complex_call, CASTS_NOTHING},
                                {"requires_grad_", requires_grad_call, CASTS_NOTHING},
                                {"equal", equal_call},
                                {"numel", numel_call, CASTS_NOTHING},
                                {"promote_types", promote_types_call},
                                {"nan_to_num", nan_to_num_call},
                                {"expand_as", sized_as_call<true>, CASTS_NOTHING},
                                {"view_as", sized_as_call<false>, CASTS_NOTHING},
                                {"flatten", flatten_call, CASTS_NOTHING},
                                {"narrow", narrow_call, CASTS_NOTHING},
                                {"movedim", movedim_call, CASTS_NOTHING},
                                {"split", split_call, CASTS_NOTHING},
                                {"chunk", chunk_call, CASTS_NOTHING}};

}  // namespace
}  // namespace rl
