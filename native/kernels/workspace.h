// Dividing the images of a batch over threads, and the memory each of them needs meanwhile.
#pragma once
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

#include "../tensor/parallel.h"

namespace rl {

constexpr double THREADED = 200000;  // multiply-adds (or elements) below which one thread is enough

// Memory for each thread that works at the same time, allocated before any of them starts.
class Workspaces {
 public:
  Workspaces(int count, int64_t bytes)
      : size(size_t(bytes + 63) / 64 * 64), count(count), taken(new std::atomic<bool>[size_t(count)]) {
    size_t all;
    bool countable = bytes >= 0 && !__builtin_mul_overflow(size, size_t(count), &all);
    data = size && countable ? static_cast<char*>(std::aligned_alloc(64, all)) : nullptr;
    if (size && !data) throw std::bad_alloc();
    for (int i = 0; i < count; i++) taken[size_t(i)] = false;
  }
  ~Workspaces() { std::free(data); }
  Workspaces(const Workspaces&) = delete;

  // One of them, free again when the Lease goes. There are as many as threads, so one is free soon.
  struct Lease {
    Workspaces& of;
    int number = 0;
    explicit Lease(Workspaces& w) : of(w) {
      while (of.taken[size_t(number)].exchange(true)) number = (number + 1) % of.count;
    }
    ~Lease() { of.taken[size_t(number)] = false; }
    template <class T>
    T* as() const {
      return reinterpret_cast<T*>(of.data + size_t(number) * of.size);
    }
  };

 private:
  char* data;
  size_t size;
  int count;
  std::unique_ptr<std::atomic<bool>[]> taken;
};

// Runs f(begin, end) over [0, n) on several threads if there is work for them.
template <class F>
void divide(double work, int64_t n, const F& f) {
  if (n <= 0) return;
  if (work < THREADED || n == 1) return f(int64_t(0), n);
  // parallel_for cuts at multiples of 16.
  parallel_for(n * 16, 16, [&](int64_t begin, int64_t end) { f(begin / 16, end / 16); });
}

}  // namespace rl
