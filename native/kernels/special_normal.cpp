// What belongs to the normal distribution: erfcx, its distribution function, that one's logarithm and
// inverse.
#include <cmath>
#include <limits>

#include "special.h"

namespace rl {

// exp(x^2) erfc(x). The rounding of x^2 is made good by a first-order term; far out the asymptotic series,
// whose smallest term is about exp(-x^2).
double erfcx(double x) {
  if (x < 7) {
    double square = x * x, lost = std::fma(x, x, -square);
    double size = std::exp(square);
    if (std::isinf(size)) return size;  // x is below -26.6
    return size * (1 + lost) * std::erfc(x);
  }
  double sum = 1, term = 1, step = 1 / (2 * x * x);
  for (int k = 1; k < 30; k++) {
    term *= -(2 * k - 1) * step;
    sum += term;
    if (std::fabs(term) < 1e-18) break;
  }
  return sum / (x * std::sqrt(M_PI));
}

double ndtr(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

double log_ndtr(double x) {
  if (x < -1) {
    double t = x * M_SQRT1_2;
    return std::log(erfcx(-t) / 2) - t * t;
  }
  return std::log1p(-std::erfc(x * M_SQRT1_2) / 2);
}

// In the middle through erf, on the tails through the logarithm of ndtr, by Halley's steps from a rough
// guess.
double ndtri(double p) {
  if (p == 0) return -std::numeric_limits<double>::infinity();
  if (p == 1) return std::numeric_limits<double>::infinity();
  if (!(p > 0 && p < 1)) return std::numeric_limits<double>::quiet_NaN();
  double tail = p < 0.5 ? p : 1 - p;
  double z;
  if (tail > 0.1) {
    double wanted = p - 0.5;  // exact
    z = wanted * std::sqrt(2 * M_PI);
    for (int step = 0; step < 8; step++) {
      double error = 0.5 * std::erf(z * M_SQRT1_2) - wanted;
      double newton = error * std::sqrt(2 * M_PI) * std::exp(z * z / 2);
      double change = newton / (1 + 0.5 * z * newton);
      z -= change;
      if (std::fabs(change) < 1e-12 * std::fabs(z)) break;
    }
    return z;
  }
  double log_tail = std::log(tail);
  z = -std::sqrt(-2 * log_tail - std::log(2 * M_PI) - std::log(-2 * log_tail));
  for (int step = 0; step < 8; step++) {
    double slope = std::sqrt(2 / M_PI) / erfcx(-z * M_SQRT1_2);  // of log_ndtr
    double newton = (log_ndtr(z) - log_tail) / slope;
    double change = newton / (1 + 0.5 * newton * (z + slope));  // its second derivative is -slope (z + slope)
    z -= change;
    if (std::fabs(change) < 1e-11 * std::fabs(z)) break;
  }
  return p < 0.5 ? z : -z;
}

}  // namespace rl
