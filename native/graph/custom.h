// Nodes of user-defined Functions, and what they share with the plain ones.
//
// A FunctionNode is the `ctx` of torch.autograd.Function: the object that `forward` and `backward` get is the
// node itself. Its type and `apply` live in python/custom_function.cpp; node.cpp frees it, engine.cpp runs
// it.
#pragma once
#include "node.h"

namespace rl {

// An object that waited in a free list, or slept, has its first reference again. _Py_NewReference would also
// tell tracemalloc, which saw the memory when it was first allocated.
inline void revive(PyObject* o) {
#ifdef Py_REF_DEBUG
  _Py_NewReference(o);
#else
  Py_SET_REFCNT(o, 1);
#endif
}

// One bit per argument or output; more than 64 go to the heap.
struct Bits {
  uint64_t word;
  uint64_t* more;
  void resize(size_t n) {
    delete[] more;
    more = n > 64 ? new uint64_t[(n - 1) / 64]() : nullptr;
    word = 0;
  }
  uint64_t& part(size_t i) { return i < 64 ? word : more[i / 64 - 1]; }
  void set(size_t i) { part(i) |= uint64_t(1) << (i % 64); }
  bool operator[](size_t i) { return part(i) >> (i % 64) & 1; }
};

struct FunctionNode : Node {
  PyObject* attributes;  // __dict__
  PyObject* to_save;     // what save_for_backward was given, until forward is over
  PyObject* saved_for_forward;
  PyObject* non_differentiable;
  PyObject* dirty;
  PyObject* needs_input_grad;  // tuple of bools, one per argument
  int32_t* saved_output;       // per saved value: which output it is, or -1; null if none is
  uint32_t argument_count;
  Bits tensor_arguments, tensor_outputs, differentiable_outputs;
  bool keep_undefined;            // set_materialize_grads(False)
  bool keep_undefined_constants;  // the same for outputs marked as not differentiable
  bool pure_view;                 // _is_pure_view: in-place writes see a view as any other
  bool clears;                    // clear_saved_tensors_on_access: they can be read once
  bool accessed;                  // ... and were
};

// Source::operation of a storage that was written through a view.
constexpr uint32_t THROUGH_VIEW = UINT32_MAX;

inline FunctionNode* as_function(Node* node) { return static_cast<FunctionNode*>(node); }

// node.cpp
void init_node(Node* node, Node::Kind kind, Primitive* op, uint32_t edges, uint16_t saved);
void node_dealloc(PyObject* self);
int node_traverse(PyObject* self, visitproc visit, void* arg);
int node_clear(PyObject* self);
PyTypeObject* node_class(const std::string& name);  // borrowed
uint64_t next_node_number();                        // of the next node that is recorded

// hooks.cpp: Node.register_prehook's hooks. run_prehooks runs those of the tensors, which see a gradient also
// if it is only captured.
void run_node_prehooks(Node* node, Tensor** grads);

// engine.cpp: about the innermost backward of this thread. Its number (0: none runs), whether it will reach a
// node, and what to call at its end.
uint64_t current_run();
bool will_run(Node* node);
void call_when_done(PyObject* callback);
// The same for what must be put back even if the run fails.
void put_back_when_done(PyObject* callback);
Node* running_node();                      // whose hooks or derivative are at work, or null
bool all_runs_accumulate();                // false inside grad() and backward(inputs=...)
extern thread_local bool enforces_layout;  // of gradients, that of their leaf
std::vector<Node*> execution_order();      // all nodes of the run, borrowed
bool run_keeps_graph();
bool run_accumulates();  // into .grad, that is: backward() and not grad()

// custom_function.cpp
void clear_function(FunctionNode* node);
int visit_function(FunctionNode* node, visitproc visit, void* arg);
void apply_function(Node* node, Tensor* const* grads, std::vector<TensorRef>& results, Tensor** given);

// history.cpp: t was written by `node`, whose input number `at` it is. `nr`: which output of the node.
void rewrite_history(Tensor* t, Ref<Node> node, uint32_t at, uint32_t nr);

// history.cpp: t has a new grad_fn; if it retains its gradient, the new one fills it in from now on.
void move_retained(Tensor* t, Node* from);

// graph_inspect.cpp: Note [names of variants]
constexpr uint16_t NAMED_VARIANTS = 8;  // in Primitive::options
void name_variant(Node* node, PyObject* const* args, bool in_place);
Primitive* renamed(Primitive* op, const std::string& name);
// The name of a sum or product by a number, and of a conjugate, in the form that torch's derivatives call.
void name_number_form(Node* node, PyObject* const* args);
// The operation that wrote to memory leaves its stamp there (Source::operation): the name of its node, null
// if it was not recorded. `stamp_write`: t was written by what is its grad_fn now.
const std::string* stamped_by(uint32_t stamp);
void stamp_write(Tensor* t);
// Note [names of composed operations]: names the nodes of a result's tensors that are no older than `since`.
// `kept`: a dict of what torch would save of the call, or null. `args`: what it was called with; `all`: next
// functions has a place for each of these; `written`: where the one that was written in place came from.
void name_nodes(PyObject* result, const char* name, uint64_t since, PyObject* kept,
                std::span<PyObject* const> args = {}, bool all = false, Edge written = {nullptr, 0});
// Note [what composed operations keep]: (alias, version, accumulator or None).
Ref<PyObject> kept_tensor(Tensor* t);
// A view of what such an operation computed on the way is no view to the user.
void hide_inner_view(PyObject* result, std::span<PyObject* const> args);
// The edges that lead out of a composed operation; false if the node is none. Borrowed.
bool outer_edges(const Node* node, std::vector<Edge>& found);

// profiler.cpp: notes what happens between its construction and its end, if that is wanted.
extern bool profiler_running;  // in whatever thread
inline bool profiling() { return profiler_running; }
struct Timing {
  explicit Timing(std::string name, int scope = 1);
  ~Timing();
  Timing(const Timing&) = delete;
  void note_arguments(Tensor* const* grads, size_t count) const;  // of what a node is given
  int index;
};

// primitive.cpp: keeps a tensor for backward, through the saved-tensor hooks if there are any. An output of
// the node that saves it is kept without its history.
void check_savable(const Tensor* t);  // refuses tensors of inference mode
Saved save_tensor(Tensor* t, bool keep_history, Node* by = nullptr);
Saved save_alias(Tensor* t, bool keep_history);
// What is kept of a leaf counts as something that holds it, as the view or the tensor that torch saves does
// (Tensor::held_by). The graph holds it anyway, so no new loop is closed.
void hold_leaf(Tensor* alias, Tensor* leaf);
inline Saved save_itself(Tensor* t) {
  t->flags |= Tensor::SAVED;
  t->saved_by++;
  return {Py_NewRef(t->object()), counter_of(t)->version, t->storage->silent_version};
}

// A node gives a saved value up, or part of it: the tensors there are counted as saved once less.
inline void uncount_saved(PyObject* o) {
  if (is_plain_tensor(o) || (PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE) && is_tensor(o))) {
    if (as_tensor(o)->saved_by) as_tensor(o)->saved_by--;
  } else if (PyTuple_CheckExact(o)) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(o); k++) uncount_saved(PyTuple_GET_ITEM(o, k));
  }
}
inline void release(Saved& saved) {
  PyObject* o = std::exchange(saved.object, nullptr);
  if (!o) return;
  uncount_saved(o);
  Py_DECREF(o);
}

// saved_hooks.cpp. A value that went through a pack hook is kept as a Packed object.
extern thread_local bool hooks_active __attribute__((tls_model("initial-exec")));
inline bool saved_hooks_active() { return hooks_active; }

// Puts the thread's hooks back as they were: what a hook enters or leaves while a backward runs ends with it.
class KeptHooks {
 public:
  KeptHooks();
  ~KeptHooks();
  KeptHooks(const KeptHooks&) = delete;

 private:
  std::vector<std::pair<Ref<PyObject>, Ref<PyObject>>> before;
};
bool is_packed(PyObject* o);
extern bool any_packed;  // whether a hook has ever packed anything
uint64_t packed_number(PyObject* packed);
Ref<PyObject> pack_with_current_hooks(Tensor* t, bool keep_history, Node* by);
// What is unpacked gets the tangent of `from`, the value that was packed.
void share_packed_tangent(Tensor* from, PyObject* packed);
// `out` >= 0: the value is that output of `node`.
Ref<PyObject> unpack_packed(Node* node, PyObject* packed, int out);
// To be called before t is written in place; tells who watches (allow_mutation_on_saved_tensors).
void announce_write(Tensor* t);

}  // namespace rl
