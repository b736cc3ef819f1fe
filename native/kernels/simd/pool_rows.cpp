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

template <class T>
void along_row(void* to, const void* row, const Windows& w) {
  using C = compute_t<T>;
  T* out = static_cast<T*>(to);
  const T* x = static_cast<const T*>(row);
  if (w.kernel[2] == 2 && w.stride[2] == 2) {
    for (int64_t o = 0; o < w.out[2]; o++) out[o] = T(larger(C(x[2 * o]), C(x[2 * o + 1])));
    return;
  }
  const int64_t *begin = w.begin[2].data(), *end = w.end[2].data();
  for (int64_t o = 0; o < w.out[2]; o++) {
    C best =
        std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
    for (int64_t i = begin[o]; i < end[o]; i += w.step[2]) best = larger(best, C(x[i]));
    out[o] = T(best);
  }
}

template <class T>
void gradient_2x2(void* to, const void* g, const void* x, const Windows& w) {
  using C = compute_t<T>;
  const T *grad = static_cast<const T*>(g), *from = static_cast<const T*>(x);
  T* out = static_cast<T*>(to);
  int64_t width = w.in[2];
  for (int64_t oh = 0; oh < w.out[1]; oh++) {
    const T *top = from + 2 * oh * width, *bottom = top + width;
    T *high = out + 2 * oh * width, *low = high + width;
    for (int64_t o = 0; o < w.out[2]; o++) {
      C a = C(top[2 * o]), b = C(top[2 * o + 1]), c = C(bottom[2 * o]), d = C(bottom[2 * o + 1]);
      // Without branches: which of two wins, then which of the winners. A later NaN wins over everything.
      bool right_high = (b > a) | (b != b), right_low = (d > c) | (d != d);
      C upper = right_high ? b : a, lower = right_low ? d : c;
      bool is_low = (lower > upper) | (lower != lower);
      T value = grad[oh * w.out[2] + o], zero = T(0);
      high[2 * o] = !is_low & !right_high ? value : zero;
      high[2 * o + 1] = !is_low & right_high ? value : zero;
      low[2 * o] = is_low & !right_low ? value : zero;
      low[2 * o + 1] = is_low & right_low ? value : zero;
    }
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
extern const PoolRows pool_rows = {RL_REAL(larger_rows), RL_REAL(along_row), RL_REAL(gradient_2x2),
                                   RL_FLOATING(larger_in_row), RL_FLOATING(add_in_row)};
#undef RL_FLOATING
#undef RL_REAL

}  // namespace RL_ISA
}  // namespace rl
