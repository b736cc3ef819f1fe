// What is switched per thread: recording, inference mode, anomaly detection.
#pragma once

namespace rl {

struct Modes {
  bool grad = true;
  bool inference = false;
  bool anomaly = false;
  bool anomaly_check_nan = true;
  bool torch_function = true;  // false inside DisableTorchFunctionSubclass
  bool function_mode = false;  // a TorchFunctionMode is asked before anything else
  bool unrecorded = false;     // inside the rules of a backward that records nothing
  bool forward = false;        // inside a dual level: operations carry tangents along
};

// initial-exec: one instruction instead of a call; the module's thread-local block is a few bytes.
extern thread_local Modes modes __attribute__((tls_model("initial-exec")));

class GradMode {
 public:
  explicit GradMode(bool on) : before(modes.grad) { modes.grad = on; }
  ~GradMode() { modes.grad = before; }
  GradMode(const GradMode&) = delete;

 private:
  bool before;
};

class Unrecorded {
 public:
  explicit Unrecorded(bool on) : before(modes.unrecorded) { modes.unrecorded = on; }
  ~Unrecorded() { modes.unrecorded = before; }
  Unrecorded(const Unrecorded&) = delete;

 private:
  bool before;
};

}  // namespace rl
