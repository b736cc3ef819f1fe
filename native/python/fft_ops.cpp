// The Fourier transforms as primitives: complex to complex, real to complex (half the spectrum or all of it),
// and half a spectrum to real. Norms, lengths and names are Python's business (rushlight/fft.py).
//
// Start at `c2c_forward`. Results are laid out as torch's: batch dimensions first, in the order of the
// input's strides, then the transformed ones.
#include "../kernels/fft.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

struct Request {
  Tensor* x;
  int dims[MAX_DIMS];
  int count = 0;
  double scale;
  bool forward;

  Request(const char* name, PyObject* const* args) : x(tensor_argument(name, args[0])) {
    if (!PyTuple_Check(args[1])) failf(PyExc_TypeError, "%s(): dims must be a tuple", name);
    uint64_t seen = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); i++) {
      int d = wrap_dim(read_int(PyTuple_GET_ITEM(args[1], i)), x->ndim);
      if (seen >> d & 1 || x->ndim == 0) fail(PyExc_RuntimeError, "FFT dims must be unique");
      seen |= uint64_t(1) << d;
      dims[count++] = d;
      if (x->size(d) < 1) fail(PyExc_RuntimeError, "Invalid number of data points (0) specified");
    }
    scale = PyFloat_AsDouble(args[2]);
    if (scale == -1.0 && PyErr_Occurred()) throw PythonError{};
    forward = bool_argument(name, "forward", args[3]);
  }
  int last() const { return dims[count - 1]; }

  void require(bool complex) const {
    bool fits = complex ? is_complex(x->dtype) : x->dtype == DType::f32 || x->dtype == DType::f64;
    if (!fits) failf(PyExc_RuntimeError, "Unsupported dtype %s", dtype_class_name(x->dtype));
  }
  void require_some() const {
    if (!count) fail(PyExc_RuntimeError, "fft must transform at least one axis");
  }

  // A new tensor with the given size along the last transformed dimension; `last_inside`: that one is
  // innermost.
  TensorRef result(DType dtype, int64_t length, bool last_inside) const {
    Shape sizes;
    sizes.assign(x->sizes());
    if (count) sizes.sizes[last()] = length;
    bool transformed[MAX_DIMS] = {};
    for (int i = 0; i < count; i++) transformed[dims[i]] = true;
    int order[MAX_DIMS], n = 0;
    auto put = [&](int d, int from) {
      int place = n++;
      // The stride of an expanded dimension says nothing about the order.
      auto outside = [&](int other) { return x->stride(other) && x->stride(other) < x->stride(d); };
      for (; place > from && outside(order[place - 1]); place--) {
        order[place] = order[place - 1];
      }
      order[place] = d;
    };
    for (int d = 0; d < x->ndim; d++) {
      if (!transformed[d]) put(d, 0);
    }
    int inner = n;
    for (int d = 0; d < x->ndim; d++) {
      if (transformed[d] && !(last_inside && d == last())) put(d, inner);
    }
    if (last_inside && count) order[n++] = last();
    int64_t strides[MAX_DIMS], step = 1;
    for (int i = n - 1; i >= 0; i--) {
      strides[order[i]] = step;
      step *= std::max<int64_t>(sizes.sizes[order[i]], 1);
    }
    return new_strided(sizes, {strides, size_t(x->ndim)}, dtype, x->device());
  }
};

void pass(Transform kind, Tensor* to, Tensor* from, int axis, bool forward, double scale) {
  if (!fft_pass(kind, to->span(), from->span(), axis, forward, scale)) throw std::bad_alloc();
}

// fft_c2c(x; dims, scale, forward)
PyObject* c2c_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Request request("fft_c2c", args);
  request.require(true);
  Tensor* x = request.x;
  if (!request.count) {
    TensorRef copy = clone(x);
    return copy.release_object();
  }
  TensorRef result = request.result(x->dtype, x->size(request.last()), false);
  if (x->is_meta()) return result.release_object();
  MaybeNoGil release(x->numel);
  for (int i = request.count - 1; i >= 0; i--) {
    bool first = i == request.count - 1;
    pass(Transform::complex, result.get(), first ? x : result.get(), request.dims[i], request.forward,
         first ? request.scale : 1.0);
  }
  return result.release_object();
}

// The rest of a real signal's spectrum along `axis`, from its first half: out[n - k] = conj(out[k]).
template <class T>
void mirror(Tensor* out, int axis) {
  int64_t n = out->size(axis), step = out->stride(axis), lines = out->numel / n;
  int64_t sizes[MAX_DIMS], strides[MAX_DIMS], index[MAX_DIMS] = {};
  int ndim = 0;
  for (int d = 0; d < out->ndim; d++) {
    if (d == axis) continue;
    sizes[ndim] = out->size(d);
    strides[ndim++] = out->stride(d);
  }
  T* line = out->data_as<T>();
  for (int64_t i = 0; i < lines; i++) {
    for (int64_t k = n / 2 + 1; k < n; k++) line[k * step] = std::conj(line[(n - k) * step]);
    for (int d = ndim - 1; d >= 0; d--) {
      line += strides[d];
      if (++index[d] < sizes[d]) break;
      line -= sizes[d] * strides[d];
      index[d] = 0;
    }
  }
}

// fft_r2c(x; dims, scale, forward, onesided)
PyObject* r2c_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Request request("fft_r2c", args);
  bool onesided = bool_argument("fft_r2c", "onesided", args[4]);
  request.require(false);
  request.require_some();
  Tensor* x = request.x;
  int last = request.last();
  int64_t n = x->size(last), half = n / 2 + 1;
  TensorRef result = request.result(to_complex(x->dtype), onesided ? half : n, onesided);
  if (x->is_meta() || !result->numel) return result.release_object();
  Shape sizes;
  sizes.assign(result->sizes());
  sizes.sizes[last] = half;
  TensorRef front = new_alias(result.get(), sizes, result->strides(), result->offset);
  MaybeNoGil release(x->numel);
  pass(Transform::real_to_complex, front.get(), x, last, request.forward, request.scale);
  if (!onesided && x->dtype == DType::f32) mirror<std::complex<float>>(result.get(), last);
  if (!onesided && x->dtype == DType::f64) mirror<std::complex<double>>(result.get(), last);
  for (int i = request.count - 2; i >= 0; i--) {
    pass(Transform::complex, result.get(), result.get(), request.dims[i], request.forward, 1.0);
  }
  return result.release_object();
}

// fft_c2r(x; dims, scale, forward, length)
PyObject* c2r_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Request request("fft_c2r", args);
  int64_t n = int_argument("fft_c2r", "length", args[4]);
  request.require(true);
  request.require_some();
  Tensor* x = request.x;
  if (n < 1) failf(PyExc_RuntimeError, "Invalid number of data points (%lld) specified", (long long)n);
  if (x->size(request.last()) != n / 2 + 1) {
    fail(PyExc_RuntimeError, "fft_c2r: the spectrum does not have length / 2 + 1 elements");
  }
  TensorRef result = request.result(to_real(x->dtype), n, true);
  if (x->is_meta() || !result->numel) return result.release_object();
  TensorRef between = share(x);
  if (request.count > 1) between = request.result(x->dtype, n / 2 + 1, false);
  MaybeNoGil release(x->numel);
  for (int i = 0; i + 1 < request.count; i++) {
    pass(Transform::complex, between.get(), i ? between.get() : x, request.dims[i], request.forward, 1.0);
  }
  pass(Transform::complex_to_real, result.get(), between.get(), request.last(), request.forward,
       request.scale);
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("fft_c2c(x; dims, scale, forward)", c2c_forward);
  define("fft_r2c(x; dims, scale, forward, onesided)", r2c_forward);
  define("fft_c2r(x; dims, scale, forward, length)", c2r_forward);
});

}  // namespace
}  // namespace rl
