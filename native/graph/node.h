// The recorded graph: a Node per operation, Edges to the nodes of its inputs, and what its rules saved.
//
// Ownership runs one way: a tensor owns its grad_fn, a node owns the nodes its edges name and its saved
// values: inputs themselves, of its own results aliases (storage, geometry), so that a plain graph cannot
// refer to itself. An AccumulateGrad node owns its leaf; the leaf only borrows the node. Start
// with `Node`; `record` in history.cpp fills one, `run_backward` in engine.cpp walks them.
#pragma once
#include <vector>

#include "../tensor/tensor.h"

namespace rl {

struct Primitive;

// How many bits are set; the baseline instruction set has no instruction for it.
inline int bit_count(uint16_t bits) {
  int n = 0;
  for (; bits; bits = uint16_t(bits & (bits - 1))) n++;
  return n;
}

struct Edge {
  Node* node;   // owned; null if that input needs no gradient
  uint32_t nr;  // which of the node's outputs
};

struct Saved {
  PyObject* object;  // owned: a tensor, a tuple of them, or an attribute; null once released
  uint32_t version;  // of the storage when saved
  uint32_t silent_version;
};

// What the engine must know of an output to shape the gradient that comes back for it.
struct OutputInfo {
  int64_t room[4];
  int64_t* sizes;  // points to room up to 4 dimensions
  uint8_t ndim;
  DType dtype;
  Device device;
  Sizes shape() const { return {ndim <= 4 ? room : sizes, ndim}; }
};

struct NodeExtra {
  PyObject* dict;          // metadata
  PyObject* tensor_hooks;  // list of (output_nr, callable) run on the incoming gradient
  PyObject* retained;      // list of (output_nr, weakref to tensor) that keep their .grad
  PyObject* prehooks;      // dict id -> callable(grad_outputs)
  PyObject* posthooks;     // dict id -> callable(grad_inputs, grad_outputs)
  Node* inner;             // CopySlices: the operation that wrote into the view
  PyObject* geometry;      // CopySlices: (sizes, strides, offset) of the view, and of the base
  PyObject* kept;          // dict, Note [what composed operations keep], python/graph_inspect.cpp
  PyObject* moved;         // dict output_nr -> alias of the memory that tensor was given since (tell_savers)
  PyObject* detached;      // set of output_nr: the tensors that detach_() cut off since (note_detached)
};

// Per backward run, see engine.cpp.
struct RunInfo {
  Tensor** grads = nullptr;  // one per output, owned; null until one arrives
  uint32_t dependencies = 0;
  int32_t capture = -1;  // first entry in the run's capture list
  bool needed = true;
};

struct Node {
  enum Kind : uint8_t { operation, accumulate, copy_slices, custom };

  PyObject_HEAD PyObject* weakrefs;
  Primitive* op;
  uint64_t sequence;
  Source source;
  Source freed_at;  // the backward that released the saved values
  Kind kind;
  bool released;
  uint16_t saved_count;
  uint32_t edge_count;
  uint32_t output_count;
  uint16_t needs, want_args, want_shapes, want_outs;  // bit per argument or output
  uint16_t turned;                                    // bit per input, see Primitive::turned
  Edge* edges;                                        // points to edge_room up to 2
  Edge edge_room[2];
  Saved* saved;  // points to saved_room up to 2; AccumulateGrad: saved_room[0].object is the leaf
  Saved saved_room[2];
  OutputInfo* outputs;  // points to output_room for one
  OutputInfo output_room;
  uint64_t run;
  RunInfo run_info;
  Tensor* grad_room;
  NodeExtra* extra;

  PyObject* object() { return reinterpret_cast<PyObject*>(this); }
  Tensor* leaf() const { return as_tensor(saved_room[0].object); }
};

extern PyTypeObject* NodeType;

Ref<Node> new_node(Node::Kind kind, Primitive* op, uint32_t edges, uint16_t saved);
NodeExtra* extra_of(Node* node);
void set_outputs(Node* node, uint32_t count);
void set_output(Node* node, uint32_t nr, const Tensor* t);
void release_saved(Node* node, Source by);          // the tensors; attributes stay, as in torch
std::string node_name(const Node* node);            // "MulBackward0"
std::string operation_name(std::string_view node);  // "Mul" of MulBackward0
void expose(Node* node);  // gives the object its own Python type (named like torch's)

// The edge a gradient of t flows along: (grad_fn, output_nr), or the leaf's accumulator. Node null if none.
// Owned reference. Brings a view's history up to date first (Note [views and in-place]).
Edge gradient_edge(Tensor* t);
Ref<Node> accumulator_of(Tensor* leaf);
void forget_accumulator(Extra* extra);  // its leaf goes, or changed its dtype
// t was given other memory: what was saved of it is what it holds now, as in torch, where nodes save the
// tensor itself. Of a tensor with a history nodes keep an alias; they find the new memory with its grad_fn.
void tell_savers(Tensor* t);
// detach_() cuts t off its grad_fn: a node that saved t with that history must not use it.
void note_detached(Tensor* t);
bool was_detached(const Edge& edge);  // the tensor that was this output

// history.cpp
// The steps that made a view, whose `steps` are known, taken of another tensor.
TensorRef view_again(Tensor* view, Tensor* of);
void refresh_view(Tensor* t, bool asked = false);  // asked: by the user, who is told that there is none
// How often more than other views one that converts its base holds it: torch keeps the base twice for each
// conversion on the way (Tensor::held_by).
uint32_t conversion_holds(const Extra* extra);
extern thread_local bool replays_views
    __attribute__((tls_model("initial-exec")));  // inside _force_original_view_tracking(True)
void keep_steps(const Primitive& op, PyObject* const* args, Tensor* view);  // what made a view
// Throws if the base of t was written and t, or the view `step` of it, is a view that cannot be cut out anew.
void refuse_stale_view(Tensor* t, const std::string& step);
void check_inplace(Tensor* t);                    // throws torch's errors for leaves and their views
void rewrite_history(Tensor* t, Ref<Node> node);  // t was written by `node`

// engine.cpp
struct Root {
  Edge edge;
  Tensor* grad;  // borrowed
};
struct Capture {
  Edge edge;               // borrowed
  TensorRef result;        // the gradient; empty if none arrived
  Tensor* into = nullptr;  // backward(inputs=[non-leaf]): accumulate into its .grad
};
void run_backward(std::vector<Root>& roots, std::vector<Capture>* captures, bool keep_graph,
                  bool create_graph, bool accumulate);
void accumulate_grad(Tensor* leaf, TensorRef grad, bool create_graph);
// Calls the node's rules on `grads` (one per output, may be null); results per edge. `given`: the same
// gradients, if they may be taken away while it runs.
void apply_node(Node* node, Tensor* const* grads, std::vector<TensorRef>& results,
                const std::vector<bool>* wanted, Tensor** given = nullptr);

}  // namespace rl
