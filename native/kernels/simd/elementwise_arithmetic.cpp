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
constexpr FamilyEntry entries[] = {
    UNARY(neg, NUMBERS, none, same, negate(x)),
    UNARY(abs, NUMBERS, none, real, absolute(x)),
    UNARY(sign, REAL | BOOL, none, same, sign(x)),
    UNARY(sgn, ALL, none, same, sgn(x)),
    UNARY(square, NUMBERS, bool_to_int, same, multiply(x, x)),
    UNARY(reciprocal, FLOATING | COMPLEX, int_to_float, same, constant<decltype(x)>(1) / x),
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
    DIVISION_KEEPING(floor_divide, REAL, none, same, floor_divide(x, y, by_zero)),
    DIVISION_KEEPING(div_floor, REAL, none, same, floor_divide(x, y, by_zero)),
    DIVISION_KEEPING(div_trunc, REAL, none, same, divide_truncating(x, y, by_zero)),
    DIVISION(remainder, REAL, none, same, remainder(x, y, by_zero)),
    DIVISION(fmod, REAL, none, same, fmod(x, y, by_zero)),
};
}  // namespace

const Family arithmetic = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
