// Continuous distributions other than the uniform one. Start at `random_normal`, which has two ways.
//
// See Note [draws] in random_uniform.cpp for how many draws a sample takes.
#include <cmath>

#include "random_bulk.h"
#include "random_order.h"

namespace rl {

namespace {

constexpr double PI = 3.14159265358979323846;

bool is_contiguous(const Span& span) {
  int64_t expected = 1;
  for (int d = span.ndim - 1; d >= 0; d--) {
    if (span.sizes[d] != 1 && span.strides[d] != expected) return false;
    expected *= span.sizes[d];
  }
  return true;
}

// Box-Muller on the pairs (j, j + 8) of 16 uniforms, in place, with the library's functions.
void normal_block(double* data, double mean, double std) {
  for (int j = 0; j < 8; j++) {
    double radius = std::sqrt(-2 * std::log(1 - data[j]));
    double angle = 2 * PI * data[j + 8];
    data[j] = std::fma(radius * std::cos(angle), std, mean);
    data[j + 8] = std::fma(radius * std::sin(angle), std, mean);
  }
}

Span flat(const Span& out, int64_t start, const int64_t* size, const int64_t* stride) {
  return {static_cast<char*>(out.data) + start * dtype_size(out.dtype), out.dtype, 1, size, stride};
}

// float and double: all uniforms are drawn first. If the length is no multiple of 16, the last 16 elements
// are drawn again, which replaces some normals that were made already.
template <class T, class Block>
void normal_in_place(Generator& g, const Span& out, int64_t n, Block block) {
  int64_t stride = 1, sixteen = NORMAL_BLOCK;
  T* data = static_cast<T*>(out.data);
  random_uniform(g, flat(out, 0, &n, &stride), 0, 1);
  block(data, n / NORMAL_BLOCK);
  if (n % NORMAL_BLOCK) {
    random_uniform(g, flat(out, n - NORMAL_BLOCK, &sixteen, &stride), 0, 1);
    block(data + n - NORMAL_BLOCK, 1);
  }
}

// half and bfloat16: 16 at a time in float; the last 16 again if the length is no multiple of 16.
template <class T>
void normal_reduced(Generator& g, T* data, int64_t n, float mean, float std) {
  auto block = [&](T* to) {
    uint32_t draws[NORMAL_BLOCK];
    float samples[NORMAL_BLOCK];
    g.fill(draws, NORMAL_BLOCK);
    random_bulk().uniform_f32(samples, draws, NORMAL_BLOCK, 0, 1);
    random_bulk().normal(samples, 1, mean, std);
    for (int j = 0; j < NORMAL_BLOCK; j++) to[j] = T(samples[j]);
  };
  int64_t done = 0;
  for (; done + NORMAL_BLOCK <= n; done += NORMAL_BLOCK) block(data + done);
  if (done < n) block(data + n - NORMAL_BLOCK);
}

}  // namespace

void random_normal(Generator& g, const Span& out, double mean, double std) {
  int64_t n = out.numel();
  if (n < NORMAL_BLOCK || !is_contiguous(out)) {
    return fill_one_by_one(out, [&] { return std::fma(g.normal(), std, mean); });
  }
  switch (out.dtype) {
    case DType::f64:
      return normal_in_place<double>(g, out, n, [=](double* data, int64_t blocks) {
        for (int64_t b = 0; b < blocks; b++, data += NORMAL_BLOCK) normal_block(data, mean, std);
      });
    case DType::f16: return normal_reduced(g, static_cast<Half*>(out.data), n, float(mean), float(std));
    case DType::bf16: return normal_reduced(g, static_cast<BFloat16*>(out.data), n, float(mean), float(std));
    default:
      return normal_in_place<float>(g, out, n, [=](float* data, int64_t blocks) {
        random_bulk().normal(data, blocks, float(mean), float(std));
      });
  }
}

void random_log_normal(Generator& g, const Span& out, double mean, double std) {
  fill_one_by_one(out, [&] { return std::exp(std::fma(g.normal(), std, mean)); });
}

void random_cauchy(Generator& g, const Span& out, double median, double sigma) {
  fill_one_by_one(out, [&] { return std::fma(sigma, std::tan(PI * (g.uniform() - 0.5)), median); });
}

void random_exponential(Generator& g, const Span& out, double lambd) {
  fill_one_by_one(out, [&, scale = -1 / lambd] { return scale * std::log1p(-g.uniform()); });
}

}  // namespace rl
