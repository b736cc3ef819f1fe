// Products of float matrices in AVX-512, for the shapes where they beat OpenBLAS; see gemm_avx512.cpp.
#pragma once
#include <cstdlib>
#include <memory>

#include "matmul.h"

namespace rl {

// c = alpha a b + beta c on the calling thread. The columns of c are adjacent (col_stride is 1), and
// the rows or the columns of a and of b. Only where avx512_chosen().
// False, and nothing done, if there is no memory.
bool gemm_avx512(const Matrix& c, const Matrix& a, const Matrix& b, float alpha, float beta);

// The right factor of many products, packed once.
class PackedRight {
 public:
  explicit PackedRight(const Matrix& b);
  // c = a b + c, or a b if `fresh`; a and c are dense, of so many rows. Large products use several threads.
  void multiply(float* c, int64_t rows, const float* a, bool fresh) const;

 private:
  int64_t terms, columns, deepest;
  std::unique_ptr<float, decltype(&std::free)> packed;
};

}  // namespace rl
