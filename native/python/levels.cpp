#include "levels.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "../graph/dispatching.h"
#include "../graph/modes.h"
#include "elementwise_ops.h"
#include "forwards.h"
#include "functions.h"
#include "tensor_type.h"

namespace rl {

PyTypeObject* leveled_type = nullptr;
int64_t leveled_alive = 0;

namespace {

struct Level {
  enum Kind : int { gradients, tangents, batch, tape };  // tape: what is computed is written down (linearize)
  bool differentiates() const { return kind == gradients || kind == tangents; }
  uint64_t number = 0;  // used again only for batches of one size, see Note [the steps of vmap]
  Kind kind = gradients;
  int64_t size = 0;                  // of the batch
  PyObject* randomness = nullptr;    // interned str, lives for ever: what random functions do in a batch
  bool grad = true, forward = true;  // what was recorded and carried outside
  bool inference = false;            // whether that was in inference mode, which a transform leaves
};

// Those at work in this thread, from the outside in; and those below which something is being computed, which
// is not to see them.
thread_local std::vector<Level> levels, suspended;
uint64_t last_number = 0;
// Owned: (primitive, arguments, which are batched, size, number, whether in place) -> what it computes.
PyObject* batcher = nullptr;
Py_ssize_t value_at, number_at, batched_at;  // where class Leveled keeps them

PyObject*& slot(Tensor* t, Py_ssize_t offset) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(t) + offset);
}
Tensor* value_of(Tensor* t) {
  PyObject* value = slot(t, value_at);
  if (!value || !is_tensor(value)) fail(PyExc_RuntimeError, "a tensor of a level has lost its value");
  return as_tensor(value);
}
bool is_batched_there(Tensor* t) { return slot(t, batched_at) == Py_True; }
uint64_t number_of_level(Tensor* t) {
  PyObject* number = slot(t, number_at);
  if (!number || !PyLong_CheckExact(number)) return 0;
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  return value < 0 || overflow ? 0 : uint64_t(value);
}

// Where the level stands among those that are at work, or -1.
int64_t place_of(uint64_t number) {
  for (size_t i = levels.size(); i-- > 0;) {
    if (levels[i].number == number) return int64_t(i);
  }
  return -1;
}
int64_t place_of(Tensor* t) { return place_of(number_of_level(t)); }

// The level at a place that was found before: a collection may have run since, and ended a generator that
// held a level.
const Level& level_at(int64_t place) {
  if (place < 0 || size_t(place) >= levels.size()) fail(PyExc_RuntimeError, "there is no such level");
  return levels[size_t(place)];
}

[[noreturn]] void fail_escaped() {
  fail(
      PyExc_RuntimeError,
      "Either your tensor may have escaped from inside a function being vmapped and this is a user error "
      "(see "
      "https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal functorch error in "
      "`gen_vmap_plumbing` Please file an issue if it looks like the latter");
}

// Whether a whole batch would be taken for one example: it belongs to a `vmap` that has ended.
bool escaped(Tensor* t) {
  for (; is_leveled(t) && place_of(t) < 0; t = value_of(t)) {
    uint64_t number = number_of_level(t);
    auto waits = [number](const Level& level) { return level.number == number; };
    if (is_batched_there(t) && std::ranges::none_of(suspended, waits)) return true;
  }
  return false;
}

// Behind tensors of levels that have ended.
Tensor* living(Tensor* t) {
  while (is_leveled(t) && place_of(t) < 0) t = value_of(t);
  return t;
}

}  // namespace

TensorRef wrap_at_level(Tensor* value, PyObject* number, bool batched) {
  if (!leveled_type) fail(PyExc_RuntimeError, "there is no class of leveled tensors");
  if (batched && value->ndim == 0) fail(PyExc_RuntimeError, "a batch has a dimension for its examples");
  size_t first = batched ? 1 : 0;
  int64_t none = 0;
  TensorRef whole = new_tensor({&none, 1}, value->dtype, {DeviceType::meta});
  set_geometry(whole.get(), value->sizes().subspan(first), value->strides().subspan(first));
  TensorRef made = as_subclass(whole.get(), leveled_type);
  made->offset = value->offset;  // a view is where it is on its base
  Device device = is_leveled(value) ? claimed_device(value->storage) : value->device();
  if (device.type != DeviceType::meta) claim_device(made->storage, device);
  slot(made.get(), value_at) = Py_NewRef(value->object());
  slot(made.get(), number_at) = Py_NewRef(number);
  slot(made.get(), batched_at) = Py_NewRef(batched ? Py_True : Py_False);
  return made;
}

namespace {

bool is_on_tape(Tensor* t) {
  int64_t place = place_of(t);
  return place >= 0 && levels[size_t(place)].kind == Level::tape;
}

// Recording and tangents as they were below a level, and nothing to be seen of it and those above.
class Below {
 public:
  explicit Below(size_t place) : before(modes), place(place), outer(suspended.size()) {
    const Level& level = level_at(int64_t(place));
    modes.grad = modes.grad && level.grad;
    modes.forward = level.forward;
    modes.inference = modes.inference && level.inference;
    modes.unrecorded = false;
    suspended.insert(suspended.end(), levels.begin() + long(place), levels.end());
    levels.resize(place);
  }
  ~Below() {
    modes.grad = before.grad;
    modes.forward = before.forward;
    modes.inference = before.inference;
    modes.unrecorded = before.unrecorded;
    if (levels.size() > place) levels.resize(place);
    levels.insert(levels.end(), suspended.begin() + long(outer), suspended.end());
    suspended.resize(outer);
  }
  Below(const Below&) = delete;

 private:
  Modes before;
  size_t place, outer;
};

// How deep tensors may lie in tuples and lists: a list may contain itself.
constexpr int DEPTH = 8;

// The tuple or list as a tuple, which nobody can change meanwhile; empty for anything else.
Ref<PyObject> sequence(PyObject* o, int depth) {
  if (depth == 0 || (!PyTuple_Check(o) && !PyList_Check(o))) return {};
  return PyTuple_Check(o) ? share(o) : checked(PyList_AsTuple(o));
}

// The same with something else for every element.
template <class F>
Ref<PyObject> mapped(PyObject* tuple, F&& f) {
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  Ref<PyObject> made = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(made.get(), i, f(PyTuple_GET_ITEM(tuple, i)).release());
  return made;
}

// The highest level of any tensor in there, or -1; `ended`: whether one belongs to a level that has ended.
int64_t highest(PyObject* o, bool& ended, int depth = DEPTH) {
  if (is_leveled(o)) {
    int64_t place = place_of(as_tensor(o));
    if (place >= 0) return place;
    ended = true;
    if (escaped(as_tensor(o))) fail_escaped();
    Tensor* t = living(as_tensor(o));
    return is_leveled(t) ? place_of(t) : -1;
  }
  int64_t found = -1;
  if (depth == 0 || (!PyTuple_Check(o) && !PyList_Check(o))) return found;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
    found = std::max(found, highest(PySequence_Fast_GET_ITEM(o, i), ended, depth - 1));
  return found;
}

Ref<PyObject> raised(PyObject* o, int64_t place, bool lifts, int depth = DEPTH) {
  if (is_tensor(o)) {
    Tensor* t = living(as_tensor(o));
    if (!lifts || (is_leveled(t) && place_of(t) == place)) return share(t->object());
    Ref<PyObject> number = checked(PyLong_FromUnsignedLongLong(level_at(place).number));
    return Ref<PyObject>(wrap_at_level(t, number.get(), false).release_object());
  }
  if (!PyTuple_Check(o) || depth == 0) return share(o);
  return mapped(o, [&](PyObject* one) { return raised(one, place, lifts, depth - 1); });
}

// The innermost level of derivatives, or -1: what is computed there is of that level, also of constants
// alone, so that it may be written with tensors of the level. Views are as their base: what was captured
// stays it.
int64_t innermost_derivative() {
  for (size_t i = levels.size(); i-- > 0;) {
    if (levels[i].differentiates()) return int64_t(i);
  }
  return -1;
}

// Whether what an operation makes belongs to that level too: not views, nor what classes of their own compute
// or answer for, as those of sparse tensors.
bool joins_derivative(const Primitive& op, PyObject* const* args) {
  if (op.options & Primitive::VIEW || real_forward(op) == python_forward) return false;
  auto plain = [](PyObject* o) { return !is_tensor(o) || is_leveled(o) || !dispatches(as_tensor(o)); };
  for (int i = 0; i < op.input_count; i++) {
    if (!plain(args[i])) return false;
    if (!(op.list_inputs >> i & 1) || !PyTuple_Check(args[i])) continue;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args[i]); k++) {
      if (!plain(PyTuple_GET_ITEM(args[i], k))) return false;
    }
  }
  return true;
}

Ref<PyObject> tuple_of(PyObject* const* values, size_t count) {
  Ref<PyObject> tuple = checked(PyTuple_New(Py_ssize_t(count)));
  for (size_t i = 0; i < count; i++) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), Py_NewRef(values[i]));
  return tuple;
}

// rushlight/func/_linearize.py keeps what is written down.
Ref<PyObject> tapes() { return checked(PyImport_ImportModule("rushlight.func._linearize")); }

// A tape holds what its steps read: it is told before that changes.
void tell_tapes(Tensor* written) {
  std::vector<uint64_t> told;  // what is called may begin and end levels
  for (const Level& level : levels) {
    if (level.kind == Level::tape) told.push_back(level.number);
  }
  for (uint64_t number : told) {
    checked(PyObject_CallMethod(tapes().get(), "before_write", "KO", (unsigned long long)number,
                                written->object()));
  }
}

[[noreturn]] void refuse_write(const Primitive& op, PyObject* const* args, const Level& level) {
  if (level.kind == Level::batch) refuse_batch_write(op, args, level.size, &level - levels.data() + 1);
  refuse_captured_write(op, args);
}

// Whoever differentiates must see every write: what was there before the function began is not written in it.
void check_captured(const Primitive& op, PyObject* const* args) {
  if (!is_tensor(args[0])) return;
  for (int64_t at = int64_t(levels.size()) - 1; at >= 0; at--) {
    if (!level_at(at).differentiates()) continue;
    Tensor* self = living(as_tensor(args[0]));
    while (is_leveled(self) && place_of(self) > at) self = living(value_of(self));
    if (is_leveled(self) && place_of(self) == at) continue;
    if (is_part_of_operation(op, args)) return;
    refuse_captured_write(op, args);
  }
}

// What stands for o at the level, in tuples and lists too.
Ref<PyObject> lowered(PyObject* o, uint64_t number, int depth = DEPTH) {
  if (is_leveled(o) && number_of_level(as_tensor(o)) == number)
    return share(value_of(as_tensor(o))->object());
  Ref<PyObject> tuple = sequence(o, depth);
  if (!tuple) return share(o);
  return mapped(tuple.get(), [&](PyObject* one) { return lowered(one, number, depth - 1); });
}

Ref<PyObject> wrapped(PyObject* o, PyObject* number, bool batched, int depth = DEPTH) {
  if (is_tensor(o)) return Ref<PyObject>(wrap_at_level(as_tensor(o), number, batched).release_object());
  Ref<PyObject> tuple = sequence(o, depth);
  if (!tuple) return share(o);
  return mapped(tuple.get(), [&](PyObject* one) { return wrapped(one, number, batched, depth - 1); });
}

// An argument below a level of batches, and whether (of a list: which of it) is batched.
Ref<PyObject> split(PyObject* o, uint64_t number, Ref<PyObject>& batched, int depth = DEPTH) {
  if (is_leveled(o) && number_of_level(as_tensor(o)) == number) {
    Tensor* value = value_of(as_tensor(o));
    batched = share(is_batched_there(as_tensor(o)) ? Py_True : Py_False);
    if (batched.get() == Py_True && value->ndim == 0)
      fail(PyExc_RuntimeError, "a batch has lost its examples");
    return share(value->object());
  }
  Ref<PyObject> tuple = sequence(o, depth);
  if (!tuple) {
    batched = share(Py_False);
    return share(o);
  }
  batched = checked(PyTuple_New(PyTuple_GET_SIZE(tuple.get())));
  Py_ssize_t i = 0;
  return mapped(tuple.get(), [&](PyObject* one) {
    Ref<PyObject> flag, value = split(one, number, flag, depth - 1);
    PyTuple_SET_ITEM(batched.get(), i++, flag.release());
    return value;
  });
}

bool is_any_true(PyObject* flags) {
  if (!PyTuple_Check(flags)) return flags == Py_True;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(flags); i++) {
    if (is_any_true(PyTuple_GET_ITEM(flags, i))) return true;
  }
  return false;
}

// A batch with dimensions of size 1 behind its first, so that its examples have `rank` of them.
Ref<PyObject> padded(Tensor* t, int rank) {
  static Primitive& view = primitive("view");
  Shape sizes;
  sizes.append(t->size(0));
  for (int d = t->ndim - 1; d < rank; d++) sizes.append(1);
  for (int d = 1; d < t->ndim; d++) sizes.append(t->size(d));
  Ref<PyObject> size(size_object(sizes));
  PyObject* args[] = {t->object(), size.get()};
  return checked(call(view, args));
}

// A tensor that all examples share, as a batch of one.
Ref<PyObject> in_front(Tensor* t) {
  static Primitive& view = primitive("view");
  Shape sizes;
  sizes.append(1);
  for (int64_t n : t->sizes()) sizes.append(n);
  Ref<PyObject> size(size_object(sizes));
  PyObject* args[] = {t->object(), size.get()};
  return checked(call(view, args));
}

// Loops over elements, of tensors of one dtype: examples that have fewer dimensions than others get more.
// Empty for everything else.
Ref<PyObject> elementwise_in_batch(const Primitive& op, PyObject* const* args, const Level& level) {
  if (real_forward(op) != elementwise_forward) return {};
  Ref<PyObject> held[MAX_ARGS];
  PyObject* inner[MAX_ARGS];
  int rank = 0;
  Tensor* first = nullptr;
  bool batched[MAX_ARGS] = {}, any = false;
  for (size_t i = 0; i < op.args.size(); i++) {
    inner[i] = args[i];
    if (!is_tensor(args[i])) continue;
    if (int(i) >= op.input_count) return {};
    Tensor* t = as_tensor(args[i]);
    if (is_leveled(t) && number_of_level(t) == level.number) {
      any |= batched[i] = is_batched_there(t);
      t = value_of(t);
      if (batched[i] && t->ndim == 0) return {};
      inner[i] = t->object();
    }
    if (first && first->dtype != t->dtype) return {};
    first = t;
    rank = std::max(rank, t->ndim - int(batched[i]));
  }
  if (!any || rank >= MAX_DIMS) return {};
  for (size_t i = 0; i < op.args.size(); i++) {
    // In a batch of gradients, whose level says nothing of random numbers, torch makes a view of what all
    // examples share; who walks the graph of the gradients finds it.
    bool viewed = recording() && !batched[i] && is_tensor(inner[i]) && as_tensor(inner[i])->ndim &&
                  as_tensor(inner[i])->requires_grad() && !PyUnicode_GET_LENGTH(level.randomness);
    if (!viewed && (!batched[i] || as_tensor(inner[i])->ndim - 1 == rank)) continue;
    held[i] = viewed ? in_front(as_tensor(inner[i])) : padded(as_tensor(inner[i]), rank);
    inner[i] = held[i].get();
  }
  return checked(call(const_cast<Primitive&>(op), inner));
}

Ref<PyObject> in_batch(const Primitive& op, PyObject* const* args, Tensor* out, size_t place,
                       PyObject* number) {
  const Level level = level_at(int64_t(place));
  Below below{place};
  if (!out) {
    if (Ref<PyObject> result = elementwise_in_batch(op, args, level))
      return wrapped(result.get(), number, true);
  }
  auto count = Py_ssize_t(op.args.size());
  Ref<PyObject> values = checked(PyTuple_New(count)), batched = checked(PyTuple_New(count));
  bool any = false;
  for (Py_ssize_t i = 0; i < count; i++) {
    Ref<PyObject> flag;
    PyTuple_SET_ITEM(values.get(), i, split(args[i], level.number, flag).release());
    any |= is_any_true(flag.get());
    PyTuple_SET_ITEM(batched.get(), i, flag.release());
  }
  if (!any) {  // constants of the level alone
    auto& called = const_cast<Primitive&>(op);
    PyObject** given = &PyTuple_GET_ITEM(values.get(), 0);
    if (out) return Py_DECREF(call_in_place(called, given)), share(out->object());
    return wrapped(checked(call(called, given)).get(), number, false);
  }
  Ref<PyObject> written;
  if (out && recording() && is_tensor(PyTuple_GET_ITEM(values.get(), 0))) {
    // What is recorded of the result keeps the old values.
    static Primitive& clone = primitive("clone");
    written = share(PyTuple_GET_ITEM(values.get(), 0));
    PyObject* old = checked(call(clone, &PyTuple_GET_ITEM(values.get(), 0))).release();
    PyTuple_SET_ITEM(values.get(), 0, old);
    Py_DECREF(written.get());
  }
  Ref<PyObject> size = checked(PyLong_FromLongLong(level.size));
  PyObject* call_args[] = {
      const_cast<Primitive&>(op).object(), values.get(), batched.get(), size.get(), number,
      out && !written ? Py_True : Py_False};
  Ref<PyObject> result = checked(PyObject_Vectorcall(batcher, call_args, 6, nullptr));
  if (written) {
    static Primitive& copy = primitive("copy");
    PyObject* copy_args[] = {written.get(), result.get()};
    Py_DECREF(checked(call_in_place(copy, copy_args)).release());
  }
  return out ? share(out->object()) : wrapped(result.get(), number, true);
}

}  // namespace

bool inside_levels() { return !levels.empty(); }
bool transforming() {
  return std::ranges::any_of(levels, [](const Level& level) {
    return level.differentiates() || PyUnicode_GET_LENGTH(level.randomness);
  });
}

Raised::Raised(const Primitive& op, PyObject* const* given, bool in_place) : args(given) {
  bool ended = false;
  int64_t place = -1;
  size_t count = op.args.size();
  for (size_t i = 0; i < count; i++) place = std::max(place, highest(given[i], ended));
  if (in_place && !levels.empty()) {
    check_captured(op, given);
    if (is_tensor(given[0])) tell_tapes(as_tensor(given[0]));
  }
  if (!in_place && !levels.empty() && joins_derivative(op, given))
    place = std::max(place, innermost_derivative());
  if (place < 0 && !ended) return;
  for (size_t i = 0; i < count; i++) {
    bool lifts = place >= 0 && int(i) < op.input_count;
    if (in_place && i == 0 && lifts) {
      Tensor* self = living(as_tensor(given[0]));
      if (!is_leveled(self) || place_of(self) != place) refuse_write(op, given, level_at(place));
    }
    made[i] = raised(given[i], place, lifts);
    room[i] = made[i].get();
  }
  args = room;
}

Ref<PyObject> at_level(const Primitive& op, PyObject* const* args, Tensor* out) {
  bool ended = false;
  int64_t place = -1;
  size_t count = op.args.size();
  for (size_t i = 0; i < count; i++) place = std::max(place, highest(args[i], ended));
  if (place < 0) return {};
  uint64_t number = levels[size_t(place)].number;
  Ref<PyObject> shown = checked(PyLong_FromUnsignedLongLong(number));
  if (level_at(place).kind == Level::batch) return in_batch(op, args, out, size_t(place), shown.get());
  PyObject* inner[MAX_ARGS];
  Ref<PyObject> held[MAX_ARGS];
  for (size_t i = 0; i < count; i++) {
    held[i] = lowered(args[i], number);
    inner[i] = held[i].get();
  }
  Ref<PyObject> result;
  bool written_down = level_at(place).kind == Level::tape;
  {
    Below below{size_t(place)};
    auto& called = const_cast<Primitive&>(op);
    if (written_down) {
      result = checked(PyObject_CallMethod(tapes().get(), "record", "OOOO", shown.get(), called.object(),
                                           tuple_of(inner, count).get(), out ? Py_True : Py_False));
    } else {
      result = checked(out ? call_in_place(called, inner) : call(called, inner));
    }
  }
  if (out) return share(out->object());
  return wrapped(result.get(), shown.get(), false);
}

TensorRef made_at_level(Tensor* t, const std::function<TensorRef(Tensor*)>& make) {
  TensorRef held = share(living(t));
  if (!is_leveled(held.get())) return make(held.get());
  Ref<PyObject> number = share(slot(held.get(), number_at));
  TensorRef value = share(value_of(held.get()));
  bool batched = is_batched_there(held.get());
  TensorRef made;
  {
    Below below{size_t(place_of(held.get()))};
    made = make(value.get());
  }
  return wrap_at_level(made.get(), number.get(), batched);
}

TensorRef same_at_level(Tensor* t) {
  TensorRef same = as_subclass(t, leveled_type);
  for (Py_ssize_t at : {value_at, number_at, batched_at}) slot(same.get(), at) = Py_XNewRef(slot(t, at));
  return same;
}

TensorRef detached_at_level(Tensor* t) {
  TensorRef same = same_at_level(t);
  if (is_on_tape(t)) return same;
  Ref<PyObject> value = checked(PyObject_CallMethod(value_of(t)->object(), "detach", nullptr));
  Py_XSETREF(slot(same.get(), value_at), value.release());
  return same;
}

Tensor* lowest(Tensor* t) {
  while (is_leveled(t)) t = value_of(t);
  return t;
}

bool takes_examples(Tensor* into, Tensor* source) {
  for (; is_leveled(source); source = value_of(source)) {
    if (!is_batched_there(source) || place_of(source) < 0) continue;
    Tensor* at = into;
    while (is_leveled(at) && number_of_level(at) != number_of_level(source)) at = value_of(at);
    if (!is_leveled(at) || !is_batched_there(at)) return false;
  }
  return true;
}

TensorRef with_examples(Tensor* t, Tensor* source) {
  static Primitive& where = primitive("where");
  Ref<PyObject> ones = checked(PyObject_CallMethod(source->object(), "new_ones", "(())"));
  Ref<PyObject> all = checked(PyObject_CallMethod(ones.get(), "bool", nullptr));
  PyObject* args[] = {all.get(), t->object(), t->object()};
  return TensorRef(as_tensor(checked(call(where, args)).release()));
}

void check_data_at_level(Tensor* t) {
  t = living(t);
  if (!is_leveled(t)) return;
  const Level& level = levels[size_t(place_of(t))];
  if (level.kind == Level::batch && PyUnicode_GET_LENGTH(level.randomness))
    fail(PyExc_RuntimeError, "accessing `data` under vmap transform is not allowed");
}

void refuse_new_data(Tensor* t) {
  int64_t place = is_leveled(t) ? place_of(t) : -1;
  bool batch = place >= 0 && levels[size_t(place)].kind == Level::batch;
  failf(PyExc_RuntimeError, "mutating directly with `.data` %s is not allowed.",
        batch ? "under vmap transform" : "inside functorch transform");
}

bool in_batch_of_gradients() {
  return !levels.empty() && levels.back().kind == Level::batch &&
         !PyUnicode_GET_LENGTH(levels.back().randomness);
}

void check_drawing(const Primitive& op) {
  for (size_t i = levels.size(); i-- > 0;) {
    if (levels[i].kind != Level::batch) continue;
    const char* randomness = PyUnicode_AsUTF8(levels[i].randomness);
    if (!randomness) throw PythonError{};
    check_randomness(op, randomness);
  }
}

void refuse_reading(Tensor* t, const char* operation) {
  while (is_leveled(t) && (place_of(t) < 0 || !is_batched_there(t))) t = value_of(t);
  if (!is_leveled(t)) return;
  if (!PyUnicode_GET_LENGTH(levels[size_t(place_of(t))].randomness)) {
    failf(PyExc_RuntimeError,
          "Batching rule not implemented for %s. We could not generate a fallback.\n\n"
          "  The gradients of a batch are computed together, so that nothing may depend on the value of one.",
          operation);
  }
  if (std::strcmp(operation, "aten::item") == 0) {
    fail(PyExc_RuntimeError,
         "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() "
         "on "
         "a Tensor, please try to rewrite what you're doing with other operations. If error is occurring "
         "somewhere inside PyTorch internals, please file a bug report.");
  }
  fail(PyExc_RuntimeError,
       "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
       "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues .");
}

Ref<PyObject> item_at_level(Tensor* t) {
  refuse_reading(t, "aten::item");
  if (is_on_tape(t))
    fail(PyExc_NotImplementedError,
         "linearize: a derivative reads a number of a tangent, which differs with every tangent");
  return checked(number_of(value_of(t)).to_python());
}

namespace {

Tensor* tensor_given(PyObject* o) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

Py_ssize_t offset_of(PyObject* cls, const char* name) {
  Ref<PyObject> member = checked(PyObject_GetAttrString(cls, name));
  if (!Py_IS_TYPE(member.get(), &PyMemberDescr_Type)) failf(PyExc_TypeError, "%s is no slot", name);
  return reinterpret_cast<PyMemberDescrObject*>(member.get())->d_member->offset;
}

// set_leveled_type(cls, batcher): the class of tensors of a level, and who computes in batches.
PyObject* py_set_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyType_Check(args[0]) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(args[0]), TensorType))
      fail(PyExc_TypeError, "set_leveled_type: a class of tensors expected");
    value_at = offset_of(args[0], "value");
    number_at = offset_of(args[0], "level");
    batched_at = offset_of(args[0], "batched");
    Py_XSETREF(batcher, Py_NewRef(args[1]));
    Py_XSETREF(leveled_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(args[0])));
    Py_RETURN_NONE;
  });
}

// push_level(kind, size, randomness, again=0) -> number: a transform begins; 0: grad, 1: jvp, 2: vmap, 3: a
// tape. `again`: the number of a batch of this size that has ended, whose tensors are to be alive once more.
PyObject* py_push(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if ((n != 3 && n != 4) || !leveled_type)
      fail(PyExc_TypeError, "push_level(kind, size, randomness, again=0) expected");
    long kind = PyLong_AsLong(args[0]);
    long long size = PyLong_AsLongLong(args[1]);
    if (PyErr_Occurred()) throw PythonError{};
    if (kind < 0 || kind > 3) fail(PyExc_ValueError, "push_level: no such kind");
    const char* randomness = PyUnicode_AsUTF8(args[2]);
    if (!randomness) throw PythonError{};
    PyObject* known = nullptr;
    for (const char* one : {"", "error", "same", "different"}) {
      if (!std::strcmp(one, randomness)) known = checked(PyUnicode_InternFromString(one)).release();
    }
    if (!known) fail(PyExc_ValueError, "push_level: no such randomness");
    uint64_t number = n == 4 ? PyLong_AsUnsignedLongLong(args[3]) : 0;
    if (PyErr_Occurred()) throw PythonError{};
    auto taken = [number](const Level& level) { return level.number == number; };
    if (!number || number > last_number || std::ranges::any_of(levels, taken) ||
        std::ranges::any_of(suspended, taken))
      number = ++last_number;
    // A dual level that is opened within is nothing to what is computed below.
    levels.push_back({number, Level::Kind(kind), size, known, modes.grad, carrying(), modes.inference});
    if (levels.back().differentiates()) modes.inference = false;
    return PyLong_FromUnsignedLongLong(number);
  });
}

// pop_level(number): it ends, if it has not, and whatever began within.
PyObject* py_pop(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    int64_t place = place_of(PyLong_AsUnsignedLongLong(number));
    if (PyErr_Occurred()) throw PythonError{};
    if (place >= 0) {
      modes.inference = levels[size_t(place)].inference;
      levels.resize(size_t(place));
    }
    Py_RETURN_NONE;
  });
}

// top_level() -> (number, kind, size, randomness), or None.
PyObject* py_top(PyObject*, PyObject*) {
  if (levels.empty()) Py_RETURN_NONE;
  const Level& level = levels.back();
  return Py_BuildValue("KiLO", (unsigned long long)level.number, int(level.kind), (long long)level.size,
                       level.randomness);
}

// transforming() -> whether the program transforms a function in this thread.
PyObject* py_transforming(PyObject*, PyObject*) { return PyBool_FromLong(transforming()); }

// all_levels() -> those at work in this thread, from the outside in.
PyObject* py_all(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref<PyObject> list = checked(PyList_New(0));
    for (const Level& level : levels) {
      Ref<PyObject> each = checked(Py_BuildValue("KiLO", (unsigned long long)level.number, int(level.kind),
                                                 (long long)level.size, level.randomness));
      if (PyList_Append(list.get(), each.get()) < 0) throw PythonError{};
    }
    return list.release();
  });
}

// level_depth(number) -> how many levels are at work up to this one, 0 if it has ended.
PyObject* py_depth(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    uint64_t wanted = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) throw PythonError{};
    return PyLong_FromLongLong(place_of(wanted) + 1);
  });
}

// level_about(number) -> (kind, size, randomness) of a level that is at work.
PyObject* py_about(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    uint64_t wanted = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) throw PythonError{};
    for (auto* at : {&levels, &suspended}) {
      for (const Level& level : *at) {
        if (level.number == wanted)
          return Py_BuildValue("iLO", int(level.kind), (long long)level.size, level.randomness);
      }
    }
    fail(PyExc_RuntimeError, "there is no such level");
  });
}

// raise_to_level(tensor, number, batched): a tensor of that level with this value.
PyObject* py_raise(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 3 || !PyLong_Check(args[1]) || !leveled_type)
      fail(PyExc_TypeError, "raise_to_level(tensor, number, batched) expected");
    return wrap_at_level(tensor_given(args[0]), args[1], args[2] == Py_True).release_object();
  });
}

// become_value_of(tensor, other): it stands for what another tensor of its level stands for, which has the
// sizes that it is about to have.
PyObject* py_become(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !is_leveled(args[0]) || !is_leveled(args[1]))
      fail(PyExc_TypeError, "become_value_of(tensor, other) takes two tensors of a level");
    Tensor *to = as_tensor(args[0]), *from = as_tensor(args[1]);
    if (number_of_level(to) != number_of_level(from) || is_batched_there(to) != is_batched_there(from))
      fail(PyExc_RuntimeError, "they are not of one level");
    Py_XSETREF(slot(to, value_at), Py_NewRef(value_of(from)->object()));
    Py_RETURN_NONE;
  });
}

// lower_from_level(object, number): the value of a tensor of that level; everything else as it is.
PyObject* py_lower(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "lower_from_level(object, number) expected");
    uint64_t number = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred()) throw PythonError{};
    PyObject* o = args[0];
    if (is_leveled(o)) o = living(as_tensor(o))->object();
    if (is_leveled(o) && number_of_level(as_tensor(o)) == number) o = value_of(as_tensor(o))->object();
    return Py_NewRef(o);
  });
}

// is_leveled(object)
PyObject* py_is_leveled(PyObject*, PyObject* o) { return PyBool_FromLong(is_leveled(o)); }

// highest_level(objects) -> the number of the highest level of any tensor in a tuple or list, 0 if none.
PyObject* py_highest(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    bool ended = false;
    int64_t place = highest(o, ended);
    return PyLong_FromUnsignedLongLong(place < 0 ? 0 : levels[size_t(place)].number);
  });
}

// living(object): what a tensor of levels that have ended stands for.
PyObject* py_living(PyObject*, PyObject* o) {
  return guarded(
      [&]() -> PyObject* { return Py_NewRef(is_leveled(o) ? living(as_tensor(o))->object() : o); });
}

// below_level(number, function, arguments ...): calls it as operations below that level are called.
PyObject* py_below(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 2) fail(PyExc_TypeError, "below_level(number, function, arguments ...) expected");
    int64_t place = place_of(PyLong_AsUnsignedLongLong(args[0]));
    if (PyErr_Occurred()) throw PythonError{};
    if (place < 0) fail(PyExc_RuntimeError, "there is no such level");
    Below below{size_t(place)};
    return PyObject_Vectorcall(args[1], args + 2, size_t(n - 2), nullptr);
  });
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {{"set_leveled_type", FAST(py_set_type), nullptr},
                           {"push_level", FAST(py_push), nullptr},
                           {"pop_level", py_pop, METH_O, nullptr},
                           {"top_level", py_top, METH_NOARGS, nullptr},
                           {"transforming", py_transforming, METH_NOARGS, nullptr},
                           {"all_levels", py_all, METH_NOARGS, nullptr},
                           {"level_depth", py_depth, METH_O, nullptr},
                           {"level_about", py_about, METH_O, nullptr},
                           {"raise_to_level", FAST(py_raise), nullptr},
                           {"become_value_of", FAST(py_become), nullptr},
                           {"lower_from_level", FAST(py_lower), nullptr},
                           {"is_leveled", py_is_leveled, METH_O, nullptr},
                           {"highest_level", py_highest, METH_O, nullptr},
                           {"living", py_living, METH_O, nullptr},
                           {"below_level", FAST(py_below), nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
