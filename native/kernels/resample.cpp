// Applies a separable linear map plane by plane. Start at `resample`.
//
// The dimensions are taken one after the other, those that shrink first; what lies between two passes stays
// in a buffer of one plane. Half precision is computed in float and rounded once at the end; bytes are
// computed in whole numbers, see `ByteTaps`.
#include "resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../tensor/unlocked.h"
#include "elementwise.h"
#include "transpose.h"
#include "workspace.h"

namespace rl {

void Taps::settle() {
  copies = int64_t(index.size()) == out;
  for (size_t i = 0; copies && i < index.size(); i++)
    copies = first[i + 1] == int64_t(i) + 1 && weight[i] == 1.0;
  identity = copies && in == out;
  for (size_t i = 0; identity && i < index.size(); i++) identity = index[i] == int64_t(i);
}

Taps Taps::transposed() const {
  Taps t;
  t.in = out, t.out = in;
  t.first.assign(size_t(in) + 1, 0);
  for (int64_t i : index) t.first[size_t(i) + 1]++;
  for (size_t i = 0; i < size_t(in); i++) t.first[i + 1] += t.first[i];
  t.index.resize(index.size());
  t.weight.resize(index.size());
  std::vector<int64_t> next(t.first.begin(), t.first.end() - 1);
  for (int64_t o = 0; o < out; o++)
    for (int64_t tap = first[size_t(o)]; tap < first[size_t(o) + 1]; tap++) {
      int64_t place = next[size_t(index[size_t(tap)])]++;
      t.index[size_t(place)] = o, t.weight[size_t(place)] = weight[size_t(tap)];
    }
  t.settle();
  return t;
}

ByteTaps::ByteTaps(const Taps& t) : in(t.in), out(t.out) {
  std::vector<double> sums;
  for (int64_t o = 0; o < t.out; o++) {
    for (int64_t tap = t.first[size_t(o)]; tap < t.first[size_t(o) + 1]; tap++) {
      bool again = int64_t(index.size()) > first.back() && index.back() == t.index[size_t(tap)];
      if (again) sums.back() += t.weight[size_t(tap)];
      else index.push_back(t.index[size_t(tap)]), sums.push_back(t.weight[size_t(tap)]);
    }
    first.push_back(int64_t(index.size()));
  }
  double largest = sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
  while (precision < 22 && 0.5 + largest * double(1 << (precision + 1)) < double(1 << 15)) precision++;
  precision = std::max(precision, 1);
  for (double w : sums) {
    double scaled = w * double(1 << precision);
    weight.push_back(int16_t(std::clamp(scaled < 0 ? scaled - 0.5 : scaled + 0.5, -32768.0, 32767.0)));
  }
}

namespace {

constexpr int64_t BYTE_ROWS = 32;  // turned upright at a time

#if defined(RL_HAVE_AVX2)
bool has_avx2() {
  static const bool has = !std::strcmp(cpu_capability(), "AVX2");
  return has;
}
const ResamplePasses& passes() { return has_avx2() ? avx2::resample_passes : baseline::resample_passes; }
const TransposeBlocks& transposes() {
  return has_avx2() ? avx2::transpose_blocks : baseline::transpose_blocks;
}
#else
const ResamplePasses& passes() { return baseline::resample_passes; }
const TransposeBlocks& transposes() { return baseline::transpose_blocks; }
#endif

void run_pass(float* y, const float* x, int64_t outer, const Taps& t, int64_t inner) {
  passes().f32(y, x, outer, t, inner);
}
void run_pass(double* y, const double* x, int64_t outer, const Taps& t, int64_t inner) {
  passes().f64(y, x, outer, t, inner);
}
void run_pass(std::complex<float>* y, const std::complex<float>* x, int64_t outer, const Taps& t,
              int64_t inner) {
  passes().c64(y, x, outer, t, inner);
}
void run_pass(std::complex<double>* y, const std::complex<double>* x, int64_t outer, const Taps& t,
              int64_t inner) {
  passes().c128(y, x, outer, t, inner);
}

int64_t in_size(const Taps (&t)[3]) { return t[0].in * t[1].in * t[2].in; }
int64_t out_size(const Taps (&t)[3]) { return t[0].out * t[1].out * t[2].out; }

// The dimensions that are no identity, those that shrink most first; where equal, the inner one last, since
// its pass is the slow one.
int order_of(const Taps (&t)[3], int (&order)[3]) {
  int count = 0;
  for (int d = 0; d < 3; d++)
    if (!t[d].identity) order[count++] = d;
  std::stable_sort(order, order + count, [&](int a, int b) {
    return double(t[a].out) / double(std::max<int64_t>(1, t[a].in)) <
           double(t[b].out) / double(std::max<int64_t>(1, t[b].in));
  });
  return count;
}

// Elements only change places.
template <class T>
void copy_planes(const Taps (&t)[3], int64_t planes, int64_t channels, T* y, const T* x) {
  // The middle of the width is usually a run of consecutive elements.
  const int64_t* index = t[2].index.data();
  int64_t run_begin = 0, run_end = 0;
  for (int64_t o = 0, start = 0; o < t[2].out; o++) {
    if (o && index[o] != index[o - 1] + 1) start = o;
    if (o + 1 - start > run_end - run_begin) run_begin = start, run_end = o + 1;
  }
  auto copy = [index, channels](T* to, const T* row, int64_t begin, int64_t end) {
    if (channels == 1)
      for (int64_t o = begin; o < end; o++) to[o] = row[index[o]];
    else
      for (int64_t o = begin; o < end; o++)
        std::copy_n(row + index[o] * channels, channels, to + o * channels);
  };
  divide(double(planes) * double(out_size(t) * channels), planes, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; plane++) {
      const T* from = x + plane * in_size(t) * channels;
      T* to = y + plane * out_size(t) * channels;
      for (int64_t od = 0; od < t[0].out; od++)
        for (int64_t oh = 0; oh < t[1].out; oh++, to += t[2].out * channels) {
          int64_t place = t[0].index[size_t(od)] * t[1].in + t[1].index[size_t(oh)];
          const T* row = from + place * t[2].in * channels;
          copy(to, row, 0, run_begin);
          std::memcpy(static_cast<void*>(to + run_begin * channels), row + index[run_begin] * channels,
                      size_t((run_end - run_begin) * channels) * sizeof(T));
          copy(to, row, run_end, t[2].out);
        }
    }
  });
}

// Pixels of three bytes: no square of them fills a register.
void transpose_triples(const char* from, int64_t row_stride, int64_t rows, int64_t cols, char* to) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) std::memcpy(to + (j * rows + i) * 3, from + i * row_stride + j * 3, 3);
}

// Along the rows of an image with one to four channels: they are turned upright, a few at a time, so that all
// run in vectors.
void bytes_along(uint8_t* y, const uint8_t* x, int64_t rows, const ByteTaps& taps, int64_t channels,
                 uint8_t* room) {
  TransposeBlock transpose = channels == 3 ? transpose_triples : transposes().of_size[channels];
  uint8_t *upright = room, *made = room + taps.in * BYTE_ROWS * channels;
  int64_t from = taps.in * channels, to = taps.out * channels;
  for (int64_t row = 0; row < rows; row += BYTE_ROWS) {
    int64_t count = std::min(BYTE_ROWS, rows - row);
    transpose(reinterpret_cast<const char*>(x + row * from), from, count, taps.in,
              reinterpret_cast<char*>(upright));
    passes().bytes(made, upright, 1, taps, count * channels);
    transpose(reinterpret_cast<const char*>(made), count * channels, taps.out, count,
              reinterpret_cast<char*>(y + row * to));
  }
}

// Bytes are rounded after each dimension, the last one first; one that keeps its size stays as it is.
void combine_bytes(const Taps (&t)[3], int64_t planes, int64_t channels, uint8_t* y, const uint8_t* x) {
  const ByteTaps taps[3] = {ByteTaps(t[0]), ByteTaps(t[1]), ByteTaps(t[2])};
  int64_t largest =
      std::max({in_size(t), t[0].in * t[1].in * t[2].out, t[0].in * t[1].out * t[2].out, out_size(t)}) *
      channels;
  bool turned = channels <= 4;
  int64_t upright = turned ? (t[2].in + t[2].out) * BYTE_ROWS * channels : 0;
  Workspaces spaces(num_threads(), 2 * largest + upright);
  divide(double(planes) * double(largest), planes, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    uint8_t* room[] = {lease.as<uint8_t>() + upright, lease.as<uint8_t>() + upright + largest};
    for (int64_t plane = begin; plane < end; plane++) {
      const uint8_t* from = x + plane * in_size(t) * channels;
      int64_t now[3] = {t[0].in, t[1].in, t[2].in};
      for (int d = 2, pass = 0; d >= 0; d--) {
        if (t[d].in == t[d].out) continue;
        int64_t outer = 1, inner = channels;
        for (int e = 0; e < d; e++) outer *= now[e];
        for (int e = d + 1; e < 3; e++) inner *= now[e];
        uint8_t* to = room[pass++ % 2];
        if (d == 2 && turned) bytes_along(to, from, outer, taps[d], channels, lease.as<uint8_t>());
        else passes().bytes(to, from, outer, taps[d], inner);
        now[d] = t[d].out;
        from = to;
      }
      std::copy_n(from, out_size(t) * channels, y + plane * out_size(t) * channels);
    }
  });
}

// Plane by plane through buffers of the compute type C.
template <class T, class C>
void combine_planes(const Taps (&t)[3], int64_t planes, int64_t channels, T* y, const T* x) {
  int order[3];
  int count = order_of(t, order);
  int64_t sizes[3] = {t[0].in, t[1].in, t[2].in};
  int64_t before = in_size(t) * channels, after = out_size(t) * channels, largest = std::max(before, after);
  for (int i = 0; i < count; i++) {
    sizes[order[i]] = t[order[i]].out;
    largest = std::max(largest, sizes[0] * sizes[1] * sizes[2] * channels);
  }
  constexpr bool SAME = std::is_same_v<T, C>;
  Workspaces spaces(num_threads(), 2 * largest * int64_t(sizeof(C)));
  divide(double(planes) * double(largest), planes, [&](int64_t begin, int64_t end) {
    Workspaces::Lease lease(spaces);
    C* room[2] = {lease.as<C>(), lease.as<C>() + largest};
    for (int64_t plane = begin; plane < end; plane++) {
      const T* first = x + plane * before;
      T* last = y + plane * after;
      int64_t now[3] = {t[0].in, t[1].in, t[2].in};
      const C* from;
      if constexpr (SAME) {
        from = first;
      } else {
        for (int64_t i = 0; i < before; i++) room[1][i] = C(first[i]);
        from = room[1];
      }
      for (int i = 0; i < count; i++) {
        int d = order[i];
        C* to = room[i % 2];
        if constexpr (SAME)
          if (i == count - 1) to = last;
        int64_t outer = 1, inner = channels;
        for (int e = 0; e < d; e++) outer *= now[e];
        for (int e = d + 1; e < 3; e++) inner *= now[e];
        run_pass(to, from, outer, t[d], inner);
        now[d] = t[d].out;
        from = to;
      }
      if constexpr (SAME) {
        if (count == 0) std::copy_n(from, after, last);
      } else {
        for (int64_t i = 0; i < after; i++) last[i] = T(from[i]);
      }
    }
  });
}

}  // namespace

void resample(DType dtype, const Taps (&t)[3], int64_t planes, int64_t channels, void* y, const void* x) {
  if (planes == 0 || out_size(t) == 0) return;
  if (t[0].copies && t[1].copies && t[2].copies) {
    switch (dtype_size(dtype)) {
      case 1:
        return copy_planes(t, planes, channels, static_cast<uint8_t*>(y), static_cast<const uint8_t*>(x));
      case 2:
        return copy_planes(t, planes, channels, static_cast<uint16_t*>(y), static_cast<const uint16_t*>(x));
      case 4:
        return copy_planes(t, planes, channels, static_cast<uint32_t*>(y), static_cast<const uint32_t*>(x));
      case 8:
        return copy_planes(t, planes, channels, static_cast<uint64_t*>(y), static_cast<const uint64_t*>(x));
      default:
        return copy_planes(t, planes, channels, static_cast<std::complex<double>*>(y),
                           static_cast<const std::complex<double>*>(x));
    }
  }
  auto run = [&](auto tag, auto compute) {
    using T = typename decltype(tag)::type;
    using C = typename decltype(compute)::type;
    combine_planes<T, C>(t, planes, channels, static_cast<T*>(y), static_cast<const T*>(x));
  };
  switch (dtype) {
    case DType::u8:
      return combine_bytes(t, planes, channels, static_cast<uint8_t*>(y), static_cast<const uint8_t*>(x));
    case DType::f16: return run(TypeTag<Half>{}, TypeTag<float>{});
    case DType::bf16: return run(TypeTag<BFloat16>{}, TypeTag<float>{});
    case DType::f32: return run(TypeTag<float>{}, TypeTag<float>{});
    case DType::f64: return run(TypeTag<double>{}, TypeTag<double>{});
    case DType::c64: return run(TypeTag<std::complex<float>>{}, TypeTag<std::complex<float>>{});
    case DType::c128: return run(TypeTag<std::complex<double>>{}, TypeTag<std::complex<double>>{});
    default: return;
  }
}

void pad_lines(const PaddedLines& l, void* y, const void* x) {
  int64_t before = int64_t(l.before.size()), middle = l.out - before - int64_t(l.after.size());
  divide(double(l.planes) * double(l.out), l.planes, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; plane++) {
      const char* from = static_cast<const char*>(x) + plane * l.in * l.size;
      char* to = static_cast<char*>(y) + plane * l.out * l.size;
      for (int64_t i : l.before) std::memcpy(to, from + i * l.size, size_t(l.size)), to += l.size;
      std::memcpy(to, from + l.skip * l.size, size_t(middle * l.size));
      to += middle * l.size;
      for (int64_t i : l.after) std::memcpy(to, from + i * l.size, size_t(l.size)), to += l.size;
    }
  });
}

namespace {

struct Wide {
  uint64_t low, high;
};

// Writes y in the order of memory, with the sizes of what lies below each dimension at hand.
template <class W>
struct BorderWriter {
  const Border& border;
  W value;
  int64_t below[MAX_DIMS];  // elements of y for each place of a dimension

  explicit BorderWriter(const Border& b) : border(b) {
    std::memcpy(&value, b.value, sizeof value);
    int64_t elements = 1;
    for (int d = b.count - 1; d >= 0; d--) {
      below[d] = elements;
      elements *= b.before[d] + b.in[d] + b.after[d];
    }
  }
  W* fill(W* to, int64_t count) const {
    for (int64_t i = 0; i < count; i++) to[i] = value;
    return to + count;
  }
  W* write(int d, W* to, const W*& from) const {
    int64_t length = border.in[d];
    to = fill(to, border.before[d] * below[d]);
    if (d == border.count - 1) {
      std::memcpy(static_cast<void*>(to), from, size_t(length) * sizeof(W));
      to += length, from += length;
    } else {
      for (int64_t i = 0; i < length; i++) to = write(d + 1, to, from);
    }
    return fill(to, border.after[d] * below[d]);
  }
};

template <class W>
void write_border(const Border& border, void* y, const void* x) {
  BorderWriter<W> writer(border);
  W* to = static_cast<W*>(y);
  const W* from = static_cast<const W*>(x);
  bool outer = border.count > 1 && !border.before[0] && !border.after[0];
  if (!outer) {
    writer.write(0, to, from);
    return;
  }
  int64_t each_in = 1, each_out = writer.below[0];
  for (int d = 1; d < border.count; d++) each_in *= border.in[d];
  int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each_out));
  parallel_for(border.in[0] * 16, grain * 16, [&](int64_t begin, int64_t end) {  // of ranges by 16
    for (int64_t i = begin / 16; i < end / 16; i++) {
      const W* part = from + i * each_in;
      writer.write(1, to + i * each_out, part);
    }
  });
}

}  // namespace

void put_in_border(const Border& border, void* y, const void* x) {
  switch (border.size) {
    case 1: return write_border<uint8_t>(border, y, x);
    case 2: return write_border<uint16_t>(border, y, x);
    case 4: return write_border<uint32_t>(border, y, x);
    case 8: return write_border<uint64_t>(border, y, x);
    default: return write_border<Wide>(border, y, x);
  }
}

}  // namespace rl
