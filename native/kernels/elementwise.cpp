// Chooses the instruction set and joins the families of simd/elementwise_*.cpp into one table. Compiled once.
#include "elementwise.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>

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

bool find_avx512() {
#if defined(RL_HAVE_AVX2)
  const char* wanted = std::getenv("RUSHLIGHT_CPU");
  if (!avx2_chosen() || (wanted && !std::strcmp(wanted, "avx2"))) return false;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
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
      if (avx512_chosen()) {
        replace({avx512::exponential, avx512::powers, avx512::trigonometric, avx512::special,
                 avx512::activation});
      }
      return;
    }
#endif
    using namespace baseline;
    join(copy_loops, fill_loops,
         {arithmetic, rounding, comparison, integer, exponential, powers, trigonometric, special, activation,
          selection});
  }

  // The loops these families have take the place of those joined before.
  void replace(std::initializer_list<Family> families) {
    for (const Family& family : families) {
      for (int i = 0; i < family.count; i++) {
        const FamilyEntry& better = family.entries[i];
        Elementwise* entry = joined;
        while (std::strcmp(entry->name, better.name)) entry++;
        for (int d = 0; d < DTYPE_COUNT; d++) {
          if (better.loops[d]) entry->loops[d] = better.loops[d];
        }
      }
    }
  }

  void join(const CopyTable& copies, const Loop (&fills)[DTYPE_COUNT],
            std::initializer_list<Family> families) {
    std::memcpy(copy, copies.loops, sizeof copy);
    std::memcpy(fill, fills, sizeof fills);
    constexpr DType BY_SIZE[] = {DType::u8,  DType::u8,  DType::i16, DType::i16, DType::i32,
                                 DType::i32, DType::i32, DType::i32, DType::i64};
    for (int d = DTYPE_COUNT; d < ALL_DTYPE_COUNT; d++) fill[d] = fills[int(BY_SIZE[dtype_size(DType(d))])];
    for (const Family& family : families) {
      for (int i = 0; i < family.count; i++) {
        const FamilyEntry& e = family.entries[i];
        joined[count] = {e.name,    e.n_inputs, e.n_scalars,
                         e.divides, e.out,      e.promote,
                         {},        e.keeps,    {e.by_number[0], e.by_number[1]}};
        Loop* loops = std::copy(std::begin(e.loops), std::end(e.loops), joined[count].loops);
        bool moves = !std::strcmp(e.name, "where");
        for (int d = DTYPE_COUNT; moves && d < ALL_DTYPE_COUNT; d++) {
          *loops++ = e.loops[int(BY_SIZE[dtype_size(DType(d))])];
        }
        count++;
      }
    }
  }
};

}  // namespace

bool avx512_chosen() {
  static const bool chosen = find_avx512();
  return chosen;
}

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
