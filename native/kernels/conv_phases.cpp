// Transposed convolutions with strides (and so the gradient of the input of strided ones), without adding up
// overlapping patches. Start at `input_gradient_by_phases`.
//
// With a stride of two, an even pixel of the result is reached by every second weight only, an odd one by the
// others. So each of these phases is a convolution of its own with stride 1, of as many multiplications in
// all: of the weights of the phase turned round. The phases are computed into planes of their own and put
// together.
#include <algorithm>
#include <vector>

#include "conv_avx512.h"
#include "workspace.h"

namespace rl {
namespace {

constexpr int64_t FEWEST_CHANNELS = 8;
constexpr int64_t FLOATS_AT_A_TIME = 1 << 20;  // of the results that wait to be put together

// In one dimension: pixels first, first + stride, ... of the result, `count` of them, of weights begin,
// begin + stride, ...
struct Phase {
  int64_t first, count, begin, taps;
  int64_t padding, origin;  // of the convolution: what is around the image, and where in that it begins

  Phase(const ConvShape& s, int d, int64_t begin) : begin(begin) {
    int64_t step = s.stride[d], kernel = s.kernel[d], dilation = step == 1 ? s.dilation[d] : 1;
    taps = begin < kernel ? (kernel - 1 - begin) / step + 1 : 0;
    // Pixel o is reached from element m - a dilation of gy by weight begin + a step, where o = m step + begin
    // - padding.
    int64_t m = std::max<int64_t>(0, (s.padding[d] - begin + step - 1) / step);
    first = m * step + begin - s.padding[d];
    count = first < s.in[d] ? (s.in[d] - 1 - first) / step + 1 : 0;
    int64_t before = (taps - 1) * dilation - m, behind = m + count - s.out[d];
    padding = std::max<int64_t>({0, before, behind});
    origin = padding - before;
  }
};

struct Phases {
  Phase of[3];
  int64_t pixels() const { return of[0].count * of[1].count * of[2].count; }
  int64_t taps() const { return of[0].taps * of[1].taps * of[2].taps; }

  // The convolution of `images` images.
  ConvShape shape(const ConvShape& s, int64_t images) const {
    ConvShape t = s;
    t.batch = images;
    std::swap(t.in_channels, t.out_channels);
    for (int d = 0; d < 3; d++) {
      t.in[d] = s.out[d], t.out[d] = of[d].count, t.kernel[d] = of[d].taps;
      t.stride[d] = 1, t.padding[d] = of[d].padding, t.dilation[d] = s.stride[d] == 1 ? s.dilation[d] : 1;
    }
    return t;
  }
  // Every one of them is computed, from within the padded image.
  bool fits(const ConvShape& s) const {
    for (const Phase& p : of)
      if (p.origin < 0) return false;
    return !pixels() || !taps() || conv_has_avx512(shape(s, 1));
  }
  // Those of the weights that take part.
  void pick_weights(const ConvShape& s, const float* w, float* to) const {
    int64_t matrices = s.out_channels * s.group_in();
    for (int64_t i = 0; i < matrices; i++, w += s.kernel_size())
      for (int64_t z = 0; z < of[0].taps; z++)
        for (int64_t y = 0; y < of[1].taps; y++)
          for (int64_t x = 0; x < of[2].taps; x++)
            *to++ = w[((of[0].begin + z * s.stride[0]) * s.kernel[1] + of[1].begin + y * s.stride[1]) *
                          s.kernel[2] +
                      of[2].begin + x * s.stride[2]];
  }
};

std::vector<Phases> phases_of(const ConvShape& s) {
  std::vector<Phases> phases;
  for (int64_t z = 0; z < s.stride[0]; z++)
    for (int64_t y = 0; y < s.stride[1]; y++)
      for (int64_t x = 0; x < s.stride[2]; x++) phases.push_back({{{s, 0, z}, {s, 1, y}, {s, 2, x}}});
  return phases;
}

// to[i stride] = from[i]
void put(const float* from, int64_t count, int64_t stride, float* to) {
  for (int64_t i = 0; i < count; i++) to[i * stride] = from[i];
}
// One line of the result from the same line of all phases of the last dimension.
void put_line(const ConvShape& s, const Phases* phases, const float* const* from, float* to) {
  const int64_t step = s.stride[2];
  int64_t shared = 0;
  if (step == 2) {
    int even = phases[0].of[2].first == 0 ? 0 : 1;
    const float *a = from[even], *b = from[1 - even];
    shared = std::min(phases[0].of[2].count, phases[1].of[2].count);
    for (int64_t i = 0; i < shared; i++) to[2 * i] = a[i], to[2 * i + 1] = b[i];
  }
  for (int64_t k = 0; k < step; k++) {
    const Phase& p = phases[k].of[2];
    put(from[k] + shared, p.count - shared, step, to + p.first + shared * step);
  }
}

}  // namespace

bool input_gradient_by_phases(const ConvShape& s, float* gx, const float* gy, const float* w,
                              const float* bias) {
  if (!conv_has_phases(s)) return false;
  const std::vector<Phases> phases = phases_of(s);
  for (const Phases& p : phases)
    if (!p.fits(s)) return false;
  int64_t image = s.in_channels * s.in_pixels();
  int64_t together = std::clamp<int64_t>(FLOATS_AT_A_TIME / image, 1, s.batch);
  Workspaces room(1, (together * image + s.out_channels * s.terms()) * int64_t(sizeof(float)));
  Workspaces::Lease lease(room);
  float *results = lease.as<float>(), *weights = results + together * image;
  for (int64_t start = 0; start < s.batch; start += together) {
    int64_t images = std::min(together, s.batch - start);
    std::vector<float*> of_phase;
    float* to = results;
    for (const Phases& p : phases) {
      of_phase.push_back(to);
      int64_t pixels = p.pixels();
      if (pixels && !p.taps()) {
        for (int64_t i = 0; i < images * s.in_channels; i++)
          std::fill_n(to + i * pixels, pixels, bias ? bias[i % s.in_channels] : 0.0f);
      } else if (pixels) {
        const int64_t origin[] = {p.of[0].origin, p.of[1].origin, p.of[2].origin};
        p.pick_weights(s, w, weights);
        conv_forward_avx512(p.shape(s, images), to, gy + start * s.out_channels * s.pixels(), weights, bias,
                            true, origin);
      }
      to += images * s.in_channels * pixels;
    }
    int64_t lines = s.in[0] * s.in[1], planes = images * s.in_channels;
    divide(double(images) * double(image), planes, [&](int64_t begin, int64_t end) {
      std::vector<const float*> from(size_t(s.stride[2]));
      for (int64_t plane = begin; plane < end; plane++)
        for (int64_t line = 0; line < lines; line++) {
          const int64_t at[] = {line / s.in[1], line % s.in[1]};
          int64_t phase = 0, within[2];
          for (int d = 0; d < 2; d++) {
            int64_t of = (at[d] + s.padding[d]) % s.stride[d];
            phase = phase * s.stride[d] + of;
            within[d] = at[d] / s.stride[d];
          }
          phase *= s.stride[2];
          for (int64_t x = 0; x < s.stride[2]; x++) {
            const Phases& p = phases[size_t(phase + x)];
            from[size_t(x)] = of_phase[size_t(phase + x)] + plane * p.pixels() +
                              (within[0] * p.of[1].count + within[1]) * p.of[2].count;
          }
          put_line(s, &phases[size_t(phase)], from.data(),
                   gx + (start * s.in_channels + plane) * s.in_pixels() + line * s.in[2]);
        }
    });
  }
  return true;
}

bool conv_has_phases(const ConvShape& s) {
  int64_t phases = 1;
  for (int d = 0; d < 3; d++) {
    if (s.stride[d] > 4 || (s.stride[d] > 1 && s.dilation[d] != 1) || s.in[d] < s.stride[d]) return false;
    phases *= s.stride[d];
  }
  // Few channels do not fill the tiles that convolutions are computed in (of three: 0.7 times as fast).
  return phases > 1 && s.group_in() >= FEWEST_CHANNELS && s.batch > 0 && s.pixels() > 0 && s.out_channels > 0;
}

}  // namespace rl
