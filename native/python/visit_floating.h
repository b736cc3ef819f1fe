// The dtypes that most layers have kernels for.
#pragma once

#include "arguments.h"

namespace rl {

// Calls f(TypeTag<T>{}) with the C++ type of a real floating dtype; the kernel refuses others by its name.
template <class F>
void visit_floating(const char* kernel, DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(TypeTag<float>{});
    case DType::f64: return f(TypeTag<double>{});
    case DType::f16: return f(TypeTag<Half>{});
    case DType::bf16: return f(TypeTag<BFloat16>{});
    default: fail_not_implemented(kernel, dtype);
  }
}

}  // namespace rl
