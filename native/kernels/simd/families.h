// What the files of this directory export: families of elementwise operations, once per instruction set.
//
// Only constants with static initialisation: nothing in here runs before the instruction set is chosen.
#pragma once
#include "../elementwise.h"

namespace rl {

// An Elementwise as these files write it: without room for the rare dtypes.
struct FamilyEntry {
  const char* name;
  int n_inputs, n_scalars;
  bool divides;
  OutType out;
  Promote promote;
  Loop loops[DTYPE_COUNT];
  Keeps keeps = Keeps::scalars;
  Loop by_number[2] = {};
};

struct Family {
  const FamilyEntry* entries;
  int count;
};

struct CopyTable {
  Loop loops[DTYPE_COUNT][DTYPE_COUNT];  // [to][from]
};

#define RL_DECLARE_FAMILIES(isa)                                                                     \
  namespace isa {                                                                                    \
  extern const Family arithmetic, rounding, comparison, integer, exponential, powers, trigonometric, \
      special, activation, selection;                                                                \
  extern const CopyTable copy_loops;                                                                 \
  extern const Loop fill_loops[DTYPE_COUNT];                                                         \
  }

RL_DECLARE_FAMILIES(baseline)
#if defined(RL_HAVE_AVX2)
RL_DECLARE_FAMILIES(avx2)
// Note [a third instruction set]
// Loops that compute rather than move memory run on vectors of 64 bytes where the processor has them, nearly
// twice as fast: the families below, their floating dtypes only. Lane by lane they do what AVX2 does, so the
// results are the same bits.
namespace avx512 {
extern const Family exponential, powers, trigonometric, special, activation;
}
#endif

// Whether the processor has AVX-512 (F, DQ, BW, VL) and RUSHLIGHT_CPU does not ask for less.
bool avx512_chosen();

}  // namespace rl
