// im2col and col2im on a range of output pixels of one image: what conv.cpp multiplies with.
//
// Row k of the columns belongs to one (channel, kernel position); column p to one output pixel. Pixels of one
// output row lie side by side in the image (stride apart), so both loops work on segments of rows.
#pragma once
#include <algorithm>
#include <cstring>

#include "conv.h"

namespace rl {

// The output positions o in [begin, end) whose input o * stride + shift lies within [0, size).
struct Inside {
  int64_t first = 0, last = 0;  // first >= last: none

  Inside() = default;
  Inside(int64_t begin, int64_t end, int64_t stride, int64_t shift, int64_t size) {
    first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    last = size - shift <= 0 ? 0 : (size - shift - 1) / stride + 1;
    first = std::clamp(first, begin, end);
    last = std::clamp(last, first, end);
  }
};

// Calls body(row of the columns, column, input pixel of the first position or -1, inside, begin, end) for
// every segment: output positions [begin, end) of one output row, those of inside[0] being within the image.
// With `together` = 2 for two neighbouring positions of the kernel at once: inside[1] is of the second, empty
// if there is none.
template <int together = 1, class F>
inline void for_segments(const ConvShape& s, int64_t channels, int64_t p0, int64_t p1, F&& body) {
  if (p0 >= p1) return;
  int64_t width = s.out[2], height = s.out[1], row = 0;
  // Divisions are as dear as a short segment: none of them inside.
  int64_t first_line = p0 / width, first_od = first_line / height;
  for (int64_t c = 0; c < channels; c++)
    for (int64_t kd = 0; kd < s.kernel[0]; kd++)
      for (int64_t kh = 0; kh < s.kernel[1]; kh++)
        for (int64_t kw = 0; kw < s.kernel[2]; kw += together) {
          int64_t shift = kw * s.dilation[2] - s.padding[2];
          int64_t count = std::min<int64_t>(together, s.kernel[2] - kw);
          Inside of_row[together], inside[together];
          for (int64_t k = 0; k < count; k++)
            of_row[k] = Inside(0, width, s.stride[2], shift + k * s.dilation[2], s.in[2]);
          int64_t od = first_od, oh = first_line - od * height, begin = p0 - first_line * width;
          for (int64_t p = p0; p < p1;) {
            int64_t end = std::min(width, begin + (p1 - p));
            int64_t z = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
            int64_t y = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            bool outside = z < 0 || z >= s.in[0] || y < 0 || y >= s.in[1];
            for (int k = 0; k < together; k++) {
              inside[k].first = std::clamp(of_row[k].first, begin, end);
              inside[k].last = outside ? inside[k].first : std::clamp(of_row[k].last, inside[k].first, end);
            }
            int64_t pixel = ((c * s.in[0] + z) * s.in[1] + y) * s.in[2] + shift;
            body(row, p - p0, pixel, inside, begin, end);
            p += end - begin;
            begin = 0;
            if (++oh == height) oh = 0, od++;
          }
          row += count;
        }
}

// columns[row * ld + p - p0] for p in [p0, p1).
template <class T>
void image_to_columns(const ConvShape& s, int64_t channels, const T* x, T* columns, int64_t ld, int64_t p0,
                      int64_t p1) {
  int64_t step = s.stride[2];
  for_segments(
      s, channels, p0, p1,
      [&](int64_t row, int64_t column, int64_t pixel, const Inside* within, int64_t begin, int64_t end) {
        Inside inside = *within;
        T* to = columns + row * ld + column - begin;
        std::fill(to + begin, to + inside.first, T{});
        std::fill(to + inside.last, to + end, T{});
        if (inside.first >= inside.last) return;
        if (step == 1) {
          std::memcpy(static_cast<void*>(to + inside.first), x + pixel + inside.first,
                      size_t(inside.last - inside.first) * sizeof(T));
        } else {
          for (int64_t o = inside.first; o < inside.last; o++) to[o] = x[pixel + o * step];
        }
      });
}

// x[o * step] += from[o] for o in [first, last).
template <class T>
void add_apart(T* x, const T* from, int64_t step, int64_t first, int64_t last) {
  for (int64_t o = first; o < last; o++) x[o * step] = T(compute_t<T>(x[o * step]) + compute_t<T>(from[o]));
}

// Adds every column back to where it came from. With a stride of two, two neighbouring positions of the
// kernel fill a line without gaps, which vectors can do; they reach every other pixel each, so the sums of a
// pixel keep their order.
template <class T>
void columns_to_image(const ConvShape& s, int64_t channels, T* x, const T* columns, int64_t ld, int64_t p0,
                      int64_t p1) {
  int64_t step = s.stride[2];
  if (step != 2 || s.dilation[2] != 1) {
    auto add = [&](int64_t row, int64_t column, int64_t pixel, const Inside* inside, int64_t begin, int64_t) {
      const T* from = columns + row * ld + column - begin;
      if (step == 1) add_apart(x + pixel, from, 1, inside->first, inside->last);
      else add_apart(x + pixel, from, step, inside->first, inside->last);
    };
    return for_segments(s, channels, p0, p1, add);
  }
  auto add = [&](int64_t row, int64_t column, int64_t pixel, const Inside* inside, int64_t begin, int64_t) {
    const T *even = columns + row * ld + column - begin, *odd = even + ld;
    T* __restrict line = x + pixel;
    // Of the second position, which is one pixel further, no range begins or ends later.
    auto [first, last] = inside[0];
    auto [odd_first, odd_last] = inside[1];
    int64_t both_end = std::max(first, odd_last), odd_only = std::min(first, odd_last);
    add_apart(line + 1, odd, 2, odd_first, odd_only);
    for (int64_t o = first; o < std::min(last, both_end); o++) {
      line[2 * o] = T(compute_t<T>(line[2 * o]) + compute_t<T>(even[o]));
      line[2 * o + 1] = T(compute_t<T>(line[2 * o + 1]) + compute_t<T>(odd[o]));
    }
    add_apart(line, even, 2, both_end, last);
  };
  for_segments<2>(s, channels, p0, p1, add);
}

}  // namespace rl
