// Copies between any two dtypes, and fills.
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

template <class To, class From>
inline To converted(From x) {
  if constexpr (is_complex_number_v<From>) {
    if constexpr (is_complex_number_v<To>) return {decltype(To::re)(x.re), decltype(To::re)(x.im)};
    else if constexpr (std::is_same_v<To, bool>) return x.re != 0 || x.im != 0;
    else return convert<To>(x.re);
  } else if constexpr (is_complex_number_v<To>) {
    return {convert<decltype(To::re)>(x), 0};
  } else {
    return convert<To>(x);
  }
}

template <class To, class From>
void convert_contiguous(char* const* data, int64_t n, const void*) {
  To* to = reinterpret_cast<To*>(data[0]);
  const From* from = reinterpret_cast<const From*>(data[1]);
  // The compiler does not vectorise the half formats' conversions, so those between floating dtypes are
  // spelled out.
  if constexpr (is_floating_v<To> && is_floating_v<From> && (is_reduced_v<To> || is_reduced_v<From>)) {
    for (; n >= F32_LANES; n -= F32_LANES, to += F32_LANES, from += F32_LANES) {
      if constexpr (std::is_same_v<From, double>) {
        store(to, narrow(load(from), load(from + F64_LANES)));
      } else if constexpr (std::is_same_v<To, double>) {
        auto [low, high] = widen(load(from));
        store(to, low);
        store(to + F64_LANES, high);
      } else {
        store(to, load(from));
      }
    }
  }
  // Nor floats to integers: what fits into 32 bits is converted by vectors.
  if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> && is_floating_v<From> &&
                !(std::is_same_v<From, double> && sizeof(To) == 8)) {
    constexpr int LANES = lanes_v<From>;
    typedef int32_t Words __attribute__((vector_size(LANES * 4)));
    typedef To Narrow __attribute__((vector_size(LANES * sizeof(To))));
    for (; n >= LANES; n -= LANES, to += LANES, from += LANES) {
      auto x = load(from);
      if (!all(magnitude(x) < 0x1p31f)) {
        for (int i = 0; i < LANES; i++) to[i] = convert<To>(from[i]);
        continue;
      }
      Narrow y = __builtin_convertvector(__builtin_convertvector(x, Words), Narrow);
      std::memcpy(to, &y, sizeof y);
    }
  }
  // Nor int64: what fits into the digits of a double is put there, and rounded once.
  if constexpr (std::is_same_v<From, int64_t> && (std::is_same_v<To, float> || std::is_same_v<To, double>)) {
    constexpr int64_t LIMIT = int64_t(1) << 51;
    for (; n >= F32_LANES; n -= F32_LANES, to += F32_LANES, from += F32_LANES) {
      i64v low, high;
      std::memcpy(&low, from, sizeof low);
      std::memcpy(&high, from + F64_LANES, sizeof high);
      u64v beyond = ((u64v)low + LIMIT) | ((u64v)high + LIMIT);
      if (any((i64v)(beyond >> 52 != 0))) {
        for (int i = 0; i < F32_LANES; i++) to[i] = To(from[i]);
      } else if constexpr (std::is_same_v<To, float>) {
        store(to, narrow(to_float(low), to_float(high)));
      } else {
        store(to, to_float(low));
        store(to + F64_LANES, to_float(high));
      }
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) to[i] = converted<To>(from[i]);
}

template <class To, class From>
void copy(char* const* data, const int64_t* strides, int64_t n, const void*) {
  static constexpr int sizes[] = {sizeof(To), sizeof(From)};
  if constexpr (std::is_same_v<To, From>) {
    copy_elements(sizeof(To), data[0], strides[0], data[1], strides[1], n);
  } else if (strides[0] == sizes[0] && strides[1] == sizes[1]) {
    convert_contiguous<To, From>(data, n, nullptr);
  } else {
    run_buffered(convert_contiguous<To, From>, 2, sizes, data, strides, n, nullptr);
  }
}

template <int SIZE>
void fill(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  copy_elements(SIZE, data[0], strides[0], static_cast<const char*>(params), 0, n);
}

template <int... PAIR>
constexpr CopyTable make_copies(std::integer_sequence<int, PAIR...>) {
  CopyTable t{};
  ((t.loops[PAIR / DTYPE_COUNT][PAIR % DTYPE_COUNT] =
        copy<element_t<PAIR / DTYPE_COUNT>, element_t<PAIR % DTYPE_COUNT>>),
   ...);
  return t;
}

}  // namespace

constexpr CopyTable copy_loops = make_copies(std::make_integer_sequence<int, DTYPE_COUNT * DTYPE_COUNT>{});

const Loop fill_loops[DTYPE_COUNT] = {fill<1>, fill<1>, fill<2>, fill<4>,  fill<8>, fill<2>,
                                      fill<4>, fill<8>, fill<8>, fill<16>, fill<1>, fill<2>};

}  // namespace RL_ISA
}  // namespace rl
