// Comparisons, tests and logic: the result is bool, whatever is compared.
#define RL_STEPPED
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {
constexpr FamilyEntry entries[] = {
    BINARY(eq, ALL, none, boolean, x == y),
    BINARY(ne, ALL, none, boolean, x != y),
    BINARY(lt, REAL | BOOL, none, boolean, x < y),
    BINARY(le, REAL | BOOL, none, boolean, x <= y),
    BINARY(gt, REAL | BOOL, none, boolean, x > y),
    BINARY(ge, REAL | BOOL, none, boolean, x >= y),
    BINARY(logical_and, ALL, none, boolean, nonzero(x) & nonzero(y)),
    BINARY(logical_or, ALL, none, boolean, nonzero(x) | nonzero(y)),
    BINARY(logical_xor, ALL, none, boolean, nonzero(x) ^ nonzero(y)),
    UNARY(logical_not, ALL, none, boolean, nonzero(x) == 0),
    UNARY(isnan, ALL, none, boolean, is_nan(x)),
    UNARY(isinf, ALL, none, boolean, is_infinite(x)),
    UNARY(isfinite, ALL, none, boolean, is_finite(x)),
    UNARY(isposinf, REAL | BOOL, none, boolean, is_infinite(x) & (x > 0)),
    UNARY(isneginf, REAL | BOOL, none, boolean, is_infinite(x) & sign_bit(x)),
    UNARY(signbit, REAL | BOOL, none, boolean, sign_bit(x)),
};
}  // namespace

const Family comparison = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
