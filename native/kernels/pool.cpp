// Pooling by maxima, plane by plane. Start at `max_pool`.
//
// Values alone are separable: first the maximum over the rows of a window, which runs along the width in
// vectors (simd/pool_rows.cpp), then over its columns. Indices of float and double are found the same
// way, of other types window by window.
#include "pool.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "elementwise.h"
#include "pool_rows.h"
#include "workspace.h"

namespace rl {

const PoolRows& fastest_pool_rows() {
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = !std::strcmp(cpu_capability(), "AVX2");
  if (has_avx2) return avx2::pool_rows;
#endif
  return baseline::pool_rows;
}

namespace {

template <class F>
void visit_real(DType dtype, F&& f) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

template <class T>
using place_t = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
template <class T>
constexpr bool by_columns = std::is_floating_point_v<T>;

template <class C>
constexpr C lowest() {
  return std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
}

// Calls body(output position, index of the maximum, maximum, whether it is empty) for every window of a
// plane. An empty window, which only padding and dilation together can make, has the lowest value where it
// begins, though that be outside of the plane.
template <class T, class F>
inline void for_windows(const Windows& w, const T* x, F&& body) {
  using C = compute_t<T>;
  int64_t position = 0;
  for (int64_t od = 0; od < w.out[0]; od++)
    for (int64_t oh = 0; oh < w.out[1]; oh++)
      for (int64_t ow = 0; ow < w.out[2]; ow++, position++) {
        int64_t z0 = w.begin[0][size_t(od)], z1 = w.end[0][size_t(od)], y0 = w.begin[1][size_t(oh)],
                y1 = w.end[1][size_t(oh)], x0 = w.begin[2][size_t(ow)], x1 = w.end[2][size_t(ow)];
        C best = lowest<C>();
        int64_t at = (z0 * w.in[1] + y0) * w.in[2] + x0;
        for (int64_t z = z0; z < z1; z += w.step[0])
          for (int64_t y = y0; y < y1; y += w.step[1]) {
            int64_t row = (z * w.in[1] + y) * w.in[2];
            for (int64_t i = x0; i < x1; i += w.step[2]) {
              C value = C(x[row + i]);
              if (value > best || value != value) best = value, at = row + i;
            }
          }
        body(position, at, T(best), z0 >= z1 || y0 >= y1 || x0 >= x1);
      }
}

// How many elements the longest window has along the width.
int64_t most_taps(const Windows& w) {
  int64_t length = 0;
  for (size_t o = 0; o < size_t(w.out[2]); o++) length = std::max(length, w.end[2][o] - w.begin[2][o]);
  return (length + w.step[2] - 1) / w.step[2];
}

// The same for float and double in less than a third of the time: first the maximum of every column of a line
// of windows, along the width in vectors, and the row it is in; then the best of a window's few columns, of
// whole windows in vectors again. Of equal maxima the one in the first row counts, of several NaN the last.
template <class T, class F>
inline void for_windows_by_columns(DType dtype, const Windows& w, const T* x, char* memory, F&& body) {
  using I = place_t<T>;
  using C = compute_t<T>;
  const PoolRows& loops = fastest_pool_rows();
  I *best_row = reinterpret_cast<I*>(memory), *joined_row = best_row + w.in[2],
    *joined_offset = joined_row + w.in[2];
  T *best = reinterpret_cast<T*>(joined_offset + w.in[2]), *joined = best + w.in[2];
  const int64_t taps = most_taps(w), reach = (taps - 1) * w.step[2], places = w.in[2] - reach;
  const bool shared = taps > 1 && places > 0 && places * (taps - 1) <= 8 * taps * w.out[2];
  const int64_t *begin = w.begin[2].data(), *end = w.end[2].data(), step = w.step[2], width = w.in[2];
  int64_t position = 0;
  for (int64_t od = 0; od < w.out[0]; od++)
    for (int64_t oh = 0; oh < w.out[1]; oh++) {
      int64_t z0 = w.begin[0][size_t(od)], z1 = w.end[0][size_t(od)], y0 = w.begin[1][size_t(oh)],
              y1 = w.end[1][size_t(oh)];
      const I first = I(z0 * w.in[1] + y0);
      const bool none = z0 >= z1 || y0 >= y1;
      std::fill_n(best, width, T(lowest<C>()));
      std::fill_n(best_row, width, first);
      for (int64_t z = z0; z < z1; z += w.step[0])
        for (int64_t y = y0; y < y1; y += w.step[1])
          loops.larger_in_row[int(dtype)](best, best_row, x + (z * w.in[1] + y) * width, width,
                                          z * w.in[1] + y);
      if (shared)
        loops.best_along[int(dtype)](joined, joined_row, joined_offset, best, best_row, places, step, taps);
      for (int64_t ow = 0; ow < w.out[2]; ow++, position++) {
        int64_t column = begin[ow];
        if (shared && column + reach < end[ow]) {
          body(position, joined_row[column] * width + column + joined_offset[column], joined[column], none);
          continue;
        }
        C value = lowest<C>();
        I row = first;
        if (begin[ow] < end[ow]) value = C(best[column]), row = best_row[column];
        for (int64_t i = begin[ow] + step; i < end[ow]; i += step) {
          C other = C(best[i]);
          I other_row = best_row[i];
          bool better = (other > value) | ((other == value) & (other_row < row)) |
                        ((other != other) & ((value == value) | (other_row >= row)));
          value = better ? other : value;
          row = better ? other_row : row;
          column = better ? i : column;
        }
        body(position, row * width + column, T(value), none || begin[ow] >= end[ow]);
      }
    }
}

// The faster of both; one lease per thread.
template <class T, class F>
inline void for_all_windows(DType dtype, const Windows& w, const T* x, const Workspaces::Lease& lease,
                            F&& body) {
  if constexpr (by_columns<T>) {
    if (w.in[0] * w.in[1] < INT32_MAX && w.in[2] < INT32_MAX)
      return for_windows_by_columns(dtype, w, x, lease.as<char>(), body);
  }
  for_windows(w, x, body);
}

// What it needs of memory, for each thread.
template <class T>
Workspaces columns_of(const Windows& w) {
  return {num_threads(), by_columns<T> ? w.in[2] * int64_t(2 * sizeof(T) + 3 * sizeof(place_t<T>)) : 0};
}

}  // namespace

void max_pool(DType dtype, const Windows& w, int64_t planes, void* y, const void* x) {
  visit_real(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Workspaces spaces(num_threads(), 2 * w.in[2] * int64_t(sizeof(T)));
    const int64_t taps = most_taps(w);
    divide(double(planes) * double(w.in_size()), planes, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      T *row = lease.as<T>(), *scratch = row + w.in[2];
      for (int64_t plane = begin; plane < end; plane++) {
        const T* from = static_cast<const T*>(x) + plane * w.in_size();
        T* to = static_cast<T*>(y) + plane * w.out_size();
        for (int64_t od = 0; od < w.out[0]; od++)
          for (int64_t oh = 0; oh < w.out[1]; oh++, to += w.out[2]) {
            int64_t lines = 0;
            const T* line = nullptr;
            for (int64_t z = w.begin[0][size_t(od)]; z < w.end[0][size_t(od)]; z += w.step[0])
              for (int64_t i = w.begin[1][size_t(oh)]; i < w.end[1][size_t(oh)]; i += w.step[1]) {
                const T* next = from + (z * w.in[1] + i) * w.in[2];
                if (lines++ == 0) line = next;
                else fastest_pool_rows().larger[int(dtype)](row, line, next, w.in[2]), line = row;
              }
            if (!lines) std::fill_n(to, w.out[2], T(lowest<compute_t<T>>()));
            else fastest_pool_rows().along[int(dtype)](to, line, scratch, w, taps);
          }
      }
    });
  });
}

void max_pool_indices(DType dtype, const Windows& w, int64_t planes, void* y, int64_t* indices,
                      const void* x) {
  visit_real(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Workspaces spaces = columns_of<T>(w);
    divide(double(planes) * double(w.in_size()), planes, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      for (int64_t plane = begin; plane < end; plane++) {
        T* to = static_cast<T*>(y) + plane * w.out_size();
        int64_t* places = indices + plane * w.out_size();
        for_all_windows(
            dtype, w, static_cast<const T*>(x) + plane * w.in_size(), lease,
            [&](int64_t position, int64_t at, T best, bool) { to[position] = best, places[position] = at; });
      }
    });
  });
}

void max_pool_gradient(DType dtype, const Windows& w, int64_t planes, void* gx, const void* gy,
                       const void* x) {
  visit_real(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Workspaces spaces = columns_of<T>(w);
    divide(double(planes) * double(w.in_size()), planes, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      for (int64_t plane = begin; plane < end; plane++) {
        T* to = static_cast<T*>(gx) + plane * w.in_size();
        const T *g = static_cast<const T*>(gy) + plane * w.out_size(),
                *from = static_cast<const T*>(x) + plane * w.in_size();
        std::fill_n(to, w.in_size(), T(0));
        for_all_windows(dtype, w, from, lease, [&](int64_t position, int64_t at, T, bool empty) {
          if (!empty) to[at] = T(compute_t<T>(to[at]) + compute_t<T>(g[position]));
        });
      }
    });
  });
}

bool find_bad_index(const PlaneMove& move, const int64_t* indices, int64_t& bad) {
  for (int64_t i = move.planes * move.count; i-- > 0;) {
    if (uint64_t(indices[i]) >= uint64_t(move.size)) {
      bad = indices[i];
      return true;
    }
  }
  return false;
}

void gather_planes(DType dtype, const PlaneMove& move, void* y, const void* x, const int64_t* indices) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    divide(double(move.planes) * double(move.count), move.planes, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        const T* from = static_cast<const T*>(x) + plane * move.size;
        T* to = static_cast<T*>(y) + plane * move.count;
        const int64_t* at = indices + plane * move.count;
        for (int64_t i = 0; i < move.count; i++) to[i] = from[at[i]];
      }
    });
  });
}

void scatter_planes(DType dtype, const PlaneMove& move, void* y, const void* x, const int64_t* indices,
                    bool add) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    divide(double(move.planes) * double(move.size), move.planes, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        T* to = static_cast<T*>(y) + plane * move.size;
        const T* from = static_cast<const T*>(x) + plane * move.count;
        const int64_t* at = indices + plane * move.count;
        std::fill_n(to, move.size, T(0));
        for (int64_t i = 0; i < move.count; i++) to[at[i]] = add ? T(C(to[at[i]]) + C(from[i])) : from[i];
      }
    });
  });
}

}  // namespace rl
