// Pooling by maxima of images whose channels lie side by side: all channels of a pixel at once, in vectors.
// Start at `for_pixels`.
#include <algorithm>
#include <limits>

#include "pool_rows.h"
#include "workspace.h"

namespace rl {
namespace {

constexpr int64_t BLOCK = 256;  // channels that are worked on together

// The pixels under window `position` of an image, one after the other.
template <class F>
inline void for_taps(const Windows& w, int64_t od, int64_t oh, int64_t ow, F&& tap) {
  for (int64_t z = w.begin[0][size_t(od)]; z < w.end[0][size_t(od)]; z += w.step[0])
    for (int64_t y = w.begin[1][size_t(oh)]; y < w.end[1][size_t(oh)]; y += w.step[1])
      for (int64_t x = w.begin[2][size_t(ow)]; x < w.end[2][size_t(ow)]; x += w.step[2])
        tap((z * w.in[1] + y) * w.in[2] + x);
}

template <class F>
void visit_pooled(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(TypeTag<float>{}, TypeTag<int32_t>{});
    case DType::f64: return f(TypeTag<double>{}, TypeTag<int64_t>{});
    case DType::bf16: return f(TypeTag<BFloat16>{}, TypeTag<int32_t>{});
    default: return f(TypeTag<Half>{}, TypeTag<int32_t>{});
  }
}

// Calls body(image, first channel, channels, best, at) for every block of channels of every image, over
// threads; `best` and `at` are room for the values and indices of a block.
template <class F>
void for_blocks(DType dtype, const Windows& w, int64_t batch, int64_t channels, const F& body) {
  int64_t blocks = (channels + BLOCK - 1) / BLOCK;
  Workspaces spaces(num_threads(), BLOCK * 16);
  visit_pooled(dtype, [&](auto tag, auto index) {
    using T = typename decltype(tag)::type;
    using I = typename decltype(index)::type;
    divide(double(batch) * double(w.in_size()) * double(channels), batch * blocks,
           [&](int64_t begin, int64_t end) {
             Workspaces::Lease lease(spaces);
             I* at = reinterpret_cast<I*>(lease.as<char>() + BLOCK * 8);
             for (int64_t i = begin; i < end; i++) {
               int64_t first = i % blocks * BLOCK;
               body(i / blocks, first, std::min(BLOCK, channels - first), lease.as<T>(), at);
             }
           });
  });
}

// Finds the maximum of every window for `n` channels: `best` and, in `at`, which pixel it is in. An empty
// window has the lowest value where it begins. Then calls body(position, od, oh, ow).
template <class T, class I, class F>
inline void for_pixels(const Windows& w, const PoolRows::LargerInRow& larger, const T* x, int64_t channels,
                       int64_t n, T* best, I* at, F&& body) {
  int64_t position = 0;
  for (int64_t od = 0; od < w.out[0]; od++)
    for (int64_t oh = 0; oh < w.out[1]; oh++)
      for (int64_t ow = 0; ow < w.out[2]; ow++, position++) {
        int64_t z = w.begin[0][size_t(od)], y = w.begin[1][size_t(oh)], c = w.begin[2][size_t(ow)];
        std::fill_n(best, n, T(-std::numeric_limits<compute_t<T>>::infinity()));
        std::fill_n(at, n, I((z * w.in[1] + y) * w.in[2] + c));
        for_taps(w, od, oh, ow, [&](int64_t pixel) { larger(best, at, x + pixel * channels, n, pixel); });
        body(position, od, oh, ow);
      }
}

}  // namespace

bool pools_channels(DType dtype, const Windows& w, int64_t channels) {
  bool taken = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
  return taken && channels >= 4 && w.in_size() < INT32_MAX;
}

void max_pool_channels(DType dtype, const Windows& w, int64_t batch, int64_t channels, void* y,
                       int64_t* indices, const void* x) {
  PoolRows::LargerInRow in_row = fastest_pool_rows().larger_in_row[int(dtype)];
  auto pool = [&]<class T, class I>(int64_t image, int64_t first, int64_t n, T* best, I* at) {
    const T* from = static_cast<const T*>(x) + image * w.in_size() * channels + first;
    int64_t to = image * w.out_size() * channels + first;
    for_pixels(w, in_row, from, channels, n, best, at, [&](int64_t position, int64_t, int64_t, int64_t) {
      std::copy_n(best, n, static_cast<T*>(y) + to + position * channels);
      if (indices) std::copy_n(at, n, indices + to + position * channels);
    });
  };
  for_blocks(dtype, w, batch, channels, pool);
}

void max_pool_gradient_channels(DType dtype, const Windows& w, int64_t batch, int64_t channels, void* gx,
                                const void* gy, const void* x) {
  PoolRows::LargerInRow in_row = fastest_pool_rows().larger_in_row[int(dtype)];
  PoolRows::AddInRow add = fastest_pool_rows().add_in_row[int(dtype)];
  auto spread = [&]<class T, class I>(int64_t image, int64_t first, int64_t n, T* best, I* at) {
    int64_t place = image * w.in_size() * channels + first;
    T* to = static_cast<T*>(gx) + place;
    const T* g = static_cast<const T*>(gy) + image * w.out_size() * channels + first;
    for (int64_t pixel = 0; pixel < w.in_size(); pixel++) std::fill_n(to + pixel * channels, n, T(0));
    for_pixels(w, in_row, static_cast<const T*>(x) + place, channels, n, best, at,
               [&](int64_t position, int64_t od, int64_t oh, int64_t ow) {
                 const T* from = g + position * channels;
                 for_taps(w, od, oh, ow,
                          [&](int64_t pixel) { add(to + pixel * channels, at, from, n, pixel); });
               });
  };
  for_blocks(dtype, w, batch, channels, spread);
}

}  // namespace rl
