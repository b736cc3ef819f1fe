// Masks: see index.h. A mask (or any tensor read as "is it nonzero") is walked in row-major order; with
// threads, a first pass counts the ones of each part so that a second pass knows where its part's results go.
#include <vector>

#include "../tensor/parallel.h"
#include "index.h"
#include "index_walk.h"

namespace rl {
namespace {

template <class T>
inline bool is_nonzero(const T& x) {
  if constexpr (is_reduced_v<T>) return (x.bits & 0x7fff) != 0;
  else return x != T(0);
}

template <class T>
using mask_t = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T>
int64_t count_run(const T* data, int64_t step, int64_t n) {
  int64_t count = 0;
  if (step == 1) {
    for (int64_t i = 0; i < n; i++) count += is_nonzero(data[i]);
  } else {
    for (int64_t i = 0; i < n; i++) count += is_nonzero(data[i * step]);
  }
  return count;
}

// A mask is read as bytes, zero or not: memory that came from elsewhere may hold more than 0 and 1, and the
// count must agree with the pass that follows. Eight at a time when they lie side by side.
template <>
int64_t count_run(const uint8_t* data, int64_t step, int64_t n) {
  int64_t count = 0, i = 0;
  if (step == 1) {
    for (; i + 8 <= n; i += 8) {
      uint64_t eight;
      __builtin_memcpy(&eight, data + i, 8);
      constexpr uint64_t LOW = 0x7f7f7f7f7f7f7f7f;
      uint64_t tops = (((eight & LOW) + LOW) | eight) & ~LOW;  // the top bit of every byte that is not 0
      count += int64_t(((tops >> 7) * 0x0101010101010101) >> 56);
    }
  }
  for (; i < n; i++) count += data[i * step] != 0;
  return count;
}

constexpr int64_t PART = 1 << 16;  // elements of a part

// `starts[p]` becomes the number of nonzeros in parts before p; the total is the last entry.
template <class T, int K>
std::vector<int64_t> count_parts(const Walk<K>& walk, const T* data, int operand) {
  int64_t parts = (walk.numel + PART - 1) / PART;
  std::vector<int64_t> starts(size_t(parts) + 1, 0);
  // One index per part is too few for the pool's rounding to 16; count elements and keep whole parts.
  parallel_for(parts * 16, 16, [&](int64_t begin, int64_t end) {
    for (int64_t p = (begin + 15) / 16; p * 16 < end; p++) {
      int64_t count = 0;
      walk.run(p * PART, std::min(walk.numel, (p + 1) * PART), [&](const int64_t* offsets, int64_t n) {
        count += count_run(data + offsets[operand], walk.step(operand), n);
      });
      starts[size_t(p) + 1] = count;
    }
  });
  for (int64_t p = 0; p < parts; p++) starts[size_t(p) + 1] += starts[size_t(p)];
  return starts;
}

// Calls f(part, first) for every part with ones; `first` is the number of ones before it.
template <class F>
void each_part(const std::vector<int64_t>& starts, const F& f) {
  int64_t parts = int64_t(starts.size()) - 1;
  parallel_for(parts * 16, 16, [&](int64_t begin, int64_t end) {
    for (int64_t p = (begin + 15) / 16; p * 16 < end; p++) {
      if (starts[size_t(p)] != starts[size_t(p) + 1]) f(p * PART, starts[size_t(p)]);
    }
  });
}

// Copies the elements of a run where the mask is set to `to`, up to `end`; returns where it got to. Writes
// every element and moves on by the mask, which costs the same for any mask.
template <int N>
char* compress(char* to, const char* end, const char* from, int64_t step, const uint8_t* mask,
               int64_t mask_step, int64_t n) {
  for (int64_t i = 0; i < n && to < end; i++) {
    move_element<N>(to, from + i * step);
    to += mask[i * mask_step] ? N : 0;
  }
  return to;
}

// The opposite: elements of `from`, up to `end`, go where the mask is set.
template <int N>
const char* expand(char* to, int64_t step, const char* from, const char* end, const uint8_t* mask,
                   int64_t mask_step, int64_t n) {
  for (int64_t i = 0; i < n && from < end; i++) {
    const char* chosen = mask[i * mask_step] ? from : to + i * step;
    char element[N];
    move_element<N>(element, chosen);
    move_element<N>(to + i * step, element);
    from += mask[i * mask_step] ? N : 0;
  }
  return from;
}

template <int N>
struct Bits;
template <>
struct Bits<1> {
  using type = uint8_t;
};
template <>
struct Bits<2> {
  using type = uint16_t;
};
template <>
struct Bits<4> {
  using type = uint32_t;
};
template <>
struct Bits<8> {
  using type = uint64_t;
};

template <int N>
void fill_run(char* to, int64_t step, const uint8_t* mask, int64_t mask_step, int64_t n, const char* value) {
  if constexpr (N < 16) {
    if (step == 1 &&
        mask_step == 1) {  // a choice instead of a branch: the compiler makes whole vectors of it
      using T = typename Bits<N>::type;
      T fill, old;
      __builtin_memcpy(&fill, value, N);
      for (int64_t i = 0; i < n; i++) {
        __builtin_memcpy(&old, to + i * N, N);
        T chosen = mask[i] ? fill : old;
        __builtin_memcpy(to + i * N, &chosen, N);
      }
      return;
    }
  }
  for (int64_t i = 0; i < n; i++) {
    if (mask[i * mask_step]) move_element<N>(to + i * step * N, value);
  }
}

}  // namespace

int64_t count_nonzero(Span self) {
  Walk<1> walk(self.ndim, self.sizes, {self.strides});
  return visit(self.dtype, [&](auto tag) {
    using T = mask_t<typename decltype(tag)::type>;
    return count_parts(walk, static_cast<const T*>(self.data), 0).back();
  });
}

void nonzero(int64_t* out, int64_t out_rows, Span self, int64_t row_stride, int64_t column_stride) {
  // Coordinates are wanted, so dimensions are not merged: the outer ones are counted by hand.
  int64_t numel = self.numel();
  if (numel == 0 || out_rows == 0 || self.ndim == 0) return;
  Walk<1> walk(self.ndim, self.sizes, {self.strides});
  const int last = self.ndim - 1;
  const int64_t row = self.sizes[last], step = self.strides[last];
  visit(self.dtype, [&](auto tag) {
    using T = mask_t<typename decltype(tag)::type>;
    const T* data = static_cast<const T*>(self.data);
    std::vector<int64_t> starts = count_parts(walk, data, 0);
    each_part(starts, [&](int64_t begin, int64_t written) {
      const int64_t limit = std::min(out_rows, starts[size_t(begin / PART) + 1]);
      int64_t at[MAX_DIMS], offset = 0, rest = begin, end = std::min(numel, begin + PART);
      for (int d = last; d >= 0; d--) {
        at[d] = rest % self.sizes[d];
        rest /= self.sizes[d];
        offset += at[d] * self.strides[d];
      }
      while (begin < end) {
        int64_t n = std::min(row - at[last], end - begin);
        // As in compress: write always, move on by the mask. The other coordinates are the same along the
        // run.
        int64_t *to = out + written * row_stride, *column = to + last * column_stride, found = 0;
        for (int64_t i = 0; i < n && written + found < limit; i++) {
          column[found * row_stride] = at[last] + i;
          found += is_nonzero(data[offset + i * step]);
        }
        for (int d = 0; d < last; d++) {
          for (int64_t i = 0; i < found; i++) to[i * row_stride + d * column_stride] = at[d];
        }
        written += found;
        begin += n;
        offset -= at[last] * step;
        at[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
          offset += self.strides[d];
          if (++at[d] < self.sizes[d]) break;
          offset -= at[d] * self.strides[d];
          at[d] = 0;
        }
      }
    });
  });
}

void masked_select(void* out, int64_t room, Span self, Span mask) {
  Walk<2> walk(self.ndim, self.sizes, {self.strides, mask.strides});
  const uint8_t* bits = static_cast<const uint8_t*>(mask.data);
  std::vector<int64_t> starts = count_parts(walk, bits, 1);
  visit_size(self.dtype, [&](auto size) {
    constexpr int N = size.value;
    each_part(starts, [&](int64_t begin, int64_t written) {
      char* to = static_cast<char*>(out) + written * N;
      const char* end = static_cast<char*>(out) + std::min(room, starts[size_t(begin / PART) + 1]) * N;
      walk.run(begin, std::min(walk.numel, begin + PART), [&](const int64_t* offsets, int64_t n) {
        const char* from = static_cast<const char*>(self.data) + offsets[0] * N;
        to = compress<N>(to, end, from, walk.step(0) * N, bits + offsets[1], walk.step(1), n);
      });
    });
  });
}

void masked_fill(Span self, Span mask, const void* value) {
  Walk<2> walk(self.ndim, self.sizes, {self.strides, mask.strides});
  const uint8_t* bits = static_cast<const uint8_t*>(mask.data);
  visit_size(self.dtype, [&](auto size) {
    constexpr int N = size.value;
    parallel_for(walk.numel, INDEX_GRAIN * 2, [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](const int64_t* offsets, int64_t n) {
        char* to = static_cast<char*>(self.data) + offsets[0] * N;
        fill_run<N>(to, walk.step(0), bits + offsets[1], walk.step(1), n, static_cast<const char*>(value));
      });
    });
  });
}

void masked_scatter(Span self, Span mask, const void* source, int64_t supply) {
  Walk<2> walk(self.ndim, self.sizes, {self.strides, mask.strides});
  const uint8_t* bits = static_cast<const uint8_t*>(mask.data);
  std::vector<int64_t> starts = count_parts(walk, bits, 1);
  visit_size(self.dtype, [&](auto size) {
    constexpr int N = size.value;
    each_part(starts, [&](int64_t begin, int64_t taken) {
      const char* from = static_cast<const char*>(source) + taken * N;
      const char* end =
          static_cast<const char*>(source) + std::min(supply, starts[size_t(begin / PART) + 1]) * N;
      walk.run(begin, std::min(walk.numel, begin + PART), [&](const int64_t* offsets, int64_t n) {
        char* to = static_cast<char*>(self.data) + offsets[0] * N;
        from = expand<N>(to, walk.step(0) * N, from, end, bits + offsets[1], walk.step(1), n);
      });
    });
  });
}

}  // namespace rl
