// How one line such as
//     BINARY(mul, ALL, none, same, multiply(x, y))
// becomes an entry with a loop for every dtype. Read `loop` and `contiguous`, then the macros at the end.
//
// The expression is compiled for the compute type of each dtype: floating dtypes see x, y, z as vectors
// (f32v, f64v), complex ones as Complex<f32v>, integers and bool as numbers (the compiler vectorises their
// loop). Only one loop per dtype exists, over contiguous operands. Operands with other strides pass through
// small buffers, block by block: that costs a little copying inside the first cache, keeps the library small,
// and makes a result independent of the layout of its operands, to the last bit.
//
// A file whose expressions are short defines RL_STEPPED: see Note [one number for a row].
#pragma once
#include <utility>

#include "arithmetic.h"
#include "families.h"

namespace rl {
inline namespace RL_ISA {
namespace {

constexpr int64_t BUFFER_BYTES = 4096;  // of an operand that pass through the buffers at a time
constexpr int MAX_OPERANDS = 4;         // output and three inputs

using ContiguousLoop = void (*)(char* const* data, int64_t n, const void* params);

template <class Word>
inline void copy_strided(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  if (from_stride == 0 && to_stride == sizeof(Word)) {  // one element everywhere: vector stores
    Word word;
    std::memcpy(&word, from, sizeof(Word));
    for (int64_t i = 0; i < n; i++) std::memcpy(to + i * int64_t(sizeof(Word)), &word, sizeof(Word));
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    Word word;
    std::memcpy(&word, from + i * from_stride, sizeof(Word));
    std::memcpy(to + i * to_stride, &word, sizeof(Word));
  }
}

struct Word16 {
  uint64_t low, high;
};

// n elements of `size` bytes; the two do not overlap, or are the same.
void copy_elements(int size, char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  if (to_stride == size && from_stride == size) {
    if (to != from) std::memcpy(to, from, size_t(n) * size);
    return;
  }
  switch (size) {
    case 1: return copy_strided<uint8_t>(to, to_stride, from, from_stride, n);
    case 2: return copy_strided<uint16_t>(to, to_stride, from, from_stride, n);
    case 4: return copy_strided<uint32_t>(to, to_stride, from, from_stride, n);
    case 8: return copy_strided<uint64_t>(to, to_stride, from, from_stride, n);
    default: return copy_strided<Word16>(to, to_stride, from, from_stride, n);
  }
}

// Runs `kernel` on operands of any stride. sizes are the operands' element sizes, the output first.
[[maybe_unused]] void run_buffered(ContiguousLoop kernel, int operands, const int* sizes, char* const* data,
                                   const int64_t* strides, int64_t n, const void* params) {
  alignas(64) char buffers[MAX_OPERANDS][BUFFER_BYTES];
  char* block[MAX_OPERANDS];
  int largest = 1;
  for (int k = 0; k < operands; k++) largest = sizes[k] > largest ? sizes[k] : largest;
  const int64_t length = BUFFER_BYTES / largest;
  for (int k = 1; k < operands; k++) {
    if (strides[k] == 0) copy_elements(sizes[k], buffers[k], sizes[k], data[k], 0, n < length ? n : length);
  }
  for (int64_t start = 0; start < n; start += length) {
    int64_t count = n - start < length ? n - start : length;
    for (int k = 0; k < operands; k++) {
      char* at = data[k] + start * strides[k];
      block[k] = strides[k] == sizes[k] ? at : buffers[k];
      if (k > 0 && strides[k] != sizes[k] && strides[k] != 0) {
        copy_elements(sizes[k], buffers[k], sizes[k], at, strides[k], count);
      }
    }
    kernel(block, count, params);
    if (block[0] == buffers[0]) {
      copy_elements(sizes[0], data[0] + start * strides[0], strides[0], buffers[0], sizes[0], count);
    }
  }
}

// A scalar argument in the type the expression sees.
template <class V>
inline Complex<V> part_arguments(const Param& p) {
  return {splat<V>(scalar_t<V>(p.real)), splat<V>(scalar_t<V>(p.imag))};
}
template <class X>
inline X scalar_argument(const Param& p) {
  if constexpr (is_vector_v<X>) return splat<X>(scalar_t<X>(p.real));
  else if constexpr (is_complex_number_v<X>) return part_arguments<decltype(X::re)>(p);
  else return X(p.integer);
}

// What the expression gets beside its inputs: scalar arguments a, b, c, and where to note a division by zero.
template <class X>
struct Arguments {
  X a{}, b{}, c{};
  bool by_zero = false;
};

template <class F, class X, class... Xs>
inline auto apply(Arguments<X>& s, Xs... inputs) {
  if constexpr (sizeof...(Xs) == 1) return F{}(inputs..., 0, 0, s.a, s.b, s.c, s.by_zero);
  else if constexpr (sizeof...(Xs) == 2) return F{}(inputs..., 0, s.a, s.b, s.c, s.by_zero);
  else return F{}(inputs..., s.a, s.b, s.c, s.by_zero);
}

// Not inlined, because it runs twice: over the whole vectors, and over the rest, moved into a vector of its
// own.
template <class F, class Out, class T, class X, size_t... I>
[[gnu::noinline]] void whole_vectors(Arguments<X>& s, char* const* data, int64_t n,
                                     std::index_sequence<I...>) {
  Arguments<X> local = s;
  Out* out = reinterpret_cast<Out*>(data[0]);
  const T* in[] = {reinterpret_cast<const T*>(data[1 + I])...};
  for (int64_t i = 0; i < n; i += lanes_v<T>) store(out + i, apply<F>(local, load(in[I] + i)...));
}
// The same where an operand is one vector, read again and again: its step (1 or 0) is 0.
template <class F, class Out, class T, class X, size_t... I>
[[gnu::noinline]] void stepped_vectors(Arguments<X>& s, char* const* data, const int64_t* steps, int64_t n,
                                       std::index_sequence<I...>) {
  Arguments<X> local = s;
  Out* out = reinterpret_cast<Out*>(data[0]);
  const T* in[] = {reinterpret_cast<const T*>(data[1 + I])...};
  const int64_t step[] = {steps[1 + I] * lanes_v<T>...};
  for (int64_t i = 0; i < n; i += lanes_v<T>) {
    store(out + i, apply<F>(local, load(in[I])...));
    ((in[I] += step[I]), ...);
  }
}

template <size_t BYTES>
struct Row {
  typedef uint64_t type __attribute__((vector_size(BYTES)));
};

// One number and zeros behind it, written as one vector: read as a vector right after it was written as a
// number, it would have to wait for the store to reach the cache (a third of a product of two scalars).
template <class T>
inline void store_first(T* row, T value) {
  uint64_t bits[2] = {};
  std::memcpy(bits, &value, sizeof value);
  typename Row<lanes_v<T> * sizeof(T)>::type whole = {};
  whole[0] = bits[0];
  if constexpr (sizeof value > 8) whole[1] = bits[1];
  std::memcpy(row, &whole, sizeof whole);
}

template <class F, class Out, class T, int N, class X>
inline void vector_loop(Arguments<X>& s, char* const* data, int64_t n) {
  constexpr auto inputs = std::make_index_sequence<N>{};
  constexpr int LANES = lanes_v<T>;
  int64_t whole = n - n % LANES;
  if (whole == n) {
    if (n) whole_vectors<F, Out, T>(s, data, n, inputs);
    return;
  }
  // The rest is a vector that ends with the row, computed before the others since the result may be an
  // operand's memory; or, of less than one vector, moved into one.
  Out outputs[LANES];
  char* moved[N + 1] = {reinterpret_cast<char*>(outputs)};
  if (whole) {
    for (int k = 1; k <= N; k++) moved[k] = data[k] + (n - LANES) * int64_t(sizeof(T));
    whole_vectors<F, Out, T>(s, moved, LANES, inputs);
    whole_vectors<F, Out, T>(s, data, whole, inputs);
    std::memcpy(static_cast<void*>(reinterpret_cast<Out*>(data[0]) + n - LANES), outputs, sizeof outputs);
    return;
  }
  T rests[N][LANES] = {};
  for (int k = 0; k < N; k++) {
    moved[k + 1] = reinterpret_cast<char*>(rests[k]);
    const T* from = reinterpret_cast<const T*>(data[k + 1]);
    if (n == 1) store_first(rests[k], *from);
    else
      for (int64_t i = 0; i < n; i++) rests[k][i] = from[i];
  }
  whole_vectors<F, Out, T>(s, moved, LANES, inputs);
  Out* out = reinterpret_cast<Out*>(data[0]);
  for (int64_t i = 0; i < n; i++) out[i] = outputs[i];
}

// One number in every lane, written as one vector (see store_first).
template <class T>
inline void store_everywhere(T* row, T value) {
  if constexpr (sizeof(T) <= 8) {
    using Word =
        std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
    typedef Word Vector __attribute__((vector_size(lanes_v<T> * sizeof(T))));
    Word word;
    std::memcpy(&word, &value, sizeof word);
    Vector whole = Vector{} + word;
    std::memcpy(static_cast<void*>(row), &whole, sizeof whole);
  } else {
    for (int i = 0; i < lanes_v<T>; i++) row[i] = value;
  }
}

// Note [one number for a row]
// Operands that are packed or broadcast along the row. Writing the number out for the whole row, as
// run_buffered does, took as long as the loop itself: x * y of 8 x 64 x 14 x 14 and 64 x 1 x 1 in 15 instead
// of 32 us. At least one whole vector; the rest is a vector that ends with the row, computed before the
// others since the result may be an operand's memory.
template <class F, class Out, class T, int N, class X>
inline void stepped_loop(Arguments<X>& s, char* const* data, const int64_t* strides, int64_t n) {
  alignas(64) T once[N][lanes_v<T>];
  alignas(64) Out last[lanes_v<T>];
  char *at[N + 1] = {data[0]}, *ends[N + 1] = {reinterpret_cast<char*>(last)};
  int64_t steps[N + 1];
  for (int k = 1; k <= N; k++) {
    steps[k] = strides[k] != 0;
    at[k] = data[k];
    if (!steps[k]) {
      store_everywhere(once[k - 1], *reinterpret_cast<const T*>(data[k]));
      at[k] = reinterpret_cast<char*>(once[k - 1]);
    }
    ends[k] = at[k] + steps[k] * (n - lanes_v<T>)*int64_t(sizeof(T));
  }
  constexpr auto inputs = std::make_index_sequence<N>{};
  int64_t whole = n - n % lanes_v<T>;
  if (whole != n) stepped_vectors<F, Out, T>(s, ends, steps, lanes_v<T>, inputs);
  stepped_vectors<F, Out, T>(s, at, steps, whole, inputs);
  if (whole != n)
    std::memcpy(static_cast<void*>(reinterpret_cast<Out*>(data[0]) + n - lanes_v<T>), last, sizeof last);
}

// A bool is read as its byte: the compiler finds no vectors for !x of bools.
template <class T>
inline T number(const T* p) {
  if constexpr (std::is_same_v<T, bool>) {
    uint8_t byte;
    std::memcpy(&byte, p, 1);
    return byte != 0;
  } else {
    return *p;
  }
}

// The compiler vectorises this one. It may assume independent iterations: operands are disjoint or identical.
template <class F, class Out, class T, class X, size_t... I>
inline void number_loop(Arguments<X>& s, char* const* data, int64_t n, std::index_sequence<I...>) {
  Out* out = reinterpret_cast<Out*>(data[0]);
  const T* in[] = {reinterpret_cast<const T*>(data[1 + I])...};
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = Out(apply<F>(s, number(in[I] + i)...));
}

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<Complex<T>> {
  using type = T;
};
template <class T, OutType OUT>
using out_t = std::conditional_t<OUT == OutType::boolean, bool,
                                 std::conditional_t<OUT == OutType::real, typename RealOf<T>::type, T>>;

template <class T>
constexpr bool sees_vectors = is_floating_v<T> || is_complex_number_v<T>;

// `run` gets the arguments of the expression.
template <class T, int SCALARS, bool DIVIDES, class Run>
inline void with_arguments(const void* params, Run run) {
  using X = typename std::conditional_t<sees_vectors<T>, Lane<T>, std::type_identity<T>>::type;
  Arguments<X> s;
  if constexpr (SCALARS > 0) {
    const Param* p = static_cast<const Param*>(params);
    s.a = scalar_argument<X>(p[0]);
    if constexpr (SCALARS > 1) s.b = scalar_argument<X>(p[1]);
    if constexpr (SCALARS > 2) s.c = scalar_argument<X>(p[2]);
  }
  run(s);
  if constexpr (DIVIDES) {
    // All writers write the same value; atomically, so that threads may share the report.
    auto report = static_cast<DivisionReport*>(const_cast<void*>(params));
    if (s.by_zero && report) __atomic_store_n(&report->by_zero, true, __ATOMIC_RELAXED);
  }
}

template <class F, class T, int N, OutType OUT, int SCALARS, bool DIVIDES>
void contiguous(char* const* data, int64_t n, const void* params) {
  with_arguments<T, SCALARS, DIVIDES>(params, [&](auto& s) {
    if constexpr (sees_vectors<T>) vector_loop<F, out_t<T, OUT>, T, N>(s, data, n);
    else number_loop<F, out_t<T, OUT>, T>(s, data, n, std::make_index_sequence<N>{});
  });
}
template <class F, class T, int N, OutType OUT, int SCALARS, bool DIVIDES>
[[gnu::noinline]] void stepped(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  with_arguments<T, SCALARS, DIVIDES>(
      params, [&](auto& s) { stepped_loop<F, out_t<T, OUT>, T, N>(s, data, strides, n); });
}

// The loop that goes into the table.
template <class F, class T, int N, OutType OUT, int SCALARS, bool DIVIDES>
void loop(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  constexpr int size = sizeof(T);
  static constexpr int sizes[MAX_OPERANDS] = {sizeof(out_t<T, OUT>), size, size, size};
  bool packed = strides[0] == sizes[0];
  for (int k = 1; k <= N; k++) packed &= strides[k] == size;
  if (packed || n == 1) return contiguous<F, T, N, OUT, SCALARS, DIVIDES>(data, n, params);
#if defined(RL_STEPPED)
  if constexpr (N > 1 && sees_vectors<T>) {
    bool steps = strides[0] == sizes[0] && n >= lanes_v<T>;
    for (int k = 1; k <= N; k++) steps &= strides[k] == size || strides[k] == 0;
    if (steps) return stepped<F, T, N, OUT, SCALARS, DIVIDES>(data, strides, n, params);
  }
#endif
  run_buffered(contiguous<F, T, N, OUT, SCALARS, DIVIDES>, N + 1, sizes, data, strides, n, params);
}

// Sets of dtypes an operation exists for.
constexpr unsigned dtype_set(DType t) { return 1u << int(t); }
#if defined(__AVX512F__)
// Only what gains: floating dtypes. The others keep the loops of AVX2 (see Note [a third instruction set]).
constexpr unsigned INTEGERS = 0, BOOL = 0;
#else
constexpr unsigned INTEGERS = 31, BOOL = dtype_set(DType::b1);
#endif
constexpr unsigned FLOATING =
    dtype_set(DType::f16) | dtype_set(DType::f32) | dtype_set(DType::f64) | dtype_set(DType::bf16);
#if defined(__AVX512F__)
constexpr unsigned COMPLEX = 0;
#else
constexpr unsigned COMPLEX = dtype_set(DType::c64) | dtype_set(DType::c128);
#endif
constexpr unsigned REAL = INTEGERS | FLOATING;  // numbers with an order, without bool
constexpr unsigned NUMBERS = REAL | COMPLEX;
constexpr unsigned ALL = NUMBERS | BOOL;

template <int D, int N, unsigned TYPES, OutType OUT, int SCALARS, bool DIVIDES, class F>
constexpr void add_loop(FamilyEntry& e) {
  constexpr bool reports = DIVIDES && is_integral(DType(D));
  if constexpr (TYPES & dtype_set(DType(D))) e.loops[D] = loop<F, element_t<D>, N, OUT, SCALARS, reports>;
}

// The expression of two inputs with the scalar argument as the second.
template <class F>
struct ByNumber {
  template <class X>
  auto operator()(X x, int, int, X a, X b, X c, bool& by_zero) const {
    return F{}(x, a, 0, a, b, c, by_zero);
  }
};

template <int N, unsigned TYPES, OutType OUT, int SCALARS, bool DIVIDES, Keeps KEEPS, class F>
constexpr FamilyEntry entry(const char* name, Promote promote, F) {
  FamilyEntry e{name, N, SCALARS, DIVIDES, OUT, promote, {}, KEEPS, {}};
  if constexpr (KEEPS == Keeps::second) {
    e.by_number[0] = loop<ByNumber<F>, Half, 1, OUT, 1, false>;
    e.by_number[1] = loop<ByNumber<F>, BFloat16, 1, OUT, 1, false>;
  }
  auto add_loops = [&]<int... D>(std::integer_sequence<int, D...>) {
    (add_loop<D, N, TYPES, OUT, SCALARS, DIVIDES, F>(e), ...);
  };
  add_loops(std::make_integer_sequence<int, DTYPE_COUNT>{});
  return e;
}

// NAME, the dtypes it has, what is promoted first, the dtype of the result, and the expression in x, y, z.
// An operation with scalar arguments (SCALARS of them) sees them as a, b, c; one that divides integers passes
// by_zero on.
#define RL_ENTRY(INPUTS, SCALARS, DIVIDES, KEEPS, NAME, TYPES, PROMOTE, OUT, ...)                            \
  entry<INPUTS, TYPES, OutType::OUT, SCALARS, DIVIDES, Keeps::KEEPS>(                                        \
      #NAME, Promote::PROMOTE,                                                                               \
      []([[maybe_unused]] auto x, [[maybe_unused]] auto y, [[maybe_unused]] auto z, [[maybe_unused]] auto a, \
         [[maybe_unused]] auto b, [[maybe_unused]] auto c,                                                   \
         [[maybe_unused]] bool& by_zero) { return __VA_ARGS__; })
#define UNARY(...) RL_ENTRY(1, 0, false, scalars, __VA_ARGS__)
#define BINARY(...) RL_ENTRY(2, 0, false, scalars, __VA_ARGS__)
#define BINARY_KEEPING(...) RL_ENTRY(2, 0, false, second, __VA_ARGS__)
#define TERNARY(...) RL_ENTRY(3, 0, false, scalars, __VA_ARGS__)
#define DIVISION(...) RL_ENTRY(2, 0, true, scalars, __VA_ARGS__)
#define DIVISION_KEEPING(...) RL_ENTRY(2, 0, true, second, __VA_ARGS__)
#define UNARY_WITH(SCALARS, ...) RL_ENTRY(1, SCALARS, false, scalars, __VA_ARGS__)
#define UNARY_WITH_ROUNDED(SCALARS, ...) RL_ENTRY(1, SCALARS, false, no_scalar, __VA_ARGS__)
#define BINARY_WITH_ROUNDED(SCALARS, ...) RL_ENTRY(2, SCALARS, false, no_scalar, __VA_ARGS__)
#define BINARY_WITH(SCALARS, ...) RL_ENTRY(2, SCALARS, false, scalars, __VA_ARGS__)
#define TERNARY_WITH(SCALARS, ...) RL_ENTRY(3, SCALARS, false, scalars, __VA_ARGS__)

}  // namespace
}  // namespace RL_ISA
}  // namespace rl
