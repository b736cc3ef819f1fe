// A weighted sum of inputs for every output along one dimension. Inner elements lie side by side and run in
// vectors; in the last dimension (inner == 1) outputs are made one by one, or in pairs where all have two
// taps that lie side by side, as in average pooling.
#include <algorithm>

#include "../resample.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace rl {
inline namespace RL_ISA {
namespace {

template <class C>
struct Real {
  using type = C;
};
template <class R>
struct Real<std::complex<R>> {
  using type = R;
};

template <class C>
void rows(C* y, const C* x, int64_t outer, const Taps& taps, int64_t inner) {
  using W = typename Real<C>::type;
  for (int64_t n = 0; n < outer; n++, x += taps.in * inner) {
    for (int64_t o = 0; o < taps.out; o++, y += inner) {
      int64_t tap = taps.first[size_t(o)], last = taps.first[size_t(o) + 1];
      if (tap == last) {
        for (int64_t i = 0; i < inner; i++) y[i] = C(0);
        continue;
      }
      const C* a = x + taps.index[size_t(tap)] * inner;
      W wa = W(taps.weight[size_t(tap)]);
      if (last - tap == 1) {
        for (int64_t i = 0; i < inner; i++) y[i] = wa * a[i];
        continue;
      }
      const C* b = x + taps.index[size_t(tap) + 1] * inner;
      W wb = W(taps.weight[size_t(tap) + 1]);
      for (int64_t i = 0; i < inner; i++) y[i] = wa * a[i] + wb * b[i];
      for (tap += 2; tap < last; tap++) {
        const C* c = x + taps.index[size_t(tap)] * inner;
        W wc = W(taps.weight[size_t(tap)]);
        for (int64_t i = 0; i < inner; i++) y[i] += wc * c[i];
      }
    }
  }
}

template <class C>
void along(C* y, const C* x, int64_t outer, const Taps& taps) {
  using W = typename Real<C>::type;
  const int64_t *first = taps.first.data(), *index = taps.index.data();
  const double* weight = taps.weight.data();
  // The commonest case: windows of two, side by side, with one weight.
  bool pairs = taps.in >= 2 * taps.out && int64_t(taps.index.size()) == 2 * taps.out;
  for (int64_t o = 0; pairs && o < taps.out; o++)
    pairs = index[2 * o] == 2 * o && index[2 * o + 1] == 2 * o + 1 && first[o + 1] == 2 * o + 2 &&
            weight[2 * o] == weight[0] && weight[2 * o + 1] == weight[0];
  if (pairs && taps.out) {
    W w = W(weight[0]);
    for (int64_t n = 0; n < outer; n++, x += taps.in, y += taps.out)
      for (int64_t o = 0; o < taps.out; o++) y[o] = w * (x[2 * o] + x[2 * o + 1]);
    return;
  }
  for (int64_t n = 0; n < outer; n++, x += taps.in, y += taps.out) {
    for (int64_t o = 0; o < taps.out; o++) {
      C sum = C(0);
      for (int64_t tap = first[o]; tap < first[o + 1]; tap++) sum += W(weight[tap]) * x[index[tap]];
      y[o] = sum;
    }
  }
}

template <class C>
void pass(C* y, const C* x, int64_t outer, const Taps& taps, int64_t inner) {
  if (inner == 1) along(y, x, outer, taps);
  else rows(y, x, outer, taps, inner);
}

// One byte of every row that the taps name.
inline uint8_t byte_sum(const uint8_t* x, int64_t inner, const ByteTaps& taps, int64_t tap, int64_t last) {
  uint32_t sum = uint32_t(1) << (taps.precision - 1);
  for (; tap < last; tap++)
    sum += uint32_t(int32_t(taps.weight[size_t(tap)])) * x[taps.index[size_t(tap)] * inner];
  return uint8_t(std::clamp<int32_t>(int32_t(sum) >> taps.precision, 0, 255));
}

#if defined(__AVX2__)
inline __m256i words(const uint8_t* p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
// Sixteen of them, two taps at a time.
inline void sixteen_sums(uint8_t* y, const uint8_t* x, int64_t inner, const ByteTaps& taps, int64_t tap,
                         int64_t last) {
  __m256i low = _mm256_set1_epi32(1 << (taps.precision - 1)), high = low;
  for (; tap < last; tap += 2) {
    bool second = tap + 1 < last;
    __m256i a = words(x + taps.index[size_t(tap)] * inner);
    __m256i b = second ? words(x + taps.index[size_t(tap) + 1] * inner) : _mm256_setzero_si256();
    uint32_t weights = uint16_t(taps.weight[size_t(tap)]);
    if (second) weights |= uint32_t(uint16_t(taps.weight[size_t(tap) + 1])) << 16;
    __m256i both = _mm256_set1_epi32(int32_t(weights));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), both));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), both));
  }
  __m128i shift = _mm_cvtsi32_si128(taps.precision);
  __m256i sums = _mm256_packs_epi32(_mm256_sra_epi32(low, shift), _mm256_sra_epi32(high, shift));
  sums = _mm256_permute4x64_epi64(_mm256_packus_epi16(sums, sums), 0b1000);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm256_castsi256_si128(sums));
}
#endif

void bytes(uint8_t* y, const uint8_t* x, int64_t outer, const ByteTaps& taps, int64_t inner) {
  for (int64_t n = 0; n < outer; n++, x += taps.in * inner)
    for (int64_t o = 0; o < taps.out; o++, y += inner) {
      int64_t tap = taps.first[size_t(o)], last = taps.first[size_t(o) + 1], i = 0;
#if defined(__AVX2__)
      for (; i + 16 <= inner; i += 16) sixteen_sums(y + i, x + i, inner, taps, tap, last);
#endif
      for (; i < inner; i++) y[i] = byte_sum(x + i, inner, taps, tap, last);
    }
}

}  // namespace

extern const ResamplePasses resample_passes = {pass<float>, pass<double>, pass<std::complex<float>>,
                                               pass<std::complex<double>>, bytes};

}  // namespace RL_ISA
}  // namespace rl
