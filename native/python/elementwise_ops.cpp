// One primitive for every entry of the elementwise table, through one forward function.
//
// `elementwise_forward` promotes the operands to the compute dtype, finds the result's shape and layout, and
// runs the entry's loop. Python numbers become one element on the stack; no tensor is made for them.
#include <algorithm>
#include <string_view>

#include "../tensor/iterate.h"
#include "devices.h"
#include "rare_ops.h"

namespace rl {
namespace {

struct Operand {
  Tensor* tensor = nullptr;
  TensorRef converted;          // holds a cast or copied operand
  alignas(16) char number[16];  // a number, or a 0-dim tensor in the compute dtype
  bool single = false;          // read `number`
  Scalar scalar;
};

// What torch calls the kernel of an operation, where that is not "<operation>_cpu".
std::string kernel_name(std::string_view op) {
  constexpr std::pair<std::string_view, const char*> names[] = {
      {"bitwise_left_shift", "lshift_cpu"},
      {"bitwise_right_shift", "rshift_cpu"},
      {"floor_divide", "div_floor_cpu"},
      {"pow", "pow"},
      {"lerp", "lerp_kernel_tensor"},
      {"lerp_scalar", "lerp_kernel_scalar"},
      {"round_decimals", "round_cpu"},
      {"addcmul", "addcmul_cpu_out"},
      {"digamma", "digamma"},
      {"ndtr", "erf_vml_cpu"},
      {"leaky_relu_written", "leaky_relu_cpu"},
      {"elu_written", "elu_cpu"},
  };
  for (auto [name, kernel] : names) {
    if (op == name) return kernel;
  }
  for (std::string_view name : {"ceil", "erf", "erfc", "erfinv", "floor", "i0", "lgamma", "round", "trunc"}) {
    if (op == name) return std::string(op) + "_vml_cpu";
  }
  return std::string(op) + "_cpu";
}

[[noreturn]] void fail_dtype(const char* name, DType dtype) {
  std::string_view op = name;
  if (op == "at_least" || op == "at_most") fail_dtype(op == "at_least" ? "maximum" : "minimum", dtype);
  if (is_complex(dtype)) {
    if (op.starts_with("clamp") || op == "relu")
      fail(PyExc_NotImplementedError, "clamp is not supported for complex types");
    if (op == "floor" || op == "ceil" || op == "trunc")
      failf(PyExc_NotImplementedError, "%s is not supported for complex inputs", name);
    if (op == "sign")
      fail(PyExc_NotImplementedError,
           "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn "
           "instead.");
    if (op == "signbit") fail(PyExc_NotImplementedError, "signbit is not implemented for complex tensors.");
    if (op == "maximum" || op == "minimum" || op == "fmax" || op == "fmin")
      failf(PyExc_RuntimeError, "%s not implemented for complex tensors.", name);
    if (op == "heaviside") fail(PyExc_RuntimeError, "heaviside is not yet implemented for complex tensors.");
    if (op == "deg2rad" || op == "rad2deg")
      failf(PyExc_RuntimeError, "%s is not supported for complex tensors.", name);
    if (op == "isneginf" || op == "isposinf")
      failf(PyExc_RuntimeError, "%s does not support complex inputs.", name);
  }
  if (op == "neg" && dtype == DType::b1) {
    fail(PyExc_RuntimeError,
         "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
         "use the `~` or `logical_not()` operator instead.");
  }
  if (op == "relu" && dtype == DType::b1) fail(PyExc_RuntimeError, "Boolean inputs not supported for relu");
  failf(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", kernel_name(op).c_str(),
        dtype_class_name(dtype));
}

// The steps of an operand that torch would have copied before, for each element to be there.
void unfold(const Tensor* t, const Shape& shape, int64_t* steps) {
  int64_t own[1][MAX_DIMS], dense[MAX_DIMS];
  std::ranges::copy(t->strides(), own[0]);
  dense_strides(t->sizes(), own, 1, dense);
  for (int d = 0, first = shape.ndim - t->ndim; d < t->ndim; d++)
    steps[first + d] = t->size(d) == 1 && shape.sizes[first + d] != 1 ? 0 : dense[d];
}

// A dense layout in the order of dimensions that most operands agree on.
void result_strides(const Operand* operands, int n, const Shape& shape, int64_t* strides) {
  int64_t steps[3][MAX_DIMS];
  int count = 0;
  for (int k = 0; k < n; k++) {
    if (!operands[k].tensor || operands[k].tensor->ndim == 0) continue;
    broadcast_strides(operands[k].tensor, shape, steps[count]);
    if (operands[k].tensor->flags & Tensor::SPREAD) unfold(operands[k].tensor, shape, steps[count]);
    count++;
  }
  dense_strides({shape.sizes, size_t(shape.ndim)}, steps, count, strides);
}

bool ranges_meet(const Tensor* a, const Tensor* b) {
  auto range = [](const Tensor* t) {
    int64_t last = 0;
    for (int d = 0; d < t->ndim; d++) last += (t->size(d) - 1) * t->stride(d);
    const char* start = t->address();
    return std::pair(start, start + (last + 1) * t->itemsize());
  };
  auto [a0, a1] = range(a);
  auto [b0, b1] = range(b);
  return a0 < b1 && b0 < a1;
}

}  // namespace

void check_writable(Tensor* out) {
  if (out->numel == 0) return;
  for (int d = 0; d < out->ndim; d++) {
    if (out->stride(d) == 0 && out->size(d) > 1) {
      fail(PyExc_RuntimeError,
           "unsupported operation: more than one element of the written-to tensor refers to a single memory "
           "location. Please clone() the tensor before performing the operation.");
    }
  }
}

namespace {

// How the memory of an input lies to that of what is written, as far as that is simple to tell.
enum class Overlap { none, full, partial };

Overlap overlap(const Tensor* in, const Tensor* out) {
  if (in == out) return Overlap::full;
  bool apart = in->storage != out->storage || in->numel == 0 || out->numel == 0 || in->is_meta() ||
               !is_dense(in->sizes(), in->strides()) || !is_dense(out->sizes(), out->strides()) ||
               !ranges_meet(in, out);
  if (apart) return Overlap::none;
  bool same = in->offset == out->offset && in->numel == out->numel &&
              std::ranges::equal(in->strides(), out->strides());
  return same ? Overlap::full : Overlap::partial;
}

[[noreturn]] void fail_overlap() {
  fail(PyExc_RuntimeError,
       "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
       "memory location. Please clone() the tensor before performing the operation.");
}

void check_overlap(const Tensor* in, const Tensor* out) {
  if (in->storage == out->storage && overlap(in, out) == Overlap::partial) fail_overlap();
}

PyObject* py_overlap(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !is_tensor(args[0]) || !is_tensor(args[1])) fail(PyExc_TypeError, "two tensors expected");
    constexpr const char* names[] = {"", "full", "partial"};
    return PyUnicode_FromString(names[int(overlap(as_tensor(args[0]), as_tensor(args[1])))]);
  });
}

PyMethodDef functions[] = {
    {"overlap", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_overlap)), METH_FASTCALL,
     "overlap(input, out): '' if they are apart or that is hard to tell, 'full' or 'partial'."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void check_apart(const Tensor* in, const Tensor* out) {
  if (in->storage == out->storage && overlap(in, out) != Overlap::none) fail_overlap();
}

// Reading `in` while writing `out` is safe if they are the same elements or apart. Throws torch's error for a
// partial overlap, and returns a copy where the geometry is too intricate to tell.
TensorRef safe_to_read(Tensor* in, Tensor* out) {
  if (in->storage != out->storage || in->numel == 0 || out->numel == 0 || !ranges_meet(in, out))
    return share(in);
  bool same = in->offset == out->offset && same_sizes(in, out) && in->dtype == out->dtype &&
              std::equal(in->strides().begin(), in->strides().end(), out->strides().begin());
  if (same) return share(in);
  check_overlap(in, out);
  return clone(in);
}

namespace {

// A contiguous tensor with the sizes of t, which is contiguous itself.
TensorRef new_same_shape(const Tensor* t, DType dtype) {
  TensorRef result(allocate_tensor());
  result->dtype = dtype;
  result->ndim = t->ndim;
  result->numel = t->numel;
  result->flags = Tensor::CONTIGUOUS;
  result->geometry = result->room;
  std::memcpy(result->room, t->room, sizeof t->room);  // at most four dimensions: all of it, without a loop
  if (t->flags & Tensor::ODD_STRIDES) {
    int64_t step = 1;
    for (int d = t->ndim - 1; d >= 0; d--) {
      result->room[t->ndim + d] = step;
      step *= std::max<int64_t>(t->room[d], 1);
    }
  }
  result->storage = new_storage(size_t(t->numel) * size_t(dtype_size(dtype)), {});
  return result;
}

// In Primitive::options: a scalar attribute that the dtype cannot hold is refused, not wrapped around.
constexpr uint16_t CHECKS_SCALARS = 16;

// Those whose numbers are rounded to the dtype itself, where others compute in float for halves.
bool rounds_scalars(std::string_view name) {
  return name.starts_with("clamp") || name == "threshold" || name == "hardtanh" || name == "add_alpha" ||
         name == "sub_alpha";
}
bool checks_scalars(std::string_view name) {
  constexpr std::string_view others[] = {"leaky_relu",  "elu",        "leaky_relu_written",
                                         "elu_written", "softplus",   "addcmul",
                                         "addcdiv",     "lerp_scalar"};
  return rounds_scalars(name) || name == "pow_scalar" || std::ranges::find(others, name) != std::end(others);
}
// And: a result of its own is contiguous, whatever the operands are: torch's powers of a number, and
// gradients of its losses.
constexpr uint16_t CONTIGUOUS_RESULT = 512;
// Of operands that lie otherwise, as the second: torch puts that first, and the first last.
constexpr uint16_t LIES_AS_SECOND = 8192;

Param param_of(const Scalar& s) {
  bool whole = s.kind != Scalar::floating && s.kind != Scalar::complex_;
  return {s.real_value(), s.kind == Scalar::complex_ ? s.imag : 0.0, whole ? s.i : convert<int64_t>(s.d)};
}

Param param_of(const Scalar& s, const Elementwise& entry, DType dtype) {
  Param p = param_of(s);
  if (entry.keeps == Keeps::no_scalar && dtype == DType::f16) p.real = float(Half(float(p.real)));
  if (entry.keeps == Keeps::no_scalar && dtype == DType::bf16) p.real = float(BFloat16(float(p.real)));
  return p;
}

// The loop of halves and a number that keeps its digits as operand k, or null.
Loop loop_by_number(const Elementwise& entry, DType dtype, int k) {
  if (entry.keeps != Keeps::second || k != 1 || (dtype != DType::f16 && dtype != DType::bf16)) return nullptr;
  return entry.by_number[dtype == DType::bf16];
}

// Whether `one` is a single number beside the contiguous tensor t: of one element, or such a number spread
// out (the gradient of a sum). Of dimensions of size 1 their strides are for `forward_general` to say.
bool is_one_number(const Tensor* one, const Tensor* t) {
  if (one->numel == 1) return one->ndim <= t->ndim;
  if (one->ndim != t->ndim) return false;
  for (int d = 0; d < t->ndim; d++) {
    if (one->geometry[d] != t->room[d] || t->room[d] == 1 || one->stride(d)) return false;
  }
  return true;
}

// A tensor and a single number of its dtype, whichever comes first: a loss that is scaled, x / x.norm().
PyObject* forward_with_one(const Elementwise& entry, const Tensor* a, const Tensor* b) {
  const Tensor *t = a->numel < b->numel || !a->is_contiguous() ? b : a, *one = t == a ? b : a;
  bool half = t->dtype == DType::f16 || t->dtype == DType::bf16;  // by_number
  if (!t->is_contiguous() || t->dtype != one->dtype || t->ndim > 4 || t->numel > GRAIN || !t->numel || half ||
      (t->flags | one->flags) & (Tensor::ODD_STRIDES | Tensor::LAZY) || t->device().type != DeviceType::cpu ||
      one->device().type != DeviceType::cpu || !is_one_number(one, t) ||
      (entry.promote != Promote::none && !is_differentiable(t->dtype)))
    return nullptr;
  Loop loop = entry.loops[int(t->dtype)];
  if (!loop) return nullptr;
  TensorRef result = new_same_shape(t, t->dtype);
  int64_t size = t->itemsize();
  char* data[] = {static_cast<char*>(result->storage->data), a->data(), b->data()};
  int64_t steps[] = {size, t == a ? size : 0, t == a ? 0 : size};
  loop(data, steps, t->numel, nullptr);
  return result.release_object();
}

// Two tensors that are alike, as in a loop over layers: nothing to convert and nothing to broadcast.
PyObject* forward_alike(const Elementwise& entry, const Tensor* a, const Tensor* b) {
  bool alike = (a->flags & b->flags & Tensor::CONTIGUOUS) && a->dtype == b->dtype && a->ndim == b->ndim &&
               a->numel == b->numel && a->numel <= GRAIN && a->ndim <= 4 &&
               a->device().type == DeviceType::cpu && b->device().type == DeviceType::cpu;
  for (int d = 0; alike && d < a->ndim; d++) alike = a->room[d] == b->room[d];
  if (!alike) return forward_with_one(entry, a, b);
  if (entry.promote != Promote::none && !is_differentiable(a->dtype)) return nullptr;
  Loop loop = entry.loops[int(a->dtype)];
  if (!loop) return nullptr;
  TensorRef result = new_same_shape(a, a->dtype);
  int size = a->itemsize();
  char* data[] = {static_cast<char*>(result->storage->data), a->data(), b->data()};
  int64_t steps[] = {size, size, size};
  if (a->numel) loop(data, steps, a->numel, nullptr);
  return result.release_object();
}

DType loop_dtype(const Elementwise& entry, DType promoted) {
  if (entry.promote == Promote::int_to_float && !is_differentiable(promoted)) return default_dtype();
  if (entry.promote == Promote::bool_to_int && promoted == DType::b1) return DType::i64;
  return promoted;
}

DType result_dtype(const Elementwise& entry, DType computed) {
  return entry.out == OutType::same      ? computed
         : entry.out == OutType::boolean ? DType::b1
                                         : to_real(computed);
}

bool is_conditional(const Primitive& op) { return op.args[0] == "condition"; }

// The scalar attributes of a call where they are numbers that every dtype of floats holds.
bool scalar_params(const Elementwise& entry, PyObject* const* args, DType dtype, Param* params) {
  for (int k = 0; k < entry.n_scalars; k++) {
    PyObject* o = args[entry.n_inputs + k];
    Scalar value;
    bool fits = PyFloat_CheckExact(o) || PyLong_CheckExact(o);
    if (!fits || !is_differentiable(dtype) || !scalar_from_python(o, value)) return false;
    if (dtype != DType::f64 && std::abs(value.real_value()) > 65504.0) return false;  // CHECKS_SCALARS
    params[k] = param_of(value, entry, dtype);
  }
  return true;
}

// What most calls are: small contiguous operands of one dtype and shape, or one of them a Python number of a
// kind that does not change the dtype. Everything below is then known in advance (about 60 ns saved of 120 a
// call).
PyObject* forward_plain(const Elementwise& entry, PyObject* const* args) {
  Tensor* first = is_plain_tensor(args[0]) ? as_tensor(args[0]) : nullptr;
  Tensor* second = entry.n_inputs == 2 && is_plain_tensor(args[1]) ? as_tensor(args[1]) : nullptr;
  Tensor* t = first ? first : second;
  if (!t || !t->is_contiguous() || t->ndim > 4 || t->numel > GRAIN) return nullptr;
  if (t->device().type != DeviceType::cpu ||
      (entry.promote != Promote::none && !is_differentiable(t->dtype))) {
    return nullptr;
  }
  Loop loop = entry.loops[int(t->dtype)];
  if (!loop) return nullptr;
  int size = dtype_size(t->dtype);
  char* data[3];
  int64_t steps[3];
  alignas(16) char number[16];
  for (int k = 0; k < entry.n_inputs; k++) {
    Tensor* x = k ? second : first;
    if (x) {
      if (x != t && (x->dtype != t->dtype || !x->is_contiguous() || !same_sizes(x, t) || x->is_meta()))
        return nullptr;
      data[k + 1] = x->data();
      steps[k + 1] = size;
      continue;
    }
    bool fits = PyFloat_CheckExact(args[k]) ? is_floating(t->dtype)
                                            : PyLong_CheckExact(args[k]) && is_differentiable(t->dtype);
    Scalar value;
    if (!fits || t->flags & Tensor::ODD_STRIDES || !scalar_from_python(args[k], value)) return nullptr;
    if (Loop by_number = loop_by_number(entry, t->dtype, k)) {
      TensorRef result = new_same_shape(t, t->dtype);
      char* both[] = {result->data(), t->data()};
      int64_t sizes[] = {size, size};
      Param param = param_of(value);
      if (t->numel) by_number(both, sizes, t->numel, &param);
      return result.release_object();
    }
    value.store(t->dtype, number);
    data[k + 1] = number;
    steps[k + 1] = 0;
  }
  Param params[4];
  if (!scalar_params(entry, args, t->dtype, params)) return nullptr;
  DType dtype = result_dtype(entry, t->dtype);
  TensorRef result = new_same_shape(t, dtype);
  data[0] = result->data();
  steps[0] = dtype_size(dtype);
  if (t->numel) loop(data, steps, t->numel, entry.n_scalars ? params : nullptr);
  return result.release_object();
}

// The same for `a += b`, for gradients that are summed up and for `out=`: everything contiguous, of one dtype
// and shape, and `out` either one of the operands or memory of its own.
bool write_plain(const Primitive& op, const Elementwise& entry, PyObject* const* args, Tensor* out) {
  if (!out->is_contiguous() || out->numel > GRAIN || out->is_meta() || entry.divides) return false;
  int first = entry.n_inputs == 3 && is_conditional(op);
  DType dtype = is_plain_tensor(args[first]) ? as_tensor(args[first])->dtype : out->dtype;
  if (entry.promote != Promote::none && !is_differentiable(dtype)) return false;
  Loop loop = entry.loops[int(dtype)];
  if (!loop || result_dtype(entry, dtype) != out->dtype) return false;
  char* data[4] = {out->data()};
  int64_t steps[4] = {out->itemsize()};
  alignas(16) char numbers[3][16];
  for (int k = 0; k < entry.n_inputs; k++) {
    DType wanted = k < first ? DType::b1 : dtype;
    if (!is_plain_tensor(args[k])) {
      bool fits = PyFloat_CheckExact(args[k]) ? is_floating(wanted)
                                              : PyLong_CheckExact(args[k]) && is_differentiable(wanted);
      Scalar value;
      if (!fits || first || loop_by_number(entry, wanted, k) || !scalar_from_python(args[k], value))
        return false;
      value.store(wanted, numbers[k]);
      data[k + 1] = numbers[k];
      steps[k + 1] = 0;
      continue;
    }
    Tensor* x = as_tensor(args[k]);
    if (x->dtype != wanted || !x->is_contiguous() || !same_sizes(x, out) || x->is_meta()) return false;
    if (x != out && x->storage == out->storage && !(out->numel == 0 || !ranges_meet(x, out))) return false;
    data[k + 1] = x->data();
    steps[k + 1] = x->itemsize();
  }
  Param params[4];
  if (!scalar_params(entry, args, dtype, params)) return false;
  if (out->numel) loop(data, steps, out->numel, entry.n_scalars ? params : nullptr);
  return true;
}

// Whether the result is of the dtype and the sizes of `out`, so that it is written straight into it.
bool is_right_for(const Primitive& op, const Elementwise& entry, PyObject* const* args, const Tensor* out) {
  Shape shape;
  Promotion promotion;
  for (int k = 0; k < entry.n_inputs; k++) {
    bool decides = k > 0 || !is_conditional(op);
    Scalar number;
    if (is_tensor(args[k])) {
      broadcast_into(shape, as_tensor(args[k])->sizes());
      if (decides) promotion.add(as_tensor(args[k]));
    } else if (!scalar_from_python(args[k], number)) {
      return false;
    } else if (decides) {
      promotion.add(number);
    }
  }
  if (!std::ranges::equal(Sizes(shape), out->sizes())) return false;
  for (int k = 0; (op.options & Primitive::SCALARS_PROMOTE) && k < entry.n_scalars; k++) {
    Scalar number;
    if (!scalar_from_python(args[entry.n_inputs + k], number) || number.kind == Scalar::complex_)
      return false;
    bool limit = entry.name == std::string_view("clamp_scalar") && is_floating(as_tensor(args[0])->dtype);
    if (!limit) promotion.add(number);
  }
  DType computed = loop_dtype(entry, promotion.result());
  return entry.loops[int(computed)] && result_dtype(entry, computed) == out->dtype &&
         !(entry.divides && is_integral(computed));
}

// Where an operand has no data torch compares the shapes before the devices, and in other words.
void check_meta_shapes(const Elementwise& entry, PyObject* const* args) {
  if (entry.n_inputs != 2 || !is_tensor(args[0]) || !is_tensor(args[1])) return;
  const Tensor *a = as_tensor(args[0]), *b = as_tensor(args[1]);
  int ndim = std::max(int(a->ndim), int(b->ndim));
  Shape common;  // as far as it is known, from the last dimension on
  for (int d = 0; d < ndim; d++) common.append(d < ndim - a->ndim ? 1 : a->size(d - (ndim - a->ndim)));
  for (int d = 1; d <= b->ndim; d++) {
    int64_t &known = common.sizes[ndim - d], size = b->size(b->ndim - d);
    if (known == 1) known = size;
    if (size == 1 || size == known) continue;
    failf(PyExc_RuntimeError,
          "Attempting to broadcast a dimension of length %lld at %d! Mismatching argument at index 1 had "
          "torch.Size(%s); but expected shape should be broadcastable to %s",
          (long long)size, -d, sizes_text(b->sizes()).c_str(), sizes_text(common).c_str());
  }
}

// Everything else: promotion, broadcasting, devices, strides. Apart, because its stack frame is a page long
// and would be set up for every small call too.
[[gnu::noinline]] PyObject* forward_general(const Primitive& op, PyObject* const* args, Tensor* out) {
  auto& entry = *static_cast<const Elementwise*>(op.payload);
  bool conditional = is_conditional(op);
  Operand operands[3];
  Promotion promotion;
  Device device;
  bool any = false, meta = false;
  bool onto_meta = out && out->is_meta();  // nothing is read, so the operands may be anywhere
  int zero_dims = 0;
  for (int k = 0; k < entry.n_inputs; k++) {
    Operand& o = operands[k];
    if (is_tensor(args[k])) {
      o.tensor = as_tensor(args[k]);
      if (o.tensor->is_lazy()) {  // called past `call`, by the engine
        o.converted = resolved(o.tensor);
        o.tensor = o.converted.get();
      }
      Device mine = o.tensor->device();
      if (!any || (zero_dims && o.tensor->ndim)) {
        if (any && !onto_meta && !(mine == device) && device.type != DeviceType::cpu) {
          check_meta_shapes(entry, args);
          fail_devices(device, mine);
        }
        device = mine;
        zero_dims = o.tensor->ndim == 0;
      } else if (!onto_meta && !(mine == device) && !(o.tensor->ndim == 0 && mine.type == DeviceType::cpu)) {
        check_meta_shapes(entry, args);
        fail_devices(device, mine);
      }
      any = true;
    } else if (scalar_from_python(args[k], o.scalar)) {
      o.single = true;
    } else {
      failf(PyExc_TypeError, "%s(): argument '%s' must be Tensor, not %s", entry.name, op.args[k].c_str(),
            Py_TYPE(args[k])->tp_name);
    }
  }
  if (!any) failf(PyExc_TypeError, "%s(): argument 'input' must be Tensor, not number", entry.name);
  Scalar scalars[4];
  for (int k = 0; k < entry.n_scalars; k++) {
    scalars[k] =
        scalar_argument(args[entry.n_inputs + k], entry.name, op.args[size_t(entry.n_inputs + k)].c_str());
  }
  meta = onto_meta || device.type == DeviceType::meta;
  if (meta) check_meta_shapes(entry, args);
  // As torch does: first the memory, then the shapes, then the types, then whether there is a loop.
  if (out && !meta) {
    check_writable(out);
    for (int k = 0; k < entry.n_inputs; k++)
      if (operands[k].tensor) check_overlap(operands[k].tensor, out);
  }
  Shape shape;
  Tensor* full = nullptr;  // an operand that has the shape of the result already
  bool contiguous_all = true, alike = true, odd = false;
  for (int k = 0; k < entry.n_inputs; k++) {
    Tensor* t = operands[k].tensor;
    alike &= t != nullptr;
    if (!t) continue;
    if (!full) {
      full = t;
      shape.assign(t->sizes());
    } else if (!same_sizes(full, t)) {
      broadcast_into(shape, t->sizes());
      alike = false;
    }
    contiguous_all &= t->is_contiguous();
    odd |= (t->flags & Tensor::ODD_STRIDES) != 0;
  }
  // Where something is repeated torch looks at all strides, also at those that are never taken.
  contiguous_all &= alike || !odd;
  contiguous_all |= (op.options & CONTIGUOUS_RESULT) != 0;
  if (out && (out->ndim != shape.ndim || !std::equal(shape.sizes, shape.sizes + shape.ndim, out->geometry))) {
    fail(PyExc_RuntimeError, "output with shape " + sizes_text(out->sizes()) +
                                 " doesn't match the broadcast shape " + sizes_text(shape));
  }
  for (int k = conditional; k < entry.n_inputs; k++) {
    if (operands[k].single) promotion.add(operands[k].scalar);
    else promotion.add(operands[k].tensor);
  }
  // Limits do not change the dtype of floating point numbers, whatever they are.
  if (op.options & Primitive::SCALARS_PROMOTE &&
      !(entry.name == std::string_view("clamp_scalar") && is_floating(operands[0].tensor->dtype))) {
    for (int k = 0; k < entry.n_scalars; k++) promotion.add(scalars[k]);
  }
  DType compute = loop_dtype(entry, promotion.result()), made = result_dtype(entry, compute);
  Loop loop = entry.loops[int(compute)];
  if (out && !can_cast(made, out->dtype)) {
    failf(PyExc_RuntimeError, "result type %s can't be cast to the desired output type %s",
          dtype_class_name(made), dtype_class_name(out->dtype));
  }
  if (!loop) {
    if (is_rare(compute)) return forward_rare(op, args, out);
    fail_dtype(entry.name, compute);
  }
  TensorRef result;
  // Whether the loop writes straight into `out`: not where it may find, half way, that it cannot go on.
  bool own = out && out->dtype == made && !(entry.divides && is_integral(compute));
  if (own) {
    result = share(out);
  } else if (contiguous_all || (is_complex(compute) && entry.name == std::string_view("angle"))) {
    result = new_tensor(shape, made, device);  // angles of complex numbers in torch's order
  } else {
    int64_t strides[MAX_DIMS];
    if (op.options & LIES_AS_SECOND) {
      std::rotate(operands, operands + 1, operands + entry.n_inputs);
      result_strides(operands, entry.n_inputs, shape, strides);
      std::rotate(operands, operands + entry.n_inputs - 1, operands + entry.n_inputs);
    } else {
      result_strides(operands, entry.n_inputs, shape, strides);
    }
    result = new_strided(shape, {strides, size_t(shape.ndim)}, made, device);
  }
  if (meta) return own ? Py_NewRef(out->object()) : result.release_object();
  Operands iteration;
  iteration.add(result.get());
  Loop by_number = nullptr;
  Param kept;
  for (int k = 0; k < entry.n_inputs; k++) {
    Operand& o = operands[k];
    DType wanted = conditional && k == 0 ? DType::b1 : compute;
    bool number = o.single || (o.tensor->ndim == 0 && shape.ndim);
    Loop with_digits = number && !by_number ? loop_by_number(entry, compute, k) : nullptr;
    if (with_digits) {
      by_number = with_digits;
      kept = param_of(o.single ? o.scalar : item(o.tensor));
    } else if (o.single) {
      bool half = wanted == DType::f16 || wanted == DType::bf16;
      if (conditional && !half) store_checked(o.scalar, wanted, o.number);
      else o.scalar.store(wanted, o.number);
      iteration.add_number(o.number, dtype_size(wanted));
    } else if (o.tensor->ndim == 0 && shape.ndim) {
      item(o.tensor).store(wanted, o.number);
      iteration.add_number(o.number, dtype_size(wanted));
    } else {
      Tensor* t = o.tensor;
      if (t->dtype != wanted) {
        o.converted = cast(t, wanted);
        t = o.converted.get();
      } else if (own && t != out && t->storage == out->storage) {
        o.converted = safe_to_read(t, out);
        t = o.converted.get();
      }
      iteration.add_broadcast(t, shape);
    }
  }
  Param params[4];
  DivisionReport report;
  for (int k = 0; k < entry.n_scalars; k++) {
    bool unreal = scalars[k].kind == Scalar::complex_ && !is_complex(compute);  // its part would be dropped
    if (unreal || (op.options & CHECKS_SCALARS)) {
      alignas(16) char element[16];
      bool half = compute == DType::f16 || compute == DType::bf16;
      bool power = std::string_view(entry.name) == "pow_scalar";  // whose exponents may be infinite
      // A threshold is compared with; what stands below it becomes an element.
      bool compared = k == 0 && std::string_view(entry.name) == "threshold";
      bool rounds = power || (rounds_scalars(entry.name) && !compared);
      if (unreal || !power || half || is_integral(compute))
        store_checked(scalars[k], half && !rounds ? DType::f32 : compute, element);
    }
    params[k] = param_of(scalars[k], entry, compute);
  }
  if (by_number) run_elementwise(by_number, iteration, shape, &kept);
  else run_elementwise(loop, iteration, shape, entry.divides ? static_cast<void*>(&report) : params);
  if (report.by_zero) fail(PyExc_RuntimeError, "ZeroDivisionError");
  if (out && !own) copy_into(out, result.get());
  return out ? Py_NewRef(out->object()) : result.release_object();
}

}  // namespace

PyObject* elementwise_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  auto& entry = *static_cast<const Elementwise*>(op.payload);
  if (out) {
    if (write_plain(op, entry, args, out)) return Py_NewRef(out->object());
  } else if (entry.n_inputs <= 2 && !entry.divides) {
    if (entry.n_inputs == 2 && !entry.n_scalars && entry.out == OutType::same && is_plain_tensor(args[0]) &&
        is_plain_tensor(args[1])) {
      PyObject* result = forward_alike(entry, as_tensor(args[0]), as_tensor(args[1]));
      if (result) return result;
    }
    if (PyObject* result = forward_plain(entry, args)) return result;
  }
  return forward_general(op, args, out);
}

bool write_elementwise(const Primitive& op, PyObject* const* args, Tensor* out) {
  auto& entry = *static_cast<const Elementwise*>(op.payload);
  if (write_plain(op, entry, args, out)) return true;
  if (!is_right_for(op, entry, args, out)) return false;
  checked(forward_general(op, args, out));
  return true;
}

namespace {

ModuleInit init([](PyObject* module) {
  PyModule_AddFunctions(module, functions);
  const ElementwiseTable& table = elementwise_table();
  static const char* inputs[] = {"", "x", "a, b", "a, b, c"};
  static const char* scalars[] = {"", "; s", "; s, t", "; s, t, u", "; s, t, u, v"};
  for (int i = 0; i < table.count; i++) {
    const Elementwise& entry = table.entries[i];
    std::string name = entry.name;
    if (name.starts_with('_')) continue;  // a loop that others run
    std::string names = name == "where" ? "condition, a, b" : inputs[entry.n_inputs];
    bool promotes = name == "pow_scalar" || name == "scalar_pow" || name.starts_with("clamp");
    define((name + "(" + names + scalars[entry.n_scalars] + ")").c_str(), elementwise_forward,
           uint16_t(Primitive::IN_PLACE | (promotes ? Primitive::SCALARS_PROMOTE : 0) |
                    (name == "scalar_pow" || name == "smooth_absolute_backward" ? CONTIGUOUS_RESULT : 0) |
                    (name == "threshold_backward" || name == "leaky_relu_backward" ? LIES_AS_SECOND : 0) |
                    (checks_scalars(name) ? CHECKS_SCALARS : 0)),
           &entry);
  }
  // 1 - x has a node name of its own in torch.
  define("rsub_number(a, b)", elementwise_forward, 0, find_elementwise("sub"));
  define("mul_in_order(a, b)", elementwise_forward, CONTIGUOUS_RESULT, find_elementwise("mul"));
  // where(), laid out as the values are.
  define("choose(condition, a, b)", elementwise_forward, LIES_AS_SECOND, find_elementwise("where"));
  PyModule_AddStringConstant(module, "cpu_capability", cpu_capability());
});

}  // namespace
}  // namespace rl
