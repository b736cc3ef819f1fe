// Loops over the examples of a batch (rushlight/_vmap_internals.py, `is_grads_batched`), see batching.cpp.
#pragma once
#include "../graph/modes.h"
#include "../tensor/tensor.h"

namespace rl {

inline bool is_batched(const Tensor* t) { return modes.batching && t->storage->marks & Storage::BATCHED; }

// Refuses what asks for the values of one example: `aten::item` and such, in torch's words.
[[noreturn]] void fail_batched(const char* operation);
inline void check_unbatched(const Tensor* t, const char* operation) {
  if (is_batched(t)) [[unlikely]]
    fail_batched(operation);
}

}  // namespace rl
