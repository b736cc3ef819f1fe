// From the points of a grid to the pixels they are made of, and the gradient back to the points. The loops
// are in kernels/simd/grid.cpp, the weighted sums that follow in grid_ops.cpp.
//
// All take grid (N, P, dims), float or double, and the attributes sizes, mode, padding, align_corners.
#include "../kernels/grid.h"
#include "../kernels/workspace.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

constexpr const char* NAME = "grid_sampler";
constexpr int64_t SHARE = 1024;  // points a thread takes at a time

struct Grid {
  GridShape shape;
  TensorRef points;
  int64_t images, count;  // points of each

  Grid(PyObject* grid, PyObject* const* attributes) {
    Tensor* t = tensor_argument(NAME, grid);
    Shape sizes;
    read_sizes(attributes[0], sizes, NAME, "sizes");
    int64_t mode = read_int(attributes[1]), padding = read_int(attributes[2]);
    if (t->dtype != DType::f32 && t->dtype != DType::f64) fail_not_implemented(NAME, t->dtype);
    bool fits = t->ndim == 3 && (sizes.ndim == 2 || sizes.ndim == 3) && t->size(2) == sizes.ndim &&
                mode >= 0 && mode <= (sizes.ndim == 2 ? 2 : 1) && padding >= 0 && padding <= 2;
    int64_t pixels = 1;
    for (int d = 0; fits && d < sizes.ndim; d++) {
      fits = sizes.sizes[d] > 0 && !__builtin_mul_overflow(pixels, sizes.sizes[d], &pixels) &&
             pixels < INT32_MAX;
      if (fits) shape.sizes[d] = sizes.sizes[d];
    }
    if (!fits) fail(PyExc_RuntimeError, "grid_sampler(): the grid does not fit the image");
    shape.dims = sizes.ndim;
    shape.mode = int(mode), shape.padding = int(padding);
    shape.align_corners = bool_argument(NAME, "align_corners", attributes[3]);
    points = contiguous(t);
    images = t->size(0), count = t->size(1);
  }
  // f(image, first point, count) for all points.
  template <class F>
  void each(const F& f) const {
    int64_t shares = (count + SHARE - 1) / SHARE;
    MaybeNoGil released(points->numel * shape.terms());
    divide(double(points->numel) * shape.terms(), images * shares, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int64_t first = i % shares * SHARE;
        f(i / shares, first, std::min(SHARE, count - first));
      }
    });
  }
  template <class F>
  void visit(F&& f) const {
    if (points->dtype == DType::f32) f(TypeTag<float>{});
    else f(TypeTag<double>{});
  }
  template <class T>
  const T* at(int64_t image, int64_t first) const {
    return points->data_as<T>() + (image * count + first) * shape.dims;
  }
};

// grid_terms(grid; sizes, mode, padding, align_corners) -> weights, index
PyObject* grid_terms_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Grid g(args[0], args + 1);
  int64_t sizes[] = {g.images, g.shape.terms(), g.count};
  TensorRef weights = new_tensor(sizes, g.points->dtype, g.points->device());
  TensorRef index = new_tensor(sizes, DType::i64, g.points->device());
  if (!g.points->is_meta())
    g.visit([&](auto tag) {
      using T = typename decltype(tag)::type;
      g.each([&](int64_t image, int64_t first, int64_t n) {
        int64_t to = image * g.shape.terms() * g.count + first;
        grid_loops<T>().terms(g.shape, g.at<T>(image, first), n, g.count, weights->data_as<T>() + to,
                              index->data_as<int64_t>() + to);
      });
    });
  return checked(PyTuple_Pack(2, weights->object(), index->object())).release();
}

// grid_gradient(g, grid; sizes, mode, padding, align_corners): g (N, terms, P) to the points
PyObject* grid_gradient_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Grid g(args[1], args + 2);
  Tensor* up = tensor_argument(NAME, args[0]);
  if (up->dtype != g.points->dtype || up->ndim != 3 || up->size(0) != g.images ||
      up->size(1) != g.shape.terms() || up->size(2) != g.count || up->is_meta() != g.points->is_meta())
    fail(PyExc_RuntimeError, "grid_sampler(): operands do not fit");
  TensorRef from = contiguous(up), result = new_tensor(g.points->sizes(), up->dtype, up->device());
  if (!up->is_meta())
    g.visit([&](auto tag) {
      using T = typename decltype(tag)::type;
      g.each([&](int64_t image, int64_t first, int64_t n) {
        grid_loops<T>().gradient(g.shape, g.at<T>(image, first), n, g.count,
                                 from->data_as<T>() + image * g.shape.terms() * g.count + first,
                                 result->data_as<T>() + (image * g.count + first) * g.shape.dims);
      });
    });
  return result.release_object();
}

// grid_slopes(grid; sizes, mode, padding, align_corners): pixels that a point moves as its coordinates grow
PyObject* grid_slopes_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Grid g(args[0], args + 1);
  TensorRef result = new_tensor(g.points->sizes(), g.points->dtype, g.points->device());
  if (!g.points->is_meta())
    g.visit([&](auto tag) {
      using T = typename decltype(tag)::type;
      g.each([&](int64_t image, int64_t first, int64_t n) {
        grid_loops<T>().slopes(g.shape, g.at<T>(image, first), n,
                               result->data_as<T>() + (image * g.count + first) * g.shape.dims);
      });
    });
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("grid_terms(grid; sizes, mode, padding, align_corners) -> weights, index", grid_terms_forward);
  define("grid_gradient(g, grid; sizes, mode, padding, align_corners)", grid_gradient_forward);
  define("grid_slopes(grid; sizes, mode, padding, align_corners)", grid_slopes_forward);
});

}  // namespace
}  // namespace rl
