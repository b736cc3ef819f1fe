// Special functions of one number, in double precision: what libm lacks. Compiled once, without SIMD.
//
// Bessel and Airy functions are in special_bessel.cpp, gamma and zeta functions in special_gamma.cpp, what
// belongs to the normal distribution in special_normal.cpp, orthogonal polynomials in
// special_polynomials.cpp; python/special_ops.cpp makes loops and primitives of them. Accuracies are relative
// and were measured against mpmath; at infinities the results are torch's.
#pragma once
#include <cstdint>

namespace rl {

double modified_bessel_k0(double x);
double modified_bessel_k1(double x);
double scaled_modified_bessel_k0(double x);
double scaled_modified_bessel_k1(double x);
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double spherical_bessel_j0(double x);
double airy_ai(double x);

double zeta(double s, double q);  // Hurwitz's: the sum of (q + k)^-s
double polygamma(int64_t n, double x);
double igamma(double a, double x);        // regularised, lower
double igammac(double a, double x);       // regularised, upper
double rough_igamma(double a, double x);  // good to 1e-12, for results of single precision
double rough_igammac(double a, double x);

double erfcx(double x);  // exp(x^2) erfc(x)
double ndtr(double x);
double log_ndtr(double x);
double ndtri(double p);

// Polynomials of degree n (truncated to an integer; 0 for a negative one) in the precision of their argument,
// because where a recurrence overflows is part of the result.
enum class Polynomial {
  chebyshev_t,
  chebyshev_u,
  chebyshev_v,
  chebyshev_w,
  shifted_chebyshev_t,
  shifted_chebyshev_u,
  shifted_chebyshev_v,
  shifted_chebyshev_w,
  hermite_h,
  hermite_he,
  laguerre_l,
  legendre_p,
};
float polynomial(Polynomial family, float x, float n);
double polynomial(Polynomial family, double x, double n);

}  // namespace rl
