// The element types: their C++ types, sizes, names and classes, and how two of them promote.
//
// Read `DType` first, then `visit`: it calls a generic lambda with the C++ type that belongs to a DType,
// which is how every kernel is instantiated. Half and BFloat16 are storage formats; arithmetic on them
// happens in float ("compute type") and is rounded once when stored.
//
// Note [rare dtypes]
// The dtypes after bf16 (`is_rare`) exist as in torch, which has few operations for them, but no loop is
// instantiated for them: `visit` refuses them. What moves elements goes by their size; casts go by way of a
// dtype that has loops (kernels/rare_cast.cpp); every primitive that is given one is handed to
// rushlight/_rare_dtypes.py, which knows what torch computes and by way of what (python/rare_ops.cpp).
#pragma once
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace rl {

enum class DType : uint8_t {
  u8,
  i8,
  i16,
  i32,
  i64,
  f16,
  f32,
  f64,
  c64,
  c128,
  b1,
  bf16,  // the last one with loops
  u16,
  u32,
  u64,
  c32,
  f8e4m3fn,
  f8e5m2,
  f8e4m3fnuz,
  f8e5m2fnuz,
  f8e8m0fnu
};
constexpr int DTYPE_COUNT = 12;      // those that loops are instantiated for
constexpr int ALL_DTYPE_COUNT = 21;  // with the rare ones, see Note [rare dtypes]
constexpr bool is_rare(DType t) { return t > DType::bf16; }
// Whether a tensor of a rare dtype was ever made in this process: until then nobody looks for one.
extern bool rare_dtypes_seen;
// Called before memory for elements of one is allocated; may refuse by throwing.
extern void (*note_rare_dtype)(DType dtype);

[[noreturn]] void fail_rare(DType dtype);            // there is no loop for it
[[noreturn]] void fail_promotion(DType a, DType b);  // torch does not say what they become

// Everything a kernel file defines sits in an inline namespace of its instruction set, so that the two
// compilations of one file never merge at link time. Files compiled once see no RL_ISA.
#ifndef RL_ISA
#define RL_ISA generic
#endif
inline namespace RL_ISA {

inline float half_to_float(uint16_t h) {
#if defined(__F16C__)
  return _cvtsh_ss(h);
#else
  uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 0x3ff, bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000 | (mantissa << 13);
  } else if (exponent) {
    bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
  } else if (mantissa) {  // subnormal: value is mantissa * 2^-24, exact in float
    float value = float(mantissa) * 0x1p-24f;
    std::memcpy(&bits, &value, 4);
    bits |= sign;
  } else {
    bits = sign;
  }
  float result;
  std::memcpy(&result, &bits, 4);
  return result;
#endif
}

inline uint16_t float_to_half(float value) {
#if defined(__F16C__)
  return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
#else
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x38800000) {  // subnormal half: let the float adder round to a multiple of 2^-24
    float shifted;
    std::memcpy(&shifted, &magnitude, 4);
    shifted += 0.5f;
    uint32_t rounded;
    std::memcpy(&rounded, &shifted, 4);
    return uint16_t(sign | (rounded - 0x3f000000));
  }
  uint32_t odd = (magnitude >> 13) & 1;
  return uint16_t(sign | ((magnitude + 0xc8000fff + odd) >> 13));
#endif
}

struct Half {
  uint16_t bits;
  Half() = default;
  Half(float value) : bits(float_to_half(value)) {}
  operator float() const { return half_to_float(bits); }
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  BFloat16(float value) {
    uint32_t u;
    std::memcpy(&u, &value, 4);
    bits = (u & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : uint16_t((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  }
  operator float() const {
    uint32_t u = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &u, 4);
    return value;
  }
};

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ type of `dtype`.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::u8: return f(TypeTag<uint8_t>{});
    case DType::i8: return f(TypeTag<int8_t>{});
    case DType::i16: return f(TypeTag<int16_t>{});
    case DType::i32: return f(TypeTag<int32_t>{});
    case DType::i64: return f(TypeTag<int64_t>{});
    case DType::f16: return f(TypeTag<Half>{});
    case DType::f32: return f(TypeTag<float>{});
    case DType::f64: return f(TypeTag<double>{});
    case DType::c64: return f(TypeTag<std::complex<float>>{});
    case DType::c128: return f(TypeTag<std::complex<double>>{});
    case DType::b1: return f(TypeTag<bool>{});
    case DType::bf16: return f(TypeTag<BFloat16>{});
    default: fail_rare(dtype);
  }
}

template <class T>
constexpr bool is_complex_v = false;
template <class T>
constexpr bool is_complex_v<std::complex<T>> = true;
template <class T>
constexpr bool is_reduced_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool is_floating_v = std::is_floating_point_v<T> || is_reduced_v<T>;

// The type arithmetic happens in.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <class T>
using compute_t = typename ComputeType<T>::type;

// Conversion between any two element types as torch does it: a complex loses its imaginary part, a float
// becomes bool by != 0, and out-of-range floats go through int64 so that the result wraps and is never
// undefined.
template <class To, class From>
inline To convert(From x) {
  if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>) return To(x);
    else if constexpr (std::is_same_v<To, bool>) return x.real() != 0 || x.imag() != 0;
    else return convert<To>(x.real());
  } else if constexpr (is_reduced_v<From>) {
    return convert<To>(float(x));
  } else if constexpr (is_complex_v<To>) {
    return To(typename To::value_type(x), 0);
  } else if constexpr (is_reduced_v<To>) {
    return To(float(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // cvttsd2si gives INT64_MIN outside the range; spell that out, as the C++ cast would be undefined.
    int64_t wide =
        x > From(-9223372036854775808.0) && x < From(9223372036854775808.0) ? int64_t(x) : INT64_MIN;
    if constexpr (sizeof(To) == 4) {
      return x > From(-2147483649.0) && x < From(2147483648.0) ? To(int64_t(x)) : To(INT32_MIN);
    }
    return To(wide);
  } else {
    return To(x);
  }
}

}  // namespace RL_ISA

// Outside the function: a table inside it would be copied to the stack at every call.
inline constexpr uint8_t DTYPE_SIZES[] = {1, 1, 2, 4, 8, 2, 4, 8, 8, 16, 1, 2, 2, 4, 8, 4, 1, 1, 1, 1, 1};
constexpr int dtype_size(DType t) { return DTYPE_SIZES[int(t)]; }
inline constexpr const char* DTYPE_NAMES[] = {
    "uint8",         "int8",          "int16",       "int32",           "int64",
    "float16",       "float32",       "float64",     "complex64",       "complex128",
    "bool",          "bfloat16",      "uint16",      "uint32",          "uint64",
    "complex32",     "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu"};
constexpr const char* dtype_name(DType t) { return DTYPE_NAMES[int(t)]; }
// torch's C++ names, which its error sentences use ("expected scalar type Float but found Double").
inline constexpr const char* DTYPE_CLASS_NAMES[] = {"Byte",
                                                    "Char",
                                                    "Short",
                                                    "Int",
                                                    "Long",
                                                    "Half",
                                                    "Float",
                                                    "Double",
                                                    "ComplexFloat",
                                                    "ComplexDouble",
                                                    "Bool",
                                                    "BFloat16",
                                                    "UInt16",
                                                    "UInt32",
                                                    "UInt64",
                                                    "ComplexHalf",
                                                    "Float8_e4m3fn",
                                                    "Float8_e5m2",
                                                    "Float8_e4m3fnuz",
                                                    "Float8_e5m2fnuz",
                                                    "Float8_e8m0fnu"};
constexpr const char* dtype_class_name(DType t) { return DTYPE_CLASS_NAMES[int(t)]; }
constexpr bool is_complex(DType t) { return t == DType::c64 || t == DType::c128 || t == DType::c32; }
constexpr bool is_float8(DType t) { return t >= DType::f8e4m3fn; }
constexpr bool is_floating(DType t) {
  return t == DType::f16 || t == DType::f32 || t == DType::f64 || t == DType::bf16 || is_float8(t);
}
constexpr bool is_wide_unsigned(DType t) { return t >= DType::u16 && t <= DType::u64; }
constexpr bool is_integral(DType t) { return t <= DType::i64 || is_wide_unsigned(t); }  // without bool
constexpr bool is_bool(DType t) { return t == DType::b1; }
constexpr bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }
constexpr DType to_real(DType t) {
  return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t == DType::c32 ? DType::f16 : t;
}
constexpr DType to_complex(DType t) {
  return t == DType::f64 || t == DType::c128  ? DType::c128
         : t == DType::f16 || t == DType::c32 ? DType::c32
                                              : DType::c64;
}
// 0 bool, 1 integer, 2 floating, 3 complex: torch's "categories", the first thing promotion compares.
constexpr int category(DType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : is_bool(t) ? 0 : 1; }

// The type of a result of two operands of equal standing (both with dimensions, or both without).
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_float8(a) || is_float8(b)) fail_promotion(a, b);
  int ca = category(a), cb = category(b);
  if ((is_wide_unsigned(a) && cb != 2) || (is_wide_unsigned(b) && ca != 2)) fail_promotion(a, b);
  if (ca < cb) {
    DType t = a;
    a = b;
    b = t;
    int c = ca;
    ca = cb;
    cb = c;
  }  // a has the higher category
  if (ca == 3) {
    if (cb < 2) return a;
    if (a == DType::c128 || b == DType::c128 || b == DType::f64) return DType::c128;
    return a == DType::c32 && b == DType::f16 ? DType::c32 : DType::c64;
  }
  if (ca == 2) {
    if (cb < 2) return a;
    if (a == DType::f64 || b == DType::f64) return DType::f64;
    return DType::f32;  // f32 with anything smaller, and f16 with bf16
  }
  if (cb == 0) return a;
  // two different integer types: the wider one; u8 with i8 needs i16
  if (a == DType::u8) return b == DType::i8 ? DType::i16 : b;
  if (b == DType::u8) return a == DType::i8 ? DType::i16 : a;
  return a > b ? a : b;
}

constexpr bool can_cast(DType from, DType to) {
  if (category(from) > category(to)) return false;
  return true;
}

}  // namespace rl
