// Bernoulli, geometric, Poisson, binomial and multinomial samples.
//
// See Note [draws] in random_uniform.cpp for how many draws a sample takes.
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "random_order.h"

namespace rl {

void random_bernoulli(Generator& g, const Span& out, double p) {
  visit(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_from_draws<T, 2>(g, out, [=](const uint32_t* draws) {
      uint64_t bits = (uint64_t(draws[0]) << 32 | draws[1]) & ((1ull << 53) - 1);
      return convert<T>(double(bits) * 0x1p-53 < p);
    });
  });
}

namespace {
// Calls f with a tag of the floating type of `dtype`.
template <class F>
void visit_floating(DType dtype, F f) {
  switch (dtype) {
    case DType::f16: return f(TypeTag<Half>{});
    case DType::bf16: return f(TypeTag<BFloat16>{});
    case DType::f64: return f(TypeTag<double>{});
    default: return f(TypeTag<float>{});
  }
}
}  // namespace

void random_bernoulli(Generator& g, const Span& out, const Span& p) {
  visit_floating(p.dtype, [&](auto p_tag) {
    using P = typename decltype(p_tag)::type;
    visit(out.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for_each_run<2>({&out, &p}, [&](const Run<2>& run) {
        T* data = reinterpret_cast<T*>(run.data[0]);
        const P* prob = reinterpret_cast<const P*>(run.data[1]);
        for (int64_t i = 0; i < run.size; i++) {
          compute_t<P> uniform;
          if constexpr (std::is_same_v<P, double>) uniform = g.uniform();
          else uniform = float(g.random() & 0xffffff) * 0x1p-24f;
          data[i * run.stride[0]] = convert<T>(uniform < compute_t<P>(prob[i * run.stride[1]]));
        }
      });
    });
  });
}

bool are_probabilities(const Span& p) {
  bool valid = true;
  visit_floating(p.dtype, [&](auto tag) {
    using P = typename decltype(tag)::type;
    for_each_run<1>({&p}, [&](const Run<1>& run) {
      const P* prob = reinterpret_cast<const P*>(run.data[0]);
      for (int64_t i = 0; i < run.size; i++) {
        compute_t<P> x = prob[i * run.stride[0]];
        valid &= x >= 0 && x <= 1;
      }
    });
  });
  return valid;
}

void random_geometric(Generator& g, const Span& out, double p) {
  fill_one_by_one(out, [&, scale = std::log1p(-p)] { return std::ceil(std::log(g.uniform()) / scale); });
}

namespace {

// W. Hormann, "The transformed rejection method for generating Poisson random variables" (1993), algorithm
// PTRS; below a rate of 10, the number of uniforms whose product stays above exp(-rate).
int64_t poisson_sample(Generator& g, double rate) {
  if (rate == 0) return 0;
  if (rate < 10) {
    double limit = std::exp(-rate), product = 1;
    int64_t count = 0;
    while (true) {
      product *= g.uniform();
      if (product <= limit) return count;
      count++;
    }
  }
  double root = std::sqrt(rate), log_rate = std::log(rate);
  double b = 0.931 + 2.53 * root;
  double a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  double v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    double u = g.uniform() - 0.5, v = g.uniform();
    double us = 0.5 - std::fabs(u);
    int64_t k = convert<int64_t>(std::floor((2 * a / us + b) * u + rate + 0.43));
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + double(k) * log_rate - std::lgamma(double(k) + 1)) {
      return k;
    }
  }
}

// log(k!) minus Stirling's approximation of it.
double stirling_tail(double k) {
  static const double table[] = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return table[int(k)];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// W. Hormann, "The generation of binomial random variates" (1993), algorithm BTRS; needs n * p >= 10, p <=
// 1/2.
double binomial_rejection(Generator& g, double n, double p) {
  double spread = std::sqrt(n * p * (1 - p));
  double b = 1.15 + 2.53 * spread;
  double a = -0.0873 + 0.0248 * b + 0.01 * p;
  double c = n * p + 0.5;
  double v_r = 0.92 - 4.2 / b;
  double odds = p / (1 - p);
  double alpha = (2.83 + 5.1 / b) * spread;
  double mode = std::floor((n + 1) * p);
  while (true) {
    double u = g.uniform() - 0.5, v = g.uniform();
    double us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > n) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (n - mode + 1))) +
                   (n + 1) * std::log((n - mode + 1) / (n - k + 1)) +
                   (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_tail(mode) +
                   stirling_tail(n - mode) - stirling_tail(k) - stirling_tail(n - k);
    if (v <= bound) return k;
  }
}

// How many geometric waiting times fit into n trials.
double binomial_waiting(Generator& g, double n, double p) {
  double sum = 0, count = 0, scale = std::log1p(-p);
  while (true) {
    sum += std::ceil(std::log(g.uniform()) / scale);
    if (sum > n) return count;
    count++;
  }
}

double binomial_sample(Generator& g, double n, double p) {
  if (n <= 0 || p <= 0) return 0;
  if (std::isnan(n)) return n;  // torch never returns from this
  if (p >= 1) return n;
  if (p > 0.5) {
    double q = 1 - p;
    return n - (n * q >= 10 ? binomial_rejection(g, n, q) : binomial_waiting(g, n, q));
  }
  if (p <= 0.5) return n * p >= 10 ? binomial_rejection(g, n, p) : binomial_waiting(g, n, p);
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void random_poisson(Generator& g, const Span& out, const Span& rate) {
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_run<2>({&out, &rate}, [&](const Run<2>& run) {
      T* data = reinterpret_cast<T*>(run.data[0]);
      const T* rates = reinterpret_cast<const T*>(run.data[1]);
      for (int64_t i = 0; i < run.size; i++) {
        data[i * run.stride[0]] =
            convert<T>(poisson_sample(g, double(compute_t<T>(rates[i * run.stride[1]]))));
      }
    });
  });
}

void random_binomial(Generator& g, const Span& out, const Span& count, const Span& prob) {
  visit_floating(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_run<3>({&out, &count, &prob}, [&](const Run<3>& run) {
      T* data = reinterpret_cast<T*>(run.data[0]);
      const T* counts = reinterpret_cast<const T*>(run.data[1]);
      const T* probs = reinterpret_cast<const T*>(run.data[2]);
      for (int64_t i = 0; i < run.size; i++) {
        double n = compute_t<T>(counts[i * run.stride[1]]), p = compute_t<T>(probs[i * run.stride[2]]);
        data[i * run.stride[0]] = convert<T>(binomial_sample(g, n, p));
      }
    });
  });
}

const char* random_multinomial(Generator& g, const Span& out, const Span& weights) {
  int64_t rows = weights.sizes[0], categories = weights.sizes[1], samples = out.sizes[1];
  const char* error = nullptr;
  visit_floating(weights.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(weights.data);
    std::vector<compute_t<T>> cumulative(rows * categories);
    for (int64_t r = 0; r < rows; r++) {
      compute_t<T> sum = 0, *row = cumulative.data() + r * categories;
      for (int64_t c = 0; c < categories; c++) {
        compute_t<T> weight = from[r * weights.strides[0] + c * weights.strides[1]];
        if (!(weight >= 0)) {  // or NaN
          error = "invalid multinomial distribution (encountering probability entry < 0)";
        } else if (!std::isfinite(weight)) {
          error = "invalid multinomial distribution (encountering probability entry = infinity or NaN)";
        }
        if (error) return;
        sum += weight;
        row[c] = sum;
      }
      if (sum == 0) error = "invalid multinomial distribution (sum of probabilities <= 0)";
      if (error) return;
      for (int64_t c = 0; c < categories; c++) row[c] /= sum;
    }
    int64_t* data = static_cast<int64_t*>(out.data);
    for (int64_t r = 0; r < rows; r++) {
      const compute_t<T>* row = cumulative.data() + r * categories;
      for (int64_t s = 0; s < samples; s++) {
        // The last bound is 1 up to rounding, so it need not be looked at.
        int64_t c = std::lower_bound(row, row + categories - 1, g.uniform()) - row;
        data[r * out.strides[0] + s * out.strides[1]] = c;
      }
    }
  });
  return error;
}

namespace {

// The columns of the k largest of `n` values, largest first. Equal values (weights of zero) come in the order
// that these algorithms of the standard library leave them in.
template <class C>
void largest(std::vector<std::pair<C, int64_t>>& values, int64_t k) {
  auto greater = [](const auto& a, const auto& b) {
    return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first;
  };
  if (k == 1) {
    std::iter_swap(values.begin(), std::min_element(values.begin(), values.end(), greater));
  } else if (k * 64 <= int64_t(values.size())) {
    std::partial_sort(values.begin(), values.begin() + k, values.end(), greater);
  } else {
    std::nth_element(values.begin(), values.begin() + k - 1, values.end(), greater);
    std::sort(values.begin(), values.begin() + k - 1, greater);
  }
}

}  // namespace

const char* random_multinomial_distinct(Generator& g, const Span& out, const Span& weights,
                                        const Span& scratch) {
  int64_t rows = weights.sizes[0], categories = weights.sizes[1], samples = out.sizes[1];
  const char* error = nullptr;
  visit_floating(weights.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    auto weight = [&](int64_t r, int64_t c) -> C {
      return static_cast<const T*>(weights.data)[r * weights.strides[0] + c * weights.strides[1]];
    };
    bool positive = true;
    for (int64_t r = 0; r < rows; r++) {
      C sum = 0;
      for (int64_t c = 0; c < categories; c++) {
        C w = weight(r, c);
        if (!(w >= 0 && std::isfinite(w))) {
          error = "probability tensor contains either `inf`, `nan` or element < 0";
          return;
        }
        sum += w;
      }
      positive &= sum > 0;
    }
    if (!positive) {
      error = "invalid multinomial distribution (sum of probabilities <= 0)";
      return;
    }
    random_exponential(g, scratch, 1);
    std::vector<std::pair<C, int64_t>> row(categories);
    for (int64_t r = 0; r < rows; r++) {
      const T* waiting = static_cast<const T*>(scratch.data) + r * scratch.strides[0];
      for (int64_t c = 0; c < categories; c++) {
        row[c] = {C(T(weight(r, c) / C(waiting[c * scratch.strides[1]]))), c};
      }
      largest(row, samples);
      for (int64_t s = 0; s < samples; s++) {
        static_cast<int64_t*>(out.data)[r * out.strides[0] + s * out.strides[1]] = row[s].second;
      }
    }
  });
  return error;
}

}  // namespace rl
