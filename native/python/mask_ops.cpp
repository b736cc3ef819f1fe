// The primitives about masks: nonzero, masked_select, masked_fill, masked_scatter.
#include "../tensor/iterate.h"
#include "index_ops.h"

namespace rl {
namespace {

Shape broadcast_shape(const Tensor* a, const Tensor* b) {
  Shape shape;
  shape.assign(a->sizes());
  broadcast_into(shape, b->sizes());
  return shape;
}

// t read with the sizes of `shape`.
struct Broadcast {
  int64_t strides[MAX_DIMS];
  Span span;
  Broadcast(const Tensor* t, const Shape& shape) {
    broadcast_strides(t, shape, strides);
    span = {t->data(), t->dtype, shape.ndim, shape.sizes, strides};
  }
  Broadcast(const Broadcast&) = delete;
};

void check_shape_in_place(const Tensor* out, const Shape& shape) {
  if (out->ndim == shape.ndim && std::equal(shape.sizes, shape.sizes + shape.ndim, out->geometry)) return;
  fail(PyExc_RuntimeError, "output with shape " + sizes_text(out->sizes()) +
                               " doesn't match the broadcast shape " + sizes_text(shape));
}

// The tensor to write: x itself, or a copy of x broadcast to `shape`.
TensorRef broadcast_copy(Tensor* x, const Shape& shape, Tensor* out) {
  if (out) {
    check_shape_in_place(out, shape);
    if (!out->is_meta()) check_writable(out);
    return share(out);
  }
  int64_t strides[MAX_DIMS];
  broadcast_strides(x, shape, strides);
  TensorRef wide = new_alias(x, shape, Sizes(strides, size_t(shape.ndim)), x->offset);
  TensorRef result = new_tensor(shape, x->dtype, x->device());
  copy_into(result.get(), wide.get());
  return result;
}

// nonzero(x)
PyObject* nonzero_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument(op, args, 0);
  if (x->is_meta()) {
    fail(PyExc_NotImplementedError,
         "nonzero: the number of nonzero elements is not known on the meta device");
  }
  int64_t count;
  {
    MaybeNoGil unlocked(x->numel);
    count = count_nonzero(x->span());
  }
  // Column by column in memory, as torch lays it out: each column is an index tensor.
  int64_t sizes[] = {count, x->ndim}, strides[] = {1, std::max<int64_t>(count, 1)};
  TensorRef result = count && x->ndim ? new_strided(Sizes(sizes, 2), Sizes(strides, 2), DType::i64)
                                      : new_tensor(Sizes(sizes, 2), DType::i64);
  MaybeNoGil unlocked(x->numel);
  if (count && x->ndim) nonzero(result->data_as<int64_t>(), count, x->span(), 1, count);
  return result.release_object();
}

// masked_select(x, mask)
PyObject* masked_select_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_argument(op, args, 0), *mask = tensor_argument(op, args, 1);
  check_same_device(x, mask);
  if (mask->dtype != DType::b1) fail(PyExc_RuntimeError, "masked_select: expected BoolTensor for mask");
  if (x->is_meta())
    fail(PyExc_NotImplementedError, "masked_select: the result's size is not known on the meta device");
  Shape shape = broadcast_shape(mask, x);
  Broadcast from(x, shape), where(mask, shape);
  int64_t count = count_nonzero(where.span);
  TensorRef result = new_tensor(Sizes(&count, 1), x->dtype);
  MaybeNoGil unlocked(from.span.numel());
  masked_select(result->data(), count, from.span, where.span);
  return result.release_object();
}

// masked_select_backward(g, mask; shape): zeros of `shape` with the elements of g where the mask is set.
PyObject* masked_select_backward_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *g = tensor_argument(op, args, 0), *mask = tensor_argument(op, args, 1);
  Shape shape;
  read_sizes(args[2], shape, "masked_select_backward", "shape");
  broadcast_into(shape, mask->sizes());
  TensorRef whole = zeros(shape, g->dtype, g->device());
  if (whole->is_meta()) return whole.release_object();
  Broadcast where(mask, shape);
  TensorRef dense = contiguous(g);
  if (count_nonzero(where.span) != dense->numel)
    fail(PyExc_RuntimeError, "masked_select_backward: bad gradient");
  masked_scatter(whole->span(), where.span, dense->data(), dense->numel);
  return whole.release_object();
}

// masked_fill(x, mask, value)
PyObject* masked_fill_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *x = tensor_argument(op, args, 0), *mask = tensor_argument(op, args, 1);
  Tensor* t = is_tensor(args[2]) ? as_tensor(args[2]) : nullptr;
  if (t && t->ndim) {
    failf(PyExc_RuntimeError,
          "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
          t->ndim);
  }
  check_same_device(x, mask);
  if (!out) broadcast_shape(mask, x);  // the copy is as large as both, before the mask is looked at
  if (mask->dtype != DType::b1) {
    failf(PyExc_RuntimeError, "masked_fill_ only supports boolean masks, but got mask with dtype %s",
          dtype_cpp_name(mask->dtype));
  }
  alignas(16) char value[16];
  if (t) {
    if (!x->is_meta()) store_checked(item(t), x->dtype, value);
  } else {
    store_checked(scalar_argument(args[2], "masked_fill", "value"), x->dtype, value);
  }
  Shape shape = out ? broadcast_shape(x, mask) : broadcast_shape(mask, x);  // named in torch's order
  TensorRef chosen = apart_from(mask, out), result = broadcast_copy(x, shape, out);
  if (result->is_meta()) return result.release_object();
  Broadcast where(chosen.get(), shape);
  MaybeNoGil unlocked(result->numel);
  masked_fill(result->span(), where.span, value);
  return result.release_object();
}

// masked_scatter(x, mask, source)
PyObject* masked_scatter_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor *x = tensor_argument(op, args, 0), *mask = tensor_argument(op, args, 1),
         *source = tensor_argument(op, args, 2);
  check_same_device(x, mask);
  check_same_device(x, source);
  if (x->dtype != source->dtype) {
    failf(PyExc_RuntimeError, "masked_scatter: expected self and source to have same dtypes but got%s and %s",
          dtype_class_name(x->dtype), dtype_class_name(source->dtype));
  }
  if (mask->dtype != DType::b1) {
    failf(PyExc_RuntimeError, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
          dtype_class_name(mask->dtype));
  }
  Shape shape = broadcast_shape(mask, x);
  if (out) check_shape_in_place(out, shape);
  TensorRef chosen = apart_from(mask, out), from = contiguous(apart_from(source, out).get());
  if (!x->is_meta()) {
    Broadcast where(chosen.get(), shape);
    if (count_nonzero(where.span) > source->numel) {
      fail(PyExc_RuntimeError, "Number of elements of source < number of ones in mask");
    }
  }
  TensorRef result = broadcast_copy(x, shape, out);
  if (result->is_meta()) return result.release_object();
  Broadcast where(chosen.get(), shape);
  MaybeNoGil unlocked(result->numel);
  masked_scatter(result->span(), where.span, from->data(), from->numel);
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("nonzero(x)", nonzero_forward);
  define("masked_select(x, mask)", masked_select_forward);
  define("masked_select_backward(g, mask; shape)", masked_select_backward_forward);
  define("masked_fill(x, mask, value)", masked_fill_forward,
         Primitive::IN_PLACE | Primitive::SEES_TO_DEVICES);
  define("masked_scatter(x, mask, source)", masked_scatter_forward, Primitive::IN_PLACE);
});

}  // namespace
}  // namespace rl
