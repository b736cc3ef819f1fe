// Choosing and mixing: where, addcmul, addcdiv, lerp.
#define RL_STEPPED
#include "complex_math.h"
#include "loops.h"

namespace rl {
inline namespace RL_ISA {

namespace {

// `where` moves elements whole, so one loop per size serves all dtypes.
template <class Word>
void where_contiguous(char* const* data, int64_t n, const void*) {
  Word* out = reinterpret_cast<Word*>(data[0]);
  const uint8_t* condition = reinterpret_cast<const uint8_t*>(data[1]);
  const Word *x = reinterpret_cast<const Word*>(data[2]), *y = reinterpret_cast<const Word*>(data[3]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    Word a = x[i], b = y[i];
    out[i] = condition[i] ? a : b;
  }
}
template <class Word>
void where(char* const* data, const int64_t* strides, int64_t n, const void*) {
  constexpr int size = sizeof(Word);
  static constexpr int sizes[] = {size, 1, size, size};
  bool packed = strides[0] == size && strides[1] == 1 && strides[2] == size && strides[3] == size;
  if (packed) where_contiguous<Word>(data, n, nullptr);
  else run_buffered(where_contiguous<Word>, 4, sizes, data, strides, n, nullptr);
}
constexpr FamilyEntry where_entry = {
    "where",
    3,
    0,
    false,
    OutType::same,
    Promote::none,
    {where<uint8_t>, where<uint8_t>, where<uint16_t>, where<uint32_t>, where<uint64_t>, where<uint16_t>,
     where<uint32_t>, where<uint64_t>, where<uint64_t>, where<Word16>, where<uint8_t>, where<uint16_t>}};

// From the nearer end, so that weight 0 gives x and weight 1 gives y exactly.
template <class X>
inline X lerp(X x, X y, X weight) {
  X difference = y - x, rest = constant<X>(1) - weight;
  if constexpr (is_complex_number_v<X>) {
    auto near = weight.re * weight.re + weight.im * weight.im < constant<decltype(X::re)>(0.25);
    return select(near, x + weight * difference, y - difference * rest);
  } else {
    return magnitude(weight) < constant<X>(0.5) ? fma(weight, difference, x) : fma(-difference, rest, y);
  }
}

constexpr FamilyEntry entries[] = {
    where_entry,
    TERNARY_WITH(1, addcmul, NUMBERS, none, same, add_product(x, multiply(a, y), z)),
    TERNARY_WITH(1, addcdiv, FLOATING | COMPLEX, none, same, x + a * y / z),
    TERNARY(lerp, FLOATING | COMPLEX, none, same, lerp(x, y, z)),
    BINARY_WITH(1, lerp_scalar, FLOATING | COMPLEX, none, same, lerp(x, y, a)),
};
}  // namespace

const Family selection = {entries, int(std::size(entries))};

}  // namespace RL_ISA
}  // namespace rl
