// How far into memory a geometry reaches.
#pragma once
#include "tensor.h"

namespace rl {

// Where the element farthest from the first lies, counted with `offset`; -1 if 64 bits do not hold it. Of
// sizes above zero and strides that are not below.
int64_t farthest(Sizes sizes, Sizes strides, int64_t offset = 0);

// The bytes that a storage needs for such a tensor, of any sizes and strides; throws if they cannot be
// counted.
int64_t bytes_reached(Sizes sizes, Sizes strides, int64_t offset, int itemsize);

}  // namespace rl
