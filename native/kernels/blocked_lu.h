// LU factors, their solutions and triangular systems of large real matrices, as recursions over products.
//
// OpenBLAS's getrf, getrs and trsm reach 45 GF/s at 512 rows where its product reaches 160 (float, one core);
// halving the matrix until little is left gives nearly everything to the product, and to all threads.
#pragma once
#include "lapack.h"

namespace rl {

// Rows from which on these are faster.
constexpr int BLOCKED = 64;

// As trsm with alpha 1: b (m x n) = op(a)^-1 b, or b op(a)^-1 on the right. T is float or double.
template <class T>
void blocked_triangular(const Lapack<T>& l, char side, char uplo, char trans, char diag, int m, int n,
                        const T* a, int lda, T* b, int ldb);

// As getrf on an m x n matrix; returns its info.
template <class T>
int blocked_lu(const Lapack<T>& l, int m, int n, T* a, int lda, int* pivots);

// As getrs; trans is 'N' or 'T'.
template <class T>
void blocked_lu_solve(const Lapack<T>& l, char trans, int n, int nrhs, const T* a, int lda, const int* pivots,
                      T* b, int ldb);

// As getri; `room` has n x n elements.
template <class T>
void blocked_inverse(const Lapack<T>& l, int n, T* a, const int* pivots, T* room);

}  // namespace rl
