// Walks over the geometry of a reduction and feeds the loops of the chosen instruction set.
//
// `reduce` picks a kernel, then `Walk` sorts the dimensions into kept and reduced ones, joins those that lie
// contiguously, and cuts the work into tasks: a block of neighbouring results each, and where there are few
// results and many elements, a part of the reduced dimension too. A task feeds its kernel either with rows
// (the reduced dimension is the contiguous one) or with columns (a kept one is); elements that are not
// contiguous at all are first gathered into a small buffer.
#include "reduce.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>

#include "../tensor/parallel.h"

namespace rl {
namespace {

constexpr int64_t BLOCK = 512;       // results of one task
constexpr int64_t GRAIN = 32768;     // elements worth a thread's while
constexpr int MAX_ACCUMULATOR = 24;  // bytes
constexpr int64_t BUFFER = 16384;    // bytes of gathered elements
constexpr int64_t FOLDS = 32;        // see Walk::feed
constexpr int64_t TURNED = 64;       // rows that are worth to be turned

// Copies n elements, `stride` elements apart, next to each other; may convert them on the way.
using Gather = void (*)(void* to, const void* from, int64_t n, int64_t stride);

template <class T>
void gather_copy(void* to, const void* from, int64_t n, int64_t stride) {
  for (int64_t i = 0; i < n; i++) ((T*)to)[i] = ((const T*)from)[i * stride];
}
template <class T>
void gather_magnitude(void* to, const void* from, int64_t n, int64_t stride) {
  for (int64_t i = 0; i < n; i++) ((T*)to)[i] = std::abs(((const std::complex<T>*)from)[i * stride]);
}
template <class T>
void gather_truth(void* to, const void* from, int64_t n, int64_t stride) {
  for (int64_t i = 0; i < n; i++)
    ((uint8_t*)to)[i] = convert<bool>(((const std::complex<T>*)from)[i * stride]);
}

struct Bytes16 {
  uint64_t low, high;
};

Gather plain_gather(int size) {
  switch (size) {
    case 1: return gather_copy<uint8_t>;
    case 2: return gather_copy<uint16_t>;
    case 4: return gather_copy<uint32_t>;
    case 8: return gather_copy<uint64_t>;
    default: return gather_copy<Bytes16>;
  }
}

const ReduceKernel* find_kernel(ReduceOp op, DType dtype, const ReduceParams& params) {
  switch (op) {
    case ReduceOp::norm:
      if (std::isinf(params.p)) {
        return RL_CHOOSE(extreme_kernel, params.p > 0 ? ReduceOp::max : ReduceOp::min, dtype, true);
      }
      return RL_CHOOSE(sum_kernel, op, dtype, params);
    case ReduceOp::max:
    case ReduceOp::min:
    case ReduceOp::any:
    case ReduceOp::all: return RL_CHOOSE(extreme_kernel, op, dtype, false);
    case ReduceOp::var:
    case ReduceOp::std:
    case ReduceOp::logsumexp: return RL_CHOOSE(moment_kernel, op, dtype);
    case ReduceOp::argmax:
    case ReduceOp::argmin: return RL_CHOOSE(index_kernel, op, dtype);
    default: return RL_CHOOSE(sum_kernel, op, dtype, params);
  }
}

// A dimension and what one step along it means in the input, the output and the values.
struct Dim {
  int64_t size, in, out, values;
  // Zero strides (expanded dimensions) count as the largest: nothing is contiguous along them.
  uint64_t order() const { return in ? uint64_t(std::abs(in)) : UINT64_MAX; }
};

struct Dims {
  Dim at[MAX_DIMS + 2];
  int n = 0;

  void add(Dim dim) {
    if (dim.size == 1) return;
    int i = n++;
    for (; i > 0 && at[i - 1].order() < dim.order(); i--) at[i] = at[i - 1];
    at[i] = dim;
  }
  // Joins neighbours that are one dimension in disguise; afterwards there is at least one dimension.
  void join() {
    int kept = 0;
    for (int i = 1; i < n; i++) {
      Dim& a = at[kept];
      const Dim& b = at[i];
      if (a.in == b.in * b.size && a.out == b.out * b.size && a.values == b.values * b.size) {
        a = {a.size * b.size, b.in, b.out, b.values};
      } else {
        at[++kept] = b;
      }
    }
    if (n == 0) at[0] = {1, 0, 0, 0};
    n = kept + 1;
  }
  const Dim& inner() const { return at[n - 1]; }
  int64_t numel() const {
    int64_t total = 1;
    for (int i = 0; i < n; i++) total *= at[i].size;
    return total;
  }
};

struct Walk {
  const ReduceKernel* kernel;
  ReduceParams params;
  Dims kept, reduced;
  const char* in;
  int in_size;      // bytes of an element
  int buffer_size;  // bytes of an element as the kernel takes it
  Gather gather;    // null if the inner dimension is contiguous
  char *out, *values;
  int out_size, values_size;
  DType out_dtype;
  bool vertical;  // the inner dimension is a kept one
  int64_t block;  // results of a task, along the inner kept dimension
  int64_t blocks;

  struct Place {
    const char* in;
    char *out, *values;
    int64_t width;
  };

  // Where task t reads and writes.
  Place place(int64_t t) const {
    const Dim& inner = kept.inner();
    int64_t first = t % blocks * block, outer = t / blocks;
    int64_t from = first * inner.in, to = first * inner.out, value = first * inner.values;
    for (int d = kept.n - 2; d >= 0; d--) {
      int64_t i = outer % kept.at[d].size;
      outer /= kept.at[d].size;
      from += i * kept.at[d].in, to += i * kept.at[d].out, value += i * kept.at[d].values;
    }
    return {in + from * in_size, out + to * out_size, values ? values + value * values_size : nullptr,
            std::min(block, inner.size - first)};
  }

  void finish(const Place& p, const void* acc) const {
    const Dim& inner = kept.inner();
    kernel->finish(acc, p.width, p.out, out_dtype, inner.out, p.values, inner.values, params);
  }

  // The elements of `width` results along the innermost reduced dimension, `base` being the first one's
  // position.
  void feed(const char* x, int64_t width, int64_t n, int64_t base, char* acc) const {
    const Dim &k = kept.inner(), &r = reduced.inner();
    if (!gather) {
      if (!vertical) return kernel->rows(x, width, k.in, n, base, acc, params);
      if (width > 16 || r.in != width || n < 2 * FOLDS || kernel->positional) {
        return kernel->columns(x, n, r.in, width, base, acc, params);
      }
      // A few columns without gaps (coordinates, complex numbers): FOLDS rows at a time are as good as one
      // wide row, whose columns are folded together afterwards.
      alignas(16) char wide[16 * FOLDS * MAX_ACCUMULATOR];
      kernel->init(wide, width * FOLDS);
      int64_t whole = n / FOLDS;
      kernel->columns(x, whole, width * FOLDS, width * FOLDS, base, wide, params);
      for (int64_t f = 0; f < FOLDS; f++) kernel->combine(acc, wide + f * width * kernel->acc_size, width);
      x += whole * FOLDS * width * in_size;
      return kernel->columns(x, n - whole * FOLDS, width, width, base, acc, params);
    }
    alignas(64) char buffer[BUFFER];
    int64_t room = BUFFER / buffer_size;
    if (vertical) {
      int64_t rows = room / width;
      for (int64_t begin = 0; begin < n; begin += rows) {
        int64_t m = std::min(rows, n - begin);
        for (int64_t i = 0; i < m; i++) {
          gather(buffer + i * width * buffer_size, x + (begin + i) * r.in * in_size, width, k.in);
        }
        kernel->columns(buffer, m, width, width, base + begin, acc, params);
      }
    } else {
      for (int64_t j = 0; j < width; j++) {
        for (int64_t begin = 0; begin < n; begin += room) {
          int64_t m = std::min(room, n - begin);
          // One element again and again: it is there already.
          bool there = r.in == 0 && (begin > 0 || (j > 0 && k.in == 0));
          if (!there) gather(buffer, x + (j * k.in + begin * r.in) * in_size, m, r.in);
          kernel->rows(buffer, 1, 0, m, base + begin, acc + j * kernel->acc_size, params);
        }
      }
    }
  }

  // Everything that belongs to one task's results and lies in [low, high) along the reduced dimension
  // `split`.
  void accumulate(const Place& p, int split, int64_t low, int64_t high, char* acc) const {
    kernel->init(acc, p.width);
    if (params.count == 0) return;
    int64_t index[MAX_DIMS + 2] = {}, inner = reduced.n - 1;
    auto size = [&](int d) { return d == split ? high - low : reduced.at[d].size; };
    const char* x = p.in + low * reduced.at[split].in * in_size;
    for (;;) {
      feed(x, p.width, size(int(inner)), low, acc);
      int d = int(inner) - 1;
      for (; d >= 0; d--) {
        x += reduced.at[d].in * in_size;
        if (++index[d] < size(d)) break;
        x -= index[d] * reduced.at[d].in * in_size;
        index[d] = 0;
      }
      if (d < 0) return;
    }
  }

  void run() {
    int64_t elements = kept.numel() * params.count;
    const Dim& inner = kept.inner();
    vertical =
        inner.in != 0 && inner.size > 1 && (params.count == 1 || inner.order() <= reduced.inner().order());
    // Short rows: turned, so that many are reduced side by side.
    vertical |= inner.in != 0 && inner.size >= TURNED && params.count <= kernel->short_row;
    if (!gather) {
      int64_t step = vertical ? inner.in : reduced.inner().in;
      if (step != 1 && (vertical || reduced.inner().size > 1)) gather = plain_gather(in_size);
    }
    block = vertical ? BLOCK : std::clamp<int64_t>(GRAIN / 2 / std::max<int64_t>(params.count, 1), 1, BLOCK);
    blocks = (inner.size + block - 1) / block;
    int64_t tasks = kept.numel() / inner.size * blocks;
    int split = 0;
    for (int d = 1; d < reduced.n; d++) {
      if (reduced.at[d].size > reduced.at[split].size) split = d;
    }
    int64_t length = reduced.at[split].size, parts = 1;
    if (tasks < 8 && elements >= 4 * GRAIN) {
      parts = std::min({elements / (2 * GRAIN), length, int64_t(tasks == 1 ? 64 : 16)});
    }
    if (parts <= 1) {
      int64_t grain = std::max<int64_t>(1, GRAIN * tasks / std::max<int64_t>(elements, 1));
      for_tasks(tasks, grain, [&](int64_t t) {
        alignas(16) char acc[BLOCK * MAX_ACCUMULATOR];
        Place p = place(t);
        accumulate(p, split, 0, length, acc);
        finish(p, acc);
      });
      return;
    }
    int64_t bytes = block * kernel->acc_size;
    std::unique_ptr<char[]> partial(new char[tasks * parts * bytes]);
    for_tasks(tasks * parts, 1, [&](int64_t i) {
      int64_t part = i % parts;
      accumulate(place(i / parts), split, length * part / parts, length * (part + 1) / parts,
                 partial.get() + i * bytes);
    });
    for (int64_t t = 0; t < tasks; t++) {
      Place p = place(t);
      char* acc = partial.get() + t * parts * bytes;
      for (int64_t part = 1; part < parts; part++) kernel->combine(acc, acc + part * bytes, p.width);
      finish(p, acc);
    }
  }

  // parallel_for rounds its ranges to whole vectors of elements; a task counts as one such.
  template <class F>
  static void for_tasks(int64_t n, int64_t grain, const F& f) {
    constexpr int64_t UNIT = 16;
    parallel_for(n * UNIT, grain * UNIT, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin / UNIT; t < end / UNIT; t++) f(t);
    });
  }
};

// The usual small case, without the walk: everything to one number, contiguous.
bool reduce_all(const ReduceKernel* kernel, Span out, Span in, uint64_t dims, ReduceParams& params,
                const Span* values) {
  int64_t n = 1;
  for (int d = in.ndim - 1; d >= 0; d--) {
    if (in.sizes[d] == 1) continue;
    if (in.strides[d] != n || !(dims >> d & 1)) return false;
    n *= in.sizes[d];
  }
  if (n >= GRAIN) return false;
  alignas(16) char acc[MAX_ACCUMULATOR];
  params.count = n;
  kernel->init(acc, 1);
  if (n) kernel->rows(in.data, 1, 0, n, 0, acc, params);
  kernel->finish(acc, 1, out.data, out.dtype, 0, values ? values->data : nullptr, 0, params);
  return true;
}

}  // namespace

bool reduce(ReduceOp op, Span out, Span in, uint64_t dims, ReduceParams params, const Span* values) {
  if (is_rare(in.dtype) || is_rare(out.dtype)) return false;
  // Complex numbers: as pairs of reals where each half is treated alike, as magnitudes or truth otherwise.
  DType dtype = in.dtype;
  Gather gather = nullptr;
  bool pairs = false, both_halves = false;
  if (is_complex(dtype) && op != ReduceOp::prod) {
    bool wide = dtype == DType::c128;
    dtype = to_real(dtype);
    if (op == ReduceOp::sum || op == ReduceOp::mean) {
      pairs = true;
    } else if (op == ReduceOp::norm && params.p == 2) {
      pairs = both_halves = true;
    } else if (op == ReduceOp::norm) {
      gather = wide ? gather_magnitude<double> : gather_magnitude<float>;
    } else if (op == ReduceOp::any || op == ReduceOp::all || op == ReduceOp::count_nonzero) {
      gather = wide ? gather_truth<double> : gather_truth<float>;
      dtype = DType::u8;
    } else {
      return false;
    }
  }
  const ReduceKernel* kernel = find_kernel(op, dtype, params);
  if (!kernel) return false;
  if (!pairs && !gather && reduce_all(kernel, out, in, dims, params, values)) return true;

  Walk walk;
  int unit = pairs ? 2 : 1, out_unit = pairs && !both_halves ? 2 : 1;
  params.count = 1;
  bool empty = false;
  for (int d = 0; d < in.ndim; d++) {
    if (dims >> d & 1) {
      params.count *= in.sizes[d];
      walk.reduced.add({in.sizes[d], in.strides[d] * unit, 0, 0});
    } else {
      empty |= in.sizes[d] == 0;
      walk.kept.add(
          {in.sizes[d], in.strides[d] * unit, out.strides[d] * out_unit, values ? values->strides[d] : 0});
    }
  }
  if (empty) return true;
  if (pairs) (both_halves ? walk.reduced : walk.kept).add({2, 1, both_halves ? 0 : 1, 0});
  walk.kept.join();
  walk.reduced.join();
  walk.kernel = kernel;
  walk.params = params;
  walk.in = (const char*)in.data;
  walk.in_size = dtype_size(in.dtype) / unit;
  walk.buffer_size = dtype_size(op == ReduceOp::prod ? in.dtype : dtype);
  walk.gather = gather;
  walk.out = (char*)out.data;
  walk.out_dtype = out.dtype;
  walk.out_size = dtype_size(out.dtype) / out_unit;
  walk.values = values ? (char*)values->data : nullptr;
  walk.values_size = values ? dtype_size(values->dtype) : 0;
  walk.run();
  return true;
}

}  // namespace rl
