// Bulk draws: refilling mt19937, tempering, uniform floats, and blocks of 16 normal floats.
//
// All of it must give the same bits whatever the instruction set, so each multiply-add below is spelled out:
// `fma` rounds once on every processor, and nothing else has the shape that a compiler might fuse. Start at
// `normal`.
#include "../random_bulk.h"

#include <cmath>
#include <cstring>

#include "../random.h"

namespace rl {
inline namespace RL_ISA {
namespace {

inline uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
inline float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

#if defined(__FMA__) || defined(__aarch64__)
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
// For processors without the instruction, where the library function is slow. The product of two floats is
// exact in double; the sum is rounded to odd there, and then to float as if there had been one rounding.
inline float fma(float a, float b, float c) {
  double product = double(a) * b, addend = c;
  double sum = product + addend, part = sum - product;
  double error = (product - (sum - part)) + (addend - part);
  uint64_t u;
  std::memcpy(&u, &sum, 8);
  uint64_t step = uint64_t(error != 0) & ~u & 1;          // an inexact even result goes to the odd neighbour
  uint64_t outward = uint64_t((error > 0) == (sum > 0));  // on the side of the exact sum
  u += step * (2 * outward - 1);                          // (no branch: it would be a coin toss)
  std::memcpy(&sum, &u, 8);
  return float(sum);
}
#endif

void refill(uint32_t* w) {
  auto mix = [](uint32_t a, uint32_t b) {
    return ((a & 0x80000000u) | (b & 0x7fffffffu)) >> 1 ^ (-(b & 1) & 0x9908b0dfu);
  };
  for (int i = 0; i < 227; i++) w[i] = w[i + 397] ^ mix(w[i], w[i + 1]);
  for (int i = 227; i < 623; i++) w[i] = w[i - 227] ^ mix(w[i], w[i + 1]);
  w[623] = w[396] ^ mix(w[623], w[0]);
}

void temper(uint32_t* out, const uint32_t* words, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = Generator::temper(words[i]);
}

// low + (high - low) * u, rounded once in the compute type and once to T. Where that reaches `high`, it
// becomes `low`.
template <class T>
void uniform(void* out, const uint32_t* draws, int64_t n, double low, double high) {
  using C = compute_t<T>;
  C from = C(low), width = C(high) - C(low);
  T lowest = T(from);
  C excluded = C(T(C(high)));
  T* data = static_cast<T*>(out);
  for (int64_t i = 0; i < n; i++) {
    T sample;
    if constexpr (std::is_same_v<T, double>) {
      uint64_t bits = (uint64_t(draws[2 * i]) << 32 | draws[2 * i + 1]) & ((1ull << 53) - 1);
      sample = std::fma(double(int64_t(bits)) * 0x1p-53, width, from);
    } else {
      sample = T(fma(float(int32_t(draws[i] & 0xffffff)) * 0x1p-24f, width, from));
    }
    data[i] = C(sample) == excluded ? lowest : sample;
  }
}

// The natural logarithm of a normal float in (0, 1], with the polynomial of the Cephes library.
inline float log_cephes(float x) {
  uint32_t bits = bits_of(x);
  float e = float(int32_t(bits >> 23) - 126);
  x = float_of((bits & 0x007fffffu) | 0x3f000000u);  // in [0.5, 1)
  bool small = x < 0.707106781186547524f;
  e = small ? e - 1.0f : e;
  x = (x - 1.0f) + (small ? x : 0.0f);
  float z = x * x;
  float y = 7.0376836292e-2f;
  y = fma(y, x, -1.1514610310e-1f);
  y = fma(y, x, 1.1676998740e-1f);
  y = fma(y, x, -1.2420140846e-1f);
  y = fma(y, x, 1.4249322787e-1f);
  y = fma(y, x, -1.6668057665e-1f);
  y = fma(y, x, 2.0000714765e-1f);
  y = fma(y, x, -2.4999993993e-1f);
  y = fma(y, x, 3.3333331174e-1f);
  y = y * x;
  y = fma(y, z, e * -2.12194440e-4f);  // log 2 in two parts
  y = fma(-z, 0.5f, y);
  return fma(e, 0.693359375f, x + y);
}

// Sine and cosine of a float in [0, 2 pi], with the polynomials of the Cephes library.
inline void sin_cos_cephes(float x, float* sine, float* cosine) {
  int32_t octant = (int32_t(x * 1.27323954473516f) + 1) & ~1;
  float k = float(octant);
  x = fma(k, -0.78515625f, x);  // minus k * pi / 4, in three parts
  x = fma(k, -2.4187564849853515625e-4f, x);
  x = fma(k, -3.77489497744594108e-8f, x);
  float z = x * x;
  float c = 2.443315711809948e-5f;
  c = fma(c, z, -1.388731625493765e-3f);
  c = fma(c, z, 4.166664568298827e-2f);
  c = c * z;
  c = fma(c, z, z * -0.5f) + 1.0f;
  float s = -1.9515295891e-4f;
  s = fma(s, z, 8.3321608736e-3f);
  s = fma(s, z, -1.6666654611e-1f);
  s = s * z;
  s = fma(s, x, x);
  bool straight = !(octant & 2);
  *sine = float_of(bits_of(straight ? s : c) ^ uint32_t(octant & 4) << 29);
  *cosine = float_of(bits_of(straight ? c : s) ^ uint32_t(~(octant - 2) & 4) << 29);
}

// Box-Muller on the pairs (j, j + 8): the first gives the radius, the second the angle. This is the shape
// that eight lanes want, and the approximations are part of what has to be reproduced: libm differs in the
// last bit.
void normal(float* data, int64_t blocks, float mean, float std) {
  for (int64_t b = 0; b < blocks; b++, data += NORMAL_BLOCK) {
    for (int j = 0; j < 8; j++) {
      float radius = std::sqrt(-2.0f * log_cephes(1.0f - data[j]));
      float sine, cosine;
      sin_cos_cephes(6.28318530717958647692f * data[j + 8], &sine, &cosine);
      data[j] = fma(radius * cosine, std, mean);
      data[j + 8] = fma(radius * sine, std, mean);
    }
  }
}

}  // namespace

extern const RandomBulk random_bulk_table;
const RandomBulk random_bulk_table = {
    refill, temper, uniform<float>, uniform<double>, uniform<Half>, uniform<BFloat16>, normal};

}  // namespace RL_ISA
}  // namespace rl
