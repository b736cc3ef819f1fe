// Storages whose memory is told to stay, to change its size, or to move to memory that others see.
//
// A held storage never moves again, because another library looks at it: growing it is refused; one that is
// lent not before that ends. A storage
// that shrinks keeps its block, for tensors may still reach into it: they must find memory there, whatever it
// holds. Whole pages that nobody should read go back to the system. `move_storage` takes all tensors of a
// storage along to given memory (shared memory).
#pragma once
#include "storage.h"

namespace rl {

bool is_resizable(const Storage* storage);
void hold_storage(Storage* storage);
// Holds it for a while: false if it was not resizable anyway, and there is nothing to end.
bool lend_storage(Storage* storage);
void end_loan(Storage* storage);
void resize_storage(Storage* storage, size_t nbytes);
// The bytes that tensors may reach into, whatever the storage says about its size.
size_t storage_room(const Storage* storage);
// The bytes there are go to `data`, which has `storage_room` bytes and which `release(owner)` gives back.
void move_storage(Storage* storage, void* data, void* owner, void (*release)(void*));
// The owner of the storage's memory if it is given back by this function, else null.
void* storage_owner(const Storage* storage, void (*release)(void*));

}  // namespace rl
