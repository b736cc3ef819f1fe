// Uniform reals, integers and permutations: the samples that are a draw or two and a little arithmetic.
//
// Note [draws]. A sample takes one draw of 32 bits or two. For reals: one for float, half and bfloat16 (24
// bits of it are used, the arithmetic is in float and rounded once to the dtype), two for double (53 bits).
// For integers: one if the range is below 2^28, else two. Samplers that need a logarithm or the like compute
// in double from two draws whatever the dtype. That all of them agree with torch in this is what makes their
// numbers agree.
#include <utility>

#include "random_bulk.h"
#include "random_order.h"

namespace rl {

namespace {

uint64_t join(const uint32_t* draws) { return uint64_t(draws[0]) << 32 | draws[1]; }

}  // namespace

void random_uniform(Generator& g, const Span& out, double low, double high) {
  constexpr int64_t CHUNK = 624;
  uint32_t draws[2 * CHUNK];
  const RandomBulk& bulk = random_bulk();
  auto uniform = out.dtype == DType::f64    ? bulk.uniform_f64
                 : out.dtype == DType::f16  ? bulk.uniform_f16
                 : out.dtype == DType::bf16 ? bulk.uniform_bf16
                                            : bulk.uniform_f32;
  int words = out.dtype == DType::f64 ? 2 : 1;
  visit(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T samples[CHUNK];
    for_each_run<1>({&out}, [&](const Run<1>& run) {
      T* data = reinterpret_cast<T*>(run.data[0]);
      for (int64_t done = 0; done < run.size; done += CHUNK) {
        int64_t n = std::min(CHUNK, run.size - done);
        g.fill(draws, n * words);
        bool direct = run.stride[0] == 1;
        uniform(direct ? data + done : samples, draws, n, low, high);
        for (int64_t i = 0; i < n && !direct; i++) data[(done + i) * run.stride[0]] = samples[i];
      }
    });
  });
}

void random_integers(Generator& g, const Span& out, int64_t low, uint64_t range) {
  visit(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto sample = [=](uint64_t offset) { return convert<T>(int64_t(uint64_t(low) + offset)); };
    if (range == 0) {
      fill_from_draws<T, 2>(g, out, [=](const uint32_t* draws) { return convert<T>(int64_t(join(draws))); });
    } else if (range < 1u << 28) {
      uint32_t narrow = uint32_t(range);
      fill_from_draws<T, 1>(g, out, [=](const uint32_t* draws) { return sample(draws[0] % narrow); });
    } else {
      fill_from_draws<T, 2>(g, out, [=](const uint32_t* draws) { return sample(join(draws) % range); });
    }
  });
}

void random_full(Generator& g, const Span& out) {
  switch (out.dtype) {
    case DType::b1: return random_integers(g, out, 0, 2);
    case DType::u8: return random_integers(g, out, 0, 1 << 8);
    case DType::i8: return random_integers(g, out, 0, 1 << 7);
    case DType::i16: return random_integers(g, out, 0, 1 << 15);
    case DType::i32:
      return fill_from_draws<int32_t, 1>(
          g, out, [](const uint32_t* draws) { return int32_t(draws[0] & 0x7fffffff); });
    case DType::i64: return random_integers(g, out, 0, uint64_t(1) << 63);
    case DType::f16: return random_integers(g, out, 0, (1 << 11) + 1);
    case DType::bf16: return random_integers(g, out, 0, (1 << 8) + 1);
    case DType::f64: return random_integers(g, out, 0, (uint64_t(1) << 53) + 1);
    default: return random_integers(g, out, 0, (1 << 24) + 1);
  }
}

namespace {
int mantissa_bits(DType dtype) {
  return dtype == DType::f64 ? 53 : dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
}
// The distance between neighbours of `x` in a float dtype, for |x| of at least 2^mantissa_bits.
int64_t spacing(DType dtype, int64_t x) {
  uint64_t magnitude = x < 0 ? -uint64_t(x) : uint64_t(x);
  int exponent = 63 - __builtin_clzll(magnitude);
  return int64_t(1) << (exponent - mantissa_bits(dtype) + 1);
}
int64_t rounded(DType dtype, int64_t x) {
  return visit(dtype, [&](auto tag) { return convert<int64_t>(convert<typename decltype(tag)::type>(x)); });
}
}  // namespace

int64_t random_low_bound(DType dtype, int64_t low) {
  if (!is_floating(dtype) || low == INT64_MAX) return low;
  int64_t next = rounded(dtype, low + 1);
  return next < low ? next + spacing(dtype, low + 1) : low;
}

int64_t random_high_bound(DType dtype, int64_t high) {
  if (!is_floating(dtype) || high == INT64_MIN) return high;
  int64_t last = rounded(dtype, high - 1);
  return last >= high ? last - spacing(dtype, high - 1) : high;
}

void random_permutation(Generator& g, const Span& out) {
  int64_t n = out.sizes[0], stride = out.strides[0];
  visit(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out.data);
    if (n < int64_t(UINT32_MAX / 20)) {
      for (int64_t i = 0; i < n; i++) data[i * stride] = convert<T>(i);
      for (int64_t i = 0; i < n - 1; i++) {
        int64_t j = i + int64_t(g.random() % uint64_t(n - i));
        std::swap(data[i * stride], data[j * stride]);
      }
    } else {  // a remainder of 32 bits would be noticeably uneven; and here the shuffle grows from the front
      for (int64_t i = 0; i < n; i++) {
        int64_t j = int64_t(g.random64() % uint64_t(i + 1));
        data[i * stride] = data[j * stride];
        data[j * stride] = convert<T>(i);
      }
    }
  });
}

}  // namespace rl
