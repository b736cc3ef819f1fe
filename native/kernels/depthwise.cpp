// Depthwise convolutions, plane by plane. Start at `Copied`, the image that the loops read.
//
// The columns of a padded row are sorted by their remainder modulo the stride, so that what consecutive
// outputs are made of lies side by side whatever the stride. The gradient of the input is the convolution of
// the gradient, its elements as far apart as the strides say, with the weights turned round.
#include "depthwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "elementwise.h"
#include "workspace.h"

namespace rl {

const DepthwiseLoops& fastest_depthwise_loops() {
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = cpu_capability()[0] == 'A';
  if (has_avx2) return avx2::depthwise_loops;
#endif
  return baseline::depthwise_loops;
}

namespace {

// A plane in room of its own. Element (z, y, c) of `from` becomes (place[0] + z * apart[0], ...) of a plane
// with size[] elements, which is convolved with the kernel at steps of `stride`. What would lie outside is
// left out: nothing is made of it.
struct Copied {
  int64_t from[3], size[3], place[3], apart[3], stride[3];
  int64_t run = 0;  // elements of a row that have the same remainder
  std::vector<int64_t> line_at, term_at;

  void arrange(const ConvShape& s, const int64_t* out) {
    int64_t reach = s.dilation[2] * (s.kernel[2] - 1) / stride[2];
    run = std::max(out[2] + reach, (size[2] + stride[2] - 1) / stride[2]);
    for (int64_t z = 0; z < out[0]; z++)
      for (int64_t y = 0; y < out[1]; y++)
        line_at.push_back((z * stride[0] * size[1] + y * stride[1]) * pitch());
    for (int64_t kd = 0; kd < s.kernel[0]; kd++)
      for (int64_t kh = 0; kh < s.kernel[1]; kh++)
        for (int64_t kw = 0; kw < s.kernel[2]; kw++)
          term_at.push_back((kd * s.dilation[0] * size[1] + kh * s.dilation[1]) * pitch() +
                            column(kw * s.dilation[2]));
  }
  int64_t pitch() const { return run * stride[2]; }
  int64_t column(int64_t c) const { return c % stride[2] * run + c / stride[2]; }
  int64_t elements() const { return size[0] * size[1] * pitch() + DEPTHWISE_SLACK; }

  // The elements between and around those of x are zero already.
  template <class T>
  void fill(T* room, const T* x) const {
    for (int64_t z = 0; z < from[0]; z++)
      for (int64_t y = 0; y < from[1]; y++, x += from[2]) {
        int64_t deep = place[0] + z * apart[0], row = place[1] + y * apart[1];
        if (deep < 0 || deep >= size[0] || row < 0 || row >= size[1]) continue;
        T* to = room + (deep * size[1] + row) * pitch();
        if (stride[2] == 1 && apart[2] == 1) {
          int64_t skip = std::max<int64_t>(0, -place[2]), n = std::min(from[2], size[2] - place[2]) - skip;
          if (n > 0) std::memcpy(to + place[2] + skip, x + skip, size_t(n) * sizeof(T));
          continue;
        }
        for (int64_t c = 0; c < from[2]; c++)
          if (int64_t at = place[2] + c * apart[2]; at >= 0 && at < size[2]) to[column(at)] = x[c];
      }
  }
};

Copied image_of(const ConvShape& s) {
  Copied c;
  for (int d = 0; d < 3; d++) {
    c.from[d] = s.in[d];
    c.size[d] = s.in[d] + 2 * s.padding[d];
    c.place[d] = s.padding[d];
    c.apart[d] = 1;
    c.stride[d] = s.stride[d];
  }
  c.arrange(s, s.out);
  return c;
}

Copied gradient_of(const ConvShape& s) {
  Copied c;
  for (int d = 0; d < 3; d++) {
    int64_t reach = s.dilation[d] * (s.kernel[d] - 1);
    c.from[d] = s.out[d];
    c.size[d] = s.in[d] + reach;
    c.place[d] = reach - s.padding[d];
    c.apart[d] = s.stride[d];
    c.stride[d] = 1;
  }
  c.arrange(s, s.in);
  return c;
}

template <class F>
void with_dtype(DType dtype, F&& f) {
  dtype == DType::f32 ? f(TypeTag<float>{}) : f(TypeTag<double>{});
}

// y (planes of out[] pixels) from x, both of all groups.
void convolve(DType dtype, const ConvShape& s, const Copied& copied, const int64_t* out, void* y,
              const void* x, const void* w, const void* bias, bool turned) {
  DepthwisePlane plane = {out[0] * out[1], out[2], s.kernel_size(), copied.line_at.data(),
                          copied.term_at.data()};
  int64_t pixels = out[0] * out[1] * out[2], from = copied.from[0] * copied.from[1] * copied.from[2];
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Workspaces spaces(num_threads(), copied.elements() * int64_t(sizeof(T)));
    divide(s.work(), s.batch * s.groups, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      T* room = lease.as<T>();
      std::fill_n(room, copied.elements(), T(0));
      for (int64_t i = begin; i < end; i++) {
        int64_t channel = i % s.groups;
        copied.fill(room, static_cast<const T*>(x) + i * from);
        fastest_depthwise_loops().lines(dtype, plane, room, static_cast<const T*>(w) + channel * plane.terms,
                                        turned, bias ? static_cast<const T*>(bias) + channel : nullptr,
                                        static_cast<T*>(y) + i * pixels);
      }
    });
  });
}

}  // namespace

bool depthwise_fits(DType dtype, const ConvShape& s) {
  if (!s.depthwise() || (dtype != DType::f32 && dtype != DType::f64) || s.kernel_size() == 0) return false;
  double padded = 1, spread = 1;
  for (int d = 0; d < 3; d++) {
    // No patch may leave the padded image: the loops do not look.
    if ((s.out[d] - 1) * s.stride[d] + s.dilation[d] * (s.kernel[d] - 1) >= s.in[d] + 2 * s.padding[d])
      return false;
    double reach = double(s.dilation[d]) * double(s.kernel[d]);
    padded *= double(s.in[d]) + 2 * double(s.padding[d]) + reach + double(s.stride[d]);
    spread *= double(s.in[d]) + reach;
  }
  // Copies that are much larger than what they are copies of are not worth it.
  double most = 1e4 + 16 * (double(s.in_pixels()) + double(s.pixels()));
  return padded < most && spread < most;
}

void depthwise_forward(DType dtype, const ConvShape& s, void* y, const void* x, const void* w,
                       const void* bias) {
  convolve(dtype, s, image_of(s), s.out, y, x, w, bias, false);
}

void depthwise_input_gradient(DType dtype, const ConvShape& s, void* gx, const void* gy, const void* w,
                              const void* bias) {
  convolve(dtype, s, gradient_of(s), s.in, gx, gy, w, bias, true);
}

void depthwise_weight_gradient(DType dtype, const ConvShape& s, void* gw, const void* gy, const void* x) {
  Copied copied = image_of(s);
  DepthwisePlane plane = {s.out[0] * s.out[1], s.out[2], s.kernel_size(), copied.line_at.data(),
                          copied.term_at.data()};
  with_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Workspaces spaces(num_threads(), copied.elements() * int64_t(sizeof(T)));
    divide(s.work(), s.groups, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      T* room = lease.as<T>();
      std::fill_n(room, copied.elements(), T(0));
      for (int64_t channel = begin; channel < end; channel++) {
        T* sums = static_cast<T*>(gw) + channel * plane.terms;
        std::fill_n(sums, plane.terms, T(0));
        for (int64_t n = 0; n < s.batch; n++) {
          int64_t i = n * s.groups + channel;
          copied.fill(room, static_cast<const T*>(x) + i * s.in_pixels());
          fastest_depthwise_loops().weights(dtype, plane, room, static_cast<const T*>(gy) + i * s.pixels(),
                                            sums);
        }
      }
    });
  });
}

}  // namespace rl
