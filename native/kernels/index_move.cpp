#include "index_move.h"

#include "../tensor/parallel.h"
#include "index_walk.h"
#include "transpose.h"

namespace rl {

namespace {

constexpr int64_t SHORT_ROW = 2048;  // bytes

// Rows of a fixed length between two row strides: the copy of one is a few instructions, not a call.
template <size_t BYTES>
void copy_rows(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t rows) {
  for (int64_t r = 0; r < rows; r++, to += to_step, from += from_step) __builtin_memcpy(to, from, BYTES);
}
void copy_short_rows(int64_t bytes, char* to, int64_t to_step, const char* from, int64_t from_step,
                     int64_t rows) {
  switch (bytes) {
    case 2: return copy_rows<2>(to, to_step, from, from_step, rows);
    case 3: return copy_rows<3>(to, to_step, from, from_step, rows);
    case 4: return copy_rows<4>(to, to_step, from, from_step, rows);
    case 8: return copy_rows<8>(to, to_step, from, from_step, rows);
    case 12: return copy_rows<12>(to, to_step, from, from_step, rows);
    case 16: return copy_rows<16>(to, to_step, from, from_step, rows);
    case 24: return copy_rows<24>(to, to_step, from, from_step, rows);
    case 32: return copy_rows<32>(to, to_step, from, from_step, rows);
    case 48: return copy_rows<48>(to, to_step, from, from_step, rows);
    case 64: return copy_rows<64>(to, to_step, from, from_step, rows);
    case 128: return copy_rows<128>(to, to_step, from, from_step, rows);
    default:
      for (int64_t r = 0; r < rows; r++) copy_row(to + r * to_step, from + r * from_step, size_t(bytes));
  }
}

}  // namespace

void move_backwards(int size, char* to, const char* from, int64_t n) {
  best_transpose_blocks().backwards[size](to, from, n);
}

void move_elements(Span out, const void* in, const int64_t* in_strides) {
  // In the order of the result's memory, whatever that of its dimensions.
  int64_t sizes[MAX_DIMS], to_strides[MAX_DIMS], from_strides[MAX_DIMS];
  for (int d = 0; d < out.ndim; d++) {
    int at = d;
    for (; at > 0 && to_strides[at - 1] < out.strides[d]; at--) {
      sizes[at] = sizes[at - 1];
      to_strides[at] = to_strides[at - 1];
      from_strides[at] = from_strides[at - 1];
    }
    sizes[at] = out.sizes[d], to_strides[at] = out.strides[d], from_strides[at] = in_strides[d];
  }
  Walk<2> walk(out.ndim, sizes, {to_strides, from_strides});
  if (walk.ndim >= 2 && walk.step(0) == 1 && walk.step(1) == 1 && walk.numel > 0) {
    int64_t size = dtype_size(out.dtype), length = walk.sizes[walk.ndim - 1], bytes = length * size;
    if (bytes <= SHORT_ROW) {
      walk.ndim--;  // now it walks along rows
      int64_t to_step = walk.step(0) * size, from_step = walk.step(1) * size;
      parallel_for(walk.numel / length, INDEX_GRAIN * 2 / length + 1, [&](int64_t begin, int64_t end) {
        walk.run(begin, end, [&](const int64_t* offsets, int64_t rows) {
          copy_short_rows(bytes, static_cast<char*>(out.data) + offsets[0] * size, to_step,
                          static_cast<const char*>(in) + offsets[1] * size, from_step, rows);
        });
      });
      return;
    }
  }
  visit_size(out.dtype, [&](auto size) {
    constexpr int N = size.value;
    parallel_for(walk.numel, INDEX_GRAIN * 2, [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](const int64_t* offsets, int64_t n) {
        move_row<N>(static_cast<char*>(out.data) + offsets[0] * N, walk.step(0),
                    static_cast<const char*>(in) + offsets[1] * N, walk.step(1), n);
      });
    });
  });
}

void triangle(Span out, Span in, int64_t k, bool upper) {
  const int last = out.ndim - 1;
  const int64_t columns = out.sizes[last], rows = out.sizes[last - 1];
  int64_t row_sizes[MAX_DIMS];
  std::copy(out.sizes, out.sizes + last, row_sizes);
  row_sizes[last] = 1;
  if (columns == 0) return;
  visit_size(out.dtype, [&](auto size) {
    constexpr int N = size.value;
    // One row after another: merged dimensions would lose the row number, so it is counted by hand.
    int64_t total = 1;
    for (int d = 0; d < last; d++) total *= row_sizes[d];
    parallel_for(total, std::max<int64_t>(1, INDEX_GRAIN / columns), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        int64_t rest = r, to_at = 0, from_at = 0;
        for (int d = last - 1; d >= 0; d--) {
          int64_t at = rest % row_sizes[d];
          rest /= row_sizes[d];
          to_at += at * out.strides[d];
          from_at += at * in.strides[d];
        }
        const int64_t row = r % rows;
        // Columns kept: 0...row+k of the lower triangle, row+k... of the upper one.
        int64_t kept_begin = upper ? std::clamp<int64_t>(row + k, 0, columns) : 0;
        int64_t kept_end = upper ? columns : std::clamp<int64_t>(row + k + 1, 0, columns);
        char* to = static_cast<char*>(out.data) + to_at * N;
        const char* from = static_cast<const char*>(in.data) + from_at * N;
        const int64_t to_step = out.strides[last], from_step = in.strides[last];
        for (int64_t c = 0; c < kept_begin; c++) __builtin_memset(to + c * to_step * N, 0, N);
        if (to != from) {
          move_row<N>(to + kept_begin * to_step * N, to_step, from + kept_begin * from_step * N, from_step,
                      kept_end - kept_begin);
        }
        for (int64_t c = kept_end; c < columns; c++) __builtin_memset(to + c * to_step * N, 0, N);
      }
    });
  });
}

namespace {

// Whether the search goes on behind an element. No comparison with a NaN holds, be it an element or the
// value.
template <class T>
bool lies_behind(T at, T value, bool right) {
  if constexpr (is_complex_v<T>) {
    return right;
  } else {
    auto x = compute_t<T>(at), y = compute_t<T>(value);
    return right ? !(x > y) : !(x >= y);
  }
}

// Where MANY values belong, in step with each other and without a branch: values that come in any order make
// every comparison a surprise, and one search alone waits for each of its loads (100,000 among 100: 2.9 to
// 0.6 ms).
template <int MANY, class T>
void positions(const T* row, int64_t n, const int64_t* order, const T* values, bool right, int64_t* to) {
  int64_t low[MANY], high[MANY];
  std::fill_n(low, MANY, 0);
  std::fill_n(high, MANY, n);
  for (int64_t left = n; left > 0; left /= 2)
#pragma GCC unroll 8
    for (int k = 0; k < MANY; k++) {
      // One search may be done a step before another: its middle is then its end, which may be that of the
      // row.
      int64_t middle = low[k] + (high[k] - low[k]) / 2, at = middle - (middle == n);
      bool behind = lies_behind(row[order ? order[at] : at], values[k], right);
      low[k] += (middle + 1 - low[k]) & -int64_t(behind & (low[k] < high[k]));
      high[k] += (middle - high[k]) & -int64_t(!behind);
    }
  std::copy_n(low, MANY, to);
}

}  // namespace

void searchsorted(Span out, Span sorted, Span values, const int64_t* sorter, bool right) {
  const int64_t n = sorted.sizes[sorted.ndim - 1], total = values.numel();
  const int64_t per_row = sorted.ndim > 1 ? values.sizes[values.ndim - 1] : std::max<int64_t>(1, total);
  visit(values.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* boundaries = static_cast<const T*>(sorted.data);
    const T* wanted = static_cast<const T*>(values.data);
    int64_t* to = static_cast<int64_t*>(out.data);
    parallel_for(total, 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t row = i / per_row, last = std::min(end, (row + 1) * per_row);
        const T* from = boundaries + row * n;
        const int64_t* order = sorter ? sorter + row * n : nullptr;
        for (; i + 8 <= last; i += 8) positions<8>(from, n, order, wanted + i, right, to + i);
        for (; i < last; i++) positions<1>(from, n, order, wanted + i, right, to + i);
      }
    });
  });
}

}  // namespace rl
