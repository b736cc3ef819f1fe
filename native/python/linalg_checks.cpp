// The checks and the small tools of linear algebra; see linalg_ops.h.
#include "linalg_ops.h"

namespace rl {

PyObject* LinAlgError = nullptr;

void check_matrix(const char* name, const Tensor* x, const char* what) {
  if (x->ndim < 2) {
    failf(PyExc_RuntimeError, "%s: The input tensor %s must have at least 2 dimensions.", name, what);
  }
}

void check_square(const char* name, const Tensor* x, const char* what) {
  check_matrix(name, x, what);
  if (rows(x) != cols(x)) {
    failf(PyExc_RuntimeError, "%s: %s must be batches of square matrices, but they are %lld by %lld matrices",
          name, what, (long long)rows(x), (long long)cols(x));
  }
}

void check_floating(const char* name, const Tensor* x, bool low) {
  if (!is_differentiable(x->dtype)) {
    failf(PyExc_RuntimeError, "%s: Expected a floating point or complex tensor as input. Got %s", name,
          dtype_class_name(x->dtype));
  }
  if (!low && (x->dtype == DType::f16 || x->dtype == DType::bf16)) {
    failf(PyExc_RuntimeError, "%s: Low precision dtypes not supported. Got %s", name,
          dtype_class_name(x->dtype));
  }
}

void check_kernel(const char* kernel, DType dtype) {
  if (dtype == DType::f32 || dtype == DType::f64 || is_complex(dtype)) return;
  fail_not_implemented(kernel, dtype);
}

void check_same_dtype(const char* name, const Tensor* a, const Tensor* b, const char* a_name,
                      const char* b_name) {
  if (a->dtype == b->dtype) return;
  failf(PyExc_RuntimeError,
        "%s: Expected %s and %s to have the same dtype, but found %s of type %s and %s of type %s instead",
        name, a_name, b_name, a_name, dtype_class_name(a->dtype), b_name, dtype_class_name(b->dtype));
}

const char* text_argument(PyObject* o) {
  if (o == Py_None) return nullptr;
  const char* text = PyUnicode_AsUTF8(o);
  if (!text) throw PythonError{};
  return text;
}

Shape with_batch(Sizes batch, std::initializer_list<int64_t> tail) {
  Shape shape;
  shape.assign(batch);
  for (int64_t size : tail) shape.append(size);
  return shape;
}

TensorRef column_major(Sizes sizes, DType dtype, Device device) {
  int64_t strides[MAX_DIMS];
  size_t n = sizes.size();
  contiguous_strides(sizes, strides);
  if (n >= 2) {
    strides[n - 2] = 1;
    strides[n - 1] = std::max<int64_t>(sizes[n - 2], 1);
  }
  return new_strided(sizes, {strides, n}, dtype, device);
}

// Transposes every matrix of a contiguous batch; the general copy is several times slower on small ones.
template <class T>
static void transpose_matrices(const void* from, void* to, int64_t count, int64_t m, int64_t n) {
  constexpr int64_t BLOCK = 16;
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  for (int64_t b = 0; b < count; b++, source += m * n, target += m * n) {
    for (int64_t i0 = 0; i0 < m; i0 += BLOCK) {
      for (int64_t j0 = 0; j0 < n; j0 += BLOCK) {
        int64_t i1 = std::min(i0 + BLOCK, m), j1 = std::min(j0 + BLOCK, n);
        for (int64_t j = j0; j < j1; j++) {
          for (int64_t i = i0; i < i1; i++) target[j * m + i] = source[i * n + j];
        }
      }
    }
  }
}

TensorRef column_major_copy(Tensor* x) {
  TensorRef copy = column_major(x->sizes(), x->dtype, x->device());
  if (x->is_meta() || !x->numel) return copy;
  if (!x->is_contiguous()) {
    copy_into(copy.get(), x);
    return copy;
  }
  MaybeNoGil release(x->numel);
  auto run = x->itemsize() == 4   ? transpose_matrices<uint32_t>
             : x->itemsize() == 8 ? transpose_matrices<uint64_t>
             : x->itemsize() == 2 ? transpose_matrices<uint16_t>
             : x->itemsize() == 1 ? transpose_matrices<uint8_t>
                                  : transpose_matrices<std::complex<double>>;
  run(x->data(), copy->data(), batch_count(x), rows(x), cols(x));
  return copy;
}

TensorRef column_major_copy(Tensor* x, Sizes batch) {
  Shape shape = with_batch(batch, {rows(x), cols(x)});
  if (std::equal(batch.begin(), batch.end(), x->geometry, x->geometry + x->ndim - 2)) {
    return column_major_copy(x);
  }
  TensorRef copy = column_major(shape, x->dtype, x->device());
  if (x->is_meta() || !copy->numel) return copy;
  int64_t strides[MAX_DIMS];
  broadcast_strides(x, shape, strides);
  TensorRef view = new_alias(x, shape, {strides, size_t(shape.ndim)}, x->offset);
  copy_into(copy.get(), view.get());
  return copy;
}

TensorRef infos_like(Tensor* x) { return zeros(batch_sizes(x), DType::i32, x->device()); }

Shape broadcast_batches(const Tensor* a, const Tensor* b) {
  Shape shape;
  shape.assign(batch_sizes(a));
  broadcast_into(shape, batch_sizes(b));
  return shape;
}

int lapack_int(int64_t size) {
  if (size > INT32_MAX) fail(PyExc_RuntimeError, "the matrix is too large for LAPACK");
  return int(size);
}

void check_work(const WorkSizes& sizes) {
  if (sizes.work < 0 || sizes.real < 0) fail(PyExc_RuntimeError, "the matrix is too large for LAPACK");
}

int64_t first_failure(const Tensor* infos) {
  const int* info = infos->data_as<int>();
  for (int64_t i = 0; i < infos->numel; i++) {
    if (info[i]) return i;
  }
  return -1;
}

std::string failure_prefix(const char* name, const Tensor* infos, int64_t i) {
  std::string text = std::string(name) + ": ";
  if (infos->ndim) text += "(Batch element " + std::to_string(i) + "): ";
  return text;
}

namespace {

// given(x...; values) -> outs[]: results that Python computed without recording, with a derivative of its
// own.
ModuleInit init([](PyObject* module) {
  LinAlgError = PyErr_NewExceptionWithDoc("rushlight._C._LinAlgError",
                                          "A matrix has no such factorisation, inverse or solution.",
                                          PyExc_RuntimeError, nullptr);
  if (!LinAlgError || PyModule_AddObjectRef(module, "_LinAlgError", LinAlgError) < 0) throw PythonError{};
});

}  // namespace
}  // namespace rl
