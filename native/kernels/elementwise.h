// The elementwise operations: a table with one entry per operation and one inner loop per dtype.
//
// `elementwise_table()` gives the table of the instruction set chosen at load. The loops themselves are in
// kernels/simd/elementwise_*.cpp, one line per operation; how such a line becomes loops is in simd/loops.h.
//
// What a caller has to know to run a loop (all of this is checked by no one else):
// - data[0] is the output, data[1..n_inputs] are the inputs, strides are in bytes. The output may be exactly
// one of
//   the inputs (same address and stride), but must not overlap one in any other way.
// - all inputs have the compute dtype that the loop is indexed by; only `where` has a bool first input.
// - the dtype of the output follows from `out`; an operation with n_scalars > 0 wants `params` to point to
// that many
//   Params; one with `divides` set wants a `DivisionReport` there (or a null pointer).
#pragma once
#include "kernels.h"

namespace rl {

// The dtype of the result, relative to the compute dtype. `real` maps a complex dtype to its real one.
enum class OutType : uint8_t { same, boolean, real };

// What happens to the dtypes of the inputs, after promotion with each other, before computing.
enum class Promote : uint8_t {
  none,
  int_to_float,  // integers and bool become the default float dtype
  bool_to_int,   // bool becomes int64
};

// Whether a number keeps its digits where it is the second operand and the first a tensor of halves: `x *
// 0.1` in float16 is computed with 0.1 in float and rounded once. Torch does that in products and quotients,
// not in sums. With no_scalar the scalar arguments are rounded too; elsewhere they are not.
enum class Keeps : uint8_t { scalars, second, no_scalar };

// A scalar argument of an operation. The loop reads the member that fits its dtype: `integer` for integers
// and bool, `real` for floating dtypes, `real` and `imag` for complex ones. Callers fill in all three.
struct Param {
  double real = 0, imag = 0;
  int64_t integer = 0;
};

// Where a loop on integers says that it met a zero divisor (it stores 0 there and goes on). Threads may share
// one.
struct DivisionReport {
  bool by_zero = false;
};

struct Elementwise {
  const char* name;
  int n_inputs;
  int n_scalars;
  bool divides;  // params is a DivisionReport*
  OutType out;
  Promote promote;
  Loop loops[ALL_DTYPE_COUNT];  // by compute dtype; null where there is none, so for every rare dtype
  Keeps keeps = Keeps::scalars;
  Loop by_number[2] = {};  // of float16 and bfloat16: one input, and the number as a Param
};

struct ElementwiseTable {
  const Elementwise* entries;
  int count;
  Loop copy[DTYPE_COUNT][DTYPE_COUNT];  // [to][from]; the rare ones through cast_rare (rare_cast.h)
  Loop fill[ALL_DTYPE_COUNT];           // no inputs; params points to one element
};

// The table for AVX2+FMA+F16C if the processor has them, else for the baseline. The environment variable
// RUSHLIGHT_CPU=baseline (or avx2, the default) chooses; it is read once.
const ElementwiseTable& elementwise_table();
const char* cpu_capability();  // "AVX2" or "DEFAULT", as torch.backends.cpu.get_cpu_capability() says

// The entry called `name`, or null.
const Elementwise* find_elementwise(const char* name);

}  // namespace rl
