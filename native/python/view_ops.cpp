// Views: tensors on another's storage with another geometry, and the primitives that undo them in backward.
//
// Each forward function works out sizes, strides and offset and calls new_view. Indices and dimensions are
// checked here; Python passes plain ints. `place`, `pick` and `replace` move the elements under a strided
// geometry into, out of and within a tensor: they are what the derivatives of as_strided, unfold and in-place
// writes are made of.
#include "../graph/custom.h"
#include "../graph/errors.h"
#include "../graph/rules.h"
#include "../tensor/iterate.h"
#include "../tensor/reach.h"
#include "functions.h"
#include "primitive.h"

namespace rl {

void check_writable(Tensor* out);

namespace {

Tensor* input(PyObject* const* args, int i = 0) {
  if (!is_tensor(args[i])) fail(PyExc_TypeError, "expected a Tensor");
  return as_tensor(args[i]);
}

}  // namespace

bool view_strides(const Tensor* t, Sizes sizes, int64_t* strides) {
  if (t->numel == 0) {
    contiguous_strides(sizes, strides);
    if (int(sizes.size()) == t->ndim && std::equal(sizes.begin(), sizes.end(), t->geometry)) {
      std::copy_n(t->strides().begin(), t->ndim, strides);
    }
    return true;
  }
  if (t->ndim == 0) {
    std::fill_n(strides, sizes.size(), 1);
    return true;
  }
  // Walk both shapes from the back; each run of old dimensions that is contiguous in memory may be cut anew.
  int view_d = int(sizes.size()) - 1;
  int64_t chunk_base = t->stride(t->ndim - 1), old_count = 1, new_count = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    old_count *= t->size(d);
    bool boundary = d == 0 || (t->size(d - 1) != 1 && t->stride(d - 1) != old_count * chunk_base);
    if (!boundary) continue;
    while (view_d >= 0 && (new_count < old_count || sizes[view_d] == 1)) {
      strides[view_d] = new_count * chunk_base;
      new_count *= sizes[view_d];
      view_d--;
    }
    if (new_count != old_count) return false;
    if (d > 0) {
      chunk_base = t->stride(d - 1);
      old_count = new_count = 1;
    }
  }
  return view_d == -1;
}

namespace {

// Fills in one -1 and checks the number of elements.
void infer_sizes(Shape& shape, const Tensor* t) {
  int unknown = -1;
  int64_t known = 1;
  bool overflow = false;
  for (int d = 0; d < shape.ndim; d++) {
    if (shape.sizes[d] == -1) {
      if (unknown >= 0) fail(PyExc_RuntimeError, "only one dimension can be inferred");
      unknown = d;
    } else if (shape.sizes[d] < 0) {
      failf(PyExc_RuntimeError, "invalid shape dimension %lld at index %d of shape %s",
            (long long)shape.sizes[d], d, sizes_text({shape.sizes, size_t(shape.ndim)}).c_str());
    } else {
      overflow |= __builtin_mul_overflow(known, shape.sizes[d], &known);
    }
  }
  auto invalid = [&] {
    failf(PyExc_RuntimeError, "shape '%s' is invalid for input of size %lld", sizes_text(shape).c_str(),
          (long long)t->numel);
  };
  if (unknown >= 0) {
    if (known == 0) {
      if (t->numel) invalid();
      fail(PyExc_RuntimeError,
           "cannot reshape tensor of 0 elements into shape " + sizes_text(shape) +
               " because the unspecified dimension size -1 can be any value and is ambiguous");
    }
    if (overflow || t->numel % known) invalid();
    shape.sizes[unknown] = t->numel / known;
  } else if (known != t->numel) {
    invalid();
  } else if (overflow) {
    fail(PyExc_RuntimeError, "numel: integer multiplication overflow");
  }
}

PyObject* view_as(Tensor* t, Sizes sizes, Sizes strides, int64_t offset) {
  return new_view(t, sizes, strides, offset).release_object();
}

// can_view(x, size): whether view(x, size) needs no copy. Sizes that do not fit are left to view to refuse.
PyObject* can_view(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2 || !is_tensor(args[0])) fail(PyExc_TypeError, "can_view() takes a tensor and sizes");
    Tensor* t = as_tensor(args[0]);
    Shape shape;
    read_sizes(args[1], shape, "reshape", "shape");
    infer_sizes(shape, t);
    int64_t strides[MAX_DIMS];
    return PyBool_FromLong(view_strides(t, shape, strides));
  });
}

PyMethodDef view_functions[] = {
    {"can_view", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(can_view)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyObject* view_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  Shape shape;
  read_sizes(args[1], shape, "view", "size");
  infer_sizes(shape, t);
  int64_t strides[MAX_DIMS];
  if (!view_strides(t, shape, strides)) {
    fail(PyExc_RuntimeError,
         "view size is not compatible with input tensor's size and stride (at least one dimension spans "
         "across two "
         "contiguous subspaces). Use .reshape(...) instead.");
  }
  return view_as(t, shape, {strides, size_t(shape.ndim)}, t->offset);
}

PyObject* expand_forward(const Primitive&, PyObject* const* args, Tensor*) {
  TensorRef kept = unspread(input(args));
  Tensor* t = kept.get();
  Shape shape;
  read_sizes(args[1], shape, "expand", "size");
  int shift = shape.ndim - t->ndim;
  if (shift < 0) {
    fail(PyExc_RuntimeError, "expand(" + type_text(t) + "{" + sizes_text(t->sizes()) +
                                 "}, size=" + sizes_text(shape) + "): the number of sizes provided (" +
                                 std::to_string(shape.ndim) +
                                 ") must be greater or equal to the number of dimensions in the tensor (" +
                                 std::to_string(t->ndim) + ")");
  }
  Shape asked = shape;
  int64_t strides[MAX_DIMS];
  for (int d = shape.ndim - 1; d >= 0; d--) {
    int64_t& size = shape.sizes[d];
    if (d < shift) {
      if (size < 0) {
        failf(PyExc_RuntimeError,
              "The expanded size of the tensor (%lld) isn't allowed in a leading, non-existing dimension %d",
              (long long)size, d);
      }
      strides[d] = d + 1 < shape.ndim ? strides[d + 1] * shape.sizes[d + 1] : 1;
      if (size != 1 || t->ndim == 0) strides[d] = 0;
      else if (d + 1 == shape.ndim) strides[d] = 1;
      continue;
    }
    int64_t old = t->size(d - shift);
    if (size == -1) size = old;
    if (size == old) {
      strides[d] = t->stride(d - shift);
    } else if (old == 1 && size >= 0) {
      strides[d] = 0;
    } else {
      failf(PyExc_RuntimeError,
            "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
            "dimension "
            "%d.  Target sizes: %s.  Tensor sizes: %s",
            (long long)size, (long long)old, d, sizes_text(asked).c_str(), sizes_text(t->sizes()).c_str());
    }
  }
  return view_as(t, shape, {strides, size_t(shape.ndim)}, t->offset);
}

PyObject* permute_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  TensorRef kept = unspread(input(args));
  Tensor* t = kept.get();
  Shape dims;
  read_sizes(args[1], dims, op.name.c_str(), "dims");
  if (dims.ndim != t->ndim) {
    failf(PyExc_RuntimeError,
          "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
          "desired "
          "ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %d",
          t->ndim, dims.ndim);
  }
  int64_t sizes[MAX_DIMS], strides[MAX_DIMS];
  uint64_t seen = 0;
  for (int i = 0; i < dims.ndim; i++) {
    int d = wrap_dim(dims.sizes[i], t->ndim);
    if (seen >> d & 1) fail(PyExc_RuntimeError, "permute(): duplicate dims are not allowed.");
    seen |= uint64_t(1) << d;
    sizes[i] = t->size(d);
    strides[i] = t->stride(d);
  }
  return view_as(t, {sizes, t->ndim}, {strides, t->ndim}, t->offset);
}

PyObject* transposed(Tensor* x, int a, int b) {
  TensorRef kept = unspread(x);
  Tensor* t = kept.get();
  Shape sizes, strides;
  sizes.assign(t->sizes());
  strides.assign(t->strides());
  if (t->ndim) {
    std::swap(sizes.sizes[a], sizes.sizes[b]);
    std::swap(strides.sizes[a], strides.sizes[b]);
  }
  return view_as(t, sizes, strides, t->offset);
}

PyObject* transpose_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  int a = wrap_dim(read_int(args[1]), t->ndim), b = wrap_dim(read_int(args[2]), t->ndim);
  return transposed(t, a, b);
}

PyObject* t_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  if (t->ndim > 2) {
    failf(PyExc_RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is %dD", t->ndim);
  }
  return transposed(t, 0, t->ndim == 2 ? 1 : 0);
}

PyObject* unsqueeze_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  int64_t asked = read_int(args[1]);
  int n = t->ndim + 1;
  int d = wrap_dim(asked, n);
  Shape sizes, strides;
  for (int i = 0; i < n; i++) {
    if (i == d) {
      sizes.append(1);
      strides.append(d < t->ndim ? t->size(d) * t->stride(d) : 1);
    } else {
      sizes.append(t->size(i - (i > d)));
      strides.append(t->stride(i - (i > d)));
    }
  }
  return view_as(t, sizes, strides, t->offset);
}

// squeeze(x; dims): the dimensions among `dims` (None: all) that have size 1.
PyObject* squeeze_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  uint64_t mask = ~uint64_t(0);
  if (op.args.size() > 1) {
    mask = 0;
    if (PyTuple_Check(args[1]) || PyList_Check(args[1])) {
      Shape dims;
      read_sizes(args[1], dims, "squeeze", "dim");
      for (int i = 0; i < dims.ndim; i++) {
        uint64_t bit = uint64_t(1) << wrap_dim(dims.sizes[i], t->ndim);
        if (mask & bit)
          failf(PyExc_RuntimeError, "dim %d appears multiple times in the list of dims",
                wrap_dim(dims.sizes[i], t->ndim));
        mask |= bit;
      }
    } else {
      mask = uint64_t(1) << wrap_dim(read_int(args[1]), t->ndim);
    }
  }
  Shape sizes, strides;
  for (int d = 0; d < t->ndim; d++) {
    if (mask >> d & 1 && t->size(d) == 1) continue;
    sizes.append(t->size(d));
    strides.append(t->stride(d));
  }
  return view_as(t, sizes, strides, t->offset);
}

struct Geometry {
  Shape sizes, strides;
  int64_t offset;
};

// Geometry of x[..., index, ...] for a tensor of the given geometry.
Geometry select_geometry(Sizes sizes, Sizes strides, int64_t offset, PyObject* dim_object,
                         PyObject* index_object) {
  if (sizes.empty()) fail(PyExc_IndexError, "select() cannot be applied to a 0-dim tensor.");
  int dim = wrap_dim(read_int(dim_object), int(sizes.size()));
  int64_t index = read_int(index_object);
  if (index < -sizes[dim] || index >= sizes[dim]) {
    failf(PyExc_IndexError, "select(): index %lld out of range for tensor of size %s at dimension %d",
          (long long)index, sizes_text(sizes).c_str(), dim);
  }
  Geometry g;
  g.offset = offset + (index < 0 ? index + sizes[dim] : index) * strides[dim];
  for (int d = 0; d < int(sizes.size()); d++) {
    if (d == dim) continue;
    g.sizes.append(sizes[d]);
    g.strides.append(strides[d]);
  }
  return g;
}

// Geometry of x[..., start:end:step, ...]; None for start and end as in Python.
// Of a step that is never taken, since it leads beyond one element: torch looks at the sign of its product
// with the stride, which has overflowed.
void check_wrapped(Shape& strides, int dim) {
  if (strides.sizes[dim] < 0) {
    fail(PyExc_RuntimeError,
         "as_strided: Negative strides are not supported at the moment, got strides: " + sizes_text(strides));
  }
  strides.sizes[dim] = INT64_MAX;
}

Geometry slice_geometry(Sizes sizes, Sizes strides, int64_t offset, PyObject* const* args) {
  if (sizes.empty()) fail(PyExc_IndexError, "slice() cannot be applied to a 0-dim tensor.");
  int dim = wrap_dim(read_int(args[0]), int(sizes.size()));
  int64_t size = sizes[dim];
  int64_t start = args[1] == Py_None ? 0 : read_int(args[1]),
          end = args[2] == Py_None ? size : read_int(args[2]);
  int64_t step = args[3] == Py_None ? 1 : read_int(args[3]);
  if (step <= 0) fail(PyExc_RuntimeError, "slice step must be positive");
  auto clip = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  start = clip(start);
  end = std::max(clip(end), start);
  Geometry g;
  g.sizes.assign(sizes);
  g.strides.assign(strides);
  g.offset = offset + start * strides[dim];
  g.sizes.sizes[dim] = end == start ? 0 : (end - start - 1) / step + 1;
  if (__builtin_mul_overflow(strides[dim], step, &g.strides.sizes[dim])) check_wrapped(g.strides, dim);
  return g;
}

Geometry diagonal_geometry(Sizes sizes, Sizes strides, int64_t start, PyObject* const* args) {
  int64_t offset = read_int(args[0]);
  int n = int(sizes.size());
  int d1 = wrap_dim(read_int(args[1]), n), d2 = wrap_dim(read_int(args[2]), n);
  if (d1 == d2)
    failf(PyExc_RuntimeError, "diagonal dimensions cannot be identical %lld, %lld",
          (long long)read_int(args[1]), (long long)read_int(args[2]));
  int64_t length =
      offset >= 0 ? std::min(sizes[d1], sizes[d2] - offset) : std::min(sizes[d1] + offset, sizes[d2]);
  length = std::max<int64_t>(length, 0);
  Geometry g;
  g.offset = start;
  if (length > 0) g.offset += offset >= 0 ? offset * strides[d2] : -offset * strides[d1];
  for (int d = 0; d < n; d++) {
    if (d == d1 || d == d2) continue;
    g.sizes.append(sizes[d]);
    g.strides.append(strides[d]);
  }
  g.sizes.append(length);
  g.strides.append(strides[d1] + strides[d2]);
  return g;
}

PyObject* view_as(Tensor* t, const Geometry& g) { return view_as(t, g.sizes, g.strides, g.offset); }

PyObject* select_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  return view_as(t, select_geometry(t->sizes(), t->strides(), t->offset, args[1], args[2]));
}
PyObject* slice_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  return view_as(t, slice_geometry(t->sizes(), t->strides(), t->offset, args + 1));
}
PyObject* diagonal_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  return view_as(t, diagonal_geometry(t->sizes(), t->strides(), t->offset, args + 1));
}

// Zeros of `shape` with g under the geometry that `geometry` finds: the derivatives of select, slice and
// diagonal.
template <class F>
PyObject* spread(PyObject* const* args, F geometry) {
  Tensor* g = input(args);
  Shape shape;
  read_sizes(args[1], shape, "backward", "shape");
  TensorRef whole = zeros(shape, g->dtype, g->device());
  Geometry where = geometry(whole->sizes(), whole->strides());
  TensorRef part = new_alias(whole.get(), where.sizes, where.strides, where.offset);
  static Primitive& copy = primitive("copy");
  PyObject* both[] = {part->object(), g->object()};  // grad_fn(g) can be called with any g
  checked(copy.forward(copy, both, part.get()));
  return whole.release_object();
}
PyObject* select_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  return spread(args, [&](Sizes s, Sizes t) { return select_geometry(s, t, 0, args[2], args[3]); });
}
PyObject* slice_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  return spread(args, [&](Sizes s, Sizes t) { return slice_geometry(s, t, 0, args + 2); });
}
PyObject* diagonal_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  return spread(args, [&](Sizes s, Sizes t) { return diagonal_geometry(s, t, 0, args + 2); });
}

PyObject* unfold_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  int dim = wrap_dim(read_int(args[1]), t->ndim);
  int64_t size = read_int(args[2]), step = read_int(args[3]);
  int64_t length = t->ndim ? t->size(dim) : 1, stride = t->ndim ? t->stride(dim) : 1;
  if (size < 0) failf(PyExc_RuntimeError, "size is %lld but must be >= 0", (long long)size);
  if (size > length) {
    failf(PyExc_RuntimeError, "maximum size for tensor at dimension %d is %lld but size is %lld", dim,
          (long long)length, (long long)size);
  }
  if (step <= 0) failf(PyExc_RuntimeError, "step is %lld but must be > 0", (long long)step);
  Shape sizes, strides;
  sizes.assign(t->sizes());
  strides.assign(t->strides());
  if (t->ndim) {
    sizes.sizes[dim] = (length - size) / step + 1;
  }
  sizes.append(size);
  strides.append(stride);
  // Too large a step is never taken: there is one window then.
  if (t->ndim && __builtin_mul_overflow(step, stride, &strides.sizes[dim])) check_wrapped(strides, dim);
  return view_as(t, sizes, strides, t->offset);
}

// Every element that (sizes, strides, offset) reaches must lie inside the storage.
void check_bounds(const Storage* storage, int itemsize, Sizes sizes, Sizes strides, int64_t offset,
                  const char* name) {
  if (sizes.size() != strides.size()) {
    failf(PyExc_RuntimeError, "mismatch in length of strides and shape");
  }
  if (offset < 0) failf(PyExc_RuntimeError, "Tensor: invalid storage offset %lld", (long long)offset);
  for (size_t d = 0; d < sizes.size(); d++) {
    if (strides[d] < 0) {
      failf(PyExc_RuntimeError, "%s: Negative strides are not supported at the moment, got strides: %s", name,
            sizes_text(strides).c_str());
    }
  }
  int64_t bytes = bytes_reached(sizes, strides, offset, itemsize);
  if (uint64_t(bytes) > storage->nbytes) {
    failf(PyExc_RuntimeError,
          "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %d requiring a storage size "
          "of %lld are out of bounds for storage of size %zu",
          sizes_text(sizes).c_str(), sizes_text(strides).c_str(), (long long)offset, itemsize,
          (long long)bytes, storage->nbytes);
  }
  for (int64_t size : sizes)
    if (size < 0) fail(PyExc_RuntimeError, "numel: integer multiplication overflow");
}

// as_strided(x; size, stride, offset, layout, start): offset within the storage; layout and start are x's own
// strides and offset, for the derivative.
PyObject* as_strided_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  Shape sizes, strides;
  read_sizes(args[1], sizes, "as_strided", "size");
  read_sizes(args[2], strides, "as_strided", "stride");
  int64_t offset = read_int(args[3]);
  check_bounds(t->storage, t->itemsize(), sizes, strides, offset, "as_strided");
  return view_as(t, sizes, strides, offset);
}

// A copy of t laid out with `layout` strides on a buffer that also covers the part (sizes, strides, offset).
// `offset` is relative to t's first element.
struct Buffer {
  TensorRef memory, whole, part;
};
Buffer lay_out(Sizes shape, Sizes layout, PyObject* const* args, DType dtype, Device device) {
  Shape sizes, strides;
  read_sizes(args[0], sizes, "place", "size");
  read_sizes(args[1], strides, "place", "stride");
  int64_t offset = read_int(args[2]);
  if (offset == INT64_MIN || strides.ndim != sizes.ndim || layout.size() != shape.size())
    fail(PyExc_RuntimeError, "bad geometry");
  auto reach = [](Sizes n, Sizes s) {
    if (numel_of(n) == 0) return int64_t(0);
    for (int64_t stride : s) {
      if (stride < 0) fail(PyExc_RuntimeError, "bad geometry");
    }
    int64_t last = farthest(n, s);
    if (last < 0 || last == INT64_MAX) fail(PyExc_RuntimeError, "geometry too large");
    return last + 1;
  };
  // The part may begin before the whole: a view of storage that the tensor does not cover.
  int64_t before = std::max<int64_t>(0, -offset), whole = reach(shape, layout), part = reach(sizes, strides);
  if (__builtin_add_overflow(before, whole, &whole) || __builtin_add_overflow(before + offset, part, &part))
    fail(PyExc_RuntimeError, "geometry too large");
  int64_t room = std::max(whole, part);
  Buffer b;
  b.memory = zeros(Sizes(&room, 1), dtype, device);
  b.whole = new_alias(b.memory.get(), shape, layout, before);
  b.part = new_alias(b.memory.get(), sizes, strides, before + offset);
  return b;
}

// Adds g element by element: several of part's elements may share memory.
void add_one_by_one(Tensor* part, Tensor* g) {
  if (part->is_meta() || part->numel == 0) return;
  TensorRef dense = contiguous(g);
  visit(part->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = dense->data_as<T>();
    T* to = part->data_as<T>();
    int64_t index[MAX_DIMS] = {}, at = 0;
    for (int64_t i = 0; i < part->numel; i++) {
      if constexpr (std::is_same_v<T, bool>) to[at] = to[at] || from[i];
      else to[at] = T(to[at] + from[i]);
      for (int d = part->ndim - 1; d >= 0; d--) {
        at += part->stride(d);
        if (++index[d] < part->size(d)) break;
        at -= part->stride(d) * part->size(d);
        index[d] = 0;
      }
    }
  });
}

// place(part; shape, layout, size, stride, offset): zeros of `shape` with part added under the geometry.
PyObject* place_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* g = input(args);
  Shape shape, layout;
  read_sizes(args[1], shape, "place", "shape");
  read_sizes(args[2], layout, "place", "layout");
  Buffer b = lay_out(shape, layout, args + 3, g->dtype, g->device());
  if (!same_sizes(b.part.get(), g)) fail(PyExc_RuntimeError, "bad geometry");
  add_one_by_one(b.part.get(), g);
  return clone(b.whole.get()).release_object();
}

// pick(x; layout, size, stride, offset): the elements of x under the geometry, as if x had `layout` strides.
PyObject* pick_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  Shape layout;
  read_sizes(args[1], layout, "pick", "layout");
  Buffer b = lay_out(t->sizes(), layout, args + 2, t->dtype, t->device());
  copy_into(b.whole.get(), t);
  return contiguous(clone(b.part.get()).get()).release_object();
}

// replace(x, part; layout, size, stride, offset): x with the elements under the geometry replaced by part.
PyObject* replace_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *t = input(args), *part = input(args, 1);
  Shape layout;
  read_sizes(args[2], layout, "replace", "layout");
  Buffer b = lay_out(t->sizes(), layout, args + 3, t->dtype, t->device());
  if (!same_sizes(b.part.get(), part)) fail(PyExc_RuntimeError, "bad geometry");
  check_writable(b.part.get());
  copy_into(b.whole.get(), t);
  copy_into(b.part.get(), part);
  if (b.memory->numel == t->numel && is_dense(t->sizes(), layout)) return b.whole.release_object();
  return clone(b.whole.get()).release_object();
}

// ---- several views at once

PyObject* split_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  if (!PyTuple_Check(args[1]) && !PyList_Check(args[1])) fail(PyExc_TypeError, "split sizes must be a list");
  Py_ssize_t n = PySequence_Fast_GET_SIZE(args[1]);
  int dim = wrap_dim(read_int(args[2]), t->ndim);
  if (t->ndim == 0) fail(PyExc_RuntimeError, "split expects at least a 1-dimensional tensor");
  Ref<PyObject> result = checked(PyTuple_New(n));
  Shape sizes;
  sizes.assign(t->sizes());
  int64_t start = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    int64_t length = read_int(item_of(args[1], i).get());
    if (length < 0 || length > t->size(dim) - start)
      fail(PyExc_RuntimeError, "split sizes exceed the dimension");
    sizes.sizes[dim] = length;
    PyTuple_SET_ITEM(result.get(), i, view_as(t, sizes, t->strides(), t->offset + start * t->stride(dim)));
    start += length;
  }
  return result.release();
}

PyObject* unbind_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  int dim = wrap_dim(read_int(args[1]), t->ndim);
  if (t->ndim == 0) fail(PyExc_IndexError, "Dimension specified as 0 but tensor has no dimensions");
  Ref<PyObject> result = checked(PyTuple_New(t->size(dim)));
  Shape sizes, strides;
  for (int d = 0; d < t->ndim; d++) {
    if (d == dim) continue;
    sizes.append(t->size(d));
    strides.append(t->stride(d));
  }
  for (int64_t i = 0; i < t->size(dim); i++) {
    PyTuple_SET_ITEM(result.get(), i, view_as(t, sizes, strides, t->offset + i * t->stride(dim)));
  }
  return result.release();
}

// ---- complex numbers as pairs

PyObject* view_as_real_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  if (!is_complex(t->dtype)) fail(PyExc_RuntimeError, "view_as_real is only supported for complex tensors");
  if (t->flags & Tensor::CONJ) {
    fail(PyExc_RuntimeError,
         "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so "
         "you can view it as real, use self.resolve_conj(); however, be warned that the resulting tensor "
         "will NOT alias the original.");
  }
  Shape sizes, strides;
  sizes.assign(t->sizes());
  strides.assign(t->strides());
  for (int d = 0; d < t->ndim; d++) strides.sizes[d] *= 2;
  sizes.append(2);
  strides.append(1);
  TensorRef view = new_view(t, sizes, strides, t->offset * 2);
  view->dtype = to_real(t->dtype);
  return view.release_object();
}

PyObject* view_as_complex_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  if (t->dtype != DType::f32 && t->dtype != DType::f64 && t->dtype != DType::f16) {
    failf(PyExc_RuntimeError,
          "view_as_complex is only supported for half, float and double tensors, but got a "
          "tensor of scalar type: %s",
          dtype_class_name(t->dtype));
  }
  if (t->ndim == 0) fail(PyExc_RuntimeError, "Input tensor must have one or more dimensions");
  if (t->size(t->ndim - 1) != 2) fail(PyExc_RuntimeError, "Tensor must have a last dimension of size 2");
  if (t->stride(t->ndim - 1) != 1)
    fail(PyExc_RuntimeError, "Tensor must have a last dimension with stride 1");
  Shape sizes, strides;
  for (int d = 0; d + 1 < t->ndim; d++) {
    if (t->stride(d) % 2 && t->size(d) != 1)
      fail(PyExc_RuntimeError, "Tensor must have a stride divisible by 2 for all but last dimension");
    sizes.append(t->size(d));
    strides.append(t->stride(d) / 2);
  }
  if (t->offset % 2) fail(PyExc_RuntimeError, "Tensor must have a storage_offset divisible by 2");
  TensorRef view = new_view(t, sizes, strides, t->offset / 2);
  view->dtype = to_complex(t->dtype);
  if (is_rare(view->dtype)) rare_dtypes_seen = true;
  return view.release_object();
}

PyObject* alias_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* t = input(args);
  return view_as(t, t->sizes(), t->strides(), t->offset);
}

ModuleInit init([](PyObject* module) {
  PyModule_AddFunctions(module, view_functions);
  constexpr auto VIEW = Primitive::VIEW;
  define("view(x; size)", view_forward, VIEW);
  define("expand(x; size)", expand_forward, VIEW);
  define("permute(x; dims)", permute_forward, VIEW);
  define("transpose(x; dim0, dim1)", transpose_forward, VIEW);
  define("t(x)", t_forward, VIEW);
  define("unsqueeze(x; dim)", unsqueeze_forward, VIEW);
  define("squeeze(x)", squeeze_forward, VIEW);
  define("squeeze_dim(x; dim)", squeeze_forward, VIEW);
  define("squeeze_dims(x; dim)", squeeze_forward, VIEW);
  define("select(x; dim, index)", select_forward, VIEW);
  define("slice(x; dim, start, end, step)", slice_forward, VIEW);
  define("diagonal(x; offset, dim1, dim2)", diagonal_forward, VIEW);
  define("unfold(x; dim, size, step)", unfold_forward, VIEW);
  define("as_strided(x; size, stride, offset, layout, start)", as_strided_forward, VIEW);
  define("alias(x)", alias_forward, VIEW);
  define("straight(x)", alias_forward, VIEW);
  define("once(x; by, name)", alias_forward, VIEW);
  define("view_as_real(x)", view_as_real_forward, VIEW | Primitive::CONVERTS);
  define("view_as_complex(x)", view_as_complex_forward, VIEW | Primitive::CONVERTS);
  define("split_with_sizes(x; sizes, dim) -> outs[]", split_forward, VIEW);
  define("split(x; sizes, dim) -> outs[]", split_forward, VIEW);
  define("unbind(x; dim) -> outs[]", unbind_forward, VIEW);
  define("select_backward(g; shape, dim, index)", select_backward_forward);
  define("slice_backward(g; shape, dim, start, end, step)", slice_backward_forward);
  define("diagonal_backward(g; shape, offset, dim1, dim2)", diagonal_backward_forward);
  define("place(part; shape, layout, size, stride, offset)", place_forward);
  define("pick(x; layout, size, stride, offset)", pick_forward);
  define("replace(x, part; layout, size, stride, offset)", replace_forward);
});

}  // namespace

}  // namespace rl
