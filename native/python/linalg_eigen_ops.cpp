// Eigenvalues, singular values, and the matrix exponential.
#include "linalg_ops.h"

namespace rl {
namespace {

[[noreturn]] void fail_to_converge(const char* name, const Tensor* infos, int64_t at, const char* values) {
  fail(LinAlgError,
       failure_prefix(name, infos, at) +
           "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
           "repeated " +
           values + " (error code: " + std::to_string(infos->data_as<int>()[at]) + ").");
}

// Whether the triangle that eigh reads is finite; a diagonal that is to be real has no imaginary part to
// read.
template <class T>
bool is_finite_triangle(const T* m, int n, bool upper) {
  for (int64_t j = 0; j < n; j++) {
    int64_t from = upper ? 0 : j + 1, to = upper ? j : n;
    if (!is_finite(m + j * n + from, to - from) || !std::isfinite(std::real(m[j * n + j]))) return false;
  }
  return true;
}

// linalg_eigh(A; upper, vectors) -> eigenvalues, eigenvectors
PyObject* eigh_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char name[] = "linalg.eigh";
  Tensor* a = tensor_argument("linalg_eigh", args[0]);
  bool upper = bool_argument("linalg_eigh", "upper", args[1]),
       vectors = bool_argument("linalg_eigh", "vectors", args[2]);
  check_square(name, a);
  check_kernel("linalg_eigh_cpu", a);
  Sizes batch = batch_sizes(a);
  TensorRef v = column_major_copy(a), infos = infos_like(a);
  TensorRef w = new_tensor(with_batch(batch, {rows(a)}), to_real(a->dtype), a->device());
  if (!a->is_meta() && a->numel) {
    int n = lapack_int(rows(a));
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      T* data = v->template data_as<T>();
      auto* values = w->template data_as<real_t<T>>();
      int* info = infos->template data_as<int>();
      WorkSizes sizes = eigh_sizes<T>(l, vectors, n);
      check_work(sizes);
      over_batch(infos->numel, 9 * double(n) * n * n, Scratch::bytes<T>(sizes), [&](int64_t i, char* memory) {
        Scratch scratch{memory};
        T* m = data + i * n * n;
        if (n == 1) {  // its own eigenvalue, finite or not
          values[i] = std::real(*m);
          *m = T(1);
          return;
        }
        bool finite = vectors || is_finite_triangle(m, n, upper);
        info[i] =
            eigh<T>(l, vectors, upper ? 'U' : 'L', n, m, values + i * n, sizes, scratch.take_work<T>(sizes));
        // Of values alone torch's LAPACK counts one less that did not converge.
        if (!finite && info[i] > 1) info[i]--;
      });
    });
    int64_t failed = first_failure(infos.get());
    if (failed >= 0) fail_to_converge(name, infos.get(), failed, "eigenvalues");
  }
  if (!vectors) v = new_tensor(std::initializer_list<int64_t>{0}, a->dtype, a->device());
  return checked(PyTuple_Pack(2, w->object(), v->object())).release();
}

// linalg_eig(A; vectors, caller) -> eigenvalues, eigenvectors
PyObject* eig_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* a = tensor_argument("linalg_eig", args[0]);
  bool vectors = bool_argument("linalg_eig", "vectors", args[1]);
  const char* name = text_argument(args[2]);
  if (!is_differentiable(a->dtype)) {
    failf(PyExc_RuntimeError, "Unknown Complex ScalarType for %s", dtype_class_name(a->dtype));
  }
  check_square(name, a);
  Sizes batch = batch_sizes(a);
  check_kernel("linalg_eig_out_cpu", a->dtype);
  DType complex = to_complex(a->dtype);
  TensorRef w = new_tensor(with_batch(batch, {rows(a)}), complex, a->device());
  TensorRef v = vectors ? column_major(a->sizes(), complex, a->device())
                        : new_tensor(std::initializer_list<int64_t>{0}, complex, a->device());
  if (!a->is_meta() && a->numel) {
    TensorRef copy = column_major_copy(a), infos = infos_like(a);
    int n = lapack_int(rows(a));
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      using C = std::complex<real_t<T>>;
      T* data = copy->template data_as<T>();
      if (vectors && !is_finite(data, copy->numel)) {
        failf(PyExc_RuntimeError, "torch.linalg.eig: input tensor should not contain infs or NaNs.");
      }
      C *values = w->template data_as<C>(), *to = vectors ? v->template data_as<C>() : nullptr;
      int* info = infos->template data_as<int>();
      WorkSizes sizes = eig_sizes<T>(l, vectors, n);
      check_work(sizes);
      over_batch(infos->numel, 25 * double(n) * n * n, Scratch::bytes<T>(sizes),
                 [&](int64_t i, char* memory) {
                   Scratch scratch{memory};
                   if (!is_finite(data + i * n * n, int64_t(n) * n)) {  // LAPACK may write anywhere
                     std::fill_n(values + i * n, n, C(NAN, NAN));
                     return;
                   }
                   info[i] = eig<T>(l, n, data + i * n * n, values + i * n, to ? to + i * n * n : nullptr,
                                    sizes, scratch.take_work<T>(sizes));
                 });
    });
    int64_t failed = first_failure(infos.get());
    if (failed >= 0) fail_to_converge(name, infos.get(), failed, "eigenvalues");
  }
  return checked(PyTuple_Pack(2, w->object(), v->object())).release();
}

// An m x m identity in every matrix.
void fill_identity(Tensor* x) {
  alignas(16) char zero[16] = {};
  fill(x, zero);
  int64_t m = rows(x), count = x->numel / std::max<int64_t>(m * m, 1);
  visit(x->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < count * m; i++) x->data_as<T>()[i / m * m * m + i % m * (m + 1)] = T(1);
  });
}

// linalg_svd(A; full_matrices, vectors) -> U, S, Vh
PyObject* svd_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char name[] = "linalg.svd";
  Tensor* a = tensor_argument("linalg_svd", args[0]);
  bool full = bool_argument("linalg_svd", "full_matrices", args[1]),
       vectors = bool_argument("linalg_svd", "vectors", args[2]);
  check_matrix(name, a);
  check_floating(name, a);
  check_kernel("linalg_svd_cpu", a);
  Sizes batch = batch_sizes(a);
  int64_t m64 = rows(a), n64 = cols(a), k = std::min(m64, n64);
  int64_t u_cols = full ? m64 : k, v_rows = full ? n64 : k;
  Device device = a->device();
  auto nothing = [&] { return new_tensor(std::initializer_list<int64_t>{0}, a->dtype, device); };
  TensorRef u = vectors ? column_major(with_batch(batch, {m64, u_cols}), a->dtype, device) : nothing();
  TensorRef vh = vectors ? column_major(with_batch(batch, {v_rows, n64}), a->dtype, device) : nothing();
  TensorRef s = new_tensor(with_batch(batch, {k}), to_real(a->dtype), device);
  if (!a->is_meta()) {
    if (!a->numel) {
      if (vectors && full && u->numel) fill_identity(u.get());
      if (vectors && full && vh->numel) fill_identity(vh.get());
    } else {
      TensorRef copy = column_major_copy(a), infos = infos_like(a);
      int m = lapack_int(m64), n = lapack_int(n64);
      with_lapack(a->dtype, [&](auto tag, auto& l) {
        using T = typename decltype(tag)::type;
        T *data = copy->template data_as<T>(), *to_u = u->template data_as<T>(),
          *to_v = vh->template data_as<T>();
        auto* values = s->template data_as<real_t<T>>();
        int *info = infos->template data_as<int>(), ldv = int(std::max<int64_t>(v_rows, 1));
        char job = !vectors ? 'N' : full ? 'A' : 'S';
        WorkSizes sizes = svd_sizes<T>(l, job, m, n);
        check_work(sizes);
        over_batch(infos->numel, 20 * double(m) * n * double(k), Scratch::bytes<T>(sizes),
                   [&](int64_t i, char* memory) {
                     Scratch scratch{memory};
                     T* matrix = data + i * m * n;
                     if (!is_finite(matrix, int64_t(m) * n)) {
                       // gesdd says -4 for NaN. For infinities it gives NaN, if it is asked for the values
                       // alone; with vectors of more than two values it may never end. Torch's gives NaN
                       // for one infinity in a matrix of up to 25 values, and does not converge for more.
                       int64_t size = int64_t(m) * n;
                       bool nan = std::any_of(matrix, matrix + size, [](T x) { return x != x; });
                       bool single =
                           std::count_if(matrix, matrix + size, [](T x) { return !is_finite(x); }) == 1;
                       if (nan || !vectors || k > 2) {
                         info[i] = nan ? -4 : vectors && !(single && k <= 25) ? int(k) - 1 : 0;
                         if (info[i]) return;
                         T none = T(real_t<T>(NAN));
                         std::fill_n(values + i * k, k, real_t<T>(NAN));
                         if (vectors) std::fill_n(to_u + i * m * u_cols, m * u_cols, none);
                         if (vectors) std::fill_n(to_v + i * v_rows * n, v_rows * n, none);
                         return;
                       }
                     }
                     info[i] = svd<T>(
                         l, job, m, n, matrix, values + i * k, vectors ? to_u + i * m * u_cols : nullptr, m,
                         vectors ? to_v + i * v_rows * n : nullptr, ldv, sizes, scratch.take_work<T>(sizes));
                   });
      });
      int64_t failed = first_failure(infos.get());
      if (failed >= 0) {
        if (infos->data_as<int>()[failed] >= 0)
          fail_to_converge(name, infos.get(), failed, "singular values");
        fail(LinAlgError, failure_prefix(name, infos.get(), failed) +
                              "The algorithm failed to converge because the input matrix contained "
                              "non-finite values.");
      }
    }
  }
  return checked(PyTuple_Pack(3, u->object(), s->object(), vh->object())).release();
}

// ---- the matrix exponential

// e^A by the [13/13] Pade approximant with scaling and squaring (Higham 2005); for a norm below the bound of
// a lower degree, fewer products do.
template <class T>
struct Exponential {
  using R = real_t<T>;
  DType dtype;
  int n;
  const Lapack<T>& l;
  T *a, *a2, *a4, *a6, *u, *v, *spare;  // row-major, n * n each
  int* pivots;

  static size_t bytes(int n) { return 7 * Scratch::bytes<T>(int64_t(n) * n) + Scratch::bytes<int>(n); }

  int64_t size() const { return int64_t(n) * n; }
  Matrix matrix(T* m) const { return {m, n, n, n, 1}; }
  void multiply(T* to, T* x, T* y) const {
    T one = T(1), zero = T(0);
    gemm(dtype, matrix(to), matrix(x), matrix(y), &one, &zero);
  }

  R norm1() const {
    R largest = 0;
    for (int64_t j = 0; j < n; j++) {
      R sum = 0;
      for (int64_t i = 0; i < n; i++) sum += std::abs(a[i * n + j]);
      if (!(sum <= largest)) largest = sum;
    }
    return largest;
  }

  // u = a @ (sum of odd coefficients), v = sum of even ones, by powers of a2 up to degree 3, 5, 7 or 9.
  void low_degree(int degree, const double* b) {
    multiply(a2, a, a);
    T* power = a2;
    for (int64_t i = 0; i < size(); i++) {
      R diagonal = i % (n + 1) == 0 ? R(1) : R(0);
      u[i] = R(b[1]) * diagonal + R(b[3]) * a2[i];
      v[i] = R(b[0]) * diagonal + R(b[2]) * a2[i];
    }
    for (int p = 4; p < degree; p += 2) {
      T* next = power == a4 ? a6 : a4;
      multiply(next, power, a2);
      power = next;
      for (int64_t i = 0; i < size(); i++) {
        u[i] += R(b[p + 1]) * power[i];
        v[i] += R(b[p]) * power[i];
      }
    }
    multiply(spare, a, u);
    std::swap(u, spare);
  }

  void degree_13() {
    static const double b[] = {64764752532480000.0,
                               32382376266240000.0,
                               7771770303897600.0,
                               1187353796428800.0,
                               129060195264000.0,
                               10559470521600.0,
                               670442572800.0,
                               33522128640.0,
                               1323241920.0,
                               40840800.0,
                               960960.0,
                               16380.0,
                               182.0,
                               1.0};
    multiply(a2, a, a);
    multiply(a4, a2, a2);
    multiply(a6, a4, a2);
    for (int64_t i = 0; i < size(); i++) {
      v[i] = R(b[13]) * a6[i] + R(b[11]) * a4[i] + R(b[9]) * a2[i];
    }
    multiply(spare, a6, v);
    for (int64_t i = 0; i < size(); i++) {
      R diagonal = i % (n + 1) == 0 ? R(1) : R(0);
      v[i] = spare[i] + R(b[7]) * a6[i] + R(b[5]) * a4[i] + R(b[3]) * a2[i] + R(b[1]) * diagonal;
    }
    multiply(u, a, v);
    for (int64_t i = 0; i < size(); i++) {
      spare[i] = R(b[12]) * a6[i] + R(b[10]) * a4[i] + R(b[8]) * a2[i];
    }
    multiply(v, a6, spare);
    for (int64_t i = 0; i < size(); i++) {
      R diagonal = i % (n + 1) == 0 ? R(1) : R(0);
      v[i] += R(b[6]) * a6[i] + R(b[4]) * a4[i] + R(b[2]) * a2[i] + R(b[0]) * diagonal;
    }
  }

  void run(const T* from, T* to) {
    if (n == 1) {
      *to = std::exp(*from);
      return;
    }
    std::copy(from, from + size(), a);
    R norm = norm1();
    if (!std::isfinite(norm)) {
      if constexpr (is_complex_v<T>) std::fill(to, to + size(), T(R(NAN), R(NAN)));
      else std::fill(to, to + size(), T(NAN));
      return;
    }
    static const double b3[] = {120, 60, 12, 1}, b5[] = {30240, 15120, 3360, 420, 30, 1};
    static const double b7[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};
    static const double b9[] = {17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0,
                                2162160.0,     110880.0,     3960.0,       90.0,        1.0};
    constexpr bool single = sizeof(R) == 4;
    int squarings = 0;
    if (norm <= (single ? 4.258730016922831e-01 : 1.495585217958292e-02)) {
      low_degree(3, b3);
    } else if (norm <= (single ? 1.880152677804762e+00 : 2.539398330063230e-01)) {
      low_degree(5, b5);
    } else if (norm <= (single ? 3.925724783138660e+00 : 9.504178996162932e-01)) {
      low_degree(7, b7);
    } else if (!single && norm <= 2.097847961257068e+00) {
      low_degree(9, b9);
    } else {
      double bound = single ? 3.925724783138660e+00 : 5.371920351148152e+00;
      squarings = std::max(0, int(std::ceil(std::log2(double(norm) / bound))));
      R factor = std::ldexp(R(1), -squarings);
      for (int64_t i = 0; i < size(); i++) a[i] *= factor;
      if (single) low_degree(7, b7);
      else degree_13();
    }
    // (v - u) x = v + u, in transposed memory: x.T (v - u).T = (v + u).T is what getrs('T') solves.
    for (int64_t i = 0; i < size(); i++) {
      T sum = v[i] + u[i];
      v[i] -= u[i];
      u[i] = sum;
    }
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j < n; j++) spare[j * n + i] = u[i * n + j];
    }
    int info;
    char trans = 'T';
    l.getrf(&n, &n, v, &n, pivots, &info);
    l.getrs(&trans, &n, &n, v, &n, pivots, spare, &n, &info);
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j < n; j++) u[i * n + j] = spare[j * n + i];
    }
    for (int s = 0; s < squarings; s++) {
      multiply(v, u, u);
      std::swap(u, v);
    }
    std::copy(u, u + size(), to);
  }
};

// linalg_matrix_exp(A)
PyObject* matrix_exp_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char name[] = "linalg.matrix_exp";
  Tensor* a = tensor_argument("linalg_matrix_exp", args[0]);
  check_square(name, a);
  check_floating(name, a);
  check_kernel("matrix_exp", a->dtype);
  TensorRef from = contiguous(a), result = new_tensor(a->sizes(), a->dtype, a->device());
  if (a->is_meta() || !a->numel) return result.release_object();
  int n = lapack_int(rows(a));
  with_lapack(a->dtype, [&](auto tag, auto& l) {
    using T = typename decltype(tag)::type;
    const T* data = from->template data_as<T>();
    T* to = result->template data_as<T>();
    over_batch(
        batch_count(a), 20 * double(n) * n * n, Exponential<T>::bytes(n), [&](int64_t i, char* memory) {
          Scratch scratch{memory};
          auto take = [&] { return scratch.take<T>(int64_t(n) * n); };
          Exponential<T> e{
              a->dtype, n, l, take(), take(), take(), take(), take(), take(), take(), scratch.take<int>(n)};
          e.run(data + i * n * n, to + i * n * n);
        });
  });
  return result.release_object();
}

// linalg_given(A, B; values) -> outs[]: `values`, which Python computed without recording, as results with
// the derivative of this primitive. linalg_pinv does the same for one input and one result.
PyObject* given_forward(const Primitive&, PyObject* const* args, Tensor*) {
  PyObject* values = args[2];
  if (!PyTuple_Check(values)) fail(PyExc_TypeError, "a tuple of tensors expected");
  Ref<PyObject> result = checked(PyTuple_New(PyTuple_GET_SIZE(values)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
    Tensor* value = tensor_argument("lstsq", PyTuple_GET_ITEM(values, i));
    PyTuple_SET_ITEM(result.get(), i, new_alias(value).release_object());
  }
  return result.release();
}
PyObject* pinv_forward(const Primitive&, PyObject* const* args, Tensor*) {
  return new_alias(tensor_argument("linalg_pinv", args[1])).release_object();
}

ModuleInit init([](PyObject*) {
  define("linalg_eigh(A; upper, vectors) -> eigenvalues, eigenvectors", eigh_forward);
  define("linalg_eig(A; vectors, caller) -> eigenvalues, eigenvectors", eig_forward);
  define("linalg_svd(A; full_matrices, vectors) -> U, S, Vh", svd_forward);
  define("linalg_matrix_exp(A)", matrix_exp_forward);
  define("linalg_lstsq_given(A, B; values) -> solution, residuals", given_forward);
  define("linalg_pinv(A; value)", pinv_forward);
});

}  // namespace
}  // namespace rl
