// Sampling an image at the points of a grid; and from the points to the pixels they are made of, and the
// gradient back to the points, for when that is differentiated again. The loops are in
// kernels/simd/grid_sample.cpp and grid.cpp, the weighted sums that follow in grid_ops.cpp.
//
// All take a grid (N, P, dims), or (N, ..., dims) beside its image, float or double, and the attributes mode,
// padding, align_corners.
#include "../kernels/grid.h"
#include "../kernels/workspace.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

constexpr const char* NAME = "grid_sampler";
constexpr int64_t SHARE = 1024;  // points a thread takes at a time

[[noreturn]] void fail_to_fit(const char* what) {
  fail(PyExc_RuntimeError, std::string("grid_sampler(): ") + what);
}
Shape sizes_of(PyObject* o) {
  Shape sizes;
  read_sizes(o, sizes, NAME, "sizes");
  return sizes;
}

struct Grid {
  GridShape shape;
  TensorRef points;
  int64_t images, count;  // points of each

  // Of an image of these sizes.
  Grid(PyObject* grid, Sizes sizes, PyObject* const* attributes) {
    Tensor* t = tensor_argument(NAME, grid);
    int64_t mode = read_int(attributes[0]), padding = read_int(attributes[1]);
    if (t->dtype != DType::f32 && t->dtype != DType::f64) fail_not_implemented(NAME, t->dtype);
    const int dims = int(sizes.size());
    bool fits = t->ndim >= 2 && (dims == 2 || dims == 3) && t->size(t->ndim - 1) == dims && mode >= 0 &&
                mode <= (dims == 2 ? 2 : 1) && padding >= 0 && padding <= 2;
    int64_t pixels = 1;
    for (int d = 0; fits && d < dims; d++) {
      fits = sizes[d] > 0 && !__builtin_mul_overflow(pixels, sizes[d], &pixels) && pixels < INT32_MAX;
      if (fits) shape.sizes[d] = sizes[d];
    }
    if (!fits) fail_to_fit("the grid does not fit the image");
    shape.dims = dims;
    shape.mode = int(mode), shape.padding = int(padding);
    shape.align_corners = bool_argument(NAME, "align_corners", attributes[2]);
    points = contiguous(t);
    images = t->size(0), count = images ? t->numel / (images * dims) : 0;
  }
  // With the sizes before the other attributes; all points of an image in one row.
  Grid(PyObject* grid, PyObject* const* attributes) : Grid(grid, sizes_of(attributes[0]), attributes + 1) {
    if (points->ndim != 3) fail_to_fit("the grid does not fit the image");
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

// An image and the points it is sampled at.
struct Sample : Grid {
  TensorRef image;
  int64_t channels;

  Sample(PyObject* x, PyObject* grid, PyObject* const* attributes)
      : Grid(grid, spatial(tensor_argument(NAME, x)), attributes) {
    Tensor* t = tensor_argument(NAME, x);
    if (t->dtype != points->dtype || t->ndim != points->ndim || t->size(0) != images ||
        t->is_meta() != points->is_meta())
      fail_to_fit("operands do not fit");
    image = contiguous(t);
    channels = t->size(1);
  }
  static Sizes spatial(const Tensor* x) {
    if (x->ndim < 4) fail_to_fit("operands do not fit");
    return x->sizes().subspan(2);
  }
  Shape result_sizes() const {
    Shape sizes;
    sizes.assign(points->sizes());
    sizes.sizes[sizes.ndim - 1] = 0;
    std::rotate(sizes.sizes + 1, sizes.sizes + sizes.ndim - 1, sizes.sizes + sizes.ndim);
    sizes.sizes[1] = channels;
    return sizes;
  }
  double work() const { return double(images * count) * double(channels + 1) * shape.terms(); }
};

// grid_sample(x, grid; mode, padding, align_corners)
PyObject* grid_sample_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Sample s(args[0], args[1], args + 2);
  TensorRef result = new_tensor(s.result_sizes(), s.image->dtype, s.image->device());
  if (result->is_meta() || result->numel == 0) return result.release_object();
  MaybeNoGil released(result->numel);
  s.visit([&](auto tag) {
    using T = typename decltype(tag)::type;
    // Images for the threads; of few images, parts of the points.
    const int64_t pixels = s.shape.pixels();
    const int64_t parts = std::min((num_threads() + s.images - 1) / s.images, (s.count + SHARE - 1) / SHARE);
    const int64_t share = (s.count + parts - 1) / parts;
    const int64_t room = grid_room(s.shape, share, s.channels, false);
    Workspaces spaces(num_threads(), room * int64_t(sizeof(T)));
    divide(s.work(), s.images * parts, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      for (int64_t i = begin; i < end; i++) {
        int64_t n = i / parts, first = i % parts * share, count = std::min(share, s.count - first);
        if (count > 0)
          grid_samples<T>().forward(
              s.shape, s.at<T>(n, first), count, s.image->data_as<T>() + n * s.channels * pixels, s.channels,
              result->data_as<T>() + n * s.channels * s.count + first, s.count, lease.as<T>());
      }
    });
  });
  return result.release_object();
}

// grid_sample_gradient(g, x, grid; mode, padding, align_corners, on_x, on_grid) -> dx, dgrid. What is not
// asked for is empty.
PyObject* grid_sample_gradient_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Sample s(args[1], args[2], args + 3);
  Tensor* g = tensor_argument(NAME, args[0]);
  bool on_x = bool_argument(NAME, "on_x", args[6]), on_grid = bool_argument(NAME, "on_grid", args[7]);
  Shape sizes = s.result_sizes();
  if (g->dtype != s.image->dtype || !std::ranges::equal(g->sizes(), Sizes(sizes)) ||
      g->is_meta() != s.image->is_meta())
    fail_to_fit("operands do not fit");
  const int64_t nothing[] = {s.images, 0};
  auto like = [&](const TensorRef& t, bool asked) {
    return new_tensor(asked ? t->sizes() : Sizes(nothing), t->dtype, t->device());
  };
  TensorRef up = contiguous(g), dx = like(s.image, on_x), dgrid = like(s.points, on_grid);
  if (!g->is_meta() && s.images) {
    MaybeNoGil released(g->numel);
    s.visit([&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t room = grid_room(s.shape, s.count, s.channels, true), pixels = s.shape.pixels();
      if (s.channels == 0 && on_grid) std::fill_n(dgrid->data_as<T>(), dgrid->numel, T(0));
      Workspaces spaces(num_threads(), room * int64_t(sizeof(T)));
      divide(s.work(), s.images, [&](int64_t begin, int64_t end) {
        Workspaces::Lease lease(spaces);
        for (int64_t n = begin; n < end; n++)
          grid_samples<T>().backward(
              s.shape, s.at<T>(n, 0), s.count, s.image->data_as<T>() + n * s.channels * pixels, s.channels,
              up->data_as<T>() + n * s.channels * s.count,
              on_x ? dx->data_as<T>() + n * s.channels * pixels : nullptr,
              on_grid ? dgrid->data_as<T>() + n * s.count * s.shape.dims : nullptr, lease.as<T>());
      });
    });
  }
  return checked(PyTuple_Pack(2, dx->object(), dgrid->object())).release();
}

ModuleInit init([](PyObject*) {
  define("grid_sample(x, grid; mode, padding, align_corners)", grid_sample_forward);
  define("grid_sample_gradient(g, x, grid; mode, padding, align_corners, on_x, on_grid) -> dx, dgrid",
         grid_sample_gradient_forward);
  define("grid_terms(grid; sizes, mode, padding, align_corners) -> weights, index", grid_terms_forward);
  define("grid_gradient(g, grid; sizes, mode, padding, align_corners)", grid_gradient_forward);
  define("grid_slopes(grid; sizes, mode, padding, align_corners)", grid_slopes_forward);
});

}  // namespace
}  // namespace rl
