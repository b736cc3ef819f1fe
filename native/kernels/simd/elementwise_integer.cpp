// Operations of integers alone: bits, shifts, divisors.
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

template <class T>
inline T bitwise_not(T x) {
  if constexpr (std::is_same_v<T, bool>) return !x;
  else return T(~x);
}

// A shift by less than 0 or by all the bits leaves nothing, or the sign.
template <class T>
inline T shift_left(T x, T by) {
  bool valid = by >= 0 && uint64_t(by) < 8 * sizeof(T);
  return valid ? T(wrapping_t<T>(x) << (by & (8 * sizeof(T) - 1))) : T(0);
}
template <class T>
inline T shift_right(T x, T by) {
  constexpr int last = 8 * sizeof(T) - std::is_signed_v<T>;
  bool valid = by >= 0 && uint64_t(by) < 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>) return T(x >> (valid ? int(by) : last));
  else return valid ? T(x >> (by & (last - 1))) : T(0);
}

// In int32 at least: the result is truncated last, as in torch.
template <class T>
using divisor_t = std::conditional_t<sizeof(T) < 4, int32_t, T>;

template <class T>
inline T gcd(T x, T y) {
  x = absolute(x);
  y = absolute(y);
  while (x != 0) {
    T rest = T(y % x);
    y = x;
    x = rest;
  }
  return absolute(y);
}
template <class T>
inline T lcm(T x, T y) {
  T divisor = gcd(x, y);
  return divisor == 0 ? T(0) : absolute(multiply(T(x / divisor), y));
}

constexpr FamilyEntry entries[] = {
    UNARY(bitwise_not, INTEGERS | BOOL, none, same, bitwise_not(x)),
    BINARY(bitwise_and, INTEGERS | BOOL, none, same, x& y),
    BINARY(bitwise_or, INTEGERS | BOOL, none, same, x | y),
    BINARY(bitwise_xor, INTEGERS | BOOL, none, same, x ^ y),
    BINARY(bitwise_left_shift, INTEGERS, none, same, shift_left(x, y)),
    BINARY(bitwise_right_shift, INTEGERS, none, same, shift_right(x, y)),
    BINARY(gcd, INTEGERS, none, same, gcd<divisor_t<decltype(x)>>(x, y)),
    BINARY(lcm, INTEGERS, none, same, lcm<divisor_t<decltype(x)>>(x, y)),
};
}  // namespace

const Family integer = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
