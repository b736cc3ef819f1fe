// Depthwise convolutions of images whose channels lie side by side: all channels of a pixel at once, in
// vectors. Start at `Reach`: which pixels a pixel is made of.
#include <algorithm>
#include <cstring>
#include <vector>

#include "depthwise.h"
#include "workspace.h"

namespace rl {
namespace {

// What one place along a dimension is made of: `count` places from `at` on, `step` apart, with the elements
// of the kernel from `kernel` on, `kernel_step` apart. None lies outside.
struct Reach {
  int64_t at = 0, step = 0, kernel = 0, kernel_step = 0, count = 0;
  void add(int64_t place, int64_t element) {
    if (count == 0) at = place, kernel = element;
    else if (count == 1) step = place - at, kernel_step = element - kernel;
    count++;
  }
  // Whether `other` is the same, so far away.
  bool goes_on(const Reach& other, int64_t away) const {
    return other.count == count && other.at == at + away && other.step == step && other.kernel == kernel &&
           other.kernel_step == kernel_step;
  }
};
using Reaches = std::vector<Reach>;

Reaches of_outputs(const ConvShape& s, int d) {
  Reaches reaches(size_t(s.out[d]));
  for (int64_t o = 0; o < s.out[d]; o++)
    for (int64_t k = 0; k < s.kernel[d]; k++)
      if (int64_t i = o * s.stride[d] - s.padding[d] + k * s.dilation[d]; i >= 0 && i < s.in[d])
        reaches[size_t(o)].add(i, k);
  return reaches;
}

Reaches of_inputs(const ConvShape& s, int d) {
  Reaches reaches(size_t(s.in[d]));
  for (int64_t i = 0; i < s.in[d]; i++)
    for (int64_t k = 0; k < s.kernel[d]; k++) {
      int64_t place = i + s.padding[d] - k * s.dilation[d];
      if (place >= 0 && place % s.stride[d] == 0 && place / s.stride[d] < s.out[d])
        reaches[size_t(i)].add(place / s.stride[d], k);
    }
  return reaches;
}

// y (images of to[] pixels) from x (of from[]), both of all channels; the weights are as `by_terms` has them.
void convolve(DType dtype, const ConvShape& s, const Reaches (&reaches)[3], const int64_t* to,
              const int64_t* from, void* y, const void* x, const void* w, const void* bias) {
  int64_t channels = s.groups, size = dtype_size(dtype), weight_size = dtype == DType::f64 ? 8 : 4;
  divide(s.work(), s.batch * to[0] * to[1], [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; line++) {
      const Reach &deep = reaches[0][size_t(line / to[1] % to[0])], &high = reaches[1][size_t(line % to[1])];
      const char* image = static_cast<const char*>(x) +
                          line / (to[0] * to[1]) * from[0] * from[1] * from[2] * channels * size;
      char* result = static_cast<char*>(y) + line * to[2] * channels * size;
      for (int64_t o = 0, run; o < to[2]; o += run, result += run * channels * size) {
        const Reach& wide = reaches[2][size_t(o)];
        int64_t apart = o + 1 < to[2] ? reaches[2][size_t(o + 1)].at - wide.at : 0;
        for (run = 1; o + run < to[2] && wide.goes_on(reaches[2][size_t(o + run)], run * apart);) run++;
        int64_t pixel = (deep.at * from[1] + high.at) * from[2] + wide.at;
        int64_t term = (deep.kernel * s.kernel[1] + high.kernel) * s.kernel[2] + wide.kernel;
        ChannelWindow window = {
            {deep.count, high.count, wide.count},
            {deep.step * from[1] * from[2] * channels, high.step * from[2] * channels, wide.step * channels},
            {deep.kernel_step * s.kernel[1] * s.kernel[2] * channels,
             high.kernel_step * s.kernel[2] * channels, wide.kernel_step * channels}};
        fastest_depthwise_loops().channels(dtype, window, image + pixel * channels * size,
                                           static_cast<const char*>(w) + term * channels * weight_size, bias,
                                           result, channels, run, apart * channels);
      }
    }
  });
}

}  // namespace

bool depthwise_channels_fit(DType dtype, const ConvShape& s) {
  bool taken = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
  return taken && s.depthwise() && s.groups >= 4 && s.kernel_size() > 0;
}

void depthwise_channels_forward(DType dtype, const ConvShape& s, void* y, const void* x, const void* w,
                                const void* bias) {
  convolve(dtype, s, {of_outputs(s, 0), of_outputs(s, 1), of_outputs(s, 2)}, s.out, s.in, y, x, w, bias);
}

void depthwise_channels_input_gradient(DType dtype, const ConvShape& s, void* gx, const void* gy,
                                       const void* w) {
  convolve(dtype, s, {of_inputs(s, 0), of_inputs(s, 1), of_inputs(s, 2)}, s.in, s.out, gx, gy, w, nullptr);
}

// The outputs of a line that a term reaches are added up, then lines, then images: short chains.
void depthwise_channels_weight_gradient(DType dtype, const ConvShape& s, void* gw, const void* gy,
                                        const void* x) {
  const int64_t BLOCK = std::min<int64_t>(64, s.groups);  // channels
  int64_t channels = s.groups, terms = s.kernel_size(), size = dtype_size(dtype);
  int64_t wide = dtype == DType::f64 ? 8 : 4, blocks = (channels + BLOCK - 1) / BLOCK;
  const Reaches reaches[] = {of_outputs(s, 0), of_outputs(s, 1)};
  // Outputs of a line that element k of the kernel's last dimension makes something of.
  std::vector<std::pair<int64_t, int64_t>> reached;
  for (int64_t k = 0; k < s.kernel[2]; k++) {
    int64_t first = 0, last = s.out[2], offset = k * s.dilation[2] - s.padding[2];
    while (first < last && first * s.stride[2] + offset < 0) first++;
    while (last > first && (last - 1) * s.stride[2] + offset >= s.in[2]) last--;
    reached.push_back({first, last});
  }
  Workspaces spaces(num_threads(), 2 * BLOCK * terms * wide);
  divide(s.work(), blocks, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    char *image_sums = lease.as<char>(), *line_sums = image_sums + BLOCK * terms * wide;
    for (int64_t block = begin; block < end; block++) {
      int64_t first = block * BLOCK, n = std::min(BLOCK, channels - first);
      char* sums = static_cast<char*>(gw) + first * wide;
      for (int64_t t = 0; t < terms; t++) std::memset(sums + t * channels * wide, 0, size_t(n * wide));
      for (int64_t image = 0; image < s.batch; image++) {
        std::memset(image_sums, 0, size_t(BLOCK * terms * wide));
        for (int64_t line = 0; line < s.out[0] * s.out[1]; line++) {
          const Reach &deep = reaches[0][size_t(line / s.out[1])],
                      &high = reaches[1][size_t(line % s.out[1])];
          std::memset(line_sums, 0, size_t(BLOCK * terms * wide));
          const char* g = static_cast<const char*>(gy) +
                          ((image * s.out[0] * s.out[1] + line) * s.out[2] * channels + first) * size;
          for (int64_t z = 0; z < deep.count; z++)
            for (int64_t y = 0; y < high.count; y++) {
              int64_t row = (image * s.in[0] + deep.at + z * deep.step) * s.in[1] + high.at + y * high.step;
              int64_t term =
                  ((deep.kernel + z * deep.kernel_step) * s.kernel[1] + high.kernel + y * high.kernel_step) *
                  s.kernel[2];
              for (int64_t k = 0; k < s.kernel[2]; k++) {
                auto [o, last] = reached[size_t(k)];
                if (o == last) continue;
                int64_t column = o * s.stride[2] + k * s.dilation[2] - s.padding[2];
                const char* from =
                    static_cast<const char*>(x) + ((row * s.in[2] + column) * channels + first) * size;
                fastest_depthwise_loops().channel_products(dtype, g + o * channels * size, channels, from,
                                                           s.stride[2] * channels, last - o,
                                                           line_sums + (term + k) * BLOCK * wide, n);
              }
            }
          fastest_depthwise_loops().add(dtype, image_sums, line_sums, BLOCK * terms);
        }
        for (int64_t t = 0; t < terms; t++)
          fastest_depthwise_loops().add(dtype, sums + t * channels * wide, image_sums + t * BLOCK * wide, n);
      }
    }
  });
}

}  // namespace rl
