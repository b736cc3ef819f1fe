// Discrete Fourier transforms along one dimension, over pocketfft (native/third_party/pocketfft).
//
// Lengths may be any, prime ones too. The transform of several dimensions is one pass per dimension, which
// fft.cpp divides over our threads; why pocketfft and what it costs is in docs/design/fft.md.
#pragma once
#include "kernels.h"

namespace rl {

// One pass: `from` and `to` have the same sizes except along `axis`, where a real tensor meets the first half
// of its (Hermitian) spectrum. Strides in elements of the span's own dtype.
enum class Transform : uint8_t { complex, real_to_complex, complex_to_real };

// Forward has exp(-i...), the result is multiplied by `scale`. False if memory ran out.
// A complex transform may have to == from.
bool fft_pass(Transform kind, const Span& to, const Span& from, int axis, bool forward, double scale);

using FftPass = bool (*)(Transform kind, const Span& to, const Span& from, int axis, bool forward,
                         double scale);
namespace baseline {
extern const FftPass fft_lines;
}
namespace avx2 {
extern const FftPass fft_lines;
}

}  // namespace rl
