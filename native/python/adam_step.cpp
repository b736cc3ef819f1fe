// One step of Adam on one parameter in a single sweep over its memory.
//
// The step reads four tensors and writes three; done operation by operation it goes through memory a dozen
// times, which for large parameters is all it costs (2.2x on a 1024 x 1024 parameter, one thread). The
// arithmetic is that of the operations in rushlight/optim/adam.py, in the same order. Whatever is unusual
// (other dtypes, strides, shared memory) is left to them: `adam_step` then changes nothing and returns False.
#include <cmath>

#include "../tensor/iterate.h"
#include "../tensor/parallel.h"
#include "primitive.h"

// One binary, and the wider registers where there are some. Not under ASan, which is not ready yet when the
// choice is made.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define RL_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define RL_CLONES
#endif

namespace rl {
namespace {

struct Step {
  double beta1, beta2, eps, shrink, decay, step_size, correction;
  bool maximize;
};

#define RL_ADAM_LOOP(T, NAME)                                                                            \
  RL_CLONES void NAME(int64_t n, const Step& s, T* __restrict p, const T* __restrict g, T* __restrict m, \
                      T* __restrict v, T* __restrict largest) {                                          \
    const T to_mean = T(1 - s.beta1), keep = T(s.beta2), add = T(1 - s.beta2), eps = T(s.eps);           \
    const T shrink = T(s.shrink), decay = T(s.decay), by = T(s.step_size), root = T(s.correction);       \
    const T sign = s.maximize ? T(-1) : T(1);                                                            \
    if (largest) {                                                                                       \
      for (int64_t i = 0; i < n; i++) {                                                                  \
        T x = p[i] * shrink, d = decay != 0 ? sign * g[i] + decay * x : sign * g[i];                     \
        T mean = m[i] + to_mean * (d - m[i]), square = v[i] * keep + add * d * d;                        \
        T top = largest[i] > square || largest[i] != largest[i] ? largest[i] : square;                   \
        m[i] = mean, v[i] = square, largest[i] = top;                                                    \
        p[i] = x - by * (mean / (std::sqrt(top) / root + eps));                                          \
      }                                                                                                  \
    } else {                                                                                             \
      for (int64_t i = 0; i < n; i++) {                                                                  \
        T x = p[i] * shrink, d = decay != 0 ? sign * g[i] + decay * x : sign * g[i];                     \
        T mean = m[i] + to_mean * (d - m[i]), square = v[i] * keep + add * d * d;                        \
        m[i] = mean, v[i] = square;                                                                      \
        p[i] = x - by * (mean / (std::sqrt(square) / root + eps));                                       \
      }                                                                                                  \
    }                                                                                                    \
  }
RL_ADAM_LOOP(float, adam_float)
RL_ADAM_LOOP(double, adam_double)
#undef RL_ADAM_LOOP

double number(PyObject* o) {
  double value = PyFloat_AsDouble(o);
  if (value == -1 && PyErr_Occurred()) throw PythonError{};
  return value;
}

// adam_step(param, grad, mean, square, largest or None, beta1, beta2, eps, weight_decay, decoupled, lr, step,
//           maximize): whether the step was done
PyObject* py_adam_step(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 13) fail(PyExc_TypeError, "adam_step: thirteen arguments expected");
    Tensor* t[5] = {};
    int count = args[4] == Py_None ? 4 : 5;
    for (int i = 0; i < count; i++) {
      if (!is_tensor(args[i])) fail(PyExc_TypeError, "adam_step: expected a Tensor");
      t[i] = as_tensor(args[i]);
      bool usual = (t[i]->dtype == DType::f32 || t[i]->dtype == DType::f64) && t[i]->is_contiguous() &&
                   !t[i]->is_meta() && t[i]->device().type == DeviceType::cpu &&
                   !(t[i]->flags & Tensor::INFERENCE) && t[i]->dtype == t[0]->dtype && same_sizes(t[i], t[0]);
      for (int j = 0; j < i; j++) usual = usual && t[i]->storage != t[j]->storage;
      if (!usual) Py_RETURN_FALSE;
    }
    double beta1 = number(args[5]), beta2 = number(args[6]), weight_decay = number(args[8]);
    double lr = number(args[10]), step = number(args[11]);
    bool decoupled = args[9] == Py_True;
    Step s = {beta1,
              beta2,
              number(args[7]),
              decoupled ? 1 - lr * weight_decay : 1.0,
              decoupled ? 0.0 : weight_decay,
              lr / (1 - std::pow(beta1, step)),
              std::sqrt(1 - std::pow(beta2, step)),
              args[12] == Py_True};
    {
      MaybeNoGil released(t[0]->numel);
      parallel_for(t[0]->numel, 1 << 15, [&](int64_t begin, int64_t end) {
        auto run = [&]<class T>(T, auto loop) {
          loop(end - begin, s, t[0]->data_as<T>() + begin, t[1]->data_as<T>() + begin,
               t[2]->data_as<T>() + begin, t[3]->data_as<T>() + begin,
               t[4] ? t[4]->data_as<T>() + begin : nullptr);
        };
        if (t[0]->dtype == DType::f32) run(float(), adam_float);
        else run(double(), adam_double);
      });
    }
    for (int i : {0, 2, 3, 4}) {
      if (t[i]) note_write(t[i]);
    }
    Py_RETURN_TRUE;
  });
}

PyMethodDef functions[] = {{"adam_step", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(py_adam_step)),
                            METH_FASTCALL, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
