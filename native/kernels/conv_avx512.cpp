// Convolutions of float in AVX-512. Start at `conv_forward_avx512`.
//
// A product of the weights with the patches, as in conv.cpp, but the patches are never written out as a
// matrix: panels of 32 output pixels are packed straight from the image (padded by a copy, so that no patch
// leaves it) into the order in which the inner loop reads them, and OpenBLAS, which would pack them again, is
// not asked. The inner loop (tile_avx512.h) holds up to 14 output channels by 32 pixels. The gradient of the
// weights is a product over pixels: both factors are read along them, in tiles of 6 channels by 4 patch rows.
// Depthwise convolutions have no sum over channels and run along the rows of the image.
#include "conv_avx512.h"

#if defined(__x86_64__)
#include "conv_panels.h"
#include "simd/families.h"

namespace rl {
namespace {

constexpr int64_t GRAD_PIXELS = 2048;  // pixels of a block of the weights' gradient
constexpr int64_t GRAD_TERMS = 64;
constexpr int64_t MANY_CHANNELS = 64;  // from which on the weights' gradient is worth packing for,
constexpr int64_t FEW_PIXELS = 320;    // by blocks of so many pixels

RL_AVX512_BEGIN

struct Floats {
  using Type = float;
  static constexpr bool ALWAYS_COPIED = false, MAY_HALVE = true;
  static int64_t channels(int64_t count) { return count; }
  static void fill(const Padded& padded, const ConvShape& s, const float* x, float* room) {
    padded.fill(s, x, s.group_in(), room);
  }
  static Tile tile(int64_t rows) { return avx512_tile(rows); }
  // The weights of each group in tiles of `rows` channels: [tile][term][row], zeros where there is no
  // channel.
  static void pack_weights(const ConvShape& s, bool turned, const float* w, int64_t rows, int64_t tiles,
                           float* to) {
    int64_t gin = s.group_in(), gout = s.group_out(), size = s.kernel_size(), terms = s.terms();
    for (int64_t g = 0; g < s.groups; g++, w += terms * gout)
      for (int64_t t = 0; t < tiles; t++, to += terms * rows) {
        int64_t first = t * rows, count = std::min(rows, gout - first);
        if (!turned) {
          avx512_pack_rows(w + first * terms, terms, count, terms, rows, rows, false, to);
          continue;
        }
        // Those of the convolution whose input gradient is computed: channels change roles, positions run
        // backwards.
        for (int64_t c = 0; c < gin; c++) {
          const float* from = w + (c * gout + first) * size;
          float* into = to + c * size * rows;
          if (size > 1) {
            avx512_pack_rows(from, size, count, size, rows, rows, true, into);
          } else {
            std::memcpy(into, from, size_t(count) * sizeof(float));
            std::fill(into + count, into + rows, 0.0f);
          }
        }
      }
  }
};

// sums[o * ld + k] += the sum over pixels of g[o] * columns[k], for up to 6 by 4 of them.
template <int O, int K>
void grad_tile(int64_t pixels, const float* g, int64_t g_ld, const float* columns, int64_t ld, float* sums,
               int64_t sums_ld) {
  __m512 sum[O][K];
#pragma GCC unroll 6
  for (int o = 0; o < O; o++)
#pragma GCC unroll 4
    for (int k = 0; k < K; k++) sum[o][k] = _mm512_setzero_ps();
  for (int64_t p = 0; p < pixels; p += 16) {
    __m512 column[K];
#pragma GCC unroll 4
    for (int k = 0; k < K; k++) column[k] = _mm512_loadu_ps(columns + k * ld + p);
#pragma GCC unroll 6
    for (int o = 0; o < O; o++) {
      __m512 v = _mm512_loadu_ps(g + o * g_ld + p);
#pragma GCC unroll 4
      for (int k = 0; k < K; k++) sum[o][k] = _mm512_fmadd_ps(v, column[k], sum[o][k]);
    }
  }
#pragma GCC unroll 6
  for (int o = 0; o < O; o++)
#pragma GCC unroll 4
    for (int k = 0; k < K; k++) sums[o * sums_ld + k] += _mm512_reduce_add_ps(sum[o][k]);
}

using GradTile = decltype(&grad_tile<1, 1>);
template <int O>
constexpr GradTile GRAD_ROW[] = {nullptr, grad_tile<O, 1>, grad_tile<O, 2>, grad_tile<O, 3>, grad_tile<O, 4>};
constexpr const GradTile* GRAD_TILES[] = {nullptr,     GRAD_ROW<1>, GRAD_ROW<2>, GRAD_ROW<3>,
                                          GRAD_ROW<4>, GRAD_ROW<5>, GRAD_ROW<6>};

// n pixels of an image, for one term, read as `lanes` say.
inline void write_row(const Lanes* lanes, int64_t n, const float* image, float* to) {
  for (int64_t p = 0; p < n; p += 16, lanes++) {
    __m512 v = lanes->runs == 0 ? _mm512_loadu_ps(image + lanes->shift[0]) : read(*lanes, image);
    if (p + 16 <= n) _mm512_storeu_ps(to + p, v);
    else _mm512_mask_storeu_ps(to + p, first_lanes(n - p), v);
  }
}

// Pixels of all images of a range are one long dimension, taken in blocks; a block may span several images.
void weight_gradient(const ConvShape& s, float* gw, const float* gy, const float* x) {
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out();
  int64_t weights = s.out_channels * terms;
  Padded padded(s, gin, true);
  int64_t ranges = s.work() < THREADED ? 1 : std::min<int64_t>(s.batch, num_threads());
  // Whole images, as many as fit a block; or a part of one.
  bool packs = gout >= MANY_CHANNELS;
  int64_t limit = packs ? FEW_PIXELS : GRAD_PIXELS;
  int64_t image_room = padded.copies ? gin * padded.plane() : 0;
  int64_t fit = std::min({limit / pixels, s.batch, COPIED_PIXELS / std::max<int64_t>(image_room, 1)});
  int64_t together = std::max<int64_t>(1, fit), width = std::min(pixels, limit);
  int64_t rows = rows_of_tile(gout), tiles = (gout + rows - 1) / rows;
  int64_t ld = (together * width + 15) / 16 * 16;
  Workspaces spaces(num_threads(), (together * image_room + (tiles * rows + GRAD_TERMS + WIDTH) * ld) *
                                       int64_t(sizeof(float)));
  Tile run = avx512_tile(rows);
  std::vector<Lanes> lanes;
  lanes.reserve(size_t((pixels + 15) / 16));
  for (int64_t p = 0; p < pixels; p += 16)  // blocks begin at multiples of 16
    lanes.emplace_back(padded.pixels.data(), p, std::min<int64_t>(16, pixels - p));
  std::vector<float> sums(size_t((ranges - 1) * weights), 0.0f);
  std::fill_n(gw, weights, 0.0f);
  auto block = [&](int64_t group, int64_t first, int64_t count, int64_t p0, int64_t n,
                   const float* const* images, float* g, float* columns, float* sum) {
    int64_t used = count * n, whole = (used + 15) / 16 * 16;
    auto gradient = [&](int64_t image, int64_t channel) {
      return gy + (((first + image) * s.groups + group) * gout + channel) * pixels + p0;
    };
    if (packs) {
      for (int64_t t = 0; t < tiles; t++)
        for (int64_t i = 0; i < count; i++)
          avx512_pack_rows(gradient(i, t * rows), pixels, std::min(rows, gout - t * rows), n, rows, rows,
                           false, g + (t * used + i * n) * rows);
    } else {
      for (int64_t o = 0; o < gout; o++) {
        for (int64_t i = 0; i < count; i++)
          std::memcpy(g + o * ld + i * n, gradient(i, o), size_t(n) * sizeof(float));
        std::fill(g + o * ld + used, g + o * ld + whole, 0.0f);
      }
    }
    for (int64_t k0 = 0; k0 < terms; k0 += GRAD_TERMS) {
      int64_t height = std::min(GRAD_TERMS, terms - k0);
      // Row by row: a column of this matrix would lie in one set of the cache.
      for (int64_t k = 0; k < height; k++) {
        float* row = columns + k * ld;
        for (int64_t i = 0; i < count; i++)
          write_row(lanes.data() + p0 / 16, n, images[i] + padded.terms[size_t(k0 + k)], row + i * n);
        std::fill(row + used, row + whole, 0.0f);
      }
      float* sum_at = sum + group * gout * terms + k0;
      for (int64_t k = 0; packs && k < height; k += WIDTH) {
        float* panel = columns + GRAD_TERMS * ld;
        for (int64_t half = 0; half < WIDTH; half += 16)
          avx512_pack_rows(columns + (k + half) * ld, ld, std::clamp<int64_t>(height - k - half, 0, 16), used,
                           16, WIDTH, false, panel + half);
        for (int64_t t = 0; t < tiles; t++)
          run(used, g + t * used * rows, panel, sum_at + t * rows * terms + k, terms,
              std::min(rows, gout - t * rows), std::min(WIDTH, height - k), nullptr, false);
      }
      for (int64_t k = 0; !packs && k < height; k += 4)
        for (int64_t o = 0; o < gout; o += 6)
          GRAD_TILES[std::min<int64_t>(6, gout - o)][std::min<int64_t>(4, height - k)](
              whole, g + o * ld, ld, columns + k * ld, ld, sum_at + o * terms + k, terms);
    }
  };
  divide(s.work(), ranges, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    float *g = lease.as<float>(), *columns = g + tiles * rows * ld,
          *room = columns + (GRAD_TERMS + WIDTH) * ld;
    const float* images[GRAD_PIXELS];
    for (int64_t range = begin; range < end; range++) {
      float* sum = range == 0 ? gw : sums.data() + (range - 1) * weights;
      int64_t last = s.batch * (range + 1) / ranges;
      for (int64_t first = s.batch * range / ranges; first < last; first += together) {
        int64_t count = std::min(together, last - first);
        for (int64_t group = 0; group < s.groups; group++) {
          for (int64_t i = 0; i < count; i++)
            images[i] = padded.fill(s, x + ((first + i) * s.groups + group) * gin * s.in_pixels(), gin,
                                    room + i * image_room);
          for (int64_t p0 = 0; p0 < pixels; p0 += width)
            block(group, first, count, p0, std::min(width, pixels - p0), images, g, columns, sum);
        }
      }
    }
  });
  for (int64_t range = 1; range < ranges; range++)
    for (int64_t i = 0; i < weights; i++) gw[i] += sums[size_t((range - 1) * weights + i)];
}

// ---- one channel in, one channel out

// 16 outputs of a row beginning at output `o`; `mask` says which there are.
inline __m512 along_row(const float* row, int64_t o, int64_t stride, __m512i steps, __mmask16 mask) {
  if (stride == 1) return _mm512_maskz_loadu_ps(mask, row + o);
  return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, steps, row + o * stride, 4);
}

__m512i steps_of(int64_t stride) {
  __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_mullo_epi32(lane, _mm512_set1_epi32(int(stride)));
}

// Several lines at a time share the weights, and do not wait for each other's sums.
constexpr int64_t LINES = 7;  // image heights are often multiples of 7

// LINES lines (`count` of them wanted) of a plane with HEIGHT rows of weights, strides 1: a vector of the
// image, once read, goes into every line that it belongs to (7 x 7 weights on 14 x 14 pixels: 2.9x).
template <int HEIGHT>
void depthwise_lines(const float* image, int64_t step, const float* w, int64_t kernel_width, bool turned,
                     __m512 start, float* to, int64_t width, int64_t count) {
  const float* rows[LINES + HEIGHT - 1];
  for (int64_t r = 0; r < LINES + HEIGHT - 1; r++) rows[r] = image + std::min(r, count + HEIGHT - 2) * step;
  int64_t last = HEIGHT * kernel_width - 1;
  for (int64_t o = 0; o < width; o += 16) {
    __mmask16 mask = first_lanes(width - o);
    __m512 sum[LINES];
#pragma GCC unroll 7
    for (int l = 0; l < LINES; l++) sum[l] = start;
    for (int64_t k = 0; k < kernel_width; k++) {
      __m512 factor[HEIGHT];
#pragma GCC unroll 7
      for (int h = 0; h < HEIGHT; h++) {
        int64_t at = h * kernel_width + k;
        factor[h] = _mm512_set1_ps(w[turned ? last - at : at]);
      }
#pragma GCC unroll 13
      for (int r = 0; r < LINES + HEIGHT - 1; r++) {
        __m512 v = _mm512_maskz_loadu_ps(mask, rows[r] + o + k);
#pragma GCC unroll 7
        for (int h = 0; h < HEIGHT; h++)
          if (r - h >= 0 && r - h < LINES) sum[r - h] = _mm512_fmadd_ps(factor[h], v, sum[r - h]);
      }
    }
#pragma GCC unroll 7
    for (int l = 0; l < LINES; l++)
      if (l < count) _mm512_mask_storeu_ps(to + l * width + o, mask, sum[l]);
  }
}

using DepthwiseLines = decltype(&depthwise_lines<3>);

// For the usual kernels on planes, else null.
DepthwiseLines depthwise_lines_of(const ConvShape& s) {
  if (s.kernel[0] != 1 || s.in[0] != 1 || s.out[0] != 1 || s.padding[0] != 0 || s.dilation[1] != 1 ||
      s.dilation[2] != 1)
    return nullptr;
  return s.kernel[1] == 3   ? depthwise_lines<3>
         : s.kernel[1] == 5 ? depthwise_lines<5>
         : s.kernel[1] == 7 ? depthwise_lines<7>
                            : nullptr;
}

void depthwise_forward(const ConvShape& s, float* y, const float* x, const float* w, const float* bias,
                       bool turned) {
  Padded padded(s, 1, true);
  int64_t kernel = s.kernel_size(), lines = s.out[0] * s.out[1], width = s.out[2];
  Workspaces spaces(num_threads(), padded.copies ? padded.plane() * int64_t(sizeof(float)) : 0);
  DepthwiseLines by_lines = s.stride[1] == 1 && s.stride[2] == 1 ? depthwise_lines_of(s) : nullptr;
  divide(s.work(), s.batch * s.groups, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    const int64_t along = padded.halved ? 1 : s.stride[2];
    __m512i steps = steps_of(along);
    for (int64_t plane = begin; plane < end; plane++) {
      int64_t channel = plane % s.groups;
      const float *image = padded.fill(s, x + plane * s.in_pixels(), 1, lease.as<float>(), plane > begin),
                  *weights = w + channel * kernel;
      __m512 start = _mm512_set1_ps(bias ? bias[channel] : 0.0f);
      if (by_lines) {
        for (int64_t line = 0; line < lines; line += LINES)
          by_lines(image + line * padded.size[2], padded.size[2], weights, s.kernel[2], turned, start,
                   y + plane * s.pixels() + line * width, width, std::min(LINES, lines - line));
        continue;
      }
      if (lines == 1) {  // several vectors of the one line at a time
        const float* from = image + padded.pixels[0];
        float* to = y + plane * s.pixels();
        for (int64_t o = 0; o < width; o += 16 * LINES) {
          __m512 sum[LINES];
          for (__m512& v : sum) v = start;
          for (int64_t k = 0; k < kernel; k++) {
            __m512 factor = _mm512_set1_ps(weights[turned ? kernel - 1 - k : k]);
            const float* term = from + padded.terms[size_t(k)];
#pragma GCC unroll 7
            for (int64_t l = 0; l < LINES; l++) {
              int64_t at = o + 16 * l;
              sum[l] =
                  _mm512_fmadd_ps(factor, along_row(term, at, along, steps, first_lanes(width - at)), sum[l]);
            }
          }
          for (int64_t l = 0; l < LINES && o + 16 * l < width; l++)
            _mm512_mask_storeu_ps(to + o + 16 * l, first_lanes(width - o - 16 * l), sum[l]);
        }
        continue;
      }
      for (int64_t line = 0; line < lines; line += LINES) {
        const float* from[LINES];
        int64_t count = std::min(LINES, lines - line);
        for (int64_t l = 0; l < LINES; l++)
          from[l] = image + padded.pixels[size_t((line + std::min(l, count - 1)) * width)];
        float* to = y + plane * s.pixels() + line * width;
        for (int64_t o = 0; o < width; o += 16) {
          __mmask16 mask = first_lanes(width - o);
          __m512 sum[LINES];
          for (__m512& v : sum) v = start;
          for (int64_t k = 0; k < kernel; k++) {
            __m512 factor = _mm512_set1_ps(weights[turned ? kernel - 1 - k : k]);
            int64_t term = padded.terms[size_t(k)];
#pragma GCC unroll 7
            for (int64_t l = 0; l < LINES; l++)
              sum[l] = _mm512_fmadd_ps(factor, along_row(from[l] + term, o, along, steps, mask), sum[l]);
          }
          for (int64_t l = 0; l < count; l++) _mm512_mask_storeu_ps(to + l * width + o, mask, sum[l]);
        }
      }
    }
  });
}

// With strides: the gradient, its elements as far apart as the strides say and zeros between them, is
// convolved with the weights turned round.
void depthwise_input_gradient(const ConvShape& s, DepthwiseLines by_lines, float* gx, const float* gy,
                              const float* w, const float* bias) {
  int64_t height = s.in[1] + s.kernel[1] - 1, width = s.in[2] + s.kernel[2] - 1;
  int64_t top = s.kernel[1] - 1 - s.padding[1], left = s.kernel[2] - 1 - s.padding[2];
  Workspaces spaces(num_threads(), height * width * int64_t(sizeof(float)));
  divide(s.work(), s.batch * s.groups, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    float* spread = lease.as<float>();
    std::memset(spread, 0, size_t(height * width) * sizeof(float));
    for (int64_t plane = begin; plane < end; plane++) {
      const float* g = gy + plane * s.pixels();
      for (int64_t oh = 0; oh < s.out[1]; oh++)
        for (int64_t ow = 0; ow < s.out[2]; ow++)
          spread[(oh * s.stride[1] + top) * width + ow * s.stride[2] + left] = *g++;
      int64_t channel = plane % s.groups;
      __m512 start = _mm512_set1_ps(bias ? bias[channel] : 0.0f);
      for (int64_t line = 0; line < s.in[1]; line += LINES)
        by_lines(spread + line * width, width, w + channel * s.kernel_size(), s.kernel[2], true, start,
                 gx + plane * s.in_pixels() + line * s.in[2], s.in[2], std::min(LINES, s.in[1] - line));
    }
  });
}

void depthwise_weight_gradient(const ConvShape& s, float* gw, const float* gy, const float* x) {
  Padded padded(s, 1, true);
  int64_t kernel = s.kernel_size(), lines = s.out[0] * s.out[1], width = s.out[2];
  Workspaces spaces(num_threads(), padded.copies ? padded.plane() * int64_t(sizeof(float)) : 0);
  divide(s.work(), s.groups, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    const int64_t along = padded.halved ? 1 : s.stride[2];
    __m512i steps = steps_of(along);
    for (int64_t channel = begin; channel < end; channel++) {
      float* sums = gw + channel * kernel;
      std::fill_n(sums, kernel, 0.0f);
      for (int64_t n = 0; n < s.batch; n++) {
        int64_t plane = n * s.groups + channel;
        const float* image =
            padded.fill(s, x + plane * s.in_pixels(), 1, lease.as<float>(), n > 0 || channel > begin);
        for (int64_t k0 = 0; k0 < kernel; k0 += 9) {
          int64_t count = std::min<int64_t>(9, kernel - k0);
          __m512 sum[9];
          for (__m512& v : sum) v = _mm512_setzero_ps();
          for (int64_t line = 0; line < lines; line++) {
            const float* from = image + padded.pixels[size_t(line * width)];
            const float* g = gy + plane * s.pixels() + line * width;
            for (int64_t o = 0; o < width; o += 16) {
              __mmask16 mask = first_lanes(width - o);
              __m512 v = _mm512_maskz_loadu_ps(mask, g + o);
#pragma GCC unroll 9
              for (int k = 0; k < 9; k++)
                if (k < count)
                  sum[k] = _mm512_fmadd_ps(
                      v, along_row(from + padded.terms[size_t(k0 + k)], o, along, steps, mask), sum[k]);
            }
          }
          for (int64_t k = 0; k < count; k++) sums[k0 + k] += _mm512_reduce_add_ps(sum[k]);
        }
      }
    }
  });
}

RL_AVX512_END

}  // namespace

bool conv_has_avx512(const ConvShape& s) {
  if (!avx512_chosen()) return false;
  // No patch may leave the padded image: these loops do not look.
  for (int d = 0; d < 3; d++)
    if ((s.out[d] - 1) * s.stride[d] + s.dilation[d] * (s.kernel[d] - 1) >= s.in[d] + 2 * s.padding[d])
      return false;
  double image = double(s.group_in());
  for (int d = 0; d < 3; d++) image *= double(s.in[d] + 2 * s.padding[d]);
  return image < 1e9 && s.pixels() < (int64_t(1) << 30) && s.stride[2] < (1 << 20);
}

void conv_forward_avx512(const ConvShape& s, float* y, const float* x, const float* w, const float* bias,
                         bool turned, const int64_t* origin) {
  if (s.batch == 0 || s.pixels() == 0 || s.out_channels == 0) return;
  if (s.depthwise()) return depthwise_forward(s, y, x, w, bias, turned);
  convolve_panels<Floats>(s, y, x, w, bias, turned, origin);
}

bool depthwise_input_gradient_avx512(const ConvShape& s, float* gx, const float* gy, const float* w,
                                     const float* bias) {
  if (!s.depthwise() || !conv_has_avx512(s)) return false;
  DepthwiseLines by_lines = depthwise_lines_of(s);
  // No element of the gradient may leave the plane it is spread over.
  if (!by_lines || s.padding[1] >= s.kernel[1] || s.padding[2] >= s.kernel[2]) return false;
  depthwise_input_gradient(s, by_lines, gx, gy, w, bias);
  return true;
}

void conv_weight_gradient_avx512(const ConvShape& s, float* gw, const float* gy, const float* x) {
  if (s.depthwise()) return depthwise_weight_gradient(s, gw, gy, x);
  weight_gradient(s, gw, gy, x);
}

}  // namespace rl

#else  // other processors

namespace rl {
bool conv_has_avx512(const ConvShape&) { return false; }
void conv_forward_avx512(const ConvShape&, float*, const float*, const float*, const float*, bool,
                         const int64_t*) {}
bool depthwise_input_gradient_avx512(const ConvShape&, float*, const float*, const float*, const float*) {
  return false;
}
void conv_weight_gradient_avx512(const ConvShape&, float*, const float*, const float*) {}
}  // namespace rl

#endif
