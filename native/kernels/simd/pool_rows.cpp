// Max pooling along rows. The loops are plain, for the compiler to turn into vectors; windows of two with
// stride two, the commonest, are spelled out so that it can.
#include "../pool_rows.h"

#include <limits>

namespace rl {
inline namespace RL_ISA {
namespace {

template <class C>
inline C larger(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) return (b > a) | (b != b) ? b : a;
  else return b > a ? b : a;
}

template <class T>
void larger_rows(void* to, const void* a, const void* b, int64_t n) {
  using C = compute_t<T>;
  T* out = static_cast<T*>(to);
  const T *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
  for (int64_t i = 0; i < n; i++) out[i] = T(larger(C(p[i]), C(q[i])));
}

template <class T, class I>
void larger_in_row(void* best, void* rows, const void* row, int64_t n, int64_t number) {
  T* top = static_cast<T*>(best);
  I* at = static_cast<I*>(rows);
  const T* x = static_cast<const T*>(row);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    compute_t<T> now = compute_t<T>(x[i]);
    bool better = (now > compute_t<T>(top[i])) | (now != now);
    top[i] = better ? x[i] : top[i];
    at[i] = better ? I(number) : at[i];
  }
}

template <class T, class I>
void add_in_row(void* to, const void* rows, const void* g, int64_t n, int64_t number) {
  T* sum = static_cast<T*>(to);
  const I* at = static_cast<const I*>(rows);
  const T* grad = static_cast<const T*>(g);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    T more = T(compute_t<T>(sum[i]) + compute_t<T>(grad[i]));
    sum[i] = at[i] == I(number) ? more : sum[i];
  }
}

template <class T, class I>
void best_along(void* values, void* rows, void* offsets, const void* best, const void* best_rows, int64_t n,
                int64_t step, int64_t taps) {
  T* top = static_cast<T*>(values);
  I *row = static_cast<I*>(rows), *off = static_cast<I*>(offsets);
  const T* x = static_cast<const T*>(best);
  const I* at = static_cast<const I*>(best_rows);
  for (int64_t i = 0; i < n; i++) top[i] = x[i], row[i] = at[i], off[i] = 0;
  for (int64_t k = 1; k < taps; k++) {
    x += step, at += step;
    const I away = I(k * step);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) {
      compute_t<T> other = compute_t<T>(x[i]), value = compute_t<T>(top[i]);
      I other_row = at[i];
      bool better = (other > value) | ((other == value) & (other_row < row[i])) |
                    ((other != other) & ((value == value) | (other_row >= row[i])));
      top[i] = better ? x[i] : top[i];
      row[i] = better ? other_row : row[i];
      off[i] = better ? away : off[i];
    }
  }
}

// Windows that are whole are found in vectors: the maxima of what begins everywhere, of which each takes its
// own. (One by one, the processor guesses wrong at every other element.)
template <class T>
void along_row(void* to, const void* row, void* scratch, const Windows& w, int64_t taps) {
  using C = compute_t<T>;
  T* out = static_cast<T*>(to);
  const T* x = static_cast<const T*>(row);
  if (w.kernel[2] == 2 && w.stride[2] == 2) {
    for (int64_t o = 0; o < w.out[2]; o++) out[o] = T(larger(C(x[2 * o]), C(x[2 * o + 1])));
    return;
  }
  const int64_t *begin = w.begin[2].data(), *end = w.end[2].data();
  const int64_t reach = (taps - 1) * w.step[2], places = w.in[2] - reach;
  const bool shared = taps > 1 && places > 0 && places * (taps - 1) <= 8 * taps * w.out[2];
  T* maxima = static_cast<T*>(scratch);
  for (int64_t k = 1; shared && k < taps; k++)
    larger_rows<T>(maxima, k == 1 ? x : maxima, x + k * w.step[2], places);
  for (int64_t o = 0; o < w.out[2]; o++) {
    if (shared && begin[o] + reach < end[o]) {
      out[o] = maxima[begin[o]];
      continue;
    }
    C best =
        std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
    for (int64_t i = begin[o]; i < end[o]; i += w.step[2]) best = larger(best, C(x[i]));
    out[o] = T(best);
  }
}

}  // namespace

#define RL_REAL(f)                                                                                    \
  {                                                                                                   \
    f<uint8_t>, f<int8_t>, f<int16_t>, f<int32_t>, f<int64_t>, f<Half>, f<float>, f<double>, nullptr, \
        nullptr, nullptr, f<BFloat16>                                                                 \
  }
#define RL_FLOATING(f)                                                                                    \
  {                                                                                                       \
    nullptr, nullptr, nullptr, nullptr, nullptr, f<Half, int32_t>, f<float, int32_t>, f<double, int64_t>, \
        nullptr, nullptr, nullptr, f<BFloat16, int32_t>                                                   \
  }
extern const PoolRows pool_rows = {RL_REAL(larger_rows), RL_REAL(along_row), RL_FLOATING(larger_in_row),
                                   RL_FLOATING(add_in_row), RL_FLOATING(best_along)};
#undef RL_FLOATING
#undef RL_REAL

}  // namespace RL_ISA
}  // namespace rl
