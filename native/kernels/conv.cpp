// Convolutions as matrix products. Start at `conv_forward`.
//
// The patches under the kernel are copied into the columns of a matrix, a range of output pixels at a time so
// that it stays in the cache, and multiplied with the weights. A kernel of one pixel needs no copy. Images
// and groups are divided over threads; the weights' gradient is summed per thread and then over threads.
// Depthwise convolutions have nothing to multiply with and go their own way (depthwise.h).
#include "conv.h"

#include <memory>
#include <utility>

#include "conv_avx512.h"
#include "conv_bf16.h"
#include "conv_columns.h"
#include "depthwise.h"
#include "gemm_bf16.h"
#include "matmul.h"
#include "workspace.h"

namespace rl {
namespace {

constexpr double TINY = 20000;             // multiply-adds below which packing costs more than it saves
constexpr int64_t COLUMN_BYTES = 1 << 19;  // of the columns held at a time: a part of the second-level cache

template <class F>
void visit_numbers(DType dtype, F&& f) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_reduced_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

// Most of what follows moves elements, and has one form for each size of them.
template <int BYTES>
struct alignas(BYTES < 8 ? BYTES : 8) Word {
  char bytes[BYTES];
};

template <class F>
void visit_words(DType dtype, F&& f) {
  switch (dtype_size(dtype)) {
    case 1: return f(TypeTag<Word<1>>{});
    case 2: return f(TypeTag<Word<2>>{});
    case 4: return f(TypeTag<Word<4>>{});
    case 8: return f(TypeTag<Word<8>>{});
    default: return f(TypeTag<Word<16>>{});
  }
}

// 0 and 1 as gemm takes them.
struct Coefficients {
  alignas(16) char zero[16] = {}, one[16] = {};
  explicit Coefficients(DType dtype) {
    visit_numbers(dtype, [&](auto tag) {
      typename decltype(tag)::type value(1);
      std::memcpy(one, &value, sizeof value);
    });
  }
};

// Operands as bytes; `item` is the size of an element.
struct Operands {
  DType dtype;
  int64_t item = dtype_size(dtype);
  Coefficients factor{dtype};

  Matrix matrix(const char* data, int64_t rows, int64_t cols, int64_t ld) const {
    return {const_cast<char*>(data), rows, cols, ld, 1};
  }
  // Output pixels whose columns are held at a time.
  int64_t pixels_at_a_time(const ConvShape& s) const {
    int64_t fit = COLUMN_BYTES / item / std::max<int64_t>(1, s.terms());
    return std::min(s.pixels(), std::max<int64_t>(64, fit / 16 * 16));
  }
  void fill_rows(char* y, int64_t rows, int64_t pixels, int64_t ld, const char* values) const {
    visit_words(dtype, [&](auto tag) {
      using W = typename decltype(tag)::type;
      for (int64_t i = 0; i < rows; i++)
        std::fill_n(reinterpret_cast<W*>(y) + i * ld, pixels, reinterpret_cast<const W*>(values)[i]);
    });
  }
  void to_columns(const ConvShape& s, int64_t channels, const char* x, char* columns, int64_t p0,
                  int64_t p1) const {
    visit_words(dtype, [&](auto tag) {
      using W = typename decltype(tag)::type;
      image_to_columns(s, channels, reinterpret_cast<const W*>(x), reinterpret_cast<W*>(columns), p1 - p0, p0,
                       p1);
    });
  }
  void to_image(const ConvShape& s, int64_t channels, char* x, const char* columns, int64_t p0,
                int64_t p1) const {
    visit_numbers(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      columns_to_image(s, channels, reinterpret_cast<T*>(x), reinterpret_cast<const T*>(columns), p1 - p0, p0,
                       p1);
    });
  }
};

const float* floats(const char* p) { return reinterpret_cast<const float*>(p); }
float* floats(char* p) { return reinterpret_cast<float*>(p); }

void forward(const Operands& of, const ConvShape& s, char* y, const char* x, const char* w,
             const char* bias) {
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out(), item = of.item;
  bool direct = s.pointwise();
  if (of.dtype == DType::f32 && !direct && s.work() > TINY && conv_has_avx512(s))
    return conv_forward_avx512(s, floats(y), floats(x), floats(w), floats(bias));
  if (depthwise_fits(of.dtype, s)) return depthwise_forward(of.dtype, s, y, x, w, bias);
  int64_t width = direct && s.batch * s.groups >= num_threads() ? pixels : of.pixels_at_a_time(s);
  int64_t parts = (pixels + width - 1) / std::max<int64_t>(1, width);
  Workspaces spaces(num_threads(), direct ? 0 : terms * width * item);
  divide(s.work(), s.batch * s.groups * parts, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    for (int64_t task = begin; task < end; task++) {
      int64_t image = task / parts, group = image % s.groups;
      int64_t p0 = task % parts * width, p1 = std::min(pixels, p0 + width), n = p1 - p0;
      const char* from = x + image * gin * s.in_pixels() * item;
      char* to = y + (image * gout * pixels + p0) * item;
      if (bias) of.fill_rows(to, gout, n, pixels, bias + group * gout * item);
      Matrix columns = of.matrix(from + p0 * item, terms, n, pixels);
      if (!direct) {
        char* scratch = lease.as<char>();
        of.to_columns(s, gin, from, scratch, p0, p1);
        columns = of.matrix(scratch, terms, n, n);
      }
      gemm(of.dtype, of.matrix(to, gout, n, pixels),
           of.matrix(w + group * gout * terms * item, gout, terms, terms), columns, of.factor.one,
           bias ? of.factor.one : of.factor.zero);
    }
  });
}

// For stride 1 the gradient of the input is the convolution of the gradient with the weights turned round.
bool turns_round(const ConvShape& s) {
  for (int d = 0; d < 3; d++)
    // The last condition fails for a transposed convolution with output_padding.
    if (s.stride[d] != 1 || s.dilation[d] * (s.kernel[d] - 1) < s.padding[d] ||
        s.in[d] != s.out[d] + s.dilation[d] * (s.kernel[d] - 1) - 2 * s.padding[d])
      return false;
  return !s.pointwise();
}
// Of zeros, when it is turned round: that is more work than the sums of overlapping patches.
bool has_wide_border(const ConvShape& s) { return s.in_pixels() > 2 * s.pixels(); }

ConvShape turned_round(const ConvShape& s) {
  ConvShape t = s;
  std::swap(t.in_channels, t.out_channels);
  for (int d = 0; d < 3; d++) {
    std::swap(t.in[d], t.out[d]);
    t.padding[d] = s.dilation[d] * (s.kernel[d] - 1) - s.padding[d];
  }
  return t;
}

// (group, out, in, kernel) to (group, in, out, kernel reversed).
template <class W>
void turn_weights(const ConvShape& s, W* to, const W* w) {
  int64_t size = s.kernel_size(), gin = s.group_in(), gout = s.group_out();
  for (int64_t g = 0; g < s.groups; g++)
    for (int64_t i = 0; i < gin; i++)
      for (int64_t o = 0; o < gout; o++)
        for (int64_t k = 0; k < size; k++) *to++ = w[((g * gout + o) * gin + i) * size + size - 1 - k];
}

bool is_finite(DType dtype, const char* w, int64_t n) {
  bool finite = true;
  visit_numbers(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) {
      const T* numbers = reinterpret_cast<const T*>(w);
      for (int64_t i = 0; i < n; i++) finite &= T(numbers[i] - numbers[i]) == T(0);
    }
  });
  return finite;
}

// Turned round, the zeros around gy make NaN of weights that are not finite. Whether there are any is asked
// before, of the weights, or afterwards, of the result gx: whichever is less. False if there are.
template <class Ask, class Turn>
bool turned_if_finite(const ConvShape& s, DType dtype, const void* gx, Ask weights_are_finite, Turn turn) {
  int64_t weights = s.out_channels * s.terms(), results = s.batch * s.in_channels * s.in_pixels();
  bool first = weights <= results;
  if (first && !weights_are_finite(weights)) return false;
  turn();
  return first || is_finite(dtype, static_cast<const char*>(gx), results);
}

void turned_gradient(const Operands& of, const ConvShape& s, char* gx, const char* gy, const char* w,
                     const char* bias) {
  ConvShape other = turned_round(s);
  if (of.dtype == DType::f32 && s.work() > TINY && conv_has_avx512(other))
    return conv_forward_avx512(other, floats(gx), floats(gy), floats(w), floats(bias), true);
  if (depthwise_fits(of.dtype, s)) return depthwise_input_gradient(of.dtype, s, gx, gy, w, bias);
  Workspaces room(1, s.out_channels * s.terms() * of.item);
  Workspaces::Lease turned(room);
  visit_words(of.dtype, [&](auto tag) {
    using W = typename decltype(tag)::type;
    turn_weights(s, turned.as<W>(), reinterpret_cast<const W*>(w));
  });
  forward(of, other, gx, gy, turned.as<char>(), bias);
}

// Images of one output pixel: one product for the whole batch.
void input_gradient_of_pixels(const Operands& of, const ConvShape& s, char* gx, const char* gy, const char* w,
                              const char* bias) {
  int64_t terms = s.terms(), image = s.in_channels * s.in_pixels() * of.item;
  auto multiply = [&](char* to, bool add) {
    gemm(of.dtype, of.matrix(to, s.batch, terms, terms),
         of.matrix(gy, s.batch, s.out_channels, s.out_channels), of.matrix(w, s.out_channels, terms, terms),
         of.factor.one, add ? of.factor.one : of.factor.zero);
  };
  bool is_patch = true;  // the one patch is the image as it lies
  for (int d = 0; d < 3; d++) is_patch &= s.in[d] == s.kernel[d] && s.padding[d] == 0 && s.dilation[d] == 1;
  if (is_patch) {
    for (int64_t n = 0; bias && n < s.batch; n++)
      of.fill_rows(gx + n * image, s.in_channels, s.in_pixels(), s.in_pixels(), bias);
    return multiply(gx, bias);
  }
  Workspaces room(1, s.batch * terms * of.item);
  Workspaces::Lease lease(room);
  char* columns = lease.as<char>();
  multiply(columns, false);
  divide(double(s.batch) * double(terms), s.batch, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; n++) {
      char* to = gx + n * image;
      if (bias) of.fill_rows(to, s.in_channels, s.in_pixels(), s.in_pixels(), bias);
      else std::memset(to, 0, size_t(image));
      of.to_image(s, s.in_channels, to, columns + n * terms * of.item, 0, 1);
    }
  });
}

void input_gradient(const Operands& of, const ConvShape& s, char* gx, const char* gy, const char* w,
                    const char* bias) {
  if (s.pixels() == 1 && s.groups == 1 && s.batch > 1 && !s.pointwise())
    return input_gradient_of_pixels(of, s, gx, gy, w, bias);
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out(), item = of.item;
  int64_t in_pixels = s.in_pixels();
  if (turns_round(s) && (!has_wide_border(s) || depthwise_fits(of.dtype, s))) {
    auto ask = [&](int64_t weights) { return is_finite(of.dtype, w, weights); };
    if (turned_if_finite(s, of.dtype, gx, ask, [&] { turned_gradient(of, s, gx, gy, w, bias); })) return;
  } else if (!s.depthwise() || is_finite(of.dtype, w, s.out_channels * s.terms())) {  // zeros lie between
    if (of.dtype == DType::f32 && s.work() > TINY &&
        depthwise_input_gradient_avx512(s, floats(gx), floats(gy), floats(w), floats(bias)))
      return;
    if (depthwise_fits(of.dtype, s)) return depthwise_input_gradient(of.dtype, s, gx, gy, w, bias);
  }
  if (of.dtype == DType::f32 && s.work() > TINY && conv_has_phases(s)) {
    auto ask = [&](int64_t weights) { return is_finite(of.dtype, w, weights); };
    bool done = false;
    auto compute = [&] {
      done = input_gradient_by_phases(s, floats(gx), floats(gy), floats(w), floats(bias));
    };
    if (turned_if_finite(s, of.dtype, gx, ask, compute) && done) return;
  }
  bool direct = s.pointwise();
  int64_t width = direct ? pixels : of.pixels_at_a_time(s);
  Workspaces spaces(num_threads(), direct ? 0 : terms * width * item);
  divide(s.work(), s.batch * s.groups, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    for (int64_t image = begin; image < end; image++) {
      int64_t group = image % s.groups;
      char* to = gx + image * gin * in_pixels * item;
      const char* from = gy + image * gout * pixels * item;
      Matrix weights = of.matrix(w + group * gout * terms * item, gout, terms, terms).transposed();
      if (bias) of.fill_rows(to, gin, in_pixels, in_pixels, bias + group * gin * item);
      if (direct) {
        gemm(of.dtype, of.matrix(to, gin, pixels, pixels), weights, of.matrix(from, gout, pixels, pixels),
             of.factor.one, bias ? of.factor.one : of.factor.zero);
        continue;
      }
      if (!bias) std::memset(to, 0, size_t(gin * in_pixels * item));
      for (int64_t p0 = 0; p0 < pixels; p0 += width) {
        int64_t n = std::min(width, pixels - p0);
        char* columns = lease.as<char>();
        gemm(of.dtype, of.matrix(columns, terms, n, n), weights, of.matrix(from + p0 * item, gout, n, pixels),
             of.factor.one, of.factor.zero);
        of.to_image(s, gin, to, columns, p0, p0 + n);
      }
    }
  });
}

void weight_gradient(const Operands& of, const ConvShape& s, char* gw, const char* gy, const char* x) {
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out(), item = of.item;
  int64_t weights = s.out_channels * terms;
  bool direct = s.pointwise();
  int64_t width = direct ? pixels : of.pixels_at_a_time(s);
  // A sum for each range of images; a range is never shorter than one image.
  int64_t ranges = s.work() < THREADED ? 1 : std::min<int64_t>(s.batch, num_threads());
  if (s.batch == 0 || pixels == 0) return std::memset(gw, 0, size_t(weights * item)), void();
  if (of.dtype == DType::f32 && !direct && s.work() > TINY && conv_has_avx512(s))
    return conv_weight_gradient_avx512(s, floats(gw), floats(gy), floats(x));
  if (depthwise_fits(of.dtype, s)) return depthwise_weight_gradient(of.dtype, s, gw, gy, x);
  Workspaces sums(1, (ranges - 1) * weights * item);
  Workspaces::Lease others(sums);
  Workspaces spaces(num_threads(), direct ? 0 : terms * width * item);
  auto run = [&](int64_t range) {
    Workspaces::Lease lease(spaces);
    char* sum = range == 0 ? gw : others.as<char>() + (range - 1) * weights * item;
    int64_t first = s.batch * range / ranges, last = s.batch * (range + 1) / ranges;
    for (int64_t image = first; image < last; image++)
      for (int64_t group = 0; group < s.groups; group++)
        for (int64_t p0 = 0; p0 < pixels; p0 += width) {
          int64_t n = std::min(width, pixels - p0), at = image * s.groups + group;
          const char* from = x + at * gin * s.in_pixels() * item;
          Matrix columns = of.matrix(from + p0 * item, terms, n, pixels);
          if (!direct) {
            of.to_columns(s, gin, from, lease.as<char>(), p0, p0 + n);
            columns = of.matrix(lease.as<char>(), terms, n, n);
          }
          gemm(of.dtype, of.matrix(sum + group * gout * terms * item, gout, terms, terms),
               of.matrix(gy + (at * gout * pixels + p0) * item, gout, n, pixels), columns.transposed(),
               of.factor.one, image == first && p0 == 0 ? of.factor.zero : of.factor.one);
        }
  };
  divide(s.work(), ranges, [&](int64_t begin, int64_t end) {
    for (int64_t range = begin; range < end; range++) run(range);
  });
  visit_numbers(of.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* total = reinterpret_cast<T*>(gw);
    for (int64_t range = 1; range < ranges; range++) {
      const T* sum = others.as<T>() + (range - 1) * weights;
      for (int64_t i = 0; i < weights; i++) total[i] = T(total[i] + sum[i]);
    }
  });
}

// ---- bfloat16, with results of float

const uint16_t* halves(const void* p) { return static_cast<const uint16_t*>(p); }

bool is_finite_bf16(const uint16_t* w, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n; i++) finite &= (w[i] & 0x7f80) != 0x7f80;
  return finite;
}

// As `input_gradient`, without weights turned by themselves.
void input_gradient_bf16(const ConvShape& s, float* gx, const uint16_t* gy, const uint16_t* w,
                         const float* bias) {
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out();
  int64_t in_pixels = s.in_pixels();
  if (s.pointwise() || (turns_round(s) && !has_wide_border(s))) {
    ConvShape other = turned_round(s);
    auto ask = [&](int64_t weights) { return is_finite_bf16(w, weights); };
    auto turn = [&] { conv_forward_bf16(other, gx, gy, w, bias, true); };
    if (conv_has_avx512(other) && turned_if_finite(s, DType::f32, gx, ask, turn)) return;
  }
  Operands of{DType::f32};
  int64_t width = of.pixels_at_a_time(s);
  Workspaces spaces(num_threads(), terms * width * of.item);
  divide(s.work(), s.batch * s.groups, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    float* columns = lease.as<float>();
    for (int64_t image = begin; image < end; image++) {
      int64_t group = image % s.groups;
      float* to = gx + image * gin * in_pixels;
      if (bias)
        of.fill_rows(reinterpret_cast<char*>(to), gin, in_pixels, in_pixels,
                     reinterpret_cast<const char*>(bias + group * gin));
      else std::memset(to, 0, size_t(gin * in_pixels) * sizeof(float));
      auto* weights = const_cast<uint16_t*>(w + group * gout * terms);
      for (int64_t p0 = 0; p0 < pixels; p0 += width) {
        int64_t n = std::min(width, pixels - p0);
        auto* from = const_cast<uint16_t*>(gy + image * gout * pixels + p0);
        gemm_bf16(columns, {weights, terms, gout, 1, terms}, {from, gout, n, pixels, 1});
        columns_to_image(s, gin, to, columns, n, p0, p0 + n);
      }
    }
  });
}

}  // namespace

void conv_forward(DType dtype, const ConvShape& shape, void* y, const void* x, const void* w,
                  const void* bias) {
  if (dtype == DType::bf16)
    return conv_forward_bf16(shape, static_cast<float*>(y), halves(x), halves(w),
                             static_cast<const float*>(bias));
  forward({dtype}, shape, static_cast<char*>(y), static_cast<const char*>(x), static_cast<const char*>(w),
          static_cast<const char*>(bias));
}

void conv_input_gradient(DType dtype, const ConvShape& shape, void* gx, const void* gy, const void* w,
                         const void* bias) {
  if (dtype == DType::bf16)
    return input_gradient_bf16(shape, static_cast<float*>(gx), halves(gy), halves(w),
                               static_cast<const float*>(bias));
  input_gradient({dtype}, shape, static_cast<char*>(gx), static_cast<const char*>(gy),
                 static_cast<const char*>(w), static_cast<const char*>(bias));
}

void conv_weight_gradient(DType dtype, const ConvShape& shape, void* gw, const void* gy, const void* x) {
  if (dtype == DType::bf16)
    return conv_weight_gradient_bf16(shape, static_cast<float*>(gw), halves(gy), halves(x));
  weight_gradient({dtype}, shape, static_cast<char*>(gw), static_cast<const char*>(gy),
                  static_cast<const char*>(x));
}

void unfold_patches(DType dtype, const ConvShape& s, void* columns, const void* x) {
  visit_words(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t image = s.in_channels * s.in_pixels(), block = s.in_channels * s.kernel_size() * s.pixels();
    divide(double(s.batch) * double(block), s.batch, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; n++)
        image_to_columns(s, s.in_channels, static_cast<const T*>(x) + n * image,
                         static_cast<T*>(columns) + n * block, s.pixels(), 0, s.pixels());
    });
  });
}

void fold_patches(DType dtype, const ConvShape& s, void* x, const void* columns) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t image = s.in_channels * s.in_pixels(), block = s.in_channels * s.kernel_size() * s.pixels();
    divide(double(s.batch) * double(block), s.batch, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; n++) {
        T* to = static_cast<T*>(x) + n * image;
        std::fill_n(to, image, T(0));
        columns_to_image(s, s.in_channels, to, static_cast<const T*>(columns) + n * block, s.pixels(), 0,
                         s.pixels());
      }
    });
  });
}

}  // namespace rl
