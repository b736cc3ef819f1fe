// A mutex that a child process finds open, whoever held it when the process was forked: of all threads only
// the one that forked goes on there. What such a mutex protects must be in order at any moment.
#pragma once
#include <atomic>
#include <mutex>

namespace rl {

extern unsigned forks;  // how many there were between the first process and this one

class ForkMutex {
 public:
  void lock() {
    if (process.load(std::memory_order_acquire) != forks) [[unlikely]]
      renew();
    mutex.lock();
  }
  void unlock() { mutex.unlock(); }

 private:
  void renew();
  std::mutex mutex;
  std::atomic<unsigned> process = forks;  // that it was last made in
};

}  // namespace rl
