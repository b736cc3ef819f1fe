// Activation functions of networks and their fused gradients. In a gradient x is the incoming one and y what
// the function's input or output was.
#include "complex_math.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

// From e^-|x|, which cannot overflow; the complex form overflows to NaN where NumPy's and torch's does.
template <class X>
inline X sigmoid(X x) {
  if constexpr (is_complex_number_v<X>) {
    X one = constant<X>(1);
    return one / (exp(-x) + one);
  } else {
    // What the sum (between 1 and 2) loses in rounding is taken off the quotient, roughly.
    X e = exp(-magnitude(x)), sum = e + 1, lost = e - (sum - 1);
    X quotient = (x < 0 ? e : constant<X>(1)) / sum;
    return fma(-quotient, lost, quotient);
  }
}
// max(x, 0) + log(1 + e^-|x|)
template <class X>
inline X softplus(X x) {
  return maximum(x, X{}) + log1p(exp_precise(-magnitude(x)));
}
template <class X>
inline X normal_cdf(X x) {
  if constexpr (std::is_same_v<X, f32v>) return normal_share(x);
  else return (erf(x * constant<X>(M_SQRT1_2)) + 1) * constant<X>(0.5);
}
// The tanh approximation of gelu: x (1 + tanh(u)) / 2.
template <class X>
inline X gelu_tanh_argument(X x) {
  return constant<X>(0.7978845608028654) * (x + constant<X>(0.044715) * x * x * x);
}
template <class X>
inline X gelu_tanh(X x) {
  return x * constant<X>(0.5) * (tanh(gelu_tanh_argument(x)) + 1);
}

template <class X>
inline X sigmoid_backward(X g, X y) {
  X one = constant<X>(1);
  if constexpr (is_complex_number_v<X>) return g * conj((one - y) * y);
  else return g * (one - y) * y;
}
template <class X>
inline X tanh_backward(X g, X y) {
  if constexpr (is_complex_number_v<X>) return g * conj(constant<X>(1) - y * y);
  else return g * fma(-y, y, constant<X>(1));
}
template <class X>
inline X silu_backward(X g, X x) {
  X s = sigmoid(x), one = constant<X>(1);
  if constexpr (is_complex_number_v<X>) return g * conj(s * (x * (one - s) + one));
  else return g * s * (x * (one - s) + 1);
}
template <class X>
inline X gelu_backward(X g, X x) {
  X density = exp(x * x * constant<X>(-0.5)) * constant<X>(0.3989422804014327);
  return g * (normal_cdf(x) + x * density);
}
template <class X>
inline X gelu_tanh_backward(X g, X x) {
  X t = tanh(gelu_tanh_argument(x)), half = constant<X>(0.5);
  X slope = constant<X>(0.7978845608028654) * (x * x * constant<X>(3 * 0.044715) + 1);
  return g * (half * (t + 1) + half * x * (constant<X>(1) - t * t) * slope);
}
template <class X>
inline X softplus_backward(X g, X x, X beta, X threshold) {
  X scaled = x * beta;
  return scaled > threshold ? g : g * sigmoid(scaled);
}
// Squared below `beta`, absolute above it, and its slope.
template <class X>
inline X smooth_absolute(X x, X beta) {
  X size = absolute(x), half = constant<X>(0.5);
  return size < beta ? half * x * x / beta : size - half * beta;
}
template <class X>
inline X smooth_absolute_backward(X g, X x, X beta) {
  X slope = x / beta;
  return x <= -beta ? -g : x >= beta ? g : g * slope;
}

constexpr FamilyEntry entries[] = {
    UNARY(relu, REAL, none, same, x < 0 ? decltype(x){} : x),
    UNARY(sigmoid, FLOATING | COMPLEX, int_to_float, same, sigmoid(x)),
    UNARY(log_sigmoid, FLOATING, none, same, -softplus(-x)),
    UNARY(silu, FLOATING | COMPLEX, none, same, x* sigmoid(x)),
    UNARY(gelu, FLOATING, none, same, x* normal_cdf(x)),
    UNARY(gelu_tanh, FLOATING, none, same, gelu_tanh(x)),
    UNARY(mish, FLOATING, none, same, x* tanh(softplus(x))),
    UNARY(hardsigmoid, FLOATING, none, same, clamp(x + 3, decltype(x){}, constant<decltype(x)>(6)) / 6),
    UNARY(hardswish, FLOATING, none, same, x* clamp(x + 3, decltype(x){}, constant<decltype(x)>(6)) / 6),
    // a is the slope of the negative side
    UNARY_WITH(1, leaky_relu, FLOATING, none, same, x > 0 ? x : x * a),
    UNARY_WITH(1, leaky_relu_written, FLOATING, none, same, x > 0 ? x : x * a),
    // where x is not above a, b
    UNARY_WITH(2, threshold, REAL, none, same, x <= a ? b : x),
    // negative: a (e^(c x) - 1), positive: b x
    UNARY_WITH(3, elu, FLOATING, none, same, x < 0 ? expm1(x * c) * a : x * b),
    UNARY_WITH(3, elu_written, FLOATING, none, same, x < 0 ? expm1(x * c) * a : x * b),
    // between a and b; NaN if one of them is
    UNARY_WITH(2, hardtanh, REAL, none, same,
               x >= a   ? (x <= b ? x : b)
               : x != x ? x
               : b != b ? b
                        : a),
    // 0 up to a; beyond, x or x moved towards 0 (in there -0 and NaN stay)
    UNARY_WITH_ROUNDED(1, hardshrink, FLOATING, none, same, x >= -a && x <= a ? decltype(x){} : x),
    UNARY_WITH(1, softshrink, FLOATING, none, same,
               x > a    ? x - a
               : x < -a ? x + a
                        : x * 0),
    // a is beta, b the threshold from which on it is the identity
    UNARY_WITH(2, softplus, FLOATING, none, same, x* a > b ? x : softplus(x * a) / a),
    // a is where the square ends
    UNARY_WITH(1, smooth_absolute, FLOATING, none, same, smooth_absolute(x, a)),

    // y is the slope of the negative side
    BINARY(prelu, FLOATING, none, same, x > 0 ? x : x * y),

    BINARY_WITH(1, threshold_backward, REAL, none, same, y <= a ? decltype(x){} : x),
    BINARY_WITH(1, leaky_relu_backward, FLOATING, none, same, y > 0 ? x : x * a),
    BINARY(sigmoid_backward, FLOATING | COMPLEX, none, same, sigmoid_backward(x, y)),
    BINARY(tanh_backward, FLOATING | COMPLEX, none, same, tanh_backward(x, y)),
    BINARY(silu_backward, FLOATING | COMPLEX, none, same, silu_backward(x, y)),
    BINARY(gelu_backward, FLOATING, none, same, gelu_backward(x, y)),
    BINARY(gelu_tanh_backward, FLOATING, none, same, gelu_tanh_backward(x, y)),
    BINARY(hardsigmoid_backward, FLOATING, none, same, (y > -3) & (y < 3) ? x / 6 : decltype(x){}),
    BINARY(hardswish_backward, FLOATING, none, same,
           y <= -3  ? decltype(x){}
           : y >= 3 ? x
                    : x * (y / 3 + constant<decltype(x)>(0.5))),
    BINARY_WITH(3, elu_backward, FLOATING, none, same, y <= 0 ? x * (a * c) * exp(y * c) : x * b),
    // y is the result
    BINARY_WITH(3, elu_written_backward, FLOATING, none, same, y <= 0 ? x * c * (y + a) : x * b),
    BINARY_WITH(2, hardtanh_backward, FLOATING, none, same, y <= a || y >= b ? decltype(x){} : x),
    BINARY_WITH_ROUNDED(1, hardshrink_backward, FLOATING, none, same, y >= -a && y <= a ? decltype(x){} : x),
    BINARY_WITH_ROUNDED(1, softshrink_backward, FLOATING, none, same, y >= -a && y <= a ? decltype(x){} : x),
    BINARY_WITH(2, softplus_backward, FLOATING, none, same, softplus_backward(x, y, a, b)),
    BINARY_WITH(1, smooth_absolute_backward, FLOATING, none, same, smooth_absolute_backward(x, y, a)),
};
}  // namespace

const Family activation = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
