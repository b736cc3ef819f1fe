// Chooses the instruction set and joins the families of simd/elementwise_*.cpp into one table. Compiled once.
#include "elementwise.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "simd/families.h"

namespace rl {

namespace {

bool find_avx2() {
#if defined(RL_HAVE_AVX2)
  const char* wanted = std::getenv("RUSHLIGHT_CPU");
  if (wanted && !std::strcmp(wanted, "baseline")) return false;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

bool avx2_chosen() {
  static const bool chosen = find_avx2();
  return chosen;
}

struct JoinedTable : ElementwiseTable {
  Elementwise joined[256];

  JoinedTable() {
    entries = joined;
    count = 0;
#if defined(RL_HAVE_AVX2)
    if (avx2_chosen()) {
      using namespace avx2;
      join(copy_loops, fill_loops,
           {arithmetic, rounding, comparison, integer, exponential, powers, trigonometric, special,
            activation, selection});
      return;
    }
#endif
    using namespace baseline;
    join(copy_loops, fill_loops,
         {arithmetic, rounding, comparison, integer, exponential, powers, trigonometric, special, activation,
          selection});
  }

  void join(const CopyTable& copies, const Loop (&fills)[DTYPE_COUNT],
            std::initializer_list<Family> families) {
    std::memcpy(copy, copies.loops, sizeof copy);
    std::memcpy(fill, fills, sizeof fill);
    for (const Family& family : families) {
      for (int i = 0; i < family.count; i++) joined[count++] = family.entries[i];
    }
  }
};

}  // namespace

const ElementwiseTable& elementwise_table() {
  static const JoinedTable table;
  return table;
}

const char* cpu_capability() { return avx2_chosen() ? "AVX2" : "DEFAULT"; }

const Elementwise* find_elementwise(const char* name) {
  const ElementwiseTable& table = elementwise_table();
  for (int i = 0; i < table.count; i++) {
    if (!std::strcmp(table.entries[i].name, name)) return &table.entries[i];
  }
  return nullptr;
}

}  // namespace rl
