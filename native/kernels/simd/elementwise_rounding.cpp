// Rounding to whole numbers, choosing the larger or smaller of two, and moving signs: results are exact.
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

template <class X>
inline X round_to_even(X x) {
  if constexpr (is_vector_v<X>) return nearest(x);
  else return x;
}
template <class X>
inline X truncate(X x) {
  if constexpr (is_vector_v<X>) return trunc(x);
  else return x;
}

constexpr unsigned NEXTAFTER = dtype_set(DType::f32) | dtype_set(DType::f64);
// The bits of a number's magnitude, counted up or down.
template <class V>
inline V nextafter(V x, V y) {
  bits_t<V> up = (y > x) ^ (x < 0);
  V next = from_bits(up ? bits(x) + 1 : bits(x) - 1);
  next = x == 0 ? with_sign(from_bits(bits_t<V>{} + 1), y) : next;
  next = x == y ? y : next;
  return (x == x) & (y == y) ? next : x + y;
}

// Half types step in their own 16 bits, where a sign and a size that counts up are.
template <class T>
void nextafter_in_half(char* const* data, const int64_t* strides, int64_t n, const void*) {
  for (int64_t i = 0; i < n; i++) {
    T from, to;
    uint16_t bits, towards;
    std::memcpy(&from, data[1] + i * strides[1], 2);
    std::memcpy(&to, data[2] + i * strides[2], 2);
    std::memcpy(&bits, &from, 2);
    std::memcpy(&towards, &to, 2);
    float x = float(from), y = float(to);
    if (y != y || x == y) bits = towards;
    else if (x == 0) bits = uint16_t((towards & 0x8000) | 1);
    else if (x == x) bits = uint16_t((x < y) == (x > 0) ? bits + 1 : bits - 1);
    std::memcpy(data[0] + i * strides[0], &bits, 2);
  }
}
constexpr FamilyEntry with_halves(FamilyEntry e, Loop half, Loop bfloat16) {
  e.loops[int(DType::f16)] = half;
  e.loops[int(DType::bf16)] = bfloat16;
  return e;
}

constexpr FamilyEntry entries[] = {
    UNARY(floor, REAL, none, same, floor(x)),
    UNARY(ceil, REAL, none, same, ceil(x)),
    UNARY(round, REAL, none, same, round_to_even(x)),
    UNARY(trunc, REAL, none, same, truncate(x)),
    UNARY(frac, FLOATING, none, same, x - trunc(x)),
    // a is 10^|decimals|; decimals are negative where b is.
    UNARY_WITH(2, round_decimals, FLOATING, none, same, b < 0 ? nearest(x / a) * a : nearest(x * a) / a),
    UNARY_WITH(3, nan_to_num, FLOATING, none, same,
               is_nan(x)        ? a
               : x == INFINITY  ? b
               : x == -INFINITY ? c
                                : x),

    BINARY(maximum, REAL | BOOL, none, same, maximum(x, y)),
    BINARY(minimum, REAL | BOOL, none, same, minimum(x, y)),
    BINARY(at_least, REAL | BOOL, none, same, maximum(x, y)),  // these differ in the gradient of a tie
    BINARY(at_most, REAL | BOOL, none, same, minimum(x, y)),
    BINARY(fmax, REAL | BOOL, none, same,
           is_nan(x) ? y
           : x < y   ? y
                     : x),
    BINARY(fmin, REAL | BOOL, none, same,
           is_nan(x) ? y
           : x > y   ? y
                     : x),
    BINARY(copysign, FLOATING, int_to_float, same, with_sign(x, y)),
    with_halves(BINARY(nextafter, NEXTAFTER, none, same, nextafter(x, y)), nextafter_in_half<Half>,
                nextafter_in_half<BFloat16>),
    BINARY(heaviside, REAL | BOOL, none, same,
           x == 0  ? y
           : x > 0 ? constant<decltype(x)>(1)
                   : decltype(x){}),
    TERNARY(clamp, REAL, none, same, clamp(x, y, z)),
    UNARY_WITH(2, clamp_scalar, REAL, none, same, clamp(x, a, b)),
    UNARY_WITH(1, clamp_min_scalar, REAL, none, same, maximum(x, a)),
    UNARY_WITH(1, clamp_max_scalar, REAL, none, same, minimum(x, a)),
};
}  // namespace

const Family rounding = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
