// The primitives of the special functions: loops over the functions of kernels/special.h, run by the forward
// function of all elementwise primitives. The tables at the end say which dtypes a function has.
#include "../kernels/elementwise.h"
#include "../kernels/special.h"
#include "elementwise_ops.h"
#include "primitive.h"

namespace rl {

namespace {

template <class T>
double read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  if constexpr (sizeof(T) == 2) return double(float(value));
  else return double(value);
}

template <class T>
void write(char* at, double value) {
  T result;
  if constexpr (sizeof(T) == 2) result = T(float(value));
  else result = T(value);
  std::memcpy(at, &result, sizeof(T));
}

template <class T, double (*F)(double)>
void unary_loop(char* const* data, const int64_t* strides, int64_t n, const void*) {
  for (int64_t i = 0; i < n; i++) write<T>(data[0] + i * strides[0], F(read<T>(data[1] + i * strides[1])));
}

template <class T, double (*F)(double, double)>
void binary_loop(char* const* data, const int64_t* strides, int64_t n, const void*) {
  for (int64_t i = 0; i < n; i++) {
    double result = F(read<T>(data[1] + i * strides[1]), read<T>(data[2] + i * strides[2]));
    write<T>(data[0] + i * strides[0], result);
  }
}

template <class T, DType DTYPE>
void polygamma_loop(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  int64_t order = static_cast<const Param*>(params)->integer;
  if (order == 1) {
    static const Loop trigamma = find_elementwise("_trigamma")->loops[int(DTYPE)];
    return trigamma(data, strides, n, nullptr);
  }
  for (int64_t i = 0; i < n; i++)
    write<T>(data[0] + i * strides[0], polygamma(order, read<T>(data[1] + i * strides[1])));
}

template <class T, Polynomial FAMILY>
void polynomial_loop(char* const* data, const int64_t* strides, int64_t n, const void*) {
  for (int64_t i = 0; i < n; i++) {
    T x, degree;
    std::memcpy(&x, data[1] + i * strides[1], sizeof(T));
    std::memcpy(&degree, data[2] + i * strides[2], sizeof(T));
    T result = polynomial(FAMILY, x, degree);
    std::memcpy(data[0] + i * strides[0], &result, sizeof(T));
  }
}

struct Loops {
  Loop single, double_, half = nullptr, bfloat16 = nullptr;
};

Elementwise entry(const char* name, int inputs, int scalars, Promote promote, const Loops& loops) {
  Elementwise e{name, inputs, scalars, false, OutType::same, promote, {}};
  e.loops[int(DType::f32)] = loops.single;
  e.loops[int(DType::f64)] = loops.double_;
  e.loops[int(DType::f16)] = loops.half;
  e.loops[int(DType::bf16)] = loops.bfloat16;
  return e;
}

// torch has some of these for float and double only.
#define RL_WIDE(LOOP, ...) \
  Loops { LOOP<float, __VA_ARGS__>, LOOP<double, __VA_ARGS__> }
#define RL_ALL(LOOP, ...)                                                         \
  Loops {                                                                         \
    LOOP<float, __VA_ARGS__>, LOOP<double, __VA_ARGS__>, LOOP<Half, __VA_ARGS__>, \
        LOOP<BFloat16, __VA_ARGS__>                                               \
  }
#define RL_BY_PRECISION(NAME)                                                        \
  Loops {                                                                            \
    binary_loop<float, rl::rough_##NAME>, binary_loop<double, rl::NAME>,             \
        binary_loop<Half, rl::rough_##NAME>, binary_loop<BFloat16, rl::rough_##NAME> \
  }
#define RL_UNARY(NAME, DTYPES) entry(#NAME, 1, 0, Promote::int_to_float, RL_##DTYPES(unary_loop, rl::NAME))
#define RL_BINARY(NAME, DTYPES, PROMOTE) \
  entry(#NAME, 2, 0, Promote::PROMOTE, RL_##DTYPES(binary_loop, rl::NAME))
#define RL_POLYNOMIAL(NAME, FAMILY) \
  entry(NAME, 2, 0, Promote::int_to_float, RL_WIDE(polynomial_loop, Polynomial::FAMILY))

const Elementwise* special_entries(int& count) {
  static const Elementwise entries[] = {
      RL_UNARY(modified_bessel_k0, WIDE),
      RL_UNARY(modified_bessel_k1, WIDE),
      RL_UNARY(scaled_modified_bessel_k0, WIDE),
      RL_UNARY(scaled_modified_bessel_k1, WIDE),
      RL_UNARY(bessel_j0, WIDE),
      RL_UNARY(bessel_j1, WIDE),
      RL_UNARY(bessel_y0, WIDE),
      RL_UNARY(bessel_y1, WIDE),
      RL_UNARY(spherical_bessel_j0, WIDE),
      RL_UNARY(airy_ai, WIDE),
      RL_UNARY(erfcx, WIDE),
      RL_UNARY(log_ndtr, WIDE),
      RL_BINARY(zeta, WIDE, int_to_float),
      entry("igamma", 2, 0, Promote::none, RL_BY_PRECISION(igamma)),
      entry("igammac", 2, 0, Promote::none, RL_BY_PRECISION(igammac)),
      entry("polygamma", 1, 1, Promote::int_to_float,
            Loops{polygamma_loop<float, DType::f32>, polygamma_loop<double, DType::f64>,
                  polygamma_loop<Half, DType::f16>, polygamma_loop<BFloat16, DType::bf16>}),
      RL_POLYNOMIAL("chebyshev_polynomial_t", chebyshev_t),
      RL_POLYNOMIAL("chebyshev_polynomial_u", chebyshev_u),
      RL_POLYNOMIAL("chebyshev_polynomial_v", chebyshev_v),
      RL_POLYNOMIAL("chebyshev_polynomial_w", chebyshev_w),
      RL_POLYNOMIAL("shifted_chebyshev_polynomial_t", shifted_chebyshev_t),
      RL_POLYNOMIAL("shifted_chebyshev_polynomial_u", shifted_chebyshev_u),
      RL_POLYNOMIAL("shifted_chebyshev_polynomial_v", shifted_chebyshev_v),
      RL_POLYNOMIAL("shifted_chebyshev_polynomial_w", shifted_chebyshev_w),
      RL_POLYNOMIAL("hermite_polynomial_h", hermite_h),
      RL_POLYNOMIAL("hermite_polynomial_he", hermite_he),
      RL_POLYNOMIAL("laguerre_polynomial_l", laguerre_l),
      RL_POLYNOMIAL("legendre_polynomial_p", legendre_p),
  };
  count = int(std::size(entries));
  return entries;
}

ModuleInit init([](PyObject*) {
  static const char* arguments[] = {"", "(x", "(a, b"};
  int count;
  const Elementwise* entries = special_entries(count);
  for (int i = 0; i < count; i++) {
    const Elementwise& e = entries[i];
    std::string signature = std::string(e.name) + arguments[e.n_inputs] + (e.n_scalars ? "; s)" : ")");
    define(signature.c_str(), elementwise_forward, uint8_t(Primitive::IN_PLACE), &e);
  }
});

}  // namespace
}  // namespace rl
