// Sharing memory with other libraries: the buffer protocol (NumPy and anything else that exports one) and
// DLPack.
//
// `from_buffer` makes a tensor on memory that stays somebody else's: the storage holds the Py_buffer and
// releases it with the last tensor. `Buffer` is the other direction: an object that exports a tensor's
// memory, keeping its storage alive, from which NumPy builds its array. DLPack capsules carry the same both
// ways.
#include <cstddef>
#include <string_view>

#include "../graph/modes.h"
#include "../tensor/hold.h"
#include "../tensor/iterate.h"
#include "../tensor/reach.h"
#include "collector.h"
#include "direct_calls.h"
#include "factories.h"
#include "primitive.h"
#include "tensor_type.h"

namespace rl {
namespace {

// ---- buffers coming in

int dtype_of_format(const char* format, Py_ssize_t itemsize) {
  if (!format) return int(DType::u8);
  if (*format == '<' || *format == '=' || *format == '@' || (*format == '|')) format++;
  std::string_view f = format;
  if (f == "?") return int(DType::b1);
  if (f == "e") return int(DType::f16);
  if (f == "f") return int(DType::f32);
  if (f == "d") return int(DType::f64);
  if (f == "Zf") return int(DType::c64);
  if (f == "Zd") return int(DType::c128);
  if (f == "B" || f == "c") return int(DType::u8);
  if (f == "b") return int(DType::i8);
  if (f.size() == 1 && std::strchr("HILQN", f[0])) {
    switch (itemsize) {
      case 2: return int(DType::u16);
      case 4: return int(DType::u32);
      case 8: return int(DType::u64);
    }
  }
  if (f.size() == 1 && std::strchr("hilqn", f[0])) {
    switch (itemsize) {
      case 2: return int(DType::i16);
      case 4: return int(DType::i32);
      case 8: return int(DType::i64);
    }
  }
  return -1;
}

// What a tensor of this geometry needs, which somebody else says there is.
size_t bytes_of(Sizes sizes, Sizes strides, DType dtype) {
  if (numel_of(sizes) == 0) return 0;
  int64_t last = farthest(sizes, strides);
  if (last < 0 || last >= INT64_MAX / dtype_size(dtype)) {
    fail(PyExc_ValueError, "the array reaches farther than memory can: sizes " + sizes_text(sizes) +
                               ", strides " + sizes_text(strides));
  }
  return size_t(last + 1) * size_t(dtype_size(dtype));
}

void release_buffer(void* owner) {
  auto* view = static_cast<Py_buffer*>(owner);
  PyBuffer_Release(view);
  delete view;
}

// A tensor on memory that another library owns.
TensorRef tensor_on(Storage* storage, DType dtype, const Shape& sizes, const Shape& strides) {
  TensorRef t(allocate_tensor());
  t->dtype = dtype;
  if (is_rare(dtype)) rare_dtypes_seen = true;
  t->storage = storage;
  set_geometry(t.get(), sizes, strides);
  storage->written = keep(current_source());
  if (uint16_t bit = loose_bit(t.get())) set_lazy(t.get(), bit);
  if (modes.inference) t->flags |= Tensor::INFERENCE;
  return t;
}

struct Borrowed {
  TensorRef tensor;
  bool writable;
};

// A tensor on an object's memory. Throws.
Borrowed borrowed_from(PyObject* o) {
  auto* view = new Py_buffer;
  bool writable = PyObject_GetBuffer(o, view, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) == 0;
  if (!writable) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
      delete view;
      throw PythonError{};
    }
    PyErr_Clear();
    if (PyObject_GetBuffer(o, view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
      delete view;
      throw PythonError{};
    }
  }
  try {
    int dtype = dtype_of_format(view->format, view->itemsize);
    if (dtype < 0 || dtype_size(DType(dtype)) != view->itemsize) {
      failf(PyExc_TypeError,
            "can't convert an array of format '%s'. The only supported types are: float64, float32, float16, "
            "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
            view->format ? view->format : "B");
    }
    Shape sizes, strides;
    if (view->ndim) sizes.assign({view->shape, size_t(view->ndim)});
    strides.resize(size_t(sizes.ndim));
    if (!view->strides) contiguous_strides(sizes, strides.sizes);  // ctypes says so, though it is asked
    for (int d = 0; view->strides && d < sizes.ndim; d++) {
      if (view->strides[d] < 0) {
        fail(PyExc_ValueError,
             "At least one stride in the given numpy array is negative, and tensors with negative strides "
             "are not "
             "currently supported. (You can probably work around this by making a copy of your array  with "
             "array.copy().) ");
      }
      if (view->strides[d] % view->itemsize) {
        fail(PyExc_ValueError,
             "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
             "reallocate "
             "the memory.");
      }
      strides.sizes[d] = view->strides[d] / view->itemsize;
    }
    size_t nbytes = bytes_of(sizes, strides, DType(dtype));
    Storage* storage = new_external_storage(view->buf, nbytes, view, release_buffer);
    if (PyType_HasFeature(Py_TYPE(view->obj), Py_TPFLAGS_HAVE_GC)) expect_loops();
    view = nullptr;  // the storage's now
    return {tensor_on(storage, DType(dtype), sizes, strides), writable};
  } catch (...) {
    if (view) release_buffer(view);
    throw;
  }
}

// from_buffer(object): a tensor on its memory, and whether it may be written to: (tensor, writable)
PyObject* py_from_buffer(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Borrowed made = borrowed_from(o);
    return Py_BuildValue("(NO)", made.tensor.release_object(), made.writable ? Py_True : Py_False);
  });
}

// ---- buffers going out

struct Buffer {
  PyObject_HEAD Tensor* tensor;  // an alias: keeps the storage
  int loans;                     // buffers that are out and keep the storage from moving
  Py_ssize_t shape[MAX_DIMS], strides[MAX_DIMS];
};
PyTypeObject* BufferType = nullptr;

const char* format_of(DType dtype) {
  // NumPy's int64 is C's long where that has 64 bits; "q" would be its longlong, which many a table lacks.
  constexpr const char* wide = sizeof(long) == 8 ? "l" : "q";
  constexpr const char* wide_unsigned = sizeof(long) == 8 ? "L" : "Q";
  constexpr const char* formats[ALL_DTYPE_COUNT] = {"B",  "b",  "h", "i",     wide, "e", "f",          "d",
                                                    "Zf", "Zd", "?", nullptr, "H",  "I", wide_unsigned};
  return formats[int(dtype)];
}

int buffer_get(PyObject* self, Py_buffer* view, int flags) {
  auto* b = reinterpret_cast<Buffer*>(self);
  Tensor* t = b->tensor;
  // Who does not ask for strides reads the bytes one after the other.
  auto asked = [&](int flag) { return (flags & flag) == flag; };
  bool strides = asked(PyBUF_STRIDES);
  bool whole =
      !strides || asked(PyBUF_C_CONTIGUOUS) || asked(PyBUF_F_CONTIGUOUS) || asked(PyBUF_ANY_CONTIGUOUS);
  if (whole && !t->is_contiguous() && !contiguous_flags(t->sizes(), t->strides())) {
    PyErr_SetString(PyExc_BufferError, "the memory of this tensor is not contiguous");
    view->obj = nullptr;
    return -1;
  }
  view->obj = nullptr;
  int lent = guarded([&]() -> int {
    if (t->storage->kind == Storage::small) wait_for_kernels();  // its bytes move
    return lend_storage(t->storage);
  });
  if (lent < 0) return -1;
  b->loans += lent;
  view->obj = Py_NewRef(self);
  view->buf = t->address();
  view->len = t->numel * t->itemsize();
  view->itemsize = t->itemsize();
  view->readonly = 0;
  view->ndim = asked(PyBUF_ND) ? t->ndim : 1;
  view->format = asked(PyBUF_FORMAT) ? const_cast<char*>(format_of(t->dtype)) : nullptr;
  view->shape = asked(PyBUF_ND) ? b->shape : nullptr;
  view->strides = strides ? b->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}
void buffer_release(PyObject* self, Py_buffer*) {
  auto* b = reinterpret_cast<Buffer*>(self);
  if (b->loans == 0) return;
  b->loans--;
  end_loan(b->tensor->storage);
}
void buffer_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(reinterpret_cast<Buffer*>(self)->tensor));
  PyObject_Free(self);
  Py_DECREF(type);
}
PyType_Slot buffer_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(buffer_dealloc)},
                              {Py_bf_getbuffer, reinterpret_cast<void*>(buffer_get)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(buffer_release)},
                              {0, nullptr}};
PyType_Spec buffer_spec = {"rushlight._C.Buffer", sizeof(Buffer), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, buffer_slots};

Ref<PyObject> exported(Tensor* t) {
  TensorRef alias = new_alias(t);
  auto* b = PyObject_New(Buffer, BufferType);
  if (!b) throw PythonError{};
  for (int d = 0; d < t->ndim; d++) {
    b->shape[d] = t->size(d);
    b->strides[d] = t->stride(d) * t->itemsize();
  }
  b->tensor = alias.release();
  b->loans = 0;
  return Ref<PyObject>(reinterpret_cast<PyObject*>(b));
}

// export_buffer(tensor): an object that exports its memory.
PyObject* py_export(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) fail(PyExc_TypeError, "export_buffer(): expected a Tensor");
    Tensor* t = as_tensor(o);
    if (t->is_meta()) fail(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    if (t->flags & Tensor::CONJ) {
      fail(PyExc_RuntimeError,
           "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() "
           "instead.");
    }
    if (t->flags & Tensor::NEG) {
      fail(PyExc_RuntimeError,
           "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() "
           "instead.");
    }
    if (t->flags & Tensor::ZERO) {
      fail(PyExc_RuntimeError,
           " Cannot convert a ZeroTensor to numpy. Set force=True if you need the zero array.");
    }
    if (!format_of(t->dtype)) {
      failf(PyExc_TypeError, "Got unsupported ScalarType %s", dtype_class_name(t->dtype));
    }
    return exported(t).release();
  });
}

// ---- arrays of NumPy

// What numpy.asarray does with a buffer, past its reading of formats, which takes twice as long as all the
// rest: these functions stand in NumPy's table for other libraries, at places that every version keeps.
struct NumPy {
  using FromType = PyObject* (*)(int type);
  using FromDescription = PyObject* (*)(PyTypeObject*, PyObject* description, int ndim,
                                        const Py_ssize_t* sizes, const Py_ssize_t* strides, void* data,
                                        int flags, PyObject* like);
  using SetBase = int (*)(PyObject* array, PyObject* base);
  PyTypeObject* array;
  FromType description;
  FromDescription make;
  SetBase set_base;

  // Null if NumPy has not been imported, or is of a version that nobody knows.
  static const NumPy* loaded() {
    static NumPy known;
    static int state = 0;  // 1: known, -1: given up
    if (state) return state > 0 ? &known : nullptr;
    for (const char* name : {"numpy._core._multiarray_umath", "numpy.core._multiarray_umath"}) {
      Ref<PyObject> key = checked(PyUnicode_FromString(name));
      Ref<PyObject> module(PyImport_GetModule(key.get()));
      if (!module) {
        if (PyErr_Occurred()) throw PythonError{};
        continue;
      }
      state = -1;
      Ref<PyObject> capsule = attribute_or_null(module.get(), "_ARRAY_API");
      if (!capsule || !PyCapsule_CheckExact(capsule.get())) return nullptr;
      auto** table = static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr));
      if (!table) throw PythonError{};
      unsigned version = reinterpret_cast<unsigned (*)()>(table[0])() >> 24;
      if (version != 1 && version != 2) return nullptr;
      known = {static_cast<PyTypeObject*>(table[2]), reinterpret_cast<FromType>(table[45]),
               reinterpret_cast<FromDescription>(table[94]), reinterpret_cast<SetBase>(table[282])};
      state = 1;
      return &known;
    }
    return nullptr;
  }
};

// NumPy's numbers for what it has, by dtype.
int numpy_type(DType dtype) {
  constexpr bool wide = sizeof(long) == 8;
  switch (dtype) {
    case DType::b1: return 0;
    case DType::i8: return 1;
    case DType::u8: return 2;
    case DType::i16: return 3;
    case DType::i32: return 5;
    case DType::i64: return wide ? 7 : 9;
    case DType::f32: return 11;
    case DType::f64: return 12;
    case DType::c64: return 14;
    case DType::c128: return 15;
    case DType::f16: return 23;
    default: return -1;
  }
}

}  // namespace

TensorRef on_plain_array(PyObject* o, bool writable) {
  if (PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_LONG_SUBCLASS)) return {};
  const NumPy* numpy = NumPy::loaded();
  if (!numpy || !Py_IS_TYPE(o, numpy->array)) return {};
  try {
    Borrowed made = borrowed_from(o);
    // Of nothing a buffer shows other strides than the array has.
    return made.tensor->numel && (made.writable || !writable) ? made.tensor : TensorRef();
  } catch (...) {  // the longer way says what is wrong
    set_python_error();
    forget_error(PyExc_Exception);
    return {};
  }
}

namespace {

// x.numpy()
PyObject* numpy_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 1 || (kwnames && PyTuple_GET_SIZE(kwnames)) || !is_plain_tensor(args[0])) return nullptr;
  Tensor* t = as_tensor(args[0]);
  bool plain = t->device() == Device{} && !t->is_lazy();
  if (!plain || (modes.grad && shows_requires_grad(t))) return nullptr;
  const NumPy* numpy = NumPy::loaded();
  int type = numpy_type(t->dtype);
  if (!numpy || type < 0) return nullptr;
  if (t->storage->kind == Storage::small) wait_for_kernels();  // its bytes move
  hold_storage(t->storage);
  Ref<PyObject> buffer = exported(t);
  Ref<PyObject> lent = checked(PyMemoryView_FromObject(buffer.get()));
  const Py_buffer* view = PyMemoryView_GET_BUFFER(lent.get());
  Ref<PyObject> description = checked(numpy->description(type));
  constexpr int WRITEABLE = 0x400;
  Ref<PyObject> array = checked(numpy->make(numpy->array, description.release(), view->ndim, view->shape,
                                            view->strides, view->buf, WRITEABLE, nullptr));
  if (numpy->set_base(array.get(), lent.release()) < 0) throw PythonError{};
  return array.release();
}

// torch.from_numpy(array); of one that must not be written to it warns.
PyObject* from_numpy_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  if (positional != 1 || (kwnames && PyTuple_GET_SIZE(kwnames))) return nullptr;
  return on_plain_array(args[0], true).release_object();
}

const NativeCallInit calls[] = {{"numpy", numpy_call}, {"from_numpy", from_numpy_call}};

// ---- DLPack (the structs of its ABI, version 0 and 1)

struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6, DL_CPU = 1 };

// e4m3fn, e5m2, e4m3fnuz, e5m2fnuz, e8m0fnu
constexpr uint8_t DL_FLOAT8[] = {10, 12, 11, 13, 14};

DLDataType dl_dtype(DType t) {
  uint8_t bits = uint8_t(dtype_size(t) * 8);
  if (t == DType::b1) return {DL_BOOL, bits, 1};
  if (t == DType::u8 || is_wide_unsigned(t)) return {DL_UINT, bits, 1};
  if (is_float8(t)) return {DL_FLOAT8[int(t) - int(DType::f8e4m3fn)], bits, 1};
  if (t == DType::bf16) return {DL_BFLOAT, bits, 1};
  if (is_complex(t)) return {DL_COMPLEX, bits, 1};
  return {uint8_t(is_floating(t) ? DL_FLOAT : DL_INT), bits, 1};
}
int dtype_of_dl(DLDataType t) {
  for (int i = 0; i < ALL_DTYPE_COUNT; i++) {
    DLDataType mine = dl_dtype(DType(i));
    if (t.lanes == 1 && t.code == mine.code && t.bits == mine.bits) return i;
  }
  return -1;
}

template <class Managed>
struct Exported {
  Managed managed;
  Tensor* tensor;
  int64_t geometry[2 * MAX_DIMS];
};

template <class Managed>
void delete_exported(Managed* managed) {
  auto* e = static_cast<Exported<Managed>*>(managed->context);
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(e->tensor->object());
  PyGILState_Release(state);
  delete e;
}

template <class Managed>
constexpr const char* capsule_name = "dltensor";
template <>
constexpr const char* capsule_name<DLManagedTensorVersioned> = "dltensor_versioned";
template <class Managed>
constexpr const char* used_name = "used_dltensor";
template <>
constexpr const char* used_name<DLManagedTensorVersioned> = "used_dltensor_versioned";

// A capsule that nobody consumed deletes what it carries.
template <class Managed>
void capsule_destructor(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, capsule_name<Managed>)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, capsule_name<Managed>));
  if (managed && managed->deleter) managed->deleter(managed);
}

template <class Managed>
PyObject* export_dlpack(Tensor* t) {
  if (t->storage->kind == Storage::small) wait_for_kernels();  // its bytes move
  auto* e = new Exported<Managed>{};
  TensorRef alias = new_alias(t);
  hold_storage(t->storage);
  std::copy_n(t->geometry, 2 * t->ndim, e->geometry);
  DLTensor& out = e->managed.tensor;
  out = {t->address(), {DL_CPU, 0}, t->ndim, dl_dtype(t->dtype), e->geometry, e->geometry + t->ndim, 0};
  e->managed.context = e;
  e->managed.deleter = delete_exported<Managed>;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) e->managed.major = 1;
  e->tensor = alias.release();
  PyObject* capsule = PyCapsule_New(&e->managed, capsule_name<Managed>, capsule_destructor<Managed>);
  if (!capsule) {
    delete_exported(&e->managed);
    throw PythonError{};
  }
  return capsule;
}

// to_dlpack(tensor, versioned)
PyObject* py_to_dlpack(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !is_tensor(args[0])) fail(PyExc_TypeError, "to_dlpack(tensor, versioned) expected");
    Tensor* t = as_tensor(args[0]);
    if (t->is_meta()) fail(PyExc_BufferError, "Cannot pack tensors on meta");
    if (t->flags & Tensor::CONJ) fail(PyExc_BufferError, "Can't export tensors with the conjugate bit set");
    if (t->flags & Tensor::NEG) fail(PyExc_BufferError, "Can't export tensors with the negative bit set");
    return args[1] == Py_True ? export_dlpack<DLManagedTensorVersioned>(t)
                              : export_dlpack<DLManagedTensor>(t);
  });
}

template <class Managed>
void release_managed(void* owner) {
  auto* managed = static_cast<Managed*>(owner);
  if (managed->deleter) managed->deleter(managed);
}

template <class Managed>
PyObject* import_dlpack(PyObject* capsule) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, capsule_name<Managed>));
  if (!managed) throw PythonError{};
  const DLTensor& in = managed->tensor;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (managed->major != 1) fail(PyExc_BufferError, "unsupported DLPack version");
  }
  int dtype = dtype_of_dl(in.dtype);
  if (in.device.type != DL_CPU) fail(PyExc_BufferError, "only DLPack tensors in main memory can be imported");
  if (dtype < 0) {
    failf(PyExc_RuntimeError, "Unsupported DLPack dtype: code %d, %d bits, %d lanes", in.dtype.code,
          in.dtype.bits, in.dtype.lanes);
  }
  if (in.ndim < 0 || (in.ndim && !in.shape)) fail(PyExc_RuntimeError, "bad DLPack geometry");
  Shape sizes, strides;
  sizes.assign({in.shape, size_t(in.ndim)});
  if (in.strides) strides.assign({in.strides, size_t(in.ndim)});
  else {
    strides.resize(size_t(in.ndim));
    contiguous_strides(sizes, strides.sizes);
  }
  for (int d = 0; d < in.ndim; d++) {
    if (strides.sizes[d] < 0) fail(PyExc_ValueError, "tensors with negative strides are not supported");
  }
  size_t nbytes = bytes_of(sizes, strides, DType(dtype));
  if (nbytes && !in.data) fail(PyExc_RuntimeError, "a DLPack tensor with elements has no memory");
  if (PyCapsule_SetName(capsule, used_name<Managed>) < 0) throw PythonError{};
  Storage* storage = new_external_storage(static_cast<char*>(in.data) + in.byte_offset, nbytes, managed,
                                          release_managed<Managed>);
  TensorRef t = tensor_on(storage, DType(dtype), sizes, strides);
  return t.release_object();
}

PyObject* py_from_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
      return import_dlpack<DLManagedTensorVersioned>(capsule);
    if (PyCapsule_IsValid(capsule, "dltensor")) return import_dlpack<DLManagedTensor>(capsule);
    fail(PyExc_RuntimeError,
         "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so "
         "you "
         "might have already constructed a tensor from it once.");
  });
}

PyMethodDef functions[] = {{"from_buffer", py_from_buffer, METH_O, nullptr},
                           {"export_buffer", py_export, METH_O, nullptr},
                           {"to_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_to_dlpack)),
                            METH_FASTCALL, nullptr},
                           {"from_dlpack", py_from_dlpack, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  BufferType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&buffer_spec)).release());
  PyModule_AddFunctions(module, functions);
});

}  // namespace

PyObject* lender(const Storage* storage) {
  void* view = storage_owner(storage, release_buffer);
  PyObject* object = view ? static_cast<Py_buffer*>(view)->obj : nullptr;
  // A memoryview that the collector clears while its memory is lent crashes when it is given back: it is
  // held.
  return object && PyMemoryView_Check(object) ? nullptr : object;
}

}  // namespace rl
