// The tensor: this struct *is* the Python object `rushlight.Tensor`.
//
// Owns: one reference to its Storage, to its grad_fn and to what hangs on `extra`. Geometry (sizes, then
// strides, in elements) sits inside the object up to four dimensions. What only few tensors have (a base, a
// gradient, hooks) sits in `Extra`, so that a one-element tensor costs 168 bytes and its storage record 64.
// Start with `Tensor` and `new_tensor`; `new_view` makes a tensor on another's storage.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <span>

#include "../kernels/kernels.h"
#include "storage.h"

namespace rl {

struct Node;
struct Tensor;
using TensorRef = Ref<Tensor>;
using Sizes = std::span<const int64_t>;

// How a view came to be; decides which in-place writes torch forbids (see Note [views and in-place],
// graph/history.cpp).
enum class ViewOrigin : uint8_t { ordinary, no_grad, multi_output, inference, custom };

struct Extra {
  Tensor* base;           // owned; the tensor this one is a view of (never itself a view), or null
  Tensor* grad;           // owned
  Node* accumulator;      // borrowed, or asleep here (Note [sleeping accumulators], graph/node.cpp)
  PyObject* hooks;        // owned dict of a leaf's hooks, or null
  PyObject* post_hooks;   // owned dict of post-accumulate hooks, or null
  Source cut;             // where the graph was cut (detach, no_grad)
  uint32_t view_version;  // storage version for which a view's grad_fn is right
  ViewOrigin origin;
  bool differentiable_view;  // false for detach(): shares memory, not history
  uint8_t grad_dtype;        // of a leaf's gradient: 0 its own, ANY_DTYPE, or 1 + a dtype
  bool turned;               // by transpose_() and its kin since its steps were kept
  bool dual;                 // its tangent ends with the open level (python/forward_mode.cpp)
  Tensor* tangent;           // owned; forward mode's other half (python/forward_mode.cpp)
  uint64_t tangent_level;    // the dual level it belongs to
  Storage* counter;          // owned; counts its writes instead of its storage, Note [own counters]
  PyObject* steps;  // owned; from the base to a view that strides do not tell, Note [views and in-place]
};

[[noreturn]] void fail_unresolved();  // a lazy view was read as if it were none

struct Tensor {
  enum Flag : uint16_t {
    REQUIRES_GRAD = 1,  // a leaf that wants a gradient; tensors with a grad_fn require grad without it
    CONTIGUOUS = 2,
    RETAINS_GRAD = 4,
    INFERENCE = 8,
    DATA_ALIAS = 16,  // came from `.data`: its writes are also counted as silent ones
    CUT_NO_GRAD = 32,
    CUT_DETACH = 64,
    ORIGIN_INHERITED = 128,  // storage->written is the line of the tensor this one was computed from
    CONJ = 256,              // reads as the conjugate of what its memory holds
    NEG = 512,               // reads as the negative of what its memory holds
    SAVED = 1024,            // a node kept the object itself, Note [what is saved itself], primitive.cpp
    LOOSE = 2048,            // a bool on foreign bytes: any but 0 reads as true
    HELD = 4096,             // is another tensor's gradient or base, Note [loops], python/collector.cpp
    ODD_STRIDES = 8192,      // contiguous, but dimensions of size 1 have strides that no new tensor has
    SPREAD = 16384,          // a gradient that is one number for many elements; in torch each has its own
    ZERO = 32768,            // all zeros for good: torch's ZeroTensor, Note [lazy views]
    LAZY = CONJ | NEG | LOOSE | ZERO,  // see Note [lazy views], python/lazy_views.cpp
  };

  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  Storage* storage;
  int64_t offset;  // in elements
  int64_t numel;
  uint8_t ndim;
  DType dtype;
  uint16_t flags;
  uint32_t output_nr;  // which output of grad_fn this is
  // What holds the tensor apart from Python code, as torch's use count has it.
  uint32_t saved_by;  // values saved by nodes
  uint32_t held_by;   // views whose base it is, and the tensor whose gradient it is
  int64_t* geometry;  // sizes then strides; points to `room` up to 4 dimensions
  int64_t room[8];
  Node* grad_fn;
  Extra* extra;

  Sizes sizes() const { return {geometry, ndim}; }
  Sizes strides() const { return {geometry + ndim, ndim}; }
  int64_t size(int d) const { return geometry[d]; }
  int64_t stride(int d) const { return geometry[ndim + d]; }
  // Contiguous, and what is read is what the memory holds: never true of a lazy view.
  bool is_contiguous() const { return flags & CONTIGUOUS; }
  bool is_lazy() const { return flags & LAZY; }
  bool requires_grad() const { return grad_fn || (flags & REQUIRES_GRAD); }
  Tensor* base() const { return extra ? extra->base : nullptr; }
  Device device() const { return storage->device; }
  bool is_meta() const { return storage->device.type == DeviceType::meta; }
  int itemsize() const { return dtype_size(dtype); }
  // Where the elements are. Code that reads or writes elements must not be given a lazy view; a build with
  // the address sanitizer checks that. `address` is for those who only want to know where.
  char* data() const {
#ifdef __SANITIZE_ADDRESS__
    if (is_lazy()) fail_unresolved();
#endif
    return address();
  }
  char* address() const { return static_cast<char*>(storage->data) + offset * itemsize(); }
  template <class T>
  T* data_as() const {
    return reinterpret_cast<T*>(data());
  }
  Span span() const { return {storage->data ? data() : nullptr, dtype, ndim, geometry, geometry + ndim}; }
  PyObject* object() { return reinterpret_cast<PyObject*>(this); }
};

// What Tensor.grad_dtype says of the gradients of a leaf: those of any dtype, or of which.
constexpr uint8_t ANY_DTYPE = 255;
inline bool takes_any_gradient(const Tensor* t) { return t->extra && t->extra->grad_dtype == ANY_DTYPE; }
inline DType gradient_dtype(const Tensor* t) {
  uint8_t set = t->extra && t->extra->grad_dtype != ANY_DTYPE ? t->extra->grad_dtype : 0;
  return set ? DType(set - 1) : t->dtype;
}

extern PyTypeObject* TensorType;      // rushlight.Tensor
extern PyTypeObject* TensorBaseType;  // its base
extern PyTypeObject* ParameterType;   // rushlight.nn.Parameter once it exists, else null

inline bool is_plain_tensor(PyObject* o) { return Py_TYPE(o) == TensorType || Py_TYPE(o) == ParameterType; }
inline bool is_tensor(PyObject* o) { return is_plain_tensor(o) || PyType_IsSubtype(Py_TYPE(o), TensorType); }
inline Tensor* as_tensor(PyObject* o) { return reinterpret_cast<Tensor*>(o); }

// A tensor object without storage and geometry; the caller fills both at once.
Tensor* allocate_tensor();
Extra* extra_of(Tensor* t);  // made if there is none yet
// The owner's base or gradient becomes t (owned) or nothing.
inline void set_held(Tensor*& slot, Tensor* t) {
  if (t) t->held_by++;
  Tensor* before = std::exchange(slot, t);
  if (!before) return;
  before->held_by--;
  Py_DECREF(before->object());
}

// Uninitialised memory, contiguous.
TensorRef new_tensor(Sizes sizes, DType dtype, Device device = {});
// Throws what torch says of tensors that are brought to a device it was built without.
void check_linked(Device device);
// Uninitialised memory with the given strides (which must be non-overlapping and dense).
TensorRef new_strided(Sizes sizes, Sizes strides, DType dtype, Device device = {});
// A second tensor on t's storage, without history and without being a view.
TensorRef new_alias(Tensor* t);
TensorRef new_alias(Tensor* t, Sizes sizes, Sizes strides, int64_t offset);
// A view of t: the same, but it knows its base and shares its history when recorded.
TensorRef new_view(Tensor* t, Sizes sizes, Sizes strides, int64_t offset);
// Layout like t's if t is dense and non-overlapping, else dense with the dimensions in the order of its
// strides.
TensorRef empty_like(Tensor* t, DType dtype);
TensorRef bytes_on(Storage* storage);  // all of it, as a tensor that takes over the reference
TensorRef empty_like(Tensor* t, DType dtype, Device device);
// Strides of a dense tensor whose dimensions are in the order that most of `count` lists of strides agree on.
void dense_strides(Sizes sizes, const int64_t (*steps)[MAX_DIMS], int count, int64_t* strides);

void set_geometry(Tensor* t, Sizes sizes, Sizes strides);
uint16_t contiguous_flags(Sizes sizes, Sizes strides);  // CONTIGUOUS, with ODD_STRIDES or without, or none
void contiguous_strides(Sizes sizes, int64_t* strides);
bool is_dense(Sizes sizes, Sizes strides);  // non-overlapping and without gaps
int64_t numel_of(Sizes sizes);              // throws on negative sizes and on overflow
int64_t view_numel(Sizes sizes);            // the same, in the words for memory that is there
std::string sizes_text(Sizes sizes);        // "[2, 3]"
bool same_sizes(const Tensor* a, const Tensor* b);

// Counts a write to t's memory and remembers the user's line.
void note_write(Tensor* t);

// Note [own counters]
// Writes are counted with the memory. A tensor that was given memory which others see too (`x.data = y`) goes
// on counting its own writes, apart from theirs: on an empty record, which its views and aliases share. So do
// `x.data` itself and the pieces of unsafe_split, from 0 on.
extern uint32_t own_counters;
inline Storage* counter_of(const Tensor* t) {
  if (own_counters && t->extra && t->extra->counter) [[unlikely]]
    return t->extra->counter;
  return t->storage;
}
// t moves to other memory, to which `known` references are of no tensor that counts its writes.
void change_storage(Tensor* t, Storage* to, uint32_t known);
Storage* count_apart(Tensor* t);  // from zero; the counter
void drop_counter(Extra* extra);

// Copies b into a (same sizes, any dtypes and strides); a contiguous or cast copy; scalars.
void copy_into(Tensor* to, Tensor* from);
TensorRef cast(Tensor* t, DType dtype);  // t itself if it has that dtype
TensorRef contiguous(Tensor* t);         // t itself if it is
// The same, but a copy where another thread could write to t: what is checked of it stays so.
TensorRef stable(Tensor* t);
TensorRef clone(Tensor* t);                 // keeps dense strides
void fill(Tensor* t, const void* element);  // one element of t's dtype
TensorRef zeros(Sizes sizes, DType dtype, Device device = {});

// Lazy views, see Note [lazy views], python/lazy_views.cpp.
void set_lazy(Tensor* t, uint16_t bits);  // makes t one that reads so (0: as its memory is)
uint16_t loose_bit(const Tensor* t);      // LOOSE if t is a bool and has bytes other than 0 and 1
TensorRef raw_alias(Tensor* t);           // what the memory under t holds
TensorRef resolved(Tensor* t);  // t itself if it is not lazy, else its values in memory of their own

[[noreturn]] void fail_too_many_dims(size_t ndim);

// Sizes (or strides, or dimensions) that are being put together. It grows by `resize`, `append` and `assign`,
// which refuse what has no room, and by nothing else.
// Says of sizes of which one has overflowed what torch says, whose arithmetic wraps.
[[noreturn]] void fail_overflow(Sizes wrapped);

struct Shape {
  int ndim = 0;
  int64_t sizes[MAX_DIMS];
  operator Sizes() const { return {sizes, size_t(ndim)}; }
  void resize(size_t n) {  // the caller writes what is new
    if (n > MAX_DIMS) [[unlikely]]
      fail_too_many_dims(n);
    ndim = int(n);
  }
  void append(int64_t size) {
    resize(size_t(ndim) + 1);
    sizes[ndim - 1] = size;
  }
  void assign(Sizes s) {
    resize(s.size());
    std::copy(s.begin(), s.end(), sizes);
  }
};
// The result shape of broadcasting; throws torch's error naming sizes and dimension.
void broadcast_into(Shape& shape, Sizes other);
// Strides (in elements) that read t as if it had `sizes`.
void broadcast_strides(const Tensor* t, Sizes sizes, int64_t* strides);

}  // namespace rl
