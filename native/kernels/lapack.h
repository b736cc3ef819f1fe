// LAPACK by element type: `lapack<T>()` gives the routines of OpenBLAS for float, double and their complex
// types.
//
// Matrices are column-major and dimensions are 32-bit, as in Fortran; what differs between the real and the
// complex routines (names, extra workspaces) is hidden in `eigh`, `eig`, `svd` and `least_squares`. Each of
// those is called twice: with `work` null it only says how much workspace it wants.
#pragma once
#include <complex>
#include <cstdint>

namespace rl {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using real_t = typename RealOf<T>::type;

template <class T>
struct Lapack {
  using R = real_t<T>;
  void (*potrf)(const char* uplo, const int* n, T* a, const int* lda, int* info);
  void (*getrf)(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);
  void (*getrs)(const char* trans, const int* n, const int* nrhs, const T* a, const int* lda,
                const int* pivots, T* b, const int* ldb, int* info);
  void (*getri)(const int* n, T* a, const int* lda, const int* pivots, T* work, const int* lwork, int* info);
  void (*geqrf)(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork,
                int* info);
  void (*orgqr)(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work,
                const int* lwork, int* info);
  void (*ormqr)(const char* side, const char* trans, const int* m, const int* n, const int* k, const T* a,
                const int* lda, const T* tau, T* c, const int* ldc, T* work, const int* lwork, int* info);
  void (*trsm)(const char* side, const char* uplo, const char* trans, const char* diag, const int* m,
               const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb);
  // Symmetric, and Hermitian (the same for real types).
  void (*sytrf[2])(const char* uplo, const int* n, T* a, const int* lda, int* pivots, T* work,
                   const int* lwork, int* info);
  void (*sytrs[2])(const char* uplo, const int* n, const int* nrhs, const T* a, const int* lda,
                   const int* pivots, T* b, const int* ldb, int* info);
  void (*gels)(const char* trans, const int* m, const int* n, const int* nrhs, T* a, const int* lda, T* b,
               const int* ldb, T* work, const int* lwork, int* info);
  // Their signatures differ between real and complex types; called through the functions below.
  void *syevd, *geev, *gesdd, *gelsy, *gelsd, *gelss;
};

// The routines for T, found at first use; null without the library.
template <class T>
const Lapack<T>* lapack();

// How much of each kind of workspace a routine wants.
struct WorkSizes {
  int work = 0;         // elements
  int64_t real = 0;     // elements of the real type
  int64_t integer = 0;  // ints
};
template <class T>
struct Work {
  T* work;
  real_t<T>* real;
  int* integer;
};

// Eigenvalues in w (ascending), eigenvectors over a if `vectors`; only the triangle `uplo` is read.
template <class T>
WorkSizes eigh_sizes(const Lapack<T>& l, bool vectors, int n);
template <class T>
int eigh(const Lapack<T>& l, bool vectors, char uplo, int n, T* a, real_t<T>* w, const WorkSizes& sizes,
         const Work<T>& work);

// Eigenvalues in w, right eigenvectors in v unless it is null; a is destroyed.
template <class T>
WorkSizes eig_sizes(const Lapack<T>& l, bool vectors, int n);
template <class T>
int eig(const Lapack<T>& l, int n, T* a, std::complex<real_t<T>>* w, std::complex<real_t<T>>* v,
        const WorkSizes& sizes, const Work<T>& work);

// job: 'A' all of U and Vh, 'S' their first min(m, n) columns and rows, 'N' only s; a is destroyed.
template <class T>
WorkSizes svd_sizes(const Lapack<T>& l, char job, int m, int n);
template <class T>
int svd(const Lapack<T>& l, char job, int m, int n, T* a, real_t<T>* s, T* u, int ldu, T* vh, int ldvh,
        const WorkSizes& sizes, const Work<T>& work);

// Least squares: the solution over b (ldb >= max(m, n)); s and rank where the driver gives them.
enum class Driver { gels, gelsy, gelsd, gelss };
template <class T>
WorkSizes least_squares_sizes(const Lapack<T>& l, Driver driver, int m, int n, int nrhs);
template <class T>
int least_squares(const Lapack<T>& l, Driver driver, int m, int n, int nrhs, T* a, T* b, int ldb,
                  real_t<T> rcond, real_t<T>* s, int* rank, const WorkSizes& sizes, const Work<T>& work);

}  // namespace rl
