// Functions between RL_AVX512_BEGIN and RL_AVX512_END are compiled for AVX-512; the rest of the file is not,
// since it runs before anybody asked whether the processor has it.
#pragma once

#if defined(__clang__)
#define RL_AVX512_BEGIN \
  _Pragma("clang attribute push(__attribute__((target(\"avx512f,avx2,fma\"))), apply_to = function)")
#define RL_AVX512_END _Pragma("clang attribute pop")
#else
// GCC 12 warns of its own "undefined" vectors in the intrinsics.
#define RL_AVX512_BEGIN                                                                       \
  _Pragma("GCC diagnostic ignored \"-Wuninitialized\"")                                       \
      _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"") _Pragma("GCC push_options") \
          _Pragma("GCC target(\"avx512f,avx2,fma\")")
#define RL_AVX512_END _Pragma("GCC pop_options")
#endif
