// See graph_log.cpp.
#pragma once
#include "../graph/node.h"

namespace rl {

// While it lives, the logger is told of the nodes behind the roots as they run, if it wants to know.
class LoggedRun {
 public:
  explicit LoggedRun(const std::vector<Root>& roots);
  ~LoggedRun();
  LoggedRun(const LoggedRun&) = delete;

 private:
  static bool wanted();
  Ref<PyObject> stop;
};

}  // namespace rl
