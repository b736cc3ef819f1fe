// batch_norm and group_norm: statistics per channel or per group of channels, weights per channel.
//
// `Channels` says how the channels of a tensor lie: in planes (channel after channel, each of S contiguous
// elements) or as columns (all channels of one position side by side: S is 1, or the tensor is
// channels_last). Anything else is copied first. Running statistics are updated by a function of its own,
// outside the graph.
#include "../graph/custom.h"
#include "../kernels/workspace.h"
#include "norm_ops.h"
#include "window.h"

namespace rl {
namespace {

struct Channels {
  TensorRef x;
  bool columns;
  int64_t N, C, S;

  // x has at least two dimensions.
  explicit Channels(Tensor* t) : x(share(t)), N(t->size(0)), C(t->size(1)), S(1) {
    for (int d = 2; d < t->ndim; d++) S *= t->size(d);
    columns = innermost(t);
    if (!columns && !t->is_contiguous()) {
      x = contiguous(t);
      columns = S == 1;
    }
  }
  int64_t rows() const { return N * S; }  // of columns
  int64_t elements() const { return N * S; }
  Pieces channel() const { return {N, C * S, S}; }

  // Another tensor of the same sizes, laid out as x is.
  TensorRef alike(Tensor* t) const {
    TensorRef same = cast(t, x->dtype);
    if (std::ranges::equal(same->strides(), x->strides())) return same;
    TensorRef copy = new_strided(x->sizes(), x->strides(), x->dtype, x->device());
    copy_into(copy.get(), same.get());
    return copy;
  }

  // Whether the channels are contiguous and positions follow each other.
  static bool innermost(const Tensor* t) {
    int64_t step = t->size(1);
    if (t->numel == 0) return false;
    if (t->size(1) != 1 && t->stride(1) != 1) return false;
    for (int d = t->ndim - 1; d >= 0; d--) {
      if (d == 1) continue;
      if (t->size(d) != 1 && t->stride(d) != step) return false;
      step *= t->size(d);
    }
    return true;
  }
};

// Per channel, in the compute type: what a loop over columns reads.
struct Coefficient {
  std::vector<char> bytes;
  Coefficient(DType dtype, const std::vector<double>& values) : bytes(values.size() * 8) {
    store_numbers(norm_type(dtype), bytes.data(), values.data(), int64_t(values.size()));
  }
};

double number_at(const TensorRef& t, int64_t i) {
  return t->dtype == DType::f64 ? t->data_as<double>()[i] : double(t->data_as<float>()[i]);
}

using Numbers = std::vector<double>;

int64_t grain_of(int64_t elements) { return std::max<int64_t>(1, GRAIN / std::max<int64_t>(elements, 1)); }

// out = (x - mean) * scale + shift, per channel
// out = (x - mean) * scale + shift, of the channels of `from`, which lies as c.x does.
void apply_channels(const Channels& c, Tensor* out, const char* from, const Numbers& mean,
                    const Numbers& scale, const Numbers& shift) {
  const NormLoops& loops = norm_loops();
  DType dtype = c.x->dtype;
  if (c.columns) {
    Coefficient m(dtype, mean), a(dtype, scale), b(dtype, shift);
    parallel_for(c.rows(), grain_of(c.C), [&](int64_t begin, int64_t end) {
      loops.column_affine(dtype, out->data(), from, c.C, begin, end, m.bytes.data(), a.bytes.data(),
                          b.bytes.data());
    });
    return;
  }
  int64_t size = dtype_size(dtype);
  parallel_for(c.C, grain_of(c.elements()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      size_t k = size_t(i);
      loops.affine(dtype, out->data() + i * c.S * size, from + i * c.S * size, c.channel(), mean[k], scale[k],
                   shift[k]);
    }
  });
}

void channel_moments(const Channels& c, Numbers& mean, Numbers& squares) {
  const NormLoops& loops = norm_loops();
  DType dtype = c.x->dtype;
  int64_t size = dtype_size(dtype);
  parallel_for(c.C, c.columns ? std::max<int64_t>(64, grain_of(c.elements())) : grain_of(c.elements()),
               [&](int64_t begin, int64_t end) {
                 if (c.columns) {
                   loops.column_moments(dtype, c.x->data(), c.rows(), c.C, begin, end, mean.data(),
                                        squares.data());
                   return;
                 }
                 for (int64_t i = begin; i < end; i++) {
                   loops.moments(dtype, c.x->data() + i * c.S * size, c.channel(), &mean[size_t(i)],
                                 &squares[size_t(i)]);
                 }
               });
}

Tensor* channels_input(const char* function, const char* kernel, PyObject* o) {
  Tensor* x = norm_input(function, kernel, o);
  if (x->ndim < 2) {
    failf(PyExc_RuntimeError, "Expected at least 2 dimensions for input tensor but received %d", x->ndim);
  }
  return x;
}

void check_channels(const char* name, const Tensor* t, int64_t channels) {
  if (t && t->numel != channels) {
    failf(PyExc_RuntimeError, "%s should contain %lld elements not %lld", name, (long long)channels,
          (long long)t->numel);
  }
}

Numbers numbers_of(Tensor* t, DType dtype, int64_t n, double otherwise) {
  Numbers result(size_t(n), otherwise);
  if (!t) return result;
  TensorRef values = parameter_values(t, dtype);
  for (int64_t i = 0; i < n; i++) result[size_t(i)] = number_at(values, i);
  return result;
}

TensorRef tensor_of(const Numbers& values, DType type, Device device) {
  int64_t sizes[] = {int64_t(values.size())};
  TensorRef t = new_tensor(sizes, type, device);
  store_numbers(type, t->data(), values.data(), sizes[0]);
  return t;
}

TensorRef empty_statistics(const Tensor* x, int64_t n) {
  int64_t sizes[] = {n};
  return new_tensor(sizes, norm_type(x->dtype), x->device());
}

// Laid out as what is read; `settled` lays it out for the user.
TensorRef result_of(const Channels& c) {
  return new_strided(c.x->sizes(), c.x->strides(), c.x->dtype, c.x->device());
}

// As torch lays out a result: channels_last if x lies so, else contiguous.
TensorRef settled(const Tensor* x, TensorRef result) {
  int64_t strides[MAX_DIMS];
  if (is_channels_last(x)) channels_last_strides(x->sizes(), strides);
  else contiguous_strides(x->sizes(), strides);
  bool same = true;  // but for dimensions of size 1
  for (int d = 0; d < x->ndim; d++) same &= x->size(d) == 1 || result->stride(d) == strides[d];
  Sizes layout(strides, size_t(x->ndim));
  if (same || !x->numel) {
    set_geometry(result.get(), x->sizes(), layout);
    return result;
  }
  TensorRef moved = new_strided(x->sizes(), layout, result->dtype, result->device());
  copy_into(moved.get(), result.get());
  return moved;
}

PyObject* normalise_channels(const Channels& c, const Tensor* given, Tensor* weight, Tensor* bias,
                             const Numbers& mean, const Numbers& var, double eps, bool training) {
  DType dtype = c.x->dtype;
  Numbers scale = numbers_of(weight, dtype, c.C, 1), shift = numbers_of(bias, dtype, c.C, 0),
          rstd(size_t(c.C)), centre = mean;
  for (size_t i = 0; i < rstd.size(); i++) {
    rstd[i] = 1 / std::sqrt(var[i] + eps);
    scale[i] *= rstd[i];
    if (std::isinf(rstd[i])) {  // no variance and no eps: torch's x * scale + (bias - mean * scale) is NaN
      shift[i] -= mean[i] * scale[i];
      centre[i] = 0;
    }
  }
  TensorRef out = result_of(c);
  {
    MaybeNoGil released(c.x->numel);
    apply_channels(c, out.get(), c.x->data(), centre, scale, shift);
  }
  out = settled(given, std::move(out));
  DType type = norm_type(dtype);
  if (!training) {
    TensorRef none = empty_statistics(c.x.get(), 0), nothing = empty_statistics(c.x.get(), 0);
    return tuple_of({out.get(), none.get(), nothing.get()});
  }
  TensorRef m = tensor_of(mean, type, c.x->device()), r = tensor_of(rstd, type, c.x->device());
  TensorRef v = tensor_of(var, type, c.x->device());
  return tuple_of({out.get(), m.get(), r.get(), v.get()});
}

// batch_norm_train(x, weight, bias, running_mean, running_var; eps) -> out, mean, rstd, var. The running
// statistics are not read: the node keeps them, as torch's does.
PyObject* batch_norm_train_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = channels_input("batch_norm", "batch_norm", args[0]);
  Tensor* weight = optional_tensor("batch_norm", "weight", args[1], 2);
  Tensor* bias = optional_tensor("batch_norm", "bias", args[2], 3);
  double eps = eps_argument("batch_norm", args[5]);
  check_channels("weight", weight, x->size(1));
  check_channels("bias", bias, x->size(1));
  check_norm_types("batch_norm", x, {weight, bias});
  check_devices(x, {weight, bias});
  if (x->is_meta()) {
    TensorRef out = empty_like(x, x->dtype), mean = empty_statistics(x, x->size(1));
    return tuple_of({out.get(), mean.get(), mean.get(), mean.get()});
  }
  Channels c(x);
  Numbers mean(size_t(c.C), NAN), var(size_t(c.C), NAN);
  if (x->numel) {
    MaybeNoGil released(x->numel);
    channel_moments(c, mean, var);
    for (double& v : var) v /= double(c.elements());
  }
  return normalise_channels(c, x, weight, bias, mean, var, eps, true);
}

// batch_norm_eval(x, weight, bias, running_mean, running_var; eps) -> out, mean, rstd. The last two are those
// of the batch, which nobody asked for: empty, and kept by the node as torch's keeps them.
PyObject* batch_norm_eval_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* x = channels_input("batch_norm", "batch_norm", args[0]);
  Tensor* weight = optional_tensor("batch_norm", "weight", args[1], 2);
  Tensor* bias = optional_tensor("batch_norm", "bias", args[2], 3);
  Tensor *mean = tensor_argument("batch_norm", args[3]), *var = tensor_argument("batch_norm", args[4]);
  double eps = eps_argument("batch_norm", args[5]);
  check_channels("running_mean", mean, x->size(1));
  check_channels("running_var", var, x->size(1));
  check_channels("weight", weight, x->size(1));
  check_channels("bias", bias, x->size(1));
  check_norm_types("batch_norm", x, {weight, bias});
  check_devices(x, {weight, bias, mean, var});
  if (x->is_meta()) {
    TensorRef out = empty_like(x, x->dtype), mean = empty_statistics(x, 0), rstd = empty_statistics(x, 0);
    return tuple_of({out.get(), mean.get(), rstd.get()});
  }
  Channels c(x);
  return normalise_channels(c, x, weight, bias, numbers_of(mean, x->dtype, c.C, 0),
                            numbers_of(var, x->dtype, c.C, 1), eps, false);
}

// dx = rstd w (g - [mean(g) + xhat mean(g xhat)]), the bracket only while training.
// batch_norm_backward(g, x, mean, spread, weight; eps, training) -> dx, dw, db. spread is rstd while training
// and the running variance otherwise.
PyObject* batch_norm_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  const char* name = "batch_norm";
  Tensor *g = tensor_argument(name, args[0]), *x = channels_input(name, "batch_norm_backward", args[1]);
  Tensor *mean = tensor_argument(name, args[2]), *spread = tensor_argument(name, args[3]);
  Tensor* weight = optional_tensor(name, "weight", args[4], 3);
  bool training = bool_argument(name, "training", args[6]);
  if (!same_sizes(g, x)) fail(PyExc_RuntimeError, "batch_norm: gradient and input differ in size");
  for (Tensor* t : {mean, spread, weight}) check_channels("a statistic", t, x->size(1));
  check_devices(x, {g, mean, spread, weight});
  if (x->is_meta()) {
    TensorRef dx = empty_like(x, x->dtype), dw = empty_statistics(x, x->size(1));
    return tuple_of({dx.get(), dw.get(), dw.get()});
  }
  Channels c(x);
  DType dtype = x->dtype, type = norm_type(dtype);
  TensorRef up = c.alike(g), dx = result_of(c);
  Numbers m = numbers_of(mean, dtype, c.C, 0), r = numbers_of(spread, dtype, c.C, 1);
  double eps = eps_argument(name, args[5]);
  for (size_t k = 0; !training && k < r.size(); k++) r[k] = 1 / std::sqrt(r[k] + eps);
  Numbers a = numbers_of(weight, dtype, c.C, 1), b(size_t(c.C)), shift(size_t(c.C)), sum(size_t(c.C)),
          product(size_t(c.C));
  const NormLoops& loops = norm_loops();
  int64_t size = dtype_size(dtype), grain = grain_of(c.elements());
  Numbers& centre = m;
  auto finish = [&](size_t k) {
    a[k] *= r[k];
    double n = double(c.elements());
    if (training) {
      b[k] = -a[k] * r[k] * r[k] * product[k] / n;
      shift[k] = -a[k] * sum[k] / n;
    }
    product[k] *= r[k];  // the weight's gradient
  };
  {
    MaybeNoGil released(x->numel);
    if (c.columns) {
      parallel_for(c.C, std::max<int64_t>(64, grain), [&](int64_t begin, int64_t end) {
        loops.column_sums(dtype, up->data(), c.x->data(), c.rows(), c.C, begin, end, centre.data(),
                          sum.data(), product.data());
      });
      for (size_t k = 0; k < a.size(); k++) finish(k);
      if (training) {
        Coefficient mc(dtype, m), ac(dtype, a), bc(dtype, b), sc(dtype, shift);
        parallel_for(c.rows(), grain_of(c.C), [&](int64_t begin, int64_t end) {
          loops.column_combine(dtype, dx->data(), up->data(), c.x->data(), c.C, begin, end, mc.bytes.data(),
                               ac.bytes.data(), bc.bytes.data(), sc.bytes.data());
        });
      }
    } else {
      parallel_for(c.C, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          size_t k = size_t(i);
          int64_t at = i * c.S * size;
          loops.sums(dtype, up->data() + at, c.x->data() + at, c.channel(), m[k], &sum[k], &product[k]);
          finish(k);
          if (!training) continue;
          loops.combine(dtype, dx->data() + at, up->data() + at, c.x->data() + at, c.channel(), m[k], a[k],
                        b[k], shift[k]);
        }
      });
    }
    // The input takes no part then, be it infinite.
    if (!training) apply_channels(c, dx.get(), up->data(), Numbers(size_t(c.C)), a, shift);
  }
  if (x->ndim < 4) dx = settled(x, std::move(dx));
  TensorRef dw = tensor_of(product, type, x->device()), db = tensor_of(sum, type, x->device());
  return tuple_of({dx.get(), dw.get(), db.get()});
}

// Group norm of (N, C, ...) in contiguous memory: N * groups blocks of D channels of S elements.
struct Groups {
  int64_t N, C, S = 1, G, D;
  Groups(const Tensor* x, int64_t groups) : N(x->size(0)), C(x->size(1)), G(groups) {
    for (int d = 2; d < x->ndim; d++) S *= x->size(d);
    if (groups < 1)
      failf(PyExc_RuntimeError, "Expected num groups to be greater than 0, got %lld", (long long)groups);
    if (C % groups) {
      fail(PyExc_RuntimeError,
           "Expected number of channels in input to be divisible by num_groups, but got input of "
           "shape " +
               sizes_text(x->sizes()) + " and num_groups=" + std::to_string(groups));
    }
    D = C / groups;
  }
};

// `weight` is what torch shows, whichever it talks about.
void check_vector(const char* name, const Tensor* t, const Tensor* weight, const Tensor* x) {
  if (t && (t->ndim != 1 || t->size(0) != x->size(1))) {
    fail(PyExc_RuntimeError,
         std::string("Expected ") + name +
             " to be a vector of size equal to the number of channels in input, but got " + name +
             " of shape " + (weight ? sizes_text(weight->sizes()) : "[0]") + " and input of shape " +
             sizes_text(x->sizes()));
  }
}

// In x's own layout if that is channels_last, else contiguous.
TensorRef in_layout_of(Tensor* x, TensorRef result) {
  if (x->is_contiguous() || !is_dense(x->sizes(), x->strides()) || x->ndim < 4 || x->stride(1) != 1)
    return result;
  TensorRef copy = new_strided(x->sizes(), x->strides(), result->dtype, x->device());
  if (!x->is_meta()) copy_into(copy.get(), result.get());
  return copy;
}

// Whether the groups of an image are normalised where they lie, by columns. The result lies so too.
bool by_columns(const Tensor* x) {
  return x->ndim >= 4 && !x->is_meta() && !x->is_contiguous() && x->stride(1) == 1 && Channels::innermost(x);
}

// Four numbers for each channel, and the same in the compute type, for each thread.
struct ColumnRoom {
  Workspaces::Lease lease;
  DType type;
  int64_t channels;
  ColumnRoom(Workspaces& spaces, DType type, int64_t channels)
      : lease(spaces), type(type), channels(channels) {}
  static Workspaces spaces(int64_t channels) { return {num_threads(), channels * 64}; }
  double* numbers(int i) const { return lease.as<double>() + i * channels; }
  const void* coefficients(int i) const {
    double* to = numbers(4 + i);
    store_numbers(type, reinterpret_cast<char*>(to), numbers(i), channels);
    return to;
  }
};

// Every image has columns of its own: their moments, of which those of a group are made, then one pass.
void norm_columns(const Groups& s, const Tensor* x, const TensorRef& w, const TensorRef& b, double eps,
                  Tensor* out, Tensor* mean, Tensor* rstd) {
  const NormLoops& loops = norm_loops();
  DType dtype = x->dtype, type = norm_type(dtype);
  int64_t image = s.C * s.S * dtype_size(dtype), size = dtype_size(type);
  Workspaces spaces = ColumnRoom::spaces(s.C);
  MaybeNoGil released(x->numel);
  divide(double(x->numel), s.N, [&](int64_t begin, int64_t end) {
    ColumnRoom room(spaces, type, s.C);
    double *centre = room.numbers(0), *scale = room.numbers(1), *shift = room.numbers(2),
           *squares = room.numbers(3);
    for (int64_t n = begin; n < end; n++) {
      const char* from = x->data() + n * image;
      loops.column_moments(dtype, from, s.S, s.C, 0, s.C, centre, squares);
      for (int64_t group = 0; group < s.G; group++) {
        double m = 0, total = 0;
        for (int64_t k = group * s.D; k < (group + 1) * s.D; k++) m += centre[k] / double(s.D);
        for (int64_t k = group * s.D; k < (group + 1) * s.D; k++) {
          double away = centre[k] - m;
          total += squares[k] + double(s.S) * away * away;
        }
        double inverse = 1 / std::sqrt(total / double(s.D * s.S) + eps);
        store_numbers(type, mean->data() + (n * s.G + group) * size, &m, 1);
        store_numbers(type, rstd->data() + (n * s.G + group) * size, &inverse, 1);
        for (int64_t k = group * s.D; k < (group + 1) * s.D; k++) {
          centre[k] = m;
          scale[k] = inverse * (w ? number_at(w, k) : 1);
          shift[k] = b ? number_at(b, k) : 0;
        }
      }
      loops.column_affine(dtype, out->data() + n * image, from, s.C, 0, s.S, room.coefficients(0),
                          room.coefficients(1), room.coefficients(2));
    }
  });
}

// `sum` and `product` are of every channel of every image.
void norm_columns_backward(const Groups& s, const Tensor* x, const TensorRef& up, const TensorRef& mean,
                           const TensorRef& rstd, const TensorRef& w, Tensor* dx, Numbers& sum,
                           Numbers& product) {
  const NormLoops& loops = norm_loops();
  DType dtype = x->dtype;
  int64_t image = s.C * s.S * dtype_size(dtype);
  Workspaces spaces = ColumnRoom::spaces(s.C);
  divide(double(x->numel), s.N, [&](int64_t begin, int64_t end) {
    ColumnRoom room(spaces, norm_type(dtype), s.C);
    double *centre = room.numbers(0), *a = room.numbers(1), *b = room.numbers(2), *c = room.numbers(3);
    for (int64_t n = begin; n < end; n++) {
      const char *from = x->data() + n * image, *g = up->data() + n * image;
      double *sums = sum.data() + n * s.C, *products = product.data() + n * s.C;
      for (int64_t k = 0; k < s.C; k++) centre[k] = number_at(mean, n * s.G + k / s.D);
      loops.column_sums(dtype, g, from, s.S, s.C, 0, s.C, centre, sums, products);
      for (int64_t group = 0; group < s.G; group++) {
        double inverse = number_at(rstd, n * s.G + group), all = 0, aligned = 0;
        for (int64_t k = group * s.D; k < (group + 1) * s.D; k++) {
          double factor = w ? number_at(w, k) : 1;
          all += factor * sums[k];
          aligned += factor * products[k];
          products[k] *= inverse;
          a[k] = factor * inverse;
        }
        double count = double(s.D * s.S);
        for (int64_t k = group * s.D; k < (group + 1) * s.D; k++) {
          b[k] = -inverse * inverse * inverse * aligned / count;
          c[k] = -inverse * all / count;
        }
      }
      loops.column_combine(dtype, dx->data() + n * image, g, from, s.C, 0, s.S, room.coefficients(0),
                           room.coefficients(1), room.coefficients(2), room.coefficients(3));
    }
  });
}

// native_group_norm(x, weight, bias; groups, eps) -> out, mean, rstd
PyObject* group_norm_forward(const Primitive&, PyObject* const* args, Tensor*) {
  const char* name = "group_norm";
  Tensor* x = tensor_argument(name, args[0]);
  if (x->ndim < 2) {
    failf(PyExc_RuntimeError, "Expected at least 2 dimensions for input tensor but received %d", x->ndim);
  }
  Tensor* weight = optional_tensor(name, "weight", args[1], 3);
  Tensor* bias = optional_tensor(name, "bias", args[2], 4);
  Groups s(x, int_argument(name, "num_groups", args[3]));
  check_vector("weight", weight, weight, x);
  check_vector("bias", bias, weight, x);
  check_norm_types("GroupNormKernelImpl", x, {weight, bias});
  check_devices(x, {weight, bias});
  double eps = eps_argument(name, args[4]);
  DType dtype = x->dtype, type = norm_type(dtype);
  int64_t sizes[] = {s.N, s.G};
  TensorRef mean = new_tensor(sizes, type, x->device()), rstd = new_tensor(sizes, type, x->device());
  if (by_columns(x)) {
    TensorRef out = new_strided(x->sizes(), x->strides(), dtype, x->device());
    norm_columns(s, x, parameter_values(weight, dtype), parameter_values(bias, dtype), eps, out.get(),
                 mean.get(), rstd.get());
    return tuple_of({out.get(), mean.get(), rstd.get()});
  }
  TensorRef out = new_tensor(x->sizes(), dtype, x->device());
  if (!x->is_meta()) {
    TensorRef from = contiguous(x), w = parameter_values(weight, dtype), b = parameter_values(bias, dtype);
    if (s.S == 1) {
      run_norm_rows({dtype, out->data(), mean->data(), rstd->data(), from->data(), data_or_null(w),
                     data_or_null(b), s.D, s.G, eps},
                    s.N * s.G);
    } else {
      MaybeNoGil released(x->numel);
      const NormLoops& loops = norm_loops();
      int64_t n = s.D * s.S, size = dtype_size(dtype);
      parallel_for(s.N * s.G, grain_of(n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++) {
          double m, squares;
          loops.moments(dtype, from->data() + r * n * size, {1, 0, n}, &m, &squares);
          double scale = 1 / std::sqrt(squares / double(n) + eps);
          store_numbers(type, mean->data() + r * dtype_size(type), &m, 1);
          store_numbers(type, rstd->data() + r * dtype_size(type), &scale, 1);
          for (int64_t d = 0; d < s.D; d++) {
            int64_t channel = r % s.G * s.D + d, at = (r * n + d * s.S) * size;
            loops.affine(dtype, out->data() + at, from->data() + at, {1, 0, s.S}, m,
                         scale * (w ? number_at(w, channel) : 1), b ? number_at(b, channel) : 0);
          }
        }
      });
    }
  }
  out = in_layout_of(x, out);
  return tuple_of({out.get(), mean.get(), rstd.get()});
}

// native_group_norm_backward(g, x, mean, rstd, weight; groups, eps) -> dx, dw, db
PyObject* group_norm_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  const char* name = "group_norm";
  Tensor *g = tensor_argument(name, args[0]),
         *x = channels_input(name, "GroupNormBackwardKernelImpl", args[1]);
  Tensor *mean = tensor_argument(name, args[2]), *rstd = tensor_argument(name, args[3]);
  Tensor* weight = optional_tensor(name, "weight", args[4], 3);
  Groups s(x, int_argument(name, "num_groups", args[5]));
  DType dtype = x->dtype, type = norm_type(dtype);
  check_vector("weight", weight, weight, x);
  check_devices(x, {g, mean, rstd, weight});
  if (!same_sizes(g, x)) fail(PyExc_RuntimeError, "group_norm: gradient and input differ in size");
  for (Tensor* t : {mean, rstd}) {
    if (t->numel != s.N * s.G || t->dtype != type || !t->is_contiguous()) {
      fail(PyExc_RuntimeError, "the gradient of a norm needs the statistics of its forward pass");
    }
  }
  bool columns = by_columns(x);
  TensorRef dx = columns ? new_strided(x->sizes(), x->strides(), dtype, x->device())
                         : new_tensor(x->sizes(), dtype, x->device());
  TensorRef dw = empty_statistics(x, s.C), db = empty_statistics(x, s.C);
  if (x->is_meta()) return tuple_of({dx.get(), dw.get(), db.get()});
  TensorRef from = columns ? share(x) : contiguous(x),
            up = columns ? Channels(x).alike(g) : contiguous(cast(g, dtype).get()),
            w = parameter_values(weight, dtype);
  TensorRef centre = share(mean), scale = share(rstd);
  if (s.S == 1 && !columns) {
    run_norm_rows_backward(
        {dtype, dx->data(), up->data(), from->data(), mean->data(), rstd->data(), data_or_null(w), s.D, s.G},
        s.N * s.G, dw.get(), db.get());
  } else {
    Numbers sum(size_t(s.N * s.C)), product(size_t(s.N * s.C));
    MaybeNoGil released(x->numel);
    const NormLoops& loops = norm_loops();
    int64_t n = s.D * s.S, size = dtype_size(dtype);
    if (columns) norm_columns_backward(s, x, up, centre, scale, w, dx.get(), sum, product);
    else
      parallel_for(s.N * s.G, grain_of(n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++) {
          double m = number_at(centre, r), inverse = number_at(scale, r), all = 0, aligned = 0;
          for (int64_t d = 0; d < s.D; d++) {
            size_t k = size_t(r * s.D + d);
            int64_t at = (r * n + d * s.S) * size;
            double factor = w ? number_at(w, r % s.G * s.D + d) : 1;
            loops.sums(dtype, up->data() + at, from->data() + at, {1, 0, s.S}, m, &sum[k], &product[k]);
            all += factor * sum[k];
            aligned += factor * product[k];
            product[k] *= inverse;
          }
          for (int64_t d = 0; d < s.D; d++) {
            int64_t at = (r * n + d * s.S) * size;
            double factor = w ? number_at(w, r % s.G * s.D + d) : 1;
            loops.combine(dtype, dx->data() + at, up->data() + at, from->data() + at, {1, 0, s.S}, m,
                          factor * inverse, -inverse * inverse * inverse * aligned / double(n),
                          -inverse * all / double(n));
          }
        }
      });
    for (int64_t i = s.C; i < s.N * s.C; i++) {
      sum[size_t(i % s.C)] += sum[size_t(i)];
      product[size_t(i % s.C)] += product[size_t(i)];
    }
    if (!s.N) {
      sum.assign(size_t(s.C), 0);
      product.assign(size_t(s.C), 0);
    }
    store_numbers(type, dw->data(), product.data(), s.C);
    store_numbers(type, db->data(), sum.data(), s.C);
  }
  if (!columns) dx = in_layout_of(x, dx);
  return tuple_of({dx.get(), dw.get(), db.get()});
}

// running = (1 - momentum) * running + momentum * factor * now, in double precision; where both lie in order
// in memory as floats, at once.
void move_towards(Tensor* running, Tensor* now, double momentum, double factor) {
  auto moved = [=](double from, double to) { return (1 - momentum) * from + momentum * factor * to; };
  if (running->dtype == DType::f32 && now->dtype == DType::f32 && running->is_contiguous() &&
      now->is_contiguous() && !running->is_lazy() && !now->is_lazy()) {
    float* to = running->data_as<float>();
    const float* from = now->data_as<float>();
    for (int64_t i = 0; i < running->numel; i++) to[i] = float(moved(to[i], from[i]));
    return;
  }
  TensorRef target = contiguous(cast(now, DType::f64).get());
  TensorRef wide = contiguous(cast(running, DType::f64).get());
  if (wide.get() == running) wide = clone(running);
  double *to = wide->data_as<double>(), *from = target->data_as<double>();
  for (int64_t i = 0; i < wide->numel; i++) to[i] = moved(to[i], from[i]);
  copy_into(running, wide.get());
}

}  // namespace

void update_running_statistics(Tensor* running_mean, Tensor* running_var, Tensor* mean, Tensor* var,
                               double count, double momentum) {
  Tensor *running[] = {running_mean, running_var}, *now[] = {mean, var};
  for (Tensor* each : running) announce_write(each);  // who is told may change them
  for (int k = 0; k < 2; k++) {
    if (running[k]->numel != now[k]->numel || !is_floating(running[k]->dtype) || !is_floating(now[k]->dtype))
      fail(PyExc_RuntimeError, "running statistics must be floating and as many as the channels");
    check_devices(running[k], {now[k]});
  }
  for (int k = 0; k < 2; k++) {
    // A batch's variance estimates that of all data: divided by one less than its elements.
    if (!running[k]->is_meta() && running[k]->numel)
      move_towards(running[k], now[k], momentum, k ? count / (count - 1) : 1);
  }
}

namespace {

// update_running_statistics(running_mean, running_var, mean, var, count, momentum)
PyObject* update_running(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 6)
      failf(PyExc_TypeError, "update_running_statistics() takes 6 arguments (%zd given)", count);
    for (int i = 0; i < 4; i++) {
      if (!is_tensor(args[i])) failf(PyExc_TypeError, "update_running_statistics() takes four tensors");
    }
    double elements = PyFloat_AsDouble(args[4]), momentum = PyFloat_AsDouble(args[5]);
    if (PyErr_Occurred()) throw PythonError{};
    update_running_statistics(as_tensor(args[0]), as_tensor(args[1]), as_tensor(args[2]), as_tensor(args[3]),
                              elements, momentum);
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"update_running_statistics", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(update_running)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  define("batch_norm_train(x, weight, bias, running_mean, running_var; eps) -> out, mean, rstd, var",
         batch_norm_train_forward);
  define("batch_norm_eval(x, weight, bias, running_mean, running_var; eps) -> out, mean, rstd",
         batch_norm_eval_forward);
  define("batch_norm_backward(g, x, mean, spread, weight; eps, training) -> dx, dw, db",
         batch_norm_backward_forward);
  define("native_group_norm(x, weight, bias; groups, eps) -> out, mean, rstd", group_norm_forward);
  define("native_group_norm_backward(g, x, mean, rstd, weight; groups, eps) -> dx, dw, db",
         group_norm_backward_forward);
  PyModule_AddFunctions(module, functions);
});

}  // namespace
}  // namespace rl
