// Panels of 32 output pixels, packed straight from padded images, and the convolution that is made of them.
// conv_avx512.cpp has it of floats, conv_bf16.cpp of pairs of bfloat16. Start at `convolve_panels`.
#pragma once
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "avx512.h"
#include "conv.h"
#include "tile_avx512.h"
#include "workspace.h"

namespace rl {
namespace {

constexpr int64_t WIDTH = TILE_WIDTH;  // pixels of a panel
constexpr int64_t DEPTH = 256;         // terms packed at a time: a panel of them fits the first-level cache
constexpr int64_t PANELS = 16;         // panels packed at a time: they stay in the second-level cache
constexpr int64_t COPIED_PIXELS = 1 << 22;  // of all channels of the padded images that are taken together

// The image with its padding, and where things lie in it. With `halved`, for a stride of two, the even pixels
// of a row lie before the odd ones: so what a term reads of the pixels of a row lies side by side.
struct Padded {
  int64_t size[3];  // depth, height, width with padding
  int64_t row;      // elements from one row to the next
  bool halved;
  bool copies;                  // false: there is no padding and the image is used as it is
  std::vector<int64_t> terms;   // offset of each (channel, kernel position)
  std::vector<int32_t> pixels;  // offset of each output pixel

  // The first output pixel reads from `origin` on, or from the corner.
  Padded(const ConvShape& s, int64_t channels, bool may_halve = false, const int64_t* origin = nullptr)
      : halved(may_halve && !origin && s.stride[2] == 2 && s.kernel[2] > 1 && s.out[2] > 1), copies(halved) {
    for (int d = 0; d < 3; d++) {
      size[d] = s.in[d] + 2 * s.padding[d];
      copies |= s.padding[d] > 0;
    }
    row = halved ? (size[2] + 1) / 2 * 2 : size[2];
    terms.reserve(size_t(channels * s.kernel_size()));
    for (int64_t c = 0; c < channels; c++)
      for (int64_t kd = 0; kd < s.kernel[0]; kd++)
        for (int64_t kh = 0; kh < s.kernel[1]; kh++)
          for (int64_t kw = 0; kw < s.kernel[2]; kw++)
            terms.push_back(((c * size[0] + kd * s.dilation[0]) * size[1] + kh * s.dilation[1]) * row +
                            column(kw * s.dilation[2]));
    pixels.reserve(size_t(s.pixels()));
    int64_t start = origin ? (origin[0] * size[1] + origin[1]) * row + origin[2] : 0;
    for (int64_t od = 0; od < s.out[0]; od++)
      for (int64_t oh = 0; oh < s.out[1]; oh++)
        for (int64_t ow = 0; ow < s.out[2]; ow++)
          pixels.push_back(int32_t(start + (od * s.stride[0] * size[1] + oh * s.stride[1]) * row +
                                   column(ow * s.stride[2])));
  }
  int64_t column(int64_t x) const { return halved ? x % 2 * (row / 2) + x / 2 : x; }
  int64_t plane() const { return size[0] * size[1] * row; }

  // `x` itself, or its copy in `room` with zeros around, which another copy may have left there.
  const float* fill(const ConvShape& s, const float* x, int64_t channels, float* room,
                    bool has_zeros = false) const {
    if (!copies) return x;
    if (!has_zeros) std::memset(room, 0, size_t(channels * plane()) * sizeof(float));
    for (int64_t c = 0; c < channels; c++)
      for (int64_t z = 0; z < s.in[0]; z++)
        for (int64_t y = 0; y < s.in[1]; y++, x += s.in[2]) {
          float* to = room + ((c * size[0] + z + s.padding[0]) * size[1] + y + s.padding[1]) * row;
          if (halved) halve(x, s.in[2], to + column(s.padding[2]), to + column(s.padding[2] + 1));
          else std::memcpy(to + s.padding[2], x, size_t(s.in[2]) * sizeof(float));
        }
    return room;
  }
  // Every other one of n elements to `even`, the rest to `odd`.
  static void halve(const float* from, int64_t n, float* __restrict even, float* __restrict odd) {
    for (int64_t i = 0; i < n / 2; i++) even[i] = from[2 * i], odd[i] = from[2 * i + 1];
    if (n % 2) even[n / 2] = from[n - 1];
  }
};

RL_AVX512_BEGIN

// How to read 16 pixels that do not all lie side by side: runs of neighbours, or of every second pixel, or a
// gather where the runs are many.
struct Lanes {
  int runs, step;  // no run: 16 neighbours, an ordinary load; fewer than none: a gather
  __mmask16 mask[4];
  __mmask16 low[4], high[4];  // of the two vectors that hold every second pixel of a run
  int32_t shift[4];           // offset of the run minus that of the lane it begins at
  int32_t at[16];             // offset of each pixel

  // Pixels [first, first + count), count <= 16; what is missing repeats the last one.
  Lanes(const int32_t* pixels, int64_t first, int64_t count) {
    for (int64_t lane = 0; lane < 16; lane++)
      at[lane] = pixels[first + std::min(lane, std::max<int64_t>(count, 1) - 1)];
    if (!find_runs(1, int(count)) && !find_runs(2, int(count))) runs = -1;
    if (runs == 1 && step == 1 && count == 16) runs = 0;
  }

 private:
  bool find_runs(int apart, int count) {
    runs = 0;
    step = apart;
    for (int lane = 0; lane < count;) {
      if (runs == 4) return false;
      int end = lane + 1;
      while (end < count && at[end] == at[end - 1] + step) end++;
      mask[runs] = __mmask16(first_lanes(end) & ~first_lanes(lane));
      uint32_t places = 0;
      for (int k = lane; k < end; k++) places |= uint32_t(1) << 2 * k;
      low[runs] = __mmask16(places);
      high[runs] = __mmask16(places >> 16);
      shift[runs++] = at[lane] - step * lane;
      lane = end;
    }
    return true;
  }
};

inline __m512 read_every_second(const Lanes& lanes, const float* image) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  __m512 v = _mm512_setzero_ps();
  for (int run = 0; run < lanes.runs; run++) {
    const float* from = image + lanes.shift[run];
    __m512 low = _mm512_maskz_loadu_ps(lanes.low[run], from),
           high = _mm512_maskz_loadu_ps(lanes.high[run], from + 16);
    v = _mm512_mask_mov_ps(v, lanes.mask[run], _mm512_permutex2var_ps(low, even, high));
  }
  return v;
}

inline __m512 read(const Lanes& lanes, const float* image) {
  if (lanes.runs == 0) return _mm512_loadu_ps(image + lanes.shift[0]);
  if (lanes.runs < 0) return _mm512_i32gather_ps(_mm512_loadu_si512(lanes.at), image, 4);
  if (lanes.step == 2) return read_every_second(lanes, image);
  __m512 v = _mm512_maskz_loadu_ps(lanes.mask[0], image + lanes.shift[0]);
  for (int run = 1; run < lanes.runs; run++)
    v = _mm512_mask_loadu_ps(v, lanes.mask[run], image + lanes.shift[run]);
  return v;
}

// `terms` terms, at these offsets from the image, of 16 pixels that lie in RUNS runs of neighbours.
template <int RUNS>
void pack_runs(const Lanes& lanes, const float* image, const int64_t* offsets, int64_t terms, float* to) {
  __mmask16 mask[RUNS];
  const float* from[RUNS];
  for (int r = 0; r < RUNS; r++) mask[r] = lanes.mask[r], from[r] = image + lanes.shift[r];
  for (int64_t k = 0; k < terms; k++, to += WIDTH) {
    int64_t at = offsets[k];
    __m512 v = _mm512_maskz_loadu_ps(mask[0], from[0] + at);
#pragma GCC unroll 4
    for (int r = 1; r < RUNS; r++) v = _mm512_mask_loadu_ps(v, mask[r], from[r] + at);
    _mm512_storeu_ps(to, v);
  }
}

// Half of a panel. What kind of lanes these are is asked once, not for each term.
inline void pack_half(const Lanes& lanes, const float* image, const int64_t* offsets, int64_t terms,
                      float* to) {
  if (lanes.runs == 0) {
    const float* from = image + lanes.shift[0];
    for (int64_t k = 0; k < terms; k++) _mm512_storeu_ps(to + k * WIDTH, _mm512_loadu_ps(from + offsets[k]));
  } else if (lanes.step == 1 && lanes.runs > 0) {
    constexpr decltype(&pack_runs<1>) BY_RUNS[] = {pack_runs<1>, pack_runs<2>, pack_runs<3>, pack_runs<4>};
    BY_RUNS[lanes.runs - 1](lanes, image, offsets, terms, to);
  } else {
    for (int64_t k = 0; k < terms; k++) _mm512_storeu_ps(to + k * WIDTH, read(lanes, image + offsets[k]));
  }
}

// Small images are taken together, so that panels are full and the weights are read once for all of them.
struct Blocking {
  int64_t rows, tiles;      // channels of a tile, tiles of a group
  int64_t together, parts;  // images taken together, or parts of one (one of the two is 1)
  int64_t image_step;       // from one image of a block to the next, in what the panels are read from

  // `channels` are those of a group, as they are packed.
  Blocking(const ConvShape& s, const Padded& padded, int64_t channels) {
    rows = rows_of_tile(s.group_out());
    tiles = (s.group_out() + rows - 1) / rows;
    int64_t images = s.batch * s.groups, threads = num_threads(), panels = (s.pixels() + WIDTH - 1) / WIDTH;
    int64_t fit = 2 * PANELS * WIDTH / s.pixels(), least = std::max<int64_t>(1, images / threads);
    together = std::clamp<int64_t>(fit, 1, std::min(s.batch, least));
    parts = together > 1 ? 1 : std::clamp<int64_t>(threads / images, 1, panels);
    image_step = padded.copies ? channels * padded.plane() : s.in_channels * s.in_pixels();
    if (padded.copies) together = std::clamp<int64_t>(COPIED_PIXELS / image_step, 1, together);
    if (double(together) * double(image_step) > 1e9) together = 1;
  }
};

// How the panels of `count` images are read.
inline std::vector<Lanes> panel_lanes(const Padded& padded, const Blocking& blocking, int64_t count) {
  int64_t pixels = int64_t(padded.pixels.size()), all = count * pixels;
  std::vector<int32_t> places;
  places.reserve(size_t(all));
  for (int64_t i = 0; i < count; i++)
    for (int32_t place : padded.pixels) places.push_back(int32_t(i * blocking.image_step) + place);
  std::vector<Lanes> lanes;
  int64_t halves = (all + WIDTH - 1) / WIDTH * 2;
  lanes.reserve(size_t(halves));
  for (int64_t half = 0; half < halves; half++)
    // A half without pixels reads the last one and is not stored.
    lanes.emplace_back(places.data(), std::min(half * 16, all - 1),
                       std::clamp<int64_t>(all - half * 16, 1, 16));
  return lanes;
}

// y = conv(x, w) + bias. Elements says what is packed: floats, or pairs of channels that fill the same 32
// bits.
template <class Elements>
void convolve_panels(const ConvShape& s, float* y, const typename Elements::Type* x,
                     const typename Elements::Type* w, const float* bias, bool turned,
                     const int64_t* origin = nullptr) {
  int64_t pixels = s.pixels(), gin = s.group_in(), gout = s.group_out();
  int64_t channels = Elements::channels(gin), terms = channels * s.kernel_size();
  Padded padded(s, channels, Elements::MAY_HALVE, origin);
  padded.copies |= Elements::ALWAYS_COPIED;
  Blocking blocking(s, padded, channels);
  int64_t rows = blocking.rows, tiles = blocking.tiles, together = blocking.together;
  Workspaces weights(1, s.groups * tiles * terms * rows * int64_t(sizeof(float)));
  Workspaces::Lease packed_weights(weights);
  Elements::pack_weights(s, turned, w, rows, tiles, packed_weights.as<float>());
  Tile run = Elements::tile(rows);
  int64_t blocks = (s.batch + together - 1) / together, rest = s.batch - (blocks - 1) * together;
  std::vector<Lanes> full = panel_lanes(padded, blocking, together), partial;
  if (rest != together) partial = panel_lanes(padded, blocking, rest);
  int64_t image_room = padded.copies ? together * channels * padded.plane() : 0;
  int64_t result_room = together > 1 ? gout * together * pixels : 0;
  Workspaces spaces(num_threads(),
                    (image_room + PANELS * DEPTH * WIDTH + result_room) * int64_t(sizeof(float)));
  divide(s.work(), blocks * s.groups * blocking.parts, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    float *packed = lease.as<float>(), *room = packed + PANELS * DEPTH * WIDTH, *results = room + image_room;
    for (int64_t task = begin; task < end; task++) {
      int64_t part = task % blocking.parts, group = task / blocking.parts % s.groups;
      int64_t block = task / blocking.parts / s.groups, first = block * together;
      int64_t count = block == blocks - 1 ? rest : together, used = count * pixels;
      const std::vector<Lanes>& lanes = count == together ? full : partial;
      const typename Elements::Type* images = x + (first * s.groups + group) * gin * s.in_pixels();
      const float* from = room;
      if (padded.copies) {
        for (int64_t i = 0; i < count; i++)
          Elements::fill(padded, s, images + i * s.in_channels * s.in_pixels(),
                         room + i * channels * padded.plane());
      } else if constexpr (!Elements::ALWAYS_COPIED) {
        from = images;
      }
      float* to = together > 1 ? results : y + (first * s.groups + group) * gout * pixels;
      int64_t ld = together > 1 ? used : pixels;
      int64_t panels = (used + WIDTH - 1) / WIDTH, each = (panels + blocking.parts - 1) / blocking.parts;
      int64_t last = std::min(panels, (part + 1) * each);
      for (int64_t start = part * each; start < last; start += PANELS) {
        int64_t stop = std::min(last, start + PANELS);
        for (int64_t k0 = 0; k0 < terms; k0 += DEPTH) {
          int64_t depth = std::min(DEPTH, terms - k0);
          for (int64_t panel = start; panel < stop; panel++) {
            float* into = packed + (panel - start) * DEPTH * WIDTH;
            for (int64_t half = 0; half < 2; half++)
              pack_half(lanes[size_t(2 * panel + half)], from, padded.terms.data() + k0, depth,
                        into + half * 16);
          }
          for (int64_t t = 0; t < tiles; t++) {
            int64_t channel = t * rows;
            const float* tile_weights =
                packed_weights.as<float>() + ((group * tiles + t) * terms + k0) * rows;
            for (int64_t panel = start; panel < stop; panel++) {
              int64_t at = panel * WIDTH;
              run(depth, tile_weights, packed + (panel - start) * DEPTH * WIDTH, to + channel * ld + at, ld,
                  std::min(rows, gout - channel), std::min(WIDTH, used - at),
                  bias ? bias + group * gout + channel : nullptr, k0 == 0);
            }
          }
        }
      }
      if (together == 1) continue;
      for (int64_t i = 0; i < count; i++)
        for (int64_t o = 0; o < gout; o++)
          std::memcpy(y + (((first + i) * s.groups + group) * gout + o) * pixels,
                      results + o * ld + i * pixels, size_t(pixels) * sizeof(float));
    }
  });
}

RL_AVX512_END

}  // namespace
}  // namespace rl
