// Weighted sums of picked elements, which sampling at the points of a grid comes down to.
//
// With x (N, C, S), weights and index (N, J, P): out[n, c, p] = sum over j of weights[n, j, p] * x[n, c,
// index[n, j, p]]; a negative index picks nothing. `pick_weighted` is that; its derivatives are
// `spread_weighted` (back to x) and `pick_products` (the weights'), and theirs the other two: three faces of
// one trilinear form.
#include <algorithm>

#include "../kernels/workspace.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

struct Picks {
  int64_t batch, channels, size, terms, points;
  TensorRef index;
  const int64_t* at(int64_t n) const { return index->data_as<int64_t>() + n * terms * points; }
};

// Checks that a (N, C, S or P) and index (N, J, P) belong together and that no index leaves [.., size).
Picks read_picks(Tensor* a, Tensor* index, int64_t size) {
  bool fits = a->ndim == 3 && index->ndim == 3 && a->size(0) == index->size(0) && index->dtype == DType::i64;
  if (!fits) fail(PyExc_RuntimeError, "grid_sampler(): index does not fit");
  Picks picks{a->size(0), a->size(1), size, index->size(1), index->size(2), contiguous(index)};
  const int64_t* at = picks.index->is_meta() ? nullptr : picks.index->data_as<int64_t>();
  for (int64_t i = 0; at && i < index->numel; i++)
    if (at[i] >= size) fail(PyExc_RuntimeError, "grid_sampler(): index out of range");
  return picks;
}

void check_sizes(const Tensor* t, DType dtype, std::initializer_list<int64_t> sizes) {
  if (t->dtype != dtype || t->ndim != int(sizes.size()) ||
      !std::equal(sizes.begin(), sizes.end(), t->geometry))
    fail(PyExc_RuntimeError, "grid_sampler(): operands do not fit");
}

template <class F>
void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(TypeTag<float>{});
    case DType::f64: return f(TypeTag<double>{});
    case DType::f16: return f(TypeTag<Half>{});
    case DType::bf16: return f(TypeTag<BFloat16>{});
    default: fail_not_implemented("grid_sampler", dtype);
  }
}

// pick_weighted(x, weights, index)
PyObject* pick_weighted_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_argument("grid_sampler", args[0]), *weights = tensor_argument("grid_sampler", args[1]);
  Picks p = read_picks(x, tensor_argument("grid_sampler", args[2]), x->ndim == 3 ? x->size(2) : 0);
  check_sizes(weights, x->dtype, {p.batch, p.terms, p.points});
  int64_t sizes[] = {p.batch, p.channels, p.points};
  TensorRef result = new_tensor(sizes, x->dtype, x->device()), from = contiguous(x), w = contiguous(weights);
  if (x->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(result->numel);
  visit_floating(x->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    divide(double(result->numel) * double(p.terms), p.batch * p.channels, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        int64_t n = plane / p.channels;
        const T *pixels = from->data_as<T>() + plane * p.size,
                *factors = w->data_as<T>() + n * p.terms * p.points;
        const int64_t* at = p.at(n);
        T* to = result->data_as<T>() + plane * p.points;
        for (int64_t i = 0; i < p.points; i++) {
          C sum = 0;
          for (int64_t j = 0; j < p.terms; j++) {
            int64_t k = at[j * p.points + i];
            if (k >= 0) sum += C(factors[j * p.points + i]) * C(pixels[k]);
          }
          to[i] = T(sum);
        }
      }
    });
  });
  return result.release_object();
}

// spread_weighted(grad, weights, index; size): grad (N, C, P) to (N, C, size)
PyObject* spread_weighted_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *g = tensor_argument("grid_sampler", args[0]), *weights = tensor_argument("grid_sampler", args[1]);
  int64_t size = read_int(args[3]);
  Picks p = read_picks(g, tensor_argument("grid_sampler", args[2]), size);
  check_sizes(g, g->dtype, {p.batch, p.channels, p.points});
  check_sizes(weights, g->dtype, {p.batch, p.terms, p.points});
  int64_t sizes[] = {p.batch, p.channels, size};
  TensorRef result = zeros(sizes, g->dtype, g->device()), from = contiguous(g), w = contiguous(weights);
  if (g->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(g->numel);
  visit_floating(g->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    divide(double(g->numel) * double(p.terms), p.batch * p.channels, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        int64_t n = plane / p.channels;
        const T *grads = from->data_as<T>() + plane * p.points,
                *factors = w->data_as<T>() + n * p.terms * p.points;
        const int64_t* at = p.at(n);
        T* to = result->data_as<T>() + plane * p.size;
        for (int64_t j = 0; j < p.terms; j++)
          for (int64_t i = 0; i < p.points; i++) {
            int64_t k = at[j * p.points + i];
            if (k >= 0) to[k] = T(C(to[k]) + C(factors[j * p.points + i]) * C(grads[i]));
          }
      }
    });
  });
  return result.release_object();
}

// pick_products(grad, x, index): the sum over channels of grad times the picked elements, (N, J, P)
PyObject* pick_products_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *g = tensor_argument("grid_sampler", args[0]), *x = tensor_argument("grid_sampler", args[1]);
  Picks p = read_picks(x, tensor_argument("grid_sampler", args[2]), x->ndim == 3 ? x->size(2) : 0);
  check_sizes(g, x->dtype, {p.batch, p.channels, p.points});
  int64_t sizes[] = {p.batch, p.terms, p.points};
  TensorRef result = new_tensor(sizes, x->dtype, x->device()), from = contiguous(x), grads = contiguous(g);
  if (x->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(g->numel);
  visit_floating(x->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Workspaces spaces(num_threads(), p.points * int64_t(sizeof(C)));
    divide(double(g->numel) * double(p.terms), p.batch * p.terms, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      C* sums = lease.as<C>();
      for (int64_t row = begin; row < end; row++) {
        int64_t n = row / p.terms;
        const int64_t* at = p.index->data_as<int64_t>() + row * p.points;
        std::fill_n(sums, p.points, C(0));
        for (int64_t c = 0; c < p.channels; c++) {
          const T *pixels = from->data_as<T>() + (n * p.channels + c) * p.size,
                  *line = grads->data_as<T>() + (n * p.channels + c) * p.points;
          for (int64_t i = 0; i < p.points; i++)
            if (at[i] >= 0) sums[i] += C(line[i]) * C(pixels[at[i]]);
        }
        for (int64_t i = 0; i < p.points; i++) result->data_as<T>()[row * p.points + i] = T(sums[i]);
      }
    });
  });
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("pick_weighted(x, weights, index)", pick_weighted_forward);
  define("spread_weighted(grad, weights, index; size)", spread_weighted_forward);
  define("pick_products(grad, x, index)", pick_products_forward);
});

}  // namespace
}  // namespace rl
