// Orthogonal polynomials by their three-term recurrences. `polynomial` at the end chooses the family.
//
// Chebyshev's polynomials inside (-1, 1) are trigonometric functions of n acos(x), which cost the same for
// every n; the degrees from which on that pays are torch's, so that results agree where they are
// ill-conditioned.
#include <cmath>
#include <limits>

#include "special.h"

namespace rl {
namespace {

// p(0) = 1, p(1) = first, p(k + 1) = 2x p(k) - p(k - 1)
template <class T>
T chebyshev(T x, T first, int64_t n) {
  T p = 1, q = first;
  for (int64_t k = 2; k <= n && q == q; k++) {
    T next = std::fma(x + x, q, -p);  // 2x q alone may overflow
    p = q, q = next;
  }
  return q;
}

template <class T>
T first_kind(T x, int64_t n, int64_t direct) {
  if (x == 1) return 1;
  if (x == -1) return n % 2 ? T(-1) : T(1);
  if (n > direct && std::fabs(x) < 1) return std::cos(T(n) * std::acos(x));
  return chebyshev(x, x, n);
}

template <class T>
T second_kind(T x, int64_t n, int64_t direct) {
  if (x == 1) return T(n) + 1;
  if (x == -1) return n % 2 ? -(T(n) + 1) : T(n) + 1;
  if (n > direct && std::fabs(x) < 1) {
    T angle = std::acos(x), sine = std::sin(angle);
    if (sine == 0) return (T(n) + 1) * std::cos(T(n + 1) * angle) / x;
    return std::sin(T(n + 1) * angle) / sine;
  }
  return chebyshev(x, x + x, n);
}

template <class T>
T third_kind(T x, int64_t n, int64_t direct) {
  if (x == 1) return 1;
  if (x == -1) return n % 2 ? -T(2 * uint64_t(n) + 1) : T(2 * uint64_t(n) + 1);
  if (n > direct && std::fabs(x) < 1) {
    T angle = std::acos(x);
    if (std::cos(angle / 2) == 0) return n % 2 ? -T(2 * uint64_t(n) + 1) : T(2 * uint64_t(n) + 1);
    return std::cos((T(n) + T(0.5)) * angle) / std::cos(angle / 2);
  }
  return chebyshev(x, x + x - 1, n);
}

template <class T>
T fourth_kind(T x, int64_t n, int64_t direct) {
  if (x == 1) return T(2 * uint64_t(n) + 1);
  if (x == -1) return n % 2 ? T(-1) : T(1);
  if (n > direct && std::fabs(x) < 1) {
    T angle = std::acos(x);
    if (std::sin(angle / 2) == 0) return T(2 * uint64_t(n) + 1);
    return std::sin((T(n) + T(0.5)) * angle) / std::sin(angle / 2);
  }
  return chebyshev(x, x + x + 1, n);
}

// H (factor 2) and He (factor 1); NaN beyond the degrees whose values fit the type.
template <class T>
T hermite(T x, int64_t n, T factor) {
  constexpr int64_t limit = sizeof(T) == 4 ? 128 : 512;
  if (n == 1) return factor * x;
  if (n > limit) return std::numeric_limits<T>::quiet_NaN();
  T p = 1, q = factor * x;
  for (int64_t k = 1; k < n; k++) {
    T next = std::fma(factor * x, q, -(factor * T(k) * p));
    p = q, q = next;
  }
  return q;
}

template <class T>
T laguerre(T x, int64_t n) {
  if (x == 0) return 1;
  T p = 1, q = 1 - x;
  for (int64_t k = 1; k < n && q == q; k++) {
    T next = std::fma(T(k + k) + (T(1) - x), q, -(T(k) * p)) / T(k + 1);
    p = q, q = next;
  }
  return q;
}

template <class T>
T legendre(T x, int64_t n) {
  if (x == 1) return 1;
  if (x == -1) return n % 2 ? T(-1) : T(1);
  T p = 1, q = x;
  for (int64_t k = 1; k < n && q == q; k++) {
    T next = std::fma(T(k + k + 1) * x, q, -(T(k) * p)) / T(k + 1);
    p = q, q = next;
  }
  return q;
}

template <class T>
T of_degree(Polynomial family, T x, T degree) {
  // NaN and degrees that no integer holds count as negative.
  if (!(degree > -1 && degree < T(9e18))) return 0;
  int64_t n = int64_t(degree);
  if (n == 0) return 1;
  T moved = x + x - 1;
  switch (family) {
    case Polynomial::chebyshev_t: return first_kind(x, n, 6);
    case Polynomial::chebyshev_u: return second_kind(x, n, 8);
    case Polynomial::chebyshev_v: return third_kind(x, n, 8);
    case Polynomial::chebyshev_w: return fourth_kind(x, n, 8);
    case Polynomial::shifted_chebyshev_t: return first_kind(moved, n, 6);
    case Polynomial::shifted_chebyshev_u: return second_kind(moved, n, 6);
    case Polynomial::shifted_chebyshev_v: return third_kind(moved, n, 6);
    case Polynomial::shifted_chebyshev_w: return fourth_kind(moved, n, 4);
    case Polynomial::hermite_h: return hermite<T>(x, n, 2);
    case Polynomial::hermite_he: return hermite<T>(x, n, 1);
    case Polynomial::laguerre_l: return laguerre(x, n);
    case Polynomial::legendre_p: return legendre(x, n);
  }
  return std::numeric_limits<T>::quiet_NaN();
}

}  // namespace

float polynomial(Polynomial family, float x, float n) { return of_degree(family, x, n); }
double polynomial(Polynomial family, double x, double n) { return of_degree(family, x, n); }

}  // namespace rl
