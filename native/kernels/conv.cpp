// Convolutions as matrix products. Start at `conv_forward`.
//
// The patches under the kernel are copied into the columns of a matrix, a range of output pixels at a time so
// that it stays in the cache, and multiplied with the weights. A kernel of one pixel needs no copy. Images
// and groups are divided over threads; the weights' gradient is summed per thread and then over threads.
#include "conv.h"

#include <memory>

#include "conv_avx512.h"
#include "conv_columns.h"
#include "matmul.h"
#include "workspace.h"

namespace rl {
namespace {

constexpr double TINY = 20000;             // multiply-adds below which packing costs more than it saves
constexpr int64_t COLUMN_BYTES = 1 << 19;  // of the columns held at a time: a part of the second-level cache

template <class F>
void visit_numbers(DType dtype, F&& f) {
  switch (dtype) {
    case DType::u8: return f(TypeTag<uint8_t>{});
    case DType::i8: return f(TypeTag<int8_t>{});
    case DType::i16: return f(TypeTag<int16_t>{});
    case DType::i32: return f(TypeTag<int32_t>{});
    case DType::i64: return f(TypeTag<int64_t>{});
    case DType::f32: return f(TypeTag<float>{});
    case DType::f64: return f(TypeTag<double>{});
    case DType::c64: return f(TypeTag<std::complex<float>>{});
    case DType::c128: return f(TypeTag<std::complex<double>>{});
    default: return;
  }
}

template <class T>
struct Coefficient {
  compute_t<T> zero = compute_t<T>(0), one = compute_t<T>(1);
};

template <class T>
Matrix matrix(const T* data, int64_t rows, int64_t cols, int64_t ld) {
  return {const_cast<T*>(data), rows, cols, ld, 1};
}

// Output pixels whose columns are held at a time.
template <class T>
int64_t pixels_at_a_time(const ConvShape& s) {
  int64_t fit = COLUMN_BYTES / int64_t(sizeof(T)) / std::max<int64_t>(1, s.terms());
  return std::min(s.pixels(), std::max<int64_t>(64, fit / 16 * 16));
}

template <class T>
void fill_rows(T* y, int64_t rows, int64_t pixels, int64_t ld, const T* values) {
  for (int64_t i = 0; i < rows; i++) std::fill_n(y + i * ld, pixels, values[i]);
}

template <class T>
void forward(DType dtype, const ConvShape& s, T* y, const T* x, const T* w, const T* bias) {
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out();
  bool direct = s.pointwise();
  if constexpr (std::is_same_v<T, float>)
    if (!direct && s.work() > TINY && conv_has_avx512(s)) return conv_forward_avx512(s, y, x, w, bias);
  int64_t width = direct && s.batch * s.groups >= num_threads() ? pixels : pixels_at_a_time<T>(s);
  int64_t parts = (pixels + width - 1) / std::max<int64_t>(1, width);
  Coefficient<T> c;
  Workspaces spaces(num_threads(), direct ? 0 : terms * width * int64_t(sizeof(T)));
  divide(s.work(), s.batch * s.groups * parts, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    for (int64_t task = begin; task < end; task++) {
      int64_t image = task / parts, group = image % s.groups;
      int64_t p0 = task % parts * width, p1 = std::min(pixels, p0 + width), n = p1 - p0;
      const T* from = x + image * gin * s.in_pixels();
      T* to = y + image * gout * pixels + p0;
      if (bias) fill_rows(to, gout, n, pixels, bias + group * gout);
      Matrix columns = matrix(from + p0, terms, n, pixels);
      if (!direct) {
        T* scratch = lease.as<T>();
        image_to_columns(s, gin, from, scratch, n, p0, p1);
        columns = matrix(scratch, terms, n, n);
      }
      gemm(dtype, matrix(to, gout, n, pixels), matrix(w + group * gout * terms, gout, terms, terms), columns,
           &c.one, bias ? &c.one : &c.zero);
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
template <class T>
void turn_weights(const ConvShape& s, T* to, const T* w) {
  int64_t size = s.kernel_size(), gin = s.group_in(), gout = s.group_out();
  for (int64_t g = 0; g < s.groups; g++)
    for (int64_t i = 0; i < gin; i++)
      for (int64_t o = 0; o < gout; o++)
        for (int64_t k = 0; k < size; k++) *to++ = w[((g * gout + o) * gin + i) * size + size - 1 - k];
}

template <class T>
void input_gradient(DType dtype, const ConvShape& s, T* gx, const T* gy, const T* w, const T* bias) {
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out();
  int64_t in_pixels = s.in_pixels();
  if (turns_round(s)) {
    if constexpr (std::is_same_v<T, float>) {
      ConvShape other = turned_round(s);
      if (s.work() > TINY && conv_has_avx512(other)) return conv_forward_avx512(other, gx, gy, w, bias, true);
    }
    std::unique_ptr<T[]> turned(new T[size_t(s.out_channels * terms)]);
    turn_weights(s, turned.get(), w);
    return conv_forward(dtype, turned_round(s), gx, gy, turned.get(), bias);
  }
  bool direct = s.pointwise();
  int64_t width = direct ? pixels : pixels_at_a_time<T>(s);
  Coefficient<T> c;
  Workspaces spaces(num_threads(), direct ? 0 : terms * width * int64_t(sizeof(T)));
  divide(s.work(), s.batch * s.groups, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    for (int64_t image = begin; image < end; image++) {
      int64_t group = image % s.groups;
      T* to = gx + image * gin * in_pixels;
      const T* from = gy + image * gout * pixels;
      Matrix weights = matrix(w + group * gout * terms, gout, terms, terms).transposed();
      if (bias) fill_rows(to, gin, in_pixels, in_pixels, bias + group * gin);
      if (direct) {
        gemm(dtype, matrix(to, gin, pixels, pixels), weights, matrix(from, gout, pixels, pixels), &c.one,
             bias ? &c.one : &c.zero);
        continue;
      }
      if (!bias) std::fill_n(to, gin * in_pixels, T(0));
      for (int64_t p0 = 0; p0 < pixels; p0 += width) {
        int64_t n = std::min(width, pixels - p0);
        T* columns = lease.as<T>();
        gemm(dtype, matrix(columns, terms, n, n), weights, matrix(from + p0, gout, n, pixels), &c.one,
             &c.zero);
        columns_to_image(s, gin, to, columns, n, p0, p0 + n);
      }
    }
  });
}

template <class T>
void weight_gradient(DType dtype, const ConvShape& s, T* gw, const T* gy, const T* x) {
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out();
  int64_t weights = s.out_channels * terms;
  bool direct = s.pointwise();
  int64_t width = direct ? pixels : pixels_at_a_time<T>(s);
  // A sum for each range of images; a range is never shorter than one image.
  int64_t ranges = s.work() < THREADED ? 1 : std::min<int64_t>(s.batch, num_threads());
  if (s.batch == 0 || pixels == 0) return std::fill_n(gw, weights, T(0)), void();
  if constexpr (std::is_same_v<T, float>)
    if (!direct && s.work() > TINY && conv_has_avx512(s)) return conv_weight_gradient_avx512(s, gw, gy, x);
  Coefficient<T> c;
  std::unique_ptr<T[]> sums(ranges > 1 ? new T[size_t((ranges - 1) * weights)] : nullptr);
  Workspaces spaces(num_threads(), direct ? 0 : terms * width * int64_t(sizeof(T)));
  auto run = [&](int64_t range) {
    Workspaces::Lease lease(spaces);
    T* sum = range == 0 ? gw : sums.get() + (range - 1) * weights;
    int64_t first = s.batch * range / ranges, last = s.batch * (range + 1) / ranges;
    for (int64_t image = first; image < last; image++)
      for (int64_t group = 0; group < s.groups; group++)
        for (int64_t p0 = 0; p0 < pixels; p0 += width) {
          int64_t n = std::min(width, pixels - p0), at = image * s.groups + group;
          const T* from = x + at * gin * s.in_pixels();
          Matrix columns = matrix(from + p0, terms, n, pixels);
          if (!direct) {
            image_to_columns(s, gin, from, lease.as<T>(), n, p0, p0 + n);
            columns = matrix(lease.as<T>(), terms, n, n);
          }
          gemm(dtype, matrix(sum + group * gout * terms, gout, terms, terms),
               matrix(gy + at * gout * pixels + p0, gout, n, pixels), columns.transposed(), &c.one,
               image == first && p0 == 0 ? &c.zero : &c.one);
        }
  };
  divide(s.work(), ranges, [&](int64_t begin, int64_t end) {
    for (int64_t range = begin; range < end; range++) run(range);
  });
  for (int64_t range = 1; range < ranges; range++) {
    const T* sum = sums.get() + (range - 1) * weights;
    for (int64_t i = 0; i < weights; i++) gw[i] = T(gw[i] + sum[i]);
  }
}

}  // namespace

void conv_forward(DType dtype, const ConvShape& shape, void* y, const void* x, const void* w,
                  const void* bias) {
  visit_numbers(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forward(dtype, shape, static_cast<T*>(y), static_cast<const T*>(x), static_cast<const T*>(w),
            static_cast<const T*>(bias));
  });
}

void conv_input_gradient(DType dtype, const ConvShape& shape, void* gx, const void* gy, const void* w,
                         const void* bias) {
  visit_numbers(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    input_gradient(dtype, shape, static_cast<T*>(gx), static_cast<const T*>(gy), static_cast<const T*>(w),
                   static_cast<const T*>(bias));
  });
}

void conv_weight_gradient(DType dtype, const ConvShape& shape, void* gw, const void* gy, const void* x) {
  visit_numbers(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    weight_gradient(dtype, shape, static_cast<T*>(gw), static_cast<const T*>(gy), static_cast<const T*>(x));
  });
}

void unfold_patches(DType dtype, const ConvShape& s, void* columns, const void* x) {
  visit(dtype, [&](auto tag) {
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
