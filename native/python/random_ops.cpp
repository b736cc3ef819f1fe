// Random numbers from Python: one primitive per sampler, with torch's checks and sentences.
//
// A sampler fills a tensor: in place (Tensor.normal_), or, through `sample_into`, a tensor that a factory has
// just made (randn), which then counts as created and not as written to. Start at `fill` and
// `normal_forward`. The loops, and what they draw, are in kernels/random*.cpp.
#include <cfloat>
#include <limits>
#include <mutex>

#include "../graph/errors.h"
#include "../graph/modes.h"
#include "../tensor/iterate.h"
#include "generator_type.h"
#include "lazy_views.h"
#include "levels.h"

namespace rl {

void check_writable(Tensor* out);  // elementwise_ops.cpp

namespace {

// ---- arguments
// ----------------------------------------------------------------------------------------------------

[[noreturn]] void fail_dtype(const char* kernel, DType dtype) {
  failf(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", kernel, dtype_class_name(dtype));
}

double number(const Primitive& op, PyObject* const* args, int i) {
  if (is_tensor(args[i]) && as_tensor(args[i])->numel == 1 && !as_tensor(args[i])->is_meta()) {
    alignas(16) char element[16];
    store_checked(item(as_tensor(args[i])), DType::f64, element);
    return load(DType::f64, element).d;
  }
  double value = PyFloat_AsDouble(args[i]);
  if (value == -1 && PyErr_Occurred()) {
    forget_error(PyExc_TypeError);
    failf(PyExc_TypeError, "%s_(): argument '%s' (position %d) must be float, not %s", op.name.c_str(),
          op.args[size_t(i)].c_str(), i, Py_TYPE(args[i])->tp_name);
  }
  return value;
}

int64_t integer(PyObject* o) {
  Ref<PyObject> index = checked(PyNumber_Index(o));
  int overflow;
  int64_t value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long");
  return value;
}

Generator& generator_of(const Primitive& op, PyObject* const* args) {
  check_drawing(op);
  return generator_argument(args[op.args.size() - 1], op.name.c_str());
}

Tensor* tensor_of(const Primitive& op, PyObject* const* args, int i) {
  if (!is_tensor(args[i])) {
    failf(PyExc_TypeError, "%s(): argument '%s' (position %d) must be Tensor, not %s", op.name.c_str(),
          op.args[size_t(i)].c_str(), i + 1, Py_TYPE(args[i])->tp_name);
  }
  return as_tensor(args[i]);
}

// What a sampler fills: the tensor it was given, or a new one like its first input.
TensorRef target(const Primitive& op, PyObject* const* args, Tensor* out) {
  if (out) return share(out);
  Tensor* like = tensor_of(op, args, 0);
  return empty_like(like, like->dtype);
}

// Runs sample() under the generator's lock, and without the GIL if there is much to do. Whoever waits for the
// lock may hold the GIL: so the lock is given back first.
template <class F>
void draw(Generator& g, int64_t work, F sample) {
  MaybeNoGil no_gil(work);
  std::lock_guard lock(g.mutex);
  sample();
}

// Runs sample(g, span) on the elements of `t`; on the meta device there are none.
template <class F>
PyObject* fill(TensorRef t, Generator& g, F sample) {
  if (!t->is_meta()) {
    check_writable(t.get());
    draw(g, t->numel, [&] { sample(g, t->span()); });
  }
  return t.release_object();
}

// A complex tensor as real numbers: one more dimension, of size 2.
struct RealParts {
  int64_t sizes[MAX_DIMS + 1], strides[MAX_DIMS + 1];
  Span span;
  explicit RealParts(const Span& s) {
    for (int d = 0; d < s.ndim; d++) {
      sizes[d] = s.sizes[d];
      strides[d] = 2 * s.strides[d];
    }
    sizes[s.ndim] = 2;
    strides[s.ndim] = 1;
    span = {s.data, to_real(s.dtype), s.ndim + 1, sizes, strides};
  }
};

// ---- continuous distributions
// ---------------------------------------------------------------------------------------

PyObject* uniform_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  Generator& g = generator_of(op, args);
  double low = number(op, args, 1), high = number(op, args, 2);
  DType real = to_real(t->dtype);
  if (!is_floating(real)) fail_dtype("check_uniform_bounds", t->dtype);
  double largest = real == DType::f64   ? DBL_MAX
                   : real == DType::f32 ? double(FLT_MAX)
                   : real == DType::f16 ? 65504
                                        : 0x1.fep127;
  if (!(low >= -largest && low <= largest))
    failf(PyExc_RuntimeError, "from is out of bounds for %s", dtype_cpp_name(real));
  if (!(high >= -largest && high <= largest))
    failf(PyExc_RuntimeError, "to is out of bounds for %s", dtype_cpp_name(real));
  if (!(low <= high)) {
    failf(PyExc_RuntimeError, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", low,
          high);
  }
  if (!(high - low <= largest)) {
    failf(PyExc_RuntimeError,
          "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g which "
          "result in "
          "to-from to exceed the limit",
          dtype_class_name(real), high, low);
  }
  return fill(std::move(t), g, [=](Generator& generator, const Span& span) {
    if (is_complex(span.dtype)) random_uniform(generator, RealParts(span).span, low, high);
    else random_uniform(generator, span, low, high);
  });
}

void check_std(double std) {
  if (!(std >= 0)) failf(PyExc_RuntimeError, "normal expects std >= 0.0, but found std %g", std);
}

// Into the real and the imaginary part of a complex number goes half of the variance each (and all of the
// mean).
void sample_normal(Generator& g, const Span& span, double mean, double std) {
  if (is_complex(span.dtype)) random_normal(g, RealParts(span).span, mean, std / std::sqrt(2.0));
  else random_normal(g, span, mean, std);
}

PyObject* normal_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  Generator& g = generator_of(op, args);
  double mean = number(op, args, 1), std = number(op, args, 2);
  check_std(std);
  if (t->numel && !is_differentiable(t->dtype)) fail_dtype("normal_kernel_cpu", t->dtype);
  return fill(std::move(t), g,
              [=](Generator& generator, const Span& span) { sample_normal(generator, span, mean, std); });
}

PyObject* log_normal_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  Generator& g = generator_of(op, args);
  double mean = number(op, args, 1), std = number(op, args, 2);
  if (!(std > 0)) failf(PyExc_RuntimeError, "log_normal_ expects std > 0.0, but found std=%g", std);
  if (t->numel && !is_floating(t->dtype)) fail_dtype("log_normal_cpu", t->dtype);
  return fill(std::move(t), g,
              [=](Generator& generator, const Span& span) { random_log_normal(generator, span, mean, std); });
}

PyObject* cauchy_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  Generator& g = generator_of(op, args);
  double median = number(op, args, 1), sigma = number(op, args, 2);
  if (!(sigma > 0)) failf(PyExc_RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
  if (!is_floating(t->dtype)) {
    failf(PyExc_RuntimeError,
          "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but "
          "you "
          "specified %s",
          dtype_cpp_name(t->dtype));
  }
  return fill(std::move(t), g,
              [=](Generator& generator, const Span& span) { random_cauchy(generator, span, median, sigma); });
}

PyObject* exponential_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  Generator& g = generator_of(op, args);
  double lambd = number(op, args, 1);
  if (!(lambd > 0))
    failf(PyExc_RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=%g", lambd);
  if (t->numel && !is_floating(t->dtype)) {
    failf(PyExc_RuntimeError,
          "Exponential distribution is a continuous probability distribution. dtype must be a floating point "
          "but you "
          "specified %s",
          dtype_class_name(t->dtype));
  }
  return fill(std::move(t), g,
              [=](Generator& generator, const Span& span) { random_exponential(generator, span, lambd); });
}

void check_std(Tensor* std) {
  if (is_complex(std->dtype)) fail(PyExc_RuntimeError, "normal expects standard deviation to be non-complex");
  if (std->is_meta()) return;
  TensorRef values = cast(contiguous(std).get(), DType::f64);
  for (int64_t i = 0; i < values->numel; i++) {
    if (!(values->data_as<double>()[i] >= 0))
      fail(PyExc_RuntimeError, "normal expects all elements of std >= 0.0");
  }
}

// The forms of normal() with a tensor of means, of deviations, or both: a sample around zero that is then
// scaled and shifted in place, as in torch (which decides how it is rounded).
PyObject* normal_around(Sizes sizes, DType dtype, Device device, double std, Tensor* factor, PyObject* mean,
                        Generator& g) {
  TensorRef t = new_tensor(sizes, dtype, device);
  if (t->numel && !is_differentiable(dtype)) fail_dtype("normal_kernel_cpu", dtype);
  if (!t->is_meta() && t->numel) draw(g, t->numel, [&] { sample_normal(g, t->span(), 0, std); });
  auto in_place = [&](const char* name, PyObject* other) {
    TensorRef plain;  // without the history, which is not this operation's business
    if (is_tensor(other)) plain = new_alias(as_tensor(other));
    PyObject* args[] = {t->object(), plain ? plain->object() : other};
    Ref<PyObject> done(call_in_place(primitive(name), args));
  };
  if (factor) in_place("mul", factor->object());
  in_place("add", mean);
  t->storage->version = 0;  // it was made here, and nobody has seen it yet
  return t.release_object();
}

PyObject* normal_mean_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* mean = tensor_of(op, args, 0);
  double std = number(op, args, 1);
  check_std(std);
  return normal_around(mean->sizes(), mean->dtype, mean->device(), std, nullptr, args[0],
                       generator_of(op, args));
}

PyObject* normal_std_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* std = tensor_of(op, args, 0);
  number(op, args, 1);  // the mean, as a number
  check_std(std);
  return normal_around(std->sizes(), std->dtype, std->device(), 1, std, args[1], generator_of(op, args));
}

PyObject* normal_mean_std_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *mean = tensor_of(op, args, 0), *std = tensor_of(op, args, 1);
  check_std(std);
  Shape shape;
  shape.assign(mean->sizes());
  broadcast_into(shape, std->sizes());
  return normal_around(shape, mean->dtype, mean->device(), 1, std, args[0], generator_of(op, args));
}

// ---- integers
// -------------------------------------------------------------------------------------------------------

// The largest number n such that a floating dtype holds all integers up to n, or the largest of an integer
// dtype.
int64_t largest_integer(DType dtype) {
  switch (dtype) {
    case DType::b1: return 1;
    case DType::u8: return 255;
    case DType::i8: return 127;
    case DType::i16: return 32767;
    case DType::i32: return INT32_MAX;
    case DType::f16: return 1 << 11;
    case DType::bf16: return 1 << 8;
    case DType::f32: return 1 << 24;
    case DType::f64: return int64_t(1) << 53;
    default: return INT64_MAX;
  }
}

// Whether integers `value` can be drawn in `dtype`: an error if they cannot be held, a warning if not
// exactly.
void check_bound(DType dtype, int64_t value, const char* name) {
  int64_t largest = largest_integer(dtype);
  if (is_floating(dtype)) {
    if (dtype == DType::f16 && (value > 65504 || value < -65504)) {
      failf(PyExc_RuntimeError, "%s is out of bounds for %s", name, dtype_cpp_name(dtype));
    }
    if (value >= -largest && value <= largest) return;
    int bits = 63 - __builtin_clzll(uint64_t(largest));
    std::string power = "2^" + std::to_string(bits);
    warn(std::string(name) + " is out of bounds [-(" + power + "), " + power +
         "]. Due to precision limitations " + dtype_cpp_name(dtype) +
         " can support discrete uniform distribution only within this range. This warning will become an "
         "error in version 1.7 release, please fix the code in advance");
    return;
  }
  int64_t smallest = dtype == DType::b1 || dtype == DType::u8 ? 0 : -largest - 1;
  if (value < smallest || value > largest) {
    failf(PyExc_RuntimeError, "%s is out of bounds for %s", name, dtype_cpp_name(dtype));
  }
}

// random(x; low, high, generator): integers in [low, high); without `high`, up to the largest of the dtype.
PyObject* integers(const Primitive& op, PyObject* const* args, Tensor* out, int64_t low,
                   PyObject* high_or_none) {
  TensorRef t = target(op, args, out);
  Generator& g = generator_of(op, args);
  DType dtype = t->dtype;
  uint64_t range;
  if (high_or_none != Py_None) {
    int64_t high = integer(high_or_none);
    if (low >= high) {
      failf(PyExc_RuntimeError, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
            static_cast<long long>(low), static_cast<long long>(high));
    }
    if (is_complex(dtype)) {
      fail(PyExc_RuntimeError, "check_random_bounds handles only integral, floating-point and boolean types");
    }
    low = random_low_bound(dtype, low);
    high = random_high_bound(dtype, high);
    if (low >= high) {
      failf(
          PyExc_RuntimeError,
          "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=%lld >= "
          "to=%lld",
          static_cast<long long>(low), static_cast<long long>(high));
    }
    check_bound(dtype, low, "from");
    check_bound(dtype, high - 1, "to - 1");
    range = uint64_t(high) - uint64_t(low);
  } else if (low == INT64_MIN) {
    if (is_integral(dtype) && dtype != DType::i64) {
      fail(PyExc_RuntimeError,
           "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
    }
    if (dtype == DType::f16 || dtype == DType::b1 || is_complex(dtype)) {
      fail_dtype("random_full_64_bits_range_kernel_cpu", dtype);
    }
    range = 0;
  } else {
    if (is_complex(dtype)) {
      fail(PyExc_RuntimeError, "random_from_to_impl handles only integral, floating-point and boolean types");
    }
    int64_t last = largest_integer(dtype);
    low = random_low_bound(dtype, low);
    if (is_floating(dtype) && low > last) {
      failf(PyExc_RuntimeError,
            "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, "
            "but got "
            "from=%lld > to_inc=%lld",
            static_cast<long long>(low), static_cast<long long>(last));
    }
    check_bound(dtype, low, "from");
    range = uint64_t(last) - uint64_t(low) + 1;
  }
  return fill(std::move(t), g,
              [=](Generator& generator, const Span& span) { random_integers(generator, span, low, range); });
}

PyObject* random_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  return integers(op, args, out, integer(args[1]), args[2]);
}

PyObject* random_to_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  return integers(op, args, out, 0, args[1]);
}

PyObject* random_full_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  if (is_complex(t->dtype)) fail_dtype("random_kernel_cpu", t->dtype);
  return fill(std::move(t), generator_of(op, args), random_full);
}

PyObject* randperm_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  if (t->ndim != 1) fail(PyExc_RuntimeError, "randperm fills a tensor of one dimension");
  if (is_complex(t->dtype) || t->dtype == DType::b1) fail_dtype("randperm", t->dtype);
  if (is_integral(t->dtype) && t->numel > 0 && t->numel - 1 > largest_integer(t->dtype)) {
    failf(PyExc_RuntimeError, "value cannot be converted to type %s_t without overflow",
          dtype_name(t->dtype));
  }
  if (t->dtype != DType::bf16 && is_floating(t->dtype) && t->numel > largest_integer(t->dtype) + 1) {
    failf(PyExc_RuntimeError, "n cannot be greater than %lld for %s type.",
          static_cast<long long>(largest_integer(t->dtype) + 1), dtype_class_name(t->dtype));
  }
  return fill(std::move(t), generator_of(op, args), random_permutation);
}

// ---- discrete distributions
// -----------------------------------------------------------------------------------------

PyObject* geometric_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  Generator& g = generator_of(op, args);
  double p = number(op, args, 1);
  if (!(p > 0 && p < 1)) failf(PyExc_RuntimeError, "geometric_ expects p to be in (0, 1), but got p=%g", p);
  if (is_complex(t->dtype) || t->dtype == DType::b1) fail_dtype("geometric_cpu", t->dtype);
  return fill(std::move(t), g,
              [=](Generator& generator, const Span& span) { random_geometric(generator, span, p); });
}

PyObject* bernoulli_of_number(const Primitive& op, PyObject* const* args, TensorRef t) {
  double p = number(op, args, 1);
  if (!(p >= 0 && p <= 1)) failf(PyExc_RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  if (is_complex(t->dtype)) fail_dtype("bernoulli_scalar_cpu_", t->dtype);
  return fill(std::move(t), generator_of(op, args),
              [=](Generator& generator, const Span& span) { random_bernoulli(generator, span, p); });
}

PyObject* bernoulli_number_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  return bernoulli_of_number(op, args, target(op, args, out));
}

PyObject* bernoulli_like_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* like = tensor_of(op, args, 0);
  return bernoulli_of_number(op, args, new_tensor(like->sizes(), like->dtype, like->device()));
}

void fill_bernoulli(Tensor* t, Tensor* p, Generator& g) {
  if (is_complex(t->dtype)) fail_dtype("bernoulli_tensor_cpu_self_", t->dtype);
  if (!is_floating(p->dtype)) fail_dtype("bernoulli_tensor_cpu_p_", p->dtype);
  if (t->is_meta() || p->is_meta()) return;
  check_writable(t);
  if (!are_probabilities(p->span())) {
    fail(PyExc_RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  }
  int64_t strides[MAX_DIMS];
  broadcast_strides(p, t->sizes(), strides);
  Span probabilities = {p->data(), p->dtype, t->ndim, t->geometry, strides};
  draw(g, t->numel, [&] { random_bernoulli(g, t->span(), probabilities); });
}

PyObject* bernoulli_tensor_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  TensorRef t = target(op, args, out);
  Tensor* p = tensor_of(op, args, 1);
  if (p->ndim > t->ndim) {
    fail(PyExc_RuntimeError, "expand(" + type_text(p->dtype) + "{" + sizes_text(p->sizes()) +
                                 "}, size=" + sizes_text(t->sizes()) + "): the number of sizes provided (" +
                                 std::to_string(t->ndim) +
                                 ") must be greater or equal to the number of dimensions in the tensor (" +
                                 std::to_string(p->ndim) + ")");
  }
  for (int d = p->ndim - 1, at = t->ndim - 1; d >= 0; d--, at--) {
    if (p->size(d) == t->size(at) || p->size(d) == 1) continue;
    fail(PyExc_RuntimeError, "The expanded size of the tensor (" + std::to_string(t->size(at)) +
                                 ") must match the existing size (" + std::to_string(p->size(d)) +
                                 ") at non-singleton dimension " + std::to_string(at) + ".  Target sizes: " +
                                 sizes_text(t->sizes()) + ".  Tensor sizes: " + sizes_text(p->sizes()));
  }
  TensorRef readable = p->storage == t->storage && !p->is_meta() ? clone(p) : share(p);
  fill_bernoulli(t.get(), readable.get(), generator_of(op, args));
  return t.release_object();
}

PyObject* bernoulli_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* p = tensor_of(op, args, 0);
  TensorRef t = new_tensor(p->sizes(), p->dtype, p->device());
  fill_bernoulli(t.get(), p, generator_of(op, args));
  return t.release_object();
}

PyObject* poisson_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* rate = tensor_of(op, args, 0);
  Generator& g = generator_of(op, args);
  if (!is_floating(rate->dtype)) fail_dtype("poisson_cpu", rate->dtype);
  TensorRef t = new_tensor(rate->sizes(), rate->dtype, rate->device());
  if (t->is_meta()) return t.release_object();
  TensorRef rates = cast(contiguous(rate).get(), DType::f64);
  for (int64_t i = 0; i < rates->numel; i++) {
    if (!(rates->data_as<double>()[i] >= 0)) {
      fail(PyExc_RuntimeError, "invalid Poisson rate, expected rate to be non-negative");
    }
  }
  draw(g, t->numel, [&] { random_poisson(g, t->span(), rate->span()); });
  return t.release_object();
}

PyObject* binomial_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor *count = tensor_of(op, args, 0), *prob = tensor_of(op, args, 1);
  Generator& g = generator_of(op, args);
  for (int i = 0; i < 2; i++) {
    DType dtype = (i ? prob : count)->dtype;
    if (!is_floating(dtype)) {
      failf(PyExc_ValueError, "binomial only supports floating-point dtypes for %s, got: %s",
            op.args[size_t(i)].c_str(), dtype_class_name(dtype));
    }
  }
  if (count->dtype != prob->dtype) {
    failf(PyExc_RuntimeError, "Found dtype %s but expected %s", dtype_class_name(prob->dtype),
          dtype_class_name(count->dtype));
  }
  if (count->dtype == DType::f16 || count->dtype == DType::bf16) fail_dtype("binomial_cpu", count->dtype);
  Shape shape;
  shape.assign(count->sizes());
  broadcast_into(shape, prob->sizes());
  TensorRef t = new_tensor(shape, count->dtype, count->device());
  if (t->is_meta()) return t.release_object();
  int64_t count_strides[MAX_DIMS], prob_strides[MAX_DIMS];
  broadcast_strides(count, shape, count_strides);
  broadcast_strides(prob, shape, prob_strides);
  Span counts = {count->data(), count->dtype, t->ndim, t->geometry, count_strides};
  Span probs = {prob->data(), prob->dtype, t->ndim, t->geometry, prob_strides};
  draw(g, t->numel, [&] { random_binomial(g, t->span(), counts, probs); });
  return t.release_object();
}

PyObject* multinomial_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* weights = tensor_of(op, args, 0);
  Generator& g = generator_of(op, args);
  int64_t samples = integer(args[1]);
  bool replacement = is_true(args[2]);
  if (weights->ndim != 1 && weights->ndim != 2) fail(PyExc_RuntimeError, "prob_dist must be 1 or 2 dim");
  if (!is_floating(weights->dtype)) {
    failf(PyExc_RuntimeError, "multinomial only supports floating-point dtypes for input, got: %s",
          dtype_class_name(weights->dtype));
  }
  if (samples <= 0) fail(PyExc_RuntimeError, "cannot sample n_sample <= 0 samples");
  int last = weights->ndim - 1;
  int64_t rows = last ? weights->size(0) : 1, categories = weights->size(last);
  if (!replacement && samples > categories) {
    fail(PyExc_RuntimeError, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  }
  if (categories > 1 << 24) fail(PyExc_RuntimeError, "number of categories cannot exceed 2^24");
  int64_t shape[] = {rows, samples};
  TensorRef t = new_tensor(Sizes(shape + 1 - last, size_t(last + 1)), DType::i64, weights->device());
  if (t->is_meta() || rows == 0) return t.release_object();
  if (categories == 0)
    fail(PyExc_RuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)");

  int64_t table[] = {rows, categories};
  auto rows_of = [&](Tensor* tensor, int64_t* strides) {
    strides[0] = last ? tensor->stride(0) : 0;
    strides[1] = tensor->stride(last);
  };
  int64_t weight_strides[2], out_strides[2], scratch_strides[2];
  rows_of(weights, weight_strides);
  rows_of(t.get(), out_strides);
  Span from = {weights->data(), weights->dtype, 2, table, weight_strides};
  Span to = {t->data(), DType::i64, 2, shape, out_strides};
  const char* error = nullptr;
  if (replacement && samples > 1) {
    draw(g, rows * categories, [&] { error = random_multinomial(g, to, from); });
  } else {
    TensorRef scratch = empty_like(weights, weights->dtype);
    rows_of(scratch.get(), scratch_strides);
    Span waiting = {scratch->data(), weights->dtype, 2, table, scratch_strides};
    draw(g, rows * categories, [&] { error = random_multinomial_distinct(g, to, from, waiting); });
  }
  if (error) fail(PyExc_RuntimeError, error);
  return t.release_object();
}

// sample_into(primitive, tensor, *attributes): fills a tensor that was just made. It has no history, and
// being filled is not a write that anybody could have missed.
PyObject* py_sample_into(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 2 || !is_tensor(args[1])) fail(PyExc_TypeError, "sample_into(primitive, tensor, ...) expected");
    static PyTypeObject* type = Py_TYPE(primitive("uniform").object());
    if (Py_TYPE(args[0]) != type) fail(PyExc_TypeError, "sample_into(primitive, tensor, ...) expected");
    auto& op = *reinterpret_cast<Primitive*>(args[0]);
    if (op.args.back() != "generator" || !(op.options & Primitive::IN_PLACE) ||
        size_t(n - 1) != op.args.size()) {
      failf(PyExc_TypeError, "sample_into() cannot call %s", op.name.c_str());
    }
    return forward_resolved(op, args + 1, as_tensor(args[1]));
  });
}

PyMethodDef functions[] = {
    {"sample_into", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_sample_into)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  constexpr uint8_t IN_PLACE = Primitive::IN_PLACE;
  define("uniform(x; from, to, generator)", uniform_forward, IN_PLACE);
  define("normal(x; mean, std, generator)", normal_forward, IN_PLACE);
  define("log_normal(x; mean, std, generator)", log_normal_forward, IN_PLACE);
  define("cauchy(x; median, sigma, generator)", cauchy_forward, IN_PLACE);
  define("exponential(x; lambd, generator)", exponential_forward, IN_PLACE);
  define("geometric(x; p, generator)", geometric_forward, IN_PLACE);
  define("random(x; from, to, generator)", random_forward, IN_PLACE);
  define("random_to(x; to, generator)", random_to_forward, IN_PLACE);
  define("random_full(x; generator)", random_full_forward, IN_PLACE);
  define("randperm(x; generator)", randperm_forward, IN_PLACE);
  define("bernoulli_number(x; p, generator)", bernoulli_number_forward, IN_PLACE);
  define("bernoulli_like(x; p, generator)", bernoulli_like_forward);
  define("bernoulli_tensor(x, p; generator)", bernoulli_tensor_forward, IN_PLACE);
  define("bernoulli(p; generator)", bernoulli_forward);
  define("normal_mean(mean; std, generator)", normal_mean_forward);
  define("normal_std(std; mean, generator)", normal_std_forward);
  define("normal_mean_std(mean, std; generator)", normal_mean_std_forward);
  define("poisson(input; generator)", poisson_forward);
  define("binomial(count, prob; generator)", binomial_forward);
  define("multinomial(weights; num_samples, replacement, generator)", multinomial_forward);
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
});

}  // namespace
}  // namespace rl
