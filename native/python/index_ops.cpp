// The primitives that address elements by index tensors: gather, scatter, index_select and their kin.
//
// Each forward function checks shapes and dtypes with torch's sentences, then calls a kernel of
// kernels/index.h on spans. An index out of range comes back as an IndexFault before anything is written.
// x[...] itself is in subscript.cpp, its primitives `index` and `index_put` in advanced_index.cpp, masks in
// mask_ops.cpp.
#include "index_ops.h"

#include "../graph/modes.h"
#include "../tensor/iterate.h"

namespace rl {

TensorRef apart_from(Tensor* in, const Tensor* out) {
  return out && in->storage == out->storage ? clone(in) : share(in);
}

namespace {

// Index dtypes a function takes; the kernels want int64.
// The complaint is put together only where it is made: `%s` in it stand for words.
template <class... Words>
TensorRef long_index(Tensor* index, bool int32_too, PyObject* type, const char* complaint, Words... words) {
  if (index->dtype == DType::i64) return share(index);
  if (index->dtype == DType::i32 && int32_too) return cast(index, DType::i64);
  failf(type, complaint, words...);
}

[[noreturn]] void fail_range(PyObject* type, const IndexFault& fault, const char* prefix = "") {
  failf(type, "%sindex %lld is out of bounds for dimension %d with size %lld", prefix, (long long)fault.index,
        fault.dim, (long long)fault.size);
}

// The result of an operation that changes part of x: x itself when in place, else a copy in row-major order.
TensorRef changed_copy(Tensor* x, Tensor* out) {
  if (out) {
    if (!out->is_meta()) check_writable(out);
    return share(out);
  }
  TensorRef copy = new_tensor(x->sizes(), x->dtype, x->device());
  copy_into(copy.get(), x);
  return copy;
}

// Torch sums halves in float when several may meet at one element.
bool is_reduced(DType t) { return t == DType::f16 || t == DType::bf16; }

// A source that is a tensor of x's dtype or one number read everywhere.
struct Values {
  TensorRef tensor;
  alignas(16) char number[16];
  const int64_t zeros[MAX_DIMS] = {};
  bool is_number = false;

  Span span(DType dtype, Sizes sizes) {
    if (is_number) return {number, dtype, int(sizes.size()), sizes.data(), zeros};
    Span s = tensor->span();
    s.sizes = sizes.data();
    s.ndim = int(sizes.size());
    return s;
  }
};

// ---- gather and scatter

int dim_argument(PyObject* o, const Tensor* x) { return wrap_dim(read_int(o), x->ndim); }

int rank(const Tensor* t) { return t->ndim ? t->ndim : 1; }
int64_t size_at(const Tensor* t, int d) { return t->ndim ? t->size(d) : 1; }

// gather(x, index; dim)
PyObject* gather_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1);
  int dim = dim_argument(args[2], x);
  check_same_device(x, given);
  TensorRef result = new_tensor(given->sizes(), x->dtype, x->device());
  if (given->numel == 0) return result.release_object();  // of any dtype, as in torch
  TensorRef index =
      long_index(given, true, PyExc_RuntimeError, "gather(): Expected dtype int32/int64 for index");
  if (rank(index.get()) != rank(x)) {
    fail(PyExc_RuntimeError, "Index tensor must have the same number of dimensions as input tensor");
  }
  for (int d = 0; d < x->ndim; d++) {
    if (d != dim && size_at(index.get(), d) > x->size(d)) {
      failf(PyExc_RuntimeError,
            "Size does not match at dimension %d expected index %s to be no larger than self %s apart from "
            "dimension "
            "%d",
            d, sizes_text(index->sizes()).c_str(), sizes_text(x->sizes()).c_str(), dim);
    }
  }
  if (x->is_meta()) return result.release_object();
  IndexFault fault;
  {
    MaybeNoGil unlocked(index->numel);
    Span table = x->span(), at = index->span(), to = result->span();
    const int64_t one = 1, zero = 0;
    if (at.ndim == 0 && table.ndim == 1) {  // a single index into a vector: both as vectors
      at.ndim = to.ndim = 1;
      at.sizes = to.sizes = &one;
      at.strides = to.strides = &zero;
    }
    fault = gather(to, table, dim, at);
  }
  if (fault) fail_range(PyExc_RuntimeError, fault);
  return result.release_object();
}

struct Scatter {
  Tensor* x;
  int dim;
  TensorRef index;
  Values source;
  int64_t one = 1, zero = 0;

  // Checks everything but the index values.
  Scatter(const Primitive& op, PyObject* const* args, Tensor* out) {
    x = tensor_argument(op, args, 0);
    Tensor* given = tensor_argument(op, args, 1);
    dim = dim_argument(args[3], x);
    check_same_device(x, given);
    // Without elements, an index of any dtype will do.
    index = given->numel == 0 ? share(given)
                              : long_index(given, true, PyExc_RuntimeError,
                                           "scatter(): Expected dtype int32/int64 for index");
    Tensor* src = nullptr;
    if (is_tensor(args[2])) {
      src = as_tensor(args[2]);
      check_same_device(x, src);
      if (src->dtype != x->dtype) {
        fail(PyExc_RuntimeError, "scatter(): Expected self.dtype to be equal to src.dtype");
      }
      source.tensor = apart_from(src, out);
    } else {
      source.is_number = true;
      store_checked(scalar_argument(args[2], op.name.c_str(), "value"), x->dtype, source.number);
    }
    if (out && index->storage == out->storage) index = clone(index.get());
    if (index->numel == 0) return;
    if (rank(index.get()) != rank(x)) {
      fail(PyExc_RuntimeError, "Index tensor must have the same number of dimensions as self tensor");
    }
    bool fits = true;
    for (int d = 0; d < rank(x); d++) fits = fits && (d == dim || size_at(index.get(), d) <= size_at(x, d));
    for (int d = 0; src && fits && d < rank(x); d++) {
      if (src->ndim && d >= src->ndim) {  // found where torch asks for its size
        failf(PyExc_IndexError, "Dimension out of range (expected to be in range of [%d, %d], but got %d)",
              -src->ndim, src->ndim - 1, d);
      }
      fits = size_at(index.get(), d) <= (src->ndim ? src->size(d) : 1);
    }
    if (src && rank(index.get()) != rank(src)) {
      fail(PyExc_RuntimeError, "Index tensor must have the same number of dimensions as src tensor");
    }
    if (!fits) {
      std::string text = "Expected index " + sizes_text(index->sizes()) + " to be no larger than self " +
                         sizes_text(x->sizes()) + " apart from dimension " + std::to_string(dim);
      if (src) text += " and to be no larger size than src " + sizes_text(src->sizes());
      fail(PyExc_RuntimeError, text);
    }
  }

  bool nothing() const { return index->numel == 0 || x->is_meta(); }

  // index and source as spans of one rank with self.
  void spans(Span& at, Span& src) {
    at = index->span();
    if (at.ndim == 0) at = {at.data, at.dtype, 1, &one, &zero};
    src = source.is_number || !source.tensor->ndim
              ? Span{source_data(), x->dtype, at.ndim, at.sizes, source.zeros}
              : source.span(x->dtype, Sizes(at.sizes, size_t(at.ndim)));
  }
  void* source_data() { return source.is_number ? source.number : source.tensor->data(); }
};

// self as a span of at least one dimension.
Span at_least_1d(const Tensor* t, const int64_t& one, const int64_t& zero) {
  Span s = t->span();
  if (s.ndim == 0) s = {s.data, s.dtype, 1, &one, &zero};
  return s;
}

PyObject* scatter_by(const Primitive& op, PyObject* const* args, Tensor* out, IndexOp how) {
  Scatter s(op, args, out);
  bool widen = how != IndexOp::assign && is_reduced(s.x->dtype) && !s.nothing();
  TensorRef result = changed_copy(s.x, out), wide = widen ? cast(s.x, DType::f32) : TensorRef();
  if (widen && !s.source.is_number) s.source.tensor = cast(s.source.tensor.get(), DType::f32);
  if (s.nothing()) return result.release_object();
  if (widen && s.source.is_number) load(s.x->dtype, s.source.number).store(DType::f32, s.source.number);
  IndexFault fault;
  {
    MaybeNoGil unlocked(s.index->numel);
    Span at, src;
    s.spans(at, src);
    Tensor* into = widen ? wide.get() : result.get();
    src.dtype = into->dtype;
    fault = scatter(at_least_1d(into, s.one, s.zero), s.dim, at, src, how, !out || widen);
  }
  if (fault) fail_range(PyExc_RuntimeError, fault);
  if (widen) copy_into(result.get(), wide.get());
  return result.release_object();
}

PyObject* scatter_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  return scatter_by(op, args, out, IndexOp::assign);
}
PyObject* scatter_add_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  return scatter_by(op, args, out, IndexOp::add);
}

Reduction reduction_argument(PyObject* o, DType dtype, const char* function, bool sum_too) {
  const char* name = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
  if (!name)
    failf(PyExc_TypeError, "%s(): argument 'reduce' must be str, not %s", function, Py_TYPE(o)->tp_name);
  static const char* names[] = {"sum", "prod", "mean", "amax", "amin"};
  for (int i = sum_too ? 0 : 1; i < 5; i++) {
    if (strcmp(name, names[i])) continue;
    if ((is_complex(dtype) && i > 2) || (dtype == DType::b1 && i == 2)) {
      failf(PyExc_NotImplementedError, "\"%s_%s\" not implemented for '%s'", function, name,
            dtype_class_name(dtype));
    }
    return Reduction(i);
  }
  if (!sum_too) {
    failf(PyExc_RuntimeError, "%s(): Expected reduce to be one of prod, mean, amax or amin but got %s.",
          function, name);
  }
  failf(PyExc_RuntimeError, "reduce argument must be either %sprod, mean, amax or amin, got %s",
        sum_too ? "sum, " : "", name);
}

// scatter_reduce(x, index, src; dim, reduce, include_self)
PyObject* scatter_reduce_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Scatter s(op, args, out);
  Reduction reduction = reduction_argument(args[4], s.x->dtype, "scatter_gather_tensor_cpu_reduce", true);
  bool start_over = args[5] != Py_True, widen = is_reduced(s.x->dtype) && !s.nothing();
  TensorRef result = changed_copy(s.x, out), wide = widen ? cast(s.x, DType::f32) : TensorRef();
  if (s.nothing()) return result.release_object();
  if (widen) s.source.tensor = cast(s.source.tensor.get(), DType::f32);
  IndexFault fault;
  {
    MaybeNoGil unlocked(s.index->numel);
    Span at, src;
    s.spans(at, src);
    Tensor* into = widen ? wide.get() : result.get();
    src.dtype = into->dtype;
    fault = scatter_reduce(at_least_1d(into, s.one, s.zero), s.dim, at, src, reduction, start_over);
  }
  if (fault) fail_range(PyExc_RuntimeError, fault);
  if (widen) copy_into(result.get(), wide.get());
  return result.release_object();
}

// ---- a vector of indices along one dimension

// index_select(x, index; dim)
PyObject* index_select_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1);
  int dim = dim_argument(args[2], x);
  check_same_device(x, given);
  if (given->ndim > 1) fail(PyExc_IndexError, "index_select(): Index is supposed to be a vector");
  TensorRef index =
      long_index(given, true, PyExc_RuntimeError, "index_select(): Expected dtype int32 or int64 for index");
  if (x->ndim == 0 && index->numel != 1) {
    failf(PyExc_RuntimeError, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
          (long long)index->numel);
  }
  Shape shape;
  shape.assign(x->sizes());
  if (x->ndim) shape.sizes[dim] = index->numel;
  TensorRef result = new_tensor(shape, x->dtype, x->device());
  if (x->is_meta()) return result.release_object();
  IndexFault fault;
  {
    MaybeNoGil unlocked(result->numel);
    fault = index_select(result->span(), x->span(), dim, index->span());
  }
  if (fault) {
    fail(PyExc_IndexError, "index out of range in self\n\nThe index " + std::to_string(fault.index) +
                               " is out of range for dimension " + std::to_string(fault.dim) + " with size " +
                               std::to_string(fault.size) + ".");
  }
  return result.release_object();
}

void check_same_devices(std::string name, const Tensor* x, const Tensor* index, const Tensor* source) {
  if (x->device() == index->device() && x->device() == source->device()) return;
  if (name.ends_with('_')) name.pop_back();
  fail(PyExc_RuntimeError,
       name + "(): self, index and source expected to be in the same device, but got (self) " +
           device_name(x->device()) + ", (index) " + device_name(index->device()) + ", and (source) " +
           device_name(source->device()));
}

// What index_add and index_reduce ask of their arguments.
TensorRef check_index_add(const char* name, Tensor* x, int dim, Tensor* given, Tensor* source) {
  check_same_devices(name, x, given, source);
  if (given->ndim > 1) {
    failf(PyExc_IndexError,
          "%s(): Index is supposed to be a vector, but got dim: %d with type: %s and size: %s", name,
          given->ndim, dtype_class_name(given->dtype), sizes_text(given->sizes()).c_str());
  }
  TensorRef index =
      long_index(given, true, PyExc_RuntimeError, "%s(): Expected dtype int32/int64 for index but got: %s",
                 name, dtype_class_name(given->dtype));
  if (x->dtype != source->dtype) {
    failf(PyExc_RuntimeError, "%s(): self (%s) and source (%s) must have the same scalar type", name,
          dtype_class_name(x->dtype), dtype_class_name(source->dtype));
  }
  if (dim >= std::max<int>(1, source->ndim)) {
    failf(PyExc_RuntimeError, "%s(): Indexing dim %d is out of bounds of the source tensor with dim %d", name,
          dim, source->ndim);
  }
  if (index->numel != (source->ndim ? source->size(dim) : 1)) {
    if (!source->ndim) fail(PyExc_IndexError, "Dimension specified as 0 but tensor has no dimensions");
    failf(PyExc_RuntimeError,
          "%s(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %d", name,
          (long long)index->numel, (long long)source->size(dim), dim);
  }
  bool fits = x->ndim == source->ndim;
  for (int d = 0; fits && d < x->ndim; d++) fits = d == dim || x->size(d) == source->size(d);
  if (!fits) {
    fail(PyExc_RuntimeError,
         "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
         "self.shape = " +
             sizes_text(x->sizes()) + " source.shape = " + sizes_text(source->sizes()));
  }
  return index;
}

// Runs index_update on x and source, one of which may have no dimensions where the other has one.
IndexFault update_along(Tensor* x, int dim, Tensor* index, Span source, IndexOp how, bool wrap) {
  MaybeNoGil unlocked(source.numel());
  const int64_t one = 1, zero = 0;
  if (source.ndim == 0) source = {source.data, source.dtype, 1, &one, &zero};
  return index_update(at_least_1d(x, one, zero), dim, index->span(), source, how, wrap);
}

// index_add(x, index, source; dim, alpha)
PyObject* index_add_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *x = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1),
         *source = tensor_argument(op, args, 2);
  int dim = dim_argument(args[3], x);
  TensorRef index = check_index_add("index_add_", x, dim, given, source);
  Scalar alpha = scalar_argument(args[4], "index_add", "alpha");
  TensorRef result = changed_copy(x, out), added = apart_from(source, out);
  index = apart_from(index.get(), out);
  if (x->is_meta()) return result.release_object();
  if (alpha.kind == Scalar::complex_ || alpha.real_value() != 1) {
    static Primitive& mul = primitive("mul");
    alignas(16) char element[16];
    store_checked(alpha, x->dtype, element);
    Ref<PyObject> factor(load(x->dtype, element).to_python());
    PyObject* scaled[] = {added->object(), factor.get()};
    added = TensorRef(as_tensor(mul.forward(mul, scaled, nullptr)));
    if (!added) throw PythonError{};
  }
  // Few rows of a large table are not worth a copy of it.
  bool widen = is_reduced(x->dtype) && added->numel >= x->numel / 16;
  TensorRef into = widen ? cast(x, DType::f32) : result;
  if (widen) added = cast(added.get(), DType::f32);
  if (IndexFault fault = update_along(into.get(), dim, index.get(), added->span(), IndexOp::add, false)) {
    if (x->ndim <= 1) fail(PyExc_IndexError, "index out of range in self");
    fail_range(PyExc_RuntimeError, fault);
  }
  if (widen) copy_into(result.get(), into.get());
  return result.release_object();
}

// index_copy(x, index, source; dim)
PyObject* index_copy_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *x = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1),
         *source = tensor_argument(op, args, 2);
  int dim = dim_argument(args[3], x);
  check_same_devices("index_copy", x, given, source);
  if (given->ndim > 1) {
    failf(PyExc_IndexError, "index_copy_(): Index should have dimension 1 or 0 (got %d)", given->ndim);
  }
  if (source->ndim == 0 && given->numel != 1) {
    failf(PyExc_IndexError, "index_copy_(): When source is scalar, index should have one element (got %lld)",
          (long long)given->numel);
  }
  if (source->ndim != x->ndim && source->ndim && x->ndim) {
    failf(
        PyExc_IndexError,
        "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
        "dimensionality (%d), destination dimensionality (%d)",
        source->ndim, x->ndim);
  }
  TensorRef index = long_index(given, false, PyExc_RuntimeError,
                               "index_copy_(): Expected a long tensor for index, but got %s",
                               dtype_class_name(given->dtype));
  if (x->dtype != source->dtype) {
    failf(PyExc_RuntimeError,
          "index_copy_(): self and source expected to have the same dtype, but got (self) %s and (source) %s",
          dtype_class_name(x->dtype), dtype_class_name(source->dtype));
  }
  auto slice_text = [&](const Tensor* t) {
    std::string text;
    for (int d = 0; d < t->ndim; d++) {
      if (d != dim) text.append(text.empty() ? "" : " ").append(std::to_string(t->size(d)));
    }
    return text;
  };
  bool same = true;
  int64_t outside_x = 1, outside_source = 1;
  for (int d = 0; d < x->ndim; d++) outside_x *= d == dim ? 1 : x->size(d);
  for (int d = 0; d < source->ndim; d++) {
    outside_source *= d == dim ? 1 : source->size(d);
    same = same && (d == dim || d >= x->ndim || source->size(d) == x->size(d));
  }
  if (!same || outside_x != outside_source) {
    failf(PyExc_RuntimeError,
          "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: %s "
          "at "
          "dimension %d and source slice shape: %s at dimension 0.",
          slice_text(x).c_str(), dim, slice_text(source).c_str());
  }
  if (source->ndim && index->numel != source->size(dim)) {
    failf(PyExc_IndexError,
          "index_copy_(): Number of indices (%lld) should be equal to source.size(dim) (%lld)",
          (long long)index->numel, (long long)source->size(dim));
  }
  TensorRef result = changed_copy(x, out), from = apart_from(source, out);
  index = apart_from(index.get(), out);
  if (x->is_meta()) return result.release_object();
  Span values = from->span();
  Shape ones;
  const int64_t zeros[MAX_DIMS] = {};
  if (values.ndim == 0 && x->ndim > 1) {  // a lone number into a tensor of one-element slices
    for (int d = 0; d < x->ndim; d++) ones.sizes[d] = 1;
    values = {values.data, values.dtype, x->ndim, ones.sizes, zeros};
  }
  if (IndexFault fault = update_along(result.get(), dim, index.get(), values, IndexOp::assign, false)) {
    fail_range(PyExc_IndexError, fault, "index_copy_(): ");
  }
  return result.release_object();
}

// index_fill(x, index, value; dim)
PyObject* index_fill_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *x = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1);
  check_same_device(x, given);
  alignas(16) char value[16];
  Scalar number;
  if (is_tensor(args[2])) {
    Tensor* t = as_tensor(args[2]);
    if (t->ndim) {
      failf(PyExc_RuntimeError,
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
            t->ndim);
    }
    check_same_device(x, t);
    if (!x->is_meta()) number = item(t);
  } else {
    number = scalar_argument(args[2], "index_fill", "value");
  }
  TensorRef index =
      long_index(given, false, PyExc_IndexError, "index_fill_(): Expected dtype int64 for index.");
  if (number.kind == Scalar::complex_ && !is_complex(x->dtype)) {
    fail(PyExc_RuntimeError, "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  }
  int dim = dim_argument(args[3], x);
  if (given->ndim > 1) fail(PyExc_RuntimeError, "Index has to be a vector/scalar");
  if (is_tensor(args[2])) number.store(x->dtype, value);
  else store_checked(number, x->dtype, value);
  TensorRef result = out ? changed_copy(x, out) : clone(x);
  index = apart_from(index.get(), out);
  if (x->is_meta()) return result.release_object();
  Shape shape;
  shape.assign(x->sizes());
  if (x->ndim) shape.sizes[dim] = index->numel;
  else shape.assign(Sizes(&index->numel, 1));
  const int64_t zeros[MAX_DIMS] = {};
  Span everywhere = {value, x->dtype, shape.ndim, shape.sizes, zeros};
  if (IndexFault fault = update_along(result.get(), dim, index.get(), everywhere, IndexOp::assign, true)) {
    fail_range(PyExc_IndexError, fault);
  }
  return result.release_object();
}

// index_reduce(x, index, source; dim, reduce, include_self)
PyObject* index_reduce_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *x = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1),
         *source = tensor_argument(op, args, 2);
  Reduction reduction = reduction_argument(args[4], x->dtype, "index_reduce", false);
  int dim = dim_argument(args[3], x);
  TensorRef index = check_index_add("index_reduce_", x, dim, given, source);
  TensorRef result = changed_copy(x, out), from = apart_from(source, out);
  index = apart_from(index.get(), out);
  if (x->is_meta()) return result.release_object();
  IndexFault fault;
  {
    MaybeNoGil unlocked(from->numel);
    const int64_t one = 1, zero = 0;
    fault = index_reduce(at_least_1d(result.get(), one, zero), dim, index->span(),
                         at_least_1d(from.get(), one, zero), reduction, args[5] != Py_True);
  }
  if (fault && x->ndim > 1 && x->size(dim) == 0) {
    failf(PyExc_IndexError, "select(): index 0 out of range for tensor of size %s at dimension %d",
          sizes_text(x->sizes()).c_str(), dim);
  }
  if (fault) fail(PyExc_IndexError, "index out of range in self");
  return result.release_object();
}

// ---- flat addressing

[[noreturn]] void fail_flat(const IndexFault& fault) {
  failf(PyExc_IndexError, "out of range: tried to access index %lld on a tensor of %lld elements.",
        (long long)fault.index, (long long)fault.size);
}

TensorRef flat_index(const char* name, Tensor* index) {
  return long_index(index, false, PyExc_RuntimeError, "%s(): Expected a long tensor for index, but got %s",
                    name, dtype_class_name(index->dtype));
}

// take(x, index)
PyObject* take_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_argument(op, args, 0), *index = tensor_argument(op, args, 1);
  check_same_device(x, index);
  flat_index("take", index);
  if (x->numel == 0 && index->numel) fail(PyExc_IndexError, "take(): tried to take from an empty tensor");
  TensorRef result = new_tensor(index->sizes(), x->dtype, x->device());
  if (x->is_meta()) return result.release_object();
  IndexFault fault;
  {
    MaybeNoGil unlocked(index->numel);
    fault = take(result->span(), x->span(), index->span());
  }
  if (fault) fail_flat(fault);
  return result.release_object();
}

// put(x, index, source; accumulate)
PyObject* put_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *x = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1),
         *source = tensor_argument(op, args, 2);
  check_same_device(x, given);
  check_same_device(x, source);
  flat_index("put_", given);
  if (x->dtype != source->dtype) {
    failf(PyExc_RuntimeError,
          "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype "
          "= %s",
          dtype_class_name(x->dtype), dtype_class_name(source->dtype));
  }
  if (given->numel != source->numel) {
    failf(PyExc_IndexError,
          "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
          "%lld, "
          "index.numel() = %lld",
          (long long)source->numel, (long long)given->numel);
  }
  if (x->numel == 0 && given->numel)
    fail(PyExc_IndexError, "put_(): Tried to put elements into an empty tensor");
  TensorRef result = out ? changed_copy(x, out) : clone(x);
  if (x->is_meta()) return result.release_object();
  // Both in row-major order, as vectors of one length.
  TensorRef index = contiguous(apart_from(given, out).get()),
            from = contiguous(apart_from(source, out).get());
  IndexFault fault;
  {
    MaybeNoGil unlocked(index->numel);
    const int64_t n = index->numel, step = 1;
    fault = put(result->span(), Span{index->data(), DType::i64, 1, &n, &step},
                Span{from->data(), from->dtype, 1, &n, &step}, args[3] == Py_True);
  }
  if (fault) fail_flat(fault);
  return result.release_object();
}

// ---- rows of a table

// What torch calls a kind of tensor here: its older dtypes have types of their own in Python.
std::string legacy_name(DType dtype) {
  bool older = !is_rare(dtype) && !is_complex(dtype) && dtype != DType::b1 && dtype != DType::bf16;
  return older ? "torch." + std::string(dtype_class_name(dtype)) + "Tensor"
               : "CPU" + std::string(dtype_class_name(dtype)) + "Type";
}

// embedding(weight, index; padding_idx, scale): the last two only matter to the derivative.
PyObject* embedding_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *weight = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1);
  if (!weight->ndim && modes.grad && weight->requires_grad())  // torch saves the number of rows first
    fail(PyExc_IndexError, "Dimension specified as 0 but tensor has no dimensions");
  if (weight->ndim != 2) fail(PyExc_RuntimeError, "'weight' must be 2-D");
  check_same_device(weight, given);
  TensorRef index =
      long_index(given, true, PyExc_RuntimeError,
                 "Expected tensor for argument #1 'indices' to have one of the following "
                 "scalar types: Long, Int; but got %s instead (while checking arguments for embedding)",
                 given->dtype == DType::i64 ? "" : legacy_name(given->dtype).c_str());
  index = contiguous(index.get());
  Shape shape;
  shape.assign(index->sizes());
  shape.append(weight->size(1));
  TensorRef result = new_tensor(shape, weight->dtype, weight->device());
  if (weight->is_meta()) return result.release_object();
  if (index->numel && weight->size(0) == 0)
    fail(PyExc_RuntimeError, "index_select(): self indexing axis dim should be positive");
  IndexFault fault;
  {
    MaybeNoGil unlocked(result->numel);
    const int64_t n = index->numel, step = 1, sizes[] = {n, weight->size(1)},
                  strides[] = {weight->size(1), 1};
    fault = index_select(Span{result->data(), weight->dtype, 2, sizes, strides}, weight->span(), 0,
                         Span{index->data(), DType::i64, 1, &n, &step});
  }
  if (fault) {
    failf(PyExc_IndexError,
          "index out of range in self\n\nThe index %lld is not in the table: it has %lld rows, so indices go "
          "from 0 "
          "to %lld.",
          (long long)fault.index, (long long)fault.size, (long long)fault.size - 1);
  }
  return result.release_object();
}

// embedding_backward(g, index; rows, padding_idx, scale): rows of g added up in a table of zeros. `scale`
// divides each row by how often its index occurs; the row padding_idx stays zero.
PyObject* embedding_backward_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *g = tensor_argument(op, args, 0), *given = tensor_argument(op, args, 1);
  int64_t rows = read_int(args[2]), padding = read_int(args[3]);
  if (g->ndim < 1 || rows < 0) fail(PyExc_RuntimeError, "embedding_backward: bad gradient");
  int64_t width = g->size(g->ndim - 1);
  int64_t sizes[] = {rows, width};
  TensorRef table = zeros(sizes, g->dtype, g->device());
  if (g->is_meta()) return table.release_object();
  TensorRef index = contiguous(cast(given, DType::i64).get()), dense = contiguous(g);
  if (dense->numel != index->numel * width) fail(PyExc_RuntimeError, "embedding_backward: bad gradient");
  IndexFault fault;
  {
    MaybeNoGil unlocked(dense->numel);
    const int64_t n = index->numel, step = 1, row_sizes[] = {n, width}, strides[] = {width, 1};
    Span at = {index->data(), DType::i64, 1, &n, &step};
    fault = args[4] == Py_True
                ? index_reduce(table->span(), 0, at, Span{dense->data(), g->dtype, 2, row_sizes, strides},
                               Reduction::mean, true)
                : index_update(table->span(), 0, at, Span{dense->data(), g->dtype, 2, row_sizes, strides},
                               IndexOp::add);
    if (!fault && padding >= 0 && padding < rows) {
      std::memset(table->data() + padding * width * table->itemsize(), 0, size_t(width * table->itemsize()));
    }
  }
  if (fault) fail(PyExc_IndexError, "index out of range in self");
  return table.release_object();
}

ModuleInit init([](PyObject*) {
  constexpr uint8_t IN_PLACE = Primitive::IN_PLACE, FOLLOWS_FIRST = Primitive::FOLLOWS_FIRST,
                    SEES_TO_DEVICES = Primitive::SEES_TO_DEVICES;
  define("gather(x, index; dim)", gather_forward, FOLLOWS_FIRST);
  define("gather_sparse(x, index; dim, sparse_grad)", gather_forward, FOLLOWS_FIRST);  // whose gradient is
  define("scatter(x, index, src; dim)", scatter_forward, IN_PLACE | FOLLOWS_FIRST);
  define("scatter_value(x, index, value; dim)", scatter_forward, IN_PLACE | SEES_TO_DEVICES);
  define("scatter_add(x, index, src; dim)", scatter_add_forward, IN_PLACE | FOLLOWS_FIRST);
  define("scatter_reduce(x, index, src; dim, reduce, include_self)", scatter_reduce_forward,
         IN_PLACE | FOLLOWS_FIRST);
  define("index_select(x, index; dim)", index_select_forward, FOLLOWS_FIRST);
  define("index_add(x, index, source; dim, alpha)", index_add_forward, IN_PLACE | SEES_TO_DEVICES);
  define("index_copy(x, index, source; dim)", index_copy_forward, IN_PLACE | SEES_TO_DEVICES);
  define("index_fill(x, index, value; dim)", index_fill_forward, IN_PLACE | SEES_TO_DEVICES);
  define("index_reduce(x, index, source; dim, reduce, include_self)", index_reduce_forward, IN_PLACE);
  define("take(x, index)", take_forward, FOLLOWS_FIRST);
  define("put(x, index, source; accumulate)", put_forward, IN_PLACE);
  define("embedding(weight, index; padding_idx, scale)", embedding_forward, FOLLOWS_FIRST);
  define("embedding_sparse(weight, index; padding_idx, scale, sparse)", embedding_forward, FOLLOWS_FIRST);
  define("embedding_backward(g, index; rows, padding_idx, scale)", embedding_backward_forward);
});

}  // namespace
}  // namespace rl
