// One step of SGD or Adam on all parameters of a group, in a single call and one sweep over memory each.
//
// Operation by operation a step goes through memory up to a dozen times and makes up to fifteen calls for
// each parameter; for large parameters the first is all it costs, for small ones the second. Start at
// `py_sgd_steps` and `py_adam_steps`. The arithmetic is that of the operations in rushlight/optim, in the
// same order, so that the numbers are the same bit for bit. Whatever is unusual (subclasses, other dtypes,
// strides that differ, memory that overlaps) is left to those operations: the call then has changed nothing
// and returns False.
#include "../kernels/optim_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "../graph/custom.h"
#include "../graph/dispatching.h"
#include "../graph/watching.h"
#include "../kernels/elementwise.h"
#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
#include "levels.h"
#include "primitive.h"

namespace rl {
namespace {

constexpr int64_t GRAIN = 1 << 15;

const OptimSteps& loops() {
#if defined(RL_HAVE_AVX2)
  static const bool has_avx2 = !std::strcmp(cpu_capability(), "AVX2");
  if (has_avx2) return avx2::optim_steps;
#endif
  return baseline::optim_steps;
}

// The options of a step that are numbers. What is no float or int, or too large, is left to the operations,
// which refuse some of it in their own words.
class Numbers {
 public:
  bool usual = true;

  double read(PyObject* o) {
    if (PyFloat_Check(o)) {
      double value = PyFloat_AS_DOUBLE(o);
      usual &= !(std::abs(value) > std::numeric_limits<float>::max());
      return value;
    }
    int overflow = 0;
    long long value = PyLong_CheckExact(o) ? PyLong_AsLongLongAndOverflow(o, &overflow) : 0;
    usual &= PyLong_CheckExact(o) && !overflow;
    return double(value);
  }
};

// The tensors of one parameter: itself, its gradient, then what the optimizer keeps of it.
struct Row {
  Tensor* tensors[6];

  template <class T>
  T* at(int column, int64_t begin) const {
    return tensors[column] ? tensors[column]->data_as<T>() + begin : nullptr;
  }
};

// All parameters of a call. `written` says by column which tensors are changed.
class Rows {
 public:
  // Lists of equal length, one for each column; None for a column that is not there.
  Rows(PyObject* const* lists, int columns, unsigned written) : columns_(columns), written_(written) {
    Py_ssize_t count = -1;
    for (int c = 0; c < columns; c++) {
      if (lists[c] == Py_None) continue;
      if (!PyList_Check(lists[c])) fail(PyExc_TypeError, "optimizer step: expected lists of tensors");
      if (count >= 0 && PyList_GET_SIZE(lists[c]) != count) {
        fail(PyExc_ValueError, "optimizer step: expected lists of the same length");
      }
      count = PyList_GET_SIZE(lists[c]);
    }
    rows_.resize(std::max<Py_ssize_t>(count, 0));
    for (size_t r = 0; r < rows_.size(); r++) {
      for (int c = 0; c < columns; c++) {
        rows_[r].tensors[c] = nullptr;
        if (lists[c] == Py_None) continue;
        PyObject* o = PyList_GET_ITEM(lists[c], Py_ssize_t(r));
        if (!is_tensor(o)) fail(PyExc_TypeError, "optimizer step: expected a Tensor");
        if (!is_plain_tensor(o)) usual_ = false;
        rows_[r].tensors[c] = as_tensor(o);
        held_.push_back(share(as_tensor(o)));  // the lists may change: while others run, or who watches does
      }
    }
  }

  // Whether the loops below may run: the same layout in each row, dense, float32 or float64 on the CPU, and
  // nothing that is written lies on other memory of the call. `scalars` are columns of one float32 number.
  bool usual(unsigned scalars = 0) {
    if (!usual_) return false;
    ranges_.clear();
    total_ = 0;
    for (const Row& row : rows_) {
      Tensor* first = row.tensors[0];
      if (first->dtype != DType::f32 && first->dtype != DType::f64) return false;
      if (!first->is_contiguous() && !is_dense(first->sizes(), first->strides())) return false;
      total_ += first->numel;
      for (int c = 0; c < columns_; c++) {
        Tensor* t = row.tensors[c];
        if (!t) continue;
        if (t->device().type != DeviceType::cpu || (t->flags & (Tensor::INFERENCE | Tensor::LAZY)))
          return false;
        if ((t->extra && t->extra->tangent) || asks_dispatch(t)) return false;
        if (scalars >> c & 1) {
          if (t->dtype != DType::f32 || t->numel != 1) return false;
        } else if (t->dtype != first->dtype || !same_layout(t, first)) {
          return false;
        }
        if (t->numel)
          ranges_.push_back({t->data(), t->data() + t->numel * t->itemsize(), bool(written_ >> c & 1)});
      }
    }
    return disjoint();
  }

  // Whoever watches writes (allow_mutation_on_saved_tensors) copies what a graph still needs. False if the
  // loops may not run any more after that.
  bool announce_writes(unsigned scalars = 0) {
    if (!writes_watched()) return true;
    for (const Row& row : rows_) {
      for (int c = 0; c < columns_; c++) {
        if (row.tensors[c] && (written_ >> c & 1)) announce_write(row.tensors[c]);
      }
    }
    return usual(scalars);
  }

  // As often as torch writes them: those of the columns `twice` are multiplied first, and added to then.
  void note_writes(unsigned twice = 0) {
    for (const Row& row : rows_) {
      for (int c = 0; c < columns_; c++) {
        if (row.tensors[c] && (written_ >> c & 1)) note_write(row.tensors[c]);
        if (row.tensors[c] && (twice >> c & 1)) note_write(row.tensors[c]);
      }
    }
  }

  int64_t total() const { return total_; }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  struct Range {
    const char *begin, *end;
    bool written;
  };

  static bool same_layout(const Tensor* a, const Tensor* b) {
    if (!same_sizes(a, b)) return false;
    if (a->is_contiguous() && b->is_contiguous()) return true;
    return std::equal(a->strides().begin(), a->strides().end(), b->strides().begin());
  }

  bool disjoint() {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    const char *end = nullptr, *written_end = nullptr;
    for (const Range& range : ranges_) {
      if (range.begin < (range.written ? end : written_end)) return false;
      end = std::max(end, range.end);
      if (range.written) written_end = std::max(written_end, range.end);
    }
    return true;
  }

  int columns_;
  unsigned written_;
  bool usual_ = !transforming();  // where operations ask whether what they write was captured
  int64_t total_ = 0;
  std::vector<Row> rows_;
  std::vector<TensorRef> held_;
  std::vector<Range> ranges_;
};

// Calls loop(row, begin, end) on parts of each row's elements, after before(row) on the calling thread.
template <class F, class G>
void sweep(const Rows& rows, const F& loop, const G& before) {
  MaybeNoGil released(rows.total());
  for (const Row& row : rows) {
    before(row);
    parallel_for(row.tensors[0]->numel, GRAIN, [&](int64_t begin, int64_t end) { loop(row, begin, end); });
  }
}

template <class F>
void sweep(const Rows& rows, const F& loop) {
  sweep(rows, loop, [](const Row&) {});
}

// sgd_steps(params, grads, buffers or None, lr, momentum, dampening, weight_decay, fresh, nesterov,
// maximize): whether the step was done. With `fresh` the buffers hold nothing yet and start as the gradients.
PyObject* py_sgd_steps(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 10) fail(PyExc_TypeError, "sgd_steps: ten arguments expected");
    Numbers numbers;
    const Descent s = {numbers.read(args[3]), numbers.read(args[4]), numbers.read(args[5]),
                       numbers.read(args[6]), is_true(args[7]),      is_true(args[8]),
                       is_true(args[9])};
    Rows rows(args, 3, 0b101);
    if (!numbers.usual || !rows.usual() || !rows.announce_writes()) Py_RETURN_FALSE;
    sweep(rows, [&](const Row& row, int64_t begin, int64_t end) {
      auto run = [&]<class T>(T, auto loop) {
        loop(end - begin, s, row.at<T>(0, begin), row.at<T>(1, begin), row.at<T>(2, begin));
      };
      if (row.tensors[0]->dtype == DType::f32) run(float(), loops().sgd_float);
      else run(double(), loops().sgd_double);
    });
    rows.note_writes();
    Py_RETURN_TRUE;
  });
}

// adam_steps(params, grads, means, squares, largests or None, steps, lr, beta1, beta2, eps, weight_decay,
// decoupled, maximize): whether the step was done. The numbers of steps are counted here.
PyObject* py_adam_steps(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 13) fail(PyExc_TypeError, "adam_steps: thirteen arguments expected");
    Numbers numbers;
    const double lr = numbers.read(args[6]), weight_decay = numbers.read(args[10]);
    const bool decoupled = is_true(args[11]);
    Moments s = {numbers.read(args[7]),
                 numbers.read(args[8]),
                 numbers.read(args[9]),
                 decoupled ? 1 - lr * weight_decay : 1.0,
                 decoupled ? 0.0 : weight_decay,
                 0,
                 0,
                 is_true(args[12])};
    Rows rows(args, 6, 0b111101);
    // Other betas divide by zero or take the root of a negative number.
    if (!(s.beta1 >= 0 && s.beta1 < 1 && s.beta2 >= 0 && s.beta2 < 1)) Py_RETURN_FALSE;
    constexpr unsigned steps = 0b100000;
    if (!numbers.usual || !rows.usual(steps) || !rows.announce_writes(steps)) Py_RETURN_FALSE;
    float last = 0;
    sweep(
        rows,
        [&](const Row& row, int64_t begin, int64_t end) {
          auto run = [&]<class T>(T, auto loop) {
            loop(end - begin, s, row.at<T>(0, begin), row.at<T>(1, begin), row.at<T>(2, begin),
                 row.at<T>(3, begin), row.at<T>(4, begin));
          };
          if (row.tensors[0]->dtype == DType::f32) run(float(), loops().adam_float);
          else run(double(), loops().adam_double);
        },
        [&](const Row& row) {
          float step = *row.at<float>(5, 0) += 1;
          if (step == last) return;  // most often all parameters have taken as many
          last = step;
          s.step_size = lr / (1 - std::pow(s.beta1, double(step)));
          s.root = std::sqrt(1 - std::pow(s.beta2, double(step)));
        });
    rows.note_writes(decoupled && weight_decay != 0 ? 0b1001 : 0b1000);
    Py_RETURN_TRUE;
  });
}

// with_gradients(params) -> those that have a gradient, and their gradients.
PyObject* py_with_gradients(PyObject*, PyObject* given) {
  return guarded([&]() -> PyObject* {
    static PyObject* name = PyUnicode_InternFromString("grad");
    Ref<PyObject> params = checked(PySequence_Tuple(given)), with = checked(PyList_New(0)),
                  grads = checked(PyList_New(0));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(params.get()); i++) {
      PyObject* param = PyTuple_GET_ITEM(params.get(), i);
      Ref<PyObject> grad = checked(PyObject_GetAttr(param, name));
      if (grad.get() == Py_None) continue;
      if (PyList_Append(with.get(), param) < 0 || PyList_Append(grads.get(), grad.get()) < 0)
        throw PythonError{};
    }
    return PyTuple_Pack(2, with.get(), grads.get());
  });
}

PyMethodDef functions[] = {
    {"with_gradients", py_with_gradients, METH_O, nullptr},
    {"sgd_steps", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_sgd_steps)), METH_FASTCALL,
     nullptr},
    {"adam_steps", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_adam_steps)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
