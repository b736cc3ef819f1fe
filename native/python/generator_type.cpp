// The Python type Generator: seeding, and the state as a tensor of bytes.
//
// A Generator object owns its rl::Generator, except the one object rushlight._C.default_generator, which
// stands for rl::default_generator(). Methods are short; what the bytes of a state mean is in
// kernels/random_generator.cpp.
#include "generator_type.h"

#include <mutex>

#include "primitive.h"

namespace rl {
namespace {

struct GeneratorObject {
  PyObject_HEAD Generator* generator;
  bool owned;
  PyObject* weakrefs;
};

PyTypeObject* GeneratorType = nullptr;

Generator& self_generator(PyObject* self) { return *reinterpret_cast<GeneratorObject*>(self)->generator; }

GeneratorObject* allocate(PyTypeObject* type) {
  auto* self = reinterpret_cast<GeneratorObject*>(type->tp_alloc(type, 0));
  if (!self) throw PythonError{};
  self->generator = nullptr;
  self->owned = false;
  self->weakrefs = nullptr;
  return self;
}

Ref<PyObject> new_generator(PyTypeObject* type) {
  Ref<PyObject> self(reinterpret_cast<PyObject*>(allocate(type)));
  auto* object = reinterpret_cast<GeneratorObject*>(self.get());
  object->generator = new Generator();
  object->owned = true;
  return self;
}

// Each kind of device has its own words for a generator that torch has not.
[[noreturn]] void fail_generator(const std::string& name) {
  std::string upper = name, told = " device type not an accelerator.";
  for (char& c : upper) c = char(std::toupper(c));
  if (name == "cuda" || name == "xpu") told = " generator without ATen_" + name + " library.";
  if (name == "xla") told = " generator without torch_xla library.";
  if (name == "mps" || name == "mtia")
    told = "Cannot execute getNewGenerator() without " + upper + " backend.";
  else if (name == "hpu" || name == "hip") told = "Backend doesn`t support getNewGenerator()";
  else if (name == "privateuseone")
    told = "Please register PrivateUse1HooksInterface by `RegisterPrivateUse1HooksInterface` first.";
  else told = (told[1] == 'g' ? "Cannot get " : "") + upper + told;
  fail(PyExc_RuntimeError,
       told + "\n\nRandom numbers are drawn on the CPU: use Generator() or Generator('cpu').");
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t positional = PyTuple_GET_SIZE(args);
    if (positional > 1) {
      failf(PyExc_TypeError, "Generator() takes from 0 to 1 positional arguments but %zd were given",
            positional);
    }
    PyObject* device = positional ? PyTuple_GET_ITEM(args, 0) : nullptr;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);) {
      bool known = PyUnicode_CompareWithASCIIString(key, "device") == 0;
      if (!known || device) {
        failf(PyExc_TypeError,
              known ? "Generator() got multiple values for argument '%s'"
                    : "Generator() got an unexpected keyword argument '%s'",
              PyUnicode_AsUTF8(key));
      }
      device = value;
    }
    bool fits = !device || device == Py_None || is_device(device) || PyUnicode_Check(device) ||
                PyBytes_Check(device) || (PyIndex_Check(device) && !PyBool_Check(device));
    if (!fits) {
      failf(PyExc_TypeError, "Generator(): argument 'device'%s must be torch.device, not %s",
            positional ? " (position 1)" : "", type_label(device).c_str());
    }
    Device wanted = device ? device_from(device) : Device{};
    if (wanted.type != DeviceType::cpu) fail_generator(device_type_name(wanted.type));
    return new_generator(type).release();
  });
}

void generator_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<GeneratorObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  if (object->owned) delete object->generator;
  type->tp_free(self);
  Py_DECREF(type);
}

// A seed: any int of 64 bits, signed or unsigned.
uint64_t seed_argument(PyObject* o) {
  std::string label = type_label(o);
  if (!is_long(o)) failf(PyExc_RuntimeError, "manual_seed expected a long, but got %s", label.c_str());
  if (!PyLong_Check(o)) fail(PyExc_TypeError, "an integer is required");
  int overflow;
  long long seed = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (!overflow) return uint64_t(seed);
  unsigned long long wide = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : ~0ull;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    fail(PyExc_ValueError, "Overflow when unpacking long long");
  }
  return wide;
}

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&]() -> PyObject* {
    uint64_t value = seed_argument(seed);
    std::lock_guard lock(self_generator(self).mutex);
    self_generator(self).seed(value);
    return Py_NewRef(self);
  });
}

PyObject* seed(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    uint64_t value = nondeterministic_seed();
    std::lock_guard lock(self_generator(self).mutex);
    self_generator(self).seed(value);
    return PyLong_FromUnsignedLongLong(value);
  });
}

PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(self_generator(self).initial_seed());
}

PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    int64_t size = Generator::STATE_BYTES;
    TensorRef state = new_tensor({&size, 1}, DType::u8);
    std::lock_guard lock(self_generator(self).mutex);
    self_generator(self).get_state(state->data_as<uint8_t>());
    return state.release_object();
  });
}

PyObject* set_state(PyObject* self, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(o)) failf(PyExc_TypeError, "expected a torch.ByteTensor, but got %s", Py_TYPE(o)->tp_name);
    Tensor* state = as_tensor(o);
    if (state->dtype != DType::u8 || state->device().type != DeviceType::cpu) {
      fail(PyExc_TypeError, "RNG state must be a torch.ByteTensor");
    }
    if (!state->is_contiguous()) fail(PyExc_RuntimeError, "RNG state must be contiguous");
    if (state->numel != int64_t(Generator::STATE_BYTES)) {
      failf(PyExc_RuntimeError,
            "Expected a CPUGeneratorImplState of size %zu but found the input RNG state size to be %lld",
            Generator::STATE_BYTES, static_cast<long long>(state->numel));
    }
    std::lock_guard lock(self_generator(self).mutex);
    if (!self_generator(self).set_state(state->data_as<uint8_t>())) {
      fail(PyExc_RuntimeError, "Invalid mt19937 state");
    }
    return Py_NewRef(self);
  });
}

PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref<PyObject> copy = new_generator(GeneratorType);
    std::lock_guard lock(self_generator(self).mutex);
    self_generator(copy.get()).copy_state(self_generator(self));
    return copy.release();
  });
}

PyObject* get_device(PyObject*, void*) {
  return guarded([]() -> PyObject* { return device_object({}); });
}

// Pickled and copied by its state.
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref<PyObject> bytes = checked(PyBytes_FromStringAndSize(nullptr, Generator::STATE_BYTES));
    {
      std::lock_guard lock(self_generator(self).mutex);
      self_generator(self).get_state(reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(bytes.get())));
    }
    return Py_BuildValue("(O()O)", Py_TYPE(self), bytes.get());
  });
}

PyObject* restore(PyObject* self, PyObject* bytes) {
  return guarded([&]() -> PyObject* {
    if (!PyBytes_Check(bytes) || size_t(PyBytes_GET_SIZE(bytes)) != Generator::STATE_BYTES) {
      fail(PyExc_TypeError, "a Generator is restored from the bytes of its state");
    }
    std::lock_guard lock(self_generator(self).mutex);
    if (!self_generator(self).set_state(reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes)))) {
      fail(PyExc_RuntimeError, "Invalid mt19937 state");
    }
    Py_RETURN_NONE;
  });
}

PyObject* no_offset(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "CPU Generator does not use offset");
  return nullptr;
}
template <const char* const& name>
PyObject* not_supported(PyObject*, PyObject*) {
  return PyErr_Format(PyExc_NotImplementedError, "%s is not supported in this Generator", name);
}
constexpr const char* graphsafe_get = "graphsafe_get_state";
constexpr const char* graphsafe_set = "graphsafe_set_state";

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed) -> Generator\n\nStarts the sequence that belongs to `seed`."},
    {"seed", seed, METH_NOARGS,
     "seed() -> int\n\nStarts from a seed of the operating system's, which is returned."},
    {"initial_seed", initial_seed, METH_NOARGS,
     "initial_seed() -> int\n\nThe seed this generator started from."},
    {"get_state", get_state, METH_NOARGS, "get_state() -> Tensor\n\nThe state as a tensor of bytes."},
    {"set_state", set_state, METH_O, "set_state(new_state)\n\nGoes on from a state that get_state() gave."},
    {"clone_state", clone_state, METH_NOARGS,
     "clone_state() -> Generator\n\nA generator that will draw the same numbers."},
    {"get_offset", no_offset, METH_NOARGS, nullptr},
    {"set_offset", no_offset, METH_O, nullptr},
    {"graphsafe_get_state", not_supported<graphsafe_get>, METH_NOARGS, nullptr},
    {"graphsafe_set_state", not_supported<graphsafe_set>, METH_O, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__setstate__", restore, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"device", get_device, nullptr, "Where numbers are drawn: the CPU.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(GeneratorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(generator_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {Py_tp_doc,
     const_cast<char*>("Generator(device='cpu')\n\nA source of random numbers with its own sequence.")},
    {0, nullptr}};
PyType_Spec spec = {"rushlight._C.Generator", sizeof(GeneratorObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

ModuleInit init([](PyObject* module) {
  GeneratorType = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  if (PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(GeneratorType)) < 0)
    throw PythonError{};
  GeneratorObject* object = allocate(GeneratorType);
  object->generator = &default_generator();
  Ref<PyObject> owner(reinterpret_cast<PyObject*>(object));
  if (PyModule_AddObjectRef(module, "default_generator", owner.get()) < 0) throw PythonError{};
});

}  // namespace

Generator& generator_argument(PyObject* o, const char* function) {
  if (o == Py_None) return default_generator();
  if (!PyObject_TypeCheck(o, GeneratorType)) {
    failf(PyExc_TypeError, "%s(): argument 'generator' must be torch.Generator, not %s", function,
          Py_TYPE(o)->tp_name);
  }
  return self_generator(o);
}

}  // namespace rl
