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
  int64_t first, last;  // first >= last: none

  Inside(int64_t begin, int64_t end, int64_t stride, int64_t shift, int64_t size) {
    first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    last = size - shift <= 0 ? 0 : (size - shift - 1) / stride + 1;
    first = std::clamp(first, begin, end);
    last = std::clamp(last, first, end);
  }
};

// Calls body(row of the columns, column, input pixel of the first position or -1, inside, begin, end) for
// every segment: output positions [begin, end) of one output row, those of `inside` being within the image.
template <class F>
inline void for_segments(const ConvShape& s, int64_t channels, int64_t p0, int64_t p1, F&& body) {
  if (p0 >= p1) return;
  int64_t width = s.out[2], height = s.out[1], row = 0;
  // Divisions are as dear as a short segment: none of them inside.
  int64_t first_line = p0 / width, first_od = first_line / height;
  for (int64_t c = 0; c < channels; c++)
    for (int64_t kd = 0; kd < s.kernel[0]; kd++)
      for (int64_t kh = 0; kh < s.kernel[1]; kh++)
        for (int64_t kw = 0; kw < s.kernel[2]; kw++, row++) {
          int64_t shift = kw * s.dilation[2] - s.padding[2];
          Inside of_row(0, width, s.stride[2], shift, s.in[2]);
          int64_t od = first_od, oh = first_line - od * height, begin = p0 - first_line * width;
          for (int64_t p = p0; p < p1;) {
            int64_t end = std::min(width, begin + (p1 - p));
            int64_t z = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
            int64_t y = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            bool outside = z < 0 || z >= s.in[0] || y < 0 || y >= s.in[1];
            Inside inside = of_row;
            inside.first = std::clamp(inside.first, begin, end);
            inside.last = outside ? inside.first : std::clamp(inside.last, inside.first, end);
            int64_t pixel = ((c * s.in[0] + z) * s.in[1] + y) * s.in[2] + shift;
            body(row, p - p0, pixel, inside, begin, end);
            p += end - begin;
            begin = 0;
            if (++oh == height) oh = 0, od++;
          }
        }
}

// columns[row * ld + p - p0] for p in [p0, p1).
template <class T>
void image_to_columns(const ConvShape& s, int64_t channels, const T* x, T* columns, int64_t ld, int64_t p0,
                      int64_t p1) {
  int64_t step = s.stride[2];
  for_segments(s, channels, p0, p1,
               [&](int64_t row, int64_t column, int64_t pixel, Inside inside, int64_t begin, int64_t end) {
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

// Adds every column back to where it came from.
template <class T>
void columns_to_image(const ConvShape& s, int64_t channels, T* x, const T* columns, int64_t ld, int64_t p0,
                      int64_t p1) {
  int64_t step = s.stride[2];
  for_segments(s, channels, p0, p1,
               [&](int64_t row, int64_t column, int64_t pixel, Inside inside, int64_t begin, int64_t) {
                 const T* from = columns + row * ld + column - begin;
                 if (step == 1) {
                   for (int64_t o = inside.first; o < inside.last; o++)
                     x[pixel + o] = T(compute_t<T>(x[pixel + o]) + compute_t<T>(from[o]));
                 } else {
                   for (int64_t o = inside.first; o < inside.last; o++)
                     x[pixel + o * step] = T(compute_t<T>(x[pixel + o * step]) + compute_t<T>(from[o]));
                 }
               });
}

}  // namespace rl
