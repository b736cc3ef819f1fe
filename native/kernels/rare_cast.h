// Casts from and to the dtypes without loops of their own, see Note [rare dtypes], tensor/dtype.h.
#pragma once
#include "kernels.h"

namespace rl {

struct RareCast {
  DType to, from;
};
// A Loop whose params are a RareCast, of which at least one dtype is rare.
void cast_rare(char* const* data, const int64_t* strides, int64_t n, const void* params);
// One element of `from` as one of `to`.
void cast_element(DType to, void* element, DType from, const void* value);

}  // namespace rl
