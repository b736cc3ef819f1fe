// Functions that a few primitives make up, as training programs call them: Note [direct calls]. What they are
// made of is what rushlight/ops and rushlight/nn/functional make them of, so their histories are the same.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "../graph/custom.h"
#include "../graph/modes.h"
#include "direct_calls.h"
#include "levels.h"
#include "matmul_ops.h"
#include "norm_ops.h"

namespace rl {
namespace {

template <class... T>
Ref<PyObject> applied(Primitive& op, T... args) {
  PyObject* given[] = {args...};
  return checked(call(op, given));
}

// ---- losses

// The arguments of a call by the names of the parameters, some of which have values already. False if there
// are others, or too many.
template <size_t count>
bool bind(PyObject* (&values)[count], const char* const (&names)[count], PyObject* const* args,
          Py_ssize_t positional, PyObject* kwnames) {
  if (positional > Py_ssize_t(count)) return false;
  std::copy(args, args + positional, values);
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
    size_t at = size_t(positional);
    while (at < count && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), names[at]) != 0) at++;
    if (at == count) return false;
    values[at] = args[positional + i];
  }
  return std::ranges::all_of(values, [](PyObject* value) { return value != nullptr; });
}

// torch's number for `reduction=`, or -1.
int read_reduction(PyObject* o) {
  if (!PyUnicode_CheckExact(o)) return -1;
  const char* names[] = {"none", "mean", "sum"};
  for (int i = 0; i < 3; i++) {
    if (PyUnicode_CompareWithASCIIString(o, names[i]) == 0) return i;
  }
  return -1;
}

// Scores of a batch of vectors and their classes, without weights: nll_loss, or with `logs` cross_entropy.
template <bool logs>
PyObject* class_loss_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject *mean = PyUnicode_InternFromString("mean"), *minus = PyLong_FromLong(-100),
                  *none = PyFloat_FromDouble(0);
  PyObject* values[] = {nullptr, nullptr, Py_None, Py_None, minus, Py_None, mean, none};
  static constexpr const char* names[] = {
      "input",        "target", "weight",    "size_average",
      "ignore_index", "reduce", "reduction", logs ? "label_smoothing" : "-"};
  if (!bind(values, names, args, positional, kwnames)) return nullptr;
  Tensor *input = plain_tensor(values[0]), *target = plain_tensor(values[1]);
  int reduction = read_reduction(values[6]);
  int64_t ignored;
  bool plain = values[2] == Py_None && values[3] == Py_None && values[5] == Py_None && reduction >= 0 &&
               read_plain_int(values[4], ignored) && PyFloat_CheckExact(values[7]) &&
               PyFloat_AS_DOUBLE(values[7]) == 0;
  bool batch = plain && input && target && is_floating(input->dtype) && !is_rare(input->dtype) &&
               input->ndim == 2 && target->ndim == 1 && target->dtype == DType::i64 &&
               target->size(0) == input->size(0);
  if (!batch || (!logs && positional > 7)) return nullptr;
  static Primitive &log_softmax = primitive("log_softmax"), &nll_loss = primitive("nll_loss");
  static PyObject* one = PyLong_FromLong(1);
  Ref<PyObject> scores = logs ? applied(log_softmax, values[0], one) : share(values[0]),
                way = number(reduction);
  return applied(nll_loss, scores.get(), values[1], Py_None, way.get(), values[4]).release();
}

// Whether all numbers of a small float tensor are between 0 and 1; a loss of probabilities asks.
template <class T>
bool within_unit(const Tensor* t) {
  const T* values = t->data_as<T>();
  bool within = true;
  for (int64_t i = 0; i < t->numel; i++) within &= values[i] >= 0 && values[i] <= 1;
  return within;
}

// are_within_unit(tensor): True or False, or None if that is not so easily told.
PyObject* are_within_unit(PyObject*, PyObject* o) {
  Tensor* t = plain_tensor(o);
  if (!t || !t->is_contiguous() || t->numel > 4096) Py_RETURN_NONE;
  if (t->dtype == DType::f32) return PyBool_FromLong(within_unit<float>(t));
  if (t->dtype == DType::f64) return PyBool_FromLong(within_unit<double>(t));
  Py_RETURN_NONE;
}

// ---- activations

PyObject* glu_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional >= 1 && positional <= 2 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  if (!t || !is_floating(t->dtype) || is_rare(t->dtype)) return nullptr;
  int64_t dim = -1;
  if ((positional == 2 && !read_plain_int(args[1], dim)) || dim < -t->ndim || dim >= t->ndim) return nullptr;
  if (dim < 0) dim += t->ndim;
  int64_t length = t->size(int(dim));
  if (length % 2) return nullptr;
  static Primitive &slice = primitive("slice"), &sigmoid = primitive("sigmoid"), &mul = primitive("mul");
  Ref<PyObject> along = number(dim), zero = number(0), half = number(length / 2), whole = number(length),
                step = number(1);
  Ref<PyObject> first = applied(slice, args[0], along.get(), zero.get(), half.get(), step.get());
  Ref<PyObject> second = applied(slice, args[0], along.get(), half.get(), whole.get(), step.get());
  Ref<PyObject> gate = applied(sigmoid, second.get());
  return applied(mul, first.get(), gate.get()).release();
}

// dropout(input, p, training, inplace) of a mask to be drawn.
PyObject* dropout_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject* usual = PyFloat_FromDouble(0.5);
  PyObject* values[] = {nullptr, usual, Py_True, Py_False};
  static constexpr const char* names[] = {"input", "p", "training", "inplace"};
  if (!bind(values, names, args, positional, kwnames) || !PyFloat_CheckExact(values[1]) ||
      !PyBool_Check(values[2]) || values[3] != Py_False)
    return nullptr;
  Tensor* t = plain_tensor(values[0]);
  double p = PyFloat_AS_DOUBLE(values[1]);
  if (!t || !is_floating(t->dtype) || is_rare(t->dtype) || !(p >= 0 && p < 1) || transforming())
    return nullptr;
  if (p == 0 || values[2] == Py_False || t->numel == 0) return Py_NewRef(values[0]);
  static Primitive &bernoulli = primitive("bernoulli_number"), &div = primitive("div"),
                   &mul = primitive("mul");
  TensorRef noise = empty_like(t, t->dtype);
  noise->storage->written = keep(current_source());
  Ref<PyObject> kept = checked(PyFloat_FromDouble(1 - p));
  PyObject *drawn[] = {noise->object(), kept.get(), Py_None}, *scaled[] = {noise->object(), kept.get()};
  Py_DECREF(checked(call_in_place(bernoulli, drawn)).release());
  Py_DECREF(checked(call_in_place(div, scaled)).release());
  return applied(mul, values[0], noise->object()).release();
}

// hardtanh between bounds that the dtype holds, relu6.
template <bool six>
PyObject* hardtanh_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional == (six ? 2 : 4) && args[positional - 1] == Py_False) positional--;  // not in place
  bool all = positional == 1 || (!six && positional == 3);
  Tensor* t = all && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  if (!t || (t->dtype != DType::f32 && t->dtype != DType::f64)) return nullptr;
  static Primitive& hardtanh = primitive("hardtanh");
  static PyObject *zero = PyLong_FromLong(0), *top = PyLong_FromLong(6), *low = PyFloat_FromDouble(-1),
                  *high = PyFloat_FromDouble(1);
  if (positional == 1) return applied(hardtanh, args[0], six ? zero : low, six ? top : high).release();
  auto bound = [](PyObject* o) { return PyFloat_CheckExact(o) ? PyFloat_AS_DOUBLE(o) : std::nan(""); };
  double from = bound(args[1]), to = bound(args[2]), most = t->dtype == DType::f32 ? FLT_MAX : DBL_MAX;
  bool fits = from <= to && std::abs(from) <= most && std::abs(to) <= most;
  return fits ? applied(hardtanh, args[0], args[1], args[2]).release() : nullptr;
}

// ---- products

PyObject* matmul_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 2 || !no_keywords(kwnames) || !is_plain_tensor(args[0]) || !is_plain_tensor(args[1]))
    return nullptr;
  return matmul(as_tensor(args[0]), as_tensor(args[1]));
}

// linear(input, weight, bias=None)
PyObject* linear_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  PyObject* values[] = {nullptr, nullptr, Py_None};
  static constexpr const char* names[] = {"input", "weight", "bias"};
  if (!bind(values, names, args, positional, kwnames) || !is_plain_tensor(values[0]) ||
      !is_plain_tensor(values[1]) || (values[2] != Py_None && !is_plain_tensor(values[2])))
    return nullptr;
  return linear(values);
}

PyObject* outer_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor *a = positional == 2 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr,
         *b = a ? plain_tensor(args[1]) : nullptr;
  if (!b || a->ndim != 1 || b->ndim != 1 || !a->is_contiguous()) return nullptr;
  static Primitive &view = primitive("view"), &mul = primitive("mul");
  const int64_t sizes[] = {a->size(0), 1};
  Ref<PyObject> shape(size_object(sizes));
  Ref<PyObject> column = applied(view, args[0], shape.get());
  return applied(mul, column.get(), args[1]).release();
}

PyObject* trace_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional == 1 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  if (!t || t->ndim != 2 || is_rare(t->dtype) || t->dtype == DType::b1) return nullptr;
  static Primitive &diagonal = primitive("diagonal"), &sum = primitive("sum");
  static PyObject *zero = PyLong_FromLong(0), *one = PyLong_FromLong(1);
  Ref<PyObject> line = applied(diagonal, args[0], zero, zero, one);
  return applied(sum, line.get(), Py_None).release();
}

// ---- several tensors

// hstack and vstack of tensors that have the dimensions already.
template <bool rows>
PyObject* stacked_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 1 || !no_keywords(kwnames) || (!PyTuple_Check(args[0]) && !PyList_Check(args[0])))
    return nullptr;
  Ref<PyObject> tensors = checked(PySequence_Tuple(args[0]));
  Py_ssize_t count = PyTuple_GET_SIZE(tensors.get());
  for (Py_ssize_t i = 0; i < count; i++) {
    Tensor* t = plain_tensor(PyTuple_GET_ITEM(tensors.get(), i));
    if (!t || t->ndim < (rows ? 2 : 1)) return nullptr;
  }
  if (count == 0) return nullptr;
  static Primitive& cat = primitive("cat");
  bool vectors = as_tensor(PyTuple_GET_ITEM(tensors.get(), 0))->ndim == 1;
  Ref<PyObject> dim = number(rows || vectors ? 0 : 1);
  return applied(cat, tensors.get(), dim.get()).release();
}

PyObject* broadcast_tensors_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional == 0 || !no_keywords(kwnames)) return nullptr;
  Shape shape;
  for (Py_ssize_t i = 0; i < positional; i++) {
    Tensor* t = plain_tensor(args[i]);
    if (!t) return nullptr;
    int shift = shape.ndim - t->ndim;  // sizes that do not fit are refused by the longer way
    for (int d = 0; d < t->ndim; d++) {
      if (d + shift < 0) continue;
      int64_t have = shape.sizes[d + shift], size = t->size(d);
      if (have != size && have != 1 && size != 1) return nullptr;
    }
    broadcast_into(shape, t->sizes());
  }
  static Primitive& expand = primitive("expand");
  Ref<PyObject> sizes, results = checked(PyTuple_New(positional));
  for (Py_ssize_t i = 0; i < positional; i++) {
    Sizes own = as_tensor(args[i])->sizes();
    bool fits = std::ranges::equal(own, Sizes(shape));
    if (!fits && !sizes) {
      sizes = checked(PyTuple_New(shape.ndim));
      for (int d = 0; d < shape.ndim; d++) PyTuple_SET_ITEM(sizes.get(), d, number(shape.sizes[d]).release());
    }
    PyTuple_SET_ITEM(results.get(), i,
                     fits ? Py_NewRef(args[i]) : applied(expand, args[i], sizes.get()).release());
  }
  return results.release();
}

// complex(real, imag) of two contiguous tensors of one size.
PyObject* complex_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor *real = positional == 2 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr,
         *imag = real ? plain_tensor(args[1]) : nullptr;
  if (!imag || real->dtype != imag->dtype || (real->dtype != DType::f32 && real->dtype != DType::f64) ||
      !same_sizes(real, imag) || !real->is_contiguous() || !imag->is_contiguous())
    return nullptr;
  static Primitive &stack = primitive("stack"), &view_as_complex = primitive("view_as_complex");
  Ref<PyObject> parts = checked(PyTuple_Pack(2, args[0], args[1])), last = number(-1);
  Ref<PyObject> pairs = applied(stack, parts.get(), last.get());
  return applied(view_as_complex, pairs.get()).release();
}

// ---- classes

PyObject* one_hot_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject* name_classes = PyUnicode_InternFromString("num_classes");
  bool named = !no_keywords(kwnames) && PyTuple_GET_SIZE(kwnames) == 1 && positional == 1 &&
               PyTuple_GET_ITEM(kwnames, 0) == name_classes;
  if (positional < 1 || positional > 2 || (!no_keywords(kwnames) && !named)) return nullptr;
  Tensor* t = plain_tensor(args[0]);
  int64_t classes = -1;
  if (!t || t->dtype != DType::i64 || !t->is_contiguous() || t->numel == 0 || t->ndim >= MAX_DIMS - 1 ||
      ((positional == 2 || named) && !read_plain_int(args[1], classes)))
    return nullptr;
  const int64_t* values = t->data_as<int64_t>();
  const auto [least, most] = std::minmax_element(values, values + t->numel);
  if (*least < 0 || (classes == -1 && *most == INT64_MAX)) return nullptr;
  if (classes == -1) classes = *most + 1;
  if (*most >= classes) return nullptr;
  Shape shape;
  shape.assign(t->sizes());
  shape.append(classes);
  TensorRef made = zeros(shape, DType::i64);
  made->storage->written = keep(current_source());
  static Primitive &unsqueeze = primitive("unsqueeze"), &scatter = primitive("scatter_value");
  static PyObject *one = PyLong_FromLong(1), *last = PyLong_FromLong(-1);
  Ref<PyObject> index = applied(unsqueeze, args[0], last);
  PyObject* given[] = {made->object(), index.get(), one, last};
  return call_in_place(scatter, given);
}

// group_norm(input, groups, weight, bias, eps) of more than one value in each group.
PyObject* group_norm_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* t = positional >= 2 && positional <= 5 && no_keywords(kwnames) ? plain_tensor(args[0]) : nullptr;
  int64_t groups;
  if (!t || t->ndim < 2 || !read_plain_int(args[1], groups) || groups < 1) return nullptr;
  bool copies = !t->is_contiguous();
  for (Py_ssize_t i = 2; i < std::min<Py_ssize_t>(positional, 4); i++) {
    if (args[i] == Py_None) continue;
    if (!plain_tensor(args[i])) return nullptr;
    copies |= !as_tensor(args[i])->is_contiguous();
  }
  if (copies && recording()) return nullptr;  // of which torch's graph has the copies
  if (positional == 5 && !PyFloat_CheckExact(args[4])) return nullptr;
  int64_t values = t->size(0) * t->size(1) / groups;
  for (int d = 2; d < t->ndim; d++) values *= t->size(d);
  if (values == 1) return nullptr;
  static Primitive& norm = primitive("native_group_norm");
  static PyObject* small = PyFloat_FromDouble(1e-5);
  auto given = [&](Py_ssize_t at, PyObject* otherwise) { return at < positional ? args[at] : otherwise; };
  Ref<PyObject> results =
      applied(norm, args[0], given(2, Py_None), given(3, Py_None), args[1], given(4, small));
  return Py_NewRef(PyTuple_GET_ITEM(results.get(), 0));
}

// batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
PyObject* batch_norm_call(PyObject* const* given, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject *momentum = PyFloat_FromDouble(0.1), *small = PyFloat_FromDouble(1e-5);
  PyObject* args[] = {nullptr, nullptr, nullptr, Py_None, Py_None, Py_False, momentum, small};
  static constexpr const char* names[] = {"input", "running_mean", "running_var", "weight",
                                          "bias",  "training",     "momentum",    "eps"};
  if (!bind(args, names, given, positional, kwnames) || carrying() || modes.inference) return nullptr;
  Tensor* x = plain_tensor(args[0]);
  bool training = args[5] == Py_True;
  if (!x || (x->dtype != DType::f32 && x->dtype != DType::f64) || x->ndim < 2 || x->numel == 0 ||
      !PyBool_Check(args[5]) || !PyFloat_CheckExact(args[6]) || !PyFloat_CheckExact(args[7]) ||
      PyFloat_AS_DOUBLE(args[7]) <= 0)
    return nullptr;
  for (int i = 1; i <= 4; i++) {
    Tensor* t = plain_tensor(args[i]);
    if (!t && args[i] != Py_None) return nullptr;
    if (t && (t->dtype != x->dtype || t->ndim != 1 || t->numel != x->size(1))) return nullptr;
    if (t && i <= 2 && (t->requires_grad() || t->base())) return nullptr;
  }
  if ((args[1] == Py_None) != (args[2] == Py_None) || (!training && args[1] == Py_None)) return nullptr;
  int64_t values = x->numel / x->size(1);
  if (training && (values == 1 || saved_hooks_active())) return nullptr;
  static Primitive &train = primitive("batch_norm_train"), &eval = primitive("batch_norm_eval");
  Ref<PyObject> made = applied(training ? train : eval, args[0], args[3], args[4], args[1], args[2], args[7]);
  if (training && args[1] != Py_None) {
    update_running_statistics(
        as_tensor(args[1]), as_tensor(args[2]), as_tensor(PyTuple_GET_ITEM(made.get(), 1)),
        as_tensor(PyTuple_GET_ITEM(made.get(), 3)), double(values), PyFloat_AS_DOUBLE(args[6]));
  }
  return Py_NewRef(PyTuple_GET_ITEM(made.get(), 0));
}

// pad(input, pad) with a constant.
PyObject* pad_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject *name_mode = PyUnicode_InternFromString("mode"),
                  *name_value = PyUnicode_InternFromString("value");
  Tensor* t = positional >= 2 && positional <= 4 ? plain_tensor(args[0]) : nullptr;
  if (!t || !is_floating(t->dtype) || is_rare(t->dtype)) return nullptr;
  PyObject *mode = positional > 2 ? args[2] : nullptr, *value = positional > 3 ? args[3] : Py_None;
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    if (name == name_mode && positional < 3) mode = args[positional + i];
    else if (name == name_value && positional < 4) value = args[positional + i];
    else return nullptr;
  }
  bool constant =
      !mode || (PyUnicode_CheckExact(mode) && PyUnicode_CompareWithASCIIString(mode, "constant") == 0);
  static PyObject* zero = PyFloat_FromDouble(0);
  if (value == Py_None) value = zero;
  if (!constant || !PyFloat_CheckExact(value) || (!PyTuple_Check(args[1]) && !PyList_Check(args[1])))
    return nullptr;
  Ref<PyObject> pad = checked(PySequence_Tuple(args[1]));
  Py_ssize_t count = PyTuple_GET_SIZE(pad.get());
  if (count % 2 || count > 2 * t->ndim) return nullptr;
  for (Py_ssize_t i = 0; i < count; i++) {
    int64_t size;
    if (!read_plain_int(PyTuple_GET_ITEM(pad.get(), i), size)) return nullptr;
  }
  static Primitive& constant_pad = primitive("constant_pad_nd");
  return applied(constant_pad, args[0], pad.get(), value).release();
}

// An int, or two of them, for height and width; null if it is neither.
Ref<PyObject> pair_of(PyObject* o) {
  int64_t value;
  if (read_plain_int(o, value)) return checked(PyTuple_Pack(2, o, o));
  bool two = PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) == 2 &&
             read_plain_int(PyTuple_GET_ITEM(o, 0), value) && read_plain_int(PyTuple_GET_ITEM(o, 1), value);
  return two ? share(o) : Ref<PyObject>();
}

// avg_pool2d(input, kernel_size, stride=None, padding=0) of images with windows that fit.
PyObject* avg_pool2d_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject *none = PyLong_FromLong(0), *average = PyUnicode_InternFromString("average");
  PyObject* values[] = {nullptr, nullptr, Py_None, none};
  static constexpr const char* names[] = {"input", "kernel_size", "stride", "padding"};
  if (!bind(values, names, args, positional, kwnames)) return nullptr;
  Tensor* t = plain_tensor(values[0]);
  if (!t || t->ndim != 4 || !is_floating(t->dtype) || is_rare(t->dtype) || !t->numel) return nullptr;
  Ref<PyObject> kernel = pair_of(values[1]), stride = values[2] == Py_None ? kernel : pair_of(values[2]),
                padding = pair_of(values[3]);
  if (!kernel || !stride || !padding) return nullptr;
  Ref<PyObject> size = checked(PyTuple_New(2));
  for (int d = 0; d < 2; d++) {
    int64_t k = 0, step = 0, pad = 0, length = t->size(2 + d);
    read_plain_int(PyTuple_GET_ITEM(kernel.get(), d), k);
    read_plain_int(PyTuple_GET_ITEM(stride.get(), d), step);
    read_plain_int(PyTuple_GET_ITEM(padding.get(), d), pad);
    if (k < 1 || k > INT32_MAX || step < 1 || step > INT32_MAX || pad < 0 || pad > k / 2 ||
        length > INT32_MAX || length + 2 * pad < k)
      return nullptr;
    PyTuple_SET_ITEM(size.get(), d, number((length + 2 * pad - k) / step + 1).release());
  }
  static Primitive& avg_pool2d = primitive("avg_pool2d");
  static PyObject* no_stride = PyTuple_New(0);
  PyObject* given = values[2] == Py_None ? no_stride : stride.get();
  Ref<PyObject> spec = checked(
      PyTuple_Pack(8, average, kernel.get(), stride.get(), padding.get(), Py_True, none, given, Py_False));
  return applied(avg_pool2d, values[0], size.get(), spec.get(), Py_False).release();
}

PyObject* bincount_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  static PyObject* name_least = PyUnicode_InternFromString("minlength");
  bool named = !no_keywords(kwnames);
  if (positional != 1 ||
      (named && (PyTuple_GET_SIZE(kwnames) != 1 || PyTuple_GET_ITEM(kwnames, 0) != name_least)))
    return nullptr;
  Tensor* t = plain_tensor(args[0]);
  int64_t length = 0;
  if (!t || t->dtype != DType::i64 || t->ndim != 1 || !t->is_contiguous() || t->numel > 4096 ||
      (named && (!read_plain_int(args[1], length) || length < 0)))
    return nullptr;
  const int64_t* values = t->data_as<int64_t>();
  for (int64_t i = 0; i < t->numel; i++) {
    if (values[i] < 0 || values[i] > INT32_MAX) return nullptr;
    length = std::max(length, values[i] + 1);
  }
  TensorRef counts = zeros(Sizes(&length, 1), DType::i64);
  counts->storage->written = keep(current_source());
  int64_t* found = counts->data_as<int64_t>();
  for (int64_t i = 0; i < t->numel; i++) {
    if (values[i] < length) found[values[i]]++;  // another thread may write the values
  }
  return counts.release_object();
}

const NativeCallInit calls[] = {{"nll_loss", class_loss_call<false>},
                                {"cross_entropy", class_loss_call<true>},
                                {"glu", glu_call},
                                {"hardtanh", hardtanh_call<false>},
                                {"relu6", hardtanh_call<true>},
                                {"matmul", matmul_call, CASTS_NOTHING},
                                {"linear", linear_call, CASTS_NOTHING},
                                {"dropout", dropout_call},
                                {"outer", outer_call},
                                {"trace", trace_call},
                                {"hstack", stacked_call<false>},
                                {"vstack", stacked_call<true>},
                                {"broadcast_tensors", broadcast_tensors_call},
                                {"complex", complex_call},
                                {"one_hot", one_hot_call},
                                {"group_norm", group_norm_call},
                                {"batch_norm", batch_norm_call},
                                {"pad", pad_call},
                                {"avg_pool2d", avg_pool2d_call},
                                {"bincount", bincount_call}};

PyMethodDef functions[] = {{"are_within_unit", are_within_unit, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
