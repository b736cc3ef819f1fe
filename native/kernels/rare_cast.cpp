// Casts from and to the dtypes without loops of their own, see Note [rare dtypes], tensor/dtype.h.
//
// `cast_rare` works on blocks: a rare dtype is widened to one that has loops and holds all its values
// (`widened`), the table of copies does the rest, and what arrives is narrowed. Each step of float8 and of
// the unsigned integers is exact or the one rounding that torch makes, so the detour changes no bit.
#include "rare_cast.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "elementwise.h"

namespace rl {

bool rare_dtypes_seen = false;
void (*note_rare_dtype)(DType) = [](DType) { rare_dtypes_seen = true; };

namespace {

constexpr int64_t BLOCK = 256;

uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// ---- float8

struct Format {
  int mantissa, bias;
  uint32_t largest, overflow, nan;  // codes without sign: the largest number, what lies beyond, not a number
  bool has_sign_of_zero;            // else the code 0x80 is the one that is no number
};
constexpr Format FORMATS[] = {{3, 7, 0x7e, 0x7e, 0x7f, true},     // e4m3fn saturates
                              {2, 15, 0x7b, 0x7c, 0x7f, true},    // e5m2 has infinities
                              {3, 8, 0x7f, 0x80, 0x80, false},    // e4m3fnuz
                              {2, 16, 0x7f, 0x80, 0x80, false}};  // e5m2fnuz

uint8_t encode(const Format& f, float x) {
  uint32_t u = bits_of(x), sign = (u >> 24) & 0x80, magnitude = u & 0x7fffffff, code;
  const int shift = 23 - f.mantissa;
  if (magnitude > 0x7f800000) {
    code = f.nan;
  } else if (magnitude < uint32_t(128 - f.bias) << 23) {  // subnormal: the float adder rounds
    const uint32_t unit = uint32_t(128 - f.bias + shift) << 23;
    code = bits_of(float_of(magnitude) + float_of(unit)) - unit;
  } else {
    uint32_t odd = (magnitude >> shift) & 1;
    uint32_t rounded = magnitude + (1u << (shift - 1)) - 1 + odd;
    code = (rounded - (uint32_t(127 - f.bias) << 23)) >> shift;
    if (code > f.largest) code = f.overflow;
  }
  if (!f.has_sign_of_zero) return uint8_t(code == 0 || code == 0x80 ? code : sign | code);
  return uint8_t(sign | code);
}

float decode(const Format& f, uint8_t code) {
  uint32_t sign = uint32_t(code & 0x80) << 24, magnitude = code & 0x7f;
  if (!f.has_sign_of_zero && code == 0x80) return float_of(0x7f800001);
  if (f.overflow == 0x7c && magnitude >= 0x7c)  // e5m2, in quiet form
    return float_of(sign | 0x7f800000 | ((magnitude & 3) << 21) | (magnitude > 0x7c ? 0x400000 : 0));
  if (f.overflow == 0x7e && magnitude == 0x7f) return float_of(sign | 0x7ff00000);
  uint32_t exponent = magnitude >> f.mantissa, rest = magnitude & ((1u << f.mantissa) - 1);
  if (exponent == 0) {
    float value = std::ldexp(float(rest), 1 - f.bias - f.mantissa);
    return float_of(sign | bits_of(value));
  }
  return float_of(sign | ((exponent + uint32_t(127 - f.bias)) << 23) | (rest << (23 - f.mantissa)));
}

// e8m0fnu is an exponent and nothing else: the nearest power of two, the upper one in the middle.
uint8_t encode_exponent(float x) {
  uint32_t u = bits_of(x) & 0x7fffffff, exponent = u >> 23, rest = u & 0x7fffff;
  if (exponent == 0xff) return 0xff;
  bool up = exponent ? rest >= 0x400000 : rest > 0x400000;
  return uint8_t(exponent + up);
}
float decode_exponent(uint8_t code) {
  if (code == 0xff) return float_of(0x7f800001);
  return float_of(code ? uint32_t(code) << 23 : 0x400000);
}

// ---- unsigned integers

// As the processor truncates, in and out of range.
uint16_t to_u16(double x) { return uint16_t(x > -2147483649.0 && x < 2147483648.0 ? int32_t(x) : INT32_MIN); }
uint32_t to_u32(double x) {
  if (x < 2147483648.0) return uint32_t(x > -2147483649.0 ? int32_t(x) : INT32_MIN);
  double rest = x - 2147483648.0;
  return 0x80000000u ^ uint32_t(rest < 2147483648.0 ? int32_t(rest) : INT32_MIN);
}
uint64_t to_u64(double x) {
  constexpr double middle = 9223372036854775808.0;
  if (!(x >= middle)) return x > -middle ? uint64_t(int64_t(x)) : uint64_t(INT64_MIN);
  return x < 2 * middle ? uint64_t(int64_t(x - middle)) ^ (uint64_t(1) << 63) : 0;
}

// ---- the detour

bool has_fraction(DType t) { return is_floating(t) || is_complex(t); }

// What an element of the rare dtype `from` is widened to on its way to `to`.
DType widened(DType from, DType to) {
  switch (from) {
    case DType::u16: return DType::i32;
    case DType::u32: return DType::i64;
    case DType::u64:
      if (!has_fraction(to)) return DType::i64;  // the same bits
      return to == DType::f64 || to == DType::c128 ? DType::f64 : DType::f32;
    case DType::c32: return DType::c64;
    default: return is_rare(from) ? DType::f32 : from;
  }
}
// What is narrowed to the rare dtype `to`, coming from `from`.
DType narrowed(DType to, DType from) {
  if (is_wide_unsigned(to)) return has_fraction(from) ? DType::f64 : DType::i64;
  if (to == DType::c32) return DType::c64;
  return is_rare(to) ? DType::f32 : to;
}

template <class To, class From, class F>
void each(void* to, const void* from, int64_t n, F f) {
  for (int64_t i = 0; i < n; i++) static_cast<To*>(to)[i] = f(static_cast<const From*>(from)[i]);
}

// The two parts of n complex numbers, by the loops that the processor has for halves.
void convert_parts(DType to, void* out, DType from, const void* in, int64_t n) {
  char* const data[] = {static_cast<char*>(out), static_cast<char*>(const_cast<void*>(in))};
  const int64_t strides[] = {dtype_size(to), dtype_size(from)};
  elementwise_table().copy[int(to)][int(from)](data, strides, 2 * n, nullptr);
}

void widen(DType from, DType to, void* wide, const void* rare, int64_t n) {
  switch (from) {
    case DType::u16: return each<int32_t, uint16_t>(wide, rare, n, [](auto x) { return int32_t(x); });
    case DType::u32: return each<int64_t, uint32_t>(wide, rare, n, [](auto x) { return int64_t(x); });
    case DType::u64:
      if (to == DType::f64) return each<double, uint64_t>(wide, rare, n, [](auto x) { return double(x); });
      if (to == DType::f32) return each<float, uint64_t>(wide, rare, n, [](auto x) { return float(x); });
      return each<int64_t, uint64_t>(wide, rare, n, [](auto x) { return int64_t(x); });
    case DType::c32: return convert_parts(DType::f32, wide, DType::f16, rare, n);
    case DType::f8e8m0fnu:
      // NaNs are moved as bits: a register of the processor would make them quiet.
      return each<uint32_t, uint8_t>(wide, rare, n, [](auto x) { return bits_of(decode_exponent(x)); });
    default: {
      const Format& f = FORMATS[int(from) - int(DType::f8e4m3fn)];
      return each<uint32_t, uint8_t>(wide, rare, n, [&](auto x) { return bits_of(decode(f, x)); });
    }
  }
}

void narrow(DType to, DType from, void* rare, const void* wide, int64_t n) {
  const bool whole = from == DType::i64;
  switch (to) {
    case DType::u16:
      if (whole) return each<uint16_t, int64_t>(rare, wide, n, [](auto x) { return uint16_t(x); });
      return each<uint16_t, double>(rare, wide, n, to_u16);
    case DType::u32:
      if (whole) return each<uint32_t, int64_t>(rare, wide, n, [](auto x) { return uint32_t(x); });
      return each<uint32_t, double>(rare, wide, n, to_u32);
    case DType::u64:
      if (whole) return each<uint64_t, int64_t>(rare, wide, n, [](auto x) { return uint64_t(x); });
      return each<uint64_t, double>(rare, wide, n, to_u64);
    case DType::c32: return convert_parts(DType::f16, rare, DType::f32, wide, n);
    case DType::f8e8m0fnu: return each<uint8_t, float>(rare, wide, n, encode_exponent);
    default: {
      const Format& f = FORMATS[int(to) - int(DType::f8e4m3fn)];
      return each<uint8_t, float>(rare, wide, n, [&](auto x) { return encode(f, x); });
    }
  }
}

void move(int size, char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  for (int64_t i = 0; i < n; i++) std::memcpy(to + i * to_step, from + i * from_step, size_t(size));
}

}  // namespace

void cast_rare(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  const auto [to, from] = *static_cast<const RareCast*>(params);
  const int to_size = dtype_size(to), from_size = dtype_size(from);
  if (to == from) return move(to_size, data[0], strides[0], data[1], strides[1], n);
  if (to == DType::f16 && from == DType::c32) return move(2, data[0], strides[0], data[1], strides[1], n);
  const DType wide_from = widened(from, to), wide_to = narrowed(to, from);
  const int64_t wide_sizes[] = {dtype_size(wide_to), dtype_size(wide_from)};
  alignas(16) char read[BLOCK * 16], widened_[BLOCK * 16], converted[BLOCK * 16], written[BLOCK * 16];
  for (int64_t start = 0; start < n; start += BLOCK) {
    const int64_t count = std::min(BLOCK, n - start);
    move(from_size, read, from_size, data[1] + start * strides[1], strides[1], count);
    char *wide = read, *last = converted;
    if (is_rare(from)) widen(from, wide_from, wide = widened_, read, count);
    if (wide_from == wide_to) {
      last = wide;
    } else {
      char* const both[] = {converted, wide};
      elementwise_table().copy[int(wide_to)][int(wide_from)](both, wide_sizes, count, nullptr);
    }
    if (is_rare(to)) narrow(to, wide_to, written, std::exchange(last, written), count);
    move(to_size, data[0] + start * strides[0], strides[0], last, to_size, count);
  }
}

void cast_element(DType to, void* element, DType from, const void* value) {
  char* const data[] = {static_cast<char*>(element), static_cast<char*>(const_cast<void*>(value))};
  const int64_t strides[] = {dtype_size(to), dtype_size(from)};
  RareCast cast{to, from};
  cast_rare(data, strides, 1, &cast);
}

}  // namespace rl
