// Trigonometric and hyperbolic functions, and angles.
#include "complex_math.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

template <class X>
inline auto angle(X x) {
  if constexpr (is_complex_number_v<X>) return atan2(x.im, x.re);
  else return is_nan(x) ? x : x < 0 ? constant<X>(M_PI) : X{};
}

template <class X>
inline X sinc(X x) {
  X scaled = x * constant<X>(M_PI);
  if constexpr (is_complex_number_v<X>) return select(nonzero(x), sin(scaled) / scaled, constant<X>(1));
  else return x == 0 ? constant<X>(1) : sin(scaled) / scaled;
}

template <class X>
inline X length(X x, X y) {
  if constexpr (std::is_same_v<X, f64v>) return hypot_of_parts(x, y);
  else return hypot(x, y);
}

constexpr FamilyEntry entries[] = {
    UNARY(sin, FLOATING | COMPLEX, int_to_float, same, sin(x)),
    UNARY(cos, FLOATING | COMPLEX, int_to_float, same, cos(x)),
    UNARY(tan, FLOATING | COMPLEX, int_to_float, same, tan(x)),
    UNARY(asin, FLOATING | COMPLEX, int_to_float, same, asin(x)),
    UNARY(acos, FLOATING | COMPLEX, int_to_float, same, acos(x)),
    UNARY(atan, FLOATING | COMPLEX, int_to_float, same, atan(x)),
    UNARY(sinh, FLOATING | COMPLEX, int_to_float, same, sinh(x)),
    UNARY(cosh, FLOATING | COMPLEX, int_to_float, same, cosh(x)),
    UNARY(tanh, FLOATING | COMPLEX, int_to_float, same, tanh(x)),
    UNARY(asinh, FLOATING | COMPLEX, int_to_float, same, asinh(x)),
    UNARY(acosh, FLOATING | COMPLEX, int_to_float, same, acosh(x)),
    UNARY(atanh, FLOATING | COMPLEX, int_to_float, same, atanh(x)),
    UNARY(angle, FLOATING | COMPLEX, int_to_float, real, angle(x)),
    UNARY(deg2rad, FLOATING, int_to_float, same, x* constant<decltype(x)>(M_PI / 180)),
    UNARY(rad2deg, FLOATING, int_to_float, same, x* constant<decltype(x)>(180 / M_PI)),
    UNARY(sinc, FLOATING | COMPLEX, int_to_float, same, sinc(x)),
    // gradients of sin and cos in one pass: x is the incoming one, y the argument
    BINARY(sin_backward, FLOATING, none, same, x* cos(y)),
    BINARY(cos_backward, FLOATING, none, same, x * -sin(y)),
    BINARY(atan2, FLOATING, int_to_float, same, atan2(x, y)),
    BINARY(hypot, FLOATING, none, same, length(x, y)),
};
}  // namespace

const Family trigonometric = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
