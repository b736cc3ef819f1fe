// Sorts by integer keys: every element becomes an unsigned integer that orders as the element does.
//
// Keys of up to 32 bits are packed with the position into one 64-bit word, so that comparing words sorts
// stably whatever the algorithm; wider keys travel beside their position. Long lines are sorted by radix,
// byte by byte. Start with `key_of` and `Sorter`.
#include "sort.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "../tensor/parallel.h"

namespace rl {
namespace {

// The order of floats as that of unsigned integers: NaN last, both zeros alike.
template <class F, class U>
inline U float_key(F x) {
  constexpr U sign = U(1) << (8 * sizeof(U) - 1);
  U bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = x == F(0) ? U(0) : bits;
  bits ^= (U(0) - (bits >> (8 * sizeof(U) - 1))) | sign;  // without branches, which ReLU's zeros mislead
  return x != x ? ~U(0) : bits;
}

inline uint32_t key_of(bool x) { return x; }
inline uint32_t key_of(uint8_t x) { return x; }
inline uint32_t key_of(int8_t x) { return uint32_t(x) ^ 0x80000000u; }
inline uint32_t key_of(int16_t x) { return uint32_t(x) ^ 0x80000000u; }
inline uint32_t key_of(int32_t x) { return uint32_t(x) ^ 0x80000000u; }
inline uint64_t key_of(int64_t x) { return uint64_t(x) ^ (uint64_t(1) << 63); }
inline uint32_t key_of(Half x) { return float_key<float, uint32_t>(x); }
inline uint32_t key_of(BFloat16 x) { return float_key<float, uint32_t>(x); }
inline uint32_t key_of(float x) { return float_key<float, uint32_t>(x); }
inline uint64_t key_of(double x) { return float_key<double, uint64_t>(x); }

// A key and the position of its element, ordered by both.
struct Packed {
  using Key = uint32_t;
  uint64_t word;
  static Packed make(Key key, int64_t position) { return {uint64_t(key) << 32 | uint64_t(position)}; }
  Key key() const { return Key(word >> 32); }
  int64_t position() const { return int64_t(word & 0xffffffff); }
  bool operator<(const Packed& other) const { return word < other.word; }
};

struct Wide {
  using Key = uint64_t;
  uint64_t word;
  int64_t at;
  static Wide make(Key key, int64_t position) { return {key, position}; }
  Key key() const { return word; }
  int64_t position() const { return at; }
  bool operator<(const Wide& other) const { return word != other.word ? word < other.word : at < other.at; }
};

// Stable, from the lowest byte of the key to the highest; a byte that all keys share is skipped.
template <class E>
void radix_sort(E* items, E* spare, int64_t n) {
  constexpr int bytes = sizeof(typename E::Key);
  int64_t counts[bytes * 256] = {};
  for (int64_t i = 0; i < n; i++) {
    auto key = items[i].key();
    for (int b = 0; b < bytes; b++) counts[b * 256 + (key >> (8 * b) & 255)]++;
  }
  E *from = items, *to = spare;
  for (int b = 0; b < bytes; b++) {
    int64_t* count = counts + b * 256;
    if (count[from[0].key() >> (8 * b) & 255] == n) continue;
    int64_t at = 0;
    for (int v = 0; v < 256; v++) at += std::exchange(count[v], at);
    for (int64_t i = 0; i < n; i++) to[count[from[i].key() >> (8 * b) & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::memcpy(items, from, sizeof(E) * size_t(n));
}

template <class T, class E>
struct Sorter {
  using Key = typename E::Key;
  static constexpr int64_t RADIX_FROM = 512;

  SortOp op;
  SortParams params;
  int64_t n;  // the length of a line
  std::unique_ptr<E[]> items, spare;

  Sorter(SortOp op, SortParams params, int64_t n) : op(op), params(params), n(n), items(new E[n ? n : 1]) {
    bool whole = op == SortOp::sort || op == SortOp::mode;
    if (whole && n >= RADIX_FROM) spare.reset(new E[n]);
  }

  void sort_all() {
    if (spare) radix_sort(items.get(), spare.get(), n);
    else std::sort(items.get(), items.get() + n);
  }

  int64_t nth(int64_t k) {
    std::nth_element(items.get(), items.get() + k, items.get() + n);
    return items[k].position();
  }

  // Whether all of a block are behind the limit, or as far: without branches, for vectors. Most blocks are.
  static constexpr int64_t BLOCK = 16;
  using C = compute_t<T>;
  template <class Compare>
  static bool all(const T* x, C limit, Compare compare) {
    int others = 0;
    for (int64_t i = 0; i < BLOCK; i++) others |= !compare(C(x[i]), limit);
    return !others;
  }
  static bool passed(const T* x, C limit, bool flip, bool equals_too) {
    if (equals_too) {
      return flip ? all(x, limit, std::less_equal<C>()) : all(x, limit, std::greater_equal<C>());
    }
    return flip ? all(x, limit, std::less<C>()) : all(x, limit, std::greater<C>());
  }

  E item(const T* x, int64_t step, int64_t i, bool flip) {
    Key key = key_of(x[i * step]);
    return E::make(flip ? Key(~key) : key, i);
  }

  struct Before {
    bool operator()(const E& a, const E& b) const { return a.key() < b.key(); }
  };

  // Note [topk of equal elements]: which of several equal elements are among the k first, and the order of
  // what need not be sorted, is what std::partial_sort (few of many) or std::nth_element make of elements
  // compared by value: torch's order, in which models draw dropout masks for them. `few_first` is that
  // partial sort, but for passing over blocks; `keep_first` is faster than nth_element and may answer where
  // no elements are equal.
  void few_first(const T* x, int64_t step, int64_t k, bool flip) {
    E* heap = items.get();
    for (int64_t i = 0; i < k; i++) heap[i] = item(x, step, i, flip);
    Before before;
    std::make_heap(heap, heap + k, before);
    C limit = C(x[heap[0].position() * step]);
    for (int64_t from = k; from < n; from += BLOCK) {
      if (step == 1 && from + BLOCK <= n && passed(x + from, limit, flip, true)) continue;
      for (int64_t i = from; i < std::min(n, from + BLOCK); i++) {
        heap[k] = item(x, step, i, flip);
        if (!before(heap[k], heap[0])) continue;
        std::pop_heap(heap, heap + k + 1, before);
        limit = C(x[heap[0].position() * step]);
      }
    }
    std::sort_heap(heap, heap + k, before);
  }

  // The k first of many, in order: what is not before the k-th of those seen so far is passed over by one
  // comparison. False where some of the elements that decide are equal.
  bool keep_first(const T* x, int64_t step, int64_t k, bool flip) {
    E* kept = items.get();
    const int64_t room = std::min(n, std::max(3 * k, k + BLOCK));
    int64_t count = 0;
    C limit{};
    Key limit_key{};
    bool limited = false, equals = false;  // equals: more elements than the k-th are as large as the limit
    for (int64_t from = 0; from < n; from += BLOCK) {
      if (limited && step == 1 && from + BLOCK <= n && passed(x + from, limit, flip, equals)) continue;
      for (int64_t i = from; i < std::min(n, from + BLOCK); i++) {
        C value = C(x[i * step]);
        if (limited && (flip ? value <= limit : value >= limit)) {
          equals |= value == limit;
          continue;
        }
        kept[count++] = item(x, step, i, flip);
        if (count < room) continue;
        std::nth_element(kept, kept + k - 1, kept + count);
        limit_key = kept[k - 1].key();
        limit = C(x[kept[k - 1].position() * step]);
        equals = std::any_of(kept + k, kept + count, [&](const E& e) { return e.key() == limit_key; });
        count = k;
        limited = true;
      }
    }
    std::partial_sort(kept, kept + k, kept + count);
    Key last = kept[k - 1].key();
    if (equals && limited && last == limit_key) return false;
    for (int64_t i = 1; i < k; i++) {
      if (kept[i].key() == kept[i - 1].key()) return false;
    }
    return std::none_of(kept + k, kept + count, [&](const E& e) { return e.key() == last; });
  }

  void line(const T* x, int64_t step, T* values, int64_t values_step, int64_t* indices,
            int64_t indices_step) {
    bool flip = params.descending && (op == SortOp::sort || op == SortOp::topk);
    constexpr Key nan = Key(~Key(0));
    int64_t first_nan = -1, nans = 0;
    auto put = [&](int64_t slot, int64_t position) {
      values[slot * values_step] = x[position * step];
      indices[slot * indices_step] = position;
    };
    if (op == SortOp::topk && params.k > 0) {
      bool few = params.k * 64 <= n;
      if (few) few_first(x, step, params.k, flip);
      bool distinct = sizeof(T) > 2 && params.in_order && params.k <= n / 8;  // halves hardly ever are
      if (few || (distinct && keep_first(x, step, params.k, flip))) {
        for (int64_t i = 0; i < params.k; i++) put(i, items[i].position());
        return;
      }
    }
    for (int64_t i = 0; i < n; i++) {
      Key key = key_of(x[i * step]);
      if constexpr (is_floating_v<T>) {
        if (key == nan && nans++ == 0) first_nan = i;
      }
      items[i] = E::make(flip ? Key(~key) : key, i);
    }
    switch (op) {
      case SortOp::sort:
        sort_all();
        for (int64_t i = 0; i < n; i++) put(i, items[i].position());
        break;
      case SortOp::topk:
        if (params.k > 0) {
          std::nth_element(items.get(), items.get() + params.k - 1, items.get() + n, Before());
          if (params.in_order) std::sort(items.get(), items.get() + params.k - 1, Before());
        }
        for (int64_t i = 0; i < params.k; i++) put(i, items[i].position());
        break;
      case SortOp::kthvalue: put(0, nth(params.k - 1)); break;
      case SortOp::median: put(0, nans ? first_nan : nth((n - 1) / 2)); break;
      case SortOp::nanmedian: put(0, nans == n ? first_nan : nth((n - nans - 1) / 2)); break;
      case SortOp::mode: {
        sort_all();
        int64_t best = -1, longest = 0;
        for (int64_t i = 0; i < n;) {
          int64_t end = i + 1;
          // NaNs are not equal to each other, so each is a value of its own.
          while (end < n && items[end].key() == items[i].key() &&
                 !(is_floating_v<T> && items[i].key() == nan))
            end++;
          if (end - i > longest) longest = end - i, best = items[end - 1].position();
          i = end;
        }
        put(0, best);
        break;
      }
    }
  }
};

template <class T, class E>
void run(SortOp op, const Span& values, const Span& indices, const Span& in, int dim, SortParams params) {
  int64_t n = in.ndim ? in.sizes[dim] : 1, step = in.ndim ? in.strides[dim] : 0;
  int64_t values_step = in.ndim ? values.strides[dim] : 0, indices_step = in.ndim ? indices.strides[dim] : 0;
  int64_t lines = 1;
  for (int d = 0; d < in.ndim; d++) lines *= d == dim ? 1 : in.sizes[d];
  if (lines == 0 || n == 0) return;
  // parallel_for rounds its ranges to 16, so a line counts as that many.
  constexpr int64_t UNIT = 16;
  // Threads cannot report that memory ran out, so lines that need much of it stay on the calling one.
  int64_t grain = n > int64_t(1) << 22 ? lines : std::max<int64_t>(1, 4096 / n);
  parallel_for(lines * UNIT, grain * UNIT, [&](int64_t begin, int64_t end) {
    Sorter<T, E> sorter(op, params, n);
    for (int64_t line = begin / UNIT; line < end / UNIT; line++) {
      int64_t rest = line, from = 0, to = 0, at = 0;
      for (int d = in.ndim - 1; d >= 0; d--) {
        if (d == dim) continue;
        int64_t i = rest % in.sizes[d];
        rest /= in.sizes[d];
        from += i * in.strides[d], to += i * values.strides[d], at += i * indices.strides[d];
      }
      sorter.line((const T*)in.data + from, step, (T*)values.data + to, values_step,
                  (int64_t*)indices.data + at, indices_step);
    }
  });
}

}  // namespace

bool sort_lines(SortOp op, Span values, Span indices, Span in, int dim, SortParams params) {
  if (is_complex(in.dtype)) return false;
  bool long_lines = in.ndim && in.sizes[dim] >= int64_t(1) << 32;
  visit(in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex_v<T>) {
      if (sizeof(T) == 8 || long_lines) run<T, Wide>(op, values, indices, in, dim, params);
      else if constexpr (sizeof(T) < 8) run<T, Packed>(op, values, indices, in, dim, params);
    }
  });
  return true;
}

}  // namespace rl
