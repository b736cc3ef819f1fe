// A weighted sum of inputs for every output along one dimension. Inner elements lie side by side and run in
// vectors; in the last dimension (inner == 1) outputs are made one by one, or in pairs where all have two
// taps that lie side by side, as in average pooling.
#include "../resample.h"

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

}  // namespace

extern const ResamplePasses resample_passes = {pass<float>, pass<double>, pass<std::complex<float>>,
                                               pass<std::complex<double>>};

}  // namespace RL_ISA
}  // namespace rl
