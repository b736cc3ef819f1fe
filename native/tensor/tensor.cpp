#include "tensor.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "../graph/modes.h"
#include "../kernels/rare_cast.h"
#include "free_lists.h"
#include "iterate.h"
#include "reach.h"
#include "twins.h"

namespace rl {

PyTypeObject* TensorType = nullptr;
PyTypeObject* TensorBaseType = nullptr;
PyTypeObject* ParameterType = nullptr;

namespace {

std::vector<Extra*> free_extras;

}  // namespace

// Strides and contiguity as torch counts them: dimensions of size 1 do not matter.
uint16_t contiguous_flags(Sizes sizes, Sizes strides) {
  int64_t expected = 1;
  bool odd = false, gaps = false, empty = false;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (strides[d] != expected) {
      odd = true;
      gaps |= sizes[d] != 1;
    }
    empty |= sizes[d] == 0;
    expected = int64_t(uint64_t(expected) * uint64_t(std::max<int64_t>(sizes[d], 1)));
  }
  if (gaps && !empty) return 0;
  return odd ? Tensor::CONTIGUOUS | Tensor::ODD_STRIDES : Tensor::CONTIGUOUS;
}

Extra* extra_of(Tensor* t) {
  if (!t->extra) {
    if (!free_extras.empty()) {
      t->extra = free_extras.back();
      free_extras.pop_back();
      *t->extra = {};
    } else {
      t->extra = new Extra{};
    }
  }
  return t->extra;
}

void free_extra(Extra* extra) {
  if (REUSES_FREED) free_extras.push_back(extra);
  else delete extra;
}

// The product, counting a size of zero as one for `overflow`: then any sizes of a tensor can be multiplied,
// which is done all over.
static int64_t product_of(Sizes sizes, bool& overflow) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t s : sizes) {
    if (s < 0) {
      fail(PyExc_RuntimeError,
           "Trying to create tensor with negative dimension " + std::to_string(s) + ": " + sizes_text(sizes));
    }
    empty |= s == 0;
    overflow |= __builtin_mul_overflow(n, s + (s == 0), &n);
  }
  return empty ? 0 : n;
}

int64_t numel_of(Sizes sizes) {
  bool overflow = false;
  int64_t n = product_of(sizes, overflow);
  if (overflow) {
    // A zero in time keeps the bytes countable, and only the strides are not.
    bool bytes = false;
    for (uint64_t count = 1; int64_t s : sizes) bytes |= __builtin_mul_overflow(count, uint64_t(s), &count);
    if (bytes || n) {
      fail(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=" + sizes_text(sizes));
    }
    fail(PyExc_RuntimeError, "Stride calculation overflowed");
  }
  return n;
}

void fail_overflow(Sizes wrapped) {
  bool overflow = false;
  product_of(wrapped, overflow);  // refuses what is negative
  fail(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=" + sizes_text(wrapped));
}

int64_t view_numel(Sizes sizes) {
  bool overflow = false;
  int64_t n = product_of(sizes, overflow);
  if (overflow) fail(PyExc_RuntimeError, "numel: integer multiplication overflow");
  return n;
}

int64_t bytes_reached(Sizes sizes, Sizes strides, int64_t offset, int itemsize) {
  uint64_t count = uint64_t(offset) + 1, bytes = 0;  // unsigned, as torch's, whose refusals follow from it
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); d++) {
    if (sizes[d] == 0) return 0;
    uint64_t reach;
    overflow |= __builtin_mul_overflow(uint64_t(strides[d]), uint64_t(sizes[d]) - 1, &reach);
    overflow |= __builtin_add_overflow(count, reach, &count);
  }
  overflow |= __builtin_mul_overflow(count, uint64_t(itemsize), &bytes);
  if (overflow || bytes > uint64_t(INT64_MAX)) {
    fail(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=" + sizes_text(sizes) +
                                 " and strides=" + sizes_text(strides));
  }
  return int64_t(bytes);
}

int64_t farthest(Sizes sizes, Sizes strides, int64_t offset) {
  for (size_t d = 0; d < sizes.size(); d++) {
    int64_t reach;
    if (__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) ||
        __builtin_add_overflow(offset, reach, &offset))
      return -1;
  }
  return offset;
}

std::string sizes_text(Sizes sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); i++) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

void contiguous_strides(Sizes sizes, int64_t* strides) {
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    // Sizes whose product does not fit are refused by numel_of, but perhaps only after this.
    if (sizes[d] > 1) stride = int64_t(uint64_t(stride) * uint64_t(sizes[d]));
  }
}

bool is_dense(Sizes sizes, Sizes strides) {
  // Sort dimensions by stride; each must step exactly over the ones inside it.
  int order[MAX_DIMS], n = 0;
  for (size_t d = 0; d < sizes.size(); d++) {
    if (sizes[d] == 0) return true;
    if (sizes[d] > 1) order[n++] = int(d);
  }
  for (int i = 1; i < n; i++) {
    for (int j = i; j > 0 && strides[order[j]] < strides[order[j - 1]]; j--)
      std::swap(order[j], order[j - 1]);
  }
  int64_t expected = 1;
  for (int i = 0; i < n; i++) {
    if (strides[order[i]] != expected) return false;
    expected *= sizes[order[i]];
  }
  return true;
}

void fail_too_many_dims(size_t ndim) {
  failf(PyExc_RuntimeError, "tensors have at most %d dimensions, but got %zu", MAX_DIMS, ndim);
}

static void set_geometry(Tensor* t, Sizes sizes, Sizes strides, int64_t numel) {
  size_t n = sizes.size();
  int64_t* old = t->geometry;
  t->geometry = n <= 4 ? t->room : static_cast<int64_t*>(std::malloc(2 * n * sizeof(int64_t)));
  if (!t->geometry) {
    t->geometry = old;
    throw std::bad_alloc();
  }
  std::copy(sizes.begin(), sizes.end(), t->geometry);
  for (size_t d = 0; d < n; d++) {
    // A stride that is never taken may be any number, as unfold() and as_strided() make them: such a one is
    // cut to what can still be counted in bytes.
    bool taken = numel && sizes[d] > 1;
    t->geometry[n + d] = taken ? strides[d] : std::clamp(strides[d], -(int64_t(1) << 56), int64_t(1) << 56);
  }
  uint16_t contiguous = t->is_lazy() ? 0 : contiguous_flags(sizes, strides);
  if (old && old != t->room) std::free(old);  // perhaps the sizes and strides that were given
  t->ndim = uint8_t(n);
  t->numel = numel;
  t->flags = uint16_t((t->flags & ~(Tensor::CONTIGUOUS | Tensor::ODD_STRIDES)) | contiguous);
}

// The same where there are few dimensions, some elements and nothing is amiss, which is nearly always: one
// walk over both. False, and nothing done, otherwise.
static bool set_small_geometry(Tensor* t, Sizes sizes, Sizes strides) {
  constexpr int64_t FAR = int64_t(1) << 56;
  size_t n = sizes.size();
  if (n > 4 || (t->geometry && t->geometry != t->room)) return false;
  int64_t room[8], numel = 1;
  bool amiss = t->is_lazy(), odd = false, gaps = false;
  for (size_t d = n; d-- > 0;) {
    int64_t size = sizes[d], stride = strides[d];
    amiss |= size <= 0 || stride > FAR || stride < -FAR;
    odd |= stride != numel;
    gaps |= stride != numel && size != 1;
    amiss |= __builtin_mul_overflow(numel, size, &numel);
    room[d] = size;
    room[n + d] = stride;
  }
  if (amiss) return false;
  t->geometry = t->room;
  std::copy_n(room, 2 * n, t->room);
  t->ndim = uint8_t(n);
  t->numel = numel;
  uint16_t contiguous = gaps ? 0 : odd ? Tensor::CONTIGUOUS | Tensor::ODD_STRIDES : Tensor::CONTIGUOUS;
  t->flags = uint16_t((t->flags & ~(Tensor::CONTIGUOUS | Tensor::ODD_STRIDES)) | contiguous);
  return true;
}

void set_geometry(Tensor* t, Sizes sizes, Sizes strides) {
  if (set_small_geometry(t, sizes, strides)) return;
  if (sizes.size() > MAX_DIMS) fail_too_many_dims(sizes.size());
  set_geometry(t, sizes, strides, view_numel(sizes));
}

// A new tensor on the CPU of few dimensions and some elements, as nearly all are; empty otherwise.
static TensorRef new_small_tensor(Sizes sizes, DType dtype) {
  size_t n = sizes.size();
  if (n > 4 || is_rare(dtype)) return {};
  int64_t room[8], numel = 1, nbytes;
  bool amiss = false;
  for (size_t d = n; d-- > 0;) {
    room[d] = sizes[d];
    room[n + d] = numel;
    amiss |= sizes[d] <= 0 || __builtin_mul_overflow(numel, sizes[d], &numel);
  }
  if (amiss || __builtin_mul_overflow(numel, int64_t(dtype_size(dtype)), &nbytes)) return {};
  TensorRef t(allocate_tensor());
  t->dtype = dtype;
  t->geometry = t->room;
  std::copy_n(room, 2 * n, t->room);
  t->ndim = uint8_t(n);
  t->numel = numel;
  t->flags = modes.inference ? Tensor::CONTIGUOUS | Tensor::INFERENCE : Tensor::CONTIGUOUS;
  t->storage = new_storage(size_t(nbytes), Device{});
  return t;
}

TensorRef new_tensor(Sizes sizes, DType dtype, Device device) {
  if (device == Device{}) {
    if (TensorRef small = new_small_tensor(sizes, dtype)) return small;
  }
  int64_t strides[MAX_DIMS];
  if (sizes.size() > MAX_DIMS) fail_too_many_dims(sizes.size());
  contiguous_strides(sizes, strides);
  return new_strided(sizes, {strides, sizes.size()}, dtype, device);
}

[[noreturn]] static void no_such_device(Device device) {
  std::string name = device_type_name(device.type);
  for (char& c : name) c = char(std::toupper(c));
  if (name == "CUDA" || name == "XPU")
    fail(PyExc_AssertionError, "Torch not compiled with " + name + " enabled");
  fail(PyExc_NotImplementedError, "Could not run 'aten::empty.memory_format' with arguments from the '" +
                                      name + "' backend.\n\nThere are tensors on 'cpu' and on 'meta' only.");
}

void check_linked(Device device) {
  if (device.type <= DeviceType::cuda) return;
  std::string name = device_type_name(device.type);
  if (name == "xpu") no_such_device(device);
  fail(PyExc_RuntimeError, "PyTorch is not linked with support for " + name + " devices");
}

TensorRef new_strided(Sizes sizes, Sizes strides, DType dtype, Device device) {
  if (device == Device{} && !is_rare(dtype)) {
    TensorRef t(allocate_tensor());
    t->dtype = dtype;
    int64_t nbytes;
    if (set_small_geometry(t.get(), sizes, strides) &&
        !__builtin_mul_overflow(t->numel, int64_t(dtype_size(dtype)), &nbytes)) {
      t->storage = new_storage(size_t(nbytes), device);
      if (modes.inference) t->flags |= Tensor::INFERENCE;
      return t;
    }
  }
  if (device.type >= DeviceType::cuda) no_such_device(device);
  int64_t numel = numel_of(sizes), nbytes;
  if (__builtin_mul_overflow(numel, int64_t(dtype_size(dtype)), &nbytes)) {
    fail(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=" + sizes_text(sizes));
  }
  if (is_rare(dtype)) note_rare_dtype(dtype);
  if (sizes.size() > MAX_DIMS) fail_too_many_dims(sizes.size());
  TensorRef t(allocate_tensor());
  t->dtype = dtype;
  set_geometry(t.get(), sizes, strides, numel);
  t->storage = new_storage(size_t(nbytes), device);
  if (modes.inference) t->flags |= Tensor::INFERENCE;
  return t;
}

void share_counter(const Tensor* t, Tensor* alias) {
  if (!t->extra || !t->extra->counter) return;
  extra_of(alias)->counter = t->extra->counter;
  incref(t->extra->counter);
  own_counters++;
}

namespace {

TensorRef alias_with(Tensor* t, Sizes sizes, Sizes strides, int64_t offset, uint16_t lazy) {
  TensorRef alias(allocate_tensor());
  alias->dtype = t->dtype;
  alias->flags = uint16_t((t->flags & (Tensor::INFERENCE | Tensor::DATA_ALIAS | Tensor::SPREAD)) | lazy);
  set_geometry(alias.get(), sizes, strides);
  alias->offset = offset;
  alias->storage = t->storage;
  incref(t->storage);
  if (own_counters) [[unlikely]]
    share_counter(t, alias.get());
  return alias;
}

}  // namespace

TensorRef new_alias(Tensor* t) {
  // Every saved value is such an alias: copy the geometry without checking it again. One test for both.
  if ((t->ndim > 4) | (t->flags & Tensor::LAZY)) return new_alias(t, t->sizes(), t->strides(), t->offset);
  TensorRef alias(allocate_tensor());
  alias->dtype = t->dtype;
  alias->flags = t->flags & (Tensor::INFERENCE | Tensor::DATA_ALIAS | Tensor::CONTIGUOUS |
                             Tensor::ODD_STRIDES | Tensor::SPREAD);
  alias->ndim = t->ndim;
  alias->numel = t->numel;
  alias->offset = t->offset;
  alias->geometry = alias->room;
  std::memcpy(alias->room, t->room, sizeof t->room);  // all of it: four moves and no loop
  alias->storage = t->storage;
  incref(t->storage);
  if (own_counters) [[unlikely]]
    share_counter(t, alias.get());
  return alias;
}

TensorRef new_alias(Tensor* t, Sizes sizes, Sizes strides, int64_t offset) {
  TensorRef alias = alias_with(t, sizes, strides, offset, 0);
  if (t->is_lazy()) set_lazy(alias.get(), t->flags & Tensor::LAZY);
  return alias;
}

TensorRef new_view(Tensor* t, Sizes sizes, Sizes strides, int64_t offset) {
  TensorRef view = alias_with(t, sizes, strides, offset, t->flags & Tensor::LAZY);
  Extra* extra = extra_of(view.get());
  Tensor* base = t->extra && t->extra->base && t->extra->differentiable_view ? t->extra->base : t;
  Py_INCREF(base->object());
  base->held_by++;
  extra->base = base;
  extra->differentiable_view = true;
  extra->view_version = counter_of(t)->version;
  return view;
}

TensorRef raw_alias(Tensor* t) { return alias_with(t, t->sizes(), t->strides(), t->offset, 0); }

void set_lazy(Tensor* t, uint16_t bits) {
  if (t->is_lazy() && t->extra && !t->extra->differentiable_view) set_held(t->extra->base, nullptr);
  t->flags = uint16_t((t->flags & ~(Tensor::LAZY | Tensor::CONTIGUOUS | Tensor::ODD_STRIDES)) | bits);
  if (!bits) {
    t->flags |= contiguous_flags(t->sizes(), t->strides());
  } else if (!t->base()) {
    // Every lazy tensor has a base, so that what looks for views finds it. This one is nobody's view: its
    // base is not the tensor it came from, to which a graph that saved it must not lead back.
    TensorRef raw = raw_alias(t);
    Extra* extra = extra_of(t);
    extra->differentiable_view = false;
    set_held(extra->base, raw.release());
  }
}

uint16_t loose_bit(const Tensor* t) {
  if (t->dtype != DType::b1 || !t->numel || t->is_meta()) return 0;
  // Between the first element and the last there may be others' bytes; then it is loose without need.
  int64_t last = 0;
  for (int d = 0; d < t->ndim; d++) last += (t->size(d) - 1) * t->stride(d);
  auto* byte = reinterpret_cast<const uint8_t*>(t->address());
  uint8_t seen = 0;
  for (int64_t i = 0; i <= last; i++) seen |= byte[i];
  return seen > 1 ? Tensor::LOOSE : 0;
}

void fail_unresolved() { fail(PyExc_SystemError, "the memory of a lazy view was about to be read as it is"); }

void dense_strides(Sizes sizes, const int64_t (*steps)[MAX_DIMS], int count, int64_t* strides) {
  int order[MAX_DIMS], ndim = int(sizes.size());
  // Whether a steps more than b: 1, less: -1, or nobody can tell: 0, because it is broadcast there.
  auto compare = [&](int a, int b) {
    for (int k = 0; k < count; k++) {
      int64_t sa = steps[k][a], sb = steps[k][b];
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa < sb ? -1 : 1;
      if (sizes[size_t(a)] > sizes[size_t(b)]) return 1;
    }
    return 0;
  };
  // torch's insertion sort, innermost first: a pair that cannot be told apart does not end the search.
  for (int i = 0; i < ndim; i++) order[i] = ndim - 1 - i;
  for (int i = 1; i < ndim; i++) {
    int at = i;
    for (int d = i - 1; d >= 0; d--) {
      int order_of = compare(order[d], order[at]);
      if (order_of < 0) break;
      if (order_of > 0) std::swap(order[d], order[std::exchange(at, d)]);
    }
  }
  int64_t step = 1;
  for (int i = 0; i < ndim; i++) {
    strides[order[i]] = step;
    // Sizes whose product does not fit are refused by numel_of, but only after this.
    step = int64_t(uint64_t(step) * uint64_t(std::max<int64_t>(sizes[size_t(order[i])], 1)));
  }
}

TensorRef bytes_on(Storage* storage) {
  TensorRef t(allocate_tensor());
  int64_t size = int64_t(storage->nbytes), stride = 1;
  t->dtype = DType::u8;
  t->storage = storage;
  set_geometry(t.get(), Sizes(&size, 1), Sizes(&stride, 1));
  return t;
}

TensorRef empty_like(Tensor* t, DType dtype) { return empty_like(t, dtype, t->device()); }

TensorRef empty_like(Tensor* t, DType dtype, Device device) {
  if (t->is_contiguous() && t->numel) {
    TensorRef made = new_tensor(t->sizes(), dtype, device);
    if (std::ranges::equal(made->strides(), t->strides())) return made;  // else one of a size 1 has its own
  }
  if (t->numel == 0 || is_dense(t->sizes(), t->strides()))
    return new_strided(t->sizes(), t->strides(), dtype, device);
  int64_t steps[1][MAX_DIMS], strides[MAX_DIMS];
  std::ranges::copy(t->strides(), steps[0]);
  dense_strides(t->sizes(), steps, 1, strides);
  return new_strided(t->sizes(), {strides, t->ndim}, dtype, device);
}

bool same_sizes(const Tensor* a, const Tensor* b) {
  if (a->ndim != b->ndim) return false;
  for (int d = 0; d < a->ndim; d++) {
    if (a->geometry[d] != b->geometry[d]) return false;
  }
  return true;
}

uint32_t own_counters = 0;

bool counts_writes(const Tensor* t) {
  if (!(t->flags & Tensor::INFERENCE)) return true;
  return t->extra && t->extra->counter && !(t->extra->base && t->extra->differentiable_view);
}

void drop_counter(Extra* extra) {
  if (!extra->counter) return;
  decref(std::exchange(extra->counter, nullptr));
  own_counters--;
}

Storage* count_apart(Tensor* t) {
  Extra* extra = extra_of(t);
  drop_counter(extra);
  own_counters++;
  return extra->counter = new_storage(0, t->storage->device);
}

void change_storage(Tensor* t, Storage* to, uint32_t known) {
  incref(to);
  Storage* old = std::exchange(t->storage, to);
  if (old != to && counter_of(t) == to) {
    Storage* counter = to;
    if (to->refs != known + 1) counter = count_apart(t);  // somebody else counts there
    counter->version = old->version;
    counter->silent_version = old->silent_version;
    if (old->refs > 1 || any_twins) make_twins(old, counter);  // views of the old memory count along
  }
  decref(old);
}

void note_write(Tensor* t) {
  Storage *s = t->storage, *counter = counter_of(t);
  bool silent = t->flags & Tensor::DATA_ALIAS;
  // Bytes that inference mode laid out as another dtype, of a tensor from outside: torch counts no write.
  bool uncounted = t->flags & Tensor::INFERENCE && t->base() && !t->extra->differentiable_view &&
                   !(t->base()->flags & Tensor::INFERENCE);
  if (silent | uncounted) [[unlikely]]
    s->silent_version++;
  counter->version += !uncounted;
  if (any_twins) count_for_twins(counter);
  Source now = current_source();
  if (now.code != s->written.code) {
    drop(s->written);
    s->written = keep(now);
  }
  s->written.lasti = now.lasti;
  s->written.operation = 0;
  t->flags &= uint16_t(~Tensor::ORIGIN_INHERITED);
}

namespace {

void copy_memory(Tensor* to, Tensor* from) {
  Operands operands;
  operands.add(to);
  operands.add_broadcast(from, to->sizes());
  if (is_rare(to->dtype) || is_rare(from->dtype)) [[unlikely]] {
    RareCast cast{to->dtype, from->dtype};
    return run_elementwise(cast_rare, operands, to->sizes(), &cast);
  }
  run_elementwise(elementwise_table().copy[int(to->dtype)][int(from->dtype)], operands, to->sizes());
}

// to = conj(from), -from or both, for `to` and `from` of one dtype that are not lazy; may be the same.
void apply_lazy(Tensor* to, Tensor* from, uint16_t bits) {
  if (!bits || bits & Tensor::ZERO) {  // a zero has no sign to turn
    if (to != from) copy_memory(to, from);
    return;
  }
  if (bits & Tensor::LOOSE) {
    TensorRef bytes = raw_alias(from);
    bytes->dtype = DType::u8;
    copy_memory(to, bytes.get());
    from = to;
  }
  for (auto [bit, name] : {std::pair(Tensor::CONJ, "conj"), std::pair(Tensor::NEG, "neg")}) {
    if (!(bits & bit)) continue;
    Loop loop = find_elementwise(name)->loops[int(to->dtype)];
    if (!loop && to->dtype == DType::c32) {  // through a copy in complex64; what is written there is not lazy
      TensorRef wide = cast(from, DType::c64);
      apply_lazy(wide.get(), wide.get(), bit);
      copy_memory(to, wide.get());
      from = to;
      continue;
    }
    if (!loop) {
      failf(PyExc_NotImplementedError, "\"%s_cpu\" not implemented for '%s'", name,
            dtype_class_name(to->dtype));
    }
    Operands operands;
    operands.add(to);
    operands.add_broadcast(from, to->sizes());
    run_elementwise(loop, operands, to->sizes());
    from = to;
  }
}

void copy_lazy(Tensor* to, Tensor* from) {
  TensorRef raw_to = raw_alias(to), raw_from = raw_alias(from);
  uint16_t bits = (to->flags ^ from->flags) & Tensor::LAZY;
  if (to->dtype != from->dtype) {
    raw_from = resolved(from);
    bits = to->flags & Tensor::LAZY;
  }
  if (bits && to->dtype == from->dtype) return apply_lazy(raw_to.get(), raw_from.get(), bits);
  copy_memory(raw_to.get(), raw_from.get());
  apply_lazy(raw_to.get(), raw_to.get(), bits);
}

}  // namespace

void copy_into(Tensor* to, Tensor* from) {
  bool lazy = (to->flags | from->flags) & Tensor::LAZY;
  if (to->is_meta() | (to->numel == 0) | lazy) {
    if (lazy && !to->is_meta() && to->numel) copy_lazy(to, from);
    return;
  }
  copy_memory(to, from);
}

TensorRef resolved(Tensor* t) {
  if (!t->is_lazy()) return share(t);
  TensorRef result = empty_like(t, t->dtype);
  TensorRef raw = raw_alias(t);
  if (!t->is_meta() && t->numel) apply_lazy(result.get(), raw.get(), t->flags & Tensor::LAZY);
  return result;
}

TensorRef cast(Tensor* t, DType dtype) {
  if (t->dtype == dtype) return share(t);
  TensorRef result = empty_like(t, dtype);
  copy_into(result.get(), t);
  return result;
}

TensorRef contiguous(Tensor* t) {
  if (t->is_contiguous()) return share(t);
  TensorRef result = new_tensor(t->sizes(), t->dtype, t->device());
  copy_into(result.get(), t);
  return result;
}

TensorRef stable(Tensor* t) {
  PyThreadState* first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  TensorRef dense = contiguous(t);
  return dense.get() == t && PyThreadState_Next(first) ? clone(t) : dense;
}

TensorRef clone(Tensor* t) {
  TensorRef result = empty_like(t, t->dtype);
  copy_into(result.get(), t);
  return result;
}

void fill(Tensor* t, const void* element) {
  if (t->is_meta() | (t->numel == 0) | t->is_lazy()) {
    if (t->is_meta() || t->numel == 0) return;
    TensorRef one = new_tensor({}, t->dtype), raw = raw_alias(t);
    std::memcpy(one->data(), element, size_t(t->itemsize()));
    apply_lazy(one.get(), one.get(), t->flags & Tensor::LAZY);
    return fill(raw.get(), one->data());
  }
  Operands operands;
  operands.add(t);
  run_elementwise(elementwise_table().fill[int(t->dtype)], operands, t->sizes(), element);
}

TensorRef zeros(Sizes sizes, DType dtype, Device device) {
  TensorRef t = new_tensor(sizes, dtype, device);
  if (t->storage->data) std::memset(t->storage->data, 0, t->storage->nbytes);
  return t;
}

void broadcast_into(Shape& shape, Sizes other) {
  int n = int(other.size());
  if (int before = shape.ndim; n > before) {
    shape.resize(other.size());
    std::copy_backward(shape.sizes, shape.sizes + before, shape.sizes + n);
    std::fill(shape.sizes, shape.sizes + n - before, 1);
  }
  for (int i = 1; i <= n; i++) {
    int64_t& mine = shape.sizes[shape.ndim - i];
    int64_t theirs = other[n - i];
    if (mine == theirs || theirs == 1) continue;
    if (mine != 1) {
      failf(
          PyExc_RuntimeError,
          "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d",
          (long long)mine, (long long)theirs, shape.ndim - i);
    }
    mine = theirs;
  }
}

void broadcast_strides(const Tensor* t, Sizes sizes, int64_t* strides) {
  int shift = int(sizes.size()) - t->ndim;
  for (int d = 0; d < int(sizes.size()); d++) {
    strides[d] = d < shift || (t->size(d - shift) == 1 && sizes[d] != 1) ? 0 : t->stride(d - shift);
  }
}

}  // namespace rl
