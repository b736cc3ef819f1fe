// Fourier transforms of float lines whose length is a power of two, for AVX2. Start at `transform_lines`.
//
// A line of n = n1 n2 numbers is taken as a matrix: n1-point transforms down its columns, a twiddle for every
// element, a transposition, n2-point transforms down the columns again. Columns lie side by side, so all of
// it runs in vectors, on real and imaginary parts apart. A backward transform is the forward one with the two
// parts exchanged; a real line of 2 n numbers is n complex ones, put right afterwards (`real_spectrum`).
#pragma once
#if defined(__AVX2__)
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "../fft.h"

namespace rl {
inline namespace RL_ISA {
namespace powers {

// Complex numbers of a line; longer ones leave the first-level cache, and pocketfft is as fast.
constexpr int64_t SHORTEST = 256, LONGEST = 2048;

// exp(-2 pi i k / n) in double, exact to the last bit or so.
inline void root(int64_t k, int64_t n, double& re, double& im) {
  double angle = -2 * M_PI * (double(k % n) / double(n));
  re = std::cos(angle), im = std::sin(angle);
}

// What `down_columns` multiplies by: six numbers for every step of each stage.
template <class R>
void column_roots(int64_t length, std::vector<R>& to) {
  for (int64_t size = length; size >= 4; size /= 4)
    for (int64_t p = 0; p < size / 4; p++)
      for (int64_t times = 1; times <= 3; times++) {
        double re, im;
        root(p * times, size, re, im);
        to.push_back(R(re));
        to.push_back(R(im));
      }
}

template <class R>
struct Plan {
  int64_t n, n1, n2;
  std::vector<R> columns[2];            // their column_roots
  std::vector<R> middle_re, middle_im;  // [n1][n2]
  std::vector<R> half_re, half_im;      // exp(-pi i k / n)

  explicit Plan(int64_t length) : n(length), n1(1) {
    while (n1 * n1 * 4 <= n) n1 *= 2;
    n2 = n / n1;
    column_roots(n1, columns[0]);
    column_roots(n2, columns[1]);
    for (int64_t k = 0; k < n1; k++)
      for (int64_t j = 0; j < n2; j++) {
        double re, im;
        root(k * j, n, re, im);
        middle_re.push_back(R(re));
        middle_im.push_back(R(im));
      }
    for (int64_t k = 0; k < n; k++) {
      double re, im;
      root(k, 2 * n, re, im);
      half_re.push_back(R(re));
      half_im.push_back(R(im));
    }
  }
};

// The plans of recent lengths.
template <class R>
std::shared_ptr<const Plan<R>> plan_of(int64_t n) {
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const Plan<R>>>& kept = *new std::vector<std::shared_ptr<const Plan<R>>>;
  {
    std::lock_guard lock(mutex);
    for (auto& plan : kept)
      if (plan->n == n) return plan;
  }
  auto made = std::make_shared<const Plan<R>>(n);
  std::lock_guard lock(mutex);
  if (kept.size() == 8) kept.erase(kept.begin());
  kept.push_back(made);
  return made;
}

template <class R>
struct Lanes {
  typedef R Vector __attribute__((vector_size(32)));
  static constexpr int64_t COUNT = 32 / sizeof(R);
  static Vector load(const R* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(R* p, Vector v) { std::memcpy(p, &v, sizeof v); }
};

// Rows begin a little further apart than their length: powers of two would meet in the same lines of the
// cache.
template <class R>
constexpr int64_t pitch(int64_t columns) {
  return columns + Lanes<R>::COUNT;
}

// size-point transforms down `columns` columns, from rows `first` apart to rows `last` apart; the result is
// in x or in y.
template <class R>
bool down_columns(int64_t size, int64_t columns, int64_t first, int64_t last, R* xr, R* xi, R* yr, R* yi,
                  const R* w) {
  using L = Lanes<R>;
  using V = typename L::Vector;
  bool in_x = true;
  for (int64_t s = 1, from = first; size > 1; s *= 4, in_x = !in_x, std::swap(xr, yr), std::swap(xi, yi)) {
    int64_t to = size <= 4 ? last : pitch<R>(columns), m = size / 4;
    if (size == 2) {
      for (int64_t row = 0; row < s; row++)
        for (int64_t q = 0; q < columns; q += L::COUNT) {
          int64_t a = row * from + q, b = a + s * from, c = row * to + q, d = c + s * to;
          V ar = L::load(xr + a), ai = L::load(xi + a), br = L::load(xr + b), bi = L::load(xi + b);
          L::store(yr + c, ar + br), L::store(yi + c, ai + bi);
          L::store(yr + d, ar - br), L::store(yi + d, ai - bi);
        }
    }
    for (int64_t p = 0; p < m; p++, w += 6)
      for (int64_t row = 0; row < s; row++) {
        const R *re = xr + (s * p + row) * from, *im = xi + (s * p + row) * from;
        R *to_re = yr + (s * 4 * p + row) * to, *to_im = yi + (s * 4 * p + row) * to;
        int64_t step = s * m * from, out = s * to;
        for (int64_t q = 0; q < columns; q += L::COUNT) {
          int64_t b = step + q, c = 2 * step + q, d = 3 * step + q;
          V ar = L::load(re + q), ai = L::load(im + q), cr = L::load(re + c), ci = L::load(im + c);
          V br = L::load(re + b), bi = L::load(im + b), dr = L::load(re + d), di = L::load(im + d);
          V t0r = ar + cr, t0i = ai + ci, t1r = ar - cr, t1i = ai - ci;
          V t2r = br + dr, t2i = bi + di, t3r = br - dr, t3i = bi - di;
          V u1r = t1r + t3i, u1i = t1i - t3r, u2r = t0r - t2r, u2i = t0i - t2i;
          V u3r = t1r - t3i, u3i = t1i + t3r;
          L::store(to_re + q, t0r + t2r), L::store(to_im + q, t0i + t2i);
          L::store(to_re + out + q, u1r * w[0] - u1i * w[1]);
          L::store(to_im + out + q, u1r * w[1] + u1i * w[0]);
          L::store(to_re + 2 * out + q, u2r * w[2] - u2i * w[3]);
          L::store(to_im + 2 * out + q, u2r * w[3] + u2i * w[2]);
          L::store(to_re + 3 * out + q, u3r * w[4] - u3i * w[5]);
          L::store(to_im + 3 * out + q, u3r * w[5] + u3i * w[4]);
        }
      }
    size /= size == 2 ? 2 : 4;
    from = to;
  }
  return in_x;
}

inline void transpose(__m256 (&r)[8]) {
  __m256 t[8], u[8];
  for (int i = 0; i < 8; i += 2)
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]), t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44), u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44),
          u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}
// y[n2][n1] = the transpose of x[n1][n2] times the twiddles.
template <class R>
void turn(const Plan<R>& plan, const R* xr, const R* xi, R* yr, R* yi) {
  using L = Lanes<R>;
  constexpr int64_t C = L::COUNT;
  for (int64_t i = 0; i < plan.n1; i += C)
    for (int64_t j = 0; j < plan.n2; j += C) {
      typename L::Vector re[C], im[C];
      for (int64_t r = 0; r < C; r++) {
        int64_t at = (i + r) * plan.n2 + j, x = (i + r) * pitch<R>(plan.n2) + j;
        auto wr = L::load(plan.middle_re.data() + at), wi = L::load(plan.middle_im.data() + at);
        auto a = L::load(xr + x), b = L::load(xi + x);
        re[r] = a * wr - b * wi;
        im[r] = a * wi + b * wr;
      }
      transpose(re);
      transpose(im);
      for (int64_t r = 0; r < C; r++) {
        L::store(yr + (j + r) * pitch<R>(plan.n1) + i, re[r]);
        L::store(yi + (j + r) * pitch<R>(plan.n1) + i, im[r]);
      }
    }
}

// Room for a line: two copies of it, real and imaginary parts apart.
template <class R>
struct Room {
  std::vector<R> memory;
  R *xr, *xi, *yr, *yi;
  explicit Room(const Plan<R>& plan) {
    // n2 >= n1: the larger matrix has more rows. One number more for half a spectrum.
    int64_t each = plan.n2 * pitch<R>(plan.n1) + 3 * Lanes<R>::COUNT;
    memory.resize(size_t(4 * each));
    xr = memory.data(), xi = xr + each, yr = xi + each, yi = yr + each;
  }
  void exchange() { std::swap(xr, yr), std::swap(xi, yi); }
};

// The transform of x, left in x.
template <class R>
void run(const Plan<R>& plan, Room<R>& r) {
  int64_t n1 = plan.n1, n2 = plan.n2;
  if (!down_columns(n1, n2, n2, pitch<R>(n2), r.xr, r.xi, r.yr, r.yi, plan.columns[0].data())) r.exchange();
  turn(plan, r.xr, r.xi, r.yr, r.yi);
  r.exchange();
  if (!down_columns(n2, n1, pitch<R>(n1), n1, r.xr, r.xi, r.yr, r.yi, plan.columns[1].data())) r.exchange();
}

template <class R>
void part(const R* __restrict from, int64_t n, R* __restrict re, R* __restrict im) {
  for (int64_t i = 0; i < n; i++) re[i] = from[2 * i], im[i] = from[2 * i + 1];
}
template <class R>
void join(const R* __restrict re, const R* __restrict im, int64_t n, R scale_re, R scale_im,
          R* __restrict to) {
  for (int64_t i = 0; i < n; i++) to[2 * i] = re[i] * scale_re, to[2 * i + 1] = im[i] * scale_im;
}

// From the transform of pairs, z, to the first half of the spectrum, n + 1 numbers.
template <class R>
void real_spectrum(int64_t n, const R* __restrict wr, const R* __restrict wi, const R* __restrict zr,
                   const R* __restrict zi, R* __restrict to_re, R* __restrict to_im) {
  for (int64_t k = 1; k < n; k++) {
    R even_re = zr[k] + zr[n - k], even_im = zi[k] - zi[n - k];
    R odd_re = zi[k] + zi[n - k], odd_im = zr[n - k] - zr[k];
    to_re[k] = R(0.5) * (even_re + odd_re * wr[k] - odd_im * wi[k]);
    to_im[k] = R(0.5) * (even_im + odd_re * wi[k] + odd_im * wr[k]);
  }
  to_re[0] = zr[0] + zi[0], to_re[n] = zr[0] - zi[0];
  to_im[0] = to_im[n] = 0;
}

// The other way: from half a spectrum z to what transforms into pairs.
template <class R>
void spectrum_of_pairs(int64_t n, const R* __restrict wr, const R* __restrict wi, const R* __restrict zr,
                       const R* __restrict zi, R* __restrict to_re, R* __restrict to_im) {
  for (int64_t k = 0; k < n; k++) {
    R even_re = zr[k] + zr[n - k], even_im = zi[k] - zi[n - k];
    R odd_re = zr[k] - zr[n - k], odd_im = zi[k] + zi[n - k];
    // i conj(w) times the odd part
    to_re[k] = even_re + odd_re * wi[k] - odd_im * wr[k];
    to_im[k] = even_im + odd_re * wr[k] + odd_im * wi[k];
  }
}

// Every line along `axis`, if they are of a length and lie as is fast here; false if not.
template <class R>
bool transform_lines(Transform kind, const Span& to, const Span& from, int axis, bool forward, R scale) {
  int64_t length = kind == Transform::complex_to_real ? to.sizes[axis] : from.sizes[axis];
  int64_t n = kind == Transform::complex ? length : length / 2;
  if (n < SHORTEST || n > LONGEST || (length & (length - 1)) || to.strides[axis] != 1 ||
      from.strides[axis] != 1)
    return false;
  auto plan = plan_of<R>(n);
  Room<R> room(*plan);
  const R *wr = plan->half_re.data(), *wi = plan->half_im.data();
  int64_t index[MAX_DIMS] = {}, lines = 1;
  for (int d = 0; d < to.ndim; d++) lines *= d == axis ? 1 : to.sizes[d];
  for (int64_t line = 0; line < lines; line++) {
    int64_t in = 0, out = 0;
    for (int d = 0; d < to.ndim; d++) in += index[d] * from.strides[d], out += index[d] * to.strides[d];
    const R* x = static_cast<const R*>(from.data) + in * (kind == Transform::real_to_complex ? 1 : 2);
    R* y = static_cast<R*>(to.data) + out * (kind == Transform::complex_to_real ? 1 : 2);
    if (kind == Transform::complex) {
      bool turned = !forward;
      part(x, n, turned ? room.xi : room.xr, turned ? room.xr : room.xi);
      run(*plan, room);
      join(turned ? room.xi : room.xr, turned ? room.xr : room.xi, n, scale, scale, y);
    } else if (kind == Transform::real_to_complex) {
      part(x, n, room.xr, room.xi);
      run(*plan, room);
      real_spectrum(n, wr, wi, room.xr, room.xi, room.yr, room.yi);
      room.exchange();
      join(room.xr, room.xi, n + 1, scale, forward ? scale : -scale, y);
    } else {
      part(x, n + 1, room.yr, room.yi);
      if (forward)
        for (int64_t k = 0; k <= n; k++) room.yi[k] = -room.yi[k];
      room.yi[0] = room.yi[n] = 0;  // not looked at, as ever
      spectrum_of_pairs(n, wr, wi, room.yr, room.yi, room.xr, room.xi);
      std::swap(room.xr, room.xi);  // backwards
      run(*plan, room);
      join(room.xi, room.xr, n, scale, scale, y);
    }
    for (int d = to.ndim - 1; d >= 0; d--) {
      if (d == axis) continue;
      if (++index[d] < to.sizes[d]) break;
      index[d] = 0;
    }
  }
  return true;
}

}  // namespace powers
}  // namespace RL_ISA
}  // namespace rl
#endif
