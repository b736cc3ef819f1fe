// Solving linear systems, inverses and determinants, all by LU with pivoting; and triangular systems, least
// squares, LDL systems.
//
// X A = B is solved as A.T X.T = B.T: the row-major memory of X is the column-major memory of X.T. Start at
// `solve_forward`.
#include "linalg_ops.h"

namespace rl {
namespace {

// The factorisation that solve, det and slogdet keep for their derivatives.
struct Factored {
  TensorRef lu, pivots, infos;
  int n;

  // Of the transpose, whose determinant is the same, where that lies column by column in memory already.
  static Factored for_determinant(Tensor* a, Sizes batch) {
    if (!a->is_contiguous() || is_complex(a->dtype)) return {a, batch};
    int rest = a->ndim - 2;
    Shape turned = with_batch(a->strides().first(size_t(rest)), {a->stride(rest + 1), a->stride(rest)});
    return {new_alias(a, a->sizes(), turned, a->offset).get(), batch};
  }

  Factored(Tensor* a, Sizes batch) : lu(column_major_copy(a, batch)), n(lapack_int(rows(a))) {
    pivots = new_tensor(with_batch(batch, {n}), DType::i32, a->device());
    infos = zeros(batch, DType::i32, a->device());
  }
};

// Where each matrix of a batched operand begins, its batch dimensions broadcast.
std::vector<int64_t> matrix_offsets(const Tensor* x, Sizes batch) {
  std::vector<int64_t> offsets(size_t(numel_of(batch)), 0);
  int own = x->ndim - 2, missing = int(batch.size()) - own;
  for (size_t i = 0; i < offsets.size(); i++) {
    int64_t rest = int64_t(i);
    for (int d = int(batch.size()) - 1; d >= 0; d--) {
      int64_t at = rest % batch[size_t(d)];
      rest /= batch[size_t(d)];
      if (d >= missing && x->size(d - missing) != 1) offsets[i] += at * x->stride(d - missing);
    }
  }
  return offsets;
}

// linalg_solve(A, B; left, caller, name) -> result, LU, pivots, info
PyObject* solve_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *a = tensor_argument("linalg_solve", args[0]), *b = tensor_argument("linalg_solve", args[1]);
  bool left = bool_argument("linalg_solve", "left", args[2]);
  const char *caller = text_argument(args[3]), *name = text_argument(args[4]);
  check_floating(caller, a);
  check_same_dtype(caller, a, b, "A", "B");
  check_square(caller, a);
  check_same_device(a, b);
  // B is a batch of vectors if it is one vector or has the shape of A without its last dimension.
  bool vector =
      b->ndim == 1 || (a->ndim - 1 == b->ndim && std::equal(b->geometry, b->geometry + b->ndim, a->geometry));
  TensorRef right = share(b);
  if (vector) {
    Shape sizes = with_batch(b->sizes(), {1}), strides = with_batch(b->strides(), {1});
    right = new_alias(b, sizes, strides, b->offset);
  } else {
    check_matrix(caller, b, "B");
  }
  if ((left ? rows(right.get()) : cols(right.get())) != rows(a)) {
    failf(PyExc_RuntimeError,
          "%s: Incompatible shapes of A and B for the equation %s (%lldx%lld and %lldx%lld)", caller,
          left ? "AX = B" : "XA = B", (long long)rows(a), (long long)cols(a), (long long)rows(right.get()),
          (long long)cols(right.get()));
  }
  if (vector && !left) {
    failf(PyExc_RuntimeError,
          "%s: Vector broadcasting of the left hand side is not supported for left=False. In this case "
          "linalg.solve is equivalent to B / A.squeeze(-1)",
          caller);
  }
  check_kernel("lu_cpu", a);
  Shape batch = broadcast_batches(right.get(), a);
  Factored f(a, batch_sizes(a));
  // What LAPACK solves for, column-major: X, or X.T for X A = B.
  TensorRef x;
  int64_t count = numel_of(batch), nrhs64 = left ? cols(right.get()) : rows(right.get());
  if (left) {
    x = column_major_copy(right.get(), batch);
  } else {
    Shape sizes = with_batch(batch, {rows(right.get()), cols(right.get())});
    x = new_tensor(sizes, b->dtype, b->device());
    if (!b->is_meta() && x->numel) {
      int64_t strides[MAX_DIMS];
      broadcast_strides(right.get(), sizes, strides);
      copy_into(x.get(), new_alias(right.get(), sizes, {strides, size_t(sizes.ndim)}, right->offset).get());
    }
  }
  TensorRef result = x;
  if (vector) {
    // torch lays a batch of vectors out as one column-major matrix.
    Shape sizes = with_batch(batch, {rows(right.get())});
    result = column_major(sizes, b->dtype, b->device());
  }
  if (!a->is_meta()) {
    int n = f.n, nrhs = lapack_int(nrhs64);
    int64_t factored = f.infos->numel;
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      T *lu = f.lu->template data_as<T>(), *to = x->template data_as<T>();
      int *pivots = f.pivots->template data_as<int>(), *infos = f.infos->template data_as<int>();
      double work = double(n) * n * n;
      over_batch(n ? factored : 0, work, 0,
                 [&](int64_t i, char*) { factor_lu<T>(l, n, lu + i * n * n, pivots + i * n, infos + i); });
      if (name && first_failure(f.infos.get()) >= 0) return;
      // A factorisation may serve several right-hand sides.
      std::vector<int64_t> offsets = matrix_offsets(f.lu.get(), batch);
      char trans = left ? 'N' : 'T';
      over_batch(n && nrhs ? count : 0, double(n) * n * nrhs, 0, [&](int64_t i, char*) {
        int64_t at = offsets[size_t(i)] / (int64_t(n) * n);
        if (infos[at]) {  // there is no solution
          std::fill(to + i * n * nrhs, to + (i + 1) * n * nrhs, T(NAN));
        } else {
          solve_lu<T>(l, trans, n, nrhs, lu + at * n * n, pivots + at * n, to + i * n * nrhs);
        }
      });
    });
    int64_t failed = name ? first_failure(f.infos.get()) : -1;
    if (failed >= 0) {
      fail(LinAlgError, failure_prefix(name, f.infos.get(), failed) +
                            "The solver failed because the input matrix is singular.");
    }
    if (vector && result->numel) {
      TensorRef flat =
          new_alias(x.get(), result->sizes(), {x->strides().data(), size_t(result->ndim)}, x->offset);
      copy_into(result.get(), flat.get());
    }
  }
  return checked(PyTuple_Pack(4, result->object(), f.lu->object(), f.pivots->object(), f.infos->object()))
      .release();
}

// linalg_inv(A; name) -> inverse, info
PyObject* inv_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* a = tensor_argument("linalg_inv", args[0]);
  const char* name = text_argument(args[1]);
  check_square("linalg.inv", a);
  check_floating("linalg.inv", a, false);
  TensorRef result = column_major_copy(a), infos = infos_like(a);
  if (!a->is_meta()) {
    int n = lapack_int(rows(a));
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      if (!n || !infos->numel) return;
      T *data = result->template data_as<T>(), answer{};
      int* info = infos->template data_as<int>();
      int query = -1, ignored = 0;
      l.getri(&n, data, &n, &ignored, &answer, &query, &ignored);
      int lwork = work_length(answer, n);
      constexpr bool real = std::is_floating_point_v<T>;
      int64_t room = real && n >= BLOCKED ? int64_t(n) * n : lwork;
      over_batch(infos->numel, 2 * double(n) * n * n, Scratch::bytes<T>(room) + Scratch::bytes<int>(n),
                 [&](int64_t i, char* memory) {
                   Scratch scratch{memory};
                   T *work = scratch.take<T>(room), *m = data + i * n * n;
                   int* pivots = scratch.take<int>(n);
                   factor_lu<T>(l, n, m, pivots, info + i);
                   if (info[i] == 0 && solves_small(n, m)) {
                     T unit[SMALL_SOLVE * SMALL_SOLVE] = {};
                     for (int j = 0; j < n; j++) unit[j * (n + 1)] = T(1);
                     small_lu_solve(false, n, n, m, pivots, unit);
                     std::copy(unit, unit + n * n, m);
                   } else if (info[i] == 0) {
                     if constexpr (real)
                       if (n >= BLOCKED) return blocked_inverse(l, n, m, pivots, work);
                     int again;
                     l.getri(&n, m, &n, pivots, work, &lwork, &again);
                   } else {
                     // Nothing is the inverse then; torch divides by the zero.
                     std::fill(m, m + int64_t(n) * n, T(INFINITY));
                   }
                 });
    });
    int64_t failed = name ? first_failure(infos.get()) : -1;
    if (failed >= 0) {
      fail(LinAlgError, failure_prefix(name, infos.get(), failed) + "The diagonal element " +
                            std::to_string(infos->data_as<int>()[failed]) +
                            " is zero, the inversion could not be completed because the input matrix is "
                            "singular.");
    }
  }
  return checked(PyTuple_Pack(2, result->object(), infos->object())).release();
}

// linalg_det(A) -> result, LU, pivots
PyObject* det_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* a = tensor_argument("linalg_det", args[0]);
  check_square("linalg.det", a);
  check_floating("linalg.det", a);
  check_kernel("lu_cpu", a);
  Sizes batch = batch_sizes(a);
  Factored f = Factored::for_determinant(a, batch);
  TensorRef result = new_tensor(batch, a->dtype, a->device());
  if (!a->is_meta() && !a->numel) {  // products of nothing
    alignas(16) char one[16];
    Scalar{.i = 1}.store(a->dtype, one);
    fill(result.get(), one);
  } else if (!a->is_meta()) {
    int n = f.n;
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      T *lu = f.lu->template data_as<T>(), *to = result->template data_as<T>();
      int* pivots = f.pivots->template data_as<int>();
      over_batch(result->numel, double(n) * n * n, 0, [&](int64_t i, char*) {
        T* m = lu + i * n * n;
        int info, *pivot = pivots + i * n;
        if (n) factor_lu<T>(l, n, m, pivot, &info);
        T product = T(1);
        bool odd = false;
        for (int64_t j = 0; j < n; j++) {
          product *= m[j * n + j];
          odd ^= pivot[j] != j + 1;
        }
        to[i] = odd ? -product : product;
      });
    });
  }
  return checked(PyTuple_Pack(3, result->object(), f.lu->object(), f.pivots->object())).release();
}

// linalg_slogdet(A; caller) -> sign, logabsdet, LU, pivots
PyObject* slogdet_forward(const Primitive&, PyObject* const* args, Tensor*) {
  const char* caller = text_argument(args[1]);
  Tensor* a = tensor_argument(caller, args[0]);
  check_square(caller, a);
  check_floating(caller, a, false);
  Sizes batch = batch_sizes(a);
  Factored f = Factored::for_determinant(a, batch);
  TensorRef sign = new_tensor(batch, a->dtype, a->device());
  TensorRef logs = new_tensor(batch, to_real(a->dtype), a->device());
  if (!a->is_meta()) {
    int n = f.n;
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      using R = real_t<T>;
      T *lu = f.lu->template data_as<T>(), *signs = sign->template data_as<T>();
      R* to = logs->template data_as<R>();
      int* pivots = f.pivots->template data_as<int>();
      over_batch(sign->numel, double(n) * n * n, 0, [&](int64_t i, char*) {
        T* m = lu + i * n * n;
        int info, *pivot = pivots + i * n;
        if (n) factor_lu<T>(l, n, m, pivot, &info);
        T phase = T(1);
        R sum = 0;
        for (int64_t j = 0; j < n; j++) {
          T d = m[j * n + j];
          R size = std::abs(d);
          if (pivot[j] != j + 1) phase = -phase;
          if constexpr (std::is_floating_point_v<T>) phase *= T((d > 0) - (d < 0));  // 0 for NaN
          else phase *= size == 0 ? T(0) : d / size;
          sum += std::log(size);
        }
        signs[i] = phase;
        to[i] = sum;
      });
    });
  }
  return checked(PyTuple_Pack(4, sign->object(), logs->object(), f.lu->object(), f.pivots->object()))
      .release();
}

// linalg_solve_triangular(A, B; upper, left, unitriangular), and solve_factor, whose derivative is another
PyObject* solve_triangular_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char name[] = "linalg.solve_triangular";
  Tensor *a = tensor_argument("linalg_solve_triangular", args[0]),
         *b = tensor_argument("linalg_solve_triangular", args[1]);
  bool upper = bool_argument("linalg_solve_triangular", "upper", args[2]);
  bool left = bool_argument("linalg_solve_triangular", "left", args[3]);
  bool unit = bool_argument("linalg_solve_triangular", "unitriangular", args[4]);
  check_square(name, a);
  check_matrix(name, b, "B");
  check_same_dtype(name, a, b, "A", "B");
  check_same_device(a, b);
  if ((left ? rows(b) : cols(b)) != rows(a)) {
    failf(PyExc_RuntimeError,
          "%s: Incompatible shapes of A and B for the equation %s (%lldx%lld and %lldx%lld)", name,
          left ? "AX = B" : "XA = B", (long long)rows(a), (long long)cols(a), (long long)rows(b),
          (long long)cols(b));
  }
  check_kernel("triangular_solve_cpu", a->dtype);
  Shape batch = broadcast_batches(b, a);
  TensorRef x = column_major_copy(b, batch);
  if (a->is_meta() || !x->numel) return x.release_object();
  // Column-major and row-major matrices are read where they lie, the latter as transposed ones.
  int d = a->ndim - 2;
  int64_t n64 = rows(a);
  bool columns = a->stride(d) == 1 && a->stride(d + 1) >= n64 && a->stride(d + 1) <= INT32_MAX;
  bool transposed = !columns && a->stride(d + 1) == 1 && a->stride(d) >= n64 && a->stride(d) <= INT32_MAX;
  TensorRef factor = columns || transposed ? share(a) : column_major_copy(a);
  std::vector<int64_t> offsets = matrix_offsets(factor.get(), batch);
  with_lapack(a->dtype, [&](auto tag, auto& l) {
    using T = typename decltype(tag)::type;
    int m = lapack_int(rows(b)), n = lapack_int(cols(b));
    int lda = int(std::max<int64_t>(factor->stride(transposed ? d : d + 1), 1));
    char side = left ? 'L' : 'R', uplo = upper != transposed ? 'U' : 'L', trans = transposed ? 'T' : 'N';
    char diag = unit ? 'U' : 'N';
    const T *from = factor->template data_as<T>(), one = T(1);
    T* to = x->template data_as<T>();
    over_batch(int64_t(offsets.size()), double(x->numel) / double(offsets.size()) * double(n64), 0,
               [&](int64_t i, char*) {
                 if constexpr (std::is_floating_point_v<T>)
                   return blocked_triangular(l, side, uplo, trans, diag, m, n, from + offsets[size_t(i)], lda,
                                             to + i * m * n, m);
                 l.trsm(&side, &uplo, &trans, &diag, &m, &n, &one, from + offsets[size_t(i)], &lda,
                        to + i * m * n, &m);
               });
  });
  return x.release_object();
}

void check_pivots(const Tensor* pivots, int64_t n) {
  const int* pivot = pivots->data_as<int>();
  for (int64_t i = 0; i < pivots->numel; i++) {
    if (pivot[i] < 1) {
      fail(PyExc_RuntimeError,
           "Pivots given to lu_solve must all be greater or equal to 1. "
           "Did you properly pass the result of lu_factor?");
    }
    if (pivot[i] > n) {
      fail(PyExc_RuntimeError,
           "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). "
           "Did you properly pass the result of lu_factor?");
    }
  }
}

// pivots with batch dimensions broadcast like those of LU, dense
TensorRef expand_pivots(Tensor* pivots, Sizes batch, int64_t n) {
  Shape shape = with_batch(batch, {n});
  TensorRef result = new_tensor(shape, DType::i32, pivots->device());
  if (pivots->is_meta() || !result->numel) return result;
  int64_t strides[MAX_DIMS];
  broadcast_strides(pivots, shape, strides);
  copy_into(result.get(), new_alias(pivots, shape, {strides, size_t(shape.ndim)}, pivots->offset).get());
  return result;
}

// linalg_lu_solve(LU, pivots, B; left, adjoint)
PyObject* lu_solve_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char name[] = "linalg.lu_solve", torch_name[] = "torch.linalg.lu_solve";
  Tensor *lu = tensor_argument("linalg_lu_solve", args[0]),
         *pivots = tensor_argument("linalg_lu_solve", args[1]),
         *b = tensor_argument("linalg_lu_solve", args[2]);
  bool left = bool_argument("linalg_lu_solve", "left", args[3]),
       adjoint = bool_argument("linalg_lu_solve", "adjoint", args[4]);
  check_floating(torch_name, lu);
  check_same_dtype(name, lu, b, "LU", "B");
  if (pivots->dtype != DType::i32) {
    failf(PyExc_RuntimeError, "%s: pivots should be a Tensor of scalar type torch.int32", name);
  }
  check_square(torch_name, lu, "A");
  check_matrix(name, b, "B");
  check_same_device(lu, b);
  check_same_device(lu, pivots);
  if ((left ? rows(b) : cols(b)) != rows(lu)) {
    failf(PyExc_RuntimeError,
          "%s: Incompatible shapes of A and B for the equation %s (%lldx%lld and %lldx%lld)", name,
          left ? "AX = B" : "XA = B", (long long)rows(lu), (long long)cols(lu), (long long)rows(b),
          (long long)cols(b));
  }
  if (pivots->ndim < 1) {
    fail(PyExc_IndexError, "Dimension specified as -1 but tensor has no dimensions");
  }
  if (rows(lu) != pivots->size(pivots->ndim - 1)) {
    failf(PyExc_RuntimeError, "%s: Number of pivots per batch should be same as the dimension of the matrix",
          name);
  }
  Sizes lu_batch = batch_sizes(lu), pivot_batch = batch_sizes(pivots, 1);
  if (!std::equal(lu_batch.begin(), lu_batch.end(), pivot_batch.begin(), pivot_batch.end())) {
    failf(PyExc_RuntimeError,
          "%s: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots "
          "with shape %s instead",
          name, sizes_text(pivots->sizes()).c_str());
  }
  check_kernel("linalg.lu_solve_cpu", lu);
  Shape batch = broadcast_batches(b, lu);
  int64_t n64 = rows(lu), nrhs64 = left ? cols(b) : rows(b);
  // X A = B is A.T X.T = B.T, and X A.mH = B is conj(A) X.T = B.T, that is A conj(X).T = conj(B).T.
  bool conjugate = !left && adjoint && is_complex(lu->dtype);
  TensorRef x = left ? column_major_copy(b, batch)
                     : new_tensor(with_batch(batch, {rows(b), cols(b)}), b->dtype, b->device());
  if (lu->is_meta() || !x->numel) return x.release_object();
  if (!left) {
    int64_t strides[MAX_DIMS];
    broadcast_strides(b, x->sizes(), strides);
    copy_into(x.get(), new_alias(b, x->sizes(), {strides, size_t(x->ndim)}, b->offset).get());
  }
  TensorRef fixed = stable(pivots);
  check_pivots(fixed.get(), n64);
  TensorRef factor = column_major_copy(lu, batch), order = expand_pivots(fixed.get(), batch, n64);
  with_lapack(lu->dtype, [&](auto tag, auto& l) {
    using T = typename decltype(tag)::type;
    int n = lapack_int(n64), nrhs = lapack_int(nrhs64);
    char trans = left ? (adjoint ? (is_complex_v<T> ? 'C' : 'T') : 'N') : (adjoint ? 'N' : 'T');
    const T* from = factor->template data_as<T>();
    const int* pivot = order->template data_as<int>();
    T* to = x->template data_as<T>();
    auto flip = [&](T* m) {
      if constexpr (is_complex_v<T>) {
        for (int64_t j = 0; j < int64_t(n) * nrhs; j++) m[j] = std::conj(m[j]);
      }
    };
    over_batch(numel_of(batch), double(n) * n * nrhs, 0, [&](int64_t i, char*) {
      int info;
      T* m = to + i * n * nrhs;
      if (conjugate) flip(m);
      if constexpr (std::is_floating_point_v<T>) {
        if (n >= BLOCKED && nrhs >= BLOCKED)
          return blocked_lu_solve(l, trans, n, nrhs, from + i * n * n, n, pivot + i * n, m, n);
      }
      l.getrs(&trans, &n, &nrhs, from + i * n * n, &n, pivot + i * n, m, &n, &info);
      if (conjugate) flip(m);
    });
  });
  return x.release_object();
}

// linalg_lstsq(A, B; rcond, driver) -> x, rank, singular_values: x has max(m, n) rows, as LAPACK leaves it.
// Batch dimensions are equal; B is a matrix.
PyObject* lstsq_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *a = tensor_argument("linalg_lstsq", args[0]), *b = tensor_argument("linalg_lstsq", args[1]);
  double rcond = PyFloat_AsDouble(args[2]);
  if (rcond == -1.0 && PyErr_Occurred()) throw PythonError{};
  const char* named = text_argument(args[3]);
  std::string text = named ? named : "gelss";
  Driver driver = text == "gels"    ? Driver::gels
                  : text == "gelsy" ? Driver::gelsy
                  : text == "gelsd" ? Driver::gelsd
                                    : Driver::gelss;
  check_matrix("torch.linalg.lstsq", a);
  check_matrix("torch.linalg.lstsq", b);
  check_kernel("linalg_lstsq_cpu", a->dtype);
  Sizes batch = batch_sizes(a), b_batch = batch_sizes(b);
  if (a->dtype != b->dtype || rows(a) != rows(b) || !(a->device() == b->device()) ||
      !std::equal(batch.begin(), batch.end(), b_batch.begin(), b_batch.end())) {
    fail(PyExc_RuntimeError, "torch.linalg.lstsq: input and other do not match");
  }
  int64_t m64 = rows(a), n64 = cols(a), k64 = cols(b), top = std::max(m64, n64);
  TensorRef x = column_major(with_batch(batch, {top, k64}), a->dtype, a->device());
  TensorRef rank = zeros(batch, DType::i32, a->device());
  TensorRef s = new_tensor(with_batch(batch, {std::min(m64, n64)}), to_real(a->dtype), a->device());
  if (!a->is_meta() && x->numel) {
    int m = lapack_int(m64), n = lapack_int(n64), k = lapack_int(k64);
    int ldb = lapack_int(std::max<int64_t>(top, 1));
    TensorRef matrix = column_major_copy(a), right = column_major_copy(b);
    std::atomic<int64_t> failed = -1;
    std::atomic<int> code = 0;
    with_lapack(a->dtype, [&](auto tag, auto& l) {
      using T = typename decltype(tag)::type;
      using R = real_t<T>;
      T *data = matrix->template data_as<T>(), *to = x->template data_as<T>();
      const T* from = right->template data_as<T>();
      R* values = s->template data_as<R>();
      int* ranks = rank->template data_as<int>();
      int64_t small = std::min(m64, n64);
      for (int64_t i = 0; i < rank->numel * k; i++) {
        std::copy(from + i * m, from + (i + 1) * m, to + i * top);
        std::fill(to + i * top + m, to + (i + 1) * top, T(0));
      }
      if (!small) return;
      WorkSizes sizes = least_squares_sizes<T>(l, driver, m, n, k);
      check_work(sizes);
      double work = 4 * double(m) * n * double(small);
      over_batch(rank->numel, work, Scratch::bytes<T>(sizes), [&](int64_t i, char* memory) {
        Scratch scratch{memory};
        Work<T> mine = scratch.take_work<T>(sizes);
        std::fill(mine.integer, mine.integer + sizes.integer, 0);
        const T* sides = to + i * ldb * k;
        auto nan = [](T x) { return x != x; };
        // Infinities on the right alone pass through the factors of gelsy.
        bool passes = driver == Driver::gelsy && std::none_of(sides, sides + int64_t(ldb) * k, nan);
        if (!is_finite(data + i * m * n, int64_t(m) * n) || !(passes || is_finite(sides, int64_t(ldb) * k))) {
          failed = i;
          code = -1;
          return;
        }
        int info = least_squares<T>(l, driver, m, n, k, data + i * m * n, to + i * ldb * k, ldb, R(rcond),
                                    values + i * small, ranks + i, sizes, mine);
        if (info) {
          failed = i;
          code = info;
        }
      });
    });
    if (failed >= 0 && code < 0) {
      fail(LinAlgError, failure_prefix("torch.linalg.lstsq", rank.get(), failed) +
                            "There is no least squares solution because the input contained non-finite "
                            "values.");
    }
    if (failed >= 0) {
      fail(LinAlgError,
           failure_prefix("torch.linalg.lstsq", rank.get(), failed) +
               "The least squares solution could not be computed because the input matrix does not have full "
               "rank (error code: " +
               std::to_string(code) + ").");
    }
  }
  return checked(PyTuple_Pack(3, x->object(), rank->object(), s->object())).release();
}

// linalg_ldl_solve(LD, pivots, B; hermitian)
PyObject* ldl_solve_forward(const Primitive&, PyObject* const* args, Tensor*) {
  static const char name[] = "torch.linalg.ldl_solve";
  Tensor *ld = tensor_argument("linalg_ldl_solve", args[0]),
         *pivots = tensor_argument("linalg_ldl_solve", args[1]),
         *b = tensor_argument("linalg_ldl_solve", args[2]);
  bool hermitian = bool_argument("linalg_ldl_solve", "hermitian", args[3]);
  check_square(name, ld, "A");
  check_floating(name, ld);
  if (!b->ndim) fail(PyExc_IndexError, "Dimension specified as -2 but tensor has no dimensions");
  if (b->ndim < 2)
    fail(PyExc_IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got -2)");
  Sizes expected{ld->geometry, size_t(ld->ndim - 1)}, given = pivots->sizes();
  if (!std::equal(expected.begin(), expected.end(), given.begin(), given.end())) {
    failf(PyExc_RuntimeError,
          "%s: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape %s instead",
          name, sizes_text(given).c_str());
  }
  if (!is_integral(pivots->dtype)) {
    failf(PyExc_RuntimeError, "%s: Expected pivots to be integers. Got %s", name,
          dtype_class_name(pivots->dtype));
  }
  if (ld->dtype != b->dtype) {
    failf(PyExc_RuntimeError,
          "Expected b and A to have the same dtype, but found b of type %s and A of type %s instead.",
          dtype_class_name(b->dtype), dtype_class_name(ld->dtype));
  }
  check_same_device(ld, b);
  if (rows(b) != rows(ld)) {
    failf(PyExc_RuntimeError,
          "Incompatible matrix sizes for %s: each A matrix is %lld by %lld but each b matrix is %lld by %lld",
          name, (long long)rows(ld), (long long)cols(ld), (long long)rows(b), (long long)cols(b));
  }
  check_kernel("ldl_solve_kernel_cpu", ld);
  Shape batch = broadcast_batches(b, ld);
  TensorRef x = column_major_copy(b, batch);
  if (ld->is_meta() || !x->numel) return x.release_object();
  TensorRef narrow = cast(pivots, DType::i32);
  TensorRef factor = column_major_copy(ld, batch), order = expand_pivots(narrow.get(), batch, rows(ld));
  int n = lapack_int(rows(ld)), nrhs = lapack_int(cols(b));
  const int* pivot = order->data_as<int>();
  for (int64_t i = 0; i < order->numel; i++) {
    // A negative pivot belongs to a block of two rows: the next one must be there.
    if (pivot[i] == 0 || std::abs(int64_t(pivot[i])) > n) {
      failf(PyExc_RuntimeError, "%s: pivots must come from ldl_factor", name);
    }
    if (pivot[i] < 0) {
      if ((i + 1) % n == 0 || pivot[i + 1] >= 0 || -int64_t(pivot[i + 1]) > n) {
        failf(PyExc_RuntimeError, "%s: pivots must come from ldl_factor", name);
      }
      i++;
    }
  }
  with_lapack(ld->dtype, [&](auto tag, auto& l) {
    using T = typename decltype(tag)::type;
    const T* from = factor->template data_as<T>();
    T* to = x->template data_as<T>();
    char uplo = 'L';
    over_batch(numel_of(batch), double(n) * n * nrhs, 0, [&](int64_t i, char*) {
      int info;
      l.sytrs[hermitian](&uplo, &n, &nrhs, from + i * n * n, &n, pivot + i * n, to + i * n * nrhs, &n, &info);
    });
  });
  return x.release_object();
}

ModuleInit init([](PyObject*) {
  define("linalg_solve(A, B; left, caller, name) -> result, LU, pivots, info", solve_forward);
  define("linalg_inv(A; name) -> inverse, info", inv_forward);
  define("linalg_det(A) -> result, LU, pivots", det_forward);
  define("linalg_slogdet(A; caller) -> sign, logabsdet, LU, pivots", slogdet_forward);
  define("linalg_solve_triangular(A, B; upper, left, unitriangular)", solve_triangular_forward);
  define("solve_factor(A, B; upper, left, unitriangular)", solve_triangular_forward);
  define("linalg_lu_solve(LU, pivots, B; left, adjoint)", lu_solve_forward);
  define("linalg_lstsq(A, B; rcond, driver) -> x, rank, singular_values", lstsq_forward);
  define("linalg_ldl_solve(LD, pivots, B; hermitian)", ldl_solve_forward);
});

}  // namespace
}  // namespace rl
