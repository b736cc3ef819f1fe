// Storages whose writes are counted together although their memory differs.
//
// `x.data = y` gives x other memory, but x goes on counting its writes with the views it had before (torch
// keeps the counter on the tensor, Rushlight with the memory). The old storage, if somebody still sees it,
// and the new one then are twins: a write to one counts for both, until one of them is freed.
#pragma once
#include "storage.h"

namespace rl {

extern bool any_twins;
void make_twins(Storage* a, Storage* b);
void count_for_twins(Storage* s);  // s has been written
void forget_twins(Storage* s);     // s is about to be freed

// The alias counts its writes where t does: Note [own counters], tensor.h.
struct Tensor;
void share_counter(const Tensor* t, Tensor* alias);

// An inference tensor counts no writes, but for what detach() and .data make of it outside inference mode.
bool counts_writes(const Tensor* t);

}  // namespace rl
