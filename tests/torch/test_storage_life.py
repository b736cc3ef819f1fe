"""Storages as objects: the same one for the same memory, what is set on it, and weak references to memory."""

import gc
import importlib

from corners import same_in_torch
from outcomes import collector, err


def cases(torch):
    found, case = collector()
    references = importlib.import_module(f"{torch.__name__}.multiprocessing.reductions")
    Weak, Storage = references.StorageWeakRef, torch.UntypedStorage

    @case("attributes stay as long as the memory does")
    def _():
        x = torch.arange(6.0)
        x.untyped_storage().note = "mine"
        gc.collect()
        parts = x[2:], x.view(2, 3), x.detach()
        found = [part.untyped_storage().note for part in parts]
        del x
        found.append(parts[0].untyped_storage().note)
        other = torch.arange(6.0)
        return (
            found,
            hasattr(other.untyped_storage(), "note"),
            hasattr(other.clone().untyped_storage(), "note"),
        )

    @case("and are not found on memory that has its address later")
    def _():
        kept = 0
        for _ in range(20):
            x = torch.ones(1000)
            kept += hasattr(x.untyped_storage(), "note")
            x.untyped_storage().note = 1
            del x
        return kept

    @case("a class of one's own")
    def _():
        class Own(Storage):
            pass

        memory = Own(8)
        memory.note = 2
        x = torch.tensor([]).set_(memory)
        del memory
        gc.collect()
        return type(x.untyped_storage()).__name__, x.untyped_storage().note, x.shape

    @case("a weak reference to memory that nobody holds as a storage")
    def _():
        x = torch.ones(3)
        reference = Weak(x.untyped_storage())
        alike = Weak(x[1:].untyped_storage())
        before = reference.expired(), reference == alike, hash(reference) == hash(alike)
        others = (
            reference == Weak(torch.ones(3).untyped_storage()),
            Weak(torch.ones(3).untyped_storage()).expired(),
        )
        y = x.view(3, 1)
        del x
        middle = reference.expired()
        del y
        return before, others, middle, reference.expired(), alike.expired(), {reference: 1}[alike]

    @case("by its number")
    def _():
        memory = torch.ones(3).untyped_storage()
        number = memory._weak_ref()
        again = Storage._new_with_weak_ptr(number)
        found = (
            again is memory,
            Storage._expired(number),
            Weak.from_weakref(memory._weak_ref()) == Weak(memory),
        )
        del memory, again
        found += (Storage._expired(number), Storage._new_with_weak_ptr(number))
        Storage._free_weak_ref(number)
        return found

    @case("one object, whatever becomes of the memory")
    def _():
        x = torch.ones(3)
        memory = x.untyped_storage()
        memory.resize_(24)
        grown = (
            memory.nbytes(),
            x.untyped_storage() is memory,
            x.set_(memory, 0, (6,)).untyped_storage() is memory,
        )
        x.data = torch.zeros(2)
        return grown, x.untyped_storage() is memory, memory.nbytes(), err(memory.resize_, -1)[:12]

    return found


test_as_in_torch = same_in_torch(cases)
