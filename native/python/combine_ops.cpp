// Primitives that put tensors together or rearrange their elements into a new one: cat, stack, block_diag,
// flip, roll, repeat, tril, triu; and searchsorted.
#include <vector>

#include "../kernels/index_move.h"
#include "../kernels/index_walk.h"
#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
#include "index_ops.h"
#include "outputs.h"
#include "window.h"

namespace rl {
namespace {

struct TensorList {
  PyObject* list;
  Py_ssize_t size;
  explicit TensorList(PyObject* o) : list(o), size(PySequence_Fast_GET_SIZE(o)) {
    for (Py_ssize_t i = 0; i < size; i++) {
      if (!is_tensor(PySequence_Fast_GET_ITEM(o, i))) {
        failf(PyExc_TypeError, "expected Tensor as element %zd in argument 0, but got %s", i,
              Py_TYPE(PySequence_Fast_GET_ITEM(o, i))->tp_name);
      }
    }
    for (Py_ssize_t i = 1; i < size; i++) check_same_device((*this)[0], (*this)[i]);
  }
  Tensor* operator[](Py_ssize_t i) const { return as_tensor(PySequence_Fast_GET_ITEM(list, i)); }
  DType dtype() const {
    DType t = (*this)[0]->dtype;
    for (Py_ssize_t i = 1; i < size; i++) t = promote(t, (*this)[i]->dtype);
    return t;
  }
};

// Copies t to the place in `whole` that begins `start` elements in and has t's sizes under `strides`.
void put_piece(Tensor* whole, Tensor* t, Sizes strides, int64_t start) {
  if (t->numel == 0) return;
  if (t->dtype == whole->dtype) {
    MaybeNoGil unlocked(t->numel);
    move_elements(
        Span{whole->data() + start * whole->itemsize(), t->dtype, t->ndim, t->geometry, strides.data()},
        t->data(), t->geometry + t->ndim);
  } else {
    TensorRef piece = new_alias(whole, t->sizes(), strides, whole->offset + start);
    copy_into(piece.get(), t);
  }
}

// cat of contiguous tensors whose rows are long: row after row of the result, so that it is written in order
// (two of 1000 x 1000 floats along the last dimension took 1.4 times as long as torch's).
bool join_rows(Tensor* whole, const TensorList& tensors, int dim) {
  constexpr int64_t LEAST = 1024;  // bytes
  struct Piece {
    TensorRef tensor;  // the list may change meanwhile
    const char* data;
    int64_t bytes;
  };
  int64_t rows = 1;
  for (int d = 0; d < dim; d++) rows *= whole->size(d);
  if (rows < 2 || whole->numel == 0 || !whole->is_contiguous()) return false;
  std::vector<Piece> pieces;
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    Tensor* t = tensors[i];
    if (t->numel == 0) continue;
    int64_t bytes = t->numel / rows * t->itemsize();
    if (t->dtype != whole->dtype || !t->is_contiguous() || bytes < LEAST) return false;
    pieces.push_back({share(t), t->data(), bytes});
  }
  int64_t row = whole->numel / rows * whole->itemsize();
  MaybeNoGil unlocked(whole->numel);
  parallel_for(rows, GRAIN * 8 / row + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      char* to = whole->data() + r * row;
      for (const Piece& piece : pieces) {
        copy_row(to, piece.data + r * piece.bytes, size_t(piece.bytes));
        to += piece.bytes;
      }
    }
  });
  return true;
}

// cat (or stack, whose pieces are thinner) of a few contiguous tensors of one dtype: byte for byte, without
// the plans that longer moves need.
bool join_small(Tensor* whole, const TensorList& tensors, int dim) {
  constexpr int64_t MOST = 4096;  // bytes
  const int64_t bytes = whole->numel * whole->itemsize();
  if (bytes == 0 || bytes > MOST || !whole->is_contiguous()) return false;
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    if (tensors[i]->dtype != whole->dtype || !tensors[i]->is_contiguous()) return false;
  }
  int64_t rows = 1;
  for (int d = 0; d < dim; d++) rows *= whole->size(d);
  const int64_t row = bytes / rows;
  char* to = whole->data();
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    const Tensor* t = tensors[i];
    const int64_t part = t->numel * t->itemsize() / rows;
    const char* from = t->data();
    for (int64_t r = 0; r < rows; r++) std::memcpy(to + r * row, from + r * part, size_t(part));
    to += part;
  }
  return true;
}

// Whether the second dimension is the one that varies fastest in memory, and the others follow in order.
bool has_channels_last(const Tensor* t) {
  if (t->is_contiguous()) return false;
  int64_t step = 1;
  for (int i = 0; i < t->ndim; i++) {
    int d = i == 0 ? 1 : i == t->ndim - 1 ? 0 : t->ndim - i;
    if (t->size(d) != 1 && t->stride(d) != step) return false;
    step *= t->size(d);
  }
  return true;
}

bool all_channels_last(const TensorList& tensors) {
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    if (tensors[i]->ndim != 4 && tensors[i]->ndim != 5) return false;
    if (!has_channels_last(tensors[i])) return false;
  }
  return true;
}

// cat(tensors[]; dim). Empty vectors are skipped, whatever the others' rank: torch's old habit.
PyObject* cat_forward(const Primitive&, PyObject* const* args, Tensor* out) {
  TensorList tensors(args[0]);
  if (tensors.size == 0) fail(PyExc_ValueError, "torch.cat(): expected a non-empty list of Tensors");
  auto skipped = [](const Tensor* t) { return t->ndim == 1 && t->size(0) == 0; };
  Py_ssize_t model_at = -1;
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    if (tensors[i]->ndim == 0) {
      failf(PyExc_RuntimeError, "zero-dimensional tensor (at position %zd) cannot be concatenated", i);
    }
    if (model_at < 0 && !skipped(tensors[i])) model_at = i;
  }
  DType dtype = tensors.dtype();
  Tensor* model = tensors[std::max<Py_ssize_t>(model_at, 0)];
  // Where every tensor is an empty vector, torch takes any dim.
  int dim = model_at < 0 ? 0 : wrap_dim(read_int(args[1]), model->ndim);
  Shape shape;
  shape.assign(model->sizes());
  int64_t length = 0;
  bool overflow = false;
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    Tensor* t = tensors[i];
    if (skipped(t)) continue;
    if (t->ndim != model->ndim) {
      failf(PyExc_RuntimeError, "Tensors must have same number of dimensions: got %d and %d", model->ndim,
            t->ndim);
    }
    for (int d = 0; d < t->ndim; d++) {
      if (d != dim && t->size(d) != model->size(d)) {
        failf(PyExc_RuntimeError,
              "Sizes of tensors must match except in dimension %d. Expected size %lld but got size %lld for "
              "tensor "
              "number %zd in the list.",
              dim, (long long)model->size(d), (long long)t->size(d), i);
      }
    }
    overflow |= __builtin_add_overflow(length, t->size(dim), &length);
  }
  shape.sizes[dim] = length;
  if (overflow) fail_overflow(shape);
  int64_t strides[MAX_DIMS];
  bool turned = !out && all_channels_last(tensors);
  turned ? channels_last_strides(shape, strides) : contiguous_strides(shape, strides);
  TensorRef result = out ? result_in(out, shape, dtype, model->device())
                         : new_strided(shape, {strides, size_t(shape.ndim)}, dtype, model->device());
  if (model->is_meta() || join_small(result.get(), tensors, dim) || join_rows(result.get(), tensors, dim))
    return result.release_object();
  int64_t start = 0;
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    if (skipped(tensors[i])) continue;
    put_piece(result.get(), tensors[i], result->strides(), start);
    start += tensors[i]->size(dim) * result->stride(dim);
  }
  return result.release_object();
}

// stack(tensors[]; dim)
PyObject* stack_forward(const Primitive&, PyObject* const* args, Tensor* out) {
  TensorList tensors(args[0]);
  if (tensors.size == 0) fail(PyExc_RuntimeError, "stack expects a non-empty TensorList");
  Tensor* model = tensors[0];
  int dim = wrap_dim(read_int(args[1]), model->ndim + 1);
  for (Py_ssize_t i = 1; i < tensors.size; i++) {
    if (!same_sizes(model, tensors[i])) {
      failf(PyExc_RuntimeError,
            "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %zd",
            sizes_text(model->sizes()).c_str(), sizes_text(tensors[i]->sizes()).c_str(), i);
    }
  }
  Shape shape;
  for (int d = 0; d < dim; d++) shape.append(model->size(d));
  shape.append(tensors.size);
  for (int d = dim; d < model->ndim; d++) shape.append(model->size(d));
  int64_t strides[MAX_DIMS];
  if (!out && dim < model->ndim && all_channels_last(tensors)) {
    // In torch this is a cat along `dim`, which keeps the format, and a view of that.
    Shape joined;
    joined.assign(model->sizes());
    if (__builtin_mul_overflow(joined.sizes[dim], tensors.size, &joined.sizes[dim]))
      fail(PyExc_RuntimeError, "stack: result too large");
    channels_last_strides(joined, strides);
    std::copy_backward(strides + dim, strides + model->ndim, strides + model->ndim + 1);
    strides[dim] *= model->size(dim);
  } else {
    contiguous_strides(shape, strides);
  }
  DType dtype = tensors.dtype();
  TensorRef result = out ? result_in(out, shape, dtype, model->device())
                         : new_strided(shape, {strides, size_t(shape.ndim)}, dtype, model->device());
  if (model->is_meta() || join_small(result.get(), tensors, dim)) return result.release_object();
  for (int d = 0; d < model->ndim; d++) strides[d] = result->stride(d < dim ? d : d + 1);
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    put_piece(result.get(), tensors[i], Sizes(strides, model->ndim), i * result->stride(dim));
  }
  return result.release_object();
}

// block_diag(tensors[]): matrices, or vectors and numbers that count as one row.
PyObject* block_diag_forward(const Primitive&, PyObject* const* args, Tensor*) {
  TensorList tensors(args[0]);
  if (tensors.size == 0) fail(PyExc_RuntimeError, "torch.block_diag: Input tensors must not be empty");
  int64_t sizes[] = {0, 0};
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    Tensor* t = tensors[i];
    if (t->ndim > 2) {
      failf(PyExc_RuntimeError,
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %zd has %d dimensions", i,
            t->ndim);
    }
    sizes[0] += t->ndim == 2 ? t->size(0) : 1;
    sizes[1] += t->ndim ? t->size(t->ndim - 1) : 1;
  }
  TensorRef result = zeros(Sizes(sizes, 2), tensors.dtype(), tensors[0]->device());
  if (result->is_meta()) return result.release_object();
  int64_t row = 0, column = 0;
  for (Py_ssize_t i = 0; i < tensors.size; i++) {
    Tensor* t = tensors[i];
    int64_t strides[] = {sizes[1], 1};
    put_piece(result.get(), t, Sizes(t->ndim == 2 ? strides : strides + 1, t->ndim), row * sizes[1] + column);
    row += t->ndim == 2 ? t->size(0) : 1;
    column += t->ndim ? t->size(t->ndim - 1) : 1;
  }
  return result.release_object();
}

// flip(x; dims)
PyObject* flip_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument(op, args, 0);
  Shape dims;
  read_sizes(args[1], dims, "flip", "dims");
  uint64_t flipped = 0;
  for (int i = 0; i < dims.ndim; i++) {
    int d = wrap_dim(dims.sizes[i], x->ndim);
    if (flipped >> d & 1) failf(PyExc_RuntimeError, "dim %d appears multiple times in the list of dims", d);
    flipped |= uint64_t(1) << d;
  }
  TensorRef result = empty_like(x, x->dtype);
  if (x->is_meta() || x->numel == 0) return result.release_object();
  int64_t strides[MAX_DIMS], start = 0;
  for (int d = 0; d < x->ndim; d++) {
    bool flip = flipped >> d & 1;
    strides[d] = flip ? -x->stride(d) : x->stride(d);
    if (flip) start += (x->size(d) - 1) * x->stride(d);
  }
  MaybeNoGil unlocked(x->numel);
  move_elements(result->span(), x->data() + start * x->itemsize(), strides);
  return result.release_object();
}

// roll(x; shifts, dims): dims as long as shifts. One copy for each combination of wrapped and unwrapped
// parts.
PyObject* roll_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument(op, args, 0);
  Shape shifts, dims;
  read_sizes(args[1], shifts, "roll", "shifts");
  read_sizes(args[2], dims, "roll", "dims");
  if (shifts.ndim != dims.ndim) {
    failf(PyExc_RuntimeError, "shifts and dimensions must align. shifts: %d, dims:%d", shifts.ndim,
          dims.ndim);
  }
  int64_t shift[MAX_DIMS] = {};
  bool parted = dims.ndim > 0;
  for (int i = 0; i < dims.ndim; i++) {
    int d = wrap_dim(dims.sizes[i], x->ndim);
    if (x->ndim == 0 || x->size(d) == 0) continue;
    int64_t s = (shift[d] + shifts.sizes[i] % x->size(d)) % x->size(d);
    shift[d] = s < 0 ? s + x->size(d) : s;
    parted &= shifts.sizes[i] % x->size(d) != 0;
  }
  // torch joins the two parts of x, which keeps images with channels last as they are if neither is empty.
  TensorRef result = parted && is_channels_last(x) ? new_channels_last(x->sizes(), x->dtype, x->device())
                                                   : new_tensor(x->sizes(), x->dtype, x->device());
  if (x->is_meta() || x->numel == 0) return result.release_object();
  int rolled[MAX_DIMS], count = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (shift[d]) rolled[count++] = d;
  }
  if (count > 20) fail(PyExc_NotImplementedError, "roll over more than 20 dimensions at once");
  MaybeNoGil unlocked(x->numel);
  if (count == 1 && rolled[0] == x->ndim - 1 && x->is_contiguous()) {
    // Both parts of a line together: a narrow part of all lines at once is one cache line for each element.
    int64_t size = x->itemsize(), line = x->size(x->ndim - 1) * size, moved = shift[rolled[0]] * size;
    parallel_for(x->numel * size / line, GRAIN * 8 / line + 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * line; at < end * line; at += line) {
        copy_row(result->data() + at, x->data() + at + line - moved, size_t(moved));
        copy_row(result->data() + at + moved, x->data() + at, size_t(line - moved));
      }
    });
    return result.release_object();
  }
  for (int64_t part = 0; part < int64_t(1) << count; part++) {
    int64_t sizes[MAX_DIMS], from = 0, to = 0;
    std::copy_n(x->geometry, x->ndim, sizes);
    for (int i = 0; i < count; i++) {
      int d = rolled[i];
      bool wrapped = part >> i & 1;  // the last `shift` elements move to the front
      sizes[d] = wrapped ? shift[d] : x->size(d) - shift[d];
      from += wrapped ? (x->size(d) - shift[d]) * x->stride(d) : 0;
      to += wrapped ? 0 : shift[d] * result->stride(d);
    }
    Span out = {result->data() + to * x->itemsize(), x->dtype, x->ndim, sizes, result->geometry + x->ndim};
    move_elements(out, x->data() + from * x->itemsize(), x->geometry + x->ndim);
  }
  return result.release_object();
}

// repeat(x; repeats): each dimension read as (repeat, size), the repeat with stride 0.
PyObject* repeat_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument(op, args, 0);
  Shape repeats, shape;
  read_sizes(args[1], repeats, "repeat", "repeats");
  int shift = repeats.ndim - x->ndim;
  if (shift < 0) {
    fail(PyExc_RuntimeError,
         "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  }
  shape.resize(size_t(repeats.ndim));
  bool overflow = false;
  for (int d = 0; d < repeats.ndim; d++) {
    int64_t size = d < shift ? 1 : x->size(d - shift);
    overflow |= __builtin_mul_overflow(size, repeats.sizes[d], &shape.sizes[d]);
  }
  if (overflow) fail_overflow(shape);
  TensorRef result = new_tensor(shape, x->dtype, x->device());
  if (x->is_meta() || result->numel == 0) return result.release_object();
  int64_t sizes[2 * MAX_DIMS], out_strides[2 * MAX_DIMS], in_strides[2 * MAX_DIMS];
  int n = 0;
  for (int d = 0; d < repeats.ndim; d++) {
    int64_t size = d < shift ? 1 : x->size(d - shift), step = result->stride(d);
    if (repeats.sizes[d] != 1) {
      sizes[n] = repeats.sizes[d];
      out_strides[n] = size * step;
      in_strides[n++] = 0;
    }
    if (size != 1) {
      sizes[n] = size;
      out_strides[n] = step;
      in_strides[n++] = x->stride(d - shift);
    }
  }
  if (n > MAX_DIMS) fail(PyExc_NotImplementedError, "repeat: more than 64 dimensions and repeats together");
  MaybeNoGil unlocked(result->numel);
  move_elements(Span{result->data(), x->dtype, n, sizes, out_strides}, x->data(), in_strides);
  return result.release_object();
}

// tril(x; diagonal) and triu(x; diagonal)
PyObject* triangle_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor* x = tensor_argument(op, args, 0);
  if (x->ndim < 2) {
    failf(PyExc_RuntimeError, "%s: input tensor must have at least 2 dimensions", op.name.c_str());
  }
  // Beyond the matrix all diagonals are alike; clamping keeps row + k from overflowing.
  int64_t reach = std::max(x->size(x->ndim - 1), x->size(x->ndim - 2)) + 1;
  int64_t k = std::clamp<int64_t>(read_int(args[1]), -reach, reach);
  if (out && !out->is_meta()) check_writable(out);
  TensorRef result = out ? share(out) : new_tensor(x->sizes(), x->dtype, x->device());
  if (x->is_meta() || x->numel == 0) return result.release_object();
  MaybeNoGil unlocked(x->numel);
  triangle(result->span(), x->span(), k, op.name == "triu");
  return result.release_object();
}

// searchsorted(sorted, values, sorter; right): sorter a tensor or None. Gives int64.
PyObject* searchsorted_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *given = tensor_argument(op, args, 0), *given_values = tensor_argument(op, args, 1);
  check_same_device(given, given_values);
  TensorRef sorter;
  if (args[2] != Py_None) {
    Tensor* order = tensor_argument(op, args, 2);
    check_same_device(given, order);
    if (!same_sizes(order, given)) {
      fail(PyExc_RuntimeError,
           "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor " +
               sizes_text(given->sizes()) + "and got sorter tensor " + sizes_text(order->sizes()));
    }
    if (order->dtype != DType::i64) {
      failf(PyExc_RuntimeError,
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s",
            dtype_class_name(order->dtype));
    }
    sorter = stable(order);
    int64_t n = given->ndim ? given->size(given->ndim - 1) : 1;
    for (int64_t i = 0; i < sorter->numel; i++) {
      int64_t at = sorter->data_as<int64_t>()[i];
      if (at < 0 || at >= n) fail(PyExc_RuntimeError, "torch.searchsorted(): sorter index out of range");
    }
  }
  if (given_values->ndim == 0 && given->ndim != 1) {
    failf(PyExc_RuntimeError,
          "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but "
          "we got boundaries tensor dim(%d) and input value's dim(0) numel(1)",
          given->ndim);
  }
  if (given->ndim == 0) {
    fail(PyExc_RuntimeError,
         "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  }
  if (given->ndim > 1) {
    bool fits = given->ndim == given_values->ndim;
    for (int d = 0; fits && d + 1 < given->ndim; d++) fits = given->size(d) == given_values->size(d);
    if (!fits) {
      fail(PyExc_RuntimeError,
           "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
           "boundaries "
           "tensor and input value tensor must match, but we got boundaries tensor " +
               sizes_text(given->sizes()) + " and input value tensor " + sizes_text(given_values->sizes()));
    }
  }
  Promotion promotion;
  promotion.add(given);
  promotion.add(given_values);
  DType common = promotion.result();
  if (!given_values->numel)
    return new_tensor(given_values->sizes(), DType::i64, given->device()).release_object();
  if (is_complex(common) || common == DType::b1) {
    failf(PyExc_NotImplementedError, "\"searchsorted_out_cpu\" not implemented for '%s'",
          dtype_class_name(common));
  }
  TensorRef result = new_tensor(given_values->sizes(), DType::i64, given->device());
  if (given->is_meta()) return result.release_object();
  TensorRef sorted = contiguous(cast(given, common).get()),
            values = contiguous(cast(given_values, common).get());
  MaybeNoGil unlocked(values->numel);
  searchsorted(result->span(), sorted->span(), values->span(), sorter ? sorter->data_as<int64_t>() : nullptr,
               args[3] == Py_True);
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("cat(tensors[]; dim)", cat_forward, Primitive::WRITES_OUT);
  define("stack(tensors[]; dim)", stack_forward, Primitive::WRITES_OUT);
  define("block_diag(tensors[])", block_diag_forward);
  define("flip(x; dims)", flip_forward);
  define("roll(x; shifts, dims)", roll_forward);
  define("repeat(x; repeats)", repeat_forward);
  define("tril(x; diagonal)", triangle_forward, Primitive::IN_PLACE);
  define("triu(x; diagonal)", triangle_forward, Primitive::IN_PLACE);
  define("searchsorted(sorted, values, sorter; right)", searchsorted_forward);
});

}  // namespace
}  // namespace rl
