// Arithmetic that is exact or rounded operation by operation: the same bits on every instruction set, and
// torch's.
//
// The few fused operations (add_product) are rounded once on processors that can, like torch's.
#define RL_STEPPED
#include "complex_math.h"
#include "division.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

// Where numbers and divisors fit into the digits of a double, so does all that distinguishes their quotient
// from the next whole number: x // 7 of int64 in a third of the time of integer division.
#if defined(__AVX2__)
template <bool FLOOR>
void divide_int64(char* const* data, int64_t n, const void* params) {
  int64_t* out = reinterpret_cast<int64_t*>(data[0]);
  const int64_t* x = reinterpret_cast<const int64_t*>(data[1]);
  const int64_t* y = reinterpret_cast<const int64_t*>(data[2]);
  with_arguments<int64_t, 0, true>(params, [&](auto& s) {
    auto each = [&](int64_t i) {
      out[i] = FLOOR ? floor_divide(x[i], y[i], s.by_zero) : divide_truncating(x[i], y[i], s.by_zero);
    };
    int64_t i = 0;
    for (; i + F64_LANES <= n; i += F64_LANES) {
      i64v over, under;
      std::memcpy(&over, x + i, sizeof over);
      std::memcpy(&under, y + i, sizeof under);
      constexpr int64_t LIMIT = int64_t(1) << 51;
      u64v beyond = ((u64v)over + LIMIT) | ((u64v)under + LIMIT);
      if (any((i64v)(beyond >> 52 != 0) | (under == 0))) {
        for (int64_t lane = i; lane < i + F64_LANES; lane++) each(lane);
        continue;
      }
      f64v q = to_float(over) / to_float(under);
      i64v whole = to_int(FLOOR ? floor(q) : trunc(q));
      std::memcpy(out + i, &whole, sizeof whole);
    }
    for (; i < n; i++) each(i);
  });
}
template <bool FLOOR>
void divide_int64_loop(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  static constexpr int sizes[] = {8, 8, 8};
  if (strides[0] == 8 && strides[1] == 8 && strides[2] == 8) divide_int64<FLOOR>(data, n, params);
  else run_buffered(divide_int64<FLOOR>, 3, sizes, data, strides, n, params);
}
template <bool FLOOR>
constexpr FamilyEntry with_int64(FamilyEntry e) {
  e.loops[int(DType::i64)] = divide_int64_loop<FLOOR>;
  return e;
}
#else
template <bool FLOOR>
constexpr FamilyEntry with_int64(FamilyEntry e) {
  return e;
}
#endif

constexpr FamilyEntry entries[] = {
    UNARY(neg, NUMBERS, none, same, negate(x)),
    UNARY(abs, NUMBERS, none, real, absolute(x)),
    UNARY(sign, REAL | BOOL, none, same, sign(x)),
    UNARY(sgn, ALL, none, same, sgn(x)),
    UNARY(square, NUMBERS, bool_to_int, same, multiply(x, x)),
    UNARY(reciprocal, FLOATING | COMPLEX, int_to_float, same, reciprocal(x)),
    UNARY(sqrt, FLOATING | COMPLEX, int_to_float, same, sqrt(x)),
    UNARY(rsqrt, FLOATING | COMPLEX, int_to_float, same, constant<decltype(x)>(1) / sqrt(x)),
    UNARY(conj, COMPLEX, none, same, conj(x)),
    UNARY(real, COMPLEX, none, real, x.re),
    UNARY(imag, COMPLEX, none, real, x.im),

    BINARY(add, ALL, none, same, add(x, times_one(y))),
    BINARY(sub, NUMBERS, none, same, subtract(x, times_one(y))),
    BINARY_KEEPING(mul, ALL, none, same, multiply(x, y)),
    BINARY_KEEPING(div, FLOATING | COMPLEX, int_to_float, same, x / y),
    BINARY_WITH_ROUNDED(1, add_alpha, ALL, none, same, add_product(x, a, y)),
    BINARY_WITH_ROUNDED(1, sub_alpha, NUMBERS, none, same, add_product(x, negate(a), y)),
    with_int64<true>(DIVISION_KEEPING(floor_divide, REAL, none, same, floor_divide(x, y, by_zero))),
    with_int64<true>(DIVISION_KEEPING(div_floor, REAL, none, same, floor_divide(x, y, by_zero))),
    with_int64<false>(DIVISION_KEEPING(div_trunc, REAL, none, same, divide_truncating(x, y, by_zero))),
    DIVISION(remainder, REAL, none, same, remainder(x, y, by_zero)),
    DIVISION(fmod, REAL, none, same, fmod(x, y, by_zero)),
};
}  // namespace

const Family arithmetic = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
