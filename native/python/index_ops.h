// What the files about indexing share: reading arguments, device checks, and copies where memory would
// overlap.
#pragma once
#include "../kernels/index.h"
#include "primitive.h"

namespace rl {

void check_writable(Tensor* out);                                            // elementwise_ops.cpp
Tensor* tensor_argument(const Primitive& op, PyObject* const* args, int i);  // matmul_ops.cpp
void check_same_device(const Tensor* a, const Tensor* b);                    // matmul_ops.cpp

// `in`, or a copy if it shares memory with what is about to be written.
TensorRef apart_from(Tensor* in, const Tensor* out);

// advanced_index.cpp
Ref<PyObject> mask_indices(Tensor* mask);  // tuple of int64 index tensors, one per dimension of the mask

}  // namespace rl
