// Arithmetic that is exact or correctly rounded: the same bits on every instruction set, and torch's.
#include "complex_math.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {
constexpr Elementwise entries[] = {
    UNARY(neg, NUMBERS, none, same, negate(x)),
    UNARY(abs, NUMBERS, none, real, absolute(x)),
    UNARY(square, NUMBERS, bool_to_int, same, multiply(x, x)),
    UNARY(sqrt, FLOATING | COMPLEX, int_to_float, same, sqrt(x)),
    UNARY(relu, REAL, none, same, x < 0 ? decltype(x){} : x),

    BINARY(add, ALL, none, same, add(x, y)),
    BINARY(sub, NUMBERS, none, same, subtract(x, y)),
    BINARY(mul, ALL, none, same, multiply(x, y)),
    BINARY(div, FLOATING | COMPLEX, int_to_float, same, x / y),
    BINARY_WITH(1, add_alpha, ALL, none, same, add(x, multiply(a, y))),
};
}  // namespace

const Family arithmetic = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
