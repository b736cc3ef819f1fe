#include "unlocked.h"

#include <pthread.h>

#include <chrono>
#include <thread>

namespace rl {

std::atomic<int> kernels_running = 0, changes_waiting = 0;

void wait_while_kernels_run() {
  changes_waiting++;
  while (kernels_running) {
    PyThreadState* state = PyEval_SaveThread();
    while (kernels_running) std::this_thread::sleep_for(std::chrono::microseconds(20));
    PyEval_RestoreThread(state);
  }
  changes_waiting--;
}

namespace {

// Of all threads only the one that forked goes on, and that one is in no kernel.
void after_fork() { kernels_running = changes_waiting = 0; }
bool registered = (pthread_atfork(nullptr, nullptr, after_fork), true);

}  // namespace

}  // namespace rl
