// A tensor's storage as a thing of its own: the bytes behind a tensor, and tensors laid out on given bytes.
//
// `storage_bytes` shows a whole storage as a one-dimensional uint8 tensor, which is all that UntypedStorage
// (rushlight/storage.py) holds. `on_storage` and `set_storage` go the other way: any dtype and geometry on
// that memory, checked against its size, as a new tensor (a checkpoint being read) or in place
// (`Tensor.set_`).
#include <algorithm>
#include <unordered_map>

#include "../graph/modes.h"
#include "../graph/node.h"
#include "../tensor/reach.h"
#include "../tensor/unlocked.h"
#include "lazy_views.h"
#include "levels.h"
#include "primitive.h"

namespace rl {
namespace {

Tensor* tensor_argument(PyObject* o, const char* function) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "%s: expected a Tensor, got %s", function, Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

PyObject* py_storage_bytes(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(o, "storage_bytes");
    int64_t size = int64_t(t->storage->nbytes), stride = 1;
    TensorRef bytes = raw_alias(t);
    bytes->dtype = DType::u8;
    bytes->offset = 0;
    set_geometry(bytes.get(), Sizes(&size, 1), Sizes(&stride, 1));
    return bytes.release_object();
  });
}

// What `on_storage` and `set_storage` are told: a dtype, an offset in elements, sizes and strides.
struct Layout {
  DType dtype;
  int64_t offset;
  Shape sizes, strides;

  // May run code of the user's, which may change any tensor: what it is to lie on is checked after that.
  explicit Layout(PyObject* const* args) {
    dtype = dtype_from(args[0]);
    if (is_rare(dtype)) rare_dtypes_seen = true;
    offset = PyLong_AsLongLong(args[1]);
    if (offset == -1 && PyErr_Occurred()) throw PythonError{};
    read_sizes(args[2], sizes, "set_", "size");
    read_sizes(args[3], strides, "set_", "stride");
  }

  void check(const Storage* storage) const {
    if (offset < 0) failf(PyExc_RuntimeError, "Tensor: invalid storage offset %lld", (long long)offset);
    if (sizes.ndim != strides.ndim) {
      failf(PyExc_RuntimeError, "mismatch in length of strides and shape: %d sizes and %d strides",
            sizes.ndim, strides.ndim);
    }
    for (int64_t size : Sizes(sizes)) {
      if (size < 0) fail(PyExc_RuntimeError, "numel: integer multiplication overflow");
    }
    int64_t count = view_numel(sizes), bytes = bytes_reached(sizes, strides, offset, dtype_size(dtype));
    for (int64_t stride : Sizes(strides)) {
      if (stride < 0) {
        fail(PyExc_RuntimeError,
             "as_strided: Negative strides are not supported at the moment, got strides: " +
                 sizes_text(strides));
      }
    }
    if (uint64_t(bytes) > storage->nbytes) {
      fail(PyExc_RuntimeError, "setStorage: sizes " + sizes_text(sizes) + ", strides " + sizes_text(strides) +
                                   ", storage offset " + std::to_string(offset) + ", and itemsize " +
                                   std::to_string(dtype_size(dtype)) + " requiring a storage size of " +
                                   std::to_string(bytes) + " are out of bounds for storage of size " +
                                   std::to_string(storage->nbytes));
    }
    if (reinterpret_cast<uintptr_t>(storage->data) % size_t(alignment()) && count) {
      fail(PyExc_RuntimeError, "the storage is not aligned for elements of this dtype");
    }
  }

  int alignment() const { return is_complex(dtype) ? dtype_size(dtype) / 2 : dtype_size(dtype); }

  void apply(Tensor* t) const {
    t->dtype = dtype;
    t->offset = offset;
    set_geometry(t, sizes, strides);
  }
};

// on_storage(tensor, dtype, offset, size, stride): a new tensor on the memory of `tensor`.
PyObject* py_on_storage(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 5) fail(PyExc_TypeError, "on_storage(tensor, dtype, offset, size, stride) expected");
    Tensor* t = tensor_argument(args[0], "on_storage");
    Layout layout(args + 1);
    layout.check(t->storage);
    TensorRef result = raw_alias(t);
    layout.apply(result.get());
    if (uint16_t bit = loose_bit(result.get())) set_lazy(result.get(), bit);
    return result.release_object();
  });
}

// set_storage(tensor, source, dtype, offset, size, stride): `tensor` itself moves to the memory of `source`.
PyObject* py_set_storage(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 6) fail(PyExc_TypeError, "set_storage(tensor, source, dtype, offset, size, stride) expected");
    Tensor *t = tensor_argument(args[0], "set_"), *source = tensor_argument(args[1], "set_");
    refuse_memory(t, "set_");
    refuse_memory(source, "set_");
    if (t->flags & Tensor::INFERENCE) check_inplace(t);
    Layout layout(args + 2);
    wait_for_kernels();
    layout.check(source->storage);
    bool records = t->requires_grad() || source->requires_grad() ||
                   (t->base() && t->extra->differentiable_view && t->base()->requires_grad());
    if (t->flags & Tensor::ZERO) fail_zero_write(false);
    if (records && recording()) check_inplace(t);
    if (t->device() != source->device()) {
      fail(PyExc_RuntimeError, "Attempted to set the storage of a tensor on device \"" +
                                   device_name(t->device()) + "\" to a storage on different device \"" +
                                   device_name(source->device()) +
                                   "\".  This is no longer allowed; the "
                                   "devices must match.");
    }
    if (t->extra) forget_accumulator(t->extra);  // what was computed from the old memory is not t's any more
    change_storage(t, source->storage, 0);
    layout.apply(t);
    note_write(t);
    if (t->flags & Tensor::INFERENCE && t->extra) drop_counter(t->extra);  // it counts none
    uint16_t kept = is_complex(t->dtype) ? Tensor::CONJ | Tensor::NEG : Tensor::NEG;
    set_lazy(t, uint16_t((t->flags & kept) | loose_bit(t)));
    tell_savers(t);
    return Py_NewRef(args[0]);
  });
}

// Note [lazy clones] torch's `_lazy_clone` lets two tensors share memory until one of them is written, and
// `_is_cow_tensor` tells whether they still do. Here the memory is copied at once; what is remembered is that
// nothing has been written since. Entries of freed storages stay until their address is used again: a new
// storage does not have the flag.
std::unordered_map<const Storage*, uint64_t> cloned_at;

uint64_t writes_to(const Storage* s) { return uint64_t(s->version) << 32 | s->silent_version; }

PyObject* py_mark_lazily_cloned(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Storage* storage = tensor_argument(o, "_lazy_clone")->storage;
    cloned_at[storage] = writes_to(storage);
    storage->marks |= Storage::LAZILY_CLONED;
    Py_RETURN_NONE;
  });
}

PyObject* py_is_cow_tensor(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const Storage* storage = tensor_argument(o, "_is_cow_tensor")->storage;
    return PyBool_FromLong(storage->marks & Storage::LAZILY_CLONED &&
                           cloned_at.at(storage) == writes_to(storage));
  });
}

// Note [weak references to memory] Who wants to know whether memory is still there, without keeping it, is
// given a number that no other memory will have, unlike its address. The tables are never destroyed: memory
// may be freed while the process ends.
auto& numbers = *new std::unordered_map<const Storage*, uint64_t>;
auto& watched = *new std::unordered_map<uint64_t, Storage*>;

void forget_watched(const Storage* s) {
  auto found = numbers.find(s);
  if (found == numbers.end()) return;
  watched.erase(found->second);
  numbers.erase(found);
}

// watch_storage(tensor): the number of its storage.
PyObject* py_watch_storage(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    static uint64_t last = 0;
    Storage* storage = tensor_argument(o, "watch_storage")->storage;
    if (!(storage->marks & Storage::WATCHED)) {
      watched[++last] = storage;
      numbers[storage] = last;
      storage->marks |= Storage::WATCHED;
    }
    return PyLong_FromUnsignedLongLong(numbers.at(storage));
  });
}

// storage_number(tensor): the number if it has one, else 0.
PyObject* py_storage_number(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Storage* storage = tensor_argument(o, "storage_number")->storage;
    return PyLong_FromUnsignedLongLong(storage->marks & Storage::WATCHED ? numbers.at(storage) : 0);
  });
}

// watched_storage(number): the bytes as a tensor, None if they are gone.
PyObject* py_watched_storage(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    uint64_t wanted = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) throw PythonError{};
    auto found = watched.find(wanted);
    if (found == watched.end()) Py_RETURN_NONE;
    incref(found->second);
    return bytes_on(found->second).release_object();
  });
}

// storage_uses(tensor): how many tensors and saved values are on its storage.
PyObject* py_storage_uses(PyObject*, PyObject* o) {
  return guarded([&] { return PyLong_FromUnsignedLong(tensor_argument(o, "storage_uses")->storage->refs); });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {{"storage_bytes", py_storage_bytes, METH_O, nullptr},
                           {"watch_storage", py_watch_storage, METH_O, nullptr},
                           {"storage_number", py_storage_number, METH_O, nullptr},
                           {"watched_storage", py_watched_storage, METH_O, nullptr},
                           {"storage_uses", py_storage_uses, METH_O, nullptr},
                           {"on_storage", FAST(py_on_storage), nullptr},
                           {"set_storage", FAST(py_set_storage), nullptr},
                           {"mark_lazily_cloned", py_mark_lazily_cloned, METH_O, nullptr},
                           {"_is_cow_tensor", py_is_cow_tensor, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  watched_storage_freed = forget_watched;
  PyModule_AddFunctions(module, functions);
});

}  // namespace
}  // namespace rl
