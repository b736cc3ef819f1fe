// The loops of normalisation; see ../norm.h for what each of them computes.
//
// Sums run over vectors in chains of at most CHAIN, then over doubles. Every loop handles whole vectors first
// and the rest element by element.
#include "../norm.h"

#include <cmath>

#include "any_vector.h"

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr int CHAIN = 32;  // vectors added up before they go into a double

// What chains have come to, in doubles of all lanes: a horizontal sum for each chain took half the time.
template <class C>
struct Wide {
  f64v sum{};
  void add(Vec<C> v) {
    if constexpr (sizeof(C) == sizeof(double)) {
      sum += (f64v)v;
    } else {
      typedef C Part __attribute__((vector_size(VECTOR_BYTES / 2)));
      Part low, high;
      std::memcpy(&low, &v, sizeof low);
      std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
      sum += __builtin_convertvector(low, f64v) + __builtin_convertvector(high, f64v);
    }
  }
  double total() const {
    double all = 0;
    for (int l = 0; l < F64_LANES; l++) all += sum[l];
    return all;
  }
};

// Sums over i in [0, n) of f(i) on vectors and on elements; f returns K values at once. Four chains side by
// side: an addition takes longer than it keeps the processor busy.
template <class C, int K, class Vectors, class Elements>
inline void sum_up(int64_t n, double (&sum)[K], Vectors vectors, Elements elements) {
  constexpr int L = LANES<C>;
  int64_t i = 0;
  Wide<C> wide[K];
  while (i + L <= n) {
    Vec<C> a[K] = {}, b[K] = {}, c[K] = {}, d[K] = {};
    for (int r = 0; r + 4 <= CHAIN && i + 4 * L <= n; r += 4, i += 4 * L) {
      vectors(i, a);
      vectors(i + L, b);
      vectors(i + 2 * L, c);
      vectors(i + 3 * L, d);
    }
    for (int r = 0; r < 3 && i + L <= n; r++, i += L) vectors(i, a);
    for (int k = 0; k < K; k++) wide[k].add((a[k] + b[k]) + (c[k] + d[k]));
  }
  for (int k = 0; k < K; k++) sum[k] += wide[k].total();
  for (; i < n; i++) {
    C rest[K] = {};
    elements(i, rest);
    for (int k = 0; k < K; k++) sum[k] += double(rest[k]);
  }
}

// Calls vectors(i) for every whole vector, elements(i) for the rest.
template <class C, class Vectors, class Elements>
inline void sweep(int64_t n, Vectors vectors, Elements elements) {
  int64_t i = 0;
  for (; i + LANES<C> <= n; i += LANES<C>) vectors(i);
  for (; i < n; i++) elements(i);
}

template <class T>
inline double sum_of(const T* x, int64_t n) {
  using C = compute_t<T>;
  double sum[1] = {};
  sum_up<C>(
      n, sum, [&](int64_t i, Vec<C>* a) { a[0] += load<C>(x + i); },
      [&](int64_t i, C* a) { a[0] = load_one<C>(x + i); });
  return sum[0];
}

template <class T>
inline double squares_of(const T* x, int64_t n, compute_t<T> mean) {
  using C = compute_t<T>;
  double sum[1] = {};
  sum_up<C>(
      n, sum,
      [&](int64_t i, Vec<C>* a) {
        Vec<C> d = load<C>(x + i) - mean;
        a[0] += d * d;
      },
      [&](int64_t i, C* a) {
        C d = load_one<C>(x + i) - mean;
        a[0] = d * d;
      });
  return sum[0];
}

template <class T>
void rows(const NormRows& task, int64_t begin, int64_t end) {
  using C = compute_t<T>;
  int64_t n = task.n;
  for (int64_t r = begin; r < end; r++) {
    const T* x = (const T*)task.x + r * n;
    T* out = (T*)task.out + r * n;
    const C* w = task.weight ? (const C*)task.weight + r % task.groups * n : nullptr;
    const C* b = task.bias ? (const C*)task.bias + r % task.groups * n : nullptr;
    C mean = task.mean ? C(sum_of(x, n) / double(n)) : C(0);
    C rstd = C(1 / std::sqrt(squares_of(x, n, mean) / double(n) + task.eps));
    if (task.mean) ((C*)task.mean)[r] = mean;
    ((C*)task.rstd)[r] = rstd;
    auto write = [&](auto weighted, auto shifted) {
      sweep<C>(
          n,
          [&](int64_t i) {
            Vec<C> v = (load<C>(x + i) - mean) * rstd;
            if constexpr (weighted) v *= load<C>(w + i);
            if constexpr (shifted) v += load<C>(b + i);
            store(out + i, v);
          },
          [&](int64_t i) {
            C v = (load_one<C>(x + i) - mean) * rstd;
            if constexpr (weighted) v *= w[i];
            if constexpr (shifted) v += b[i];
            out[i] = T(v);
          });
    };
    std::true_type yes;
    std::false_type no;
    if (w && b) write(yes, yes);
    else if (w) write(yes, no);
    else if (b) write(no, yes);
    else write(no, no);
  }
}

// dx = rstd * (gw - mean(gw) - xhat * mean(gw * xhat)) with gw = g * weight; without the first mean for rms
// norm.
template <class T>
void rows_backward(const NormRowsBackward& task, int64_t begin, int64_t end, void* dw, void* db) {
  using C = compute_t<T>;
  int64_t n = task.n;
  for (int64_t r = begin; r < end; r++) {
    const T *x = (const T*)task.x + r * n, *g = (const T*)task.g + r * n;
    const C* w = task.weight ? (const C*)task.weight + r % task.groups * n : nullptr;
    C mean = task.mean ? ((const C*)task.mean)[r] : C(0), rstd = ((const C*)task.rstd)[r];
    if (dw) {
      C *to_w = (C*)dw + r % task.groups * n, *to_b = db ? (C*)db + r % task.groups * n : nullptr;
      sweep<C>(
          n,
          [&](int64_t i) {
            Vec<C> u = load<C>(g + i);
            store(to_w + i, load<C>(to_w + i) + u * ((load<C>(x + i) - mean) * rstd));
            if (to_b) store(to_b + i, load<C>(to_b + i) + u);
          },
          [&](int64_t i) {
            C u = load_one<C>(g + i);
            to_w[i] += u * ((load_one<C>(x + i) - mean) * rstd);
            if (to_b) to_b[i] += u;
          });
    }
    if (!task.dx) continue;
    T* dx = (T*)task.dx + r * n;
    auto run = [&](auto weighted) {
      double sum[2] = {};
      sum_up<C>(
          n, sum,
          [&](int64_t i, Vec<C>* a) {
            Vec<C> u = load<C>(g + i);
            if constexpr (weighted) u *= load<C>(w + i);
            a[0] += u;
            a[1] += u * (load<C>(x + i) - mean);
          },
          [&](int64_t i, C* a) {
            C u = load_one<C>(g + i);
            if constexpr (weighted) u *= w[i];
            a[0] = u;
            a[1] = u * (load_one<C>(x + i) - mean);
          });
      C shift = task.mean ? C(-double(rstd) * sum[0] / double(n)) : C(0);
      C slope = C(-double(rstd) * double(rstd) * double(rstd) * sum[1] / double(n));
      sweep<C>(
          n,
          [&](int64_t i) {
            Vec<C> u = load<C>(g + i);
            if constexpr (weighted) u *= load<C>(w + i);
            store(dx + i, u * rstd + (load<C>(x + i) - mean) * slope + shift);
          },
          [&](int64_t i) {
            C u = load_one<C>(g + i);
            if constexpr (weighted) u *= w[i];
            dx[i] = T(u * rstd + (load_one<C>(x + i) - mean) * slope + shift);
          });
    };
    if (w) run(std::true_type{});
    else run(std::false_type{});
  }
}

template <class T>
void moments(const T* x, const Pieces& where, double* mean, double* squares) {
  double count = double(where.count) * double(where.n), sum = 0, square = 0;
  for (int64_t p = 0; p < where.count; p++) sum += sum_of(x + p * where.stride, where.n);
  *mean = sum / count;
  auto centre = compute_t<T>(*mean);
  for (int64_t p = 0; p < where.count; p++) square += squares_of(x + p * where.stride, where.n, centre);
  *squares = square;
}

template <class T>
void affine(T* out, const T* x, const Pieces& where, double mean_, double scale_, double shift_) {
  using C = compute_t<T>;
  C mean = C(mean_), scale = C(scale_), shift = C(shift_);
  for (int64_t p = 0; p < where.count; p++, x += where.stride, out += where.stride) {
    sweep<C>(
        where.n, [&](int64_t i) { store(out + i, (load<C>(x + i) - mean) * scale + shift); },
        [&](int64_t i) { out[i] = T((load_one<C>(x + i) - mean) * scale + shift); });
  }
}

template <class T>
void sums(const T* g, const T* x, const Pieces& where, double mean_, double* sum, double* product) {
  using C = compute_t<T>;
  C mean = C(mean_);
  double both[2] = {};
  for (int64_t p = 0; p < where.count; p++, x += where.stride, g += where.stride) {
    sum_up<C>(
        where.n, both,
        [&](int64_t i, Vec<C>* a) {
          Vec<C> u = load<C>(g + i);
          a[0] += u;
          a[1] += u * (load<C>(x + i) - mean);
        },
        [&](int64_t i, C* a) {
          a[0] = load_one<C>(g + i);
          a[1] = a[0] * (load_one<C>(x + i) - mean);
        });
  }
  *sum += both[0];
  *product += both[1];
}

template <class T>
void combine(T* dx, const T* g, const T* x, const Pieces& where, double mean_, double a_, double b_,
             double c_) {
  using C = compute_t<T>;
  C mean = C(mean_), a = C(a_), b = C(b_), c = C(c_);
  for (int64_t p = 0; p < where.count; p++, x += where.stride, g += where.stride, dx += where.stride) {
    sweep<C>(
        where.n, [&](int64_t i) { store(dx + i, load<C>(g + i) * a + (load<C>(x + i) - mean) * b + c); },
        [&](int64_t i) { dx[i] = T(load_one<C>(g + i) * a + (load_one<C>(x + i) - mean) * b + c); });
  }
}

constexpr int64_t TILE = 64;  // columns that are summed side by side

// Adds f(row, column) up over the rows, for the columns begin..end in tiles; f works on vectors and on
// elements.
template <class C, int K, class Vectors, class Elements>
inline void sum_columns(int64_t rows, int64_t begin, int64_t end, double* const* sum, Vectors vectors,
                        Elements elements) {
  constexpr int L = LANES<C>;
  for (int64_t first = begin; first < end; first += TILE) {
    int64_t last = first + TILE < end ? first + TILE : end;
    for (int64_t r = 0; r < rows;) {
      C part[K][TILE] = {};
      int64_t stop = r + CHAIN < rows ? r + CHAIN : rows;
      for (; r < stop; r++) {
        int64_t j = first;
        for (; j + L <= last; j += L) {
          Vec<C> a[K];
          for (int k = 0; k < K; k++) a[k] = load<C>(part[k] + (j - first));
          vectors(r, j, a);
          for (int k = 0; k < K; k++) store(part[k] + (j - first), a[k]);
        }
        for (; j < last; j++) {
          C a[K] = {};
          elements(r, j, a);
          for (int k = 0; k < K; k++) part[k][j - first] += a[k];
        }
      }
      for (int k = 0; k < K; k++) {
        for (int64_t j = first; j < last; j++) sum[k][j] += double(part[k][j - first]);
      }
    }
  }
}

template <class T>
void column_moments(const T* x, int64_t rows, int64_t width, int64_t begin, int64_t end, double* mean,
                    double* squares) {
  using C = compute_t<T>;
  for (int64_t j = begin; j < end; j++) mean[j] = squares[j] = 0;
  double* sum[] = {mean};
  sum_columns<C, 1>(
      rows, begin, end, sum, [&](int64_t r, int64_t j, Vec<C>* a) { a[0] += load<C>(x + r * width + j); },
      [&](int64_t r, int64_t j, C* a) { a[0] = load_one<C>(x + r * width + j); });
  for (int64_t first = begin; first < end; first += TILE) {
    int64_t last = first + TILE < end ? first + TILE : end;
    C centre[TILE];
    for (int64_t j = first; j < last; j++) {
      mean[j] /= double(rows);
      centre[j - first] = C(mean[j]);
    }
    double* square[] = {squares};
    sum_columns<C, 1>(
        rows, first, last, square,
        [&](int64_t r, int64_t j, Vec<C>* a) {
          Vec<C> d = load<C>(x + r * width + j) - load<C>(centre + (j - first));
          a[0] += d * d;
        },
        [&](int64_t r, int64_t j, C* a) {
          C d = load_one<C>(x + r * width + j) - centre[j - first];
          a[0] = d * d;
        });
  }
}

template <class T>
void column_sums(const T* g, const T* x, int64_t rows, int64_t width, int64_t begin, int64_t end,
                 const double* mean, double* sum, double* product) {
  using C = compute_t<T>;
  for (int64_t j = begin; j < end; j++) sum[j] = product[j] = 0;
  for (int64_t first = begin; first < end; first += TILE) {
    int64_t last = first + TILE < end ? first + TILE : end;
    C centre[TILE];
    for (int64_t j = first; j < last; j++) centre[j - first] = C(mean[j]);
    double* both[] = {sum, product};
    sum_columns<C, 2>(
        rows, first, last, both,
        [&](int64_t r, int64_t j, Vec<C>* a) {
          Vec<C> u = load<C>(g + r * width + j);
          a[0] += u;
          a[1] += u * (load<C>(x + r * width + j) - load<C>(centre + (j - first)));
        },
        [&](int64_t r, int64_t j, C* a) {
          a[0] = load_one<C>(g + r * width + j);
          a[1] = a[0] * (load_one<C>(x + r * width + j) - centre[j - first]);
        });
  }
}

template <class T>
void column_affine(T* out, const T* x, int64_t width, int64_t begin, int64_t end, const void* mean_,
                   const void* scale_, const void* shift_) {
  using C = compute_t<T>;
  const C *mean = (const C*)mean_, *scale = (const C*)scale_, *shift = (const C*)shift_;
  for (int64_t r = begin; r < end; r++) {
    const T* from = x + r * width;
    T* to = out + r * width;
    sweep<C>(
        width,
        [&](int64_t j) {
          store(to + j, (load<C>(from + j) - load<C>(mean + j)) * load<C>(scale + j) + load<C>(shift + j));
        },
        [&](int64_t j) { to[j] = T((load_one<C>(from + j) - mean[j]) * scale[j] + shift[j]); });
  }
}

template <class T>
void column_combine(T* dx, const T* g, const T* x, int64_t width, int64_t begin, int64_t end,
                    const void* mean_, const void* a_, const void* b_, const void* c_) {
  using C = compute_t<T>;
  const C *mean = (const C*)mean_, *a = (const C*)a_, *b = (const C*)b_, *c = (const C*)c_;
  for (int64_t r = begin; r < end; r++) {
    const T *from = x + r * width, *u = g + r * width;
    T* to = dx + r * width;
    sweep<C>(
        width,
        [&](int64_t j) {
          store(to + j, load<C>(u + j) * load<C>(a + j) +
                            (load<C>(from + j) - load<C>(mean + j)) * load<C>(b + j) + load<C>(c + j));
        },
        [&](int64_t j) {
          to[j] = T(load_one<C>(u + j) * a[j] + (load_one<C>(from + j) - mean[j]) * b[j] + c[j]);
        });
  }
}

// Calls f with the C++ type; the caller has refused every dtype but these.
template <class F>
inline void floating(DType dtype, F f) {
  switch (dtype) {
    case DType::f16: return f(TypeTag<Half>{});
    case DType::bf16: return f(TypeTag<BFloat16>{});
    case DType::f64: return f(TypeTag<double>{});
    default: return f(TypeTag<float>{});
  }
}
#define RL_WITH_TYPE(dtype, ...)            \
  floating(dtype, [&](auto tag) {           \
    using T = typename decltype(tag)::type; \
    __VA_ARGS__;                            \
  })

}  // namespace

extern const NormLoops norm_loops;
const NormLoops norm_loops = {
    [](const NormRows& task, int64_t begin, int64_t end) {
      RL_WITH_TYPE(task.dtype, rows<T>(task, begin, end));
    },
    [](const NormRowsBackward& task, int64_t begin, int64_t end, void* dw, void* db) {
      RL_WITH_TYPE(task.dtype, rows_backward<T>(task, begin, end, dw, db));
    },
    [](DType dtype, const void* x, const Pieces& where, double* mean, double* squares) {
      RL_WITH_TYPE(dtype, moments((const T*)x, where, mean, squares));
    },
    [](DType dtype, void* out, const void* x, const Pieces& where, double mean, double scale, double shift) {
      RL_WITH_TYPE(dtype, affine((T*)out, (const T*)x, where, mean, scale, shift));
    },
    [](DType dtype, const void* g, const void* x, const Pieces& where, double mean, double* sum,
       double* product) { RL_WITH_TYPE(dtype, sums((const T*)g, (const T*)x, where, mean, sum, product)); },
    [](DType dtype, void* dx, const void* g, const void* x, const Pieces& where, double mean, double a,
       double b,
       double c) { RL_WITH_TYPE(dtype, combine((T*)dx, (const T*)g, (const T*)x, where, mean, a, b, c)); },
    [](DType dtype, const void* x, int64_t rows, int64_t width, int64_t begin, int64_t end, double* mean,
       double* squares) {
      RL_WITH_TYPE(dtype, column_moments((const T*)x, rows, width, begin, end, mean, squares));
    },
    [](DType dtype, const void* g, const void* x, int64_t rows, int64_t width, int64_t begin, int64_t end,
       const double* mean, double* sum, double* product) {
      RL_WITH_TYPE(dtype, column_sums((const T*)g, (const T*)x, rows, width, begin, end, mean, sum, product));
    },
    [](DType dtype, void* out, const void* x, int64_t width, int64_t begin, int64_t end, const void* mean,
       const void* scale, const void* shift) {
      RL_WITH_TYPE(dtype, column_affine((T*)out, (const T*)x, width, begin, end, mean, scale, shift));
    },
    [](DType dtype, void* dx, const void* g, const void* x, int64_t width, int64_t begin, int64_t end,
       const void* mean, const void* a, const void* b, const void* c) {
      RL_WITH_TYPE(dtype, column_combine((T*)dx, (const T*)g, (const T*)x, width, begin, end, mean, a, b, c));
    },
};

}  // namespace RL_ISA
}  // namespace rl
