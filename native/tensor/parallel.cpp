#include "parallel.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rl {
namespace {

// Whether denormal numbers count as zero is a state of each thread; workers take it from who gives the job.
#if defined(__x86_64__)
constexpr unsigned DENORMALS = 0x8040;  // MXCSR: results are flushed, operands are taken for zero
unsigned denormal_mode() { return _mm_getcsr() & DENORMALS; }
void set_denormal_mode(unsigned mode) {
  if (mode != denormal_mode()) _mm_setcsr((_mm_getcsr() & ~DENORMALS) | mode);
}
#else
unsigned denormal_mode() { return 0; }
void set_denormal_mode(unsigned) {}
#endif

// About 30 us of pauses, then some 300 us in which a thread gives way to any other that wants its processor.
constexpr int SPINS = 1000, YIELDS = 600;
constexpr int64_t ALIGNED = 64;  // ranges at least this long begin at multiples of 16

// One job at a time: `f` over `parts` ranges; workers and the caller draw part numbers from `next`.
struct Pool {
  std::mutex mutex;
  std::condition_variable wake, finished;
  std::vector<std::thread> workers;
  const std::function<void(int64_t)>* job = nullptr;
  std::atomic<int64_t> next{0};
  int64_t parts = 0;
  unsigned denormals = 0;
  std::atomic<int64_t> running{0};
  std::atomic<uint64_t> generation{0};

  // Waits a little before it sleeps: training sends one job after another, and waking a sleeping thread takes
  // longer than many of them. True if `done` came true meanwhile.
  template <class F>
  static bool spin(F done) {
    for (int i = 0; i < SPINS + YIELDS; i++) {
      if (done()) return true;
      if (i >= SPINS) std::this_thread::yield();
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    return false;
  }

  void work() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      if (generation == seen) {
        lock.unlock();
        spin([&] { return generation != seen; });
        lock.lock();
      }
      wake.wait(lock, [&] { return generation != seen; });
      seen = generation;
      if (!job) continue;
      running++;
      set_denormal_mode(denormals);
      lock.unlock();
      draw();
      lock.lock();
      if (--running == 0) finished.notify_one();
    }
  }

  void draw() {
    for (int64_t part; (part = next.fetch_add(1)) < parts;) (*job)(part);
  }

  // Where the system gives no more threads, those that are there do the work.
  void hire(int wanted) {
    try {
      while (int(workers.size()) < wanted) {
        workers.emplace_back([this] { work(); });
        workers.back().detach();
      }
    } catch (const std::exception&) {  // no more threads, or no memory for them
    }
  }

  void run(int threads, int64_t n_parts, const std::function<void(int64_t)>& f) {
    {
      std::unique_lock lock(mutex);
      hire(threads - 1);
      job = &f;
      parts = n_parts;
      denormals = denormal_mode();
      next = 0;
      generation++;
    }
    wake.notify_all();
    draw();
    spin([&] { return running == 0; });
    std::unique_lock lock(mutex);
    finished.wait(lock, [&] { return running == 0; });
    job = nullptr;
  }
};

Pool* pool = nullptr;  // never destroyed: its threads may outlive static destructors
std::mutex pool_use;   // one parallel loop at a time; a second one runs on its own thread
std::atomic<int> threads_wanted{0};
thread_local bool inside = false;

void after_fork() {
  // The child has only the forking thread; the parent's pool and its locks are abandoned.
  pool = nullptr;
  new (&pool_use) std::mutex;
}

}  // namespace

int num_threads() {
  int n = threads_wanted.load();
  if (n == 0) {
    n = int(std::thread::hardware_concurrency());
    threads_wanted = n = n < 1 ? 1 : n;
  }
  return n;
}

void set_num_threads(int n) { threads_wanted = n; }

bool set_flush_denormal(bool on) {
#if defined(__x86_64__)
  set_denormal_mode(on ? DENORMALS : 0);
  return true;
#else
  return !on;
#endif
}

void parallel_run(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& f) {
  int threads = num_threads();
  if (threads == 1 || inside || !pool_use.try_lock()) return f(0, n);
  if (!pool) {
    pool = new Pool;
    static bool registered = (pthread_atfork(nullptr, nullptr, after_fork), true);
    (void)registered;
  }
  // A few parts per thread, so that a thread that is descheduled does not hold up the rest.
  int64_t parts = std::min<int64_t>((n + grain - 1) / grain, int64_t(threads) * 4);
  int64_t size = (n + parts - 1) / parts;
  if (size >= ALIGNED) size = (size + 15) / 16 * 16;  // ranges start on whole vectors and cache lines
  parts = (n + size - 1) / size;
  std::exception_ptr
      error;  // of the first part that failed, for want of memory say; raised when all have ended
  std::mutex error_use;
  inside = true;
  pool->run(threads, parts, [&](int64_t part) {
    bool was_inside = inside;
    inside = true;
    try {
      f(part * size, std::min(n, (part + 1) * size));
    } catch (...) {
      std::lock_guard lock(error_use);
      if (!error) error = std::current_exception();
    }
    inside = was_inside;
  });
  inside = false;
  pool_use.unlock();
  if (error) std::rethrow_exception(error);
}

}  // namespace rl
