#include "iterate.h"

#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <cstdlib>
#include <cstring>
#include <utility>

#include "../kernels/transpose.h"
#include "parallel.h"

namespace rl {

const TransposeBlocks& best_transpose_blocks() {
#if defined(RL_HAVE_AVX2)
  if (cpu_capability()[0] == 'A') return avx2::transpose_blocks;
#endif
  return baseline::transpose_blocks;
}

namespace {

// A collapsed iteration: dims[0] is the innermost.
struct Plan {
  int ndim = 0;
  int64_t sizes[MAX_DIMS];
  int64_t strides[MAX_OPERANDS][MAX_DIMS];
};

// True if dimension a should be inside dimension b.
bool inner(const Operands& o, int a, int b) {
  for (int k = 0; k < o.count; k++) {
    int64_t sa = o.strides[k][a], sb = o.strides[k][b];
    if (sa == 0 || sb == 0 || sa == sb) continue;
    return sa < sb;
  }
  return a > b;
}

void make_plan(Plan& plan, const Operands& o, Sizes sizes) {
  int order[MAX_DIMS], n = 0;
  for (int d = int(sizes.size()) - 1; d >= 0; d--) {
    if (sizes[d] == 1) continue;
    int at = n++;
    for (; at > 0 && inner(o, d, order[at - 1]); at--) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int i = 0; i < n; i++) {
    int d = order[i];
    bool merges = plan.ndim > 0;
    for (int k = 0; merges && k < o.count; k++) {
      int64_t* strides = plan.strides[k];
      merges = o.strides[k][d] == strides[plan.ndim - 1] * plan.sizes[plan.ndim - 1];
    }
    if (merges) {
      plan.sizes[plan.ndim - 1] *= sizes[d];
      continue;
    }
    plan.sizes[plan.ndim] = sizes[d];
    for (int k = 0; k < o.count; k++) plan.strides[k][plan.ndim] = o.strides[k][d];
    plan.ndim++;
  }
  if (plan.ndim == 0) {
    plan.ndim = 1;
    plan.sizes[0] = 1;
    for (int k = 0; k < o.count; k++) plan.strides[k][0] = 0;
  }
}

// Runs elements [begin, end) of the plan, counted innermost first.
void run_range(Loop loop, const Plan& plan, const Operands& o, int64_t begin, int64_t end,
               const void* params) {
  int64_t index[MAX_DIMS], steps[MAX_OPERANDS], rest = begin;
  char* data[MAX_OPERANDS];
  for (int k = 0; k < o.count; k++) {
    data[k] = o.data[k];
    steps[k] = plan.strides[k][0];
  }
  for (int d = 0; d < plan.ndim; d++) {
    index[d] = rest % plan.sizes[d];
    rest /= plan.sizes[d];
    for (int k = 0; k < o.count; k++) data[k] += index[d] * plan.strides[k][d];
  }
  while (begin < end) {
    int64_t n = std::min(plan.sizes[0] - index[0], end - begin);
    loop(data, steps, n, params);
    begin += n;
    if (begin >= end) return;
    for (int k = 0; k < o.count; k++) data[k] -= index[0] * steps[k];
    index[0] = 0;
    for (int d = 1; d < plan.ndim; d++) {
      for (int k = 0; k < o.count; k++) data[k] += plan.strides[k][d];
      if (++index[d] < plan.sizes[d]) break;
      for (int k = 0; k < o.count; k++) data[k] -= plan.sizes[d] * plan.strides[k][d];
      index[d] = 0;
    }
  }
}

// Note [tiles]
// A transposed operand is contiguous along a dimension `across` that is not the innermost: read row by row,
// each of its elements comes from another cache line (and, at a power of two, from the same few sets of the
// cache). Such operands are transposed block by block into a buffer that stays in the first-level cache, and
// the loop reads the buffer: 1024 x 1024 floats copied in 0.5 instead of 4.7 ms.
constexpr int64_t TILE_BYTES = 16384;
constexpr int64_t LEAST_TILED = 2048;  // elements
struct Tiles {
  int across = 0;                 // a dimension of the plan; 0: there is nothing to gather
  bool gathered[MAX_OPERANDS]{};  // operands that pass through a buffer
  bool one_row = false;           // a tile is one row for all operands that do not
  int64_t inner, outer;           // sides of a tile, along dimension 0 and `across`
};

Tiles find_tiles(const Plan& plan, const Operands& o, int64_t n) {
  Tiles t;
  if (n < LEAST_TILED || plan.ndim < 2) return t;
  int64_t largest = 1;
  for (int k = 1; k < o.count; k++) {
    int64_t size = o.itemsize[k], step = plan.strides[k][0];
    if (step == size || step == 0 || (size & (size - 1)) || size > 16) continue;
    for (int d = 1; d < plan.ndim; d++) {
      if (plan.strides[k][d] != size || (t.across && t.across != d)) continue;
      t.across = d;
      t.gathered[k] = true;
      largest = std::max(largest, size);
    }
  }
  if (!t.across) return t;
  int64_t most = TILE_BYTES / largest, side = std::min<int64_t>(64, std::max<int64_t>(16, 256 / largest));
  t.inner = std::min(plan.sizes[0], side);
  t.one_row = t.inner == plan.sizes[0];
  for (int k = 0; k < o.count; k++)
    t.one_row &= t.gathered[k] || plan.strides[k][t.across] == plan.strides[k][0] * t.inner;
  t.outer = std::min(plan.sizes[t.across], t.one_row ? most / t.inner / 16 * 16 : side);
  if (t.outer < 4 || (!t.one_row && t.inner < 8))
    t.across = 0;  // a row would be shorter than a call is worth
  return t;
}

// Runs tiles [begin, end) of the plan, counted along dimension 0, then `across`, then the others.
void run_tiles(Loop loop, const Plan& plan, const Operands& o, const Tiles& t, int64_t begin, int64_t end,
               const void* params) {
  alignas(64) char buffers[MAX_OPERANDS][TILE_BYTES];
  const TransposeBlocks& transpose = best_transpose_blocks();
  int64_t along = (plan.sizes[0] + t.inner - 1) / t.inner;
  int64_t down = (plan.sizes[t.across] + t.outer - 1) / t.outer;
  for (int64_t tile = begin; tile < end; tile++) {
    int64_t i = tile % along * t.inner, j = tile / along % down * t.outer, rest = tile / along / down;
    int64_t inner = std::min(t.inner, plan.sizes[0] - i), outer = std::min(t.outer, plan.sizes[t.across] - j);
    char* data[MAX_OPERANDS];
    int64_t steps[MAX_OPERANDS], next[MAX_OPERANDS];
    for (int k = 0; k < o.count; k++)
      data[k] = o.data[k] + i * plan.strides[k][0] + j * plan.strides[k][t.across];
    for (int d = 1; d < plan.ndim; d++) {
      if (d == t.across) continue;
      int64_t index = rest % plan.sizes[d];
      rest /= plan.sizes[d];
      for (int k = 0; k < o.count; k++) data[k] += index * plan.strides[k][d];
    }
    for (int k = 0; k < o.count; k++) {
      steps[k] = plan.strides[k][0];
      next[k] = plan.strides[k][t.across];
      if (!t.gathered[k]) continue;
      int64_t size = o.itemsize[k];
      transpose.of_size[size](data[k], steps[k], inner, outer, buffers[k]);
      data[k] = buffers[k];
      steps[k] = size;
      next[k] = size * inner;
    }
    if (t.one_row) {
      loop(data, steps, inner * outer, params);
      continue;
    }
    for (int64_t row = 0; row < outer; row++) {
      loop(data, steps, inner, params);
      for (int k = 0; k < o.count; k++) data[k] += next[k];
    }
  }
}

// Note [short rows]
// A row of thirty elements of which one operand is broadcast costs more around the loop than in it. Several
// such rows of a result that is contiguous are computed at once: operands that are not are gathered first.
// kron of 30 x 30 and 30 x 30 matrices in 0.3 instead of 1.1 ms, and in half of that where a buffer serves
// strip after strip.
constexpr int64_t SHORT_ROW = 256;  // elements
// Where rows are copied, which costs as much as a loop for each of them soon: fewer, if no vector is left
// over.
constexpr int64_t SHORT_COPIED = 128, SHORT_WHOLE = 48;
struct Strips {
  int64_t rows = 0;  // computed at once, along dimension 1; 0: row by row
  bool gathered[MAX_OPERANDS]{};
};

Strips find_strips(const Plan& plan, const Operands& o, int64_t n) {
  Strips s;
  if (n < LEAST_TILED || plan.ndim < 2 || plan.sizes[0] > SHORT_ROW) return s;
  int64_t largest = 1;
  for (int k = 0; k < o.count; k++) {
    int64_t size = o.itemsize[k], step = plan.strides[k][0];
    bool whole = step == size && plan.strides[k][1] == size * plan.sizes[0];
    // What lies apart is gathered element by element, which is as slow as before.
    if (!whole && (k == 0 || (step != size && step != 0) || (size & (size - 1)) || size > 16)) return s;
    s.gathered[k] = !whole;
    bool copied = !whole && step != 0 && plan.strides[k][1] != 0;
    if (copied && plan.sizes[0] > (plan.sizes[0] % 8 ? SHORT_COPIED : SHORT_WHOLE)) return s;
    largest = std::max(largest, size);
  }
  s.rows = std::min(plan.sizes[1], TILE_BYTES / 2 / largest / plan.sizes[0]);
  if (s.rows < 4) s.rows = 0;
  return s;
}

// `rows` rows of n elements, `next` bytes apart, one after the other into `to`.
void gather_rows(int64_t size, char* to, const char* from, int64_t step, int64_t next, int64_t n,
                 int64_t rows) {
  static const TransposeBlocks& kernels = best_transpose_blocks();
  int64_t bytes = n * size;
  if (next == 0 && step != 0) {  // the same row again and again: each copy is twice as long
    std::memcpy(to, from, size_t(bytes));
    for (int64_t done = bytes, all = bytes * rows; done < all;) {
      int64_t more = std::min(done, all - done);
      std::memcpy(to + done, to, size_t(more));
      done += more;
    }
  } else if (step != 0) {
    kernels.copy_rows(to, from, next, bytes, rows);
  } else {
    kernels.fill_rows[size](to, from, next, n, rows);
  }
}

// Runs strips [begin, end) of the plan, counted along dimension 1, then the others.
void run_strips(Loop loop, const Plan& plan, const Operands& o, const Strips& s, int64_t begin, int64_t end,
                const void* params) {
  alignas(64) char buffers[MAX_OPERANDS][TILE_BYTES / 2];
  const char* filled[MAX_OPERANDS] = {};  // what a buffer holds, which the next strip may read as well
  int64_t filled_rows[MAX_OPERANDS] = {};
  int64_t down = (plan.sizes[1] + s.rows - 1) / s.rows, n = plan.sizes[0];
  for (int64_t strip = begin; strip < end; strip++) {
    int64_t j = strip % down * s.rows, rest = strip / down, rows = std::min(s.rows, plan.sizes[1] - j);
    char* data[MAX_OPERANDS];
    for (int k = 0; k < o.count; k++) data[k] = o.data[k] + j * plan.strides[k][1];
    for (int d = 2; d < plan.ndim; d++) {
      int64_t index = rest % plan.sizes[d];
      rest /= plan.sizes[d];
      for (int k = 0; k < o.count; k++) data[k] += index * plan.strides[k][d];
    }
    for (int k = 1; k < o.count; k++) {
      if (!s.gathered[k]) continue;
      if (filled[k] != data[k] || filled_rows[k] < rows) {
        filled[k] = data[k];
        filled_rows[k] = plan.strides[k][1] == 0 ? s.rows : rows;
        gather_rows(o.itemsize[k], buffers[k], data[k], plan.strides[k][0], plan.strides[k][1], n,
                    filled_rows[k]);
      }
      data[k] = buffers[k];
    }
    loop(data, o.itemsize, n * rows, params);
  }
}

// Note [streaming stores]
// A result too large for the caches is gone from them before anybody reads it, yet every line of it is first
// fetched to be overwritten. Such results are computed in a buffer and stored past the caches: 4M floats
// doubled into new memory in 0.95 instead of 1.4 ms. Where the last-level cache holds them the next operation
// reads them from there (RUSHLIGHT_CACHE, in bytes, says from which size on): exp(x) * sin(x) of 4M floats
// with its gradient then takes 14 instead of 17 ms without.
constexpr int64_t STREAM_BLOCK = 8192;

int64_t streamed_bytes() {
  if (const char* told = std::getenv("RUSHLIGHT_CACHE")) return std::atoll(told);
  int64_t last_level = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return std::max(int64_t(1) << 23, last_level / 4);
}

bool streams(const Operands& o, const int64_t* steps, int64_t n) {
#if defined(__SSE2__)
  static const int64_t least = streamed_bytes();
  if (n * o.itemsize[0] < least || steps[0] != o.itemsize[0]) return false;
  if (reinterpret_cast<uintptr_t>(o.data[0]) % 16 || STREAM_BLOCK % o.itemsize[0]) return false;
  for (int k = 1; k < o.count; k++) {
    if (o.data[k] == o.data[0]) return false;  // in place: the line is there already
  }
  return true;
#else
  return false;
#endif
}

// n elements, one step after another.
void run_row(Loop loop, char* const* data, const int64_t* steps, int count, int64_t n, bool stream,
             const void* params) {
#if defined(__SSE2__)
  if (stream) {
    alignas(64) char buffer[STREAM_BLOCK];
    char* at[MAX_OPERANDS];
    std::copy(data, data + count, at);
    for (int64_t block = STREAM_BLOCK / steps[0]; n >= block; n -= block) {
      char* to = std::exchange(at[0], buffer);
      loop(at, steps, block, params);
      for (int64_t i = 0; i < STREAM_BLOCK; i += 16)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_load_si128(reinterpret_cast<__m128i*>(buffer + i)));
      at[0] = to;
      for (int k = 0; k < count; k++) at[k] += block * steps[k];
    }
    _mm_sfence();
    if (n) loop(at, steps, n, params);
    return;
  }
#endif
  loop(data, steps, n, params);
}

void run_rows(Loop loop, const Operands& o, const int64_t* steps, int64_t n, const void* params) {
  MaybeNoGil released(n);
  bool stream = streams(o, steps, n);
  parallel_for(n, GRAIN, [&](int64_t begin, int64_t end) {
    char* data[MAX_OPERANDS];
    for (int k = 0; k < o.count; k++) data[k] = o.data[k] + begin * steps[k];
    run_row(loop, data, steps, o.count, end - begin, stream, params);
  });
}

}  // namespace

void run_elementwise(Loop loop, Operands& o, Sizes sizes, const void* params) {
  if (o.contiguous) {
    int64_t n = 1, steps[MAX_OPERANDS];
    for (int64_t s : sizes) n *= s;
    if (n == 0) return;
    for (int k = 0; k < o.count; k++) steps[k] = o.tensors[k] ? o.itemsize[k] : 0;
    if (n <= GRAIN) return loop(o.data, steps, n, params);
    return run_rows(loop, o, steps, n, params);
  }
  for (int64_t s : sizes) {
    if (s == 0) return;
  }
  for (int k = 0; k < o.count; k++) {
    if (!o.tensors[k]) {
      std::fill_n(o.strides[k], sizes.size(), 0);
      continue;
    }
    broadcast_strides(o.tensors[k], sizes, o.strides[k]);
    for (size_t d = 0; d < sizes.size(); d++) o.strides[k][d] *= o.itemsize[k];
  }
  Plan plan;
  make_plan(plan, o, sizes);
  int64_t n = 1;
  for (int d = 0; d < plan.ndim; d++) n *= plan.sizes[d];
  if (Tiles tiles = find_tiles(plan, o, n); tiles.across) {
    int64_t count = (plan.sizes[0] + tiles.inner - 1) / tiles.inner *
                    ((plan.sizes[tiles.across] + tiles.outer - 1) / tiles.outer);
    for (int d = 1; d < plan.ndim; d++) count *= d == tiles.across ? 1 : plan.sizes[d];
    MaybeNoGil released(n);
    parallel_for(count, std::max<int64_t>(1, GRAIN / (tiles.inner * tiles.outer)),
                 [&](int64_t begin, int64_t end) { run_tiles(loop, plan, o, tiles, begin, end, params); });
    return;
  }
  if (Strips strips = find_strips(plan, o, n); strips.rows) {
    int64_t count = (plan.sizes[1] + strips.rows - 1) / strips.rows;
    for (int d = 2; d < plan.ndim; d++) count *= plan.sizes[d];
    MaybeNoGil released(n);
    parallel_for(count, std::max<int64_t>(1, GRAIN / (plan.sizes[0] * strips.rows)),
                 [&](int64_t begin, int64_t end) { run_strips(loop, plan, o, strips, begin, end, params); });
    return;
  }
  if (n <= GRAIN) return run_range(loop, plan, o, 0, n, params);
  if (plan.ndim == 1) {
    int64_t steps[MAX_OPERANDS];
    for (int k = 0; k < o.count; k++) steps[k] = plan.strides[k][0];
    return run_rows(loop, o, steps, n, params);
  }
  MaybeNoGil released(n);
  parallel_for(n, GRAIN, [&](int64_t begin, int64_t end) { run_range(loop, plan, o, begin, end, params); });
}

}  // namespace rl
