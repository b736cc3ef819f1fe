// The p-norm distances of cdist and pdist, for one instruction set. `with_norm` chooses a norm once, so that
// the inner loops know it.
//
// A norm is what one component adds, how the sum becomes a distance, and what a component gets of the
// gradient. A component that is equal in both rows gets none, as torch has it. Rows are filled up with zeros
// to whole vectors first (`Padded`): such components are equal.
#include "../distance.h"

#include <memory>

#include "../../tensor/parallel.h"
#include "arithmetic.h"
#include "libm.h"

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr int64_t WORK_PER_THREAD = 32768;  // components

template <class T>
using V = typename Lane<T>::type;

// What a pair of rows has in common: its distance and the gradient of that.
template <class X>
struct Pair {
  X g, d, p;
};

template <class X>
inline X signed_as(X g, X t) {
  X zero{};
  return g * (t > 0 ? zero + 1 : t < 0 ? zero - 1 : t - t);  // NaN stays
}

template <class X>
struct Count {
  static X add(X sum, X t, X) { return sum + (t == 0 ? X{} : t == t ? X{} + 1 : t); }
  static X merge(X a, X b) { return a + b; }
  static X finish(X sum, X) { return sum; }
  static X slope(X, const Pair<X>&) { return X{}; }
};
template <class X>
struct Manhattan {
  static X add(X sum, X t, X) { return sum + magnitude(t); }
  static X merge(X a, X b) { return a + b; }
  static X finish(X sum, X) { return sum; }
  static X slope(X t, const Pair<X>& pair) { return signed_as(pair.g, t); }
};
template <class X>
struct Euclid {
  static X add(X sum, X t, X) { return sum + t * t; }
  static X merge(X a, X b) { return a + b; }
  static X finish(X sum, X) { return sqrt(sum); }
  static X slope(X t, const Pair<X>& pair) { return pair.d == 0 ? X{} : pair.g * t / pair.d; }
};
template <class X>
struct Largest {
  static X add(X most, X t, X) { return merge(most, magnitude(t)); }
  // The bits of magnitudes are ordered as they are, and those of NaN come last.
  static X merge(X a, X b) { return from_bits(bits(b) > bits(a) ? bits(b) : bits(a)); }
  static X finish(X most, X) { return most; }
  static X slope(X t, const Pair<X>& pair) {
    X lacks = pair.d - magnitude(t);  // NaN of two infinities, too
    return lacks == 0 ? signed_as(pair.g, t) : lacks == lacks ? X{} : lacks;
  }
};
// Not inlined: it is long, and called in six places.
template <class X>
[[gnu::noinline]] X power(X x, X p) {
  if constexpr (std::is_same_v<X, f64v>) return pow_of_parts(x, p);
  else return pow(x, p);
}
template <class X>
struct Power {
  static X add(X sum, X t, X p) {  // zeros, which fill the rows up, would be an exception to a power
    return sum + (t == 0 ? X{} : power(t == 0 ? X{} + 1 : magnitude(t), p));
  }
  static X merge(X a, X b) { return a + b; }
  static X finish(X sum, X p) { return power(sum, 1 / p); }
  static X slope(X t, const Pair<X>& pair) {
    X size = signed_as(power(magnitude(t) / pair.d, pair.p - 1), t) * pair.g;
    return t == 0 || pair.d == 0 ? X{} : size;
  }
};

// Rows that fill whole vectors, copied if they do not.
template <class T>
struct Padded {
  int64_t length;
  const T* data;
  std::unique_ptr<T[]> copy;

  Padded(const T* from, int64_t rows, int64_t given) : data(from) {
    length = (given + lanes_v<T> - 1) / lanes_v<T> * lanes_v<T>;
    if (length == given) return;
    copy.reset(new T[size_t(rows * length)]());
    for (int64_t r = 0; r < rows; r++)
      std::memcpy(&copy[size_t(r * length)], from + r * given, size_t(given) * sizeof(T));
    data = copy.get();
  }
  const T* row(int64_t r) const { return data + r * length; }
};

// The lanes of each of `count` vectors merged; the result of vector k is in lane k. Two vectors become one:
// lanes that are W apart in the first, and in the second.
template <class N, int W, int count, class X, int... I>
inline X folded(const X* v, std::integer_sequence<int, I...> lanes) {
  constexpr int L = sizeof...(I), half = (count + 1) / 2;
  if constexpr (W == L) {
    return v[0];
  } else {
    X merged[half];
    for (int k = 0; k < half; k++) {
      X a = v[count > 1 ? 2 * k : 0], b = v[count > 1 ? 2 * k + 1 : 0];
      merged[k] =
          N::merge(shuffled<((I & W ? L : 0) + I)...>(a, b), shuffled<((I & W ? L : 0) + (I ^ W))...>(a, b));
    }
    return folded<N, 2 * W, half>(merged, lanes);
  }
}

// From one row to K that follow one another: K sums side by side do not wait for each other.
template <class T, template <class> class Norm, int K>
inline void distances_to(const T* a, const T* b, int64_t length, V<T> p, T* out) {
  using N = Norm<V<T>>;
  V<T> sums[K] = {};
  for (int64_t i = 0; i < length; i += lanes_v<T>) {
    V<T> mine = load(a + i);
    for (int k = 0; k < K; k++) sums[k] = N::add(sums[k], mine - load(b + k * length + i), p);
  }
  T totals[lanes_v<T>];
  store(totals, N::finish(folded<N, 1, K>(sums, std::make_integer_sequence<int, lanes_v<T>>{}), p));
  std::memcpy(out, totals, K * sizeof(T));
}

template <class T, template <class> class Norm>
void row_distances(const T* a, const T* others, int64_t count, int64_t length, V<T> p, T* out) {
  constexpr int K = 4 < lanes_v<T> ? 4 : lanes_v<T>;
  int64_t j = 0;
  for (; j + K <= count; j += K) distances_to<T, Norm, K>(a, others + j * length, length, p, out + j);
  for (; j < count; j++) distances_to<T, Norm, 1>(a, others + j * length, length, p, out + j);
}

template <class T, template <class> class Norm>
void all(const Distances& s, const T* a, const T* b, T* out) {
  Padded<T> rows(a, s.batches * s.rows, s.length), others(b, s.batches * s.others, s.length);
  V<T> p = splat<V<T>>(T(s.p));
  int64_t work = s.others * s.length + 1;
  parallel_for(s.batches * s.rows, 1 + WORK_PER_THREAD / work, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++)
      row_distances<T, Norm>(rows.row(r), others.row(r / s.rows * s.others), s.others, rows.length, p,
                             out + r * s.others);
  });
}

template <class T>
void no_slope(T* grad, int64_t n) {
  for (int64_t i = 0; i < n; i++) grad[i] = 0;
}

template <class T, template <class> class Norm>
void all_backward(const Distances& s, const T* g, const T* a, const T* b, const T* d, T* grad) {
  using X = V<T>;
  if (s.p == 0) return no_slope(grad, s.batches * s.rows * s.length);
  Padded<T> rows(a, s.batches * s.rows, s.length), others(b, s.batches * s.others, s.length);
  X p = splat<X>(T(s.p));
  int64_t work = s.others * s.length + 1;
  parallel_for(s.batches * s.rows, 1 + WORK_PER_THREAD / work, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const T* other = others.row(r / s.rows * s.others);
      for (int64_t i = 0; i < s.length; i += lanes_v<T>) {
        X mine = load(rows.row(r) + i), sum{};
        for (int64_t j = 0; j < s.others; j++) {
          Pair<X> pair{splat<X>(g[r * s.others + j]), splat<X>(d[r * s.others + j]), p};
          sum += Norm<X>::slope(mine - load(other + j * others.length + i), pair);
        }
        int64_t rest = s.length - i < lanes_v<T> ? s.length - i : lanes_v<T>;
        std::memcpy(grad + r * s.length + i, &sum, size_t(rest) * sizeof(T));
      }
    }
  });
}

inline int64_t first_pair(int64_t row, int64_t rows) { return row * (2 * rows - row - 1) / 2; }

// A long and a short row of the triangle make a task, so that tasks are alike.
template <class T, template <class> class Norm>
void pairs(const Distances& s, const T* a, T* out) {
  Padded<T> rows(a, s.rows, s.length);
  V<T> p = splat<V<T>>(T(s.p));
  auto run = [&](int64_t i) {
    row_distances<T, Norm>(rows.row(i), rows.row(i + 1), s.rows - 1 - i, rows.length, p,
                           out + first_pair(i, s.rows));
  };
  parallel_for((s.rows + 1) / 2, 1 + WORK_PER_THREAD / (s.rows * s.length + 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; i++) {
                   run(i);
                   if (s.rows - 1 - i != i) run(s.rows - 1 - i);
                 }
               });
}

// Threads have columns of their own: a pair adds to the gradients of both of its rows.
template <class T, template <class> class Norm>
void pairs_backward(const Distances& s, const T* g, const T* a, const T* d, T* grad) {
  using X = V<T>;
  if (s.p == 0) return no_slope(grad, s.rows * s.length);
  Padded<T> rows(a, s.rows, s.length);
  std::unique_ptr<T[]> sums(new T[size_t(s.rows * rows.length)]());
  X p = splat<X>(T(s.p));
  auto run = [&]<int K>(std::integral_constant<int, K>, int64_t column) {
    for (int64_t i = 0; i < s.rows; i++) {
      X mine[K], sum[K];
      T* to = &sums[size_t(i * rows.length + column)];
      for (int k = 0; k < K; k++) {
        mine[k] = load(rows.row(i) + column + k * lanes_v<T>);
        sum[k] = load(to + k * lanes_v<T>);
      }
      const T *gradient = g + first_pair(i, s.rows), *distance = d + first_pair(i, s.rows);
      for (int64_t j = i + 1; j < s.rows; j++) {
        Pair<X> pair{splat<X>(*gradient++), splat<X>(*distance++), p};
        const T* other = rows.row(j) + column;
        T* back = &sums[size_t(j * rows.length + column)];
        for (int k = 0; k < K; k++) {
          X slope = Norm<X>::slope(mine[k] - load(other + k * lanes_v<T>), pair);
          sum[k] += slope;
          store(back + k * lanes_v<T>, load(back + k * lanes_v<T>) - slope);
        }
      }
      for (int k = 0; k < K; k++) store(to + k * lanes_v<T>, sum[k]);
    }
  };
  constexpr int64_t UNIT = 16;  // parallel_for cuts at multiples of it
  int64_t vectors = rows.length / lanes_v<T>, work = s.rows * s.rows * lanes_v<T> / 2 + 1;
  parallel_for(vectors * UNIT, UNIT * (1 + WORK_PER_THREAD / work), [&](int64_t begin, int64_t end) {
    int64_t v = begin / UNIT;
    for (; v + 2 <= end / UNIT; v += 2) run(std::integral_constant<int, 2>{}, v * lanes_v<T>);
    for (; v < end / UNIT; v++) run(std::integral_constant<int, 1>{}, v * lanes_v<T>);
  });
  for (int64_t r = 0; r < s.rows; r++)
    std::memcpy(grad + r * s.length, &sums[size_t(r * rows.length)], size_t(s.length) * sizeof(T));
}

template <class T, class F>
void with_norm(double p, const F& run) {
  if (p == 0) run.template operator()<T, Count>();
  else if (p == 1) run.template operator()<T, Manhattan>();
  else if (p == 2) run.template operator()<T, Euclid>();
  else if (p == INFINITY) run.template operator()<T, Largest>();
  else run.template operator()<T, Power>();
}

template <class F>
void with_dtype_and_norm(const Distances& shape, const F& run) {
  if (shape.dtype == DType::f32) with_norm<float>(shape.p, run);
  else with_norm<double>(shape.p, run);
}

}  // namespace

const DistanceLoops distance_loops = {
    [](const Distances& shape, const void* a, const void* b, void* distances) {
      with_dtype_and_norm(shape, [&]<class T, template <class> class Norm>() {
        all<T, Norm>(shape, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(distances));
      });
    },
    [](const Distances& shape, const void* g, const void* a, const void* b, const void* distances,
       void* grad) {
      with_dtype_and_norm(shape, [&]<class T, template <class> class Norm>() {
        all_backward<T, Norm>(shape, static_cast<const T*>(g), static_cast<const T*>(a),
                              static_cast<const T*>(b), static_cast<const T*>(distances),
                              static_cast<T*>(grad));
      });
    },
    [](const Distances& shape, const void* a, void* distances) {
      with_dtype_and_norm(shape, [&]<class T, template <class> class Norm>() {
        pairs<T, Norm>(shape, static_cast<const T*>(a), static_cast<T*>(distances));
      });
    },
    [](const Distances& shape, const void* g, const void* a, const void* distances, void* grad) {
      with_dtype_and_norm(shape, [&]<class T, template <class> class Norm>() {
        pairs_backward<T, Norm>(shape, static_cast<const T*>(g), static_cast<const T*>(a),
                                static_cast<const T*>(distances), static_cast<T*>(grad));
      });
    },
};

}  // namespace RL_ISA
}  // namespace rl
