// Factorisations: Cholesky, LU, QR (with the reflectors it is made of), LDL.
//
// Each forward function copies its input into the column-major tensor that will be the result and lets LAPACK
// work there. `name` attributes are how the failing function is called in the error, or None if failures are
// only reported in `info`.
#include "../kernels/small_qr.h"
#include "linalg_ops.h"

namespace rl {
namespace {

// linalg_cholesky(A; upper, caller, name) -> L, info
PyObject* cholesky_forward(const Primitive&, PyObject* const* args, Tensor*) {
  const char *caller = text_argument(args[2]), *name = text_argument(args[3]);
  Tensor* a = tensor_argument(caller, args[0]);
  bool upper = bool_argument("linalg_cholesky", "upper", args[1]);
  check_square(caller, a);
  check_floating(caller, a);
  check_kernel("cholesky_cpu", a);
  TensorRef result = column_major_copy(a), infos = infos_like(a);
  if (!a->is_meta() && a->numel) {
    int n = lapack_int(rows(a));
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      T* data = result->template data_as<T>();
      int* info = infos->template data_as<int>();
      over_batch(n ? infos->numel : 0, double(n) * n * n / 3, 0, [&](int64_t i, char*) {
        T* m = data + i * n * n;
        factor_cholesky<T>(l, upper ? 'U' : 'L', n, m, info + i);
        for (int64_t j = 0; j < n; j++) {
          int64_t from = upper ? j + 1 : 0, to = upper ? n : j;
          std::fill(m + j * n + from, m + j * n + to, T(0));
        }
      });
    });
    int64_t failed = name ? first_failure(infos.get()) : -1;
    if (failed >= 0) {
      fail(LinAlgError,
           failure_prefix(name, infos.get(), failed) +
               "The factorization could not be completed because the input is not positive-definite (the "
               "leading minor of order " +
               std::to_string(infos->data_as<int>()[failed]) + " is not positive-definite).");
    }
  }
  return checked(PyTuple_Pack(2, result->object(), infos->object())).release();
}

// linalg_lu_factor(A; caller, name) -> LU, pivots, info
PyObject* lu_factor_forward(const Primitive&, PyObject* const* args, Tensor*) {
  const char *caller = text_argument(args[1]), *name = text_argument(args[2]);
  Tensor* a = tensor_argument(caller, args[0]);
  if (a->ndim < 2) {
    fail(PyExc_RuntimeError, std::string(caller) + ": Expected tensor with 2 or more dimensions. Got size: " +
                                 sizes_text(a->sizes()) + " instead");
  }
  check_kernel("lu_cpu", a);
  int64_t k = std::min(rows(a), cols(a));
  TensorRef lu = column_major_copy(a), infos = infos_like(a);
  TensorRef pivots = new_tensor(with_batch(batch_sizes(a), {k}), DType::i32, a->device());
  if (!a->is_meta() && a->numel) {
    int m = lapack_int(rows(a)), n = lapack_int(cols(a));
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      T* data = lu->template data_as<T>();
      int *pivot = pivots->template data_as<int>(), *info = infos->template data_as<int>();
      over_batch(k ? infos->numel : 0, double(m) * n * double(k), 0, [&](int64_t i, char*) {
        if (m == n) factor_lu<T>(l, n, data + i * m * n, pivot + i * k, info + i);
        else l.getrf(&m, &n, data + i * m * n, &m, pivot + i * k, info + i);
      });
    });
    int64_t failed = name ? first_failure(infos.get()) : -1;
    if (failed >= 0) {
      std::string at = std::to_string(infos->data_as<int>()[failed]);
      fail(PyExc_RuntimeError, failure_prefix(name, infos.get(), failed) + "U[" + at + "," + at +
                                   "] is zero and using it on lu_solve would result in a division by zero. "
                                   "If you still want to perform the factorization, consider calling "
                                   "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
    }
  }
  return checked(PyTuple_Pack(3, lu->object(), pivots->object(), infos->object())).release();
}

// lu_permutation(pivots; rows): for every matrix the rows of A in the order of P.T @ A, int64
PyObject* lu_permutation_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* pivots = tensor_argument("lu_unpack", args[0]);
  int64_t m = int_argument("lu_unpack", "rows", args[1]);
  if (pivots->dtype != DType::i32 || pivots->ndim < 1) {
    fail(PyExc_RuntimeError,
         "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
         "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor");
  }
  int64_t k = pivots->size(pivots->ndim - 1);
  TensorRef dense = stable(pivots);
  TensorRef result = new_tensor(with_batch(batch_sizes(pivots, 1), {m}), DType::i64, pivots->device());
  if (!pivots->is_meta()) {
    const int* pivot = dense->data_as<int>();
    for (int64_t i = 0; i < pivots->numel; i++) {
      if (pivot[i] < 1 || pivot[i] > m) {
        fail(PyExc_RuntimeError,
             "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
             "Did you properly pass the result of lu_factor?");
      }
    }
    if (k > m) fail(PyExc_RuntimeError, "lu_unpack: more pivots than rows");
    int64_t count = m ? result->numel / m : 0;
    for (int64_t b = 0; b < count; b++) {
      int64_t* order = result->data_as<int64_t>() + b * m;
      for (int64_t i = 0; i < m; i++) order[i] = i;
      for (int64_t i = 0; i < k; i++) std::swap(order[i], order[pivot[b * k + i] - 1]);
    }
  }
  return result.release_object();
}

// The reflectors of x's columns, over `a`, and their scales in `tau`.
template <class T>
void reflect(const Lapack<T>& l, Tensor* a, Tensor* tau, int m, int n, int64_t count) {
  int64_t k = std::min(m, n);
  T *data = a->data_as<T>(), *scales = tau->data_as<T>();
  if (m <= SMALL_QR && n <= SMALL_QR) {
    return over_batch(k ? count : 0, 2 * double(m) * n * double(k), 0,
                      [&](int64_t i, char*) { small_qr(m, n, data + i * m * n, scales + i * k); });
  }
  T answer{};
  int query = -1, info = 0, lda = std::max(m, 1);
  l.geqrf(&m, &n, a->data_as<T>(), &lda, tau->data_as<T>(), &answer, &query, &info);
  int lwork = work_length(answer, n);
  over_batch(k ? count : 0, 2 * double(m) * n * double(k), Scratch::bytes<T>(lwork),
             [&](int64_t i, char* memory) {
               int ignored;
               l.geqrf(&m, &n, data + i * m * n, &lda, scales + i * k, reinterpret_cast<T*>(memory), &lwork,
                       &ignored);
             });
}

// Overwrites reflectors in the m x n matrices of q by the first n columns of their product.
template <class T>
void multiply_reflectors(const Lapack<T>& l, Tensor* q, const T* scales, int m, int n, int k, int64_t count) {
  T* data = q->data_as<T>();
  if (m <= SMALL_QR && n <= m && k <= n) {
    return over_batch(n ? count : 0, 2 * double(m) * n * double(std::max(k, 1)), 0, [&](int64_t i, char*) {
      small_reflections(m, n, k, data + i * m * n, scales + i * k);
    });
  }
  T answer{};
  int query = -1, info = 0, lda = std::max(m, 1);
  l.orgqr(&m, &n, &k, q->data_as<T>(), &lda, scales, &answer, &query, &info);
  int lwork = work_length(answer, n);
  over_batch(n ? count : 0, 2 * double(m) * n * double(std::max(k, 1)), Scratch::bytes<T>(lwork),
             [&](int64_t i, char* memory) {
               int ignored;
               l.orgqr(&m, &n, &k, data + i * m * n, &lda, scales + i * k, reinterpret_cast<T*>(memory),
                       &lwork, &ignored);
             });
}

// linalg_qr(A; mode) -> Q, R
PyObject* qr_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("linalg_qr", args[0]);
  const char* mode = text_argument(args[1]);
  check_matrix("linalg.qr", x);
  check_floating("linalg.qr", x);
  bool reduced = mode && !strcmp(mode, "reduced"), complete = mode && !strcmp(mode, "complete");
  bool only_r = mode && !strcmp(mode, "r");
  if (!reduced && !complete && !only_r) {
    failf(PyExc_RuntimeError,
          "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'",
          mode ? mode : "None");
  }
  check_kernel("geqrf_cpu", x->dtype);
  int64_t m = rows(x), n = cols(x), k = std::min(m, n);
  int64_t q_cols = complete ? m : k, r_rows = complete ? m : k;
  Sizes batch = batch_sizes(x);
  TensorRef q = only_r ? new_tensor(std::initializer_list<int64_t>{0}, x->dtype, x->device())
                       : column_major(with_batch(batch, {m, q_cols}), x->dtype, x->device());
  TensorRef r = column_major(with_batch(batch, {r_rows, n}), x->dtype, x->device());
  if (!x->is_meta()) {
    TensorRef a = column_major_copy(x);
    TensorRef tau = new_tensor(with_batch(batch, {k}), x->dtype, x->device());
    int64_t count = numel_of(batch);
    with_lapack(x->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      int rows32 = lapack_int(m), cols32 = lapack_int(n);
      if (count && k) reflect<T>(l, a.get(), tau.get(), rows32, cols32, count);
      const T* from = a->template data_as<T>();
      for (int64_t b = 0; b < count; b++) {
        const T* source = from + b * m * n;
        T* to = r->template data_as<T>() + b * r_rows * n;
        for (int64_t j = 0; j < n; j++) {
          int64_t filled = std::min(j + 1, k);
          std::copy(source + j * m, source + j * m + filled, to + j * r_rows);
          std::fill(to + j * r_rows + filled, to + (j + 1) * r_rows, T(0));
        }
        if (only_r) continue;
        T* reflectors = q->template data_as<T>() + b * m * q_cols;
        std::copy(source, source + m * std::min(n, q_cols), reflectors);
        if (q_cols > n) std::fill(reflectors + m * n, reflectors + m * q_cols, T(0));
      }
      if (!only_r && count && q_cols) {
        multiply_reflectors<T>(l, q.get(), tau->template data_as<T>(), rows32, int(q_cols), int(k), count);
      }
    });
  }
  return checked(PyTuple_Pack(2, q->object(), r->object())).release();
}

// geqrf(input) -> a, tau
PyObject* geqrf_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("geqrf", args[0]);
  if (x->ndim < 2) fail(PyExc_RuntimeError, "torch.geqrf: input must have at least 2 dimensions.");
  check_kernel("geqrf_cpu", x->dtype);
  int64_t k = std::min(rows(x), cols(x));
  TensorRef a = column_major_copy(x);
  TensorRef tau = new_tensor(with_batch(batch_sizes(x), {k}), x->dtype, x->device());
  if (!x->is_meta() && x->numel) {
    with_lapack(x->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      reflect<T>(l, a.get(), tau.get(), lapack_int(rows(x)), lapack_int(cols(x)), batch_count(x));
    });
  }
  return checked(PyTuple_Pack(2, a->object(), tau->object())).release();
}

void check_reflectors(const char* name, Tensor* x, Tensor* tau, int dims_less) {
  if (tau->ndim != x->ndim - dims_less) {
    failf(PyExc_RuntimeError,
          "%s: Expected tau to have one dimension less than input, but got tau.ndim equal to %d and "
          "input.ndim is equal to %d",
          name, tau->ndim, x->ndim);
  }
  for (int d = 0; d < x->ndim - 2; d++) {
    if (tau->size(d) != x->size(d)) {
      fail(PyExc_RuntimeError, std::string(name) +
                                   ": Expected batch dimensions of tau to be equal to input.shape[:-2], "
                                   "but got " +
                                   sizes_text(batch_sizes(tau, 1)));
    }
  }
}

// linalg_householder_product(input, tau)
PyObject* householder_product_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char name[] = "torch.linalg.householder_product";
  Tensor *x = tensor_argument("linalg_householder_product", args[0]),
         *tau = tensor_argument("linalg_householder_product", args[1]);
  if (x->ndim < 2) failf(PyExc_RuntimeError, "%s: input must have at least 2 dimensions.", name);
  if (rows(x) < cols(x)) {
    failf(PyExc_RuntimeError, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", name);
  }
  if (!tau->ndim) fail(PyExc_IndexError, "Dimension specified as -1 but tensor has no dimensions");
  if (cols(x) < tau->size(tau->ndim - 1)) {
    failf(PyExc_RuntimeError, "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", name);
  }
  check_reflectors(name, x, tau, 1);
  if (tau->dtype != x->dtype) {
    failf(PyExc_RuntimeError, "%s: tau dtype %s does not match input dtype %s", name,
          dtype_class_name(tau->dtype), dtype_class_name(x->dtype));
  }
  check_same_device(x, tau);
  check_kernel("orgqr_cpu", x->dtype);
  TensorRef q = column_major_copy(x);
  if (!x->is_meta() && x->numel) {
    TensorRef scales = contiguous(tau);
    with_lapack(x->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      multiply_reflectors<T>(l, q.get(), scales->template data_as<T>(), lapack_int(rows(x)),
                             lapack_int(cols(x)), int(tau->size(tau->ndim - 1)), batch_count(x));
    });
  }
  return q.release_object();
}

// ormqr(input, tau, other; left, transpose): Q @ other, Q.mH @ other, other @ Q or other @ Q.mH
PyObject* ormqr_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_argument("ormqr", args[0]), *tau = tensor_argument("ormqr", args[1]),
         *other = tensor_argument("ormqr", args[2]);
  bool left = bool_argument("ormqr", "left", args[3]),
       transpose = bool_argument("ormqr", "transpose", args[4]);
  auto require = [](bool holds, std::string message) {
    if (!holds) fail(PyExc_RuntimeError, "torch.ormqr: " + message);
  };
  require(x->ndim >= 2, "input must have at least 2 dimensions.");
  require(other->ndim >= 2, "other must have at least 2 dimensions.");
  int64_t side = left ? rows(other) : cols(other);
  std::string axis = left ? "-2" : "-1";
  if (!tau->ndim) fail(PyExc_IndexError, "Dimension specified as -1 but tensor has no dimensions");
  require(side == rows(x), "other.shape[" + axis + "] must be equal to input.shape[-2]");
  int64_t k = tau->size(tau->ndim - 1);
  require(k == std::min(side, cols(x)),
          "tau.shape[-1] must be equal to min(other.shape[" + axis + "], input.shape[-1])");
  require(tau->ndim == x->ndim - 1,
          "Expected tau to have one dimension less than input, but got tau.ndim equal to " +
              std::to_string(tau->ndim) + " and input.ndim is equal to " + std::to_string(x->ndim));
  require(x->ndim == other->ndim,
          "Expected other to have the same number of dimensions as input, but got other.ndim equal to " +
              std::to_string(other->ndim) + " and input.ndim is equal to " + std::to_string(x->ndim));
  for (int d = 0; d < x->ndim - 2; d++) {
    require(tau->size(d) == x->size(d),
            "Expected batch dimensions of tau to be equal to input.shape[:-2], but got " +
                sizes_text(batch_sizes(tau, 1)));
    require(other->size(d) == x->size(d),
            "Expected batch dimensions of other to be equal to input.shape[:-2], but got " +
                sizes_text(batch_sizes(other)));
  }
  for (Tensor* each : {tau, other}) {
    require(each->dtype == x->dtype,
            std::string("Expected input and ") + (each == tau ? "tau" : "other") +
                " to have the same dtype, but input has dtype" + dtype_class_name(x->dtype) + " and " +
                (each == tau ? "tau" : "other") + " has dtype " + dtype_class_name(each->dtype));
    check_same_device(x, each);
  }
  check_kernel("ormqr_cpu", x->dtype);
  TensorRef result = column_major_copy(other);
  if (x->is_meta() || !other->numel || !k) return result.release_object();
  TensorRef reflectors = column_major_copy(x), scales = contiguous(tau);
  with_lapack(x->dtype, [&](auto tag, auto& l) {
    using T = typename decltype(tag)::type;
    int m = lapack_int(rows(other)), n = lapack_int(cols(other)), terms = int(k), lda = lapack_int(rows(x));
    int64_t step = rows(x) * cols(x);
    char at = left ? 'L' : 'R', trans = transpose ? (is_complex_v<T> ? 'C' : 'T') : 'N';
    T *c = result->template data_as<T>(), *v = reflectors->template data_as<T>(),
      *t = scales->template data_as<T>(), answer{};
    int query = -1, info = 0;
    l.ormqr(&at, &trans, &m, &n, &terms, v, &lda, t, c, &m, &answer, &query, &info);
    int lwork = work_length(answer, left ? n : m);
    over_batch(batch_count(x), 2 * double(m) * n * double(k), Scratch::bytes<T>(lwork),
               [&](int64_t i, char* memory) {
                 int ignored;
                 l.ormqr(&at, &trans, &m, &n, &terms, v + i * step, &lda, t + i * k, c + i * m * n, &m,
                         reinterpret_cast<T*>(memory), &lwork, &ignored);
               });
  });
  return result.release_object();
}

// linalg_ldl_factor(A; hermitian, name) -> LD, pivots, info
PyObject* ldl_factor_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char caller[] = "torch.linalg.ldl_factor_ex";
  Tensor* a = tensor_argument("linalg_ldl_factor", args[0]);
  bool hermitian = bool_argument("linalg_ldl_factor", "hermitian", args[1]);
  const char* name = text_argument(args[2]);
  check_square(caller, a);
  check_floating(caller, a);
  check_kernel("ldl_factor_kernel_cpu", a);
  TensorRef ld = column_major_copy(a), infos = infos_like(a);
  int64_t size = rows(a);
  TensorRef pivots = new_tensor(with_batch(batch_sizes(a), {size}), DType::i32, a->device());
  if (!a->is_meta() && a->numel) {
    int n = lapack_int(size);
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      T *data = ld->template data_as<T>(), answer{};
      int *pivot = pivots->template data_as<int>(), *info = infos->template data_as<int>();
      auto factor = l.sytrf[hermitian];
      int query = -1, ignored = 0;
      char uplo = 'L';
      factor(&uplo, &n, data, &n, pivot, &answer, &query, &ignored);
      int lwork = work_length(answer, n);
      over_batch(infos->numel, double(n) * n * n / 3, Scratch::bytes<T>(lwork), [&](int64_t i, char* memory) {
        T* m = data + i * n * n;
        factor(&uplo, &n, m, &n, pivot + i * n, reinterpret_cast<T*>(memory), &lwork, info + i);
        for (int64_t j = 0; j < n; j++) std::fill(m + j * n, m + j * n + j, T(0));
      });
    });
    int64_t failed = name ? first_failure(infos.get()) : -1;
    if (failed >= 0) {
      std::string at = std::to_string(infos->data_as<int>()[failed]);
      fail(LinAlgError, failure_prefix(name, infos.get(), failed) + "D[" + at + "," + at +
                            "] is zero and using it in linalg.ldl_solve would result in a division by zero.");
    }
  }
  return checked(PyTuple_Pack(3, ld->object(), pivots->object(), infos->object())).release();
}

ModuleInit init([](PyObject*) {
  define("linalg_cholesky(A; upper, caller, name) -> L, info", cholesky_forward);
  define("linalg_lu_factor(A; caller, name) -> LU, pivots, info", lu_factor_forward);
  define("lu_permutation(pivots; rows)", lu_permutation_forward);
  define("linalg_qr(A; mode) -> Q, R", qr_forward);
  define("geqrf(input) -> a, tau", geqrf_forward);
  define("linalg_householder_product(input, tau)", householder_product_forward);
  define("ormqr(input, tau, other; left, transpose)", ormqr_forward);
  define("linalg_ldl_factor(A; hermitian, name) -> LD, pivots, info", ldl_factor_forward);
});

}  // namespace
}  // namespace rl
