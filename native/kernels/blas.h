// The few OpenBLAS routines that matrix products use, found at the first product.
//
// The library lies in `_lib/` beside the extension module (the wheel brings it) and is opened by `blas()`,
// never at import. It runs single-threaded for good: products are divided over our own threads (see
// matmul.cpp), so the thread count follows set_num_threads() at no cost per call, nothing spins between two
// products, and a forked child finds no missing workers. `blas()` is null where the library cannot be opened;
// matmul.cpp then uses its own loops.
#pragma once
#include <complex>

namespace rl {

enum CblasOrder : int { ROW_MAJOR = 101 };
enum CblasTranspose : int { NO_TRANS = 111, TRANS = 112 };

// LP64 cblas: dimensions are 32-bit. Complex scalars go by pointer, real ones by value.
template <class T, class Scalar>
using CblasGemm = void (*)(CblasOrder, CblasTranspose, CblasTranspose, int m, int n, int k, Scalar alpha,
                           const T* a, int lda, const T* b, int ldb, Scalar beta, T* c, int ldc);
template <class T, class Scalar>
using CblasGemv = void (*)(CblasOrder, CblasTranspose, int m, int n, Scalar alpha, const T* a, int lda,
                           const T* x, int incx, Scalar beta, T* y, int incy);
template <class T>
using CblasDot = T (*)(int n, const T* x, int incx, const T* y, int incy);
template <class T>
using CblasDotSub = void (*)(int n, const T* x, int incx, const T* y, int incy, T* result);

struct Blas {
  using c64 = std::complex<float>;
  using c128 = std::complex<double>;
  CblasGemm<float, float> sgemm;
  CblasGemm<double, double> dgemm;
  CblasGemm<c64, const c64*> cgemm;
  CblasGemm<c128, const c128*> zgemm;
  CblasGemv<float, float> sgemv;
  CblasGemv<double, double> dgemv;
  CblasGemv<c64, const c64*> cgemv;
  CblasGemv<c128, const c128*> zgemv;
  CblasDot<float> sdot;
  CblasDot<double> ddot;
  CblasDotSub<c64> cdotu, cdotc;
  CblasDotSub<c128> zdotu, zdotc;
  // On AVX-512 processors OpenBLAS multiplies up to a million terms without packing; see Note [unpacked
  // products].
  bool has_unpacked_kernels;
};

// The library's routines, or null if it could not be opened. The first call opens it.
const Blas* blas();

// Any other symbol of the library, by its usual name ("dgesv_"); null without the library or the symbol.
void* blas_symbol(const char* name);

// Why blas() is null; empty while it is not.
const char* blas_error();

}  // namespace rl
