// See small_products.h. `products` is the loop: one for each element type, number of rows and of columns, so
// that a result stays in registers.
#include "small_products.h"

#include <algorithm>

#include "index_walk.h"

namespace rl {
namespace {

struct Steps {  // in elements: between rows, columns, and one product and the next
  int64_t row, col, next;
};

// What a sum is kept in. The four products of parts are added up by themselves, so that a @ a.mH is Hermitian
// to the last bit.
template <class T>
struct Sum {
  T sum{};
  void add(T x, T y) { sum += x * y; }
  T total() const { return sum; }
};
template <class R>
struct Sum<std::complex<R>> {
  R re_re{}, im_im{}, re_im{}, im_re{};
  void add(std::complex<R> x, std::complex<R> y) {
    re_re += x.real() * y.real(), im_im += x.imag() * y.imag();
    re_im += x.real() * y.imag(), im_re += x.imag() * y.real();
  }
  std::complex<R> total() const { return {re_re - im_im, re_im + im_re}; }
};

template <class T, int M, int N>
void products(T* c, Steps cs, const T* a, Steps as, const T* b, Steps bs, int64_t k, T alpha, T beta,
              int64_t count) {
  const bool plain = alpha == T(1) && beta == T(0);
  for (; count > 0; count--, c += cs.next, a += as.next, b += bs.next) {
    Sum<T> sums[M][N];
    for (int64_t p = 0; p < k; p++) {
      T left[M], right[N];
      for (int i = 0; i < M; i++) left[i] = a[i * as.row + p * as.col];
      for (int j = 0; j < N; j++) right[j] = b[p * bs.row + j * bs.col];
      for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) sums[i][j].add(left[i], right[j]);
    }
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        T& to = c[i * cs.row + j * cs.col];
        T value = sums[i][j].total();
        if (!plain) value = beta == T(0) ? alpha * value : alpha * value + beta * to;
        to = value;
      }
  }
}

template <class T>
using SmallLoop = void (*)(T*, Steps, const T*, Steps, const T*, Steps, int64_t, T, T, int64_t);

template <class T>
constexpr SmallLoop<T> LOOPS[SMALL_SIDE][SMALL_SIDE] = {
    {products<T, 1, 1>, products<T, 1, 2>, products<T, 1, 3>},
    {products<T, 2, 1>, products<T, 2, 2>, products<T, 2, 3>},
    {products<T, 3, 1>, products<T, 3, 2>, products<T, 3, 3>}};

template <class F>
void visit_small(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(TypeTag<float>{});
    case DType::f64: return f(TypeTag<double>{});
    case DType::c64: return f(TypeTag<std::complex<float>>{});
    case DType::c128: return f(TypeTag<std::complex<double>>{});
    default: return;
  }
}

}  // namespace

bool are_small_products(const Span& c, const Span& a) {
  int64_t rows = c.sizes[c.ndim - 2], cols = c.sizes[c.ndim - 1], k = a.sizes[a.ndim - 1];
  bool known = false;
  visit_small(c.dtype, [&](auto) { known = true; });
  return known && rows >= 1 && rows <= SMALL_SIDE && cols >= 1 && cols <= SMALL_SIDE && k >= 1 &&
         k <= SMALL_TERMS;
}

void small_products(const Span& c, const Span& a, const Span& b, const void* alpha, const void* beta,
                    int64_t begin, int64_t end) {
  const int batch = c.ndim - 2;
  Walk<3> walk(batch, c.sizes, {c.strides, a.strides, b.strides});
  auto steps = [&](const Span& s, int operand) {
    return Steps{s.strides[batch], s.strides[batch + 1], walk.step(operand)};
  };
  visit_small(c.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const SmallLoop<T> loop = LOOPS<T>[c.sizes[batch] - 1][c.sizes[batch + 1] - 1];
    walk.run(begin, end, [&](const int64_t* at, int64_t n) {
      loop(static_cast<T*>(c.data) + at[0], steps(c, 0), static_cast<const T*>(a.data) + at[1], steps(a, 1),
           static_cast<const T*>(b.data) + at[2], steps(b, 2), a.sizes[batch + 1],
           *static_cast<const T*>(alpha), *static_cast<const T*>(beta), n);
    });
  });
}

}  // namespace rl
