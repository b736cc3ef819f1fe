// The primitives behind x[i, mask, :, j] and x[...] = value: index, index_put and index_backward.
//
// `indices` is a list with a tensor or None for each leading dimension of x. Bool and uint8 tensors are masks
// and stand for the coordinates of their ones; `Addressing` turns the list into int64 index tensors of one
// shape and works out the result's geometry. A single mask over leading dimensions takes a shorter way,
// without coordinates.
#include "../graph/errors.h"
#include "../tensor/iterate.h"
#include "index_ops.h"

namespace rl {

Ref<PyObject> mask_indices(Tensor* mask) {
  int64_t count = count_nonzero(mask->span());
  Ref<PyObject> tuple = checked(PyTuple_New(mask->ndim));
  int64_t sizes[] = {mask->ndim, count}, one = 1;
  TensorRef all = new_tensor(Sizes(sizes, 2), DType::i64);
  nonzero(all->data_as<int64_t>(), count, mask->span(), 1, count);
  for (int d = 0; d < mask->ndim; d++) {
    TensorRef row = new_alias(all.get(), Sizes(&count, 1), Sizes(&one, 1), all->offset + d * count);
    PyTuple_SET_ITEM(tuple.get(), d, row.release_object());
  }
  return tuple;
}

namespace {

bool is_mask(const Tensor* t) { return t->dtype == DType::b1 || t->dtype == DType::u8; }

void warn_byte_mask(const Tensor* t) {
  if (t->dtype != DType::u8) return;
  warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
}

// The mask addresses dimensions first... of x.
void check_mask(const Tensor* x, const Tensor* mask, int first) {
  warn_byte_mask(mask);
  for (int d = 0; d < mask->ndim; d++) {
    if (first + d < x->ndim && mask->size(d) == x->size(first + d)) continue;
    if (first + d >= x->ndim) wrap_dim(first + d, x->ndim);
    failf(
        PyExc_IndexError,
        "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
        sizes_text(mask->sizes()).c_str(), d, sizes_text(x->sizes()).c_str(), first + d);
  }
}

// indices = [mask] with nothing else: the mask, else null. It may cover all of x or its leading dimensions.
Tensor* single_mask(const Tensor* x, PyObject* list) {
  if (PySequence_Fast_GET_SIZE(list) != 1 || !is_tensor(PySequence_Fast_GET_ITEM(list, 0))) return nullptr;
  Tensor* mask = as_tensor(PySequence_Fast_GET_ITEM(list, 0));
  return is_mask(mask) && mask->ndim == x->ndim && mask->ndim > 0 ? mask : nullptr;
}

// The only index of the list, beside dimensions that are taken whole, where it is a mask that fits x: with
// one value to write torch fills as masked_fill does, whatever the value's dtype and sizes. `strides` are the
// mask's, spread over x.
Tensor* filling_mask(const Tensor* x, PyObject* list, int64_t* strides) {
  Tensor* mask = nullptr;
  int first = 0;
  if (PySequence_Fast_GET_SIZE(list) > x->ndim) return nullptr;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list); k++) {
    PyObject* o = PySequence_Fast_GET_ITEM(list, k);
    if (o == Py_None) continue;
    if (mask || !is_tensor(o) || as_tensor(o)->dtype != DType::b1 || as_tensor(o)->is_meta()) return nullptr;
    mask = as_tensor(o);
    first = int(k);
  }
  if (!mask || first + mask->ndim > x->ndim) return nullptr;
  std::fill_n(strides, x->ndim, 0);
  for (int d = 0; d < mask->ndim; d++) {
    if (mask->size(d) != x->size(first + d)) return nullptr;
    strides[first + d] = mask->stride(d);
  }
  return mask;
}

struct Addressing {
  TensorRef held[MAX_DIMS];  // per dimension of x; empty where not indexed
  int64_t strides[MAX_DIMS][MAX_DIMS];
  Span spans[MAX_DIMS];
  const Span* indices[MAX_DIMS];
  Shape index_shape, result;
  int position = 0;      // of the index's dimensions in the result
  bool dropped = false;  // a mask without dimensions, which stands for no index at all

  Addressing(Tensor* x, PyObject* list) {
    int at = 0;
    if (PySequence_Fast_GET_SIZE(list) == 0) fail(PyExc_IndexError, "at least one index must be provided");
    check_count(x, PySequence_Fast_GET_SIZE(list));
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list); k++) {
      PyObject* o = PySequence_Fast_GET_ITEM(list, k);
      if (!is_tensor(o)) {
        at++;
        continue;
      }
      Tensor* index = as_tensor(o);
      if (!x->is_meta() || index->is_meta()) check_same_device(x, index);
      if (is_mask(index)) {
        dropped |= index->ndim == 0;
        check_mask(x, index, at);
        if (index->is_meta()) fail(PyExc_NotImplementedError, "indexing with a mask on the meta device");
        Ref<PyObject> expanded = mask_indices(index);
        for (int d = 0; d < index->ndim; d++)
          hold(x, at++, share(as_tensor(PyTuple_GET_ITEM(expanded.get(), d))));
      } else if (index->dtype == DType::i64) {
        hold(x, at++, share(index));
      } else if (index->dtype == DType::i32) {
        hold(x, at++, cast(index, DType::i64));
      } else {
        fail(PyExc_IndexError, "tensors used as indices must be long, int, byte or bool tensors");
      }
    }
    broadcast(x);
    place(x);
  }
  Addressing(const Addressing&) = delete;

  // A result laid out as torch does it: in the order of dimensions that x and the indices agree on.
  TensorRef made(const Tensor* x) const {
    bool turned = !x->is_contiguous();
    for (int d = 0; d < x->ndim; d++) turned |= held[d] && !held[d]->is_contiguous();
    if (!turned) return new_tensor(result, x->dtype, x->device());
    int64_t steps[MAX_DIMS + 1][MAX_DIMS] = {}, order[MAX_DIMS];
    int count = 1;
    int n = index_shape.ndim;
    for (int d = 0, at = 0; d < x->ndim; d++) {
      if (at == position) at += n;
      if (!held[d]) {
        steps[0][at++] = x->stride(d);
        continue;
      }
      // The indices are spread over the other dimensions, but for those of size 1.
      int64_t before = n ? index_shape.sizes[0] * strides[d][0] : 1, after = n ? strides[d][n - 1] : 1;
      for (int k = 0; k < result.ndim; k++)
        steps[count][k] = result.sizes[k] != 1 ? 0 : k < position ? before : after;
      std::copy_n(strides[d], n, steps[count++] + position);
    }
    dense_strides(result, steps, count, order);
    return new_strided(result, {order, size_t(result.ndim)}, x->dtype, x->device());
  }

  // Only of masks without dimensions nothing is left to go by; torch finds that out when it begins to copy.
  void require_index() const {
    if (none && numel_of(result))
      fail(PyExc_IndexError, "at least one index must be a tensor with dimensions");
  }

 private:
  bool none = false;

  static void check_count(const Tensor* x, int64_t count) {
    if (count > x->ndim) {
      failf(PyExc_IndexError, "too many indices for tensor of dimension %d (got %lld)", x->ndim,
            static_cast<long long>(count));
    }
  }

  void hold(Tensor* x, int d, TensorRef index) {
    check_count(x, d + 1);  // a mask stands for several
    held[d] = std::move(index);
  }

  void broadcast(Tensor* x) {
    bool any = false;
    for (int d = 0; d < x->ndim; d++) {
      if (!held[d]) continue;
      Sizes sizes = held[d]->sizes();
      if (!any) index_shape.assign(sizes);
      bool fits = true;
      for (int i = 1; i <= std::min<int>(index_shape.ndim, int(sizes.size())); i++) {
        int64_t a = index_shape.sizes[index_shape.ndim - i], b = sizes[sizes.size() - size_t(i)];
        fits = fits && (a == b || a == 1 || b == 1);
      }
      if (!fits) {
        std::string shapes;
        for (int e = 0; e < x->ndim; e++) {
          if (held[e]) shapes += (shapes.empty() ? "" : ", ") + sizes_text(held[e]->sizes());
        }
        fail(PyExc_IndexError,
             "shape mismatch: indexing tensors could not be broadcast together with shapes " + shapes);
      }
      if (any) broadcast_into(index_shape, sizes);
      any = true;
    }
    none = !any;
    if (none && !dropped) fail(PyExc_IndexError, "at least one index must be a tensor");
  }

  // Index tensors side by side leave their dimensions in place; otherwise these come first.
  void place(Tensor* x) {
    int first = -1, last = -1, count = 0;
    for (int d = 0; d < x->ndim; d++) {
      indices[d] = nullptr;
      if (!held[d]) continue;
      if (first < 0) first = d;
      last = d;
      count++;
      broadcast_strides(held[d].get(), index_shape, strides[d]);
      spans[d] = {held[d]->is_meta() ? nullptr : held[d]->data(), DType::i64, index_shape.ndim,
                  index_shape.sizes, strides[d]};
      indices[d] = &spans[d];
    }
    position = last - first + 1 == count ? first : 0;
    auto insert = [&] {
      for (int64_t size : Sizes(index_shape)) result.append(size);
    };
    for (int d = 0; d < x->ndim; d++) {
      if (d == position) insert();
      if (!held[d]) result.append(x->size(d));
    }
    numel_of(result);
    // The loops never look at an index if the result is empty for another dimension's sake.
    if (numel_of(index_shape) == 0) return;
    for (int d = 0; d < x->ndim; d++) {
      if (held[d] && x->size(d) == 0)
        fail(PyExc_IndexError, "index is out of bounds for dimension with size 0");
    }
  }
};

// torch counts only the dimensions that are indexed: it moves them to the front before it looks.
[[noreturn]] void fail_index(const IndexFault& fault, const Addressing& addressing) {
  if (fault.size == 0) fail(PyExc_IndexError, "index is out of bounds for dimension with size 0");
  int dim = 0;
  for (int d = 0; d < fault.dim; d++) dim += addressing.indices[d] != nullptr;
  failf(PyExc_IndexError, "index %lld is out of bounds for dimension %d with size %lld",
        (long long)fault.index, dim, (long long)fault.size);
}

// index(x, indices[])
PyObject* index_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* x = tensor_argument(op, args, 0);
  if (Tensor* mask = single_mask(x, args[1]); mask && !x->is_meta()) {
    check_same_device(x, mask);
    check_mask(x, mask, 0);
    int64_t count = count_nonzero(mask->span());
    TensorRef result = new_tensor(Sizes(&count, 1), x->dtype);
    MaybeNoGil unlocked(x->numel);
    masked_select(result->data(), count, x->span(), mask->span());
    return result.release_object();
  }
  Addressing addressing(x, args[1]);
  addressing.require_index();
  TensorRef result = addressing.made(x);
  if (x->is_meta()) return result.release_object();
  IndexFault fault;
  {
    MaybeNoGil unlocked(result->numel);
    fault = index(result->span(), x->span(), addressing.indices, addressing.position);
  }
  if (fault) fail_index(fault, addressing);
  return result.release_object();
}

// Writes values (a tensor, or one element read everywhere) to where the indices point.
struct Written {
  TensorRef held;
  alignas(16) char number[16];
  bool is_number = false;

  Written(Tensor* x, PyObject* o, Tensor* out) {
    if (!is_tensor(o)) {
      is_number = true;
      store_checked(scalar_argument(o, "index_put_", "values"), x->dtype, number);
      return;
    }
    Tensor* values = as_tensor(o);
    if (!x->is_meta()) check_same_device(x, values);
    held = apart_from(values, out);
  }

  // Takes a tensor of one element for a number.
  bool become_number(const Tensor* x) {
    if (is_number) return true;
    if (held->numel != 1 || held->is_meta()) return false;
    store_checked(item(held.get()), x->dtype, number);
    return is_number = true;
  }

  // Strides that read the values with the sizes of the indexing result.
  void* fit(const Tensor* x, Sizes sizes, int64_t* strides) {
    std::fill_n(strides, sizes.size(), 0);
    if (is_number) return number;
    Tensor* t = held.get();
    int extra = t->ndim - int(sizes.size());
    bool fits = true;
    for (int d = 0; d < t->ndim; d++) {
      int at = d - extra;
      fits = fits && (t->size(d) == 1 || (at >= 0 && t->size(d) == sizes[size_t(at)]));
      if (fits && at >= 0 && t->size(d) != 1) strides[at] = t->stride(d);
    }
    if (!fits || extra > 0) {
      fail(PyExc_RuntimeError, "shape mismatch: value tensor of shape " + sizes_text(t->sizes()) +
                                   " cannot be broadcast to indexing result of shape " + sizes_text(sizes));
    }
    if (t->dtype != x->dtype) {
      failf(PyExc_RuntimeError,
            "Index put requires the source and destination dtypes match, got %s for the destination and %s "
            "for the source.",
            dtype_class_name(x->dtype), dtype_class_name(t->dtype));
    }
    return t->is_meta() ? nullptr : t->data();
  }
};

void put_into(Tensor* into, PyObject* list, Written& values, bool accumulate) {
  int64_t strides[MAX_DIMS];
  Tensor* mask = accumulate || into->is_meta() ? nullptr : filling_mask(into, list, strides);
  if (mask && values.become_number(into)) {
    MaybeNoGil unlocked(into->numel);
    masked_fill(into->span(), {mask->data(), DType::b1, into->ndim, into->geometry, strides}, values.number);
    return;
  }
  if (into->is_meta()) {
    // How many elements a mask of unknown values means is not known, but nothing is written either.
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list); k++) {
      PyObject* o = PySequence_Fast_GET_ITEM(list, k);
      if (is_tensor(o) && is_mask(as_tensor(o)) && as_tensor(o)->is_meta()) return;
    }
  }
  if (PySequence_Fast_GET_SIZE(list) == 0) values.fit(into, into->sizes(), strides);  // told first
  Addressing addressing(into, list);
  void* data = values.fit(into, addressing.result, strides);
  addressing.require_index();
  if (into->is_meta()) return;
  Span source = {data, into->dtype, addressing.result.ndim, addressing.result.sizes, strides};
  IndexFault fault;
  {
    MaybeNoGil unlocked(source.numel());
    fault = index_put(into->span(), addressing.indices, addressing.position, source, accumulate);
  }
  if (fault) fail_index(fault, addressing);
}

// index_put(x, indices[], values; accumulate)
PyObject* index_put_forward(const Primitive& op, PyObject* const* args, Tensor* out) {
  Tensor* x = tensor_argument(op, args, 0);
  Written values(x, args[2], out);
  TensorRef result = out ? share(out) : clone(x);
  Ref<PyObject> list = share(args[1]);
  if (out) {  // an index that shares memory with what is written is read from a copy
    Py_ssize_t n = PySequence_Fast_GET_SIZE(args[1]);
    for (Py_ssize_t k = 0; k < n; k++) {
      PyObject* o = PySequence_Fast_GET_ITEM(args[1], k);
      if (!is_tensor(o) || as_tensor(o)->storage != out->storage) continue;
      if (list.get() == args[1]) list = checked(PySequence_List(args[1]));
      PyList_SetItem(list.get(), k, clone(as_tensor(o)).release_object());
    }
  }
  put_into(result.get(), list.get(), values, args[3] == Py_True);
  return result.release_object();
}

// index_backward(g, indices[]; shape): zeros of `shape` with g added where the indices point.
PyObject* index_backward_forward(const Primitive& op, PyObject* const* args, Tensor*) {
  Tensor* g = tensor_argument(op, args, 0);
  Shape shape;
  read_sizes(args[2], shape, "index_backward", "shape");
  TensorRef whole = zeros(shape, g->dtype, g->device());
  if (Tensor* mask = single_mask(whole.get(), args[1]); mask && !whole->is_meta()) {
    check_mask(whole.get(), mask, 0);
    TensorRef dense = contiguous(g);
    if (count_nonzero(mask->span()) == dense->numel) {
      MaybeNoGil unlocked(whole->numel);
      masked_scatter(whole->span(), mask->span(), dense->data(), dense->numel);
      return whole.release_object();
    }
  }
  Written values(whole.get(), args[0], nullptr);
  put_into(whole.get(), args[1], values, true);
  return whole.release_object();
}

ModuleInit init([](PyObject*) {
  define("index(x, indices[])", index_forward, Primitive::SEES_TO_DEVICES);
  define("index_put(x, indices[], values; accumulate)", index_put_forward,
         Primitive::IN_PLACE | Primitive::SEES_TO_DEVICES);
  define("index_backward(g, indices[]; shape)", index_backward_forward);
});

}  // namespace
}  // namespace rl
