// Factories as programs call them every day (Note [direct calls]): sizes that are ints, a dtype, the CPU,
// `requires_grad`. Everything else, and all errors, are the Python functions' of rushlight/ops/create.py,
// ranges.py and random.py.
#include "factories.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include "../graph/modes.h"
#include "../tensor/unlocked.h"
#include "direct_calls.h"
#include "forwards.h"
#include "profiler.h"
#include "rare_ops.h"
#include "tensor_type.h"

namespace rl {
namespace {

// A thread has chosen a default device, or memory that nobody has written is to be marked: create.py knows.
bool default_device_chosen = false, marks_unwritten = false;

PyObject *name_dtype, *name_device, *name_requires_grad, *name_pin_memory, *name_layout, *name_out,
    *name_size, *name_generator, *name_memory_format;

// What is asked for beside sizes and values.
struct Options {
  PyObject* dtype = Py_None;
  bool requires_grad = false;

  DType dtype_or(DType otherwise) const { return dtype == Py_None ? otherwise : dtype_from(dtype); }

  // False if something else is asked for.
  bool read(PyObject* const* values, PyObject* kwnames, bool own_device = true) {
    if ((own_device && default_device_chosen) || profiling()) return false;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
      PyObject *name = PyTuple_GET_ITEM(kwnames, i), *value = values[i];
      if (name == name_dtype && is_dtype(value)) {
        dtype = value;
      } else if (name == name_requires_grad && PyBool_Check(value)) {
        requires_grad = value == Py_True;
      } else if (name == name_device) {
        if (!is_cpu(value)) return false;
      } else if (name == name_pin_memory) {
        if (value != Py_False) return false;
      } else if (value != Py_None || !is_optional(name)) {
        return false;
      }
    }
    return true;
  }

  // Whether a tensor of this dtype is made here and may require a gradient, if that is wanted.
  bool suits(DType made) const {
    return !is_rare(made) && (!requires_grad || (is_differentiable(made) && !modes.inference));
  }

  PyObject* finish(TensorRef t) const {
    if (requires_grad) set_requires_grad(t.get(), true);
    return t.release_object();
  }

 private:
  static bool is_cpu(PyObject* value) {
    if (value == Py_None) return true;
    if (PyUnicode_CheckExact(value)) return PyUnicode_CompareWithASCIIString(value, "cpu") == 0;
    return is_device(value) && device_from(value) == Device{};
  }
  static bool is_optional(PyObject* name) {
    return name == name_dtype || name == name_layout || name == name_out || name == name_size ||
           name == name_generator || name == name_memory_format;
  }
};

// The sizes of `args`, one by one or as one list. False if they are something else.
bool read_plain_sizes(PyObject* const* args, Py_ssize_t count, Shape& shape) {
  if (count == 1 && (PyTuple_Check(args[0]) || PyList_Check(args[0]))) {
    count = PySequence_Fast_GET_SIZE(args[0]);
    args = PySequence_Fast_ITEMS(args[0]);
  } else if (count == 0) {
    return false;
  }
  if (count > MAX_DIMS) return false;
  shape.resize(size_t(count));
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!read_plain_int(args[i], shape.sizes[i]) || shape.sizes[i] < 0) return false;
  }
  return true;
}

bool read_plain_number(PyObject* o, Scalar& value) {
  if (PyFloat_CheckExact(o)) {
    value.kind = Scalar::floating;
    value.d = PyFloat_AS_DOUBLE(o);
    return true;
  }
  value.kind = PyBool_Check(o) ? Scalar::boolean : Scalar::integer;
  value.i = o == Py_True;
  return PyBool_Check(o) || read_plain_int(o, value.i);
}

Scalar whole(int64_t i) {
  Scalar value;
  value.i = i;
  return value;
}

// A tensor whose sizes, dtype and strides another one may take.
Tensor* plain_model(PyObject* const* args, Py_ssize_t positional) {
  return positional < 1 ? nullptr : plain_tensor(args[0]);
}

TensorRef unwritten(Sizes sizes, DType dtype) {
  TensorRef t = new_tensor(sizes, dtype);
  t->storage->written = keep(current_source());
  return t;
}

// ---- filled

template <int value>
PyObject* filled_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Shape shape;
  Options options;
  if (!read_plain_sizes(args, positional, shape) || !options.read(args + positional, kwnames)) return nullptr;
  DType dtype = options.dtype_or(default_dtype());
  return options.suits(dtype) ? options.finish(filled(shape, whole(value), dtype, {})) : nullptr;
}

PyObject* full_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Shape shape;
  Options options;
  Scalar value;
  if (positional != 2 || PyLong_Check(args[0]) || !read_plain_sizes(args, 1, shape) ||
      !read_plain_number(args[1], value) || !options.read(args + positional, kwnames))
    return nullptr;
  DType dtype = options.dtype_or(value.dtype());
  return options.suits(dtype) ? options.finish(filled(shape, value, dtype, {})) : nullptr;
}

PyObject* empty_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Shape shape;
  Options options;
  if (marks_unwritten || !read_plain_sizes(args, positional, shape) ||
      !options.read(args + positional, kwnames))
    return nullptr;
  DType dtype = options.dtype_or(default_dtype());
  return options.suits(dtype) ? options.finish(unwritten(shape, dtype)) : nullptr;
}

PyObject* eye_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Options options;
  int64_t sizes[2] = {-1, -1}, count;
  if (positional < 1 || positional > 2 || !read_plain_int(args[0], sizes[0]) ||
      !read_plain_int(args[positional - 1], sizes[1]) || sizes[0] < 0 || sizes[1] < 0 ||
      __builtin_mul_overflow(sizes[0], sizes[1], &count) || !options.read(args + positional, kwnames))
    return nullptr;
  DType dtype = options.dtype_or(default_dtype());
  if (!options.suits(dtype)) return nullptr;
  TensorRef t = filled(sizes, whole(0), dtype, {});
  alignas(16) char one[16];
  whole(1).store(dtype, one);
  const size_t width = size_t(dtype_size(dtype));
  for (int64_t i = 0; i < std::min(sizes[0], sizes[1]); i++)
    std::memcpy(t->data() + size_t(i * (sizes[1] + 1)) * width, one, width);
  return options.finish(std::move(t));
}

// ---- like another tensor

// What the functions named *_like make; filled with `value` if there is one.
PyObject* like(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames, Py_ssize_t expected,
               const Scalar* value) {
  Tensor* model = plain_model(args, positional);
  Options options;
  if (!model || positional != expected || !options.read(args + positional, kwnames, false)) return nullptr;
  DType dtype = options.dtype_or(model->dtype);
  if (!options.suits(dtype)) return nullptr;
  TensorRef t = empty_like(model, dtype);
  t->storage->written = keep(current_source());
  if (value) {
    alignas(16) char element[16];
    store_filling(*value, dtype, element, t->numel);
    fill(t.get(), element);
  }
  return options.finish(std::move(t));
}

PyObject* empty_like_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  return marks_unwritten ? nullptr : like(args, positional, kwnames, 1, nullptr);
}
template <int number>
PyObject* filled_like_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Scalar value = whole(number);
  return like(args, positional, kwnames, 1, &value);
}
PyObject* full_like_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Scalar value;
  if (positional != 2 || !read_plain_number(args[1], value)) return nullptr;
  return like(args, positional, kwnames, 2, &value);
}

// Tensor.new_zeros and its kin.
template <int value>
PyObject* new_filled_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* model = plain_model(args, positional);
  Shape shape;
  Options options;
  if (!model || !read_plain_sizes(args + 1, positional - 1, shape) ||
      !options.read(args + positional, kwnames, false))
    return nullptr;
  DType dtype = options.dtype_or(model->dtype);
  return options.suits(dtype) ? options.finish(filled(shape, whole(value), dtype, {})) : nullptr;
}
PyObject* new_empty_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* model = plain_model(args, positional);
  Shape shape;
  Options options;
  if (!model || marks_unwritten || !read_plain_sizes(args + 1, positional - 1, shape) ||
      !options.read(args + positional, kwnames, false))
    return nullptr;
  DType dtype = options.dtype_or(model->dtype);
  return options.suits(dtype) ? options.finish(unwritten(shape, dtype)) : nullptr;
}
PyObject* new_full_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* model = plain_model(args, positional);
  Shape shape;
  Options options;
  Scalar value;
  if (!model || positional != 3 || PyLong_Check(args[1]) || !read_plain_sizes(args + 1, 1, shape) ||
      !read_plain_number(args[2], value) || !options.read(args + positional, kwnames, false))
    return nullptr;
  DType dtype = options.dtype_or(model->dtype);
  return options.suits(dtype) ? options.finish(filled(shape, value, dtype, {})) : nullptr;
}

// ---- ranges

// A number that a double holds exactly, as one.
bool exact(const Scalar& value, double& as_double) {
  as_double = value.real_value();
  return std::isfinite(as_double) && (value.kind == Scalar::floating || std::abs(as_double) <= 0x1p53);
}

PyObject* arange_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Options options;
  Scalar numbers[3] = {whole(0), whole(0), whole(1)};  // start, end, step
  if (positional < 1 || positional > 3 || !options.read(args + positional, kwnames)) return nullptr;
  bool all_whole = true;
  for (Py_ssize_t i = 0; i < positional; i++) {
    Scalar& number = numbers[positional == 1 ? 1 : i];
    if (PyBool_Check(args[i]) || !read_plain_number(args[i], number)) return nullptr;
    all_whole &= number.kind == Scalar::integer;
  }
  DType dtype = options.dtype_or(all_whole ? DType::i64 : default_dtype());
  double start, end, step;
  bool counted = exact(numbers[0], start) && exact(numbers[1], end) && exact(numbers[2], step);
  if (!counted || !options.suits(dtype) || step == 0 || (end - start) * step < 0) return nullptr;
  if (!is_floating(dtype) && (!all_whole || is_complex(dtype) || dtype == DType::b1)) return nullptr;
  int64_t count;
  if (is_floating(dtype)) {
    double steps = std::ceil((end - start) / step);
    if (!(steps < 0x1p62)) return nullptr;
    count = int64_t(steps);
  } else {
    int64_t span = numbers[1].i - numbers[0].i, by = numbers[2].i;
    count = span / by + (span % by != 0);  // both have one sign
  }
  return options.finish(numbers_in_steps(numbers[0], numbers[2], count, dtype, {}));
}

PyObject* linspace_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Options options;
  Scalar start, end;
  int64_t steps;
  double first, last;
  if (positional != 3 || PyBool_Check(args[0]) || PyBool_Check(args[1]) ||
      !read_plain_number(args[0], start) || !read_plain_number(args[1], end) || !exact(start, first) ||
      !exact(end, last) || !read_plain_int(args[2], steps) || steps < 2 ||
      !options.read(args + positional, kwnames))
    return nullptr;
  DType dtype = options.dtype_or(default_dtype());
  if (!options.suits(dtype) || (dtype != DType::f32 && dtype != DType::f64)) return nullptr;
  if (dtype == DType::f32 && (std::abs(first) > double(FLT_MAX) || std::abs(last) > double(FLT_MAX)))
    return nullptr;
  return options.finish(numbers_between(start, end, steps, dtype, {}));
}

// ---- from data

// The plain kinds of data: a list, a tuple or a number of Python's.
bool is_plain_data(PyObject* o) {
  return PyList_CheckExact(o) || PyTuple_CheckExact(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o) ||
         PyBool_Check(o);
}

PyObject* tensor_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Options options;
  if (positional != 1 || !options.read(args + 1, kwnames)) return nullptr;
  TensorRef t;
  if (is_plain_data(args[0])) {
    t = from_data(args[0], options.dtype, {});
  } else if (TensorRef memory = on_plain_array(args[0], false)) {
    DType dtype = options.dtype_or(memory->dtype);
    if (is_rare(dtype) || is_rare(memory->dtype)) return nullptr;
    static Primitive &clone = primitive("clone"), &to_dtype = primitive("to_dtype");
    PyObject* given[] = {memory->object(), dtype_object(dtype)};
    t = TensorRef(as_tensor(call(dtype == memory->dtype ? clone : to_dtype, given)));
  } else {
    return nullptr;
  }
  // Only now is it known whether the dtype can require a gradient: else the longer way says what is wrong.
  return !options.requires_grad || options.suits(t->dtype) ? options.finish(std::move(t)) : nullptr;
}

PyObject* as_tensor_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Options options;
  if (positional != 1 || !options.read(args + 1, kwnames, false)) return nullptr;
  if (is_plain_data(args[0])) {
    bool own_device = !default_device_chosen && !options.requires_grad;
    return own_device ? from_data(args[0], options.dtype, {}).release_object() : nullptr;
  }
  TensorRef array = is_plain_tensor(args[0]) ? TensorRef() : on_plain_array(args[0], false);
  Tensor* t = array ? array.get() : plain_model(args, positional);
  if (!t || options.dtype_or(t->dtype) != t->dtype) return nullptr;
  return Py_NewRef(t->object());
}

// ---- random numbers

// Fills t as the primitive does whose attributes these are. The generator is the default one.
TensorRef sampled(Primitive& sampler, TensorRef t, PyObject* first, PyObject* second) {
  PyObject* args[] = {t->object(), first, second, Py_None};
  Ref<PyObject> result = checked(run_forward(sampler, args, t.get()));
  return t;
}

struct Sampler {
  Primitive& op;
  PyObject *first, *second;
  static Sampler uniform() {
    static Sampler one{primitive("uniform"), PyFloat_FromDouble(0), PyFloat_FromDouble(1)};
    return one;
  }
  static Sampler normal() {
    static Sampler one{primitive("normal"), PyFloat_FromDouble(0), PyFloat_FromDouble(1)};
    return one;
  }
};

template <Sampler sampler()>
PyObject* drawn_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Shape shape;
  Options options;
  if (!read_plain_sizes(args, positional, shape) || !options.read(args + positional, kwnames)) return nullptr;
  DType dtype = options.dtype_or(default_dtype());
  if (!options.suits(dtype) || !is_floating(dtype)) return nullptr;
  const auto& [op, first, second] = sampler();
  return options.finish(sampled(op, unwritten(shape, dtype), first, second));
}

template <Sampler sampler()>
PyObject* drawn_like_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Tensor* model = plain_model(args, positional);
  Options options;
  if (!model || positional != 1 || !options.read(args + positional, kwnames, false)) return nullptr;
  DType dtype = options.dtype_or(model->dtype);
  if (!options.suits(dtype) || !is_floating(dtype)) return nullptr;
  TensorRef t = empty_like(model, dtype);
  t->storage->written = keep(current_source());
  const auto& [op, first, second] = sampler();
  return options.finish(sampled(op, std::move(t), first, second));
}

PyObject* randint_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Shape shape;
  Options options;
  int64_t low = 0, high;
  if (positional < 2 || positional > 3 || PyLong_Check(args[positional - 1]) ||
      !read_plain_sizes(args + positional - 1, 1, shape) || !read_plain_int(args[positional - 2], high) ||
      (positional == 3 && !read_plain_int(args[0], low)) || low >= high ||
      !options.read(args + positional, kwnames))
    return nullptr;
  DType dtype = options.dtype_or(DType::i64);
  if (dtype != DType::i64 || options.requires_grad) return nullptr;
  static Primitive& random = primitive("random");
  static PyObject* zero = PyLong_FromLong(0);
  PyObject* from = positional == 3 ? args[0] : zero;
  return sampled(random, unwritten(shape, dtype), from, args[positional - 2]).release_object();
}

PyObject* randperm_call(PyObject* const* args, Py_ssize_t positional, PyObject* kwnames) {
  Options options;
  int64_t n;
  if (positional != 1 || !read_plain_int(args[0], n) || n < 0 || !options.read(args + positional, kwnames))
    return nullptr;
  if (options.dtype_or(DType::i64) != DType::i64 || options.requires_grad) return nullptr;
  static Primitive& randperm = primitive("randperm");
  TensorRef t = unwritten(Sizes(&n, 1), DType::i64);
  PyObject* given[] = {t->object(), Py_None};
  Ref<PyObject> result = checked(run_forward(randperm, given, t.get()));
  return t.release_object();
}

const NativeCallInit calls[] = {{"zeros", filled_call<0>},
                                {"ones", filled_call<1>},
                                {"full", full_call},
                                {"empty", empty_call},
                                {"eye", eye_call},
                                {"empty_like", empty_like_call},
                                {"zeros_like", filled_like_call<0>},
                                {"ones_like", filled_like_call<1>},
                                {"full_like", full_like_call},
                                {"new_zeros", new_filled_call<0>},
                                {"new_ones", new_filled_call<1>},
                                {"new_empty", new_empty_call},
                                {"new_full", new_full_call},
                                {"arange", arange_call},
                                {"linspace", linspace_call},
                                {"tensor", tensor_call},
                                {"as_tensor", as_tensor_call},
                                {"rand", drawn_call<Sampler::uniform>},
                                {"randn", drawn_call<Sampler::normal>},
                                {"rand_like", drawn_like_call<Sampler::uniform>},
                                {"randn_like", drawn_like_call<Sampler::normal>},
                                {"randint", randint_call},
                                {"randperm", randperm_call}};

// tell_factories(default device chosen, unwritten memory is marked): None leaves it as it is.
PyObject* tell_factories(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "tell_factories(default_device, deterministic) expected");
    if (args[0] != Py_None) default_device_chosen = args[0] == Py_True;
    if (args[1] != Py_None) marks_unwritten = args[1] == Py_True;
    Py_RETURN_NONE;
  });
}
PyMethodDef functions[] = {
    {"tell_factories", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(tell_factories)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  for (auto [name, text] :
       {std::pair{&name_dtype, "dtype"}, std::pair{&name_device, "device"},
        std::pair{&name_requires_grad, "requires_grad"}, std::pair{&name_pin_memory, "pin_memory"},
        std::pair{&name_layout, "layout"}, std::pair{&name_out, "out"}, std::pair{&name_size, "size"},
        std::pair{&name_generator, "generator"}, std::pair{&name_memory_format, "memory_format"}})
    *name = PyUnicode_InternFromString(text);
  PyModule_AddFunctions(module, functions);
});

}  // namespace
}  // namespace rl
