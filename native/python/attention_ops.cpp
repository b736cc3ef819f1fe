// softmax(scale * q @ k^T + mask) @ v without ever holding the whole matrix of weights, and its gradient.
//
// The queries of one head are taken ROWS at a time: their products with the keys fill a small buffer, which
// becomes the weights where it is and is multiplied by the values. The gradient computes the weights anew,
// block by block; so nothing is saved but the inputs. With a causal mask, keys behind the block are not
// touched at all.
#include <algorithm>
#include <limits>
#include <vector>

#include "../kernels/matmul.h"
#include "../kernels/softmax.h"
#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
#include "arguments.h"

namespace rl {
namespace {

constexpr const char* NAME = "scaled_dot_product_attention";
// Queries taken at a time (the gradient's products gain from more of them), fewer if there are so many keys
// that the buffer would grow beyond this.
constexpr int64_t ROWS = 64, GRADIENT_ROWS = 128, BUFFER = int64_t(1) << 22;

// A tensor as one matrix per head, rows of contiguous elements.
struct Heads {
  TensorRef t;
  int64_t rows, columns;

  explicit Heads(Tensor* x) : t(share(x)) {
    if (x->ndim < 2) fail(PyExc_RuntimeError, "scaled_dot_product_attention: at least 2 dimensions expected");
    if (!has_rows(x)) t = contiguous(x);
    rows = x->size(x->ndim - 2), columns = x->size(x->ndim - 1);
  }
  static bool has_rows(const Tensor* x) {
    int last = x->ndim - 1;
    return x->stride(last) == 1 && x->stride(last - 1) >= x->size(last);
  }
  int64_t offset(int64_t head) const {
    int64_t at = 0;
    for (int d = t->ndim - 3; d >= 0; d--) {
      at += head % t->size(d) * t->stride(d);
      head /= t->size(d);
    }
    return at;
  }
  Matrix matrix(int64_t head, int64_t first, int64_t count) const {
    // The stride of a single row means nothing.
    int64_t step = rows == 1 ? std::max<int64_t>(columns, 1) : std::max<int64_t>(t->stride(t->ndim - 2), 1);
    return {t->data() + (offset(head) + first * step) * t->itemsize(), count, columns, step, 1};
  }
};

struct Attention {
  Heads q, k, v;
  Tensor* mask;
  DType dtype;
  int64_t heads = 1, L, S, block;
  double scale;
  bool causal;
  int64_t mask_strides[MAX_DIMS];
  LineKernel softmax, softmax_backward;

  // arguments: q, k, v, mask; scale, causal
  Attention(PyObject* const* args, int64_t rows)
      : q(tensor_argument(NAME, args[0])),
        k(tensor_argument(NAME, args[1])),
        v(tensor_argument(NAME, args[2])) {
    mask = args[3] == Py_None ? nullptr : tensor_argument(NAME, args[3]);
    dtype = q.t->dtype;
    if (dtype != DType::f32 && dtype != DType::f64) fail_not_implemented(NAME, dtype);
    L = q.rows, S = k.rows;
    block = std::clamp<int64_t>(BUFFER / std::max<int64_t>(S, 1), 1, rows);
    if (L > block)
      block = std::min(block, ((L + blocks() - 1) / blocks() + 7) / 8 * 8);  // alike, not a rest of few
    bool fits = k.t->dtype == dtype && v.t->dtype == dtype && k.columns == q.columns && v.rows == S &&
                k.t->ndim == q.t->ndim && v.t->ndim == q.t->ndim && !q.t->is_meta() && !k.t->is_meta() &&
                !v.t->is_meta();
    for (int d = 0; fits && d < q.t->ndim - 2; d++) {
      fits = k.t->size(d) == q.t->size(d) && v.t->size(d) == q.t->size(d);
      heads *= q.t->size(d);
    }
    if (!fits)
      fail(PyExc_RuntimeError, "scaled_dot_product_attention: query, key and value do not fit each other");
    if (mask) {
      if ((mask->dtype != dtype && mask->dtype != DType::b1) || mask->ndim > q.t->ndim || mask->is_meta()) {
        fail(PyExc_RuntimeError, "scaled_dot_product_attention: the mask does not fit");
      }
      Shape full;
      full.assign(q.t->sizes());
      full.sizes[full.ndim - 1] = S;
      Shape joined = full;
      broadcast_into(joined, mask->sizes());
      if (!std::equal(joined.sizes, joined.sizes + joined.ndim, full.sizes)) {
        fail(PyExc_RuntimeError, "scaled_dot_product_attention: the mask does not fit");
      }
      broadcast_strides(mask, full, mask_strides);
    }
    scale = PyFloat_AsDouble(args[4]);
    if (scale == -1 && PyErr_Occurred()) throw PythonError{};
    causal = bool_argument(NAME, "causal", args[5]);
    softmax = best_softmax_kernel(LineOp::softmax, dtype);
    softmax_backward = best_softmax_kernel(LineOp::softmax_backward, dtype);
  }
  int64_t blocks() const { return (L + block - 1) / block; }
  // How many keys the queries before `end` may look at.
  int64_t keys(int64_t end) const { return causal ? std::min(end, S) : S; }
  double work() const { return double(heads) * double(L) * double(S) * double(q.columns + v.columns); }
  int64_t mask_offset(int64_t head) const {
    int64_t at = 0;
    for (int d = q.t->ndim - 3; d >= 0; d--) {
      at += head % q.t->size(d) * mask_strides[d];
      head /= q.t->size(d);
    }
    return at;
  }
  void product(const Matrix& c, const Matrix& a, const Matrix& b, double alpha, double beta) const {
    float alpha_f = float(alpha), beta_f = float(beta);
    if (dtype == DType::f64) gemm(dtype, c, a, b, &alpha, &beta);
    else gemm(dtype, c, a, b, &alpha_f, &beta_f);
  }

  // The weights of queries first..first + count on n keys; rows of n in `p`.
  template <class T>
  void weights(T* p, int64_t head, int64_t first, int64_t count, int64_t n) const {
    constexpr T none = -std::numeric_limits<T>::infinity();
    product({p, count, n, n, 1}, q.matrix(head, first, count), k.matrix(head, 0, n).transposed(), scale, 0);
    int64_t across = 0, down = 0, start = 0;
    if (mask) {
      down = mask_strides[q.t->ndim - 2], across = mask_strides[q.t->ndim - 1];
      start = mask_offset(head);
    }
    int64_t ready = 0;  // rows from `ready` on wait for softmax
    auto normalise = [&](int64_t end) {
      void* data[] = {p + ready * n, p + ready * n};
      int64_t step[] = {1, 1}, line[] = {n, n};
      if (end > ready) softmax(data, step, line, n, end - ready);
      ready = end;
    };
    for (int64_t r = 0; r < count; r++) {
      T* row = p + r * n;
      int64_t from = start + (first + r) * down;
      if (mask && mask->dtype == DType::b1) {
        const bool* allowed = mask->data_as<bool>() + from;
        // The usual mask is contiguous: a loop of its own becomes vectors. Added, so that NaN stays NaN.
        if (across == 1)
          for (int64_t j = 0; j < n; j++) row[j] += allowed[j] ? T(0) : none;
        else
          for (int64_t j = 0; j < n; j++) row[j] += allowed[j * across] ? T(0) : none;
      } else if (mask) {
        const T* added = mask->data_as<T>() + from;
        if (across == 1)
          for (int64_t j = 0; j < n; j++) row[j] += added[j];
        else
          for (int64_t j = 0; j < n; j++) row[j] += added[j * across];
      }
      if (causal) {
        for (int64_t j = first + r + 1; j < n; j++) row[j] = none;
      }
      bool nowhere = true;
      for (int64_t j = 0; nowhere && j < n; j++) nowhere = row[j] == none;
      if (nowhere) {  // may look nowhere, or all scores are -inf: sees nothing
        normalise(r);
        std::fill_n(row, n, T(0));
        ready = r + 1;
      }
    }
    normalise(count);
    if (causal) clear_later(p, first, count, n);
  }

  // No weight on later keys: zero as it is, unless there is a NaN in the row, which is not to spread.
  template <class T>
  void clear_later(T* p, int64_t first, int64_t count, int64_t n) const {
    for (int64_t r = 0; r < count; r++) {
      for (int64_t j = first + r + 1; j < n; j++) p[r * n + j] = T(0);
    }
  }
};

// Torch's own attention takes heads of four dimensions. Its result lies as the queries do, and its gradients
// with the heads side by side, as the layer before made them: so both are joined again without a copy.
bool beside(const Attention& a, PyObject* const* args) {
  bool fits = a.q.t->ndim == 4 && a.v.columns == a.q.columns;
  for (int k = 0; fits && k < 3; k++) fits = as_tensor(args[k])->stride(3) == 1;
  return fits;
}

TensorRef new_gradient(const Heads& heads, bool beside) {
  if (!beside) return zeros(heads.t->sizes(), heads.t->dtype);
  int64_t sizes[4], strides[4];
  std::ranges::copy(heads.t->sizes(), sizes);
  std::swap(sizes[1], sizes[2]);
  TensorRef joined = zeros({sizes, 4}, heads.t->dtype);
  std::ranges::copy(joined->strides(), strides);
  std::swap(sizes[1], sizes[2]);
  std::swap(strides[1], strides[2]);
  return new_alias(joined.get(), {sizes, 4}, {strides, 4}, 0);
}

// The weights are put into `kept`, if it is given; only without a causal mask.
template <class T>
void forward(const Attention& a, const Heads& out, T* kept = nullptr) {
  double work = double(a.block) * double(a.S) * double(a.v.columns + 1);
  int64_t grain = std::max<int64_t>(1, int64_t(4e5 / (work + 1)));
  parallel_for(a.heads * a.blocks(), grain, [&](int64_t begin, int64_t end) {
    std::vector<T> room(kept ? 0 : size_t(a.block * a.S));
    for (int64_t i = begin; i < end; i++) {
      int64_t head = i / a.blocks(), first = i % a.blocks() * a.block, count = std::min(a.block, a.L - first);
      int64_t n = a.keys(first + count);
      T* p = kept ? kept + (head * a.L + first) * a.S : room.data();
      a.weights(p, head, first, count, n);
      a.product(out.matrix(head, first, count), {p, count, n, n, 1}, a.v.matrix(head, 0, n), 1, 0);
    }
  });
}

template <class T>
void backward(const Attention& a, const Heads& g, const Heads& dq, const Heads& dk, const Heads& dv,
              T* kept = nullptr) {
  parallel_for(a.heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> room(kept ? 0 : size_t(a.block * a.S)), d(size_t(a.block * a.S));
    for (int64_t head = begin; head < end; head++) {
      for (int64_t first = 0; first < a.L; first += a.block) {
        int64_t count = std::min(a.block, a.L - first), n = a.keys(first + count);
        if (!n) continue;
        T* p = kept ? kept + (head * a.L + first) * a.S : room.data();
        if (!kept) a.weights(p, head, first, count, n);
        Matrix weights{p, count, n, n, 1}, ds{d.data(), count, n, n, 1}, up = g.matrix(head, first, count);
        a.product(ds, up, a.v.matrix(head, 0, n).transposed(), 1, 0);
        void* data[] = {d.data(), d.data(), p};
        int64_t step[] = {1, 1, 1}, line[] = {n, n, n};
        a.softmax_backward(data, step, line, n, count);
        if (a.causal) a.clear_later(d.data(), first, count, n);
        a.product(dq.matrix(head, first, count), ds, a.k.matrix(head, 0, n), a.scale, 0);
        a.product(dk.matrix(head, 0, n), ds.transposed(), a.q.matrix(head, first, count), a.scale, 1);
        a.product(dv.matrix(head, 0, n), weights.transposed(), up, 1, 1);
      }
    }
  });
}

TensorRef new_result(const Attention& a, PyObject* const* args) {
  Shape shape;
  shape.assign(a.q.t->sizes());
  shape.sizes[shape.ndim - 1] = a.v.columns;
  if (!a.S) return zeros(shape, a.dtype);
  TensorRef out;
  if (beside(a, args)) out = empty_like(as_tensor(args[0]), a.dtype);
  return out && Heads::has_rows(out.get()) ? out : new_tensor(shape, a.dtype);
}

// attention(q, k, v, mask; scale, causal)
PyObject* attention_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Attention a(args, ROWS);
  TensorRef out = new_result(a, args);
  if (out->numel && a.S) {
    MaybeNoGil released(is_long_product(a.work()) ? INT64_MAX : 0);
    if (a.dtype == DType::f64) forward<double>(a, Heads(out.get()));
    else forward<float>(a, Heads(out.get()));
  }
  return out.release_object();
}

// attention_keeping(q, k, v, mask; scale) -> out, weights: the same for few weights, which are not computed
// anew.
PyObject* attention_keeping_forward(const Primitive&, PyObject* const* args, Tensor*) {
  PyObject* all[] = {args[0], args[1], args[2], args[3], args[4], Py_False};
  Attention a(all, ROWS);
  TensorRef out = new_result(a, args);
  Shape shape;
  shape.assign(a.q.t->sizes());
  shape.sizes[shape.ndim - 1] = a.S;
  TensorRef weights = new_tensor(shape, a.dtype);
  if (weights->numel) {
    MaybeNoGil released(is_long_product(a.work()) ? INT64_MAX : 0);
    if (a.dtype == DType::f64) forward<double>(a, Heads(out.get()), weights->data_as<double>());
    else forward<float>(a, Heads(out.get()), weights->data_as<float>());
  }
  return checked(PyTuple_Pack(2, out->object(), weights->object())).release();
}

// With the weights, or null to compute them anew.
PyObject* gradients(const Attention& a, PyObject* const* args, Tensor* upstream, Tensor* weights) {
  Heads g(upstream);
  bool fits = g.t->dtype == a.dtype && g.t->ndim == a.q.t->ndim && g.rows == a.L &&
              g.columns == a.v.columns && !g.t->is_meta();
  for (int d = 0; fits && d < g.t->ndim - 2; d++) fits = g.t->size(d) == a.q.t->size(d);
  if (!fits) fail(PyExc_RuntimeError, "scaled_dot_product_attention: the gradient does not fit");
  bool joined = beside(a, args);
  TensorRef dq = new_gradient(a.q, joined), dk = new_gradient(a.k, joined), dv = new_gradient(a.v, joined);
  {
    MaybeNoGil released(is_long_product(a.work()) ? INT64_MAX : 0);
    Heads to_q(dq.get()), to_k(dk.get()), to_v(dv.get());
    void* kept = weights ? weights->data() : nullptr;
    if (a.dtype == DType::f64) backward(a, g, to_q, to_k, to_v, static_cast<double*>(kept));
    else backward(a, g, to_q, to_k, to_v, static_cast<float*>(kept));
  }
  return checked(PyTuple_Pack(3, dq->object(), dk->object(), dv->object())).release();
}

// attention_backward(g, q, k, v, mask; scale, causal) -> dq, dk, dv
PyObject* attention_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  return gradients(Attention(args + 1, GRADIENT_ROWS), args + 1, tensor_argument(NAME, args[0]), nullptr);
}

// attention_keeping_backward(g, q, k, v, weights; scale) -> dq, dk, dv
PyObject* attention_keeping_backward_forward(const Primitive&, PyObject* const* args, Tensor*) {
  PyObject* all[] = {args[1], args[2], args[3], Py_None, args[5], Py_False};
  Attention a(all, GRADIENT_ROWS);
  Tensor* weights = tensor_argument(NAME, args[4]);
  Shape shape;
  shape.assign(a.q.t->sizes());
  shape.sizes[shape.ndim - 1] = a.S;
  bool fits = weights->dtype == a.dtype && weights->ndim == shape.ndim && weights->is_contiguous() &&
              std::ranges::equal(weights->sizes(), Sizes(shape)) && !weights->is_meta();
  if (!fits) fail(PyExc_RuntimeError, "scaled_dot_product_attention: the weights do not fit");
  return gradients(a, args + 1, tensor_argument(NAME, args[0]), weights);
}

ModuleInit init([](PyObject*) {
  Primitive& attention = define("attention(q, k, v, mask; scale, causal)", attention_forward);
  // torch keeps numbers to add, made of a mask of booleans.
  attention.copied = [](PyObject* const* args) {
    return uint16_t(is_tensor(args[3]) && as_tensor(args[3])->dtype == DType::b1 ? 1 << 3 : 0);
  };
  define("attention_keeping(q, k, v, mask; scale) -> out, weights", attention_keeping_forward).copied =
      attention.copied;
  define("attention_backward(g, q, k, v, mask; scale, causal) -> dq, dk, dv", attention_backward_forward);
  define("attention_keeping_backward(g, q, k, v, weights; scale) -> dq, dk, dv",
         attention_keeping_backward_forward);
});

}  // namespace
}  // namespace rl
