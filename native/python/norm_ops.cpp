// layer_norm and rms_norm, their gradients, and what all normalisations share.
//
// The last `n` dimensions are the normalised rows. A gradient is a primitive of its own, which computes what
// the rule asks for (`affine`: the parameters' gradients too) and returns empty tensors for the rest; its
// derivative is in rushlight/ops/norm.py. Statistics are kept in the compute type whatever the type of x.
#include "norm_ops.h"

#include "../kernels/elementwise.h"
#include "devices.h"
#include "window.h"

namespace rl {

const NormLoops& norm_loops() {
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = !std::strcmp(cpu_capability(), "AVX2");
  if (has_avx2) return avx2::norm_loops;
#endif
  return baseline::norm_loops;
}

bool check_mixed_types(const Tensor* x, std::initializer_list<const Tensor*> parameters) {
  // The first parameter there is tells torch whether the types are mixed.
  auto first = std::ranges::find_if(parameters, [](const Tensor* p) { return p; });
  bool mixed = first != parameters.end() && (*first)->dtype != x->dtype;
  for (const Tensor* p : parameters) {
    if (mixed && p && p->dtype != DType::f32) {
      fail(PyExc_RuntimeError, "mixed dtype (CPU): expect parameter to have scalar type of Float");
    }
  }
  if (mixed && x->dtype != DType::f16 && x->dtype != DType::bf16) {
    fail(PyExc_RuntimeError, "mixed dtype (CPU): all inputs must share same datatype.");
  }
  return mixed;
}

void check_norm_types(const char* kernel, const Tensor* x, std::initializer_list<const Tensor*> parameters) {
  bool mixed = check_mixed_types(x, parameters);
  if (!is_floating(x->dtype)) fail_not_implemented(kernel, x->dtype);
  for (const Tensor* p : parameters) {
    if (!mixed && p && p->dtype != x->dtype) {
      failf(PyExc_RuntimeError, "expected scalar type %s but found %s", dtype_class_name(x->dtype),
            dtype_class_name(p->dtype));
    }
  }
}

void check_devices(const Tensor* x, std::initializer_list<const Tensor*> others) {
  for (const Tensor* t : others) {
    if (t && !(t->device() == x->device())) fail_devices(x->device(), t->device());
  }
}

void store_numbers(DType dtype, void* to, const double* from, int64_t n) {
  if (dtype == DType::f64) std::copy_n(from, n, static_cast<double*>(to));
  else std::transform(from, from + n, static_cast<float*>(to), [](double v) { return float(v); });
}

void run_norm_rows(const NormRows& task, int64_t rows) {
  MaybeNoGil released(rows * task.n);
  int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(task.n, 1));
  const NormLoops& loops = norm_loops();
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) { loops.rows(task, begin, end); });
}

void run_norm_rows_backward(const NormRowsBackward& task, int64_t rows, Tensor* dw, Tensor* db) {
  const NormLoops& loops = norm_loops();
  int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(task.n, 1));
  if (!dw) {
    MaybeNoGil released(rows * task.n);
    parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      loops.rows_backward(task, begin, end, nullptr, nullptr);
    });
    return;
  }
  // Parts of the parameters' gradients are gathered over few rows, then over all rows of a share, then over
  // shares. The division into shares follows from the sizes alone, so the number of threads never changes a
  // result.
  int64_t width = task.groups * task.n, few = 32 * task.groups;
  int64_t share_rows = std::max(few, (rows / 16 + grain) / few * few);
  int64_t shares = (rows + share_rows - 1) / share_rows;
  int64_t size = dtype_size(norm_type(task.dtype));
  int kinds = db ? 2 : 1;
  std::vector<double> sums(size_t(shares * kinds * width));
  std::vector<char> scratch(size_t(shares * kinds * width * size));
  MaybeNoGil released(rows * task.n);
  parallel_for(shares, std::max<int64_t>(1, grain / share_rows), [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; s++) {
      double* sum = sums.data() + s * kinds * width;
      char* part = scratch.data() + s * kinds * width * size;
      int64_t end = std::min(rows, (s + 1) * share_rows);
      for (int64_t r = s * share_rows; r < end; r += few) {
        std::memset(part, 0, size_t(kinds * width * size));
        loops.rows_backward(task, r, std::min(end, r + few), part, db ? part + width * size : nullptr);
        if (task.dtype == DType::f64) {
          for (int64_t i = 0; i < kinds * width; i++) sum[i] += reinterpret_cast<double*>(part)[i];
        } else {
          for (int64_t i = 0; i < kinds * width; i++) sum[i] += double(reinterpret_cast<float*>(part)[i]);
        }
      }
    }
  });
  for (int64_t s = 1; s < shares; s++) {
    for (int64_t i = 0; i < kinds * width; i++) sums[size_t(i)] += sums[size_t(s * kinds * width + i)];
  }
  if (!shares) sums.assign(size_t(kinds * width), 0);
  store_numbers(dw->dtype, dw->data(), sums.data(), width);
  if (db) store_numbers(db->dtype, db->data(), sums.data() + width, width);
}

namespace {

// The last dimensions of a tensor as rows of n elements.
struct Rows {
  int64_t n = 1, count = 1;
  Shape statistics;  // shape of the means: 1 where normalised

  Rows(const Tensor* x, int dims) {
    statistics.assign(x->sizes());
    for (int d = 0; d < x->ndim; d++) {
      if (d >= x->ndim - dims) {
        n *= x->size(d);
        statistics.sizes[d] = 1;
      } else {
        count *= x->size(d);
      }
    }
  }
};

int check_normalized_shape(const char* function, Tensor* x, PyObject* o, Tensor* weight, Tensor* bias) {
  Shape shape;
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    failf(PyExc_TypeError, "%s(): argument 'normalized_shape' (position 2) must be tuple of ints, not %s",
          function, Py_TYPE(o)->tp_name);
  }
  read_sizes(o, shape, function, "normalized_shape");
  if (shape.ndim < 1) {
    fail(PyExc_RuntimeError,
         "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but "
         "got "
         "normalized_shape = []");
  }
  std::string text = sizes_text(shape);
  auto check = [&](Tensor* p, const char* name) {
    if (p && !std::ranges::equal(p->sizes(), Sizes(shape))) {
      fail(PyExc_RuntimeError, std::string("Expected ") + name +
                                   " to be of same shape as normalized_shape, but got " + name +
                                   " of shape " + sizes_text(p->sizes()) + " and normalized_shape = " + text);
    }
  };
  check(weight, "weight");
  check(bias, "bias");
  bool rms = !std::strcmp(function, "rms_norm");
  if (rms && x->ndim < shape.ndim) {
    failf(PyExc_ValueError, "Input tensor must have at least %d dimensions, but got %d", shape.ndim, x->ndim);
  }
  if (x->ndim < shape.ndim || !std::ranges::equal(x->sizes().last(size_t(shape.ndim)), Sizes(shape))) {
    fail(PyExc_RuntimeError, "Given normalized_shape=" + text + ", expected input with shape [*" +
                                 (rms ? "" : ", ") + text.substr(1) + ", but got input of size" +
                                 sizes_text(x->sizes()));
  }
  return shape.ndim;
}

// native_layer_norm(x, weight, bias; normalized_shape, eps) -> out, mean, rstd
PyObject* layer_norm_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("layer_norm", args[0]);
  Tensor* weight = optional_tensor("layer_norm", "weight", args[1], 3);
  Tensor* bias = optional_tensor("layer_norm", "bias", args[2], 4);
  check_mixed_types(x, {weight, bias});  // before the sizes, as in torch
  int dims = check_normalized_shape("layer_norm", x, args[3], weight, bias);
  check_norm_types("LayerNormKernelImpl", x, {weight, bias});
  check_devices(x, {weight, bias});
  double eps = eps_argument("layer_norm", args[4]);
  Rows rows(x, dims);
  DType type = norm_type(x->dtype);
  TensorRef out = new_tensor(x->sizes(), x->dtype, x->device());
  TensorRef mean = new_tensor(rows.statistics, type, x->device());
  TensorRef rstd = new_tensor(rows.statistics, type, x->device());
  if (!x->is_meta()) {
    TensorRef from = contiguous(x), w = parameter_values(weight, x->dtype),
              b = parameter_values(bias, x->dtype);
    run_norm_rows({x->dtype, out->data(), mean->data(), rstd->data(), from->data(), data_or_null(w),
                   data_or_null(b), rows.n, 1, eps},
                  rows.count);
  }
  return tuple_of({out.get(), mean.get(), rstd.get()});
}

// rms_norm(x, weight; normalized_shape, eps) -> out, rstd
PyObject* rms_norm_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("rms_norm", args[0]);
  Tensor* weight = optional_tensor("rms_norm", "weight", args[1], 3);
  int dims = check_normalized_shape("rms_norm", x, args[2], weight, nullptr);
  norm_input("rms_norm", "rms_norm", args[0]);
  check_devices(x, {weight});
  double eps = eps_argument("rms_norm", args[3]);
  Rows rows(x, dims);
  TensorRef out = new_tensor(x->sizes(), x->dtype, x->device());
  TensorRef rstd = new_tensor(rows.statistics, norm_type(x->dtype), x->device());
  if (!x->is_meta()) {
    TensorRef from = contiguous(x), w = parameter_values(weight, x->dtype);
    run_norm_rows({x->dtype, out->data(), nullptr, rstd->data(), from->data(), data_or_null(w), nullptr,
                   rows.n, 1, eps},
                  rows.count);
  }
  out = TensorRef(as_tensor(laid_out(std::move(out), is_channels_last(x))));
  return tuple_of({out.get(), rstd.get()});
}

void check_row_statistics(const Tensor* x, const Rows& rows,
                          std::initializer_list<const Tensor*> statistics) {
  for (const Tensor* t : statistics) {
    if (t->numel != rows.count || t->dtype != norm_type(x->dtype) || !t->is_contiguous()) {
      fail(PyExc_RuntimeError, "the gradient of a norm needs the statistics of its forward pass");
    }
  }
  check_devices(x, statistics);
}

PyObject* rows_backward(const char* function, Tensor* g, Tensor* x, Tensor* mean, Tensor* rstd,
                        Tensor* weight, int dims, bool affine) {
  if (!same_sizes(g, x)) {
    fail(PyExc_RuntimeError, std::string(function) + ": gradient and input differ in size: " +
                                 sizes_text(g->sizes()) + " and " + sizes_text(x->sizes()));
  }
  if (dims < 1 || dims > x->ndim)
    failf(PyExc_RuntimeError, "%s: cannot normalise %d dimensions", function, dims);
  Rows rows(x, dims);
  if (mean) check_row_statistics(x, rows, {mean, rstd});
  else check_row_statistics(x, rows, {rstd});
  check_devices(x, {g, weight});
  if (weight && weight->numel != rows.n) failf(PyExc_RuntimeError, "%s: wrong size of weight", function);
  DType type = norm_type(x->dtype);
  int64_t none[] = {0};
  Sizes parameter = affine ? x->sizes().last(size_t(dims)) : Sizes(none);
  TensorRef dx = new_tensor(x->sizes(), x->dtype, x->device());
  TensorRef dw = new_tensor(parameter, type, x->device());
  TensorRef db = mean ? new_tensor(parameter, type, x->device()) : TensorRef();
  if (!x->is_meta()) {
    TensorRef from = contiguous(x), up = contiguous(cast(g, x->dtype).get()),
              w = parameter_values(weight, x->dtype);
    run_norm_rows_backward({x->dtype, dx->data(), up->data(), from->data(), mean ? mean->data() : nullptr,
                            rstd->data(), data_or_null(w), rows.n, 1},
                           rows.count, affine ? dw.get() : nullptr, affine ? db.get() : nullptr);
  }
  return db ? tuple_of({dx.get(), dw.get(), db.get()}) : tuple_of({dx.get(), dw.get()});
}

// native_layer_norm_backward(g, x, mean, rstd, weight; dims, eps, affine) -> dx, dw, db
PyObject* layer_norm_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  const char* name = "layer_norm";
  Tensor* x = norm_input(name, "LayerNormBackwardKernelImpl", args[1]);
  return rows_backward(name, tensor_argument(name, args[0]), x, tensor_argument(name, args[2]),
                       tensor_argument(name, args[3]), optional_tensor(name, "weight", args[4], 3),
                       int(int_argument(name, "dims", args[5])), bool_argument(name, "affine", args[7]));
}

// rms_norm_backward(g, x, rstd, weight; dims, eps, affine) -> dx, dw
PyObject* rms_norm_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  const char* name = "rms_norm";
  Tensor* x = norm_input(name, "rms_norm", args[1]);
  return rows_backward(name, tensor_argument(name, args[0]), x, nullptr, tensor_argument(name, args[2]),
                       optional_tensor(name, "weight", args[3], 3), int(int_argument(name, "dims", args[4])),
                       bool_argument(name, "affine", args[6]));
}

ModuleInit init([](PyObject*) {
  define("native_layer_norm(x, weight, bias; normalized_shape, eps) -> out, mean, rstd", layer_norm_forward);
  define("native_layer_norm_backward(g, x, mean, rstd, weight; dims, eps, affine) -> dx, dw, db",
         layer_norm_backward_forward);
  define("rms_norm(x, weight; normalized_shape, eps) -> out, rstd", rms_norm_forward);
  define("rms_norm_backward(g, x, rstd, weight; dims, eps, affine) -> dx, dw", rms_norm_backward_forward);
});

}  // namespace
}  // namespace rl
