// Transposes of blocks that fit the first-level cache: squares in registers where the instruction set has the
// shuffles, elements one by one at the edges and for the rarer sizes. And rows turned round, vector by
// vector.
#include "../transpose.h"

#include <cstring>

#include "squares.h"

namespace rl {
inline namespace RL_ISA {
namespace {

struct Word16 {
  uint64_t low, high;
};

#if defined(__AVX2__)
typedef uint64_t Widest __attribute__((vector_size(32)));
#else
typedef uint64_t Widest __attribute__((vector_size(16)));
#endif

template <class Word>
inline Word word_at(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

#if defined(__SSE2__)
inline void transpose_four(const char* from, int64_t stride, float* to, int64_t rows) {
  __m128 r[4];
  for (int i = 0; i < 4; i++) r[i] = _mm_loadu_ps(reinterpret_cast<const float*>(from + i * stride));
  _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
  for (int i = 0; i < 4; i++) _mm_storeu_ps(to + i * rows, r[i]);
}
#endif

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
  transpose_four(from, stride, reinterpret_cast<float*>(words), rows);
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
  auto rest = [&](int64_t i, int64_t last_row, int64_t first, int64_t last) {
#if defined(__AVX2__)
    if constexpr (size == 4) {  // smaller squares, of matrices that have but four rows or columns
      const int64_t fours = first + (last - first) / 4 * 4;
      for (; i + 4 <= last_row && fours > first; i += 4) {
        for (int64_t j = first; j < fours; j += 4)
          transpose_four(from + i * stride + j * size, stride, reinterpret_cast<float*>(to + j * rows + i),
                         rows);
        for (int64_t r = i; r < i + 4; r++)
          for (int64_t j = fours; j < last; j++)
            to[j * rows + r] = word_at<Word>(from + r * stride + j * size);
      }
    }
#endif
    for (; i < last_row; i++)
      for (int64_t j = first; j < last; j++) to[j * rows + i] = word_at<Word>(from + i * stride + j * size);
  };
  rest(0, whole_rows, whole_cols, cols);
  rest(whole_rows, rows, 0, cols);
}

#if defined(__AVX2__)
template <int SIZE>
inline __m256i turned(__m256i v) {
  if constexpr (SIZE == 4) return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
  if constexpr (SIZE == 8) return _mm256_permute4x64_epi64(v, 0x1b);
  if constexpr (SIZE <= 2) {
    const __m128i order = SIZE == 1 ? _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
                                    : _mm_setr_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1);
    v = _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(order));
  }
  return _mm256_permute4x64_epi64(v, 0x4e);
}
#elif defined(__SSE2__)
template <int SIZE>
inline __m128i turned(__m128i v) {
  if constexpr (SIZE == 4) return _mm_shuffle_epi32(v, 0x1b);
  if constexpr (SIZE == 1) v = _mm_or_si128(_mm_srli_epi16(v, 8), _mm_slli_epi16(v, 8));
  if constexpr (SIZE <= 2) v = _mm_shufflehi_epi16(_mm_shufflelo_epi16(v, 0x1b), 0x1b);
  return SIZE == 16 ? v : _mm_shuffle_epi32(v, 0x4e);
}
#endif

template <class Word>
void backwards(char* to, const char* from, int64_t n) {
  constexpr int64_t SIZE = sizeof(Word);
  int64_t i = 0;
#if defined(__SSE2__)
#if defined(__AVX2__)
  using Vector = __m256i;
#else
  using Vector = __m128i;
#endif
  constexpr int64_t LANES = sizeof(Vector) / SIZE;
  auto turn = [&](int64_t at) {
    Vector v;
    std::memcpy(&v, from - (at + LANES - 1) * SIZE, sizeof v);
    v = turned<SIZE>(v);
    std::memcpy(to + at * SIZE, &v, sizeof v);
  };
  for (; i + LANES <= n; i += LANES) turn(i);
  if (n >= LANES) {  // the last ones with those before them once more
    if (i < n) turn(n - LANES);
    return;
  }
#endif
  for (; i < n; i++) {
    Word word = word_at<Word>(from - i * SIZE);
    std::memcpy(to + i * SIZE, &word, SIZE);
  }
}

// Vectors of `Bytes`; the last one of a row overlaps the one before it, no row is written or read beyond its
// end.
template <class Vector>
inline void copy_row(char* to, const char* from, int64_t bytes) {
  constexpr int64_t SIZE = sizeof(Vector);
  for (int64_t i = 0; i + SIZE <= bytes; i += SIZE) {
    Vector v = word_at<Vector>(from + i);
    std::memcpy(to + i, &v, SIZE);
  }
  Vector last = word_at<Vector>(from + bytes - SIZE);
  std::memcpy(to + bytes - SIZE, &last, SIZE);
}
void copy_rows(char* to, const char* from, int64_t next, int64_t bytes, int64_t rows) {
  for (int64_t r = 0; r < rows; r++, to += bytes, from += next) {
    if (bytes >= int64_t(sizeof(Widest))) copy_row<Widest>(to, from, bytes);
    else if (bytes >= 8) copy_row<uint64_t>(to, from, bytes);
    else std::memcpy(to, from, size_t(bytes));
  }
}
template <class Word>
void fill_rows(char* to, const char* from, int64_t next, int64_t n, int64_t rows) {
  if constexpr (sizeof(Word) > 8) {
    for (int64_t r = 0; r < rows; r++, from += next)
      for (int64_t i = 0; i < n; i++, to += sizeof(Word)) std::memcpy(to, from, sizeof(Word));
  } else {
    typedef Word Vector __attribute__((vector_size(sizeof(Widest))));
    constexpr int64_t LANES = sizeof(Widest) / sizeof(Word);
    const int64_t bytes = n * int64_t(sizeof(Word));
    for (int64_t r = 0; r < rows; r++, to += bytes, from += next) {
      Word word = word_at<Word>(from);
      if (n < LANES) {
        for (int64_t i = 0; i < n; i++) std::memcpy(to + i * int64_t(sizeof(Word)), &word, sizeof(Word));
        continue;
      }
      Vector vector = Vector{} + word;
      for (int64_t i = 0; i + int64_t(sizeof vector) <= bytes; i += sizeof vector)
        std::memcpy(to + i, &vector, sizeof vector);
      std::memcpy(to + bytes - sizeof vector, &vector, sizeof vector);
    }
  }
}

}  // namespace

const TransposeBlocks transpose_blocks = {
    {nullptr, transpose<uint8_t>, transpose<uint16_t>, nullptr, transpose<uint32_t>, nullptr, nullptr,
     nullptr, transpose<uint64_t>, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     transpose<Word16>},
    {nullptr, backwards<uint8_t>, backwards<uint16_t>, nullptr, backwards<uint32_t>, nullptr, nullptr,
     nullptr, backwards<uint64_t>, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     backwards<Word16>},
    {nullptr, fill_rows<uint8_t>, fill_rows<uint16_t>, nullptr, fill_rows<uint32_t>, nullptr, nullptr,
     nullptr, fill_rows<uint64_t>, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     fill_rows<Word16>},
    copy_rows};

}  // namespace RL_ISA
}  // namespace rl
