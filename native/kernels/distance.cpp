// The p-norm distances of cdist. `with_norm` chooses a norm once, so that the inner loops know it.
//
// A norm is what one component adds, how the sum becomes a distance, and what a component gets of the
// gradient. A component that is equal in both rows gets none, as torch has it.
#include "distance.h"

#include <cmath>

#include "../tensor/parallel.h"

namespace rl {
namespace {

constexpr int64_t WORK_PER_THREAD = 32768;  // components
constexpr int LANES = 8;                    // partial sums, which the compiler keeps in vectors

template <class T>
T sign(T x) {
  return T((x > 0) - (x < 0));
}

template <class T>
struct Count {
  static T add(T sum, T t, T) { return sum + (t == t ? T(t != 0) : t); }
  static T finish(T sum, T) { return sum; }
  static T slope(T, T, T, T) { return 0; }
};
template <class T>
struct Manhattan {
  static T add(T sum, T t, T) { return sum + std::fabs(t); }
  static T finish(T sum, T) { return sum; }
  static T slope(T t, T g, T, T) { return g * sign(t); }
};
template <class T>
struct Euclid {
  static T add(T sum, T t, T) { return sum + t * t; }
  static T finish(T sum, T) { return std::sqrt(sum); }
  static T slope(T t, T g, T d, T) { return d == 0 ? T(0) : g * t / d; }
};
template <class T>
struct Largest {
  static T add(T sum, T t, T) { return std::fabs(t) > sum || t != t ? std::fabs(t) : sum; }
  static T finish(T sum, T) { return sum; }
  static T slope(T t, T g, T d, T) { return std::fabs(t) == d ? g * sign(t) : T(0); }
};
template <class T>
struct Power {
  static T add(T sum, T t, T p) { return sum + std::pow(std::fabs(t), p); }
  static T finish(T sum, T p) { return std::pow(sum, 1 / p); }
  static T slope(T t, T g, T d, T p) {
    return t == 0 || d == 0 ? T(0) : sign(t) * std::pow(std::fabs(t) / d, p - 1) * g;
  }
};

template <class T, template <class> class Norm>
T distance(const T* a, const T* b, int64_t n, T p) {
  T sums[LANES] = {};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    for (int k = 0; k < LANES; k++) sums[k] = Norm<T>::add(sums[k], a[i + k] - b[i + k], p);
  }
  for (; i < n; i++) sums[i % LANES] = Norm<T>::add(sums[i % LANES], a[i] - b[i], p);
  T total = 0;
  if constexpr (std::is_same_v<Norm<T>, Largest<T>>) {
    for (T sum : sums) total = Norm<T>::add(total, sum, p);
  } else {
    for (T sum : sums) total += sum;
  }
  return Norm<T>::finish(total, p);
}

template <class T, template <class> class Norm>
void forward(const Distances& s, const T* a, const T* b, T* out) {
  int64_t work = s.others * s.length + 1;
  parallel_for(s.batches * s.rows, 1 + WORK_PER_THREAD / work, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T* others = b + row / s.rows * s.others * s.length;
      for (int64_t j = 0; j < s.others; j++)
        out[row * s.others + j] =
            distance<T, Norm>(a + row * s.length, others + j * s.length, s.length, T(s.p));
    }
  });
}

template <class T, template <class> class Norm>
void backward(const Distances& s, const T* g, const T* a, const T* b, const T* d, T* grad) {
  int64_t work = s.others * s.length + 1;
  parallel_for(s.batches * s.rows, 1 + WORK_PER_THREAD / work, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const T *mine = a + row * s.length, *others = b + row / s.rows * s.others * s.length;
      T* to = grad + row * s.length;
      for (int64_t i = 0; i < s.length; i++) to[i] = 0;
      for (int64_t j = 0; j < s.others; j++) {
        T gradient = g[row * s.others + j], far = d[row * s.others + j];
        const T* other = others + j * s.length;
        for (int64_t i = 0; i < s.length; i++)
          to[i] += Norm<T>::slope(mine[i] - other[i], gradient, far, T(s.p));
      }
    }
  });
}

template <class T, class F>
void with_norm(double p, const F& run) {
  if (p == 0) run.template operator()<T, Count>();
  else if (p == 1) run.template operator()<T, Manhattan>();
  else if (p == 2) run.template operator()<T, Euclid>();
  else if (std::isinf(p)) run.template operator()<T, Largest>();
  else run.template operator()<T, Power>();
}

template <class F>
void with_dtype_and_norm(const Distances& shape, const F& run) {
  if (shape.dtype == DType::f32) with_norm<float>(shape.p, run);
  else with_norm<double>(shape.p, run);
}

}  // namespace

void all_distances(const Distances& shape, const void* a, const void* b, void* distances) {
  with_dtype_and_norm(shape, [&]<class T, template <class> class Norm>() {
    forward<T, Norm>(shape, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(distances));
  });
}

void distances_backward(const Distances& shape, const void* g, const void* a, const void* b,
                        const void* distances, void* grad) {
  with_dtype_and_norm(shape, [&]<class T, template <class> class Norm>() {
    backward<T, Norm>(shape, static_cast<const T*>(g), static_cast<const T*>(a), static_cast<const T*>(b),
                      static_cast<const T*>(distances), static_cast<T*>(grad));
  });
}

}  // namespace rl
