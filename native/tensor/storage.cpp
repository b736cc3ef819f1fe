#include "storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include "chains.h"
#include "free_lists.h"
#include "hold.h"
#include "twins.h"

namespace rl {
namespace {

constexpr size_t ALIGNMENT = 64;
// Blocks of half a megabyte and more are rounded to whole pages and marked for huge pages.
constexpr size_t LARGE = size_t(1) << 19;
// What may wait in the cache before the largest blocks go back to the system.
constexpr size_t CACHE_LIMIT = size_t(2) << 30;

MemoryStats stats{};

// Four size classes per power of two: at most a fifth of a block is unused.
int size_class(size_t nbytes) {
  size_t units = (nbytes + ALIGNMENT - 1) / ALIGNMENT;
  if (units <= 4) return int(units);
  int log = 63 - std::countl_zero(units - 1);  // 2^log <= units-1 < 2^(log+1)
  return log * 4 + int(((units - 1) >> (log - 2)) & 3) - 3;
}
size_t class_bytes(int c) {
  if (c <= 4) return size_t(c) * ALIGNMENT;
  int log = (c + 3) / 4, quarter = (c + 3) % 4;
  return (size_t(4 + quarter + 1) << (log - 2)) * ALIGNMENT;
}

std::vector<void*> waiting[256];

void* system_allocate(size_t nbytes) {
  stats.system_requests++;
  void* block = nullptr;
  // Exactly as long as was asked for, where the sanitizer is to see what lies behind it.
  if (!REUSES_FREED) return posix_memalign(&block, ALIGNMENT, nbytes) ? nullptr : block;
  block = std::aligned_alloc(nbytes >= LARGE ? 4096 : ALIGNMENT,
                             nbytes >= LARGE ? (nbytes + 4095) / 4096 * 4096 : nbytes);
#ifdef MADV_HUGEPAGE
  if (block && nbytes >= (size_t(1) << 22)) madvise(block, nbytes, MADV_HUGEPAGE);
#endif
  return block;
}

void trim(size_t limit) {
  for (int c = 255; c >= 0 && stats.cached > limit; c--) {
    while (!waiting[c].empty() && stats.cached > limit) {
      std::free(waiting[c].back());
      waiting[c].pop_back();
      stats.cached -= class_bytes(c);
    }
  }
}

size_t requested = 0;  // of stats.in_use, without what size classes add

void* allocate_block(size_t nbytes) {
  if (nbytes > (size_t(1) << 47)) return nullptr;
  int c = size_class(nbytes);
  size_t size = REUSES_FREED ? class_bytes(c) : nbytes;
  void* block;
  if (!waiting[c].empty()) {
    block = waiting[c].back();
    waiting[c].pop_back();
    stats.cached -= size;
  } else {
    block = system_allocate(size);
    if (!block) {
      empty_cache();
      block = system_allocate(size);
      if (!block) return nullptr;
    }
  }
  stats.requests++;
  requested += nbytes;
  stats.in_use += size;
  if (stats.in_use > stats.peak) stats.peak = stats.in_use;
  return block;
}

void free_block(void* block, size_t nbytes) {
  int c = size_class(nbytes);
  size_t size = REUSES_FREED ? class_bytes(c) : nbytes;
  requested -= nbytes;
  stats.in_use -= size;
  if (!REUSES_FREED) return std::free(block);
  stats.cached += size;
  waiting[c].push_back(block);
  if (stats.cached > CACHE_LIMIT) trim(CACHE_LIMIT / 2);
}

std::vector<Storage*> free_records;

Storage* new_record() {
  Storage* s;
  if (!free_records.empty()) {
    s = free_records.back();
    free_records.pop_back();
  } else {
    constexpr int COUNT = REUSES_FREED ? 64 : 1;
    // Records come 64 at a time: malloc's own header would make each a quarter larger.
    auto* slab = static_cast<Storage*>(std::aligned_alloc(64, COUNT * sizeof(Storage)));
    if (!slab) throw std::bad_alloc();
    free_records.reserve(free_records.size() + COUNT);
    for (int i = COUNT - 1; i > 0; i--) free_records.push_back(slab + i);
    s = slab;
  }
  std::memset(static_cast<void*>(s), 0, sizeof(Storage));
  s->refs = 1;
  s->device = Device{};
  return s;
}

void free_record(Storage* s) {
  if (REUSES_FREED) free_records.push_back(s);
  else std::free(s);
}

[[noreturn]] void out_of_memory(size_t nbytes) {
  failf(PyExc_RuntimeError,
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate %zu bytes. "
        "Error code 12 (Cannot allocate memory)",
        nbytes);
}

}  // namespace

// Kinds beyond those of the enumeration have a name and nothing else: a program may ask whether it runs on
// one, and new_strided refuses to make a tensor there. nullptr past the last.
const char* device_type_name(DeviceType type) {
  constexpr const char* names[] = {"cpu",    "meta",   "cuda", "ipu", "xpu",  "mkldnn",       "opengl",
                                   "opencl", "ideep",  "hip",  "ve",  "fpga", "maia",         "xla",
                                   "lazy",   "vulkan", "mps",  "hpu", "mtia", "privateuseone"};
  return size_t(type) < std::size(names) ? names[int(type)] : nullptr;
}
std::string device_name(Device device) {
  std::string name = device_type_name(device.type);
  return device.index < 0 ? name : name + ":" + std::to_string(device.index);
}

Storage* new_storage(size_t nbytes, Device device) {
  Storage* s = new_record();
  s->nbytes = nbytes;
  s->device = {device.type, -1};  // there is one of each: a number that was asked for is dropped, as in torch
  if (device.type == DeviceType::meta) return s;
  if (nbytes <= sizeof s->bytes) {
    s->data = s->bytes;
    return s;
  }
  s->data = allocate_block(nbytes);
  if (!s->data) {
    free_record(s);
    out_of_memory(nbytes);
  }
  s->kind = Storage::pooled;
  return s;
}

Storage* new_external_storage(void* data, size_t nbytes, void* owner, void (*release)(void*)) {
  Storage* s = new_record();
  s->data = data;
  s->nbytes = nbytes;
  s->kind = Storage::external;
  s->device = {};
  s->foreign = {release, owner};
  return s;
}

void (*watched_storage_freed)(const Storage*) = nullptr;

void free_storage(Storage* s) {
  if (s->marks & Storage::WATCHED) watched_storage_freed(s);
  if (any_twins) forget_twins(s);
  drop(s->written);
  if (s->kind == Storage::pooled) free_block(s->data, s->nbytes);
  else if (s->kind == Storage::external) let_go(s->foreign.release, s->foreign.owner);
  free_record(s);
}

void let_go(void (*release)(void*), void* owner) {
  constexpr int DEPTH = 50;
  static thread_local int depth = 0;
  static thread_local std::vector<std::pair<void (*)(void*), void*>> waiting;
  if (depth == DEPTH) {
    waiting.emplace_back(release, owner);
    return;
  }
  depth++;
  release(owner);
  while (depth == 1 && !waiting.empty()) {
    auto [next, held] = waiting.back();
    waiting.pop_back();
    next(held);
  }
  depth--;
}

void grow_storage(Storage* s, size_t nbytes) {
  if (nbytes > s->nbytes) resize_storage(s, nbytes);
}

// ---- memory that stays, shrinks or moves (hold.h)

namespace {

struct Block {
  void* data;
  size_t nbytes;
  int holders = 0;  // who wants it to stay
};
void release_held(void* owner) {
  auto* block = static_cast<Block*>(owner);
  free_block(block->data, block->nbytes);
  delete block;
}
void release_shrunk(void* owner) { release_held(owner); }

struct Moved {
  void *owner, *previous;
  void (*release)(void*);
  void (*release_previous)(void*);
};
void release_moved(void* owner) {
  auto* moved = static_cast<Moved*>(owner);
  moved->release(moved->owner);
  moved->release_previous(moved->previous);
  delete moved;
}

bool has_release(const Storage* s, void (*release)(void*)) {
  return s->kind == Storage::external && s->foreign.release == release;
}

void give_back_pages(const Block& block, size_t used) {
  auto start = (reinterpret_cast<uintptr_t>(block.data) + used + 4095) / 4096 * 4096;
  auto end = (reinterpret_cast<uintptr_t>(block.data) + block.nbytes) / 4096 * 4096;
  if (start + LARGE <= end) madvise(reinterpret_cast<void*>(start), end - start, MADV_DONTNEED);
}

}  // namespace

bool is_resizable(const Storage* s) {
  return s->kind != Storage::external || s->foreign.release == release_shrunk;
}

bool lend_storage(Storage* s) {
  if (!s->data) return false;
  if (s->kind == Storage::external) {
    if (!has_release(s, release_shrunk) && !has_release(s, release_held)) return false;
    s->foreign.release = release_held;
    static_cast<Block*>(s->foreign.owner)->holders++;
    return true;
  }
  auto block = std::make_unique<Block>(Block{s->data, s->nbytes, 1});
  if (s->kind == Storage::small) {  // the record's own bytes are where the owner is noted
    *block = {allocate_block(sizeof s->bytes), sizeof s->bytes, 1};
    if (!block->data) out_of_memory(sizeof s->bytes);
    std::memcpy(block->data, s->bytes, sizeof s->bytes);
    s->data = block->data;
  }
  s->kind = Storage::external;
  s->foreign = {release_held, block.release()};
  return true;
}

void end_loan(Storage* s) {
  if (!has_release(s, release_held)) return;  // it moved meanwhile, and keeps what was lent
  if (--static_cast<Block*>(s->foreign.owner)->holders == 0) s->foreign.release = release_shrunk;
}

void hold_storage(Storage* s) { lend_storage(s); }

size_t storage_room(const Storage* s) {
  if (s->device.type == DeviceType::meta) return s->nbytes;
  if (s->kind == Storage::small) return sizeof s->bytes;
  if (has_release(s, release_shrunk) || has_release(s, release_held))
    return std::max(s->nbytes, static_cast<Block*>(s->foreign.owner)->nbytes);
  return s->nbytes;
}

void resize_storage(Storage* s, size_t nbytes) {
  if (nbytes == s->nbytes) return;
  if (!is_resizable(s)) fail(PyExc_RuntimeError, "Trying to resize storage that is not resizable");
  if (s->device.type == DeviceType::meta) {
    s->nbytes = nbytes;
    return;
  }
  size_t room = storage_room(s);
  if (nbytes > room) {
    void* block = allocate_block(nbytes);
    if (!block) out_of_memory(nbytes);
    std::memcpy(block, s->data, s->nbytes);
    if (s->kind == Storage::pooled) free_block(s->data, s->nbytes);
    else if (s->kind == Storage::external) release_shrunk(s->foreign.owner);
    s->data = block;
    s->kind = Storage::pooled;
  } else if (s->kind == Storage::pooled) {
    s->foreign = {release_shrunk, new Block{s->data, s->nbytes}};
    s->kind = Storage::external;
  }
  if (s->kind == Storage::external && nbytes < s->nbytes)
    give_back_pages(*static_cast<Block*>(s->foreign.owner), nbytes);
  s->nbytes = nbytes;
}

void move_storage(Storage* s, void* data, void* owner, void (*release)(void*)) {
  std::memcpy(data, s->data, s->nbytes);
  if (s->kind == Storage::pooled) {
    free_block(s->data, s->nbytes);
  } else if (s->kind == Storage::external && !is_resizable(s)) {  // somebody else may still look there
    owner = new Moved{owner, s->foreign.owner, release, s->foreign.release};
    release = release_moved;
  } else if (s->kind == Storage::external) {
    release_shrunk(s->foreign.owner);
  }
  s->kind = Storage::external;
  s->data = data;
  s->foreign = {release, owner};
}

void* storage_owner(const Storage* s, void (*release)(void*)) {
  if (has_release(s, release)) return s->foreign.owner;
  if (!has_release(s, release_moved)) return nullptr;
  auto* moved = static_cast<Moved*>(s->foreign.owner);
  return moved->release == release ? moved->owner : nullptr;
}

const MemoryStats& memory_stats() { return stats; }
size_t requested_memory() { return requested; }
void reset_peak_memory() { stats.peak = stats.in_use; }
void empty_cache() { trim(0); }

}  // namespace rl
