// What is switched per thread: recording, inference mode, forward mode. And what is switched for all threads
// at once, as in torch: anomaly detection and the level of dual tensors.
#pragma once
#include <cstdint>

namespace rl {

struct Modes {
  bool grad = true;
  bool inference = false;
  bool torch_function = true;  // false inside DisableTorchFunctionSubclass
  bool function_mode = false;  // a TorchFunctionMode is asked before anything else
  bool unrecorded = false;     // inside the rules of a backward that records nothing
  bool forward = true;         // false where operations carry no tangents along, though a dual level is open
  bool derives = false;        // inside the rules of a backward that is recorded, here or below a level
};

// initial-exec: one instruction instead of a call; the module's thread-local block is a few bytes.
extern thread_local Modes modes __attribute__((tls_model("initial-exec")));

// Inside inference mode nothing is recorded, whatever enable_grad() says.
inline bool recording() { return modes.grad && !modes.inference; }

extern bool anomaly, anomaly_check_nan;

extern uint64_t dual_level;  // the number of the open level, 0 for none
inline bool carrying() { return dual_level && modes.forward; }

// Switched until it ends: `GradMode off(false);`.
template <bool Modes::*mode>
class Switched {
 public:
  explicit Switched(bool on) : before(modes.*mode) { modes.*mode = on; }
  ~Switched() { modes.*mode = before; }
  Switched(const Switched&) = delete;

 private:
  bool before;
};
using GradMode = Switched<&Modes::grad>;
using Derives = Switched<&Modes::derives>;
using Unrecorded = Switched<&Modes::unrecorded>;

// What a hook switches and never switches back ends with the backward.
class KeptModes {
 public:
  KeptModes() : before(modes) {}
  ~KeptModes() {
    modes.inference = before.inference;
    modes.torch_function = before.torch_function;
    modes.function_mode = before.function_mode;
  }
  KeptModes(const KeptModes&) = delete;

 private:
  Modes before;
};

}  // namespace rl
