// The primitives that are separable linear maps (interpolation, average pooling, padding by rule) and
// constant_pad_nd. How the taps of each kind are chosen is here; the loops are in kernels/resample.h.
//
// Each is NAME(x; size, spec, adjoint): `spec` is a tuple of the kind and its numbers, `size` the sizes of
// the pooled dimensions of the result. With adjoint=True the map is transposed: its input is a gradient and
// its result has the sizes of the input. Public functions check arguments before; here only memory is at
// stake.
#include <string_view>

#include "../kernels/resample.h"
#include "../tensor/iterate.h"
#include "window.h"

namespace rl {
namespace {

struct Entry {
  const char* kernel;  // torch's name for the loop, for its "not implemented" sentence
  int dims;
  bool integers, complex, half;  // which dtypes torch takes besides float and double
  bool bytes, boolean;
  bool keeps_layout = true;  // channels last stay last
};

PyObject* item(PyObject* spec, Py_ssize_t i) {
  if (!PyTuple_Check(spec) || i >= PyTuple_GET_SIZE(spec))
    fail(PyExc_TypeError, "resample: a number is missing");
  return PyTuple_GET_ITEM(spec, i);
}
int64_t integer(PyObject* o) {
  int64_t n = read_int(o);
  if (n > INT32_MAX || n < INT32_MIN) failf(PyExc_RuntimeError, "value %lld is too large", (long long)n);
  return n;
}
double number(PyObject* o) {
  double d = PyFloat_AsDouble(o);
  if (d == -1 && PyErr_Occurred()) throw PythonError{};
  return d;
}

// How far one output is from the next in the input. R is float where torch computes positions in float.
template <class R>
R step_of(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners) return out > 1 ? R(in - 1) / R(out - 1) : R(0);
  return scale > 0 ? R(1.0 / scale) : R(in) / R(out);
}

// torch sees to it that small images (`small`) of the same or twice the size are copied, whatever the scale.
void nearest(Taps& t, int64_t in, int64_t out, double scale, bool exact, bool small) {
  t.start(in, out);
  float step = scale > 0 ? float(1.0 / scale) : float(in) / float(out);
  for (int64_t o = 0; o < out; o++, t.end_row()) {
    int64_t i = int64_t(std::floor((float(o) + (exact ? 0.5f : 0.0f)) * step));
    if (small && !exact && (out == in || out == 2 * in)) i = o / (out / in);
    t.add(std::clamp<int64_t>(i, 0, in - 1), 1.0);
  }
}

template <class R>
void linear(Taps& t, int64_t in, int64_t out, bool align_corners, double scale) {
  t.start(in, out);
  R step = step_of<R>(in, out, align_corners, scale);
  for (int64_t o = 0; o < out; o++, t.end_row()) {
    if (in == out) {
      t.add(o, 1.0);
      continue;
    }
    R place = align_corners ? step * R(o) : std::max<R>(0, step * (R(o) + R(0.5)) - R(0.5));
    int64_t i = std::clamp<int64_t>(int64_t(place), 0, in - 1);
    R part = std::clamp<R>(place - R(i), 0, 1);
    t.add(i, 1 - part);
    t.add(std::min(i + 1, in - 1), part);
  }
}

template <class R>
R cubic_near(R x, R a) {  // |x| <= 1
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class R>
R cubic_far(R x, R a) {  // 1 < |x| < 2
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

template <class R>
void cubic(Taps& t, int64_t in, int64_t out, bool align_corners, double scale) {
  t.start(in, out);
  R step = step_of<R>(in, out, align_corners, scale), a = R(-0.75);
  for (int64_t o = 0; o < out; o++, t.end_row()) {
    R place = align_corners ? step * R(o) : step * (R(o) + R(0.5)) - R(0.5);
    R whole = std::floor(place), x = std::clamp<R>(place - whole, 0, 1);
    int64_t i = int64_t(std::clamp<R>(whole, -4, R(in) + 4));
    const R weights[] = {cubic_far(x + 1, a), cubic_near(x, a), cubic_near(1 - x, a), cubic_far(2 - x, a)};
    for (int k = 0; k < 4; k++) t.add(std::clamp<int64_t>(i - 1 + k, 0, in - 1), weights[k]);
  }
}

enum class Filter { triangle, cubic, lanczos };

template <class R>
R filter_at(Filter filter, R x) {
  x = std::abs(x);
  if (filter == Filter::triangle) return x < 1 ? 1 - x : R(0);
  if (filter == Filter::cubic) return x < 1 ? cubic_near(x, R(-0.5)) : x < 2 ? cubic_far(x, R(-0.5)) : R(0);
  if (x >= 3) return R(0);
  if (x == 0) return R(1);
  R p = R(M_PI) * x;
  return 3 * std::sin(p) * std::sin(p / 3) / (p * p);
}

// Interpolation that widens its filter where the image shrinks.
template <class R>
void antialiased(Taps& t, int64_t in, int64_t out, bool align_corners, double scale, Filter filter) {
  t.start(in, out);
  R step = step_of<R>(in, out, align_corners, scale);
  R width = filter == Filter::triangle ? 2 : filter == Filter::cubic ? 4 : 6;
  R support = step >= 1 ? width / 2 * step : width / 2, squeeze = step >= 1 ? 1 / step : R(1);
  std::vector<R> weights;
  for (int64_t o = 0; o < out; o++, t.end_row()) {
    if (in == out) {  // whatever the scale: torch leaves out the pass
      t.add(o, 1.0);
      continue;
    }
    R center = step * (R(o) + R(0.5));
    int64_t begin = std::max<int64_t>(0, int64_t(center - support + R(0.5)));
    int64_t end = std::min<int64_t>(in, int64_t(center + support + R(0.5)));
    weights.clear();
    R total = 0;
    for (int64_t i = begin; i < end; i++) {
      weights.push_back(filter_at(filter, (R(i) - center + R(0.5)) * squeeze));
      total += weights.back();
    }
    for (int64_t i = begin; i < end; i++)
      t.add(i, total != 0 ? weights[size_t(i - begin)] / total : weights[size_t(i - begin)]);
  }
}

// Average pooling; divisor 0: the number of elements.
void average(Taps& t, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
             bool count_include_pad, double divisor) {
  t.start(in, out);
  for (int64_t o = 0; o < out; o++, t.end_row()) {
    int64_t begin = o * stride - padding, end = std::min(begin + kernel, in + padding), padded = end - begin;
    begin = std::max<int64_t>(begin, 0), end = std::min(end, in);
    double count = divisor != 0 ? divisor : double(count_include_pad ? padded : end - begin);
    for (int64_t i = begin; i < end; i++) t.add(i, 1 / count);
  }
}

void adaptive_average(Taps& t, int64_t in, int64_t out) {
  t.start(in, out);
  for (int64_t o = 0; o < out; o++, t.end_row()) {
    int64_t begin = int64_t(__int128(o) * in / out), end = int64_t((__int128(o + 1) * in + out - 1) / out);
    for (int64_t i = begin; i < end; i++) t.add(i, 1.0 / double(end - begin));
  }
}

enum class Padding { reflect, replicate, circular };

// The input that place i, counted from the first input on, shows.
int64_t padded_place(int64_t i, int64_t in, Padding how) {
  if (how == Padding::reflect && in > 1) {
    int64_t period = 2 * (in - 1);
    i = (i % period + period) % period;
    if (i >= in) i = period - i;
  } else if (how == Padding::circular) {
    i = (i % in + in) % in;
  }
  return std::clamp<int64_t>(i, 0, in - 1);
}

void padded(Taps& t, int64_t in, int64_t out, int64_t left, Padding how) {
  t.start(in, out);
  for (int64_t o = 0; o < out; o++, t.end_row()) t.add(padded_place(o - left, in, how), 1.0);
}

// Lines are long, and most of one is a copy: no list of all its elements.
bool pads_lines(PyObject* spec, Padding& how) {
  const char* kind = PyUnicode_AsUTF8(item(spec, 0));
  if (!kind) throw PythonError{};
  std::string_view name = kind;
  how = name == "reflect" ? Padding::reflect : name == "replicate" ? Padding::replicate : Padding::circular;
  return name == "reflect" || name == "replicate" || name == "circular";
}

PaddedLines padded_lines(PyObject* spec, Padding how, int64_t planes, int64_t in, int64_t out, int64_t size) {
  if (in <= 0) fail(PyExc_RuntimeError, "padding: the input is empty");
  int64_t left = integer(item(item(spec, 1), 0));
  int64_t begin = std::clamp<int64_t>(left, 0, out), end = std::clamp<int64_t>(left + in, begin, out);
  PaddedLines lines = {planes, in, out, begin == end ? 0 : begin - left, size, {}, {}};
  for (int64_t o = 0; o < begin; o++) lines.before.push_back(padded_place(o - left, in, how));
  for (int64_t o = end; o < out; o++) lines.after.push_back(padded_place(o - left, in, how));
  return lines;
}

// The taps of dimension `d` (of `dims`) of the map that `spec` describes.
template <class R>
Taps taps_of(PyObject* spec, int d, int dims, int64_t in, int64_t out, bool small) {
  Taps t;
  const char* kind = PyUnicode_AsUTF8(item(spec, 0));
  if (!kind) throw PythonError{};
  std::string_view name = kind;
  auto flag = [&](int i) { return is_true(item(spec, i)); };
  auto scale = [&](int i) {
    PyObject* list = item(spec, i);
    return list == Py_None ? 0.0 : number(item(list, d));
  };
  if (name == "nearest") nearest(t, in, out, scale(1), false, small);
  else if (name == "nearest-exact") nearest(t, in, out, scale(1), true, small);
  else if (name == "linear") linear<R>(t, in, out, flag(1), scale(2));
  else if (name == "cubic") cubic<R>(t, in, out, flag(1), scale(2));
  else if (name == "linear_aa") antialiased<R>(t, in, out, flag(1), scale(2), Filter::triangle);
  else if (name == "cubic_aa") antialiased<R>(t, in, out, flag(1), scale(2), Filter::cubic);
  else if (name == "lanczos_aa") antialiased<R>(t, in, out, flag(1), scale(2), Filter::lanczos);
  else if (name == "adaptive") adaptive_average(t, in, out);
  else if (name == "average") {
    // A divisor given for the whole window is applied once, in the last dimension.
    double divisor = number(item(spec, 5));
    average(t, in, out, integer(item(item(spec, 1), d)), integer(item(item(spec, 2), d)),
            integer(item(item(spec, 3), d)), flag(4),
            divisor == 0    ? 0
            : d == dims - 1 ? divisor
                            : 1);
  } else if (name == "reflect") padded(t, in, out, integer(item(item(spec, 1), d)), Padding::reflect);
  else if (name == "replicate") padded(t, in, out, integer(item(item(spec, 1), d)), Padding::replicate);
  else if (name == "circular") padded(t, in, out, integer(item(item(spec, 1), d)), Padding::circular);
  else fail(PyExc_ValueError, "resample: unknown kind " + std::string(name));
  t.settle();
  return t;
}

PyObject* resample_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  const Entry& e = *static_cast<const Entry*>(op.payload);
  Tensor* x = tensor_argument(op.name.c_str(), args[0]);
  Shape size, sizes;
  read_sizes(args[1], size, op.name.c_str(), "size");
  bool adjoint = is_true(args[3]);
  int dims = size.ndim;
  if (dims != e.dims || x->ndim < dims) fail(PyExc_RuntimeError, op.name + "(): wrong number of dimensions");
  sizes.assign(x->sizes());
  int64_t planes = 1;
  for (int d = 0; d < x->ndim - dims; d++) planes *= x->size(d);
  for (int d = 0; d < dims; d++) sizes.sizes[x->ndim - dims + d] = size.sizes[d];
  DType t = x->dtype;
  bool taken = t == DType::f32 || t == DType::f64 || ((t == DType::f16 || t == DType::bf16) && e.half) ||
               (is_complex(t) && e.complex) || (t == DType::u8 && e.bytes) ||
               (is_integral(t) && e.integers) || (is_bool(t) && e.boolean);
  bool nothing = numel_of(sizes) == 0 && !std::strcmp(e.kernel, "adaptive_avg_pool2d");
  if (!taken && !nothing) fail_not_implemented(e.kernel, t);
  bool last = e.keeps_layout && is_channels_last(x) && !x->is_meta() && numel_of(sizes) > 0;
  // Not turned round and back, where the channels are none of the dimensions that are resized.
  bool in_place = last && x->ndim == dims + 2 && is_dense_channels_last(x);
  TensorRef result =
      in_place ? new_channels_last(sizes, x->dtype, x->device()) : new_tensor(sizes, x->dtype, x->device());
  if (x->is_meta() || result->numel == 0) return result.release_object();
  if (Padding how; dims == 1 && !adjoint && pads_lines(args[2], how)) {
    int64_t in = x->size(x->ndim - 1);
    PaddedLines lines = padded_lines(args[2], how, planes, in, size.sizes[0], x->itemsize());
    TensorRef from = contiguous(x);
    MaybeNoGil released(result->numel);
    pad_lines(lines, result->data(), from->data());
    return result.release_object();
  }
  Sizes scaled = adjoint ? x->sizes() : Sizes(sizes);
  bool small = dims == 2 && scaled[scaled.size() - 2] + scaled[scaled.size() - 1] <= 128;
  Taps taps[3];
  for (int d = 0; d < 3; d++) {
    if (d < 3 - dims) {
      taps[d].start(1, 1);
      taps[d].add(0, 1.0), taps[d].end_row(), taps[d].settle();
      continue;
    }
    int at = d - 3 + dims;
    int64_t in = x->size(x->ndim - 3 + d), out = size.sizes[at];
    if (adjoint) std::swap(in, out);
    if (in <= 0 && out > 0) fail(PyExc_RuntimeError, op.name + "(): the input is empty");
    bool wide = t == DType::f64 || t == DType::c128 || t == DType::u8;
    taps[d] = wide ? taps_of<double>(args[2], at, dims, in, out, small)
                   : taps_of<float>(args[2], at, dims, in, out, small);
    if (adjoint) taps[d] = taps[d].transposed();
  }
  {
    TensorRef from = in_place ? share(x) : contiguous(x);
    int64_t channels = in_place ? x->size(1) : 1;
    MaybeNoGil released(std::max(x->numel, result->numel));
    resample(x->dtype, taps, planes / channels, channels, result->data(), from->data());
  }
  return in_place ? result.release_object() : laid_out(std::move(result), last && !adjoint);
}

// Nothing is cut off: everything is written once, in the order of memory. Dimensions that get no border are
// joined with the one before, the last ones with what they are rows of.
void put_in_border(const Tensor* x, Tensor* result, const int64_t* starts, const void* element) {
  int64_t in[MAX_DIMS], before[MAX_DIMS], after[MAX_DIMS];
  int count = 0;
  bool joins = false;  // whether dimension d continues the one before it
  for (int d = 0; d < x->ndim; d++) {
    int64_t more = result->size(d) - x->size(d);
    if (joins && !more) {
      in[count - 1] *= x->size(d);
      continue;
    }
    joins = !more;
    in[count] = x->size(d), before[count] = starts[d], after[count] = more - starts[d];
    count++;
  }
  // The rows of a last dimension without a border: what it borders on is that much longer.
  if (count > 1 && !before[count - 1] && !after[count - 1]) {
    int64_t row = in[--count];
    in[count - 1] *= row, before[count - 1] *= row, after[count - 1] *= row;
  }
  MaybeNoGil released(result->numel);
  put_in_border(Border{count, in, before, after, element, result->itemsize()}, result->data(), x->data());
}

// constant_pad_nd(x; pad, value): pad lists the last dimension first; negative numbers cut off.
PyObject* constant_pad_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument("constant_pad_nd", args[0]);
  Shape pad, sizes;
  read_sizes(args[1], pad, "constant_pad_nd", "pad");
  if (pad.ndim % 2)
    failf(PyExc_RuntimeError, "Length of pad must be even but instead it equals %d", pad.ndim);
  if (pad.ndim > 2 * x->ndim) {
    failf(PyExc_RuntimeError,
          "Length of pad should be no more than twice the number of dimensions of the input. Pad length is %d"
          "while the input has %ddimensions.",
          pad.ndim, x->ndim);
  }
  sizes.assign(x->sizes());
  // The part of x that stays, and where it goes.
  int64_t kept[MAX_DIMS], from = x->offset, to = 0;
  std::copy(x->sizes().begin(), x->sizes().end(), kept);
  int64_t starts[MAX_DIMS] = {};
  for (int i = 0; i < pad.ndim / 2; i++) {
    int d = x->ndim - 1 - i;
    int64_t left = pad.sizes[2 * i], right = pad.sizes[2 * i + 1];
    if (__builtin_add_overflow(x->size(d), left, &sizes.sizes[d]) ||
        __builtin_add_overflow(sizes.sizes[d], right, &sizes.sizes[d]))
      failf(PyExc_RuntimeError,
            "The input size %lld, plus negative padding %lld and %lld resulted in a negative output size, "
            "which "
            "is invalid. Check dimension %d of your input.",
            (long long)x->size(d), (long long)left, (long long)right, d);
    int64_t remains = x->size(d) + std::min<int64_t>(left, 0);
    if (remains < 0 || remains + std::min<int64_t>(right, 0) < 0)
      fail(PyExc_RuntimeError, "narrow(): length must be non-negative.");
    kept[d] = remains + std::min<int64_t>(right, 0);
    from += std::max<int64_t>(-left, 0) * x->stride(d);
    starts[d] = std::max<int64_t>(left, 0);
  }
  Scalar value = scalar_argument(args[2], "constant_pad_nd", "value");
  alignas(16) char element[16];
  store_checked(value, x->dtype, element);
  bool last = is_channels_last(x);
  for (int d = 0; d < sizes.ndim; d++) last &= sizes.sizes[d] > 0;
  TensorRef result =
      last ? new_channels_last(sizes, x->dtype, x->device()) : new_tensor(sizes, x->dtype, x->device());
  if (x->is_meta() || result->numel == 0) return result.release_object();
  Sizes part(kept, size_t(x->ndim));
  if (!last && x->ndim && x->is_contiguous() && x->numel &&
      std::equal(part.begin(), part.end(), x->geometry)) {
    put_in_border(x, result.get(), starts, element);
    return result.release_object();
  }
  bool whole = std::equal(part.begin(), part.end(), result->geometry);
  if (!whole) fill(result.get(), element);
  if (numel_of(part) == 0) return result.release_object();
  for (int d = 0; d < x->ndim; d++) to += starts[d] * result->stride(d);
  TensorRef inside = new_alias(result.get(), part, result->strides(), to);
  TensorRef source = new_alias(x, part, x->strides(), from);
  copy_into(inside.get(), source.get());
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  auto add = [](const char* name, const Entry* entry) {
    define((std::string(name) + "(x; size, spec, adjoint)").c_str(), resample_forward, 0, entry);
  };
  static const Entry upsample[] = {{"compute_indices_weights_linear", 1, false, false, true, false, false},
                                   {"upsample_bilinear2d_channels_last", 2, false, false, true, true, false},
                                   {"compute_indices_weights_linear", 3, false, false, true, false, false}};
  static const Entry bicubic{"compute_indices_weights_cubic", 2, false, false, true, true, false},
      antialias{"compute_index_ranges_weights", 2, false, false, false, true, false};
  static const Entry nearests[] = {{"compute_indices_weights_nearest", 1, false, false, true, true, false},
                                   {"upsample_nearest2d_channels_last", 2, false, false, true, true, false},
                                   {"compute_indices_weights_nearest", 3, false, false, true, true, false}};
  add("upsample_linear1d", &upsample[0]);
  add("upsample_bilinear2d", &upsample[1]);
  add("upsample_trilinear3d", &upsample[2]);
  add("upsample_bicubic2d", &bicubic);
  add("upsample_bilinear2d_aa", &antialias);
  add("upsample_bicubic2d_aa", &antialias);
  add("upsample_lanczos2d_aa", &antialias);
  add("upsample_nearest1d", &nearests[0]);
  add("upsample_nearest2d", &nearests[1]);
  add("upsample_nearest3d", &nearests[2]);
  add("upsample_nearest_exact1d", &nearests[0]);
  add("upsample_nearest_exact2d", &nearests[1]);
  add("upsample_nearest_exact3d", &nearests[2]);
  static const Entry averages[] = {{"avg_pool2d", 1, false, false, true, false, false},
                                   {"avg_pool2d", 2, false, false, true, false, false},
                                   {"avg_pool3d_out_frame", 3, false, false, false, false, false, false}};
  add("avg_pool1d", &averages[0]);
  add("avg_pool2d", &averages[1]);
  add("avg_pool3d", &averages[2]);
  static const Entry adaptives[] = {{"adaptive_avg_pool2d", 1, false, false, true, false, false},
                                    {"adaptive_avg_pool2d", 2, false, false, true, false, false},
                                    {"adaptive_avg_pool3d_cpu", 3, false, false, true, false, false, false}};
  add("adaptive_avg_pool1d", &adaptives[0]);
  add("adaptive_avg_pool2d", &adaptives[1]);
  add("adaptive_avg_pool3d", &adaptives[2]);
  static const Entry reflections[] = {{"reflection_pad1d", 1, true, true, true, true, false},
                                      {"reflection_pad2d", 2, true, true, true, true, false},
                                      {"reflection_pad3d", 3, true, true, true, true, false}};
  static const Entry replications[] = {{"replication_pad1d", 1, true, true, true, true, false},
                                       {"replication_pad2d", 2, true, true, true, true, false},
                                       {"replication_pad3d", 3, true, true, true, true, false}};
  static const Entry circulars[] = {{"circular_pad", 1, true, true, true, true, true, false},
                                    {"circular_pad", 2, true, true, true, true, true, false},
                                    {"circular_pad", 3, true, true, true, true, true, false}};
  static const char* names[][3] = {{"reflection_pad1d", "reflection_pad2d", "reflection_pad3d"},
                                   {"replication_pad1d", "replication_pad2d", "replication_pad3d"},
                                   {"circular_pad1d", "circular_pad2d", "circular_pad3d"}};
  for (int d = 0; d < 3; d++) {
    add(names[0][d], &reflections[d]);
    add(names[1][d], &replications[d]);
    add(names[2][d], &circulars[d]);
  }
  define("constant_pad_nd(x; pad, value)", constant_pad_forward);
});

}  // namespace
}  // namespace rl
