// Comparisons: the result is bool, whatever is compared.
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {
constexpr Elementwise entries[] = {
    BINARY(eq, ALL, none, boolean, x == y),        BINARY(ne, ALL, none, boolean, x != y),
    BINARY(lt, REAL | BOOL, none, boolean, x < y), BINARY(le, REAL | BOOL, none, boolean, x <= y),
    BINARY(gt, REAL | BOOL, none, boolean, x > y), BINARY(ge, REAL | BOOL, none, boolean, x >= y),
};
}  // namespace

const Family comparison = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
