// Weighted sums of picked elements, which sampling at the points of a grid comes down to: for the dtypes that
// grid_sample (grid_terms_ops.cpp) has no kernel for, and where its gradient is differentiated again.
//
// With x (N, C, S), weights and index (N, J, P): out[n, c, p] = sum over j of weights[n, j, p] * x[n, c,
// index[n, j, p]]; a negative index picks nothing. `pick_weighted` is that; its derivatives are
// `spread_weighted` (back to x) and `pick_products` (the weights'), and theirs the other two: three faces of
// one trilinear form.
#include <algorithm>

#include "../kernels/grid.h"
#include "../kernels/workspace.h"
#include "../tensor/iterate.h"
#include "arguments.h"
#include "visit_floating.h"

namespace rl {
namespace {

struct Picks {
  int64_t batch, channels, size, terms, points;
  TensorRef index;
  const int64_t* at(int64_t n) const { return index->data_as<int64_t>() + n * terms * points; }
};

void check_plane(int64_t size) {
  if (size >= INT32_MAX) fail(PyExc_RuntimeError, "grid_sampler(): an image has too many pixels");
}

// Checks that a (N, C, S or P) and index (N, J, P) belong together and that no index leaves [.., size).
Picks read_picks(Tensor* a, Tensor* index, int64_t size) {
  bool fits = a->ndim == 3 && index->ndim == 3 && a->size(0) == index->size(0) && index->dtype == DType::i64;
  if (!fits) fail(PyExc_RuntimeError, "grid_sampler(): index does not fit");
  check_plane(size);
  Picks picks{a->size(0), a->size(1), size, index->size(1), index->size(2), stable(index)};
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

// One image's picks without a question left in them: what picks nothing picks the element after the last,
// which a plane has as its own zero, with weight zero (or NaN). Random points make every question a surprise
// to the processor (8 images of 16 channels, 64 x 64 points: 2.9 -> 1.0 ms).
template <class C>
struct Prepared {
  C *plane, *weights, *sums;
  int32_t* at;
  int64_t image = -1;

  static int64_t bytes(const Picks& p) {
    int64_t count = p.terms * p.points;
    return (p.size + 1 + 2 * count) * int64_t(sizeof(C)) + count * int64_t(sizeof(int32_t));
  }
  Prepared(const Picks& p, const Workspaces::Lease& lease) : plane(lease.as<C>()) {
    int64_t count = p.terms * p.points;
    weights = plane + p.size + 1;
    sums = weights + count;
    at = reinterpret_cast<int32_t*>(sums + count);
  }
  // Of the plane that was filled, into `to`.
  void pick(const Picks& p, C* to) const { grid_loops<C>().pick(to, plane, at, weights, p.terms, p.points); }
  template <class T>
  void prepare(const Picks& p, const T* factors, int64_t n) {
    if (image == n) return;
    image = n;
    const int64_t count = p.terms * p.points, *index = p.at(n);
    for (int64_t i = 0; i < count; i++) at[i] = int32_t(index[i] < 0 ? p.size : index[i]);
    if (!factors) return;
    for (int64_t i = 0; i < count; i++) {
      C factor = C(factors[n * count + i]);
      weights[i] = index[i] < 0 && factor == factor ? C(0) : factor;  // a lost point is NaN, outside as well
    }
  }
};

// A plane in the type it is computed in, and the zero after it.
template <class C, class T>
void fill_plane(C* to, const T* from, int64_t size) {
  for (int64_t i = 0; i < size; i++) to[i] = C(from[i]);
  to[size] = 0;
}

// pick_weighted(x, weights, index)
PyObject* pick_weighted_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *x = tensor_argument("grid_sampler", args[0]), *weights = tensor_argument("grid_sampler", args[1]);
  Picks p = read_picks(x, tensor_argument("grid_sampler", args[2]), x->ndim == 3 ? x->size(2) : 0);
  check_sizes(weights, x->dtype, {p.batch, p.terms, p.points});
  int64_t sizes[] = {p.batch, p.channels, p.points};
  TensorRef result = new_tensor(sizes, x->dtype, x->device()), from = contiguous(x), w = contiguous(weights);
  if (x->is_meta() || result->numel == 0) return result.release_object();
  if (p.terms == 0) return zeros(sizes, x->dtype).release_object();
  MaybeNoGil released(result->numel);
  visit_floating("grid_sampler", x->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Workspaces spaces(num_threads(), Prepared<C>::bytes(p));
    divide(double(result->numel) * double(p.terms), p.batch * p.channels, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      Prepared<C> prepared(p, lease);
      for (int64_t plane = begin; plane < end; plane++) {
        prepared.prepare(p, w->data_as<T>(), plane / p.channels);
        fill_plane(prepared.plane, from->data_as<T>() + plane * p.size, p.size);
        T* to = result->data_as<T>() + plane * p.points;
        C* sums = prepared.sums;
        if constexpr (std::is_same_v<T, C>) sums = to;
        prepared.pick(p, sums);
        if constexpr (!std::is_same_v<T, C>) std::copy_n(sums, p.points, to);
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
  visit_floating("grid_sampler", g->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Workspaces spaces(num_threads(), Prepared<C>::bytes(p));
    divide(double(g->numel) * double(p.terms), p.batch * p.channels, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      Prepared<C> prepared(p, lease);
      for (int64_t plane = begin; plane < end; plane++) {
        prepared.prepare(p, w->data_as<T>(), plane / p.channels);
        const T* grads = from->data_as<T>() + plane * p.points;
        C* to = prepared.plane;
        std::fill_n(to, size + 1, C(0));
        for (int64_t j = 0; j < p.terms; j++) {
          const int32_t* at = prepared.at + j * p.points;
          const C* factors = prepared.weights + j * p.points;
          for (int64_t i = 0; i < p.points; i++) to[at[i]] += factors[i] * C(grads[i]);
        }
        T* out = result->data_as<T>() + plane * size;
        for (int64_t i = 0; i < size; i++) out[i] = T(to[i]);
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
  visit_floating("grid_sampler", x->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    Workspaces spaces(num_threads(), Prepared<C>::bytes(p));
    divide(double(g->numel) * double(p.terms), p.batch, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      Prepared<C> prepared(p, lease);
      for (int64_t n = begin; n < end; n++) {
        prepared.prepare(p, static_cast<const T*>(nullptr), n);
        std::fill_n(prepared.sums, p.terms * p.points, C(0));
        for (int64_t c = 0; c < p.channels; c++) {
          fill_plane(prepared.plane, from->data_as<T>() + (n * p.channels + c) * p.size, p.size);
          const T* line = grads->data_as<T>() + (n * p.channels + c) * p.points;
          const C* up;
          if constexpr (std::is_same_v<T, C>) up = line;
          else up = std::copy_n(line, p.points, prepared.weights) - p.points;
          for (int64_t j = 0; j < p.terms; j++)
            grid_loops<C>().products(prepared.sums + j * p.points, up, prepared.plane,
                                     prepared.at + j * p.points, p.points);
        }
        T* out = result->data_as<T>() + n * p.terms * p.points;
        for (int64_t i = 0; i < p.terms * p.points; i++) out[i] = T(prepared.sums[i]);
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
