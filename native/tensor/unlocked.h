// Kernels that run without the GIL, and changes that have to wait for them.
//
// Note [changes under kernels]
// A kernel with enough work releases the GIL. What it works on stays alive, because its caller holds the
// tensors, but another thread could meanwhile take their memory or their sizes away: `resize_`, `set_`,
// `.data = ...`, `t_`, a storage that grows or moves. Such a change calls `wait_for_kernels` before it looks
// at anything; on return the GIL is held and no kernel is at work. Kernels that begin while a change waits
// keep the GIL. A kernel counts until its thread has the GIL back, so an operation that releases it several
// times in a row sees no change in between. A fork is such a change, too (python/process.cpp).
//
// Other writes to the elements go on: what a kernel reads then is the program's own affair, and it must not
// believe that what it has checked (an index, a mask) is still so. See `stable` in tensor.h.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstdint>

namespace rl {

// Elements below which a loop stays on one thread with the GIL held: waking a thread costs about 5 us.
constexpr int64_t GRAIN = 32768;

extern std::atomic<int> kernels_running, changes_waiting;  // written with the GIL held
void wait_while_kernels_run();
inline void wait_for_kernels() {
  if (kernels_running.load(std::memory_order_relaxed)) [[unlikely]]
    wait_while_kernels_run();
}

// Releases the GIL for its lifetime if `work` (in elements) is worth it.
class MaybeNoGil {
 public:
  explicit MaybeNoGil(int64_t work) : state(nullptr) {
    if (work <= GRAIN || changes_waiting.load(std::memory_order_relaxed)) return;
    kernels_running++;
    state = PyEval_SaveThread();
  }
  ~MaybeNoGil() {
    if (!state) return;
    PyEval_RestoreThread(state);
    kernels_running--;
  }
  MaybeNoGil(const MaybeNoGil&) = delete;

 private:
  PyThreadState* state;
};

}  // namespace rl
