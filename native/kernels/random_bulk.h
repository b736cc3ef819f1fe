// The parts of the generator where speed shows: many draws at once. Compiled once per instruction set from
// simd/random_bulk.cpp, which says how each works; `random_bulk()` gives the best one for this processor.
#pragma once
#include <cstdint>

namespace rl {

struct RandomBulk {
  // Makes the next 624 words of mt19937 of the last 624.
  void (*refill)(uint32_t* words);
  void (*temper)(uint32_t* out, const uint32_t* words, int64_t n);
  // n uniforms in [low, high) of one of the floating dtypes. A double takes two draws, the others one.
  void (*uniform_f32)(void* out, const uint32_t* draws, int64_t n, double low, double high);
  void (*uniform_f64)(void* out, const uint32_t* draws, int64_t n, double low, double high);
  void (*uniform_f16)(void* out, const uint32_t* draws, int64_t n, double low, double high);
  void (*uniform_bf16)(void* out, const uint32_t* draws, int64_t n, double low, double high);
  // 16 uniforms in [0, 1) become 16 normals, in place, `blocks` times.
  void (*normal)(float* data, int64_t blocks, float mean, float std);
};

const RandomBulk& random_bulk();

}  // namespace rl
