// Convolutions of bfloat16 by VDPBF16PS. Start at `conv_forward_bf16`.
//
// Forward, two neighbouring channels of a pixel are one word of 32 bits (a zero beside an odd last one): from
// there on words are packed as floats are (conv_panels.h) and only the tile differs. The gradient of the
// weights is a sum over pixels, so that two neighbouring pixels are a pair: patches are written out as rows
// of bfloat16, whose words are then packed.
#include "conv_bf16.h"

#include "conv_avx512.h"
#include "gemm_bf16.h"

#if defined(__x86_64__)
#include "conv_panels.h"

namespace rl {
namespace {

constexpr int64_t GRAD_PIXELS = 640;  // of a block of the weights' gradient
constexpr int64_t GRAD_TERMS = 64;    // rows of patches at a time
constexpr int64_t SLACK = 64;         // elements that may be read and written past the end of a row

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx2,fma")
#endif

// to[i] = the pair of first[i] and second[i], which may be null.
inline void interleave(uint32_t* to, const uint16_t* first, const uint16_t* second, int64_t n) {
  if (second)
    for (int64_t i = 0; i < n; i++) to[i] = first[i] | uint32_t(second[i]) << 16;
  else
    for (int64_t i = 0; i < n; i++) to[i] = first[i];
}

struct Pairs {
  using Type = uint16_t;
  static constexpr bool ALWAYS_COPIED = true, MAY_HALVE = false;
  static int64_t channels(int64_t count) { return (count + 1) / 2; }
  static Tile tile(int64_t rows) { return bf16_tile(rows); }

  static void fill(const Padded& padded, const ConvShape& s, const uint16_t* x, float* room) {
    int64_t gin = s.group_in(), plane = s.in_pixels(), width = s.in[2];
    uint32_t* words = reinterpret_cast<uint32_t*>(room);
    if (padded.plane() != plane) std::memset(room, 0, size_t(channels(gin) * padded.plane()) * sizeof(float));
    for (int64_t c = 0; c < gin; c += 2, words += padded.plane(), x += 2 * plane) {
      const uint16_t* second = c + 1 < gin ? x + plane : nullptr;
      if (padded.plane() == plane) {
        interleave(words, x, second, plane);
        continue;
      }
      int64_t from = 0;
      for (int64_t z = 0; z < s.in[0]; z++)
        for (int64_t y = 0; y < s.in[1]; y++, from += width) {
          int64_t line = (z + s.padding[0]) * padded.size[1] + y + s.padding[1];
          interleave(words + line * padded.size[2] + s.padding[2], x + from, second ? second + from : nullptr,
                     width);
        }
    }
  }

  // [tile][pair of channels, position][row], zeros where there is no channel.
  static void pack_weights(const ConvShape& s, bool turned, const uint16_t* w, int64_t rows, int64_t tiles,
                           float* to) {
    int64_t gin = s.group_in(), gout = s.group_out(), size = s.kernel_size();
    int64_t terms = channels(gin) * size;
    Workspaces room(1, rows * (turned ? size : terms) * int64_t(sizeof(uint32_t)));
    Workspaces::Lease lease(room);
    uint32_t* words = lease.as<uint32_t>();
    const float* packed = lease.as<float>();
    for (int64_t g = 0; g < s.groups; g++, w += gin * gout * size)
      for (int64_t t = 0; t < tiles; t++, to += terms * rows) {
        int64_t first = t * rows, count = std::min(rows, gout - first);
        if (turned) {  // channels change roles, positions run backwards
          for (int64_t c = 0; c < gin; c += 2) {
            const uint16_t* from = w + (c * gout + first) * size;
            interleave(words, from, c + 1 < gin ? from + gout * size : nullptr, count * size);
            avx512_pack_rows(packed, size, count, size, rows, rows, true, to + c / 2 * size * rows);
          }
          continue;
        }
        for (int64_t r = 0; r < count; r++)
          for (int64_t c = 0; c < gin; c += 2) {
            const uint16_t* from = w + ((first + r) * gin + c) * size;
            interleave(words + r * terms + c / 2 * size, from, c + 1 < gin ? from + size : nullptr, size);
          }
        avx512_pack_rows(packed, terms, count, terms, rows, rows, false, to);
      }
  }
};

// A piece of a row of the image that belongs to neighbouring output pixels.
struct Piece {
  int64_t from, to;  // in the image, and in the block
  int64_t count;     // at most 32
};

// The pieces of output pixels [p0, p0 + n).
void find_pieces(const ConvShape& s, const Padded& padded, int64_t p0, int64_t n,
                 std::vector<Piece>& pieces) {
  pieces.clear();
  for (int64_t p = p0; p < p0 + n;) {
    int64_t count = std::min({int64_t(32), p0 + n - p, s.out[2] - p % s.out[2]});
    pieces.push_back({padded.pixels[size_t(p)], p - p0, count});
    p += count;
  }
}

// Pieces of one image, for one term, in order: what is written beyond a piece is written over by the next.
void write_pieces(const std::vector<Piece>& pieces, int64_t stride, const uint16_t* image, uint16_t* row) {
  if (stride == 1) {
    for (const Piece& p : pieces) _mm512_storeu_si512(row + p.to, _mm512_loadu_si512(image + p.from));
  } else if (stride == 2) {
    alignas(64) static const uint16_t even[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20,
                                                  22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42,
                                                  44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
    __m512i order = _mm512_load_si512(even);
    for (const Piece& p : pieces)
      _mm512_storeu_si512(row + p.to, _mm512_permutex2var_epi16(_mm512_loadu_si512(image + p.from), order,
                                                                _mm512_loadu_si512(image + p.from + 32)));
  } else {
    for (const Piece& p : pieces)
      for (int64_t i = 0; i < p.count; i++) row[p.to + i] = image[p.from + i * stride];
  }
}

// The image with zeros around it; there is room for SLACK elements behind.
void fill_padded(const ConvShape& s, const Padded& padded, const uint16_t* x, uint16_t* room) {
  int64_t gin = s.group_in(), all = gin * padded.plane();
  if (!padded.copies) std::memcpy(room, x, size_t(all) * sizeof(uint16_t));
  else std::memset(room, 0, size_t(all) * sizeof(uint16_t));
  for (int64_t c = 0; padded.copies && c < gin; c++)
    for (int64_t z = 0; z < s.in[0]; z++)
      for (int64_t y = 0; y < s.in[1]; y++, x += s.in[2]) {
        int64_t line = (c * padded.size[0] + z + s.padding[0]) * padded.size[1] + y + s.padding[1];
        std::memcpy(room + line * padded.size[2] + s.padding[2], x, size_t(s.in[2]) * sizeof(uint16_t));
      }
}

// As in conv_avx512.cpp: pixels of all images of a range are one long dimension, taken in blocks.
void weight_gradient(const ConvShape& s, float* gw, const uint16_t* gy, const uint16_t* x) {
  int64_t pixels = s.pixels(), terms = s.terms(), gin = s.group_in(), gout = s.group_out();
  int64_t weights = s.out_channels * terms;
  Padded padded(s, gin);
  int64_t ranges = s.work() < THREADED ? 1 : std::min<int64_t>(s.batch, num_threads());
  int64_t image_room = gin * padded.plane() + SLACK;
  int64_t together =
      std::max<int64_t>(1, std::min({GRAD_PIXELS / pixels, s.batch, COPIED_PIXELS / image_room}));
  int64_t width = std::min(pixels, GRAD_PIXELS);
  int64_t rows = rows_of_tile(gout), tiles = (gout + rows - 1) / rows;
  int64_t ld = (together * width + 31) / 32 * 32, columns_room = GRAD_TERMS * ld + SLACK;
  // In words: gradients as they are and packed, patches as they are and packed, images.
  int64_t g_words = gout * ld / 2, packed_words = tiles * rows * ld / 2, panel_words = WIDTH * ld / 2;
  Workspaces spaces(num_threads(), (g_words + packed_words + columns_room / 2 + panel_words +
                                    (together * image_room + 1) / 2) *
                                       int64_t(sizeof(float)));
  Tile run = bf16_tile(rows);
  std::vector<float> sums(size_t((ranges - 1) * weights), 0.0f);
  std::fill_n(gw, weights, 0.0f);
  divide(s.work(), ranges, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    float *packed = lease.as<float>(), *panel = packed + packed_words;
    uint16_t *g = reinterpret_cast<uint16_t*>(panel + panel_words), *columns = g + 2 * g_words;
    uint16_t* room = columns + columns_room;
    std::vector<Piece> pieces;
    auto block = [&](int64_t group, int64_t first, int64_t count, int64_t p0, int64_t n, float* sum) {
      int64_t used = count * n, pairs = (used + 1) / 2;
      for (int64_t o = 0; o < gout; o++) {
        for (int64_t i = 0; i < count; i++)
          std::memcpy(g + o * ld + i * n, gy + (((first + i) * s.groups + group) * gout + o) * pixels + p0,
                      size_t(n) * sizeof(uint16_t));
        if (used % 2) g[o * ld + used] = 0;
      }
      for (int64_t t = 0; t < tiles; t++)
        avx512_pack_rows(reinterpret_cast<float*>(g + t * rows * ld), ld / 2, std::min(rows, gout - t * rows),
                         pairs, rows, rows, false, packed + t * pairs * rows);
      find_pieces(s, padded, p0, n, pieces);
      for (int64_t k0 = 0; k0 < terms; k0 += GRAD_TERMS) {
        int64_t height = std::min(GRAD_TERMS, terms - k0);
        for (int64_t k = 0; k < height; k++)
          for (int64_t i = 0; i < count; i++)
            write_pieces(pieces, s.stride[2], room + i * image_room + padded.terms[size_t(k0 + k)],
                         columns + k * ld + i * n);
        for (int64_t k = 0; used % 2 && k < height; k++) columns[k * ld + used] = 0;
        float* sum_at = sum + group * gout * terms + k0;
        for (int64_t k = 0; k < height; k += WIDTH) {
          for (int64_t half = 0; half < WIDTH; half += 16)
            avx512_pack_rows(reinterpret_cast<float*>(columns + (k + half) * ld), ld / 2,
                             std::clamp<int64_t>(height - k - half, 0, 16), pairs, 16, WIDTH, false,
                             panel + half);
          for (int64_t t = 0; t < tiles; t++)
            run(pairs, packed + t * pairs * rows, panel, sum_at + t * rows * terms + k, terms,
                std::min(rows, gout - t * rows), std::min(WIDTH, height - k), nullptr, false);
        }
      }
    };
    for (int64_t range = begin; range < end; range++) {
      float* sum = range == 0 ? gw : sums.data() + (range - 1) * weights;
      int64_t last = s.batch * (range + 1) / ranges;
      for (int64_t first = s.batch * range / ranges; first < last; first += together) {
        int64_t count = std::min(together, last - first);
        for (int64_t group = 0; group < s.groups; group++) {
          for (int64_t i = 0; i < count; i++)
            fill_padded(s, padded, x + ((first + i) * s.groups + group) * gin * s.in_pixels(),
                        room + i * image_room);
          for (int64_t p0 = 0; p0 < pixels; p0 += width)
            block(group, first, count, p0, std::min(width, pixels - p0), sum);
        }
      }
    }
  });
  for (int64_t range = 1; range < ranges; range++)
    for (int64_t i = 0; i < weights; i++) gw[i] += sums[size_t((range - 1) * weights + i)];
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

}  // namespace

bool conv_has_bf16(const ConvShape& s) {
  return bf16_pairs_chosen() && s.group_in() > 1 && s.group_out() > 1 && s.work() > 20000 &&
         conv_has_avx512(s);
}

void conv_forward_bf16(const ConvShape& s, float* y, const uint16_t* x, const uint16_t* w, const float* bias,
                       bool turned) {
  if (s.batch == 0 || s.pixels() == 0 || s.out_channels == 0) return;
  convolve_panels<Pairs>(s, y, x, w, bias, turned);
}

void conv_weight_gradient_bf16(const ConvShape& s, float* gw, const uint16_t* gy, const uint16_t* x) {
  weight_gradient(s, gw, gy, x);
}

}  // namespace rl

#else  // other processors

namespace rl {
bool conv_has_bf16(const ConvShape&) { return false; }
void conv_forward_bf16(const ConvShape&, float*, const uint16_t*, const uint16_t*, const float*, bool) {}
void conv_weight_gradient_bf16(const ConvShape&, float*, const uint16_t*, const uint16_t*) {}
}  // namespace rl

#endif
