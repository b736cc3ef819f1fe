// Walking several strided operands of one shape in row-major order, in runs along the last dimension.
//
// A Walk drops dimensions of size 1 and merges neighbours that every operand steps through as one, so that a
// run is as long as the memory allows. `run(begin, end, f)` calls f(offsets, n) for each run of the linear
// range; offsets count elements of each operand, and `step(k)` is operand k's stride within a run.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "kernels.h"

namespace rl {

constexpr int64_t INDEX_GRAIN = 16384;  // elements below which a second thread does not pay

template <int MAX_OPERANDS>
struct Walk {
  int ndim = 0, operands;
  int64_t numel = 1;
  int64_t sizes[MAX_DIMS];
  int64_t strides[MAX_DIMS][MAX_OPERANDS];

  Walk(int n, const int64_t* shape, std::initializer_list<const int64_t*> operand_strides)
      : Walk(n, shape, operand_strides.begin(), int(operand_strides.size())) {}

  Walk(int n, const int64_t* shape, const int64_t* const* operand_strides, int count) : operands(count) {
    for (int d = 0; d < n; d++) {
      numel *= shape[d];
      if (shape[d] == 1) continue;
      bool merge = ndim > 0;
      for (int k = 0; merge && k < count; k++) {
        merge = strides[ndim - 1][k] == operand_strides[k][d] * shape[d];
      }
      if (merge) {
        sizes[ndim - 1] *= shape[d];
      } else {
        sizes[ndim++] = shape[d];
      }
      for (int k = 0; k < count; k++) strides[ndim - 1][k] = operand_strides[k][d];
    }
    if (ndim == 0) {
      ndim = 1;
      sizes[0] = 1;
      for (int k = 0; k < count; k++) strides[0][k] = 0;
    }
  }

  int64_t step(int k) const { return strides[ndim - 1][k]; }

  // Makes the last dimension the first one; the order of the others stays.
  void rotate() {
    for (int d = ndim - 1; d > 0; d--) {
      std::swap(sizes[d], sizes[d - 1]);
      std::swap_ranges(strides[d], strides[d] + operands, strides[d - 1]);
    }
  }

  template <class F>
  void run(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    int64_t at[MAX_DIMS], offsets[MAX_OPERANDS];
    std::fill(offsets, offsets + operands, int64_t(0));
    int64_t rest = begin;
    for (int d = ndim - 1; d >= 0; d--) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
      for (int k = 0; k < operands; k++) offsets[k] += at[d] * strides[d][k];
    }
    const int last = ndim - 1;
    for (;;) {
      int64_t n = std::min(sizes[last] - at[last], end - begin);
      f(static_cast<const int64_t*>(offsets), n);
      begin += n;
      if (begin >= end) return;
      for (int k = 0; k < operands; k++) offsets[k] -= at[last] * strides[last][k];
      at[last] = 0;
      for (int d = last - 1; d >= 0; d--) {
        for (int k = 0; k < operands; k++) offsets[k] += strides[d][k];
        if (++at[d] < sizes[d]) break;
        for (int k = 0; k < operands; k++) offsets[k] -= at[d] * strides[d][k];
        at[d] = 0;
      }
    }
  }
};

// Calls f(std::integral_constant<int, N>{}) with the size of an element: moving needs no more of a dtype.
template <class F>
void visit_size(DType dtype, F&& f) {
  switch (dtype_size(dtype)) {
    case 1: return f(std::integral_constant<int, 1>{});
    case 2: return f(std::integral_constant<int, 2>{});
    case 4: return f(std::integral_constant<int, 4>{});
    case 8: return f(std::integral_constant<int, 8>{});
    default: return f(std::integral_constant<int, 16>{});
  }
}

template <int N>
inline void move_element(char* to, const char* from) {
  __builtin_memcpy(to, from, N);
}

// Some processors copy a long row at a tenth of their speed if its target lies a few bytes behind its source,
// counted within pages: every load seems to wait for the store before it. Not so from the end.
inline void copy_row(char* to, const char* from, size_t bytes) {
  constexpr size_t PIECE = 64, SHORT = 1024, LONG = 1 << 18, CLOSE = 128;
  if ((size_t(to - from) & 4095) - 1 < CLOSE && bytes > SHORT && bytes < LONG) {
    typedef uint64_t Pair __attribute__((vector_size(16)));
    for (; bytes >= PIECE; bytes -= PIECE) {
      Pair piece[4];
      __builtin_memcpy(piece, from + bytes - PIECE, PIECE);
      __builtin_memcpy(to + bytes - PIECE, piece, PIECE);
    }
  }
  __builtin_memcpy(to, from, bytes);
}

// n elements of `size` bytes, the first of them at `from` and the others before it (index_move.cpp).
void move_backwards(int size, char* to, const char* from, int64_t n);

// n elements of N bytes from one strided row to another (strides in elements).
template <int N>
inline void move_row(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  if (to_step == 1 && from_step == 1) return copy_row(to, from, size_t(n) * N);
  if (to_step == 1 && from_step == -1) return move_backwards(N, to, from, n);
  for (int64_t i = 0; i < n; i++) move_element<N>(to + i * to_step * N, from + i * from_step * N);
}

}  // namespace rl
