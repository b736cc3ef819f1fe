// Transposes of blocks that fit the first-level cache: squares in registers where the instruction set has the
// shuffles, elements one by one at the edges and for the rarer sizes.
#include "../transpose.h"

#include <cstring>

#include "squares.h"

namespace rl {
inline namespace RL_ISA {
namespace {

struct Word16 {
  uint64_t low, high;
};

template <class Word>
inline Word word_at(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

#if defined(__AVX2__)
constexpr int SQUARE_4 = 8, SQUARE_8 = 4;
inline void square(const char* from, int64_t stride, uint32_t* words, int64_t rows) {
  transpose_square(from, stride, reinterpret_cast<float*>(words), rows);
}
inline void square(const char* from, int64_t stride, uint64_t* words, int64_t rows) {
  transpose_square(from, stride, reinterpret_cast<double*>(words), rows);
}
#elif defined(__SSE2__)
constexpr int SQUARE_4 = 4, SQUARE_8 = 2;
inline void square(const char* from, int64_t stride, uint32_t* words, int64_t rows) {
  float* to = reinterpret_cast<float*>(words);
  __m128 r[4];
  for (int i = 0; i < 4; i++) r[i] = _mm_loadu_ps(reinterpret_cast<const float*>(from + i * stride));
  _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
  for (int i = 0; i < 4; i++) _mm_storeu_ps(to + i * rows, r[i]);
}
inline void square(const char* from, int64_t stride, uint64_t* words, int64_t rows) {
  double* to = reinterpret_cast<double*>(words);
  __m128d a = _mm_loadu_pd(reinterpret_cast<const double*>(from));
  __m128d b = _mm_loadu_pd(reinterpret_cast<const double*>(from + stride));
  _mm_storeu_pd(to, _mm_unpacklo_pd(a, b));
  _mm_storeu_pd(to + rows, _mm_unpackhi_pd(a, b));
}
#else
constexpr int SQUARE_4 = 0, SQUARE_8 = 0;
#endif
#if defined(__SSE2__)
// Eight by eight of two bytes, sixteen by sixteen of one: rounds of interleaving.
template <class Word>
inline void square(const char* from, int64_t stride, Word* to, int64_t rows) {
  constexpr int SIDE = 16 / sizeof(Word);
  constexpr bool BYTES = sizeof(Word) == 1;
  __m128i r[SIDE], s[SIDE];
  for (int i = 0; i < SIDE; i++) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * stride));
  for (int done = 1; done < SIDE; done *= 2) {
    for (int i = 0; i < SIDE / 2; i++) {
      __m128i a = r[i], b = r[i + SIDE / 2];
      s[2 * i] = BYTES ? _mm_unpacklo_epi8(a, b) : _mm_unpacklo_epi16(a, b);
      s[2 * i + 1] = BYTES ? _mm_unpackhi_epi8(a, b) : _mm_unpackhi_epi16(a, b);
    }
    for (int i = 0; i < SIDE; i++) r[i] = s[i];
  }
  for (int i = 0; i < SIDE; i++) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * rows), r[i]);
}
constexpr int SQUARE_1 = 16, SQUARE_2 = 8;
#else
constexpr int SQUARE_1 = 0, SQUARE_2 = 0;
#endif

template <class Word>
void transpose(const char* from, int64_t stride, int64_t rows, int64_t cols, char* out) {
  Word* to = reinterpret_cast<Word*>(out);
  constexpr int64_t size = sizeof(Word);
  constexpr int SIDE = size == 1   ? SQUARE_1
                       : size == 2 ? SQUARE_2
                       : size == 4 ? SQUARE_4
                       : size == 8 ? SQUARE_8
                                   : 0;
  int64_t whole_rows = 0, whole_cols = 0;
  if constexpr (SIDE > 0) {
    whole_rows = rows / SIDE * SIDE, whole_cols = cols / SIDE * SIDE;
    for (int64_t i = 0; i < whole_rows; i += SIDE)
      for (int64_t j = 0; j < whole_cols; j += SIDE)
        square(from + i * stride + j * size, stride, to + j * rows + i, rows);
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = i < whole_rows ? whole_cols : 0; j < cols; j++)
      to[j * rows + i] = word_at<Word>(from + i * stride + j * size);
}

}  // namespace

const TransposeBlocks transpose_blocks = {{nullptr, transpose<uint8_t>, transpose<uint16_t>, nullptr,
                                           transpose<uint32_t>, nullptr, nullptr, nullptr,
                                           transpose<uint64_t>, nullptr, nullptr, nullptr, nullptr, nullptr,
                                           nullptr, nullptr, transpose<Word16>}};

}  // namespace RL_ISA
}  // namespace rl
