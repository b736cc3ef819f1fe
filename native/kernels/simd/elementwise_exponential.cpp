// Exponentials, logarithms, and what is made of them.
#include "../vecmath.h"
#include "../vecmath64.h"
#include "complex_math.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {
constexpr Elementwise entries[] = {
    UNARY(exp, FLOATING | COMPLEX, int_to_float, same, exp(x)),
    UNARY(log, FLOATING | COMPLEX, int_to_float, same, log(x)),
    UNARY(sin, FLOATING | COMPLEX, int_to_float, same, sin(x)),
    UNARY(cos, FLOATING | COMPLEX, int_to_float, same, cos(x)),
};
}  // namespace

const Family exponential = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
