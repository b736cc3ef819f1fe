// The memory of a storage from Python: its size, whether it may move, and shared memory in its place.
//
// Shared memory is a Python object with a writable buffer (rushlight/multiprocessing/_memory.py). A storage
// that is moved there or made on it owns the object; `storages` finds the one storage of such an object, so
// that a tensor which comes back to the process that sent it lies on the storage it left from.
#include <memory>
#include <unordered_map>

#include "../tensor/hold.h"
#include "../tensor/unlocked.h"
#include "primitive.h"

namespace rl {
namespace {

struct SharedMemory {
  Py_buffer view;
};

std::unordered_map<PyObject*, Storage*>& storages() {
  static auto* map = new std::unordered_map<PyObject*, Storage*>;  // never destroyed: storages outlive main
  return *map;
}

void release_shared(void* owner) {
  auto* memory = static_cast<SharedMemory*>(owner);
  storages().erase(memory->view.obj);
  PyBuffer_Release(&memory->view);
  delete memory;
}

Tensor* tensor_argument(PyObject* o, const char* function) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "%s: expected a Tensor, got %s", function, Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

std::unique_ptr<SharedMemory> open_memory(PyObject* o) {
  if (storages().count(o)) fail(PyExc_RuntimeError, "this shared memory already has a storage");
  auto memory = std::make_unique<SharedMemory>();
  if (PyObject_GetBuffer(o, &memory->view, PyBUF_SIMPLE | PyBUF_WRITABLE) < 0) throw PythonError{};
  if (memory->view.obj != o) {
    PyBuffer_Release(&memory->view);
    fail(PyExc_TypeError, "shared memory must export its own buffer");
  }
  return memory;
}

// share_storage(tensor, memory): the storage moves into the memory, which must be large enough.
PyObject* py_share_storage(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "share_storage(tensor, memory) expected");
    wait_for_kernels();
    Storage* s = tensor_argument(args[0], "share_storage")->storage;
    if (s->device.type != DeviceType::cpu)
      fail(PyExc_RuntimeError, "share_storage: only memory of the CPU can be shared");
    auto memory = open_memory(args[1]);
    if (size_t(memory->view.len) < storage_room(s)) {
      PyBuffer_Release(&memory->view);
      fail(PyExc_RuntimeError, "share_storage: the memory is too small");
    }
    storages()[args[1]] = s;
    void* data = memory->view.buf;
    move_storage(s, data, memory.release(), release_shared);
    Py_RETURN_NONE;
  });
}

// on_shared_memory(memory, size): the bytes there as a tensor, on the storage that the memory has or on a new
// one of that size. The memory may be larger: it has room for what the storage held before it was shared.
PyObject* py_on_shared_memory(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "on_shared_memory(memory, size) expected");
    PyObject* o = args[0];
    size_t size = PyLong_AsSize_t(args[1]);
    if (size == size_t(-1) && PyErr_Occurred()) throw PythonError{};
    auto found = storages().find(o);
    if (found != storages().end()) {
      incref(found->second);
      return bytes_on(found->second).release_object();
    }
    auto memory = open_memory(o);
    void* data = memory->view.buf;
    if (size > size_t(memory->view.len)) {
      PyBuffer_Release(&memory->view);
      fail(PyExc_RuntimeError, "the shared memory is smaller than the storage that was sent");
    }
    Storage* s = new_external_storage(data, size, memory.release(), release_shared);
    s->written = keep(current_source());
    storages()[o] = s;
    return bytes_on(s).release_object();
  });
}

// shared_memory_of(tensor): the object whose memory its storage is on, or None.
PyObject* py_shared_memory_of(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Storage* s = tensor_argument(o, "shared_memory_of")->storage;
    auto* memory = static_cast<SharedMemory*>(storage_owner(s, release_shared));
    return Py_NewRef(memory ? memory->view.obj : Py_None);
  });
}

PyObject* py_storage_room(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    return PyLong_FromSize_t(storage_room(tensor_argument(o, "storage_room")->storage));
  });
}

PyObject* py_hold_storage(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Tensor* t = tensor_argument(o, "hold_storage");
    if (t->storage->kind == Storage::small) wait_for_kernels();  // its bytes move
    hold_storage(t->storage);
    Py_RETURN_NONE;
  });
}

PyObject* py_is_resizable(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    return PyBool_FromLong(is_resizable(tensor_argument(o, "is_resizable")->storage));
  });
}

// resize_storage(tensor, nbytes): more or less memory for the storage; the bytes that fit are kept.
PyObject* py_resize_storage(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "resize_storage(tensor, nbytes) expected");
    Tensor* t = tensor_argument(args[0], "resize_storage");
    size_t nbytes = PyLong_AsSize_t(args[1]);
    if (nbytes == size_t(-1) && PyErr_Occurred()) throw PythonError{};
    wait_for_kernels();
    resize_storage(t->storage, nbytes);
    Py_RETURN_NONE;
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {{"share_storage", FAST(py_share_storage), nullptr},
                           {"on_shared_memory", FAST(py_on_shared_memory), nullptr},
                           {"shared_memory_of", py_shared_memory_of, METH_O, nullptr},
                           {"storage_room", py_storage_room, METH_O, nullptr},
                           {"hold_storage", py_hold_storage, METH_O, nullptr},
                           {"is_resizable", py_is_resizable, METH_O, nullptr},
                           {"resize_storage", FAST(py_resize_storage), nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
