// Note [living outputs]
// What a node knows of a tensor may be an alias or an edge, not the object. A program that asks for it
// expects the very tensor it passed, if that is still there. So a node knows which object got its output, as
// long as that object lives and still has its history from here. The pointer owns nothing; it stands in
// OutputInfo::sizes, which holds sizes only beyond four dimensions. Whoever takes a tensor's grad_fn away or
// lets the tensor go calls `leave_node` first, whoever gives it one `join_node` after.
#pragma once
#include "node.h"

namespace rl {

inline void leave_node(Tensor* t) {
  Node* node = t->grad_fn;
  if (!node || t->output_nr >= node->output_count) return;
  OutputInfo& info = node->outputs[t->output_nr];
  if (info.sizes == reinterpret_cast<int64_t*>(t)) info.sizes = nullptr;
}

inline void join_node(Tensor* t) {
  Node* node = t->grad_fn;
  if (!node || t->output_nr >= node->output_count) return;
  OutputInfo& info = node->outputs[t->output_nr];
  if (info.ndim <= 4) info.sizes = reinterpret_cast<int64_t*>(t);
}

// The tensor that is this output of the node, borrowed; null if it is gone or was written in place.
inline Tensor* living_output(const Node* node, uint32_t nr) {
  if (nr >= node->output_count || node->outputs[nr].ndim > 4) return nullptr;
  Tensor* t = reinterpret_cast<Tensor*>(node->outputs[nr].sizes);
  // One of a subclass may be dying already: Python takes such objects apart before it tells us.
  return t && Py_REFCNT(t->object()) > 0 ? t : nullptr;
}

// node_type.cpp: the tensor that a saved alias is of, or the alias if that tensor is gone.
Ref<PyObject> original(Ref<PyObject> saved);

}  // namespace rl
