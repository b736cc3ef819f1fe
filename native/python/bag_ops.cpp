// Sums and means of bags of rows of a table, without writing the rows out.
#include <algorithm>
#include <cstring>

#include "../kernels/workspace.h"
#include "../tensor/iterate.h"
#include "arguments.h"
#include "visit_floating.h"

namespace rl {
namespace {

constexpr const char* NAME = "embedding_bag";
constexpr int64_t AHEAD = 8;    // rows of the next bag that are asked of memory before,
constexpr int64_t ASKED = 512;  // so many bytes of each
constexpr int64_t LINE = 64;

TensorRef integers(Tensor* t) {
  if (t->dtype != DType::i64 || t->ndim != 1)
    fail(PyExc_RuntimeError, "embedding_bag: indices and starts are one-dimensional and int64");
  return stable(t);
}

// K vectors of the sum of a bag's rows, which lie `at[i] * width` elements into the table.
template <int K, class C>
void sum_vectors(const C* table, int64_t width, const int64_t* at, int64_t rows, C* sum) {
  // Vectors are copied one by one: an array that is copied whole lives in memory.
  typedef C Vector __attribute__((vector_size(16)));
  constexpr int64_t LANES = 16 / sizeof(C);
  Vector totals[K];
#pragma GCC unroll 8
  for (int k = 0; k < K; k++) totals[k] = Vector{};
  for (int64_t i = 0; i < rows; i++) {
    const C* row = table + at[i] * width;
#pragma GCC unroll 8
    for (int k = 0; k < K; k++) {
      Vector v;
      std::memcpy(&v, row + k * LANES, sizeof v);
      totals[k] += v;
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < K; k++) {
    Vector v = totals[k];
    std::memcpy(sum + k * LANES, &v, sizeof v);
  }
}

// The sums of a bag. They stay in registers where they are of the table's own type; added up in memory, rows
// of 32 floats took three times as long.
template <class C, class T>
void sum_rows(const T* table, int64_t width, const int64_t* at, int64_t rows, C* sum) {
  int64_t d = 0;
  if constexpr (std::is_same_v<C, T>) {
    constexpr int64_t LANES = 16 / sizeof(C);
    for (; d + 8 * LANES <= width; d += 8 * LANES) sum_vectors<8>(table + d, width, at, rows, sum + d);
    for (; d + LANES <= width; d += LANES) sum_vectors<1>(table + d, width, at, rows, sum + d);
  }
  std::fill(sum + d, sum + width, C(0));
  for (int64_t i = 0; d < width && i < rows; i++) {
    const T* row = table + at[i] * width;
    for (int64_t e = d; e < width; e++) sum[e] += C(row[e]);
  }
}

// bag_sum(weight, index, starts; mean, length, scale): bag b is index[starts[b]] to index[starts[b + 1]], an
// empty one gives zeros. The last two only matter to the derivative.
PyObject* bag_sum_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* weight = tensor_argument(NAME, args[0]);
  TensorRef index = integers(tensor_argument(NAME, args[1])),
            starts = integers(tensor_argument(NAME, args[2]));
  bool mean = bool_argument(NAME, "mean", args[3]);
  if (weight->ndim != 2) fail(PyExc_RuntimeError, "'weight' must be 2-D");
  if (starts->numel < 1) fail(PyExc_RuntimeError, "embedding_bag: starts are missing");
  int64_t bags = starts->numel - 1, width = weight->size(1), rows = weight->size(0), n = index->numel;
  int64_t sizes[] = {bags, width};
  TensorRef result = new_tensor(sizes, weight->dtype, weight->device());
  if (weight->is_meta()) return result.release_object();
  if (index->is_meta() || starts->is_meta()) fail(PyExc_RuntimeError, "embedding_bag: indices without data");
  const int64_t *at = index->data_as<int64_t>(), *first = starts->data_as<int64_t>();
  bool sorted = first[0] >= 0 && first[bags] <= n;
  for (int64_t b = 0; b < bags; b++) sorted &= first[b] <= first[b + 1];
  if (!sorted) fail(PyExc_RuntimeError, "offsets have to be sorted: a bag cannot end before it starts");
  for (int64_t i = 0; i < n; i++)
    if (at[i] < 0 || at[i] >= rows) {
      if (weight->dtype == DType::f64) {  // which torch sums by other means
        failf(PyExc_RuntimeError,
              "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be %lld",
              (long long)at[i]);
      }
      failf(PyExc_RuntimeError,
            "Index %lld of input takes value %lld which is not in the valid range [0, %lld)", (long long)i,
            (long long)at[i], (long long)rows);
    }
  TensorRef table = contiguous(weight);
  MaybeNoGil released(n * width);
  visit_floating(NAME, weight->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const T* from = table->data_as<T>();
    const int64_t asked = std::min<int64_t>(width * int64_t(sizeof(T)), ASKED);
    Workspaces spaces(num_threads(), width * int64_t(sizeof(C)));
    divide(double(n) * double(width), bags, [&](int64_t begin, int64_t end) {
      Workspaces::Lease lease(spaces);
      C* sum = lease.as<C>();
      for (int64_t b = begin; b < end; b++) {
        for (int64_t i = first[b + 1]; i < std::min(first[b + 1] + AHEAD, n); i++) {
          const char* next = reinterpret_cast<const char*>(from + at[i] * width);
          for (int64_t byte = 0; byte < asked; byte += LINE) __builtin_prefetch(next + byte);
        }
        sum_rows(from, width, at + first[b], first[b + 1] - first[b], sum);
        T* to = result->data_as<T>() + b * width;
        C count = C(std::max<int64_t>(first[b + 1] - first[b], 1));
        if (mean)
          for (int64_t d = 0; d < width; d++) to[d] = T(sum[d] / count);
        else
          for (int64_t d = 0; d < width; d++) to[d] = T(sum[d]);
      }
    });
  });
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("bag_sum(weight, index, starts; mean, length, scale)", bag_sum_forward, Primitive::FOLLOWS_FIRST);
});

}  // namespace
}  // namespace rl
