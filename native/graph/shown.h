// Which gradients of a node its hooks, its call and `next_functions` show: those that torch has. An index or
// a mask among the inputs has none, and neither has an output that no rule differentiates (the indices of a
// maximum, the statistics that a norm keeps for its derivative).
#pragma once
#include <string>
#include <vector>

#include "node.h"

namespace rl {

bool shows_edge(const Node* node, uint32_t edge);
bool shows_output(const Node* node, uint32_t output);
// The numbers of the outputs that are shown, in order.
std::vector<uint32_t> shown_outputs(const Node* node);

// Note [facades], python/graph_inspect.cpp. What next_functions shows instead of the node's own edges; empty
// if it does not.
Ref<PyObject> facades_behind(Node* node);
bool is_facade(const Node* node);
void refuse_facade(const Node* node, const char* what);
// An argument as torch's operation within sees it, through a view: its sizes, "[2, 3]", and what the view is
// called, "T"; empty where that is the argument itself. unread: the derivative was given it, and does not
// read it as it is asked now.
struct SeenOperand {
  std::string sizes, view;
  bool unread = false;
};
// `out`: the number of the result that is meant, -1 for an argument.
SeenOperand operand_within(Node* node, int arg, int out, Tensor* value);

}  // namespace rl
