// Bessel functions of order 0 and 1 (I is in simd/bessel.h), and Airy's Ai. Start with `scaled_k`, which
// serves K0, K1 and Ai.
//
// Near zero all of them are power series; far out the asymptotic series in 1/x, whose smallest term is about
// exp(-2x): below 1e-17 from x = 20 on. Between, K is an integral that the trapezoid rule sums to full
// precision, and Ai the solution of y'' = x y, continued from a table of values at the integers.
#include <cmath>
#include <limits>

#include "special.h"

namespace rl {
namespace {

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr double EULER_GAMMA = 0.57721566490153286061;
constexpr double FAR = 20;

// The asymptotic series of exp(x) K(x) sqrt(2x / pi) of order nu.
double asymptotic(double nu, double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 40; k++) {
    double odd = 2.0 * k - 1;
    double next = term * (4 * nu * nu - odd * odd) / (8 * k * x);
    if (std::fabs(next) > std::fabs(term)) break;
    sum += term = next;
    if (std::fabs(term) < 1e-18) break;
  }
  return sum;
}

// The power series of I0(x), or of 2 I1(x) / x.
double i_series(int order, double x) {
  double quarter = x * x / 4, sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-18; k++) sum += term *= quarter / (double(k) * (k + order));
  return sum;
}

// Where the integral of scaled_k is summed: cosh t - 1, and cosh(nu t) for the orders 0, 1 and 1/3.
struct Nodes {
  static constexpr int COUNT = 40;
  static constexpr double STEP = 0.15;
  double rise[COUNT], weights[3][COUNT];

  Nodes() {
    for (int k = 0; k < COUNT; k++) {
      double t = (k + 1) * STEP, half = std::sinh(t / 2);
      rise[k] = 2 * half * half;
      weights[0][k] = 1;
      weights[1][k] = std::cosh(t);
      weights[2][k] = std::cosh(t / 3);
    }
  }
};

// exp(x) K(x) of order nu (0, 1 or 1/3) for x >= 1: the integral of exp(-x (cosh t - 1)) cosh(nu t) over t >=
// 0.
double scaled_k(double nu, double x) {
  if (x >= FAR) return asymptotic(nu, x) * std::sqrt(M_PI / (2 * x));
  static const Nodes nodes;
  const double* weights = nodes.weights[nu == 0 ? 0 : nu == 1 ? 1 : 2];
  double sum = 0.5;
  for (int k = 0; k < Nodes::COUNT; k++) {
    double exponent = -x * nodes.rise[k];
    if (exponent < -45) break;
    sum += std::exp(exponent) * weights[k];
  }
  return sum * Nodes::STEP;
}

double k0_near(double x) {  // 0 < x <= 1
  double quarter = x * x / 4, sum = 0, term = 1, harmonic = 0;
  for (int k = 1; k < 30 && term > 1e-20; k++) {
    term *= quarter / (double(k) * k);
    harmonic += 1.0 / k;
    sum += term * harmonic;
  }
  return sum - (std::log(x / 2) + EULER_GAMMA) * i_series(0, x);
}

double k1_near(double x) {  // 0 < x <= 1
  double quarter = x * x / 4, term = 1, harmonic = 0, sum = 0;
  for (int k = 0; k < 30; k++) {  // digamma(k + 1) + digamma(k + 2)
    sum += term * (2 * (harmonic - EULER_GAMMA) + 1.0 / (k + 1));
    harmonic += 1.0 / (k + 1);
    term *= quarter / (double(k + 1) * (k + 2));
    if (term < 1e-20) break;
  }
  return 1 / x + x / 2 * (std::log(x / 2) * i_series(1, x) - sum / 2);
}

double any_k(int order, double x, bool scaled) {
  if (x == 0) return INF;
  if (!(x > 0)) return NOT_A_NUMBER;
  if (x == INF) return 0;
  if (x <= 1) return (order ? k1_near(x) : k0_near(x)) * (scaled ? std::exp(x) : 1);
  return scaled_k(order, x) * (scaled ? 1 : std::exp(-x));
}

// Ai and its derivative at -10 ... 3.
constexpr int AIRY_FIRST = -10, AIRY_LAST = 3;
constexpr double AIRY[][2] = {
    {0.04024123848644319069, 0.9962650441327900559},     // -10
    {-0.02213372154734140367, -0.9756639809263315947},   // -9
    {-0.05270505035638620262, 0.935560938198306551},     // -8
    {0.1842808352505056373, -0.7710081684101265477},     // -7
    {-0.3291451736298231052, 0.3459354872813428949},     // -6
    {0.3507610090241143198, 0.3271928185544431368},      // -5
    {-0.0702655329492895151, -0.7906285753685813803},    // -4
    {-0.3788142936776580743, 0.3145837692165988137},     // -3
    {0.227407428201685576, 0.6182590207416910414},       // -2
    {0.5355608832923521188, -0.0101605671166452094},     // -1
    {0.3550280538878172393, -0.2588194037928067984},     // 0
    {0.1352924163128814155, -0.1591474412967932128},     // 1
    {0.03492413042327437914, -0.0530903844336536317},    // 2
    {0.006591139357460719144, -0.01191297670595131847},  // 3
};

double airy_continued(double x) {
  double at = std::nearbyint(x), h = x - at;
  const double* start = AIRY[int(at) - AIRY_FIRST];
  // y = sum of c[k] h^k with (k+1)(k+2) c[k+2] = at c[k] + c[k-1]
  double before = 0, c0 = start[0], c1 = start[1], power = h, sum = c0 + c1 * h;
  for (int k = 0; k < 24; k++) {  // |h| is at most 0.5, so that the terms fall like 1.6^k / k!
    double next = (at * c0 + before) / ((k + 1.0) * (k + 2.0));
    before = c0, c0 = c1, c1 = next;
    power *= h;
    sum += next * power;
  }
  return sum;
}

// x < -10: a wave whose phase and size are the even and odd terms of the asymptotic series of order 1/3.
double airy_wave(double x) {
  double z = -x, angle = 2.0 / 3 * z * std::sqrt(z);
  double even = 1, odd = 0, term = 1;
  for (int k = 1; k < 40; k++) {
    double count = 2.0 * k - 1;
    double next = term * (4.0 / 9 - count * count) / (8 * k * angle);
    if (std::fabs(next) > std::fabs(term) || std::fabs(next) < 1e-19) break;
    term = next;
    double signed_term = k % 4 < 2 ? term : -term;  // + - - + of the pairs (even, odd)
    if (k % 2) odd += signed_term;
    else even += k % 4 == 0 ? term : -term;
  }
  double turned = angle - M_PI_4;
  return (even * std::cos(turned) - odd * std::sin(turned)) / (std::sqrt(M_PI) * std::sqrt(std::sqrt(z)));
}

}  // namespace

double modified_bessel_k0(double x) { return any_k(0, x, false); }
double modified_bessel_k1(double x) { return any_k(1, x, false); }
double scaled_modified_bessel_k0(double x) { return any_k(0, x, true); }
double scaled_modified_bessel_k1(double x) { return any_k(1, x, true); }

double bessel_j0(double x) { return std::isinf(x) ? NOT_A_NUMBER : ::j0(x); }
double bessel_j1(double x) { return std::isinf(x) ? NOT_A_NUMBER : ::j1(x); }

double bessel_y0(double x) {
  if (x == 0) return -INF;
  return x > 0 && x != INF ? ::y0(x) : NOT_A_NUMBER;
}

double bessel_y1(double x) {
  if (x == 0) return -INF;
  return x > 0 && x != INF ? ::y1(x) : NOT_A_NUMBER;
}

double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::fabs(x) < 1e-4) return 1 - x * x / 6;
  return std::sin(x) / x;
}

double airy_ai(double x) {
  if (!std::isfinite(x)) return NOT_A_NUMBER;
  if (x < AIRY_FIRST) return airy_wave(x);
  if (x <= 2.5) return airy_continued(x);
  double z = 2.0 / 3 * x * std::sqrt(x);
  return std::sqrt(x / 3) / M_PI * scaled_k(1.0 / 3, z) * std::exp(-z);
}

}  // namespace rl
