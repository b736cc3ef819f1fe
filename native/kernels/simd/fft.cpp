// pocketfft for one instruction set: it transforms as many lines at once as a vector holds.
#include "../fft.h"

#include <exception>
#include <vector>

// The header is compiled once per instruction set: each gets a namespace of its own.
#define RL_JOINED(a, b) a##b
#define RL_JOIN(a, b) RL_JOINED(a, b)
#define pocketfft RL_JOIN(pocketfft_, RL_ISA)
#if defined(RL_HAVE_AVX2) && !defined(__AVX2__)
#define POCKETFFT_NO_VECTORS  // the fallback of old processors: half the code
#endif
#define POCKETFFT_CACHE_SIZE 16  // plans of recent lengths are kept
#include "../../third_party/pocketfft/pocketfft_hdronly.h"
#include "fft_batches.h"
#include "fft_powers.h"

namespace rl {
inline namespace RL_ISA {
namespace {

pocketfft::shape_t shape_of(const Span& span) { return {span.sizes, span.sizes + span.ndim}; }

pocketfft::stride_t strides_of(const Span& span) {
  pocketfft::stride_t strides(size_t(span.ndim));
  for (int d = 0; d < span.ndim; d++) strides[size_t(d)] = span.strides[d] * dtype_size(span.dtype);
  return strides;
}

template <class R>
void transform(Transform kind, const Span& to, const Span& from, size_t axis, bool forward, R scale) {
  using C = std::complex<R>;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<R, float>)
    if (powers::transform_lines<R>(kind, to, from, int(axis), forward, scale)) return;
  if (batches::transform_batches<R>(kind, to, from, int(axis), forward, scale)) return;
#endif
  pocketfft::stride_t in = strides_of(from), out = strides_of(to);
  if (kind == Transform::complex) {
    pocketfft::c2c(shape_of(from), in, out, {axis}, forward, static_cast<const C*>(from.data),
                   static_cast<C*>(to.data), scale);
  } else if (kind == Transform::real_to_complex) {
    pocketfft::r2c(shape_of(from), in, out, axis, forward, static_cast<const R*>(from.data),
                   static_cast<C*>(to.data), scale);
  } else {
    pocketfft::c2r(shape_of(to), in, out, axis, forward, static_cast<const C*>(from.data),
                   static_cast<R*>(to.data), scale);
  }
}

bool lines(Transform kind, const Span& to, const Span& from, int axis, bool forward, double scale) {
  try {
    if (to_real(from.dtype) == DType::f32) {
      transform<float>(kind, to, from, size_t(axis), forward, float(scale));
    } else {
      transform<double>(kind, to, from, size_t(axis), forward, scale);
    }
    return true;
  } catch (const std::exception&) {  // shapes were checked: only memory can be short
    return false;
  }
}

}  // namespace

extern const FftPass fft_lines;
const FftPass fft_lines = lines;

}  // namespace RL_ISA
}  // namespace rl
