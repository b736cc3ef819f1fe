// How much of what is freed waits for the next one who needs the same: tensors, nodes, storages, blocks.
#pragma once
#include <cstddef>

namespace rl {

// The address sanitizer sees a use of freed memory only if that memory was given back.
#ifdef __SANITIZE_ADDRESS__
constexpr bool REUSES_FREED = false;
#else
constexpr bool REUSES_FREED = true;
#endif
constexpr size_t MOST_WAITING = REUSES_FREED ? 4096 : 0;  // objects of one kind

}  // namespace rl
