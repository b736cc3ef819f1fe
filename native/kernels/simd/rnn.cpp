// The elementwise loops of recurrent steps; see ../rnn.h. Each reads and writes a row of gates once.
#include "../rnn.h"

#include <cmath>

#include "../vecmath.h"
#include "any_vector.h"
#include "libm.h"

namespace rl {
inline namespace RL_ISA {
namespace {

inline float tanh(float x) { return std::tanh(x); }
inline double tanh(double x) { return std::tanh(x); }
inline float exp(float x) { return std::exp(x); }
inline double exp(double x) { return std::exp(x); }
template <class V>
inline V sigmoid(V x) {
  return 1 / (1 + exp(-x));
}

// Calls f(i, tag) for whole vectors, then for single elements; `get` and `put` work on either.
template <class C, class F>
inline void each(int64_t n, F f) {
  int64_t i = 0;
  for (; i + LANES<C> <= n; i += LANES<C>) f(i, Vec<C>{});
  for (; i < n; i++) f(i, C{});
}
template <class V, class C>
inline V get(const C* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V, class C>
inline void put(C* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

template <class C>
void lstm(int64_t rows, int64_t H, const C* gx, C* gates, const C* c_before, C* c, C* h) {
  for (int64_t r = 0; r < rows; r++, gx += 4 * H, gates += 4 * H, c_before += H, c += H, h += H) {
    each<C>(H, [&](int64_t j, auto kind) {
      using V = decltype(kind);
      auto sum = [&](int gate) { return get<V>(gx + gate * H + j) + get<V>(gates + gate * H + j); };
      V in = sigmoid(sum(0)), forget = sigmoid(sum(1)), cell = tanh(sum(2)), out = sigmoid(sum(3));
      V now = forget * get<V>(c_before + j) + in * cell;
      put(gates + j, in);
      put(gates + H + j, forget);
      put(gates + 2 * H + j, cell);
      put(gates + 3 * H + j, out);
      put(c + j, now);
      put(h + j, V(out * tanh(now)));
    });
  }
}

template <class C>
void lstm_backward(int64_t rows, int64_t H, const C* gates, const C* c_before, const C* c, const C* dh, C* dc,
                   C* dgates) {
  for (int64_t r = 0; r < rows; r++) {
    each<C>(H, [&](int64_t j, auto kind) {
      using V = decltype(kind);
      V in = get<V>(gates + j), forget = get<V>(gates + H + j), cell = get<V>(gates + 2 * H + j),
        out = get<V>(gates + 3 * H + j);
      V t = tanh(get<V>(c + j)), g = get<V>(dh + j);
      V d = get<V>(dc + j) + g * out * (1 - t * t);
      put(dgates + j, V(d * cell * in * (1 - in)));
      put(dgates + H + j, V(d * get<V>(c_before + j) * forget * (1 - forget)));
      put(dgates + 2 * H + j, V(d * in * (1 - cell * cell)));
      put(dgates + 3 * H + j, V(g * t * out * (1 - out)));
      put(dc + j, V(d * forget));
    });
    gates += 4 * H, dgates += 4 * H, c_before += H, c += H, dh += H, dc += H;
  }
}

template <class C>
void gru(int64_t rows, int64_t H, const C* gx, const C* gh, const C* h_before, C* kept, C* h) {
  for (int64_t r = 0; r < rows; r++) {
    each<C>(H, [&](int64_t j, auto kind) {
      using V = decltype(kind);
      V reset = sigmoid(get<V>(gx + j) + get<V>(gh + j));
      V update = sigmoid(get<V>(gx + H + j) + get<V>(gh + H + j));
      V state = get<V>(gh + 2 * H + j);
      V fresh = tanh(get<V>(gx + 2 * H + j) + reset * state);
      put(kept + j, reset);
      put(kept + H + j, update);
      put(kept + 2 * H + j, fresh);
      put(kept + 3 * H + j, state);
      put(h + j, V((get<V>(h_before + j) - fresh) * update + fresh));
    });
    gx += 3 * H, gh += 3 * H, h_before += H, kept += 4 * H, h += H;
  }
}

template <class C>
void gru_backward(int64_t rows, int64_t H, const C* kept, const C* h_before, const C* dh, C* dgx, C* dgh,
                  C* dh_before) {
  for (int64_t r = 0; r < rows; r++) {
    each<C>(H, [&](int64_t j, auto kind) {
      using V = decltype(kind);
      V reset = get<V>(kept + j), update = get<V>(kept + H + j), fresh = get<V>(kept + 2 * H + j),
        state = get<V>(kept + 3 * H + j), g = get<V>(dh + j);
      V d_fresh = g * (1 - update) * (1 - fresh * fresh);
      V d_reset = d_fresh * state * reset * (1 - reset);
      V d_update = g * (get<V>(h_before + j) - fresh) * update * (1 - update);
      put(dgx + j, d_reset);
      put(dgx + H + j, d_update);
      put(dgx + 2 * H + j, d_fresh);
      put(dgh + j, d_reset);
      put(dgh + H + j, d_update);
      put(dgh + 2 * H + j, V(d_fresh * reset));
      put(dh_before + j, V(g * update));
    });
    kept += 4 * H, h_before += H, dh += H, dgx += 3 * H, dgh += 3 * H, dh_before += H;
  }
}

template <class C>
void simple(bool relu, int64_t n, C* h) {
  each<C>(n, [&](int64_t i, auto kind) {
    using V = decltype(kind);
    V x = get<V>(h + i);
    put(h + i, V(relu ? (x < 0 ? V{} : x) : tanh(x)));
  });
}

template <class C>
void simple_backward(bool relu, int64_t n, const C* h, const C* dh, C* d) {
  each<C>(n, [&](int64_t i, auto kind) {
    using V = decltype(kind);
    V y = get<V>(h + i), g = get<V>(dh + i);
    put(d + i, V(relu ? (y > 0 ? g : V{}) : g * (1 - y * y)));
  });
}

template <class C>
void add(int64_t n, C* to, const C* from) {
  each<C>(n, [&](int64_t i, auto kind) {
    using V = decltype(kind);
    put(to + i, V(get<V>(to + i) + get<V>(from + i)));
  });
}

#define RL_SINGLE_OR_DOUBLE(call_float, call_double) \
  if (dtype == DType::f64) call_double;              \
  else call_float

}  // namespace

extern const RnnLoops rnn_loops;
const RnnLoops rnn_loops = {
    [](DType dtype, int64_t rows, int64_t H, const void* gx, void* gates, const void* before, void* c,
       void* h) {
      RL_SINGLE_OR_DOUBLE(
          lstm(rows, H, (const float*)gx, (float*)gates, (const float*)before, (float*)c, (float*)h),
          lstm(rows, H, (const double*)gx, (double*)gates, (const double*)before, (double*)c, (double*)h));
    },
    [](DType dtype, int64_t rows, int64_t H, const void* gates, const void* before, const void* c,
       const void* dh, void* dc, void* dgates) {
      RL_SINGLE_OR_DOUBLE(lstm_backward(rows, H, (const float*)gates, (const float*)before, (const float*)c,
                                        (const float*)dh, (float*)dc, (float*)dgates),
                          lstm_backward(rows, H, (const double*)gates, (const double*)before,
                                        (const double*)c, (const double*)dh, (double*)dc, (double*)dgates));
    },
    [](DType dtype, int64_t rows, int64_t H, const void* gx, const void* gh, const void* before, void* kept,
       void* h) {
      RL_SINGLE_OR_DOUBLE(
          gru(rows, H, (const float*)gx, (const float*)gh, (const float*)before, (float*)kept, (float*)h),
          gru(rows, H, (const double*)gx, (const double*)gh, (const double*)before, (double*)kept,
              (double*)h));
    },
    [](DType dtype, int64_t rows, int64_t H, const void* kept, const void* before, const void* dh, void* dgx,
       void* dgh, void* dh_before) {
      RL_SINGLE_OR_DOUBLE(gru_backward(rows, H, (const float*)kept, (const float*)before, (const float*)dh,
                                       (float*)dgx, (float*)dgh, (float*)dh_before),
                          gru_backward(rows, H, (const double*)kept, (const double*)before, (const double*)dh,
                                       (double*)dgx, (double*)dgh, (double*)dh_before));
    },
    [](DType dtype, bool relu, int64_t n, void* h) {
      RL_SINGLE_OR_DOUBLE(simple(relu, n, (float*)h), simple(relu, n, (double*)h));
    },
    [](DType dtype, bool relu, int64_t n, const void* h, const void* dh, void* d) {
      RL_SINGLE_OR_DOUBLE(simple_backward(relu, n, (const float*)h, (const float*)dh, (float*)d),
                          simple_backward(relu, n, (const double*)h, (const double*)dh, (double*)d));
    },
    [](DType dtype, int64_t n, void* to, const void* from) {
      RL_SINGLE_OR_DOUBLE(add(n, (float*)to, (const float*)from), add(n, (double*)to, (const double*)from));
    },
};

}  // namespace RL_ISA
}  // namespace rl
