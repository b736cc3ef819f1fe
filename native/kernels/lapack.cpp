// Finds the LAPACK routines and evens out the differences between their real and complex forms. Start at
// `find_routines`; below it every function asks for its workspace with lwork = -1, as LAPACK has it.
#include "lapack.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "blas.h"

namespace rl {
namespace {

template <class T>
constexpr bool complex_type = !std::is_same_v<T, real_t<T>>;

template <class T>
constexpr char LETTER = std::is_same_v<T, float>                 ? 's'
                        : std::is_same_v<T, double>              ? 'd'
                        : std::is_same_v<T, std::complex<float>> ? 'c'
                                                                 : 'z';

template <class F>
bool find(char letter, const char* name, F& function) {
  std::string symbol = letter + std::string(name) + "_";
  function = reinterpret_cast<F>(blas_symbol(symbol.c_str()));
  return function != nullptr;
}

template <class T>
const Lapack<T>* find_routines() {
  static Lapack<T> l;
  constexpr bool c = complex_type<T>;
  constexpr char t = LETTER<T>;
  bool complete =
      find(t, "potrf", l.potrf) && find(t, "getrf", l.getrf) && find(t, "getrs", l.getrs) &&
      find(t, "getri", l.getri) && find(t, "geqrf", l.geqrf) && find(t, c ? "ungqr" : "orgqr", l.orgqr) &&
      find(t, c ? "unmqr" : "ormqr", l.ormqr) && find(t, "trsm", l.trsm) && find(t, "sytrf", l.sytrf[0]) &&
      find(t, c ? "hetrf" : "sytrf", l.sytrf[1]) && find(t, "sytrs", l.sytrs[0]) &&
      find(t, c ? "hetrs" : "sytrs", l.sytrs[1]) && find(t, "gels", l.gels) &&
      find(t, c ? "heevd" : "syevd", l.syevd) && find(t, "geev", l.geev) && find(t, "gesdd", l.gesdd) &&
      find(t, "gelsy", l.gelsy) && find(t, "gelsd", l.gelsd) && find(t, "gelss", l.gelss);
  return complete ? &l : nullptr;
}

// A workspace query answers in the element type; a float may have rounded a large answer down. LAPACK counts
// in 32 bits and believes what wraps round: `least` is what its documentation asks for. -1 if that is beyond.
template <class T>
int wanted(T answer, double least = 1) {
  double size = std::real(std::complex<double>(answer));
  if (sizeof(real_t<T>) == 4) size *= 1 + 1e-6;
  size = std::max(size, least);
  return size < 2147483647.0 ? int(std::ceil(size)) : -1;
}

template <class F>
F* as(void* routine) {
  return reinterpret_cast<F*>(routine);
}

}  // namespace

template <class T>
const Lapack<T>* lapack() {
  static const Lapack<T>* routines = find_routines<T>();
  return routines;
}

// ---- symmetric and Hermitian eigenvalues

template <class T>
int eigh(const Lapack<T>& l, bool vectors, char uplo, int n, T* a, real_t<T>* w, const WorkSizes& sizes,
         const Work<T>& work) {
  using R = real_t<T>;
  char job = vectors ? 'V' : 'N';
  int lda = std::max(n, 1), lwork = sizes.work, liwork = int(sizes.integer), info = 0;
  if constexpr (complex_type<T>) {
    int lrwork = int(sizes.real);
    as<void(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*, const int*, int*,
            const int*, int*)>(l.syevd)(&job, &uplo, &n, a, &lda, w, work.work, &lwork, work.real, &lrwork,
                                        work.integer, &liwork, &info);
  } else {
    as<void(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, int*, const int*,
            int*)>(l.syevd)(&job, &uplo, &n, a, &lda, w, work.work, &lwork, work.integer, &liwork, &info);
  }
  return info;
}

template <class T>
WorkSizes eigh_sizes(const Lapack<T>& l, bool vectors, int n) {
  T a{}, answer{};
  real_t<T> w{}, real{};
  int integer = 0;
  eigh<T>(l, vectors, 'L', n, &a, &w, {-1, -1, -1}, {&answer, &real, &integer});
  double least = vectors ? 1 + 6 * double(n) + 2 * double(n) * n : 1;
  return {wanted(answer, least), complex_type<T> ? wanted(real, least) : 0, integer};
}

// ---- general eigenvalues

template <class T>
int eig(const Lapack<T>& l, int n, T* a, std::complex<real_t<T>>* w, std::complex<real_t<T>>* v,
        const WorkSizes& sizes, const Work<T>& work) {
  using R = real_t<T>;
  char left = 'N', right = v ? 'V' : 'N';
  int lda = std::max(n, 1), lwork = sizes.work, one = 1, info = 0;
  if constexpr (complex_type<T>) {
    as<void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,
            const int*, R*, int*)>(l.geev)(&left, &right, &n, a, &lda, w, nullptr, &one, v, v ? &lda : &one,
                                           work.work, &lwork, work.real, &info);
  } else {
    // real: n real parts, n imaginary parts, then the packed vectors
    R *re = work.real, *im = re + n, *packed = im + n;
    as<void(const char*, const char*, const int*, T*, const int*, R*, R*, T*, const int*, T*, const int*, T*,
            const int*, int*)>(l.geev)(&left, &right, &n, a, &lda, re, im, nullptr, &one, packed,
                                       v ? &lda : &one, work.work, &lwork, &info);
    if (lwork == -1) return info;
    for (int j = 0; j < n; j++) w[j] = {re[j], im[j]};
    for (int j = 0; v && j < n; j++) {
      const R* column = packed + int64_t(j) * n;
      std::complex<R>* to = v + int64_t(j) * n;
      // A conjugate pair of eigenvectors is stored as its real and its imaginary part.
      if (im[j] != 0 && j + 1 < n) {
        for (int i = 0; i < n; i++) {
          to[i] = {column[i], column[n + i]};
          to[n + i] = {column[i], -column[n + i]};
        }
        j++;
      } else {
        for (int i = 0; i < n; i++) to[i] = column[i];
      }
    }
  }
  return info;
}

template <class T>
WorkSizes eig_sizes(const Lapack<T>& l, bool vectors, int n) {
  T a{}, answer{};
  real_t<T> real[3]{};
  std::complex<real_t<T>> w{}, v{};
  Work<T> work{&answer, real, nullptr};
  // The query of a real matrix only reads the flags and sizes: pointers need not point to n elements.
  if constexpr (complex_type<T>) {
    eig<T>(l, n, &a, &w, vectors ? &v : nullptr, {-1, 0, 0}, work);
    return {wanted(answer), 2 * int64_t(n), 0};
  } else {
    char left = 'N', right = vectors ? 'V' : 'N';
    int lda = std::max(n, 1), lwork = -1, one = 1, info = 0;
    as<void(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*, const int*, T*,
            const int*, int*)>(l.geev)(&left, &right, &n, &a, &lda, real, real + 1, nullptr, &one, real + 2,
                                       vectors ? &lda : &one, &answer, &lwork, &info);
    return {wanted(answer), 2 * int64_t(n) + (vectors ? int64_t(n) * n : 0), 0};
  }
}

// ---- singular values

template <class T>
int svd(const Lapack<T>& l, char job, int m, int n, T* a, real_t<T>* s, T* u, int ldu, T* vh, int ldvh,
        const WorkSizes& sizes, const Work<T>& work) {
  using R = real_t<T>;
  int lda = std::max(m, 1), lwork = sizes.work, info = 0;
  if constexpr (complex_type<T>) {
    as<void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, T*,
            const int*, R*, int*, int*)>(l.gesdd)(&job, &m, &n, a, &lda, s, u, &ldu, vh, &ldvh, work.work,
                                                  &lwork, work.real, work.integer, &info);
  } else {
    as<void(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*, const int*, T*,
            const int*, int*, int*)>(l.gesdd)(&job, &m, &n, a, &lda, s, u, &ldu, vh, &ldvh, work.work, &lwork,
                                              work.integer, &info);
  }
  return info;
}

template <class T>
WorkSizes svd_sizes(const Lapack<T>& l, char job, int m, int n) {
  T a{}, answer{}, u{}, vh{};
  real_t<T> s{}, real{};
  int integer = 0;
  int64_t small = std::min(m, n), large = std::max(m, n);
  int ldu = std::max(m, 1), ldvh = std::max(job == 'A' ? n : int(small), 1);
  svd<T>(l, job, m, n, &a, &s, &u, ldu, &vh, ldvh, {-1, 0, 0}, {&answer, &real, &integer});
  int64_t rwork = 0;
  if (complex_type<T>) {
    // As the documentation of cgesdd has it, taking the larger of its two bounds.
    rwork = job == 'N'
                ? 7 * small
                : std::max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small);
  }
  double least =
      job == 'N' ? 1 : (complex_type<T> ? 1 : 4) * double(small * small) + double(7 * small + large);
  return {wanted(answer, least), std::max<int64_t>(rwork, 1), std::max<int64_t>(8 * small, 1)};
}

// ---- least squares

template <class T>
int least_squares(const Lapack<T>& l, Driver driver, int m, int n, int nrhs, T* a, T* b, int ldb,
                  real_t<T> rcond, real_t<T>* s, int* rank, const WorkSizes& sizes, const Work<T>& work) {
  using R = real_t<T>;
  int lda = std::max(m, 1), lwork = sizes.work, info = 0;
  if (driver == Driver::gels) {
    char trans = 'N';
    l.gels(&trans, &m, &n, &nrhs, a, &lda, b, &ldb, work.work, &lwork, &info);
    return info;
  }
  using In = const int*;
  if constexpr (complex_type<T>) {
    if (driver == Driver::gelsy) {
      as<void(In, In, In, T*, In, T*, In, int*, const R*, int*, T*, In, R*, int*)>(l.gelsy)(
          &m, &n, &nrhs, a, &lda, b, &ldb, work.integer, &rcond, rank, work.work, &lwork, work.real, &info);
    } else if (driver == Driver::gelsd) {
      as<void(In, In, In, T*, In, T*, In, R*, const R*, int*, T*, In, R*, int*, int*)>(l.gelsd)(
          &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.work, &lwork, work.real, work.integer,
          &info);
    } else {
      as<void(In, In, In, T*, In, T*, In, R*, const R*, int*, T*, In, R*, int*)>(l.gelss)(
          &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.work, &lwork, work.real, &info);
    }
  } else {
    if (driver == Driver::gelsy) {
      as<void(In, In, In, T*, In, T*, In, int*, const R*, int*, T*, In, int*)>(l.gelsy)(
          &m, &n, &nrhs, a, &lda, b, &ldb, work.integer, &rcond, rank, work.work, &lwork, &info);
    } else if (driver == Driver::gelsd) {
      as<void(In, In, In, T*, In, T*, In, R*, const R*, int*, T*, In, int*, int*)>(l.gelsd)(
          &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.work, &lwork, work.integer, &info);
    } else {
      as<void(In, In, In, T*, In, T*, In, R*, const R*, int*, T*, In, int*)>(l.gelss)(
          &m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.work, &lwork, &info);
    }
  }
  return info;
}

template <class T>
WorkSizes least_squares_sizes(const Lapack<T>& l, Driver driver, int m, int n, int nrhs) {
  T a{}, b{}, answer{};
  real_t<T> s{}, real{};
  int rank = 0, integer = 0;
  least_squares<T>(l, driver, m, n, nrhs, &a, &b, std::max({m, n, 1}), real_t<T>(-1), &s, &rank, {-1, 0, 0},
                   {&answer, &real, &integer});
  int64_t small = std::min(m, n), large = std::max(m, n);
  double least = double(3 * small + std::max(large + 1, 2 * small)) + nrhs;
  if (driver == Driver::gelsd || driver == Driver::gelss)
    least += double(small) * double(nrhs) + double(small) * double(small);
  WorkSizes sizes{wanted(answer, least), 1, 1};
  if (driver == Driver::gelsy) {
    sizes.integer = std::max(n, 1);
    sizes.real = 2 * std::max<int64_t>(n, 1);
  } else if (driver == Driver::gelsd) {
    sizes.integer = std::max(integer, 1);
    sizes.real = complex_type<T> ? std::max<int64_t>(wanted(real), 1) : 1;
  } else if (driver == Driver::gelss) {
    sizes.real = std::max<int64_t>(5 * small, 1);
  }
  return sizes;
}

#define INSTANTIATE(T)                                                                                       \
  template const Lapack<T>* lapack<T>();                                                                     \
  template WorkSizes eigh_sizes<T>(const Lapack<T>&, bool, int);                                             \
  template int eigh<T>(const Lapack<T>&, bool, char, int, T*, real_t<T>*, const WorkSizes&, const Work<T>&); \
  template WorkSizes eig_sizes<T>(const Lapack<T>&, bool, int);                                              \
  template int eig<T>(const Lapack<T>&, int, T*, std::complex<real_t<T>>*, std::complex<real_t<T>>*,         \
                      const WorkSizes&, const Work<T>&);                                                     \
  template WorkSizes svd_sizes<T>(const Lapack<T>&, char, int, int);                                         \
  template int svd<T>(const Lapack<T>&, char, int, int, T*, real_t<T>*, T*, int, T*, int, const WorkSizes&,  \
                      const Work<T>&);                                                                       \
  template WorkSizes least_squares_sizes<T>(const Lapack<T>&, Driver, int, int, int);                        \
  template int least_squares<T>(const Lapack<T>&, Driver, int, int, int, T*, T*, int, real_t<T>, real_t<T>*, \
                                int*, const WorkSizes&, const Work<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(std::complex<float>)
INSTANTIATE(std::complex<double>)
#undef INSTANTIATE

}  // namespace rl
