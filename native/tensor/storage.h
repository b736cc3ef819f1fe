// The bytes behind tensors: a Storage record, reference counted under the GIL, and the allocator that feeds
// it.
//
// A Storage of at most 16 bytes keeps them in the record itself; larger ones get a 64-byte aligned block from
// the caching allocator (freed blocks wait in their size class for the next request of that size, large ones
// too, so a training loop stops asking the system after its first step); external ones belong to another
// object (a NumPy array, a DLPack capsule) that is released with the record. The version counter is here, not
// on the tensor, so that all views of one memory share it by construction.
#pragma once
#include <cstddef>
#include <cstdint>

#include "source.h"

namespace rl {

enum class DeviceType : uint8_t { cpu, meta, cuda };
struct Device {
  DeviceType type = DeviceType::cpu;
  int8_t index = -1;  // -1: none given
  bool operator==(const Device& other) const { return type == other.type && index == other.index; }
};
const char* device_type_name(DeviceType type);
std::string device_name(Device device);

struct Storage {
  enum Kind : uint8_t { small, pooled, external };
  enum Mark : uint8_t {
    LAZILY_CLONED = 1,  // by `_lazy_clone`; the versions at that time are in python/storage_ops.cpp
    WATCHED = 2,        // `watched_storage_freed` is told when it is freed
  };

  uint32_t refs;
  uint32_t version;  // writes that autograd must know of
  void* data;        // null on the meta device
  size_t nbytes;
  Source written;           // the line that wrote last, or that made the data
  uint32_t silent_version;  // writes through .data, which torch does not count
  Kind kind;
  Device device;
  uint8_t marks;
  union alignas(16) {
    char bytes[16];
    struct {
      void (*release)(void*);
      void* owner;
    } foreign;
  };
};
static_assert(sizeof(Storage) == 64);

Storage* new_storage(size_t nbytes, Device device);
Storage* new_external_storage(void* data, size_t nbytes, void* owner, void (*release)(void*));
void free_storage(Storage* storage);
extern void (*watched_storage_freed)(const Storage*);  // python/storage_ops.cpp
// Replaces the storage's block by one of at least `nbytes`, keeping the bytes there are. Only for kind
// small/pooled.
void grow_storage(Storage* storage, size_t nbytes);

inline void incref(Storage* s) { s->refs++; }
inline void decref(Storage* s) {
  if (--s->refs == 0) free_storage(s);
}

struct MemoryStats {
  size_t in_use, cached, peak, requests, system_requests;
};
const MemoryStats& memory_stats();
void reset_peak_memory();
void empty_cache();

}  // namespace rl
