// The primitives of pooling by maxima: arguments, shapes, torch's checks; the loops are in kernels/pool.h.
//
// max_pool1d to 3d give values only and find the maxima again in backward, which is cheaper than writing and
// reading an int64 for each; the *_with_indices forms, adaptive and fractional pooling give both. All are one
// list of windows to the kernels: read `regular_windows`.
#include "../kernels/pool.h"
#include "../tensor/iterate.h"
#include "window.h"

namespace rl {
namespace {

struct Entry {
  int dims;
  const char* name;
  const char* kernel;  // torch's name for the loop
};
const Entry& entry_of(const Primitive& op) { return *static_cast<const Entry*>(op.payload); }

void read_pool(PyObject* o, const Entry& e, int64_t unused, Triple& out, const char* name, const char* must,
               bool unchecked = false) {
  if (!read_triple(o, e.dims, unused, out, e.name, name)) {
    if (e.dims == 1) {
      std::string_view what = name;
      failf(PyExc_RuntimeError,
            "%s() %s must be %san int, list of ints%s or tuple of ints of size 1 but got size %zd", e.name,
            name, what == "stride" ? "None, " : "", what == "stride" || what == "padding" ? "," : "",
            PySequence_Size(o));
    }
    failf(PyExc_RuntimeError, "%s: %s %s, or a tuple of %s ints", e.name, name, must,
          e.dims == 2 ? "two" : "three");
  }
  // Lines refuse negative numbers later, and what is `unchecked` here too large ones.
  if (!unchecked && (e.dims != 1 || out.at[2] >= 0)) check_moderate(out, e.name, name);
}

bool is_omitted(PyObject* o) {
  return o == Py_None || ((PyTuple_Check(o) || PyList_Check(o)) && PySequence_Size(o) == 0);
}

struct Window {
  Triple kernel, stride, padding, dilation;
  bool ceil_mode;

  // kernel_size, stride, padding, dilation, ceil_mode; of a `line` `moderate_line` has to be asked.
  Window(PyObject* const* args, const Entry& e, bool line = false) {
    read_pool(args[0], e, 1, kernel, "kernel_size", "must either be a single int", line);
    if (is_omitted(args[1])) stride = kernel;
    else read_pool(args[1], e, 1, stride, "stride", "must either be omitted, a single int", line);
    read_pool(args[2], e, 0, padding, "padding", "must either be a single int", line);
    read_pool(args[3], e, 1, dilation, "dilation", "must be either a single int", line);
    ceil_mode = is_true(args[4]);
  }
};

[[noreturn]] void fail_input(const Entry& e, const Tensor* x) {
  if (e.dims == 1) {
    fail(PyExc_RuntimeError, std::string(e.name) +
                                 ": Expected 2D or 3D (batch mode) tensor with optional 0 dim "
                                 "batch size for input, but got:" +
                                 sizes_text(x->sizes()));
  }
  failf(PyExc_RuntimeError, "non-empty %dD or %dD (batch mode) tensor expected for input", e.dims + 1,
        e.dims + 2);
}

void check_input(const Entry& e, const Tensor* x) {
  if (x->ndim != e.dims + 1 && x->ndim != e.dims + 2) fail_input(e, x);
  for (int d = x->ndim - e.dims - 1; d < x->ndim; d++) {
    if (x->size(d) == 0) {
      if (e.dims == 1) {
        fail(PyExc_RuntimeError,
             std::string(e.name) +
                 ": Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
                 "input, but got:" +
                 sizes_text(x->sizes()));
      }
      if (e.dims == 3) {
        // torch says dimension 0 whichever it is.
        failf(PyExc_RuntimeError,
              "max_pool3d_with_indices_out_cpu_template(): Expected input's non-batch dimensions to have "
              "positive "
              "length, but input has a shape of %s and non-batch dimension 0 has length zero!",
              sizes_text(x->sizes()).c_str());
      }
      failf(PyExc_RuntimeError,
            "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, but got:%s",
            e.dims + 1, e.dims + 2, sizes_text(x->sizes()).c_str());
    }
  }
}

void check_line(const Window& w) {
  auto positive = [](int64_t n, const char* name) {
    if (n <= 0)
      failf(PyExc_RuntimeError, "max_pool1d() %s must be greater than zero, but got %lld", name,
            (long long)n);
  };
  positive(w.kernel[2], "kernel_size");
  positive(w.stride[2], "stride");
  if (w.padding[2] < 0) {
    failf(PyExc_RuntimeError, "max_pool1d() padding must be non-negative, but got %lld",
          (long long)w.padding[2]);
  }
  if (w.padding[2] > w.kernel[2] / 2) {
    failf(PyExc_RuntimeError,
          "max_pool1d() padding should be at most half of kernel size, but got padding=%lld and "
          "kernel_size=%lld",
          (long long)w.padding[2], (long long)w.kernel[2]);
  }
  positive(w.dilation[2], "dilation");
}

// How many windows of a line there are, which torch looks at before it takes the numbers for an image's.
__int128 windows_of_line(int64_t in, const Window& w) {
  __int128 s = w.stride[2], room = in + __int128(2) * w.padding[2] - 1;
  room += (w.ceil_mode ? s - 1 : 0) - __int128(w.dilation[2]) * (w.kernel[2] - 1);
  __int128 out = (room >= 0 ? room / s : -((-room + s - 1) / s)) + 1;
  return w.ceil_mode && (out - 1) * s >= in + __int128(w.padding[2]) ? out - 1 : out;
}

// Refuses what the arithmetic on positions cannot take, of a window that check_line() has passed. A dilation
// of one element and a stride that reaches no second window may be as large as they are.
void moderate_line(Window& w, const Entry& e, const Tensor* x, bool by_image) {
  __int128 out = windows_of_line(x->size(x->ndim - 1), w);
  if (out < 1) {
    long long told = out < INT64_MIN ? INT64_MIN : static_cast<long long>(out);
    failf(PyExc_RuntimeError, "max_pool1d() Invalid computed output size: %lld", told);
  }
  if (!by_image && w.kernel[2] == 1) w.dilation.at[2] = 1;
  if (!by_image) w.stride.at[2] = std::min<int64_t>(w.stride[2], INT32_MAX);
  check_moderate(w.kernel, e.name, "kernel_size");
  check_moderate(w.stride, e.name, "stride");
  check_moderate(w.padding, e.name, "padding");
  check_moderate(w.dilation, e.name, "dilation");
}

void check_window(const Window& w, const Entry& e, const Tensor* x) {
  if (e.dims == 1) return check_line(w);
  if (x->ndim != e.dims + 1 && x->ndim != e.dims + 2) fail_input(e, x);
  for (int d = 0; d < 3; d++)
    if (w.stride[d] == 0) fail(PyExc_RuntimeError, "stride should not be zero");
  auto text = [&](const char* what, const Triple& t) {
    static const char* names[] = {"T", "H", "W"};
    std::string list;
    for (int d = 3 - e.dims; d < 3; d++)
      list += std::string(d == 3 - e.dims ? "" : " ") + what + names[d] + ": " + std::to_string(t[d]);
    return list;
  };
  for (int d = 0; d < 3; d++) {
    if (w.padding[d] < 0)
      failf(PyExc_RuntimeError, "pad must be non-negative, but got pad: %lld", (long long)w.padding[d]);
    if (w.padding[d] > ((w.kernel[d] - 1) * w.dilation[d] + 1) / 2) {
      failf(PyExc_RuntimeError,
            "pad should be at most half of effective kernel size, but got pad=%lld, kernel_size=%lld and "
            "dilation=%lld",
            (long long)w.padding[d], (long long)w.kernel[d], (long long)w.dilation[d]);
    }
  }
  for (int d = 0; d < 3; d++) {
    if (w.kernel[d] <= 0)
      fail(PyExc_RuntimeError, "kernel size should be greater than zero, but got " + text("k", w.kernel));
    if (w.stride[d] <= 0)
      fail(PyExc_RuntimeError, "stride should be greater than zero, but got " + text("d", w.stride));
    if (w.dilation[d] <= 0) {
      fail(PyExc_RuntimeError,
           "dilation should be greater than zero, but got " + text("dilation", w.dilation));
    }
  }
  bool wide = false;  // further than half the kernel itself, however far its elements are apart
  for (int d = 0; d < 3; d++) wide |= w.padding[d] > w.kernel[d] / 2;
  if (!wide || e.dims == 1) return;
  auto n = [](int64_t value) { return std::to_string(value); };
  std::string sentence = "pad should be smaller than or equal to half of kernel size, but got ";
  if (e.dims == 2)
    fail(PyExc_RuntimeError, sentence + "padW = " + n(w.padding[2]) + ", padH = " + n(w.padding[1]) +
                                 ", kW = " + n(w.kernel[2]) + ", kH = " + n(w.kernel[1]));
  fail(PyExc_RuntimeError, sentence + "kT: " + n(w.kernel[0]) + " kW: " + n(w.kernel[2]) +
                               " kH: " + n(w.kernel[1]) + " padT: " + n(w.padding[0]) +
                               " padW: " + n(w.padding[2]) + " padH: " + n(w.padding[1]));
}

void reserve(Windows& windows, int d) {
  windows.begin[d].resize(size_t(windows.out[d]));
  windows.end[d].resize(size_t(windows.out[d]));
}

Windows regular_windows(const Tensor* x, const Window& w, const Entry& e) {
  Windows result;
  bool small = false;
  for (int d = 0; d < 3; d++) {
    int place = x->ndim - 3 + d;
    int64_t in = d < 3 - e.dims ? 1 : x->size(place), s = w.stride[d];
    int64_t room = in + 2 * w.padding[d] - w.dilation[d] * (w.kernel[d] - 1) - 1 + (w.ceil_mode ? s - 1 : 0);
    int64_t out = (room >= 0 ? room / s : -((-room + s - 1) / s)) + 1;
    if (w.ceil_mode && (out - 1) * s >= in + w.padding[d]) out--;
    result.in[d] = in, result.out[d] = out, result.step[d] = w.dilation[d];
    small |= out < 1;
  }
  if (small) {
    if (e.dims == 1)
      failf(PyExc_RuntimeError, "max_pool1d() Invalid computed output size: %lld", (long long)result.out[2]);
    std::string planes = std::to_string(x->size(x->ndim - e.dims - 1)) + "x";
    fail(PyExc_RuntimeError, "Given input size: (" + planes + sizes_between(result.in, e.dims, "x") +
                                 "). Calculated output size: (" + planes +
                                 sizes_between(result.out, e.dims, "x") + "). Output size is too small");
  }
  for (int d = 0; d < 3 && !x->is_meta(); d++) {  // there, nobody looks at windows, and there may be many
    reserve(result, d);
    bool within = w.dilation[d] == 1;
    for (int64_t o = 0; o < result.out[d]; o++) {
      int64_t begin = o * w.stride[d] - w.padding[d], end = begin + (w.kernel[d] - 1) * w.dilation[d] + 1;
      within &= begin >= 0 && end <= result.in[d];
      if (begin < 0) begin += (-begin + w.dilation[d] - 1) / w.dilation[d] * w.dilation[d];
      result.begin[d][size_t(o)] = begin;
      result.end[d][size_t(o)] = std::min(end, result.in[d]);
    }
    if (within) result.kernel[d] = w.kernel[d], result.stride[d] = w.stride[d];
  }
  return result;
}

Shape pooled_sizes(const Tensor* x, const Windows& windows, int dims) {
  Shape sizes;
  sizes.assign(x->sizes());
  for (int d = 0; d < dims; d++) sizes.sizes[x->ndim - dims + d] = windows.out[3 - dims + d];
  return sizes;
}

int64_t plane_count(const Tensor* x, int dims) {
  int64_t planes = 1;
  for (int d = 0; d < x->ndim - dims; d++) planes *= x->size(d);
  return planes;
}

void check_dtype(const Tensor* x, const char* kernel, bool integers = true) {
  if (is_complex(x->dtype) || is_bool(x->dtype) || (!integers && is_integral(x->dtype)))
    fail_not_implemented(kernel, x->dtype);
}

void check_not_negative(const Shape& sizes) {
  for (int d = 0; d < sizes.ndim; d++) {
    if (sizes.sizes[d] < 0) {
      failf(PyExc_RuntimeError, "Trying to create tensor with negative dimension %lld: %s",
            (long long)sizes.sizes[d], sizes_text(sizes).c_str());
    }
  }
}

PyObject* both(TensorRef values, TensorRef indices, bool channels_last = false) {
  Ref<PyObject> one(laid_out(std::move(values), channels_last)),
      other(laid_out(std::move(indices), channels_last));
  return checked(PyTuple_Pack(2, one.get(), other.get())).release();
}

// Whether the channels of x are pooled where they lie, side by side.
bool by_channels(const Tensor* x, const Windows& windows, int dims) {
  return x->ndim == dims + 2 && !x->is_meta() && is_dense_channels_last(x) &&
         pools_channels(x->dtype, windows, x->size(1));
}

// max_pool2d(x; kernel_size, stride, padding, dilation, ceil_mode)
PyObject* max_pool_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& e = entry_of(op);
  Tensor* x = tensor_argument(e.name, args[0]);
  if (e.dims == 1) check_input(e, x);
  Window window(args + 1, e, e.dims == 1);
  check_window(window, e, x);
  check_input(e, x);
  bool by_image = e.dims == 1 && x->requires_grad();  // as torch pools lines whose gradient is wanted
  if (e.dims == 1) moderate_line(window, e, x, by_image);
  Windows windows = regular_windows(x, window, e);
  check_dtype(x, by_image ? "max_pool2d" : e.kernel, e.dims != 1);
  Shape sizes = pooled_sizes(x, windows, e.dims);
  if (by_channels(x, windows, e.dims)) {
    TensorRef result = new_channels_last(sizes, x->dtype, x->device());
    MaybeNoGil released(x->numel);
    max_pool_channels(x->dtype, windows, x->size(0), x->size(1), result->data(), nullptr, x->data());
    return result.release_object();
  }
  TensorRef result = new_tensor(sizes, x->dtype, x->device());
  if (!x->is_meta() && result->numel) {
    TensorRef from = contiguous(x);
    MaybeNoGil released(x->numel);
    max_pool(x->dtype, windows, plane_count(x, e.dims), result->data(), from->data());
  }
  return laid_out(std::move(result), is_channels_last(x));
}

// max_pool2d_with_indices(x; kernel_size, stride, padding, dilation, ceil_mode) -> values, indices
PyObject* with_indices_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& e = entry_of(op);
  Tensor* x = tensor_argument(e.name, args[0]);
  if (e.dims == 1) check_input(e, x);
  Window window(args + 1, e);
  check_window(window, e, x);
  check_input(e, x);
  Windows windows = regular_windows(x, window, e);
  check_dtype(x, e.kernel);
  Shape sizes = pooled_sizes(x, windows, e.dims);
  if (by_channels(x, windows, e.dims)) {
    TensorRef values = new_channels_last(sizes, x->dtype, x->device()),
              indices = new_channels_last(sizes, DType::i64, x->device());
    {
      MaybeNoGil released(x->numel);
      max_pool_channels(x->dtype, windows, x->size(0), x->size(1), values->data(),
                        indices->data_as<int64_t>(), x->data());
    }
    return both(values, indices);
  }
  TensorRef values = new_tensor(sizes, x->dtype, x->device()),
            indices = new_tensor(sizes, DType::i64, x->device());
  if (!x->is_meta() && values->numel) {
    TensorRef from = contiguous(x);
    MaybeNoGil released(x->numel);
    max_pool_indices(x->dtype, windows, plane_count(x, e.dims), values->data(), indices->data_as<int64_t>(),
                     from->data());
  }
  return both(values, indices, is_channels_last(x));
}

// max_pool2d_gradient(grad, x; kernel_size, stride, padding, dilation, ceil_mode)
PyObject* gradient_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& e = entry_of(op);
  Tensor *g = tensor_argument(e.name, args[0]), *x = tensor_argument(e.name, args[1]);
  Window window(args + 2, e);
  check_window(window, e, x);
  check_input(e, x);
  Windows windows = regular_windows(x, window, e);
  check_dtype(x, e.kernel);
  Shape sizes = pooled_sizes(x, windows, e.dims);
  if (g->dtype != x->dtype || g->ndim != sizes.ndim ||
      !std::equal(sizes.sizes, sizes.sizes + sizes.ndim, g->geometry))
    fail(PyExc_RuntimeError, "max_pool(): the gradient does not fit the result");
  if (by_channels(x, windows, e.dims)) {
    TensorRef result = new_channels_last(x->sizes(), x->dtype, x->device()), grad = share(g);
    if (!is_dense_channels_last(g)) {
      grad = new_channels_last(g->sizes(), g->dtype, g->device());
      copy_into(grad.get(), g);
    }
    MaybeNoGil released(x->numel);
    max_pool_gradient_channels(x->dtype, windows, x->size(0), x->size(1), result->data(), grad->data(),
                               x->data());
    return result.release_object();
  }
  TensorRef result = new_tensor(x->sizes(), x->dtype, x->device());
  if (x->is_meta() || result->numel == 0) return result.release_object();
  TensorRef from = contiguous(x), grad = contiguous(g);
  MaybeNoGil released(x->numel);
  max_pool_gradient(x->dtype, windows, plane_count(x, e.dims), result->data(), grad->data(), from->data());
  return result.release_object();
}

// adaptive_max_pool2d(x; output_size) -> values, indices
PyObject* adaptive_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& e = entry_of(op);
  Tensor* x = tensor_argument(e.name, args[0]);
  Shape size;
  read_sizes(args[1], size, e.name, "output_size");
  if (x->ndim != e.dims + 1 && x->ndim != e.dims + 2) {
    failf(PyExc_RuntimeError, "%s(): Expected %dD or %dD tensor, but got: %s", e.name, e.dims + 1, e.dims + 2,
          sizes_text(x->sizes()).c_str());
  }
  for (int d = 1; d < x->ndim; d++) {
    if (x->size(d) == 0) {
      failf(
          PyExc_RuntimeError,
          "%s(): Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with "
          "dimension %d being empty",
          e.name, sizes_text(x->sizes()).c_str(), d);
    }
  }
  if (size.ndim != e.dims) {
    failf(PyExc_RuntimeError, "%s(): internal error: output_size.size() must be %d", e.name, e.dims);
  }
  Windows windows;
  for (int d = 0; d < 3; d++) {
    bool used = d >= 3 - e.dims;
    windows.in[d] = used ? x->size(x->ndim - 3 + d) : 1;
    windows.out[d] = used ? size.sizes[d - 3 + e.dims] : 1;
  }
  Shape sizes = pooled_sizes(x, windows, e.dims);
  check_not_negative(sizes);
  check_dtype(x, e.kernel, false);
  TensorRef values = new_tensor(sizes, x->dtype, x->device()),
            indices = new_tensor(sizes, DType::i64, x->device());
  if (x->is_meta() || values->numel == 0) return both(values, indices, e.dims == 2 && is_channels_last(x));
  for (int d = 0; d < 3; d++) {
    reserve(windows, d);
    __int128 in = windows.in[d], out = windows.out[d];
    for (int64_t o = 0; o < windows.out[d]; o++) {
      windows.begin[d][size_t(o)] = int64_t(o * in / out);
      windows.end[d][size_t(o)] = int64_t(((o + 1) * in + out - 1) / out);
    }
  }
  TensorRef from = contiguous(x);
  {
    MaybeNoGil released(x->numel);
    max_pool_indices(x->dtype, windows, plane_count(x, e.dims), values->data(), indices->data_as<int64_t>(),
                     from->data());
  }
  return both(values, indices, e.dims == 2 && is_channels_last(x));
}

// Where the windows of fractional pooling begin: evenly spread, shifted by a random number in [0, 1).
template <class T>
void spread(std::vector<int64_t>& begin, T sample, int64_t in, int64_t out, int64_t kernel) {
  if (out > 1) {
    T alpha = T(in - kernel) / T(out - 1);
    int64_t first = int64_t(sample * alpha);
    for (int64_t i = 0; i < out - 1; i++)
      begin[size_t(i)] = std::clamp<int64_t>(int64_t((T(i) + sample) * alpha) - first, 0, in - kernel);
  }
  begin[size_t(out - 1)] = in - kernel;
}

// The indices of maxima under windows of nothing: where each begins, though that be outside the plane.
void put_begins(const Windows& w, int64_t* places) {
  for (int64_t t : w.begin[0])
    for (int64_t h : w.begin[1])
      for (int64_t c : w.begin[2])
        *places++ =
            int64_t((uint64_t(t) * uint64_t(w.in[1]) + uint64_t(h)) * uint64_t(w.in[2]) + uint64_t(c));
}

// fractional_max_pool2d(x, samples; kernel_size, output_size) -> values, indices
PyObject* fractional_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& e = entry_of(op);
  Tensor *x = tensor_argument(e.name, args[0]), *samples = tensor_argument(e.name, args[1]);
  Triple kernel, size;
  read_pool(args[2], e, 1, kernel, "kernel_size", "must either be a single int", true);
  read_pool(args[3], e, 1, size, "output_size", "must either be a single int", true);
  const char* out = e.dims == 3 ? "_out" : "";
  if (x->ndim != e.dims + 1 && x->ndim != e.dims + 2) {
    failf(PyExc_RuntimeError, "%s%s(): Expected %dD or %dD tensor, but got: %s", e.name, out, e.dims + 1,
          e.dims + 2, sizes_text(x->sizes()).c_str());
  }
  int64_t batch = x->ndim == e.dims + 2 ? x->size(0) : 1, channels = x->size(x->ndim - e.dims - 1);
  for (int place = 1; place < x->ndim; place++) {
    if (x->size(place) == 0) {
      failf(PyExc_RuntimeError,
            "%s%s(): Expected input to have non-zero size for non-batch dimensions, but got%s with dimension "
            "%d being empty.",
            e.name, out, sizes_text(x->sizes()).c_str(), place);
    }
  }
  Windows windows;
  static const char* names[] = {"time", "height", "width"};
  for (int d = 0; d < 3; d++) {
    windows.in[d] = d < 3 - e.dims ? 1 : x->size(x->ndim - 3 + d);
    windows.out[d] = size[d];
    // In three dimensions torch wants a window's more. Sizes whose sum it cannot count are those of no
    // tensor.
    __int128 needed = __int128(size[d]) + kernel[d] - 1 + (e.dims == 3);
    bool uncounted = needed > INT64_MAX && kernel[d] <= INT32_MAX;
    if (d >= 3 - e.dims && needed > windows.in[d] && !uncounted) {
      failf(PyExc_RuntimeError, "%s%s(): pool %s %lld too large relative to input %s %lld", e.name, out,
            names[d], (long long)kernel[d], names[d], (long long)windows.in[d]);
    }
  }
  Shape sizes = pooled_sizes(x, windows, e.dims);
  check_not_negative(sizes);
  numel_of(sizes);
  check_moderate(kernel, e.name, "kernel_size");
  if (samples->dtype != x->dtype)
    fail(PyExc_RuntimeError, "Expect _random_samples to have the same dtype as input");
  if (samples->ndim != 3)
    failf(PyExc_RuntimeError, "Expect _random_samples to have 3 dimensions, got %d", samples->ndim);
  if (samples->size(0) < batch) {
    failf(PyExc_RuntimeError, "Expect _random_samples.size(0) no less then input batch size.");
  }
  if (samples->size(1) != channels)
    fail(PyExc_RuntimeError, "Expect _random_samples.size(1) equals to input channel size.");
  if (samples->size(2) != e.dims) {
    failf(PyExc_RuntimeError, "Expect _random_samples.size(2) equals to %d; got %lld.", e.dims,
          (long long)samples->size(2));
  }
  check_dtype(x, e.kernel, false);
  TensorRef values = new_tensor(sizes, x->dtype, x->device()),
            indices = new_tensor(sizes, DType::i64, x->device());
  if (x->is_meta() || values->numel == 0) return both(values, indices);
  TensorRef from = contiguous(x), draws = cast(samples, x->dtype == DType::f64 ? DType::f64 : DType::f32);
  draws = contiguous(draws.get());
  for (int d = 0; d < 3; d++) reserve(windows, d);
  bool nothing = std::min({kernel[0], kernel[1], kernel[2]}) <= 0;
  if (nothing) {
    Scalar least{Scalar::floating, false, 0, -std::numeric_limits<double>::infinity()};
    alignas(16) char element[16];
    least.store(x->dtype, element);
    fill(values.get(), element);
  }
  {
    MaybeNoGil released(x->numel);
    for (int64_t plane = 0; plane < batch * channels; plane++) {
      for (int d = 0; d < 3; d++) {
        if (d < 3 - e.dims) {
          windows.begin[d][0] = 0, windows.end[d][0] = 1;
          continue;
        }
        // Two-dimensional pooling draws width first.
        int64_t draw = plane * e.dims + (e.dims == 2 ? 2 - d : d);
        if (x->dtype == DType::f64)
          spread(windows.begin[d], draws->data_as<double>()[draw], windows.in[d], size[d], kernel[d]);
        else spread(windows.begin[d], draws->data_as<float>()[draw], windows.in[d], size[d], kernel[d]);
        for (int64_t o = 0; o < size[d]; o++)
          windows.end[d][size_t(o)] = windows.begin[d][size_t(o)] + kernel[d];
      }
      int64_t* places = indices->data_as<int64_t>() + plane * windows.out_size();
      if (nothing) {
        put_begins(windows, places);
        continue;
      }
      max_pool_indices(x->dtype, windows, 1, values->data() + plane * windows.out_size() * x->itemsize(),
                       places, from->data() + plane * windows.in_size() * x->itemsize());
    }
  }
  return both(values, indices);
}

// ---- moving elements of planes by indices

// The indices as int64 in contiguous memory, all within planes of `move.size` elements.
TensorRef checked_indices(Tensor* indices, const PlaneMove& move, const std::string& volume) {
  TensorRef at = stable(indices);
  int64_t bad;
  if (!at->is_meta() && find_bad_index(move, at->data_as<int64_t>(), bad)) {
    failf(PyExc_RuntimeError, "Found an invalid max index: %lld (output volumes are of size %s)",
          (long long)bad, volume.c_str());
  }
  return at;
}

void check_indices(const Tensor* x, const Tensor* indices) {
  if (indices->dtype != DType::i64) {
    failf(PyExc_RuntimeError, "elements in indices should be type int64 but got: %s",
          dtype_class_name(indices->dtype));
  }
  if (!same_sizes(x, indices)) {
    fail(PyExc_RuntimeError, "Expected shape of indices to be same as that of the input tensor (" +
                                 sizes_text(x->sizes()) +
                                 ") but got indices tensor with shape: " + sizes_text(indices->sizes()));
  }
}

PlaneMove plane_move(const Tensor* small, int dims, int64_t size) {
  PlaneMove move{plane_count(small, dims), size, 1};
  if (small->numel == 0) return {move.planes, size, 0};
  for (int d = small->ndim - dims; d < small->ndim; d++) move.count *= small->size(d);
  return move;
}

// max_pool_scatter(x, indices; size) adds, max_unpool(x, indices; size) puts the last
PyObject* scatter_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  bool add = op.payload != nullptr;
  Tensor *x = tensor_argument("max_unpool", args[0]), *indices = tensor_argument("max_unpool", args[1]);
  Shape size, sizes;
  read_sizes(args[2], size, "max_unpool", "output_size");
  check_indices(x, indices);
  if (size.ndim > x->ndim) fail(PyExc_RuntimeError, "max_unpool(): too many sizes");
  sizes.assign(x->sizes());
  std::copy(size.sizes, size.sizes + size.ndim, sizes.sizes + x->ndim - size.ndim);
  std::string volume;
  for (int d = 0; d < size.ndim; d++) volume += (d ? "x" : "") + std::to_string(size.sizes[d]);
  PlaneMove move = plane_move(x, size.ndim, numel_of(size));
  TensorRef result = new_tensor(sizes, x->dtype, x->device());
  if (result->numel == 0) return result.release_object();  // whatever the indices are, as torch
  TensorRef at = checked_indices(indices, move, volume);
  if (!x->is_meta()) {
    TensorRef from = contiguous(x);
    MaybeNoGil released(result->numel);
    scatter_planes(x->dtype, move, result->data(), from->data(), at->data_as<int64_t>(), add);
  }
  return laid_out(std::move(result), !add && size.ndim == 2 && x->ndim == 4 && is_channels_last(x));
}

// max_pool_gather(x, indices; dims): the elements of x at the indices
PyObject* gather_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_argument("max_pool", args[0]), *indices = tensor_argument("max_pool", args[1]);
  int64_t dims = read_int(args[2]);
  bool fits = indices->ndim == x->ndim && dims >= 0 && dims <= x->ndim && indices->dtype == DType::i64;
  for (int d = 0; fits && d < x->ndim - dims; d++) fits = x->size(d) == indices->size(d);
  if (!fits) fail(PyExc_RuntimeError, "max_pool(): indices do not fit the tensor");
  int64_t size = 1;
  for (int d = x->ndim - int(dims); d < x->ndim; d++) size *= x->size(d);
  PlaneMove move = plane_move(indices, int(dims), size);
  TensorRef at = checked_indices(indices, move, std::to_string(size));
  TensorRef result = new_tensor(indices->sizes(), x->dtype, x->device());
  if (x->is_meta() || result->numel == 0) return result.release_object();
  TensorRef from = contiguous(x);
  MaybeNoGil released(result->numel);
  gather_planes(x->dtype, move, result->data(), from->data(), at->data_as<int64_t>());
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  static const Entry max_pools[] = {
      {1, "max_pool1d", "max_pool1d_impl"}, {2, "max_pool2d", "max_pool2d"}, {3, "max_pool3d", "max_pool3d"}};
  static const Entry adaptive[] = {{1, "adaptive_max_pool1d", "adaptive_max_pool2d"},
                                   {2, "adaptive_max_pool2d", "adaptive_max_pool2d"},
                                   {3, "adaptive_max_pool3d", "adaptive_max_pool3d_cpu"}};
  static const Entry fractional[] = {{2, "fractional_max_pool2d", "fractional_max_pool2d_out_frame"},
                                     {3, "fractional_max_pool3d", "fractional_max_pool3d_out_frame"}};
  for (const Entry& e : max_pools) {
    std::string arguments = "kernel_size, stride, padding, dilation, ceil_mode)";
    define((e.name + ("(x; " + arguments)).c_str(), max_pool_forward, 0, &e);
    define((e.name + ("_with_indices(x; " + arguments) + " -> values, indices").c_str(), with_indices_forward,
           0, &e);
    define((e.name + ("_gradient(grad, x; " + arguments)).c_str(), gradient_forward, 0, &e);
  }
  for (const Entry& e : adaptive)
    define((e.name + std::string("(x; output_size) -> values, indices")).c_str(), adaptive_forward, 0, &e);
  for (const Entry& e : fractional)
    define((e.name + std::string("(x, samples; kernel_size, output_size) -> values, indices")).c_str(),
           fractional_forward, 0, &e);
  static const bool adds = true;
  define("max_pool_scatter(x, indices; size)", scatter_forward, 0, &adds);
  define("max_unpool(x, indices; size)", scatter_forward);
  define("max_pool_gather(x, indices; dims)", gather_forward);
});

}  // namespace
}  // namespace rl
