// One layer of a recurrent network in one direction, over whole sequences, as one operation; and its
// gradient.
//
// The caller has multiplied the inputs by their weights (gx); what is left is the recursion: a product with
// the state and an elementwise step (kernels/rnn.h) per time. Sequences are packed: step t has size[t] rows,
// beginning at row offset[t]; the first rows of the state belong to them. Of padded input, all steps have the
// same size. Backwards in time the sizes grow, and rows of the initial state join. rushlight/ops/rnn.py has
// the rule and the slow, general form.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "../graph/modes.h"
#include "../kernels/elementwise.h"
#include "../kernels/gemm_avx512.h"
#include "../kernels/matmul.h"
#include "../kernels/rnn.h"
#include "../kernels/simd/families.h"
#include "../tensor/iterate.h"
#include "arguments.h"

namespace rl {
namespace {

const RnnLoops& rnn_loops() {
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = !std::strcmp(cpu_capability(), "AVX2");
  if (avx512_chosen()) return avx512::rnn_loops;
  if (has_avx2) return avx2::rnn_loops;
#endif
  return baseline::rnn_loops;
}

constexpr const char* NAME = "rnn_sequence";

struct Sequence {
  RnnMode mode;
  DType dtype;
  int64_t B, H, total = 0;
  int gates;                                 // per element of the state
  std::vector<int64_t> steps, size, offset;  // steps: times in the order of computation

  Sequence(Tensor* h0, PyObject* mode_name, PyObject* sizes, Sizes gx, bool reverse) {
    const char* name = PyUnicode_Check(mode_name) ? PyUnicode_AsUTF8(mode_name) : "";
    std::string_view given = name ? name : "";
    mode = given == "lstm"   ? RnnMode::lstm
           : given == "gru"  ? RnnMode::gru
           : given == "tanh" ? RnnMode::tanh
                             : RnnMode::relu;
    if (mode == RnnMode::relu && given != "relu") fail(PyExc_RuntimeError, "rnn_sequence: no such mode");
    dtype = h0->dtype;
    if (dtype != DType::f32 && dtype != DType::f64) fail_not_implemented(NAME, dtype);
    if (h0->ndim != 2) fail(PyExc_RuntimeError, "rnn_sequence: the state must be a matrix");
    B = h0->size(0), H = h0->size(1);
    gates = mode == RnnMode::lstm ? 4 : mode == RnnMode::gru ? 3 : 1;
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < gx.size(); d++) rows *= gx[d];
    if (sizes == Py_None) {
      if (gx.size() != 3 || gx[1] != B)
        fail(PyExc_RuntimeError, "rnn_sequence: input and state differ in batch size");
      size.assign(size_t(gx[0]), B);
    } else {
      if (!PyTuple_Check(sizes) && !PyList_Check(sizes))
        fail(PyExc_TypeError, "rnn_sequence: sizes must be a tuple");
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sizes); i++) {
        size.push_back(read_int(item_of(sizes, i).get()));
        if (size.back() < 0 || size.back() > (i ? size[size_t(i) - 1] : B)) {
          fail(PyExc_RuntimeError, "rnn_sequence: batch sizes must fall from at most that of the state");
        }
      }
    }
    for (int64_t n : size) {
      offset.push_back(total);
      total += n;
    }
    if (gx.size() < 2 || gx.back() != gates * H || rows != total) {
      fail(PyExc_RuntimeError, "rnn_sequence: sizes of input and state do not fit");
    }
    for (size_t s = 0; s < size.size(); s++) steps.push_back(int64_t(reverse ? size.size() - 1 - s : s));
  }
  int64_t itemsize() const { return dtype_size(dtype); }
  bool simple() const { return mode == RnnMode::tanh || mode == RnnMode::relu; }

  // Rows of one matrix, or of steps of them.
  void check(const Tensor* t, int64_t rows, int64_t columns) const {
    if (!t) return;
    int64_t n = 1;
    for (int d = 0; d + 1 < t->ndim; d++) n *= t->size(d);
    if (t->dtype != dtype || t->ndim < 1 || t->size(t->ndim - 1) != columns || n != rows || t->is_meta()) {
      fail(PyExc_RuntimeError, "rnn_sequence: an operand has the wrong type or size");
    }
  }
  void check_matrix(const Tensor* t, int64_t rows, int64_t columns) const {
    check(t, rows, columns);
    if (t && t->ndim != 2) fail(PyExc_RuntimeError, "rnn_sequence: states and weights must be matrices");
  }
};

struct One {
  float f = 1;
  double d = 1;
  const void* of(DType dtype) const { return dtype == DType::f64 ? static_cast<const void*>(&d) : &f; }
};

// The product with the weights that every step repeats: packed once where that helps.
class StepProduct {
  const Sequence& s;
  Matrix b;
  std::optional<PackedRight> packed;
  TensorRef turned;

 public:
  // b is `weight`, dense, or its transpose.
  StepProduct(const Sequence& sequence, Tensor* weight, bool transposed) : s(sequence) {
    int64_t rows = weight->size(0), cols = weight->size(1);
    b = {weight->data(), rows, cols, cols, 1};
    if (transposed) b = b.transposed();
    bool repeated = s.total >= 8 * s.B && s.B >= 4 && b.rows >= 16 && b.cols >= 32;
    if (s.dtype == DType::f32 && repeated && avx512_chosen()) {
      packed.emplace(b);
    } else if (transposed) {  // transposed once, the weights need no transposing at every step
      int64_t flipped[] = {1, cols}, sizes[] = {cols, rows};
      turned = contiguous(new_alias(weight, sizes, flipped, weight->offset).get());
      b = {turned->data(), cols, rows, rows, 1};
    }
  }
  // c (so many rows) = a @ b + c, or without c; all dense.
  void run(char* c, int64_t rows, const char* a, bool accumulate) const {
    if (packed && rows > 1) {
      return packed->multiply(reinterpret_cast<float*>(c), rows, reinterpret_cast<const float*>(a),
                              !accumulate);
    }
    One one, zero{0, 0};
    gemm(s.dtype, {c, rows, b.cols, b.cols, 1}, {const_cast<char*>(a), rows, b.rows, b.rows, 1}, b,
         one.of(s.dtype), (accumulate ? one : zero).of(s.dtype));
  }
};

Tensor* optional(PyObject* o) { return o == Py_None ? nullptr : tensor_argument(NAME, o); }

TensorRef fresh(const Sequence& s, int64_t rows, int64_t columns) {
  int64_t sizes[] = {rows, columns};
  return new_tensor(sizes, s.dtype);
}

// rnn_sequence(gx, h0, c0, w_hh, b_hh; mode, sizes, reverse, shown) -> out, hn, cn, kept, cells, states.
// states: a copy of out for the derivative where torch stacks copies of its steps, so that out may be
// written; else empty. shown: out is what the user gets, not what the next layer or a concatenation reads.
PyObject* rnn_sequence_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *gx = tensor_argument(NAME, args[0]), *h0 = tensor_argument(NAME, args[1]), *c0 = optional(args[2]);
  Tensor *w = tensor_argument(NAME, args[3]), *b = optional(args[4]);
  Sequence s(h0, args[5], args[6], gx->sizes(), bool_argument(NAME, "reverse", args[7]));
  bool lstm = s.mode == RnnMode::lstm, gru = s.mode == RnnMode::gru;
  s.check(gx, s.total, s.gates * s.H);
  s.check_matrix(h0, s.B, s.H);
  s.check_matrix(w, s.gates * s.H, s.H);
  s.check(b, 1, s.gates * s.H);
  if (lstm != (c0 != nullptr) || (b && !gru))
    fail(PyExc_RuntimeError, "rnn_sequence: operands do not fit the mode");
  s.check_matrix(c0, s.B, s.H);
  TensorRef x = contiguous(gx), weight = contiguous(w), bias = b ? contiguous(b) : TensorRef();
  Shape shape;
  shape.assign(gx->sizes());
  shape.sizes[shape.ndim - 1] = s.H;
  TensorRef out = new_tensor(shape, s.dtype);
  TensorRef hn = fresh(s, s.B, s.H), cn = fresh(s, lstm ? s.B : 0, s.H);
  copy_into(hn.get(), h0);
  if (lstm) copy_into(cn.get(), c0);
  TensorRef kept = fresh(s, s.simple() ? 0 : s.total, 4 * s.H), cells = fresh(s, lstm ? s.total : 0, s.H);
  int64_t item = s.itemsize(), H = s.H;
  std::vector<char> gh(gru ? size_t(s.B * 3 * H * item) : 0);
  StepProduct product(s, weight.get(), true);
  const RnnLoops& loops = rnn_loops();
  {
    MaybeNoGil released(is_long_product(double(s.total) * double(H) * double(H) * s.gates) ? INT64_MAX : 0);
    for (int64_t t : s.steps) {
      int64_t rows = s.size[size_t(t)], at = s.offset[size_t(t)];
      if (!rows) continue;
      char* h = out->data() + at * H * item;
      const char* in = x->data() + at * s.gates * H * item;
      if (lstm) {
        char *sums = kept->data() + at * 4 * H * item, *c = cells->data() + at * H * item;
        product.run(sums, rows, hn->data(), false);
        loops.lstm(s.dtype, rows, H, in, sums, cn->data(), c, h);
        std::memcpy(cn->data(), c, size_t(rows * H * item));
      } else if (gru) {
        for (int64_t r = 0; b && r < rows; r++) {
          std::memcpy(gh.data() + r * 3 * H * item, bias->data(), size_t(3 * H * item));
        }
        product.run(gh.data(), rows, hn->data(), b);
        loops.gru(s.dtype, rows, H, in, gh.data(), hn->data(), kept->data() + at * 4 * H * item, h);
      } else {
        std::memcpy(h, in, size_t(rows * H * item));
        product.run(h, rows, hn->data(), true);
        loops.simple(s.dtype, s.mode == RnnMode::relu, rows * H, h);
      }
      std::memcpy(hn->data(), h, size_t(rows * H * item));
    }
  }
  bool of_library = lstm && s.dtype == DType::f32 && args[6] == Py_None;
  bool several = s.steps.size() > 1 || (s.simple() && args[6] == Py_None);  // else a cell
  bool wanted = recording() && bool_argument(NAME, "shown", args[8]);
  bool stacked = wanted && several && !of_library && std::any_of(args, args + 5, [](PyObject* o) {
                   return is_tensor(o) && as_tensor(o)->requires_grad();
                 });
  TensorRef states = fresh(s, stacked ? s.total : 0, H);
  if (stacked) std::memcpy(states->data(), out->data(), size_t(s.total * H * item));
  return checked(PyTuple_Pack(6, out->object(), hn->object(), cn->object(), kept->object(), cells->object(),
                              states->object()))
      .release();
}

// The state before each step, row by row: the result of the step computed before, or the initial state.
TensorRef states_before(const Sequence& s, Tensor* initial, Tensor* results) {
  TensorRef before = fresh(s, s.total, s.H);
  int64_t width = s.H * s.itemsize();
  for (size_t k = 0; k < s.steps.size(); k++) {
    size_t t = size_t(s.steps[k]);
    char* to = before->data() + s.offset[t] * width;
    int64_t known = 0;
    if (k) {
      size_t p = size_t(s.steps[k - 1]);
      known = std::min(s.size[t], s.size[p]);
      std::memcpy(to, results->data() + s.offset[p] * width, size_t(known * width));
    }
    std::memcpy(to + known * width, initial->data() + known * width, size_t((s.size[t] - known) * width));
  }
  return before;
}

// rnn_sequence_backward(g, g_hn, g_cn, h0, c0, w_hh, out, kept, cells; mode, sizes, reverse, biased)
//   -> dgx, dh0, dc0, dw, db
PyObject* rnn_sequence_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *g = optional(args[0]), *g_hn = optional(args[1]), *g_cn = optional(args[2]);
  Tensor *h0 = tensor_argument(NAME, args[3]), *c0 = optional(args[4]), *w = tensor_argument(NAME, args[5]);
  Tensor *out = tensor_argument(NAME, args[6]), *kept = tensor_argument(NAME, args[7]);
  Tensor* cells = tensor_argument(NAME, args[8]);
  Shape shape;
  shape.assign(out->sizes());
  if (shape.ndim < 2) fail(PyExc_RuntimeError, "rnn_sequence: the result must be a matrix");
  const char* mode = PyUnicode_Check(args[9]) ? PyUnicode_AsUTF8(args[9]) : nullptr;
  std::string_view kind = mode ? mode : "";
  shape.sizes[shape.ndim - 1] *= kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
  Sequence s(h0, args[9], args[10], shape, bool_argument(NAME, "reverse", args[11]));
  bool biased = bool_argument(NAME, "biased", args[12]);
  bool lstm = s.mode == RnnMode::lstm, gru = s.mode == RnnMode::gru;
  int64_t H = s.H, G = s.gates * H, item = s.itemsize();
  s.check(g, s.total, H);
  s.check_matrix(g_hn, s.B, H);
  s.check_matrix(h0, s.B, H);
  s.check_matrix(w, G, H);
  s.check(out, s.total, H);
  if (lstm) {
    s.check_matrix(g_cn, s.B, H);
    s.check_matrix(c0, s.B, H);
    s.check(cells, s.total, H);
  }
  if (!s.simple()) s.check(kept, s.total, 4 * H);
  if (lstm != (c0 != nullptr)) fail(PyExc_RuntimeError, "rnn_sequence: operands do not fit the mode");
  TensorRef up = g ? contiguous(g) : TensorRef(), weight = contiguous(w), first = contiguous(h0);
  TensorRef results = contiguous(out), acts = contiguous(kept), c_all = contiguous(cells);
  TensorRef dgx = new_tensor(shape, s.dtype), dgh = gru ? fresh(s, s.total, G) : share(dgx.get());
  TensorRef dh = g_hn ? fresh(s, s.B, H) : zeros(std::array<int64_t, 2>{s.B, H}, s.dtype);
  TensorRef dc = lstm && g_cn ? fresh(s, s.B, H) : zeros(std::array<int64_t, 2>{lstm ? s.B : 0, H}, s.dtype);
  if (g_hn) copy_into(dh.get(), g_hn);
  if (lstm && g_cn) copy_into(dc.get(), g_cn);
  TensorRef h_before = states_before(s, first.get(), results.get()), c_before, c_first;
  if (lstm) {
    c_first = contiguous(c0);
    c_before = states_before(s, c_first.get(), c_all.get());
  }
  TensorRef dw = fresh(s, G, H);
  int64_t bias_size[] = {biased ? G : 0};
  TensorRef db = zeros(bias_size, s.dtype), step = fresh(s, s.B, H);
  StepProduct product(s, weight.get(), false);
  const RnnLoops& loops = rnn_loops();
  {
    MaybeNoGil released(is_long_product(double(s.total) * double(H) * double(H) * s.gates) ? INT64_MAX : 0);
    for (size_t k = s.steps.size(); k-- > 0;) {
      size_t t = size_t(s.steps[k]);
      int64_t rows = s.size[t], at = s.offset[t];
      if (!rows) continue;
      char *d = dgh->data() + at * G * item, *now = step->data();
      std::memcpy(now, dh->data(), size_t(rows * H * item));
      if (g) loops.add(s.dtype, rows * H, now, up->data() + at * H * item);
      if (lstm) {
        loops.lstm_backward(s.dtype, rows, H, acts->data() + at * 4 * H * item,
                            c_before->data() + at * H * item, c_all->data() + at * H * item, now, dc->data(),
                            d);
      } else if (gru) {
        loops.gru_backward(s.dtype, rows, H, acts->data() + at * 4 * H * item,
                           h_before->data() + at * H * item, now, dgx->data() + at * G * item, d, dh->data());
      } else {
        loops.simple_backward(s.dtype, s.mode == RnnMode::relu, rows * H, results->data() + at * H * item,
                              now, d);
      }
      product.run(dh->data(), rows, d, gru);
    }
    One one, zero{0, 0};
    gemm(s.dtype, {dw->data(), G, H, H, 1}, Matrix{dgh->data(), s.total, G, G, 1}.transposed(),
         {h_before->data(), s.total, H, H, 1}, one.of(s.dtype), zero.of(s.dtype));
    for (int64_t r = 0; biased && r < s.total; r++)
      loops.add(s.dtype, G, db->data(), dgh->data() + r * G * item);
  }
  return checked(PyTuple_Pack(5, dgx->object(), dh->object(), dc->object(), dw->object(), db->object()))
      .release();
}

ModuleInit init([](PyObject*) {
  Primitive& sequence = define(
      "rnn_sequence(gx, h0, c0, w_hh, b_hh; mode, sizes, reverse, shown) -> out, hn, cn, kept, cells, states",
      rnn_sequence_forward);
  // Of the state before a step torch's GRU keeps the difference from the new one, and itself for the weights.
  sequence.copied = [](PyObject* const* args) {
    bool gru = PyUnicode_Check(args[5]) && !PyUnicode_CompareWithASCIIString(args[5], "gru");
    return uint16_t(gru && !as_tensor(args[3])->requires_grad() ? 1 << 1 : 0);
  };
  define(
      "rnn_sequence_backward(g, g_hn, g_cn, h0, c0, w_hh, out, kept, cells; mode, sizes, reverse, biased) -> "
      "dgx, "
      "dh0, dc0, dw, db",
      rnn_sequence_backward_forward);
});

}  // namespace
}  // namespace rl
