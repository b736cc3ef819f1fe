// Samples of the gamma distribution and their derivative by the shape parameter.
//
// `standard_gamma` draws as torch does: Marsaglia and Tsang's rejection from a normal, in double. A sample x
// at a fixed quantile moves with the shape a by dx/da = -(dP/da) / p, where P is the distribution function
// and p the density (implicit reparametrisation). `standard_gamma_grad` sums the series of P term by term
// with its derivative by a; start at `implicit_derivative`.
#include <cfloat>
#include <cmath>
#include <mutex>

#include "generator_type.h"
#include "primitive.h"

namespace rl {
namespace {

double draw_gamma(Generator& g, double alpha) {
  double scale = 1;
  if (alpha == 0) return 0;
  if (alpha < 1) {  // a gamma of shape a is one of shape a + 1 times a power of a uniform
    scale *= std::pow(1 - g.uniform(), 1 / alpha);
    alpha += 1;
  }
  double d = alpha - double(1.0f / 3), c = 1 / std::sqrt(9 * d);
  while (true) {
    double x, y;
    do {
      x = g.normal();
      y = 1 + c * x;
    } while (y <= 0);
    double v = y * y * y, u = 1 - g.uniform(), xx = x * x;
    if (u < 1 - 0.0331 * xx * xx) return scale * d * v;
    if (std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

double digamma(double x) {
  double result = 0;
  for (; x < 10; x += 1) result -= 1 / x;
  double y = 1 / (x * x);
  double series = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132)))));
  return result + std::log(x) - 0.5 / x - series;
}

// With t_n = x^n / ((a+1) ... (a+n)):  P = x^a e^-x / Gamma(a+1) * sum t_n, and the derivative of a term by a
// is the term times log x - psi(a+n+1). The density is x^(a-1) e^-x / Gamma(a), so the common factor cancels.
double implicit_derivative(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return NAN;
  if (x == 0) return 0;
  // The distribution tends to a normal: x = a + sqrt(a) z + (z^2 - 1) / 3 + ... at a fixed z.
  if (a > 1e5) {
    double z = (x - a) / std::sqrt(a);
    return 1 + z / (2 * std::sqrt(a)) - (z * z * z - 7 * z) / (72 * a * std::sqrt(a));
  }
  double term = 1, psi = digamma(a + 1), log_x = std::log(x), sum = 0;
  for (int n = 0; n < 2000000; n++) {
    double add = term * (log_x - psi);
    sum += add;
    if (n > x - a && term * (std::fabs(log_x - psi) + 1) < DBL_EPSILON * std::fabs(sum) + DBL_MIN) break;
    psi += 1 / (a + n + 1);
    term *= x / (a + n + 1);
  }
  return -sum * x / a;
}

void check(Tensor* t, const char* name) {
  if (t->dtype != DType::f32 && t->dtype != DType::f64 && t->dtype != DType::f16 && t->dtype != DType::bf16) {
    failf(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", name, dtype_class_name(t->dtype));
  }
}

Tensor* input(PyObject* o) {
  if (!is_tensor(o)) failf(PyExc_TypeError, "expected a Tensor, got %s", Py_TYPE(o)->tp_name);
  return as_tensor(o);
}

PyObject* standard_gamma_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor* alpha = input(args[0]);
  Generator& g = generator_argument(args[1], "_standard_gamma");
  check(alpha, "gamma_cpu");
  TensorRef result = new_tensor(alpha->sizes(), alpha->dtype, alpha->device());
  if (result->is_meta()) return result.release_object();
  TensorRef values = cast(contiguous(alpha).get(), DType::f64);
  TensorRef samples = new_tensor(alpha->sizes(), DType::f64);
  double tiny = alpha->dtype == DType::f64 ? DBL_MIN : alpha->dtype == DType::f16 ? 6.103515625e-05 : FLT_MIN;
  const double* from = values->data_as<double>();
  double* to = samples->data_as<double>();
  for (int64_t i = 0; i < values->numel; i++) {
    // A NaN would be rejected for ever.
    if (!(from[i] >= 0)) fail(PyExc_RuntimeError, "the shape of a gamma distribution must not be negative");
  }
  {
    std::lock_guard lock(g.mutex);
    for (int64_t i = 0; i < values->numel; i++) to[i] = std::max(tiny, draw_gamma(g, from[i]));
  }
  copy_into(result.get(), samples.get());
  return result.release_object();
}

PyObject* standard_gamma_grad_forward(const Primitive&, PyObject* const* args, Tensor*) {
  Tensor *alpha = input(args[0]), *sample = input(args[1]);
  check(alpha, "_standard_gamma_grad_cpu");
  if (!same_sizes(alpha, sample)) fail(PyExc_RuntimeError, "standard_gamma_grad: the sizes differ");
  TensorRef result = new_tensor(alpha->sizes(), alpha->dtype, alpha->device());
  if (result->is_meta()) return result.release_object();
  TensorRef a = cast(contiguous(alpha).get(), DType::f64), x = cast(contiguous(sample).get(), DType::f64);
  TensorRef values = new_tensor(alpha->sizes(), DType::f64);
  for (int64_t i = 0; i < a->numel; i++) {
    values->data_as<double>()[i] = implicit_derivative(a->data_as<double>()[i], x->data_as<double>()[i]);
  }
  copy_into(result.get(), values.get());
  return result.release_object();
}

ModuleInit init([](PyObject*) {
  define("standard_gamma(alpha; generator)", standard_gamma_forward);
  define("_standard_gamma_grad(alpha, sample)", standard_gamma_grad_forward);
});

}  // namespace
}  // namespace rl
