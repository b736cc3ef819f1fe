// The one iteration scheme over broadcast strided operands.
//
// `Operands` collects pointers and byte strides for a common shape; `run_elementwise` drops and merges
// dimensions, puts the smallest steps innermost, and calls the loop on rows, over threads and without the GIL
// when there is enough work. Contiguous operands of any shape become one row.
#pragma once
#include <algorithm>

#include "../kernels/elementwise.h"
#include "tensor.h"
#include "unlocked.h"

namespace rl {

constexpr int MAX_OPERANDS = 6;

struct Operands {
  int count = 0;
  bool contiguous =
      true;  // all operands have the shape of the iteration and are contiguous (or are single numbers)
  char* data[MAX_OPERANDS];
  int64_t itemsize[MAX_OPERANDS];
  int64_t strides[MAX_OPERANDS][MAX_DIMS];  // bytes; only set if an operand is not contiguous
  const Tensor* tensors[MAX_OPERANDS];      // null for single numbers

  void add(const Tensor* t) {
    data[count] = t->data();
    itemsize[count] = t->itemsize();
    tensors[count] = t;
    contiguous &= t->is_contiguous();
    count++;
  }
  void add_broadcast(const Tensor* t, Sizes sizes) {
    bool same = t->ndim == sizes.size() && std::equal(sizes.begin(), sizes.end(), t->geometry);
    add(t);
    contiguous &= same;
  }
  // One element, read for every position.
  void add_number(const void* element, int size) {
    data[count] = static_cast<char*>(const_cast<void*>(element));
    itemsize[count] = size;
    tensors[count] = nullptr;
    count++;
  }
};

void run_elementwise(Loop loop, Operands& operands, Sizes sizes, const void* params = nullptr);

}  // namespace rl
