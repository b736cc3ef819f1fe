// The primitives of convolutions and of unfold and fold: arguments, shapes, torch's checks; the loops are in
// kernels/conv.h.
//
// convolution, conv_input_gradient and conv_weight_gradient are the three faces of one trilinear form, so
// each one's derivatives are the other two. Read `geometry` first. f16 and bf16 are computed in float and
// rounded once.
#include "../kernels/conv.h"
#include "../kernels/conv_bf16.h"
#include "../kernels/depthwise.h"
#include "../tensor/iterate.h"
#include "devices.h"
#include "matmul_ops.h"
#include "window.h"

namespace rl {
namespace {

void read_window(PyObject* o, int dims, int64_t unused, Triple& out, const char* name) {
  if (read_triple(o, dims, unused, out, "convolution", name)) return;
  Shape given;
  read_sizes(o, given, "convolution", name);
  failf(
      PyExc_RuntimeError,
      "expected %s to be a single integer value or a list of %d values to match the convolution dimensions, "
      "but got %s=%s",
      name, dims, name, sizes_text(given).c_str());
}

// In torch's order: `extra` is the output_padding of a transposed convolution. A dilation of zero passes
// here, since torch leaves it to the kernels (`check_kernel`).
struct Window {
  Triple stride, padding, dilation;
  int64_t groups;

  Window(PyObject* const* args, int dims, PyObject* extra_arg = nullptr, Triple* extra = nullptr) {
    groups = int_argument("convolution", "groups", args[3]);
    if (groups <= 0) fail(PyExc_RuntimeError, "non-positive groups is not supported");
    read_window(args[0], dims, 1, stride, "stride");
    read_window(args[1], dims, 0, padding, "padding");
    read_window(args[2], dims, 1, dilation, "dilation");
    if (extra) read_window(extra_arg, dims, 0, *extra, "output_padding");
    auto least = [](const Triple& t) { return *std::min_element(t.at, t.at + 3); };
    if (least(padding) < 0) fail(PyExc_RuntimeError, "negative padding is not supported");
    if (extra && least(*extra) < 0) fail(PyExc_RuntimeError, "negative output_padding is not supported");
    if (least(stride) <= 0) fail(PyExc_RuntimeError, "non-positive stride is not supported");
    if (least(dilation) < 0) fail(PyExc_RuntimeError, "dilation should be greater than zero");
    for (int d = 3 - dims; d < 3; d++) {
      if (padding[d] > INT64_MAX / 2) {
        failf(PyExc_RuntimeError, "Given padding=%lld at dimension %d , expected padding to be at most %lld",
              (long long)padding[d], d - 3 + dims, (long long)(INT64_MAX / 2));
      }
    }
    check_moderate(padding, "convolution", "padding");
    if (!extra) {
      limit_stride(stride);
      return;  // `geometry` checks the dilation
    }
    check_moderate(stride, "convolution", "stride");
    check_moderate(dilation, "convolution", "dilation");
    check_moderate(*extra, "convolution", "output_padding");
  }
  bool is_dilated() const {
    return std::any_of(dilation.at, dilation.at + 3, [](int64_t d) { return d != 1; });
  }
};

Tensor* tensor_at(PyObject* const* args, int i, const char* name) {
  if (!is_tensor(args[i])) {
    failf(PyExc_TypeError, "convolution(): argument '%s' (position %d) must be Tensor, not %s", name, i + 1,
          Py_TYPE(args[i])->tp_name);
  }
  return as_tensor(args[i]);
}

Tensor* optional_tensor_at(PyObject* const* args, int i, const char* name) {
  return args[i] == Py_None ? nullptr : tensor_at(args, i, name);
}

// Whether torch hands this to another library on one thread, which has its own words for types.
bool is_handed_on(const Tensor* x, const Tensor* weight, const Window& window) {
  if (x->dtype == DType::bf16) return true;
  if (x->dtype != DType::f32) return false;
  int64_t width = weight->size(weight->ndim - 1), area = 1;
  int64_t height = weight->ndim > 3 ? weight->size(weight->ndim - 2) : 1;
  for (int d = 0; d < std::min(int(x->ndim), 4); d++) area *= x->size(d);
  bool plain = width == 1 && height == 1 && x->size(0) < 16;
  for (int d = 0; d < 3; d++) plain &= window.stride[d] == 1 && window.dilation[d] == 1;
  return !plain && (window.groups > 1 || (width > 3 && height > 3) || x->size(0) > 1 || area > 20480);
}

[[noreturn]] void fail_handed_on(const Tensor* x, const Tensor* other, const char* what) {
  failf(PyExc_RuntimeError,
        "Input type (%s) and %s type (%s) should be the same or input should be a MKLDNN tensor and %s is a "
        "dense tensor",
        type_text(x->dtype).c_str(), what, type_text(other->dtype).c_str(), what);
}

// Of the integers torch's kernels mostly know int64 only.
bool is_narrow(DType t) { return (is_integral(t) && t != DType::i64) || t == DType::b1; }

void check_dtypes(const Tensor* x, const Tensor* weight, const Window& window) {
  if (window.is_dilated() && is_narrow(x->dtype)) {
    fail_not_implemented("slow_conv_dilated<>", x->dtype);  // torch computes these only without dilation
  }
  if (x->dtype == DType::b1) {
    bool columns = false;  // which volumes need unless the kernel is a single point
    for (int d = 0; d < 3; d++) {
      columns |= weight->ndim == 5 && weight->size(2 + d) != 1;
      columns |= window.stride[d] != 1 || window.padding[d] != 0;
    }
    const char* volumes = columns ? "compute_columns3d" : "slow_conv3d_cpu";
    fail_not_implemented(weight->ndim == 5 ? volumes : "slow_conv2d_cpu", x->dtype);
  }
  if (x->dtype == weight->dtype) return;
  failf(PyExc_RuntimeError, "expected scalar type %s but found %s", dtype_class_name(x->dtype),
        dtype_class_name(weight->dtype));
}

void check_devices(const Tensor* x, const Tensor* other) {
  if (other && !(x->device() == other->device())) fail_devices(x->device(), other->device());
}

void check_bias(const Tensor* bias, const Tensor* weight, int64_t channels, const char* given) {
  if (!bias || (bias->ndim == 1 && bias->size(0) == channels)) return;
  failf(
      PyExc_RuntimeError,
      "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of size "
      "%s instead",
      given, sizes_text(weight->sizes()).c_str(), (long long)channels, sizes_text(bias->sizes()).c_str());
}

void check_groups(const Tensor* weight, int64_t groups) {
  if (weight->size(0) < groups) {
    failf(PyExc_RuntimeError,
          "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size %s "
          "instead",
          (long long)groups, (long long)groups, sizes_text(weight->sizes()).c_str());
  }
  if (weight->size(0) % groups) {
    failf(PyExc_RuntimeError,
          "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size "
          "[%s] instead",
          (long long)groups, (long long)groups, sizes_text(weight->sizes()).c_str());
  }
}

int spatial_dims(const Tensor* x, const Tensor* weight) {
  int dims = x->ndim - 2;
  if (weight->ndim < 3) fail(PyExc_RuntimeError, "weight should have at least three dimensions");
  if (dims < 1 || dims > 3 || weight->ndim != x->ndim) {
    failf(
        PyExc_RuntimeError,
        "Expected %d-dimensional input for %d-dimensional weight %s, but got %d-dimensional input of size %s "
        "instead",
        weight->ndim, weight->ndim, sizes_text(weight->sizes()).c_str(), x->ndim,
        sizes_text(x->sizes()).c_str());
  }
  return dims;
}

void fill_window(ConvShape& s, const Window& window, Sizes kernel, int dims) {
  s.groups = window.groups;
  for (int d = 0; d < 3; d++) {
    s.in[d] = s.out[d] = s.kernel[d] = 1;
    s.stride[d] = window.stride[d], s.padding[d] = window.padding[d], s.dilation[d] = window.dilation[d];
  }
  for (int d = 0; d < dims; d++) s.kernel[3 - dims + d] = kernel[size_t(d)];
}

bool is_positive(const int64_t* three) { return three[0] > 0 && three[1] > 0 && three[2] > 0; }

[[noreturn]] void fail_no_primitive(const char* what, Sizes kernel) {
  failf(PyExc_RuntimeError,
        "could not create a primitive descriptor for the %s forward propagation primitive. Run workload with "
        "environment variable ONEDNN_VERBOSE=all to get additional diagnostic information.\n\n"
        "  A size of the weight %s or a dilation is zero.",
        what, sizes_text(kernel).c_str());
}

[[noreturn]] void fail_kernel_size(const ConvShape& s, int dims) {
  std::string shown = dims == 3 ? ": " + sizes_between(s.kernel, 3, " x ") + " (TxHxW)"
                                : " kernel_height: " + std::to_string(s.kernel[1]) +
                                      " kernel_width: " + std::to_string(s.kernel[2]);
  fail(PyExc_RuntimeError, "kernel size should be greater than zero, but got" + shown);
}

// What each of torch's kernels says of a kernel or a dilation of zero. To it lines are images of one row.
void check_kernel(const ConvShape& s, const Window& window, int dims) {
  Sizes kernel = Sizes(s.kernel, 3).last(dims == 3 ? 3 : 2),
        dilation = Sizes(s.dilation, 3).last(dims == 3 ? 3 : 2);
  if (!is_positive(s.kernel)) {
    if (!window.is_dilated()) fail_kernel_size(s, dims);
    fail(PyExc_RuntimeError, "kernel size should be greater than zero, but got " + sizes_text(kernel));
  }
  if (!is_positive(s.dilation))
    fail(PyExc_RuntimeError, "dilation should be greater than zero, but got " + sizes_text(dilation));
}

// Checks of the library that computes these, and the dtypes, in torch's order.
void check_computable(const Tensor* x, const Tensor* weight, const Tensor* bias, const ConvShape& s,
                      const Window& window, int dims) {
  if (!is_handed_on(x, weight, window)) {
    check_kernel(s, window, dims);
    return check_dtypes(x, weight, window);
  }
  if (x->dtype != weight->dtype) fail_handed_on(x, weight, "weight");
  if (bias && bias->dtype != x->dtype) fail_handed_on(x, bias, "bias");
  if (!is_positive(s.dilation)) fail(PyExc_RuntimeError, "non-positive dilation is not supported");
  if (!is_positive(s.kernel)) fail_no_primitive("convolution", weight->sizes());
}

// Images without points have no convolution, though there may be no images or no channels. torch sees lines
// as images of one row.
void check_not_empty(Sizes x, int dims) {
  if (numel_of(x) || !x[0] || !x[1]) return;
  std::vector<int64_t> shown(x.begin(), x.end());
  if (dims == 1) shown.insert(shown.begin() + 2, 1);
  fail(PyExc_RuntimeError,
       "Only zero batch or zero channel inputs are supported, but got input shape: " + sizes_text(shown));
}

// What convolving an input of sizes `x` with weights of sizes `weight` means; `s.out` is computed.
ConvShape geometry(Sizes x, Sizes weight, const Window& window, int dims) {
  ConvShape s;
  numel_of(x);  // refuses sizes below zero
  fill_window(s, window, weight.subspan(2), dims);
  s.batch = x[0], s.in_channels = x[1], s.out_channels = weight[0];
  for (int d = 0; d < dims; d++) s.in[3 - dims + d] = x[size_t(2 + d)];
  bool fits = true;
  int64_t padded[3], extent[3];
  for (int d = 0; d < 3; d++) {
    if (s.kernel[d] > INT32_MAX || s.in[d] > (int64_t(1) << 60))
      fail(PyExc_RuntimeError, "convolution(): sizes are too large");
    if (s.kernel[d] == 1 && s.dilation[d] > 1) s.dilation[d] = 1;  // there is nothing to spread
    padded[d] = s.in[d] + 2 * s.padding[d];
    if ((s.dilation[d] > INT32_MAX && s.kernel[d] < 1) ||
        __builtin_mul_overflow(s.dilation[d], s.kernel[d] - 1, &extent[d]) ||
        __builtin_add_overflow(extent[d], 1, &extent[d]))
      failf(PyExc_RuntimeError, "convolution(): dilation of %lld is too large", (long long)s.dilation[d]);
    fits &= padded[d] >= extent[d];
    s.out[d] = (padded[d] - extent[d]) / s.stride[d] + 1;
  }
  if (!fits) {
    fail(PyExc_RuntimeError, "Calculated padded input size per channel: (" +
                                 sizes_between(padded, dims, " x ") + "). Kernel size: (" +
                                 sizes_between(extent, dims, " x ") +
                                 "). Kernel size can't be greater than actual input size");
  }
  check_not_empty(x, dims);
  return s;
}

void check_input_channels(Sizes x, Sizes weight, int64_t groups, int64_t expected, bool transposed) {
  if (x[1] == expected) return;
  std::string given = transposed ? "transposed=1" : "groups=" + std::to_string(groups);
  failf(PyExc_RuntimeError,
        "Given %s, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
        given.c_str(), sizes_text(weight).c_str(), sizes_text(x).c_str(), (long long)expected,
        (long long)x[1]);
}

bool is_reduced(DType t) { return t == DType::f16 || t == DType::bf16; }

// A contiguous tensor to compute with: float for f16 and bf16, if that is not to be kept.
TensorRef operand(Tensor* t, bool keeps_bf16 = false) {
  if (!t) return TensorRef();
  bool kept = keeps_bf16 && t->dtype == DType::bf16;
  TensorRef wide = is_reduced(t->dtype) && !kept ? cast(t, DType::f32) : share(t);
  return contiguous(wide.get());
}

bool multiplies_bf16(const Tensor* a, const Tensor* b, const ConvShape& s) {
  return a->dtype == DType::bf16 && b->dtype == DType::bf16 && conv_has_bf16(s);
}

const void* data_of(const TensorRef& t) { return t ? t->data() : nullptr; }

// Runs a kernel into a new tensor of `sizes`; the kernel sees float instead of f16 and bf16.
// Whether torch computes the convolution of these, and its gradients, with channels last.
bool puts_channels_last(const Tensor* x, const Tensor* other) {
  return (is_channels_last(x) || is_channels_last(other)) && (x->ndim == 4 || x->dtype != DType::f64);
}

template <class F>
PyObject* compute(Tensor* like, Sizes sizes, double work, bool channels_last, F&& kernel) {
  DType dtype = is_reduced(like->dtype) ? DType::f32 : like->dtype;
  TensorRef result = new_tensor(sizes, like->is_meta() ? like->dtype : dtype, like->device());
  if (like->is_meta() || result->numel == 0) {
    return result->dtype == like->dtype ? result.release_object()
                                        : cast(result.get(), like->dtype).release_object();
  }
  {
    MaybeNoGil released(work > 100000 ? INT64_MAX : 0);
    kernel(result->data());
  }
  return laid_out(cast(result.get(), like->dtype), channels_last);
}

void result_sizes(Shape& sizes, int64_t batch, int64_t channels, const int64_t* spatial, int dims) {
  sizes.resize(size_t(dims) + 2);
  sizes.sizes[0] = batch, sizes.sizes[1] = channels;
  for (int d = 0; d < dims; d++) sizes.sizes[2 + d] = spatial[3 - dims + d];
}

void check_addable(DType sum, DType to) {
  if (can_cast(sum, to)) return;
  failf(PyExc_RuntimeError, "result type %s can't be cast to the desired output type %s",
        dtype_class_name(sum), dtype_class_name(to));
}

bool has_no_elements(const Tensor* x) { return x->size(0) == 0 || x->size(1) == 0; }

// The convolution of an input without samples or channels. torch multiplies it with the weights, or with the
// first of them, adds the first bias and looks at nothing else.
PyObject* empty_result(const Tensor* x, const Tensor* weight, const Tensor* bias, const Shape& sizes) {
  if (x->size(1) != 0 && (weight->numel == 0 || (bias && bias->numel == 0)))
    fail(PyExc_IndexError, "select(): index 0 out of range for tensor of size [0] at dimension 0");
  bool whole = x->size(1) == 0;  // whether all of the weights or one number takes part
  Promotion product{int(whole ? promote(x->dtype, weight->dtype) : x->dtype),
                    whole ? -1 : int(weight->dtype)};
  DType dtype = product.result();
  if (bias) check_addable(Promotion{int(dtype), int(bias->dtype)}.result(), dtype);
  for (int d = 2; d < sizes.ndim; d++) {
    if (sizes.sizes[d] < 0) {
      failf(PyExc_RuntimeError, "invalid shape dimension %lld at index %d of shape %s",
            (long long)sizes.sizes[d], d, sizes_text(sizes).c_str());
    }
  }
  return new_tensor(sizes, dtype, x->device()).release_object();
}

// A kernel of one pixel, where the channels of each lie together: a product of matrices as they are.
PyObject* pointwise_channels_last(Tensor* x, Tensor* weight, Tensor* bias, Sizes sizes) {
  TensorRef result = new_channels_last(sizes, x->dtype, x->device()), w = operand(weight), b = operand(bias);
  int64_t in = x->size(1), out = sizes[1], pixels = x->numel / in, bytes = out * result->itemsize();
  Coefficients factors(x->dtype, b ? 1 : 0);
  MaybeNoGil released(is_long_product(double(x->numel) * double(out)) ? INT64_MAX : 0);
  for (int64_t pixel = 0; b && pixel < pixels; pixel++)
    std::memcpy(result->data() + pixel * bytes, b->data(), size_t(bytes));
  gemm(x->dtype, {result->data(), pixels, out, out, 1}, {x->data(), pixels, in, in, 1},
       {w->data(), in, out, 1, in}, factors.alpha, factors.beta);
  return result.release_object();
}

// Whether the channels of t are convolved where they lie, side by side.
bool by_channels(const Tensor* t, const ConvShape& s, int dims) {
  return t->ndim == dims + 2 && (dims == 2 || t->dtype != DType::f64) &&
         depthwise_channels_fit(t->dtype, s) && is_dense_channels_last(t);
}

// A contiguous tensor as a matrix, transposed.
TensorRef turned(const TensorRef& t, int64_t rows, int64_t columns) {
  const int64_t sizes[] = {columns, rows}, strides[] = {1, columns};
  return new_alias(t.get(), sizes, strides, t->offset);
}
// The weights of one channel each, in the compute type, with all channels of one term together.
TensorRef weights_by_terms(Tensor* weight, const ConvShape& s) {
  return contiguous(turned(operand(weight), s.groups, s.kernel_size()).get());
}

TensorRef dense_channels_last(Tensor* t) {
  if (is_dense_channels_last(t)) return share(t);
  TensorRef moved = new_channels_last(t->sizes(), t->dtype, t->device());
  copy_into(moved.get(), t);
  return moved;
}

// convolution(x, weight, bias; stride, padding, dilation, groups)
PyObject* convolution_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_at(args, 0, "input"), *weight = tensor_at(args, 1, "weight");
  Tensor* bias = optional_tensor_at(args, 2, "bias");
  int dims = spatial_dims(x, weight);
  Window window(args + 3, dims);
  check_groups(weight, window.groups);
  check_input_channels(x->sizes(), weight->sizes(), window.groups, weight->size(1) * window.groups, false);
  check_bias(bias, weight, weight->size(0), "");
  ConvShape s = geometry(x->sizes(), weight->sizes(), window, dims);
  check_devices(x, weight);
  check_devices(x, bias);
  Shape sizes;
  result_sizes(sizes, s.batch, s.out_channels, s.out, dims);
  if (has_no_elements(x)) return empty_result(x, weight, bias, sizes);
  check_computable(x, weight, bias, s, window, dims);
  bool last = puts_channels_last(x, weight);
  if (x->is_meta()) return laid_out(new_tensor(sizes, x->dtype, x->device()), last);
  TensorRef alike = bias ? cast(bias, x->dtype) : TensorRef();
  if (s.pointwise() && s.groups == 1 && x->ndim == dims + 2 && !is_reduced(x->dtype) &&
      is_dense_channels_last(x))
    return pointwise_channels_last(x, weight, alike.get(), sizes);
  if (by_channels(x, s, dims)) {
    TensorRef result = new_channels_last(sizes, x->dtype, x->device()), b = operand(alike.get());
    TensorRef w = weights_by_terms(weight, s);
    MaybeNoGil released(x->numel);
    depthwise_channels_forward(x->dtype, s, result->data(), x->data(), w->data(), data_of(b));
    return result.release_object();
  }
  bool keeps = multiplies_bf16(x, weight, s);
  TensorRef from = operand(x, keeps), w = operand(weight, keeps), b = operand(alike.get());
  return compute(x, sizes, s.work(), last,
                 [&](void* y) { conv_forward(from->dtype, s, y, data_of(from), data_of(w), data_of(b)); });
}

void check_transposed_window(const ConvShape& s, const Triple& extra, const Tensor* weight, int dims) {
  static const char* names[] = {"depth", "height", "width"};
  int first = dims == 3 ? 0 : 1;
  auto each = [&](const char* what, const int64_t* values, const char* between) {
    std::string text;
    for (int d = first; d < 3; d++)
      text += (text.empty() ? "" : between) + (std::string(what) + "_" + names[d]) + ": " +
              std::to_string(values[d]);
    return text;
  };
  if (dims < 3 && !is_positive(s.kernel)) fail_kernel_size(s, dims);
  if (!is_positive(s.dilation)) {
    fail(PyExc_RuntimeError,
         "dilation should be greater than zero, but got " + each("dilation", s.dilation, ", "));
  }
  bool small = false, reaches = false;
  for (int d = 0; d < 3; d++) {
    small |= s.in[d] <= 0;
    reaches |= extra[d] >= s.stride[d] && extra[d] >= s.dilation[d];
  }
  if (reaches) {
    fail(PyExc_RuntimeError, "output padding must be smaller than either stride or dilation, but got " +
                                 each("output_padding", extra.at, " ") + " " + each("stride", s.stride, " ") +
                                 " " + each("dilation", s.dilation, " "));
  }
  if (weight->numel == 0) {
    std::string wanted = dims == 3 ? "non-empty 5D (n_output_plane x n_input_plane x kernel_depth x "
                                     "kernel_height x kernel_width) tensor expected for weight"
                                   : "non-empty 2D or 4D weight tensor expected";
    std::vector<int64_t> shown(weight->sizes().begin(), weight->sizes().end());
    shown[0] /= s.groups;  // torch takes them one by one
    if (dims == 1) shown.insert(shown.begin() + 2, 1);
    fail(PyExc_RuntimeError, wanted + ", but got: " + sizes_text(shown));
  }
  if (small) {
    int shown = std::max(dims, 2);  // lines are images of one row to torch
    fail(PyExc_RuntimeError, "Given input size per channel: (" + sizes_between(s.out, shown, " x ") +
                                 "). Calculated output size per channel: (" +
                                 sizes_between(s.in, shown, " x ") + "). Output size is too small");
  }
}

// As check_computable for the transposed; `bias` is one of another dtype.
void check_spreadable(const Tensor* x, const Tensor* weight, const Tensor* bias, const ConvShape& s,
                      const Window& window, const Triple& extra, int dims) {
  bool wide = false;  // what is added at the end leaves the last windows, which the library does not know
  for (int d = 0; d < 3; d++) wide |= extra[d] >= s.stride[d];
  if (is_handed_on(x, weight, window) && !wide) {
    if (x->dtype != weight->dtype) fail_handed_on(x, weight, "weight");
    if (bias) fail_handed_on(x, bias, "bias");
    for (int64_t size : s.in) {
      if (size <= 0) {
        fail(PyExc_RuntimeError,
             "could not construct a memory descriptor using a format tag\n\n  The output would have sizes of "
             "(" +
                 sizes_between(s.in, dims, " x ") + ").");
      }
    }
    if (weight->numel == 0 || !is_positive(s.dilation)) fail_no_primitive("deconvolution", weight->sizes());
    return;
  }
  check_transposed_window(s, extra, weight, dims);
  if (is_narrow(x->dtype)) {
    fail_not_implemented(dims == 3 ? "slow_conv_transpose3d_out_cpu" : "slow_conv_transpose2d_out_cpu",
                         x->dtype);
  }
  check_dtypes(x, weight, window);
  if (bias && dims < 3) return check_addable(promote(x->dtype, bias->dtype), x->dtype);
  if (bias) {
    failf(PyExc_RuntimeError, "expected scalar type %s but found %s", dtype_class_name(x->dtype),
          dtype_class_name(bias->dtype));
  }
}

// conv_transpose(x, weight, bias; stride, padding, output_padding, dilation, groups)
PyObject* conv_transpose_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_at(args, 0, "input"), *weight = tensor_at(args, 1, "weight");
  Tensor* bias = optional_tensor_at(args, 2, "bias");
  int dims = spatial_dims(x, weight);
  PyObject* window_args[] = {args[3], args[4], args[6], args[7]};
  Triple extra;
  Window window(window_args, dims, args[5], &extra);
  check_groups(weight, window.groups);
  check_input_channels(x->sizes(), weight->sizes(), window.groups, weight->size(0), true);
  int64_t channels = weight->size(1) * window.groups;
  check_bias(bias, weight, channels, "transposed=1, ");
  check_not_empty(x->sizes(), dims);
  ConvShape s;
  fill_window(s, window, weight->sizes().subspan(2), dims);
  s.batch = x->size(0), s.in_channels = channels, s.out_channels = x->size(1);
  for (int d = 0; d < dims; d++) s.out[3 - dims + d] = x->size(2 + d);
  for (int d = 0; d < 3; d++) {
    if (s.kernel[d] > INT32_MAX || s.out[d] > INT32_MAX)
      fail(PyExc_RuntimeError, "conv_transpose(): sizes are too large");
    s.in[d] =
        (s.out[d] - 1) * s.stride[d] - 2 * s.padding[d] + s.dilation[d] * (s.kernel[d] - 1) + extra[d] + 1;
  }
  check_devices(x, weight);
  check_devices(x, bias);
  Shape sizes;
  result_sizes(sizes, s.batch, channels, s.in, dims);
  if (has_no_elements(x)) return empty_result(x, weight, bias, sizes);
  bool cast_bias = bias && bias->dtype != x->dtype;
  check_spreadable(x, weight, cast_bias ? bias : nullptr, s, window, extra, dims);
  bool last = puts_channels_last(x, weight);
  if (x->is_meta()) return laid_out(new_tensor(sizes, x->dtype, x->device()), last);
  TensorRef alike = cast_bias ? cast(bias, x->dtype) : TensorRef();
  bool keeps = multiplies_bf16(x, weight, s);
  TensorRef from = operand(x, keeps), w = operand(weight, keeps);
  TensorRef b = operand(cast_bias ? alike.get() : bias);
  return compute(x, sizes, s.work(), last, [&](void* y) {
    conv_input_gradient(from->dtype, s, y, data_of(from), data_of(w), data_of(b));
  });
}

// The gradients are called by rules only; what they are given came out of a convolution, but is checked
// again.
void check_output(const ConvShape& s, const Tensor* g, int dims) {
  Shape sizes;
  result_sizes(sizes, s.batch, s.out_channels, s.out, dims);
  if (g->ndim == sizes.ndim && std::equal(sizes.sizes, sizes.sizes + sizes.ndim, g->geometry)) return;
  fail(PyExc_RuntimeError, "convolution(): expected a gradient of size " + sizes_text(sizes) + ", but got " +
                               sizes_text(g->sizes()));
}

// conv_input_gradient(grad, weight; input_size, stride, padding, dilation, groups)
PyObject* input_gradient_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *g = tensor_at(args, 0, "grad"), *weight = tensor_at(args, 1, "weight");
  int dims = spatial_dims(g, weight);
  Shape size;
  read_sizes(args[2], size, "convolution", "input_size");
  if (size.ndim != dims + 2) fail(PyExc_RuntimeError, "convolution(): wrong number of input sizes");
  Window window(args + 3, dims);
  check_groups(weight, window.groups);
  check_input_channels(size, weight->sizes(), window.groups, weight->size(1) * window.groups, false);
  ConvShape s = geometry(size, weight->sizes(), window, dims);
  check_output(s, g, dims);
  check_devices(g, weight);
  if (numel_of(size) == 0) return new_tensor(size, g->dtype, g->device()).release_object();
  check_kernel(s, window, dims);
  check_dtypes(g, weight, window);
  if (g->is_meta()) return new_tensor(size, g->dtype, g->device()).release_object();
  if (by_channels(g, s, dims)) {
    TensorRef result = new_channels_last(size, g->dtype, g->device());
    TensorRef w = weights_by_terms(weight, s);
    MaybeNoGil released(g->numel);
    depthwise_channels_input_gradient(g->dtype, s, result->data(), g->data(), w->data());
    return result.release_object();
  }
  bool last = puts_channels_last(g, g);
  bool keeps = multiplies_bf16(g, weight, s);
  TensorRef from = operand(g, keeps), w = operand(weight, keeps);
  return compute(g, size, s.work(), last, [&](void* gx) {
    conv_input_gradient(from->dtype, s, gx, data_of(from), data_of(w), nullptr);
  });
}

// conv_weight_gradient(x, grad; weight_size, stride, padding, dilation, groups)
PyObject* weight_gradient_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_at(args, 0, "input"), *g = tensor_at(args, 1, "grad");
  int dims = spatial_dims(x, g);
  Shape size;
  read_sizes(args[2], size, "convolution", "weight_size");
  if (size.ndim != dims + 2) fail(PyExc_RuntimeError, "convolution(): wrong number of weight sizes");
  Window window(args + 3, dims);
  if (size.sizes[0] < window.groups || size.sizes[0] % window.groups)
    fail(PyExc_RuntimeError, "convolution(): weight is not divisible by groups");
  check_input_channels(x->sizes(), size, window.groups, size.sizes[1] * window.groups, false);
  ConvShape s = geometry(x->sizes(), size, window, dims);
  check_output(s, g, dims);
  check_devices(x, g);
  if (has_no_elements(x)) return zeros(size, x->dtype, x->device()).release_object();
  check_kernel(s, window, dims);
  check_dtypes(x, g, window);
  if (x->is_meta()) return new_tensor(size, x->dtype, x->device()).release_object();
  if (by_channels(x, s, dims)) {
    TensorRef gy = dense_channels_last(g);
    DType wide = is_reduced(x->dtype) ? DType::f32 : x->dtype;
    const int64_t by_terms[] = {s.kernel_size(), s.groups};
    TensorRef sums = new_tensor(by_terms, wide, x->device());
    {
      MaybeNoGil released(x->numel);
      depthwise_channels_weight_gradient(x->dtype, s, sums->data(), gy->data(), x->data());
    }
    TensorRef result = new_tensor(size, x->dtype, x->device());
    copy_into(turned(result, s.groups, s.kernel_size()).get(), sums.get());
    return laid_out(std::move(result), puts_channels_last(x, g));
  }
  bool keeps = multiplies_bf16(x, g, s);
  TensorRef from = operand(x, keeps), gy = operand(g, keeps);
  return compute(x, size, s.work(), puts_channels_last(x, g),
                 [&](void* gw) { conv_weight_gradient(from->dtype, s, gw, data_of(gy), data_of(from)); });
}

// ---- unfold and fold

// The window of args[0..3] = kernel_size, dilation, padding, stride, checked in torch's order, which is
// another one when it folds.
ConvShape read_patches(PyObject* const* args, bool folds) {
  Triple kernel, dilation, padding, stride;
  auto read = [&](PyObject* o, int64_t unused, Triple& out, const char* name) {
    bool single = (PyTuple_Check(o) || PyList_Check(o)) && PySequence_Size(o) == 1;
    if (single || !read_triple(o, 2, unused, out, "im2col", name)) {
      Shape given;
      read_sizes(o, given, "im2col", name);
      failf(PyExc_RuntimeError, "It is expected %s equals to 2, but got size %d", name, given.ndim);
    }
  };
  read(args[0], 1, kernel, "kernel_size");
  read(args[1], 1, dilation, "dilation");
  read(args[2], 0, padding, "padding");
  read(args[3], 1, stride, "stride");
  auto check = [](const Triple& t, bool good, const char* what) {
    if (!good) {
      failf(PyExc_RuntimeError, what, (long long)t[1], (long long)t[2]);
    }
  };
  check(kernel, kernel[1] > 0 && kernel[2] > 0,
        "kernel size should be greater than zero, but got kernel_height: %lld kernel_width: %lld");
  auto check_stride = [&] {
    check(stride, stride[1] > 0 && stride[2] > 0,
          "stride should be greater than zero, but got stride_height: %lld stride_width: %lld");
  };
  if (folds) check_stride();
  check(dilation, dilation[1] > 0 && dilation[2] > 0,
        "dilation should be greater than zero, but got dilation_height: %lld dilation_width: %lld");
  check(padding, padding[1] >= 0 && padding[2] >= 0,
        "padding should be non-negative, but got pad_height: %lld pad_width: %lld");
  check_stride();
  check_moderate(kernel, "im2col", "kernel_size");
  check_moderate(dilation, "im2col", "dilation");
  check_moderate(padding, "im2col", "padding");
  ConvShape s;
  for (int d = 0; d < 3; d++)
    s.kernel[d] = kernel[d], s.dilation[d] = dilation[d], s.padding[d] = padding[d], s.stride[d] = stride[d];
  return s;
}

// Where that window lies on images of height and width `in`.
void place_patches(ConvShape& s, int64_t batch, int64_t channels, const int64_t* in) {
  s.batch = batch, s.groups = 1, s.in_channels = channels, s.out_channels = 1;
  for (int d = 0; d < 3; d++) {
    s.in[d] = d ? in[d - 1] : 1;
    int64_t room = s.in[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1;
    // Rounds towards minus infinity: no room for one window leaves no blocks.
    s.out[d] = (room >= 0 ? room / s.stride[d] : -((-room + s.stride[d] - 1) / s.stride[d])) + 1;
  }
  // The rows and columns of the matrix of blocks can be counted.
  const int64_t rows[] = {channels, s.kernel[1], s.kernel[2]};
  numel_of(rows);
  if (s.out[1] > 0 && s.out[2] > 0) numel_of(s.out);
}

std::string pair_text(const int64_t* at) { return std::string("(").append(sizes_between(at, 2, ", ")) + ")"; }

// im2col(x; kernel_size, dilation, padding, stride)
PyObject* im2col_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("im2col", args[0]);
  ConvShape s = read_patches(args + 1, false);
  bool batched = x->ndim == 4;
  if (x->ndim != 3 && x->ndim != 4) wrap_dim(2, x->ndim);  // torch's error for too few dimensions
  int64_t in[2] = {x->size(x->ndim - 2), x->size(x->ndim - 1)}, channels = x->size(x->ndim - 3);
  place_patches(s, batched ? x->size(0) : 1, channels, in);
  if ((x->ndim != 3 && x->ndim != 4) || channels == 0 || in[0] == 0 || in[1] == 0) {
    fail(PyExc_RuntimeError,
         "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
         "non-zero dimensions for input, but got: " +
             sizes_text(x->sizes()));
  }
  if (s.out[1] < 1 || s.out[2] < 1) {
    fail(PyExc_RuntimeError, "Given input with spatial size " + pair_text(s.in) +
                                 ", kernel_size=" + pair_text(s.kernel) +
                                 ", dilation=" + pair_text(s.dilation) + ", padding=" + pair_text(s.padding) +
                                 ", calculated shape of the array of sliding blocks as " + pair_text(s.out) +
                                 ", but its components must be at least one.");
  }
  if (is_integral(x->dtype)) fail_not_implemented("im2col_out_cpu", x->dtype);
  int64_t sizes[] = {s.batch, channels * s.kernel_size(), s.pixels()};
  TensorRef result = new_tensor(batched ? Sizes(sizes, 3) : Sizes(sizes + 1, 2), x->dtype, x->device());
  if (x->is_meta() || result->numel == 0) return result.release_object();
  TensorRef from = contiguous(x);
  MaybeNoGil released(result->numel);
  unfold_patches(x->dtype, s, result->data(), from->data());
  return result.release_object();
}

// col2im(x; output_size, kernel_size, dilation, padding, stride)
PyObject* col2im_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("col2im", args[0]);
  Triple size;
  bool single = (PyTuple_Check(args[1]) || PyList_Check(args[1])) && PySequence_Size(args[1]) == 1;
  if (single || !read_triple(args[1], 2, 1, size, "col2im", "output_size")) {
    failf(PyExc_RuntimeError, "It is expected output_size equals to 2, but got size %d",
          int(PySequence_Size(args[1])));
  }
  check_moderate(size, "col2im", "output_size");
  ConvShape s = read_patches(args + 2, true);
  if ((x->ndim != 2 && x->ndim != 3) || x->size(x->ndim - 2) == 0 || x->size(x->ndim - 1) == 0) {
    fail(PyExc_RuntimeError,
         "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
         "non-zero dimensions for input, but got: " +
             sizes_text(x->sizes()));
  }
  bool batched = x->ndim == 3;
  int64_t rows = x->size(x->ndim - 2), blocks = x->size(x->ndim - 1);
  place_patches(s, batched ? x->size(0) : 1, 1, size.at + 1);
  int64_t area = s.kernel_size();
  if (rows % area) {
    failf(PyExc_RuntimeError,
          "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
          "input.size(1)=%lld and kernel_size=%s.",
          (long long)rows, pair_text(s.kernel).c_str());
  }
  int64_t count = s.out[1] * s.out[2];
  if (blocks == count && (s.out[1] < 1 || s.out[2] < 1)) {
    failf(PyExc_RuntimeError,
          "Given output_size=%s, kernel_size=%s, dilation=%s, padding=%s, stride=%s, calculated shape of the "
          "array of sliding blocks as %s, which is too small (non-positive)",
          pair_text(s.in).c_str(), pair_text(s.kernel).c_str(), pair_text(s.dilation).c_str(),
          pair_text(s.padding).c_str(), pair_text(s.stride).c_str(), pair_text(s.out).c_str());
  }
  if (blocks != count) {
    failf(
        PyExc_RuntimeError,
        "Given output_size=%s, kernel_size=%s, dilation=%s, padding=%s, stride=%s, expected size of input's "
        "dimension 2 to match the calculated number of sliding blocks %lld * %lld = %lld, but got "
        "input.size(2)=%lld.",
        pair_text(s.in).c_str(), pair_text(s.kernel).c_str(), pair_text(s.dilation).c_str(),
        pair_text(s.padding).c_str(), pair_text(s.stride).c_str(), (long long)s.out[1], (long long)s.out[2],
        (long long)count, (long long)blocks);
  }
  if (is_integral(x->dtype)) fail_not_implemented("col2im_out_cpu", x->dtype);
  s.in_channels = rows / area;
  int64_t sizes[] = {s.batch, s.in_channels, s.in[1], s.in[2]};
  TensorRef result = new_tensor(batched ? Sizes(sizes, 4) : Sizes(sizes + 1, 3), x->dtype, x->device());
  if (x->is_meta() || result->numel == 0) return result.release_object();
  TensorRef from = contiguous(x);
  MaybeNoGil released(x->numel);
  fold_patches(x->dtype, s, result->data(), from->data());
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  Primitive& convolution = define("convolution(x, weight, bias; stride, padding, dilation, groups)",
                                  convolution_forward, Primitive::FOLLOWS_FIRST);
  Primitive& transposed =
      define("conv_transpose(x, weight, bias; stride, padding, output_padding, dilation, groups)",
             conv_transpose_forward, Primitive::FOLLOWS_FIRST);
  convolution.turned = transposed.turned = [](PyObject* const* args) {
    bool tensors = is_tensor(args[0]) && is_tensor(args[1]);
    return uint16_t(tensors && puts_channels_last(as_tensor(args[0]), as_tensor(args[1])) ? 3 : 0);
  };
  define("conv_input_gradient(grad, weight; input_size, stride, padding, dilation, groups)",
         input_gradient_forward);
  define("conv_weight_gradient(x, grad; weight_size, stride, padding, dilation, groups)",
         weight_gradient_forward);
  define("im2col(x; kernel_size, dilation, padding, stride)", im2col_forward);
  define("col2im(x; output_size, kernel_size, dilation, padding, stride)", col2im_forward);
});

}  // namespace
}  // namespace rl
