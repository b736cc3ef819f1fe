// Many lines that are transformed side by side, one in each lane of a vector, for AVX2. Start at
// `transform_batches`.
//
// pocketfft has the transforms for vectors of lines, but fills and empties the vectors number by number,
// which takes longer than a short transform. Here squares of numbers are turned round in registers: 10000
// lines of 16 complex floats in half the time. pocketfft is included before this file.
#pragma once
#if defined(__AVX2__)
#include <array>

#include "../index_walk.h"
#include "fft_powers.h"
#include "squares.h"

namespace rl {
inline namespace RL_ISA {
namespace batches {

template <class R>
constexpr int64_t LINES = 32 / sizeof(R);
constexpr int64_t LONGEST_LINE = 1 << 14, LONGEST_POWER = 32;

// `count` numbers of each of `lines` lines that lie `stride` numbers apart, to rows of one number of each;
// the lanes of lines that are not there are zeros.
template <class R>
void gather(const R* from, int64_t stride, int64_t lines, int64_t count, R* to) {
  constexpr int64_t L = LINES<R>;
  int64_t i = 0;
  if (lines == L) {
    for (; i + L <= count; i += L)
      transpose_square(reinterpret_cast<const char*>(from + i), stride * int64_t(sizeof(R)), to + i * L, L);
  } else {
    std::fill(to, to + count * L, R(0));
  }
  for (; i < count; i++)
    for (int64_t l = 0; l < lines; l++) to[i * L + l] = from[l * stride + i];
}

// The other way.
template <class R>
void scatter(const R* from, R* to, int64_t stride, int64_t lines, int64_t count) {
  constexpr int64_t L = LINES<R>;
  int64_t i = 0;
  if (lines == L) {
    for (; i + L <= count; i += L)
      transpose_square(reinterpret_cast<const char*>(from + i * L), L * int64_t(sizeof(R)), to + i, stride);
  }
  for (; i < count; i++)
    for (int64_t l = 0; l < lines; l++) to[l * stride + i] = from[i * L + l];
}

// What powers::down_columns multiplies by, for n = 2, 4 ... LONGEST_POWER.
template <class R>
const R* twiddles(int64_t n) {
  static const auto& tables = *new std::array<std::vector<R>, LONGEST_POWER + 1>([] {
    std::array<std::vector<R>, LONGEST_POWER + 1> all;
    for (int64_t length = 2; length <= LONGEST_POWER; length *= 2) powers::column_roots(length, all[length]);
    return all;
  }());
  return tables[size_t(n)].data();
}

// Every line along `axis`, if there are enough of them, evenly spaced, and their numbers lie together.
template <class R>
bool transform_batches(Transform kind, const Span& to, const Span& from, int axis, bool forward, R scale) {
  constexpr int64_t L = LINES<R>;
  const bool to_real = kind == Transform::complex_to_real, from_real = kind == Transform::real_to_complex;
  const int64_t n = to_real ? to.sizes[axis] : from.sizes[axis];
  if (n < 2 || n > LONGEST_LINE || to.strides[axis] != 1 || from.strides[axis] != 1) return false;
  int64_t sizes[MAX_DIMS];
  std::copy(to.sizes, to.sizes + to.ndim, sizes);
  sizes[axis] = 1;
  Walk<2> walk(to.ndim, sizes, {to.strides, from.strides});
  if (walk.sizes[walk.ndim - 1] < L) return false;

  using V = pocketfft::detail::vtype_t<R>;
  static_assert(sizeof(V) == sizeof(R) * L);
  pocketfft::detail::arr<V> room(size_t(2 * n + 2));
  V* rows = room.data();
  R* numbers = reinterpret_cast<R*>(rows);
  const int64_t to_each = to_real ? 1 : 2, from_each = from_real ? 1 : 2;  // numbers of an element
  auto run = [&](const auto& transform) {
    walk.run(0, walk.numel, [&](const int64_t* offsets, int64_t count) {
      const R* x = static_cast<const R*>(from.data) + offsets[1] * from_each;
      R* y = static_cast<R*>(to.data) + offsets[0] * to_each;
      const int64_t x_stride = walk.step(1) * from_each, y_stride = walk.step(0) * to_each;
      for (int64_t i = 0; i < count; i += L)
        transform(x + i * x_stride, x_stride, y + i * y_stride, y_stride, std::min(L, count - i));
    });
  };
  if (kind == Transform::complex && n <= LONGEST_POWER && (n & (n - 1)) == 0) {
    // Rows of real and of imaginary parts in turn; backwards is forwards with the two exchanged.
    pocketfft::detail::arr<V> second(size_t(2 * n));
    R* others = reinterpret_cast<R*>(second.data());
    const int64_t re = forward ? 0 : L, im = L - re;
    const R* w = twiddles<R>(n);
    run([&](const R* x, int64_t x_stride, R* y, int64_t y_stride, int64_t lines) {
      gather(x, x_stride, lines, 2 * n, numbers);
      bool here = powers::down_columns<R>(n, L, 2 * L, 2 * L, numbers + re, numbers + im, others + re,
                                          others + im, w);
      V* result = here ? rows : second.data();
      if (scale != 1)
        for (int64_t i = 0; i < 2 * n; i++) result[i] *= scale;
      scatter(here ? numbers : others, y, y_stride, lines, 2 * n);
    });
    return true;
  }
  if (kind == Transform::complex) {
    auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<R>>(size_t(n));
    run([&](const R* x, int64_t x_stride, R* y, int64_t y_stride, int64_t lines) {
      gather(x, x_stride, lines, 2 * n, numbers);
      plan->exec(reinterpret_cast<pocketfft::detail::cmplx<V>*>(rows), scale, forward);
      scatter(numbers, y, y_stride, lines, 2 * n);
    });
    return true;
  }
  // pocketfft's half spectrum has no imaginary part of the first number, nor of the last of an even length.
  // The transform works on rows 1 to n, so that only these have to move.
  auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_r<R>>(size_t(n));
  const int64_t half = 2 * (n / 2 + 1);
  auto conjugate = [&] {
    for (int64_t i = 3; i <= n; i += 2) rows[i] = -rows[i];
  };
  run([&](const R* x, int64_t x_stride, R* y, int64_t y_stride, int64_t lines) {
    if (from_real) {
      gather(x, x_stride, lines, n, numbers + L);
      plan->exec(rows + 1, scale, true);
      if (!forward) conjugate();
      rows[0] = rows[1];
      rows[1] = V{};
      if (n % 2 == 0) rows[n + 1] = V{};
      scatter(numbers, y, y_stride, lines, half);
    } else {
      gather(x, x_stride, lines, half, numbers);
      if (forward) conjugate();
      rows[1] = rows[0];
      plan->exec(rows + 1, scale, false);
      scatter(numbers + L, y, y_stride, lines, n);
    }
  });
  return true;
}

}  // namespace batches
}  // namespace RL_ISA
}  // namespace rl
#endif
