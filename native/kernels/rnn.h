// What one step of a recurrent network does elementwise, between two matrix products.
//
// All arrays are dense rows of H elements (gates: of 3 H or 4 H) of one type, f32 or f64. The gates of an
// LSTM are in, forget, cell, out; those of a GRU reset, update, new. Sequences and products are in
// python/rnn_ops.cpp.
#pragma once
#include "kernels.h"

namespace rl {

enum class RnnMode : uint8_t { lstm, gru, tanh, relu };

struct RnnLoops {
  // From the products of input (gx) and state (gates on entry), 4 H each; gates on return: the nonlinear
  // functions of their sums. c may be c_before.
  void (*lstm)(DType dtype, int64_t rows, int64_t H, const void* gx, void* gates, const void* c_before,
               void* c, void* h);
  // dc: of c on entry, of c_before on return.
  void (*lstm_backward)(DType dtype, int64_t rows, int64_t H, const void* gates, const void* c_before,
                        const void* c, const void* dh, void* dc, void* dgates);
  // From the products of input (gx) and state (gh), 3 H each; keeps reset, update, new and gh's last part (4
  // H).
  void (*gru)(DType dtype, int64_t rows, int64_t H, const void* gx, const void* gh, const void* h_before,
              void* kept, void* h);
  // dh_before: the part that does not go through the products.
  void (*gru_backward)(DType dtype, int64_t rows, int64_t H, const void* kept, const void* h_before,
                       const void* dh, void* dgx, void* dgh, void* dh_before);
  // h: sums on entry, their tanh or relu on return; and d = dh times the derivative at result h.
  void (*simple)(DType dtype, bool relu, int64_t n, void* h);
  void (*simple_backward)(DType dtype, bool relu, int64_t n, const void* h, const void* dh, void* d);
  // to += from
  void (*add)(DType dtype, int64_t n, void* to, const void* from);
};
namespace baseline {
extern const RnnLoops rnn_loops;
}
namespace avx2 {
extern const RnnLoops rnn_loops;
}
namespace avx512 {
extern const RnnLoops rnn_loops;
}

}  // namespace rl
