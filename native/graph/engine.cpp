// The backward pass.
//
// run_backward counts, for every node reachable from the roots, how many edges lead to it; then takes ready
// nodes newest first (by sequence number, leaves as soon as they are ready), runs their rules on the gradient
// that has been summed up for them, and adds the results to the nodes their edges name. It runs on the
// calling thread.
//
// Note [run state lives in the nodes]
// Counts and gradient buffers of a run sit in Node::run_info, valid while Node::run is the run's number: no
// hash table on the way. A second run while one is active (a hook that calls backward, another Python thread)
// keeps its state in a table of its own instead.
#include <algorithm>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "../python/collector.h"
#include "../python/forward_mode.h"
#include "../python/levels.h"
#include "../python/primitive.h"
#include "../python/tensor_type.h"
#include "custom.h"
#include "dispatching.h"
#include "errors.h"
#include "modes.h"
#include "reuse.h"
#include "rules.h"

namespace rl {

thread_local bool enforces_layout = true;
void retain_gradient(Tensor* t, Tensor* grad);  // hooks.cpp

namespace {

uint64_t run_count = 0;
bool inline_run_active = false;

bool owned_alone(const Tensor* t) {
  return Py_REFCNT(const_cast<Tensor*>(t)) == 1 && t->storage->refs == 1 &&
         t->storage->kind != Storage::external && !t->requires_grad();
}

// The gradient layout contract: strides of the leaf if it is dense, contiguous otherwise. The gradient has
// other sizes than the leaf where that was given other memory since (`.data = ...`).
bool obeys_layout(const Tensor* grad, const Tensor* leaf) {
  if (!is_dense(leaf->sizes(), leaf->strides())) return grad->is_contiguous();
  if (grad->ndim > leaf->ndim) return false;
  for (int d = 0; d < grad->ndim; d++) {
    bool fits = grad->size(d) == 1 ? grad->stride(d) != 0 : grad->stride(d) == leaf->stride(d);
    if (!fits) return false;
  }
  return true;
}

// Whether the memory of a gradient becomes .grad of a leaf that has none: nobody else may see it.
bool becomes_grad(const Tensor* grad, const Tensor* leaf, bool create_graph) {
  return !create_graph && leaf->requires_grad() && owned_alone(grad) &&
         Py_TYPE(const_cast<Tensor*>(grad)->object()) == TensorType &&
         (!enforces_layout || obeys_layout(grad, leaf));
}

// Without the contract a turned gradient is taken as it lies, if nobody else holds what it is a view of.
bool becomes_grad_turned(const Tensor* grad, const Tensor* leaf) {
  const Tensor* base = grad->base();
  return !enforces_layout && base && leaf->requires_grad() && !grad->requires_grad() && !grad->is_lazy() &&
         Py_REFCNT(const_cast<Tensor*>(grad)) == 1 && Py_REFCNT(const_cast<Tensor*>(base)) == 1 &&
         grad->storage->refs == 2 && grad->storage->kind != Storage::external &&
         Py_TYPE(const_cast<Tensor*>(grad)->object()) == TensorType &&
         is_dense(grad->sizes(), grad->strides());
}

// A gradient that reaches the user says where it was computed without a graph, should somebody differentiate
// it.
void mark_cut(Tensor* grad, Source source) {
  if (Py_REFCNT(grad->object()) > 2 || grad->requires_grad() || grad->storage->written.code) return;
  grad->flags |= Tensor::CUT_NO_GRAD;
  grad->storage->written = keep(source);
}

struct Run {
  uint64_t number = ++run_count;
  bool in_nodes = !inline_run_active;
  bool create_graph, keep_graph, accumulate;
  std::vector<Capture>* captures;
  std::unordered_map<Node*, RunInfo> table;
  std::vector<Node*> visited;      // owned references
  std::vector<Node*> ready;        // heap
  std::vector<TensorRef> results;  // of the node that is running; kept for its memory
  Source source{nullptr, 0};
  std::vector<Ref<PyObject>> callbacks;  // to be called when all is done
  std::vector<Ref<PyObject>> put_back;   // the same, even if it fails
  Run* outer = current;
  uint32_t depth = outer ? outer->depth + 1 : 0;
  Node* running = nullptr;  // with its hooks
  bool delivers = false;    // what grad() was asked for, to its hooks: no node runs
  const std::vector<Root>* roots = nullptr;

  // The innermost run of this thread, for hooks that ask about it.
  static thread_local Run* current __attribute__((tls_model("initial-exec")));

  Run() {
    if (in_nodes) {
      inline_run_active = true;
      swap_room();
    }
    current = this;
  }
  ~Run() {
    current = outer;
    for (Node* node : visited) {
      RunInfo& state = info(node);
      if (state.grads) {
        for (uint32_t i = 0; i < node->output_count; i++)
          Py_XDECREF(reinterpret_cast<PyObject*>(state.grads[i]));
        free_grads(node, state);
      }
      if (in_nodes) node->run = 0;
      Py_DECREF(node->object());
    }
    if (in_nodes) {
      inline_run_active = false;
      visited.clear();
      ready.clear();
      results.clear();
      if (visited.capacity() <= KEPT) swap_room();
    }
  }

  // The memory of the lists waits here for the next run: for a small graph, getting it was a tenth of the
  // time.
  void swap_room() {
    static std::vector<Node*> visited_room, ready_room;
    static std::vector<TensorRef> results_room;
    visited.swap(visited_room);
    ready.swap(ready_room);
    results.swap(results_room);
  }
  static constexpr size_t KEPT = 4096;

  RunInfo& info(Node* node) { return in_nodes ? node->run_info : table[node]; }

  // True if the node was not known to this run yet.
  bool enter(Node* node) {
    if (in_nodes) {
      if (node->run == number) return false;
      node->run = number;
      node->run_info = RunInfo{};
    } else if (!table.emplace(node, RunInfo{}).second) {
      return false;
    }
    Py_INCREF(node->object());
    visited.push_back(node);
    return true;
  }

  Tensor** grads_of(Node* node, RunInfo& state) {
    if (!state.grads) {
      bool room = in_nodes && node->output_count == 1;
      state.grads = room ? &node->grad_room : new Tensor*[node->output_count];
      std::fill_n(state.grads, node->output_count, nullptr);
    }
    return state.grads;
  }
  void free_grads(Node* node, RunInfo& state) {
    if (state.grads != &node->grad_room) delete[] state.grads;
    state.grads = nullptr;
  }

  static bool older(const Node* a, const Node* b) {
    // Leaves first, whichever was ready first, then the newest operation.
    bool la = a->kind == Node::accumulate, lb = b->kind == Node::accumulate;
    return la != lb ? lb : !la && a->sequence < b->sequence;
  }
  void push(Node* node) {
    ready.push_back(node);
    std::push_heap(ready.begin(), ready.end(), older);
  }
  Node* pop() {
    std::pop_heap(ready.begin(), ready.end(), older);
    Node* node = ready.back();
    ready.pop_back();
    return node;
  }

  void discover(const std::vector<Root>& roots);
  void mark_needed();
  void add(const Edge& edge, TensorRef grad);
  void capture(Node* node, Tensor** grads);
  void execute(Node* node);
  void apply_watched(Node* node, Tensor* const* grads, const std::vector<bool>* wanted, Tensor** given);
  void look_for_nan(Node* node);
  template <bool measured>
  void loop();
};

thread_local Run* Run::current = nullptr;

void Run::discover(const std::vector<Root>& roots) {
  std::vector<Node*>& stack = ready;  // nothing is ready yet
  for (const Root& root : roots) {
    if (enter(root.edge.node)) stack.push_back(root.edge.node);
  }
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (uint32_t i = 0; i < node->edge_count; i++) {
      Node* next = node->edges[i].node;
      if (!next) continue;
      if (enter(next)) stack.push_back(next);
      info(next).dependencies++;
    }
  }
}

// With `inputs=`, only nodes on a path to a captured edge run. Those below a node come after it in the order
// in which all could run, so going backwards through it settles who leads to one. Sequence numbers would not
// do: a program can set them.
void Run::mark_needed() {
  std::vector<Node*> order;
  order.reserve(visited.size());
  for (Node* node : visited) {
    if (!info(node).dependencies) order.push_back(node);
  }
  for (size_t at = 0; at < order.size(); at++) {
    for (uint32_t i = 0; i < order[at]->edge_count; i++) {
      Node* next = order[at]->edges[i].node;
      if (next && --info(next).dependencies == 0) order.push_back(next);
    }
  }
  for (Node* node : visited) info(node).needed = false;
  for (size_t c = 0; c < captures->size(); c++) {
    Node* node = (*captures)[c].edge.node;
    if (!node) continue;  // a view made without recording: it requires grad and nothing leads to it
    bool known = in_nodes ? node->run == number : table.count(node) > 0;
    if (!known) continue;
    RunInfo& state = info(node);
    state.needed = true;
    if (state.capture < 0) state.capture = int32_t(c);
  }
  for (size_t at = order.size(); at-- > 0;) {
    bool& needed = info(order[at]).needed;
    for (uint32_t i = 0; i < order[at]->edge_count; i++) {
      if (!order[at]->edges[i].node) continue;
      RunInfo& next = info(order[at]->edges[i].node);
      next.dependencies++;  // as it was
      needed = needed || next.needed;
    }
  }
}

void Run::add(const Edge& edge, TensorRef grad) {
  RunInfo& state = info(edge.node);
  Tensor*& slot = grads_of(edge.node, state)[edge.nr];
  if (!slot) {
    slot = grad.release();
    return;
  }
  static Primitive& plus = primitive("add");
  // Sum into a buffer that only the engine holds; otherwise into a new one. A write into what is there is
  // counted, as in torch; over what arrives the sum is written where torch makes a new one.
  bool dual = carrying() && (tangent_of(slot) || tangent_of(grad.get()));
  if (!create_graph && !dual && !asks_dispatch(slot) && !dispatches(grad.get())) {
    bool same = same_sizes(slot, grad.get()) && slot->dtype == grad->dtype;
    if (same && owned_alone(slot) && (slot->is_contiguous() || is_dense(slot->sizes(), slot->strides()))) {
      PyObject* args[] = {slot->object(), grad->object()};
      Ref<PyObject> sum(plus.forward(plus, args, slot));
      if (!sum) throw PythonError{};
      counter_of(slot)->version++;
      return;
    }
    if (same && owned_alone(grad.get()) && grad->is_contiguous() && lies_in_order(slot)) {
      PyObject* args[] = {slot->object(), grad->object()};
      Ref<PyObject> sum(plus.forward(plus, args, as_new(grad.get())));
      if (!sum) throw PythonError{};
      Py_SETREF(slot, grad.release());
      return;
    }
  }
  PyObject* args[] = {slot->object(), grad->object()};
  // What arrives plus what there is, as in torch; with a dense one in front there is a kernel.
  if (is_any_sparse(slot) && !(create_graph && is_any_sparse(grad.get()))) std::swap(args[0], args[1]);
  Tensor* sum = as_tensor(call(plus, args));
  if (!create_graph) counter_of(sum)->version = 0;  // however many steps it took
  Py_SETREF(slot, sum);
}

// Under the profiler: measures. In anomaly mode: looks for NaN.
void Run::apply_watched(Node* node, Tensor* const* grads, const std::vector<bool>* wanted, Tensor** given) {
  Timing timing(node_name(node));
  timing.note_arguments(grads, node->output_count);
  apply_node(node, grads, results, wanted, given);
  if (!node->extra || !node->extra->posthooks) look_for_nan(node);  // else of what the hooks make of it
}

void Run::look_for_nan(Node* node) {
  for (size_t i = 0; anomaly && anomaly_check_nan && i < results.size(); i++) {
    if (!results[i]) continue;
    refuse_reading(results[i].get(), "aten::item");  // which is how torch asks
    check_for_nan(node, i, results[i].get());
  }
}

// Hands over what has arrived for this node, if it was asked for.
void Run::capture(Node* node, Tensor** grads) {
  show_dense(grads, node->output_count);
  bool leaf = node->kind == Node::accumulate && !accumulate;  // nobody else runs its hooks
  TensorRef hooked = leaf ? share(grads[0]) : TensorRef();
  delivers = leaf;
  if (leaf) run_leaf_hooks(node->leaf(), hooked);
  delivers = false;
  for (Capture& capture : *captures) {
    if (capture.edge.node != node) continue;
    Tensor* grad = leaf ? hooked.get() : grads[capture.edge.nr];
    capture.result = share(grad);
    if (!capture.result) continue;
    if (!create_graph) mark_cut(capture.result.get(), source);
    if (accumulate && node->kind == Node::accumulate) {  // else it could not become .grad itself
      capture.result = {};
      continue;
    }
    bool retained = capture.into && capture.into->flags & Tensor::RETAINS_GRAD;  // has it from its hook
    if (accumulate && capture.into && !retained) {
      retain_gradient(capture.into, grad);
    }
  }
}

[[gnu::always_inline]] inline void Run::execute(Node* node) {  // into loop: 34 instructions less a node
  RunInfo& state = info(node);
  Tensor** grads = grads_of(node, state);
  bool any = false;
  for (uint32_t i = 0; i < node->output_count; i++) any |= grads[i] != nullptr;
  NodeExtra* extra = node->extra;
  // grad() is given the gradient that arrived where the node goes on to others that are asked for, and what
  // its hooks made of it where it does not.
  bool early = false;
  for (uint32_t i = 0; state.capture >= 0 && !accumulate && !early && i < node->edge_count; i++) {
    early = node->edges[i].node && info(node->edges[i].node).needed;
  }
  if (early) capture(node, grads);
  if (extra && (extra->tensor_hooks || extra->retained)) {
    delivers = state.capture >= 0 && !early && !accumulate;
    run_prehooks(node, grads);
    delivers = false;
  }
  if (state.capture >= 0 && !early) capture(node, grads);
  if (node->kind == Node::accumulate) {
    // Hooks are called also if no gradient arrived; they see None.
    if (accumulate && (!captures || state.capture >= 0)) {
      TensorRef grad(std::exchange(grads[0], nullptr));
      run_leaf_hooks(node->leaf(), grad);
      if (extra && extra->prehooks) {
        grads[0] = grad.release();
        run_node_prehooks(node, grads);
        grad = TensorRef(std::exchange(grads[0], nullptr));
      }
      // Hooks after this node see .grad itself where it is the gradient that arrived, as others have left it.
      bool posts = node->extra && node->extra->posthooks;
      bool kept = posts && grad && !extra_of(node->leaf())->grad &&
                  becomes_grad(grad.get(), node->leaf(), create_graph);
      if (posts) show_dense(grad);
      TensorRef arrived = posts && !kept ? grad : TensorRef();
      Tensor* leaf = node->leaf();
      if (leaf->grad_fn && grad) {
        fail(PyExc_RuntimeError, "leaf variable has been moved into the graph interior");
      }
      if (grad) {
        if (!create_graph) mark_cut(grad.get(), source);
        if (profiling()) {
          Timing timing("torch::autograd::AccumulateGrad");
          Tensor* given = grad.get();
          timing.note_arguments(&given, 1);
          accumulate_grad(node->leaf(), std::move(grad), create_graph);
        } else {
          accumulate_grad(node->leaf(), std::move(grad), create_graph);
        }
      }
      if (kept && leaf->extra->grad) arrived = new_alias(leaf->extra->grad);
      run_post_hooks(node, std::move(arrived), posts);
    } else if (captures && state.capture < 0) {
      TensorRef grad(std::exchange(grads[0], nullptr));
      run_leaf_hooks(node->leaf(), grad);
    }
    return;
  }
  results.clear();
  // A Function is asked even if no gradient arrived: it gets zeros and may answer otherwise. Hooks see None.
  bool hooked = extra && (extra->prehooks || extra->posthooks);
  any |= node->kind == Node::custom || hooked;
  bool filter = captures != nullptr, some = false;
  std::vector<bool> wanted;
  if (filter) {
    wanted.resize(node->edge_count);
    for (uint32_t i = 0; i < node->edge_count; i++) {
      wanted[i] = node->edges[i].node && info(node->edges[i].node).needed;
      some = some || wanted[i];
    }
  }
  // The node of a tensor that backward(inputs=...) names runs as in torch, though nobody wants its results:
  // its hooks are called, what it saved is read, checked and freed.
  bool runs = !filter || some || (accumulate && state.capture >= 0);
  any = any && runs;
  if (any) {
    if (extra && extra->prehooks) run_node_prehooks(node, grads);
    std::vector<TensorRef> before;
    Tensor** given = nullptr;  // a Function may take its gradients away, to free them while it runs
    if (node->extra && node->extra->posthooks) {
      show_dense(grads, node->output_count);
      for (uint32_t i = 0; i < node->output_count; i++) before.push_back(share(grads[i]));
    } else if (node->kind == Node::custom) {
      show_dense(grads, node->output_count);
      given = grads;
    }
    bool applies = node->kind == Node::custom || !hooked;
    for (uint32_t i = 0; i < node->output_count; i++) applies |= grads[i] != nullptr;
    if (!applies && node->kind == Node::operation) read_saved(node);
    if (!applies) results.assign(node->edge_count, TensorRef());
    else if (anomaly || profiling()) apply_watched(node, grads, filter ? &wanted : nullptr, given);
    else apply_node(node, grads, results, filter ? &wanted : nullptr, given);
    if (node->extra && node->extra->posthooks) {
      // Hooks see what goes to the inputs: of their shapes and dtypes, as in PyTorch.
      for (uint32_t i = 0; i < results.size(); i++) {
        if (results[i] && node->edges[i].node) results[i] = fit_gradient(node, i, std::move(results[i]));
      }
      run_posthooks(node, results, before);
      look_for_nan(node);
    }
  } else if (runs && node->kind == Node::operation) {
    read_saved(node);
  }
  for (uint32_t i = 0; i < node->output_count; i++) Py_CLEAR(grads[i]);
  free_grads(node, state);
  // Gradients of a Function are checked before its saved values go: after an error it can be run again.
  for (uint32_t i = 0; any && node->kind == Node::custom && i < results.size(); i++) {
    if (results[i] && node->edges[i].node) results[i] = fit_gradient(node, i, std::move(results[i]));
  }
  if (!keep_graph && runs) release_saved(node, source);
  for (uint32_t i = 0; i < node->edge_count; i++) {
    const Edge& edge = node->edges[i];
    if (!edge.node) continue;
    RunInfo& next = info(edge.node);
    if (!next.needed) continue;
    if (any && results[i]) add(edge, fit_gradient(node, i, std::move(results[i])));
    if (--next.dependencies == 0) push(edge.node);
  }
}

// Anomaly mode's warning where the node of the error that was caught comes from.
[[noreturn]] void explain_anomaly(Node* node) {
  set_python_error();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  expose(node);
  Ref<PyObject> module(PyImport_ImportModule("rushlight.autograd.anomaly_mode"));
  Ref<PyObject> told(module ? PyObject_CallMethod(module.get(), "_explain", "O", node->object()) : nullptr);
  // A warning turned into an error does not hide the error it explains. Whoever interrupts does.
  if (told || PyErr_ExceptionMatches(PyExc_Warning)) {
    PyErr_Restore(type, value, trace);
  } else {
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  }
  throw PythonError{};
}

// What a hook or a rule has done wrong and was caught, with the line whose gradient it was.
[[noreturn]] void fail_in_backward(Node* node) try {
  try {
    throw;
  } catch (const Error& error) {
    if (error.message.find("\n\n") != std::string::npos) throw;
    fail_at(error.type, error.message,
            {{("It is about " + node_name(node) + ", recorded").c_str(), node->source}}, "");
  }
} catch (...) {
  if (anomaly) explain_anomaly(node);
  throw;
}

template <bool measured>
void Run::loop() {
  uint32_t steps = 0;
  while (!ready.empty()) {
    running = pop();  // also while its hooks run and its gradients are added to others
    try {
      if constexpr (measured) {
        Timing timing("autograd::engine::evaluate_function: " + node_name(running), 0);
        execute(running);
      } else {
        execute(running);
      }
    } catch (...) {
      fail_in_backward(running);
    }
    if ((++steps & 1023) == 0 && PyErr_CheckSignals() < 0) throw PythonError{};
  }
  running = nullptr;
}

// The gradient of a root. Its tensor may have been given data of another shape (`t.data = ...`) than its node
// made.
TensorRef fit_root(const Root& root, size_t index) {
  Node* node = root.edge.node;
  if (node->kind == Node::accumulate || root.edge.nr >= node->output_count) return share(root.grad);
  Sizes wanted = node->outputs[root.edge.nr].shape();
  if (std::ranges::equal(wanted, root.grad->sizes()) || dispatches(root.grad)) return share(root.grad);
  TensorRef summed = summed_to(root.grad, wanted);
  if (!summed) {
    failf(PyExc_RuntimeError, "invalid gradient at index %zu - got %s but expected shape compatible with %s",
          index, sizes_text(root.grad->sizes()).c_str(), sizes_text(wanted).c_str());
  }
  return summed;
}

// Calls what Python's side has left to be called at the end of a run, however it ends.
struct PutBack {
  std::vector<Ref<PyObject>>& callbacks;
  ~PutBack() {
    if (callbacks.empty()) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (size_t i = 0; i < callbacks.size(); i++) {
      Ref<PyObject> done(PyObject_CallNoArgs(callbacks[i].get()));
      if (!done) PyErr_WriteUnraisable(callbacks[i].get());
    }
    PyErr_Restore(type, value, trace);
  }
};

void run_here(std::vector<Root>& roots, std::vector<Capture>* captures, bool keep_graph, bool create_graph,
              bool accumulate) {
  Run run;
  run.create_graph = create_graph;
  run.keep_graph = keep_graph;
  run.accumulate = accumulate;
  run.captures = captures;
  run.source = current_source();
  run.roots = &roots;
  run.discover(roots);
  if (captures) run.mark_needed();
  GradMode mode(create_graph);
  KeptHooks hooks;
  KeptModes kept;
  PutBack put_back{run.put_back};
  // Tangents need every operation, and gradients of inference mode are tensors of it.
  Unrecorded unrecorded(!create_graph && !carrying() && !modes.inference);
  struct Frees {
    bool before;
    explicit Frees(bool on) : before(std::exchange(frees_graph, on)) {}
    ~Frees() { frees_graph = before; }
  } frees(!keep_graph && !create_graph);
  // At the only root the hooks of tensors run though nothing that is asked for lies behind, as in torch.
  bool alone = roots.size() == 1;
  for (Root& root : roots) {
    if (run.info(root.edge.node).needed || alone)
      run.add(root.edge, fit_root(root, size_t(&root - roots.data())));
  }
  for (Root& root : roots) {
    RunInfo& state = run.info(root.edge.node);
    if (state.dependencies == 0 && (state.needed || alone) &&
        std::find(run.ready.begin(), run.ready.end(), root.edge.node) == run.ready.end()) {
      run.push(root.edge.node);
    }
  }
  if (profiling()) run.loop<true>();
  else run.loop<false>();
  for (size_t i = 0; i < run.callbacks.size(); i++) {
    Ref<PyObject> callback = run.callbacks[i];
    checked(PyObject_CallNoArgs(callback.get()));
  }
}

// Note [deep reentrance]
// A Function whose backward calls backward, and so on for thousands of levels, would use up Python's
// recursion limit. Every DEPTH levels the run moves to a thread of its own, whose stack is fresh, and the
// caller waits for it. What is switched per thread goes along, if it is known here; with hooks or modes
// of Python's side at work, the run stays.
constexpr uint32_t DEPTH = 60;

template <class Work>
void on_fresh_stack(Work work) {
  Modes here = modes;
  Run* outer = Run::current;
  bool layout = enforces_layout, frees = frees_graph;
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  auto run = [&] {
    PyGILState_STATE state = PyGILState_Ensure();
    modes = here;
    enforces_layout = layout;
    frees_graph = frees;
    Run::current = outer;
    try {
      work();
    } catch (...) {
      set_python_error();
      PyErr_Fetch(&type, &value, &trace);
    }
    Run::current = nullptr;
    modes = Modes{};
    PyGILState_Release(state);
  };
  std::thread thread;
  try {
    thread = std::thread(run);
  } catch (const std::system_error&) {  // no more threads: the stack there is has to do
    return work();
  }
  {
    PyThreadState* saved = PyEval_SaveThread();
    thread.join();
    PyEval_RestoreThread(saved);
  }
  if (!type) return;
  PyErr_Restore(type, value, trace);
  throw PythonError{};
}

}  // namespace

void run_backward(std::vector<Root>& roots, std::vector<Capture>* captures, bool keep_graph,
                  bool create_graph, bool accumulate) {
  auto work = [&] { run_here(roots, captures, keep_graph, create_graph, accumulate); };
  bool deep = Run::current && (Run::current->depth + 1) % DEPTH == 0;
  if (deep && !carrying() && !modes.function_mode && !saved_hooks_active()) on_fresh_stack(work);
  else work();
}

uint64_t current_run() { return Run::current ? Run::current->number : 0; }

Node* running_node() { return Run::current ? Run::current->running : nullptr; }

bool will_run(Node* node) {
  Run* run = Run::current;
  if (!run) fail(PyExc_RuntimeError, "no backward pass is running on this thread");
  // As torch has it: the only root of a run is not among the nodes it counts.
  if (run->roots->size() == 1 && run->roots->front().edge.node == node) return false;
  bool known = run->in_nodes ? node->run == run->number : run->table.count(node) > 0;
  return known && run->info(node).needed;
}

// Plays the run through from its roots, without computing anything.
std::vector<Node*> execution_order() {
  Run* run = Run::current;
  if (!run) return {};
  std::unordered_map<Node*, uint32_t> waiting;
  for (Node* node : run->visited) {
    for (uint32_t i = 0; i < node->edge_count; i++) {
      if (node->edges[i].node) waiting[node->edges[i].node]++;
    }
  }
  std::vector<Node*> order, ready;
  auto push = [&](Node* node) {
    ready.push_back(node);
    std::push_heap(ready.begin(), ready.end(), Run::older);
  };
  for (const Root& root : *run->roots) {
    Node* node = root.edge.node;
    bool pushed = std::find(ready.begin(), ready.end(), node) != ready.end();
    if (!waiting[node] && run->info(node).needed && !pushed) push(node);
  }
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), Run::older);
    Node* node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (uint32_t i = 0; i < node->edge_count; i++) {
      Node* next = node->edges[i].node;
      if (next && run->info(next).needed && --waiting[next] == 0) push(next);
    }
  }
  return order;
}

bool run_accumulates() { return Run::current && Run::current->accumulate; }

bool run_keeps_graph() { return !Run::current || Run::current->keep_graph; }

bool all_runs_accumulate() {
  for (Run* run = Run::current; run; run = run->outer) {
    if (run->captures && !run->delivers) return false;
  }
  return true;
}

void call_when_done(PyObject* callback) {
  if (!Run::current) {
    fail(PyExc_RuntimeError, "Final callbacks can only be installed during backward pass.");
  }
  Run::current->callbacks.push_back(share(callback));
}

void put_back_when_done(PyObject* callback) {
  if (Run::current) Run::current->put_back.push_back(share(callback));
}

namespace {

// The gradient in memory of its own, laid out like the leaf.
TensorRef own_gradient(Tensor* grad, Tensor* leaf, bool record) {
  static Primitive& copy = primitive("copy");
  if (!is_dense(leaf->sizes(), leaf->strides())) {
    static Primitive& duplicate = primitive("contiguous_copy");
    return call_on(duplicate, grad);
  }
  // Without elements empty_like would be contiguous, whatever the strides of the leaf.
  // On the device of the gradient: a leaf that only wraps another tensor has no memory of its own.
  TensorRef own = leaf->numel ? empty_like(leaf, grad->dtype, grad->device())
                              : new_strided(leaf->sizes(), leaf->strides(), grad->dtype, grad->device());
  if (!record && same_sizes(own.get(), grad)) {
    copy_into(own.get(), grad);
    // torch counts this write too, where it makes a copy: not of what is a number of its own to it.
    if (!(grad->flags & Tensor::SPREAD)) counter_of(own.get())->version = 1;
    return own;
  }
  PyObject* args[] = {own->object(), grad->object()};
  return TensorRef(as_tensor(call_in_place(copy, args)));  // throws if the leaf has other sizes by now
}

// Once for each way to accumulate, `about`.
void warn_of_layout(const Tensor* grad, const Tensor* leaf, const char* about) {
  warn_once(
      "grad and param do not obey the gradient layout contract. This is not an error, but may impair "
      "performance.\ngrad.sizes() = " +
          sizes_text(grad->sizes()) + ", strides() = " + sizes_text(grad->strides()) +
          "\nparam.sizes() = " + sizes_text(leaf->sizes()) + ", strides() = " + sizes_text(leaf->strides()),
      about);
}

}  // namespace

void set_gradient(Tensor* t, TensorRef grad) {
  Extra* extra = extra_of(t);
  grad->flags |= Tensor::HELD;
  set_held(extra->grad, grad.release());
}

void accumulate_grad(Tensor* leaf, TensorRef grad, bool create_graph) {
  if (!leaf->requires_grad()) return;  // detached or frozen since it was used
  Extra* extra = extra_of(leaf);
  static Primitive& plus = primitive("add");
  if (!extra->grad) {
    // Never somebody else's memory.
    if (asks_dispatch(grad.get())) {
      bool fits = !enforces_layout || is_any_sparse(grad.get()) || obeys_layout(grad.get(), leaf);
      bool steals = !create_graph && fits && Py_REFCNT(grad->object()) == 1;
      if (steals && is_sparse(grad.get())) set_gradient(leaf, take_sparse(grad.get()));
      else set_gradient(leaf, steals ? dispatched_detach(grad.get()) : dispatched_copy(grad.get(), leaf));
    } else if (create_graph) {
      TensorRef own = own_gradient(grad.get(), leaf, true);
      bool recorded = own->grad_fn;
      set_gradient(leaf, std::move(own));
      if (recorded) expect_loop(leaf->object());
    } else if (becomes_grad(grad.get(), leaf, create_graph)) {
      if (carrying()) drop_tangent(grad.get());  // it is detached
      set_gradient(leaf, std::move(grad));
    } else if (becomes_grad_turned(grad.get(), leaf)) {
      set_gradient(leaf, new_alias(grad.get()));
    } else {
      set_gradient(leaf, own_gradient(grad.get(), leaf, false));
    }
    return;
  }
  TensorRef before = share(extra->grad);  // whoever watches may take it away
  PyObject* args[] = {before->object(), grad->object()};
  auto check_layout = [&](const Tensor* sum) {
    if (enforces_layout && !is_any_sparse(sum) && !obeys_layout(sum, leaf)) {
      warn_of_layout(sum, leaf, create_graph ? "recorded layout" : "layout");
    }
  };
  // A sparse gradient that a dense one is added to becomes dense, which it cannot in place.
  bool densifies = is_any_sparse(before.get()) && !is_any_sparse(grad.get());
  if (densifies) std::swap(args[0], args[1]);
  if (!create_graph && !densifies) {  // its history, if it has one, stays as it is
    bool plain = is_plain_tensor(args[0]) && is_plain_tensor(args[1]) && !before->base() && !carrying() &&
                 !(before->flags & Tensor::INFERENCE);
    if (!plain) {
      TensorRef sum(as_tensor(call_in_place(plus, args)));
      return check_layout(sum.get());
    }
    announce_write(before.get());
    Ref<PyObject> sum = checked(plus.forward(plus, args, before.get()));
    note_write(before.get());
    return check_layout(before.get());
  }
  TensorRef sum(as_tensor(call(plus, args)));
  check_layout(sum.get());
  bool recorded = sum->grad_fn;
  set_gradient(leaf, std::move(sum));
  if (recorded) expect_loop(leaf->object());
}

}  // namespace rl
