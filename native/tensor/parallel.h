// Splitting loops over threads. One pool for the process, started at first use, gone after fork.
//
// parallel_for(n, grain, f) calls f(begin, end) on disjoint ranges that cover [0, n), on the calling thread
// alone if n <= grain, if set_num_threads(1) was called, or from inside another parallel_for. f must not
// throw and must not touch Python.
#pragma once
#include <cstdint>
#include <functional>

namespace rl {

int num_threads();
void set_num_threads(int n);
// Whether this thread, and what works for it, takes denormal numbers for zero. False if that is not possible.
bool set_flush_denormal(bool on);

void parallel_run(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& f);

template <class F>
inline void parallel_for(int64_t n, int64_t grain, const F& f) {
  if (n <= grain) {
    if (n > 0) f(int64_t(0), n);
  } else {
    parallel_run(n, grain, f);
  }
}

}  // namespace rl
