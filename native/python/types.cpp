#include "types.h"

#include <cstddef>
#include <cstring>
#include <string_view>

#include "../graph/modes.h"
#include "functions.h"
#include "primitive.h"

namespace rl {
namespace {

// dtypes that torch has and Rushlight does not: they can be named, compared and printed, and nothing else.
struct NamedOnly {
  const char* name;
  int itemsize;
  bool floating, complex, is_signed;
};
constexpr NamedOnly NAMED_ONLY[] = {
    {"qint8", 1, false, false, true},           {"quint8", 1, false, false, false},
    {"qint32", 4, false, false, true},          {"quint4x2", 1, false, false, false},
    {"quint2x4", 1, false, false, false},       {"bits8", 1, false, false, false},
    {"bits16", 2, false, false, false},         {"bits1x8", 1, false, false, false},
    {"bits2x4", 1, false, false, false},        {"bits4x2", 1, false, false, false},
    {"float4_e2m1fn_x2", 1, true, false, true}, {"int1", 1, false, false, true},
    {"uint1", 1, false, false, false},          {"int2", 1, false, false, true},
    {"uint2", 1, false, false, false},          {"int3", 1, false, false, true},
    {"uint3", 1, false, false, false},          {"int4", 1, false, false, true},
    {"uint4", 1, false, false, false},          {"int5", 1, false, false, true},
    {"uint5", 1, false, false, false},          {"int6", 1, false, false, true},
    {"uint6", 1, false, false, false},          {"int7", 1, false, false, true},
    {"uint7", 1, false, false, false},
};

struct DTypeObject {
  PyObject_HEAD DType dtype;
  const NamedOnly* named_only;  // null for the dtypes that tensors can have
};
struct DeviceObject {
  PyObject_HEAD Device device;
};

PyTypeObject* DTypeType = nullptr;
PyTypeObject* DeviceType_ = nullptr;
PyTypeObject* SizeType = nullptr;
PyObject* dtypes[ALL_DTYPE_COUNT];

DType dt(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->dtype; }
const NamedOnly* only(PyObject* self) { return reinterpret_cast<DTypeObject*>(self)->named_only; }
const char* name_of(PyObject* self) { return only(self) ? only(self)->name : dtype_name(dt(self)); }
Device dev(PyObject* self) { return reinterpret_cast<DeviceObject*>(self)->device; }

// ---- dtype

[[noreturn]] void fail_named_only(PyObject* self) {
  failf(PyExc_NotImplementedError, "torch.%s is not implemented: no tensor can have this dtype",
        name_of(self));
}

PyObject* dtype_repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", name_of(self)); }
PyObject* dtype_reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(name_of(self)); }
PyObject* dtype_to_real(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (only(self)) fail_named_only(self);
    return Py_NewRef(dtypes[int(to_real(dt(self)))]);
  });
}
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (only(self)) fail_named_only(self);
    if (!is_differentiable(dt(self)) || is_float8(dt(self)))
      failf(PyExc_RuntimeError, "Unknown Complex ScalarType for %s", dtype_class_name(dt(self)));
    return Py_NewRef(dtypes[int(is_complex(dt(self)) ? dt(self) : to_complex(dt(self)))]);
  });
}
PyObject* dtype_itemsize(PyObject* self, void*) {
  return PyLong_FromLong(only(self) ? only(self)->itemsize : dtype_size(dt(self)));
}
PyObject* dtype_floating(PyObject* self, void*) {
  return PyBool_FromLong(only(self) ? only(self)->floating : is_floating(dt(self)));
}
PyObject* dtype_complex(PyObject* self, void*) {
  return PyBool_FromLong(only(self) ? only(self)->complex : is_complex(dt(self)));
}
// The short name of utils/_dtype_abbrs.py; of a dtype that is not in that table its own.
PyObject* dtype_abbr(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.utils._dtype_abbrs"));
    Ref<PyObject> table = checked(PyObject_GetAttrString(module.get(), "dtype_abbrs"));
    if (!PyDict_Check(table.get())) fail(PyExc_TypeError, "dtype_abbrs is no dict");
    if (PyObject* found = PyDict_GetItemWithError(table.get(), self)) return Py_NewRef(found);
    if (PyErr_Occurred()) return nullptr;
    return PyUnicode_FromString(name_of(self));
  });
}
PyObject* dtype_signed(PyObject* self, void*) {
  if (only(self) && std::string_view(only(self)->name).starts_with("bits")) {
    PyErr_SetString(PyExc_RuntimeError, "Bits types are undefined");
    return nullptr;
  }
  bool is_signed = dt(self) != DType::u8 && dt(self) != DType::b1 && dt(self) != DType::f8e8m0fnu &&
                   !is_wide_unsigned(dt(self));
  return PyBool_FromLong(only(self) ? only(self)->is_signed : is_signed);
}

PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
                               {"to_real", dtype_to_real, METH_NOARGS, nullptr},
                               {"to_complex", dtype_to_complex, METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef dtype_getset[] = {{"itemsize", dtype_itemsize, nullptr, nullptr, nullptr},
                              {"is_floating_point", dtype_floating, nullptr, nullptr, nullptr},
                              {"is_complex", dtype_complex, nullptr, nullptr, nullptr},
                              {"is_signed", dtype_signed, nullptr, nullptr, nullptr},
                              {"abbr", dtype_abbr, nullptr, nullptr, nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot dtype_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
                             {Py_tp_methods, dtype_methods},
                             {Py_tp_getset, dtype_getset},
                             {0, nullptr}};
PyType_Spec dtype_spec = {"rushlight.dtype", sizeof(DTypeObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots};

// ---- device

Device parse_device(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  Device device;
  if (text.empty()) fail(PyExc_RuntimeError, "Device string must not be empty");
  auto invalid = [&] { fail(PyExc_RuntimeError, "Invalid device string: '" + std::string(text) + "'"); };
  if (colon != text.npos) {
    std::string_view digits = text.substr(colon + 1);
    bool good = colon > 0 && !digits.empty() && (digits[0] != '0' || digits.size() == 1);
    int64_t index = 0;
    for (char c : digits) {
      good = good && c >= '0' && c <= '9';
      if (index < 1 << 20) index = index * 10 + (c - '0');
    }
    if (!good) invalid();
    if (index > 127) {  // torch lets 300 pass for 44
      fail(PyExc_RuntimeError, "Could not parse device index '" + std::string(digits) +
                                   "' in device string '" + std::string(text) + "'");
    }
    device.index = int8_t(index);
  }
  const char* known;
  for (int i = 0; (known = device_type_name(DeviceType(i))) && name != known; i++)
    device.type = DeviceType(i + 1);
  if (!known) {
    for (char c : name) {
      bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      if (!letter) invalid();
    }
    fail(
        PyExc_RuntimeError,
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, "
        "vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: " +
            std::string(name));
  }
  return device;
}

// torch lets 300 pass for 44.
int8_t read_device_index(PyObject* o) {
  int64_t index = read_int(o);
  if (index < 0) fail(PyExc_RuntimeError, "Device index must not be negative");
  if (index > 127) failf(PyExc_RuntimeError, "Device index must be below 128, got %lld", (long long)index);
  return int8_t(index);
}

// An int, or something that is one: no bool, no array.
bool is_index(PyObject* o) {
  if (is_tensor(o)) return as_tensor(o)->ndim == 0 && is_integral(as_tensor(o)->dtype);
  return PyIndex_Check(o) && !PyBool_Check(o) && type_label(o) != "numpy.ndarray";
}

// device(type, index=None) or device(device), in torch's words if they are something else.
void read_device_arguments(PyObject* args, PyObject* kwargs, PyObject*& type, PyObject*& index) {
  Py_ssize_t positional = PyTuple_GET_SIZE(args), named = kwargs ? PyDict_GET_SIZE(kwargs) : 0;
  if (positional > 0) type = PyTuple_GET_ITEM(args, 0);
  if (positional > 1) index = PyTuple_GET_ITEM(args, 1);
  Py_ssize_t known = 0;
  for (const char* name : {"type", "device"}) {
    PyObject* found = kwargs && !type ? PyDict_GetItemString(kwargs, name) : nullptr;
    if (!found) continue;
    type = found;
    known++;
  }
  if (PyObject* found = kwargs && !index ? PyDict_GetItemString(kwargs, "index") : nullptr) {
    index = found;
    known++;
  }
  bool is_type = type && (PyUnicode_Check(type) || PyBytes_Check(type));
  bool is_number = type && is_index(type) && !is_tensor(type);
  if (positional + named <= 2 && known == named &&
      (is_type || (type && !index && (is_number || is_device(type))))) {
    if (!index || index == Py_None || is_index(index)) return;
    failf(PyExc_TypeError, "device(): argument 'index'%s must be int, not %s",
          positional > 1 ? " (position 2)" : "", type_label(index).c_str());
  }
  if (positional + named == 2 && type && (!is_type || (known == named && index))) {
    failf(PyExc_TypeError, "device(): argument 'type'%s must be str, not %s",
          positional > 0 ? " (position 1)" : "", type_label(type).c_str());
  }
  PyObject *key, *value;
  Py_ssize_t at = 0;
  auto name_of = [](PyObject* key) -> std::string {
    const char* text = PyUnicode_AsUTF8(key);
    if (!text) throw PythonError{};
    return text;
  };
  while (positional + named == 2 && is_type && PyDict_Next(kwargs, &at, &key, &value))
    fail(PyExc_TypeError, "device() got an unexpected keyword argument '" + name_of(key) + "'");
  std::string given;
  auto add = [&](const std::string& word) { given += (given.empty() ? "" : ", ") + word; };
  for (Py_ssize_t k = 0; k < positional; k++) add(type_label(PyTuple_GET_ITEM(args, k)));
  while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) add(name_of(key) + "=" + type_label(value));
  if (positional == 0 && named > 0) given += ", ";
  fail(PyExc_TypeError,
       "device() received an invalid combination of arguments - got (" + given +
           "), but expected one of:\n * (torch.device device)\n * (str type, int index = -1)");
}

// as_device(...): what `device(...)` makes, for our own functions, whose steps no mode is asked about.
PyObject* as_device(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject *type = nullptr, *index = nullptr;
    read_device_arguments(args, kwargs, type, index);
    Device device = device_from(type);
    bool as_type = kwargs && PyDict_GetItemString(kwargs, "type");
    bool indexed = index && index != Py_None;
    if ((index || as_type) && !is_device(type) && device.index >= 0) {
      fail(PyExc_RuntimeError,
           "type (string) must not include an index because index was passed explicitly: " +
               device_name(device));
    }
    if (indexed) device.index = read_device_index(index);
    return device_object(device);
  });
}

PyObject* device_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* device = reinterpret_cast<PyObject*>(type);
  if (modes.function_mode) return guarded([&] { return dispatch_torch_function(device, args, kwargs); });
  return as_device(device, args, kwargs);
}

PyObject* device_repr(PyObject* self) {
  Device d = dev(self);
  if (d.index < 0) return PyUnicode_FromFormat("device(type='%s')", device_type_name(d.type));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", device_type_name(d.type), d.index);
}
PyObject* device_str(PyObject* self) { return PyUnicode_FromString(device_name(dev(self)).c_str()); }
Py_hash_t device_hash(PyObject* self) { return int(dev(self).type) * 1000 + dev(self).index + 2; }
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(a) || !is_device(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((dev(a) == dev(b)) == (op == Py_EQ));
}
PyObject* device_type_(PyObject* self, void*) {
  return PyUnicode_FromString(device_type_name(dev(self).type));
}
PyObject* device_index(PyObject* self, void*) {
  if (dev(self).index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(dev(self).index);
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  Device d = dev(self);
  if (d.index < 0) return Py_BuildValue("(O(s))", DeviceType_, device_type_name(d.type));
  return Py_BuildValue("(O(si))", DeviceType_, device_type_name(d.type), d.index);
}

PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef device_getset[] = {{"type", device_type_, nullptr, nullptr, nullptr},
                               {"index", device_index, nullptr, nullptr, nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot device_slots[] = {{Py_tp_new, reinterpret_cast<void*>(device_new)},
                              {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
                              {Py_tp_str, reinterpret_cast<void*>(device_str)},
                              {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
                              {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
                              {Py_tp_methods, device_methods},
                              {Py_tp_getset, device_getset},
                              {0, nullptr}};
PyType_Spec device_spec = {"rushlight.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, device_slots};

// A part of a Size is a Size. In Python this would make `x.shape[0]` cost as much as an operation.
PyObject* size_item(PyObject* self, PyObject* index) {
  Ref<PyObject> found(PyTuple_Type.tp_as_mapping->mp_subscript(self, index));
  if (!found || !PySlice_Check(index)) return found.release();
  Ref<PyObject> values(PyTuple_Pack(1, found.get()));
  return values ? PyTuple_Type.tp_new(SizeType, values.get(), nullptr) : nullptr;
}
PyMethodDef size_getitem = {"__getitem__", size_item, METH_O | METH_COEXIST, nullptr};

PyObject* set_size_type(PyObject*, PyObject* type) {
  if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &PyTuple_Type)) {
    PyErr_SetString(PyExc_TypeError, "Size must be a subclass of tuple");
    return nullptr;
  }
  Py_INCREF(type);
  Py_XSETREF(SizeType, reinterpret_cast<PyTypeObject*>(type));
  Ref<PyObject> method(PyDescr_NewMethod(SizeType, &size_getitem));
  if (!method || PyObject_SetAttrString(type, "__getitem__", method.get()) < 0) return nullptr;
  SizeType->tp_as_mapping->mp_subscript = size_item;  // not looked up each time
  Py_RETURN_NONE;
}

// Python's own errors call a type by the name of its C structure, which for torch's native types has the
// module in front; `__name__` and `__module__` stay as they are.
PyObject* name_in_errors(PyObject*, PyObject* args) {
  PyObject* type;
  const char* name;
  if (!PyArg_ParseTuple(args, "O!s", &PyType_Type, &type, &name)) return nullptr;
  if (!PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE)) {
    PyErr_SetString(PyExc_TypeError, "name_in_errors(type, name): a type of Python's own keeps its name");
    return nullptr;
  }
  reinterpret_cast<PyTypeObject*>(type)->tp_name = strdup(name);  // the type keeps the pointer
  Py_RETURN_NONE;
}

PyObject* py_dtype_cpp_name(PyObject*, PyObject* dtype) {
  return guarded([&] { return PyUnicode_FromString(dtype_cpp_name(dtype_from(dtype))); });
}

PyMethodDef functions[] = {{"as_device", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(as_device)),
                            METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"set_size_type", set_size_type, METH_O, nullptr},
                           {"name_in_errors", name_in_errors, METH_VARARGS, nullptr},
                           {"dtype_cpp_name", py_dtype_cpp_name, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

const char* dtype_cpp_name(DType dtype) {
  switch (dtype) {
    case DType::u8: return "unsigned char";
    case DType::i8: return "signed char";
    case DType::i16: return "short int";
    case DType::i32: return "int";
    case DType::i64: return "long int";
    case DType::f16: return "c10::Half";
    case DType::bf16: return "c10::BFloat16";
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::c64: return "c10::complex<float>";
    case DType::c128: return "c10::complex<double>";
    case DType::u16: return "short unsigned int";
    case DType::u32: return "unsigned int";
    case DType::u64: return "long unsigned int";
    case DType::c32: return "c10::complex<c10::Half>";
    case DType::f8e4m3fn: return "c10::Float8_e4m3fn";
    case DType::f8e5m2: return "c10::Float8_e5m2";
    case DType::f8e4m3fnuz: return "c10::Float8_e4m3fnuz";
    case DType::f8e5m2fnuz: return "c10::Float8_e5m2fnuz";
    case DType::f8e8m0fnu: return "c10::Float8_e8m0fnu";
    default: return "bool";
  }
}

bool is_long(PyObject* o) {
  if (PyLong_Check(o)) return !PyBool_Check(o);
  std::string label = type_label(o);
  return PyIndex_Check(o) && label.starts_with("numpy.") && label != "numpy.ndarray" && label != "numpy.bool";
}

std::string type_label(PyObject* o) {
  std::string name = Py_TYPE(o)->tp_name;
  constexpr std::string_view own = "rushlight.";
  return is_tensor(o) && Py_TYPE(o) == TensorType ? "Tensor"
         : name.starts_with(own)                  ? "torch." + name.substr(own.size())
                                                  : name;
}

PyObject* dtype_object(DType dtype) { return dtypes[int(dtype)]; }
bool is_dtype(PyObject* o) { return Py_TYPE(o) == DTypeType; }
bool is_device(PyObject* o) { return Py_TYPE(o) == DeviceType_; }

DType dtype_from(PyObject* o) {
  if (is_dtype(o)) {
    if (only(o)) fail_named_only(o);
    return dt(o);
  }
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::f64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::i64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::b1;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::c128;
  failf(PyExc_TypeError, "dtype must be a torch.dtype, not %s", type_label(o).c_str());
}
DType dtype_or(PyObject* o, DType otherwise) { return o == Py_None ? otherwise : dtype_from(o); }

PyObject* device_object(Device device) {
  static PyObject* cpu = nullptr;
  bool plain = device.type == DeviceType::cpu && device.index < 0;
  if (plain && cpu) return Py_NewRef(cpu);
  auto* o = PyObject_New(DeviceObject, DeviceType_);
  if (!o) throw PythonError{};
  o->device = device;
  if (plain) cpu = Py_NewRef(reinterpret_cast<PyObject*>(o));
  return reinterpret_cast<PyObject*>(o);
}

Device device_from(PyObject* o) {
  if (o == Py_None) return {};
  if (is_device(o)) return dev(o);
  if (PyUnicode_Check(o)) {
    const char* text = PyUnicode_AsUTF8(o);
    if (!text) throw PythonError{};
    return parse_device(text);
  }
  if (PyBytes_Check(o)) return parse_device({PyBytes_AS_STRING(o), size_t(PyBytes_GET_SIZE(o))});
  if (is_index(o)) {
    if (read_int(o) < 0) fail(PyExc_RuntimeError, "Device index must not be negative");
    fail(PyExc_RuntimeError, "Cannot access accelerator device when none is available.");
  }
  failf(PyExc_TypeError, "device must be a torch.device, str or int, not %s", type_label(o).c_str());
}

std::string type_text(DType dtype) {
  bool has_class = is_integral(dtype) || dtype == DType::f16 || dtype == DType::f32 || dtype == DType::f64;
  std::string name = dtype_class_name(dtype);
  return has_class && !name.starts_with("UInt") ? "torch." + name + "Tensor" : "CPU" + name + "Type";
}

PyObject* size_object(Sizes given) {
  PyTypeObject* type = SizeType ? SizeType : &PyTuple_Type;
  Shape copy;  // the allocation may collect garbage, and what that runs may change the tensor they are of
  copy.assign(given);
  Sizes sizes = copy;
  PyObject* tuple = type->tp_alloc(type, Py_ssize_t(sizes.size()));
  if (!tuple) throw PythonError{};
  for (size_t i = 0; i < sizes.size(); i++) {
    PyObject* number = PyLong_FromLongLong(sizes[i]);
    if (!number) {
      Py_DECREF(tuple);
      throw PythonError{};
    }
    PyTuple_SET_ITEM(tuple, i, number);
  }
  return tuple;
}

int64_t read_int(PyObject* o) {
  if (PyLong_Check(o)) {
    int64_t value = PyLong_AsLongLong(o);
    if (value == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      fail(PyExc_ValueError, "Overflow when unpacking long long");
    }
    return value;
  }
  if (is_tensor(o)) {
    Tensor* t = as_tensor(o);
    if (t->numel == 1 && is_integral(t->dtype) && !t->is_meta()) {
      Scalar value = item(t);
      if (value.is_unsigned) fail(PyExc_ValueError, "Overflow when unpacking long long");
      return value.i;
    }
  }
  Ref<PyObject> index = checked(PyNumber_Index(o));
  return read_int(index.get());
}

void read_sizes(PyObject* o, Shape& shape, const char* function, const char* name) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    failf(PyExc_TypeError, "%s(): argument '%s' must be tuple of ints, not %s", function, name,
          Py_TYPE(o)->tp_name);
  }
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  shape.resize(size_t(n));
  for (Py_ssize_t i = 0; i < n; i++) {
    Ref<PyObject> item = item_of(o, i);
    PyObject* element = item.get();
    if (!PyLong_Check(element) && !is_tensor(element) && !PyIndex_Check(element)) {
      failf(PyExc_TypeError,
            "%s(): argument '%s' must be tuple of ints, but found element of type %s at pos %zd", function,
            name, Py_TYPE(element)->tp_name, i);
    }
    shape.sizes[i] = read_int(element);
  }
}

int wrap_dim(int64_t dim, int ndim) {
  int n = ndim ? ndim : 1;
  if (dim < -n || dim >= n) {
    failf(PyExc_IndexError, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -n,
          n - 1, (long long)dim);
  }
  return int(dim < 0 ? dim + n : dim);
}

PyObject* new_hook_dict() {
  Ref<PyObject> collections = checked(PyImport_ImportModule("collections"));
  return checked(PyObject_CallMethod(collections.get(), "OrderedDict", nullptr)).release();
}

void init_types(PyObject* module) {
  DTypeType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&dtype_spec)).release());
  DeviceType_ = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&device_spec)).release());
  PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(DTypeType));
  PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(DeviceType_));
  for (int i = 0; i < ALL_DTYPE_COUNT; i++) {
    auto* o = PyObject_New(DTypeObject, DTypeType);
    if (!o) throw PythonError{};
    o->dtype = DType(i);
    o->named_only = nullptr;
    dtypes[i] = reinterpret_cast<PyObject*>(o);
    PyModule_AddObjectRef(module, dtype_name(DType(i)), dtypes[i]);
  }
  for (const NamedOnly& each : NAMED_ONLY) {
    auto* o = PyObject_New(DTypeObject, DTypeType);
    if (!o) throw PythonError{};
    o->dtype = DType::u8;
    o->named_only = &each;
    PyModule_AddObject(module, each.name, reinterpret_cast<PyObject*>(o));
  }
  PyModule_AddFunctions(module, functions);
}

}  // namespace rl
