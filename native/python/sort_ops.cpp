// The primitives that sort or pick by rank: arguments and shapes; the loops are in kernels/sort.h.
#include "../kernels/sort.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

struct Entry {
  SortOp op;
  const char* name;
  const char* kernel;  // torch's name for the loop, which its "not implemented" sentences use
};

PyObject* run(const Entry& entry, Tensor* x, int dim, Span to, Span at, SortParams params,
              const TensorRef& values, const TensorRef& indices) {
  if (!x->is_meta()) {
    MaybeNoGil released(x->numel);
    sort_lines(entry.op, to, at, x->span(), dim, params);
  }
  return checked(PyTuple_Pack(2, values->object(), indices->object())).release();
}

// Gives `length` elements per line; where keepdim is false, the dimension goes.
PyObject* choose(const Entry& entry, Tensor* x, int dim, int64_t length, bool keepdim, SortParams params) {
  Shape full, shape;
  full.assign(x->sizes());
  if (x->ndim) full.sizes[dim] = length;
  for (int d = 0; d < x->ndim; d++) {
    if (keepdim || d != dim) shape.append(full.sizes[d]);
  }
  TensorRef values = new_tensor(shape, x->dtype, x->device()),
            indices = new_tensor(shape, DType::i64, x->device());
  int64_t strides[MAX_DIMS];
  contiguous_strides(full, strides);
  Span to{values->span().data, x->dtype, full.ndim, full.sizes, strides};
  Span at{indices->span().data, DType::i64, full.ndim, full.sizes, strides};
  return run(entry, x, dim, to, at, params, values, indices);
}

const Entry& entry_of(const Primitive& op) { return *static_cast<const Entry*>(op.payload); }

void check_real(const Entry& entry, Tensor* x) {
  if (is_complex(x->dtype)) fail_not_implemented(entry.kernel, x->dtype);
}

// sort(x; dim, descending) -> values, indices: always stable
PyObject* sort_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int dim = dim_argument(entry.name, args[1], x);
  SortParams params{0, bool_argument(entry.name, "descending", args[2])};
  if (is_complex(x->dtype)) fail(PyExc_RuntimeError, " Sort does not support complex dtypes on CPU");
  TensorRef values = empty_like(x, x->dtype), indices = empty_like(x, DType::i64);
  return run(entry, x, dim, values->span(), indices->span(), params, values, indices);
}

// topk(x; k, dim, largest, sorted) -> values, indices: the best first, where they are to be sorted
PyObject* topk_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int64_t k = int_argument(entry.name, "k", args[1]);
  int dim = dim_argument(entry.name, args[2], x);
  SortParams params{k, bool_argument(entry.name, "largest", args[3]),
                    bool_argument(entry.name, "sorted", args[4])};
  if (k < 0 || k > (x->ndim ? x->size(dim) : 1)) fail(PyExc_RuntimeError, "selected index k out of range");
  if (is_complex(x->dtype)) fail(PyExc_RuntimeError, " topk does not support complex dtypes on CPU");
  if (x->dtype == DType::b1) fail(PyExc_RuntimeError, "topk does not support bool dtypes on CPU");
  if (x->ndim == 0 && k == 0) fail(PyExc_RuntimeError, "topk(): k of a zero-dimensional tensor must be 1");
  return choose(entry, x, dim, k, true, params);
}

// kthvalue(x; k, dim, keepdim) -> values, indices
PyObject* kthvalue_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  SortParams params{int_argument(entry.name, "k", args[1]), false};
  int dim = dim_argument(entry.name, args[2], x);
  bool keepdim = bool_argument(entry.name, "keepdim", args[3]);
  int64_t length = x->ndim ? x->size(dim) : 1;
  if (length == 0) {
    failf(PyExc_IndexError, "%s(): Expected reduction dim %d to have non-zero size.",
          entry.op == SortOp::nanmedian ? "median" : entry.name, dim);
  }
  if (params.k < 1 || params.k > length) {
    failf(PyExc_RuntimeError, "kthvalue(): selected number k out of range for dimension %d", dim);
  }
  if (!x->ndim && (is_complex(x->dtype) || x->dtype == DType::b1)) return itself_at_zero(x);
  check_real(entry, x);
  if (x->dtype == DType::b1) fail_not_implemented(entry.kernel, x->dtype);
  return choose(entry, x, dim, 1, keepdim, params);
}

// median_dim(x; dim, keepdim) -> values, indices; nanmedian_dim, mode
PyObject* choose_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  int dim = dim_argument(entry.name, args[1], x);
  bool keepdim = bool_argument(entry.name, "keepdim", args[2]);
  if (x->ndim && x->size(dim) == 0) {
    failf(PyExc_IndexError, "%s(): Expected reduction dim %d to have non-zero size.",
          entry.op == SortOp::nanmedian ? "median" : entry.name, dim);
  }
  if (!x->ndim && is_complex(x->dtype) && entry.op == SortOp::mode) return itself_at_zero(x);
  check_real(entry, x);
  if (x->dtype == DType::b1 && entry.op != SortOp::mode) {
    fail_not_implemented(entry.kernel, x->dtype);
  }
  return choose(entry, x, dim, 1, keepdim, {});
}

// median(x), nanmedian(x): of all elements; of none it is NaN, or what that is as an integer
PyObject* median_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& entry = entry_of(op);
  Tensor* x = tensor_argument(entry.name, args[0]);
  if (x->numel == 0) {
    TensorRef result = new_tensor({}, x->dtype, x->device());
    Scalar value;
    value.kind = is_integral(x->dtype) ? Scalar::integer : Scalar::floating;
    value.d = NAN;
    value.i = x->dtype == DType::i64 ? INT64_MIN : x->dtype == DType::i32 ? INT32_MIN : 0;
    alignas(16) char element[16];
    value.store(x->dtype, element);
    if (!result->is_meta()) fill(result.get(), element);
    return result.release_object();
  }
  check_real(entry, x);
  if (x->dtype == DType::b1) fail_not_implemented(entry.kernel, x->dtype);
  TensorRef dense = contiguous(x);
  int64_t stride = 1;
  TensorRef flat = new_alias(dense.get(), Sizes(&dense->numel, 1), Sizes(&stride, 1), dense->offset);
  Ref<PyObject> both(choose(entry, flat.get(), 0, 1, false, {}));
  return Py_NewRef(PyTuple_GET_ITEM(both.get(), 0));
}

ModuleInit init([](PyObject*) {
  static const Entry sort{SortOp::sort, "sort", "sort_stable"}, topk{SortOp::topk, "topk", "topk_cpu"},
      kthvalue{SortOp::kthvalue, "kthvalue", "kthvalue_cpu"}, median{SortOp::median, "median", "median_cpu"},
      median_dim{SortOp::median, "median", "median_out"},
      nanmedian_dim{SortOp::nanmedian, "nanmedian", "median_out"},
      nanmedian{SortOp::nanmedian, "nanmedian", "median_cpu"}, mode{SortOp::mode, "mode", "mode_cpu"};
  define("sort(x; dim, descending) -> values, indices", sort_forward, 0, &sort);
  define("topk(x; k, dim, largest, sorted) -> values, indices", topk_forward, 0, &topk);
  define("kthvalue(x; k, dim, keepdim) -> values, indices", kthvalue_forward, 0, &kthvalue);
  define("median(x)", median_forward, 0, &median);
  define("nanmedian(x)", median_forward, 0, &nanmedian);
  define("median_dim(x; dim, keepdim) -> values, indices", choose_forward, 0, &median_dim);
  define("nanmedian_dim(x; dim, keepdim) -> values, indices", choose_forward, 0, &nanmedian_dim);
  define("mode(x; dim, keepdim) -> values, indices", choose_forward, 0, &mode);
});

}  // namespace
}  // namespace rl
