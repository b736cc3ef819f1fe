#include "iterate.h"

#include "parallel.h"

namespace rl {
namespace {

// A collapsed iteration: dims[0] is the innermost.
struct Plan {
  int ndim = 0;
  int64_t sizes[MAX_DIMS];
  int64_t strides[MAX_OPERANDS][MAX_DIMS];
};

// True if dimension a should be inside dimension b.
bool inner(const Operands& o, int a, int b) {
  for (int k = 0; k < o.count; k++) {
    int64_t sa = o.strides[k][a], sb = o.strides[k][b];
    if (sa == 0 || sb == 0 || sa == sb) continue;
    return sa < sb;
  }
  return a > b;
}

void make_plan(Plan& plan, const Operands& o, Sizes sizes) {
  int order[MAX_DIMS], n = 0;
  for (int d = int(sizes.size()) - 1; d >= 0; d--) {
    if (sizes[d] == 1) continue;
    int at = n++;
    for (; at > 0 && inner(o, d, order[at - 1]); at--) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int i = 0; i < n; i++) {
    int d = order[i];
    bool merges = plan.ndim > 0;
    for (int k = 0; merges && k < o.count; k++) {
      int64_t* strides = plan.strides[k];
      merges = o.strides[k][d] == strides[plan.ndim - 1] * plan.sizes[plan.ndim - 1];
    }
    if (merges) {
      plan.sizes[plan.ndim - 1] *= sizes[d];
      continue;
    }
    plan.sizes[plan.ndim] = sizes[d];
    for (int k = 0; k < o.count; k++) plan.strides[k][plan.ndim] = o.strides[k][d];
    plan.ndim++;
  }
  if (plan.ndim == 0) {
    plan.ndim = 1;
    plan.sizes[0] = 1;
    for (int k = 0; k < o.count; k++) plan.strides[k][0] = 0;
  }
}

// Runs elements [begin, end) of the plan, counted innermost first.
void run_range(Loop loop, const Plan& plan, const Operands& o, int64_t begin, int64_t end,
               const void* params) {
  int64_t index[MAX_DIMS], steps[MAX_OPERANDS], rest = begin;
  char* data[MAX_OPERANDS];
  for (int k = 0; k < o.count; k++) {
    data[k] = o.data[k];
    steps[k] = plan.strides[k][0];
  }
  for (int d = 0; d < plan.ndim; d++) {
    index[d] = rest % plan.sizes[d];
    rest /= plan.sizes[d];
    for (int k = 0; k < o.count; k++) data[k] += index[d] * plan.strides[k][d];
  }
  while (begin < end) {
    int64_t n = std::min(plan.sizes[0] - index[0], end - begin);
    loop(data, steps, n, params);
    begin += n;
    if (begin >= end) return;
    for (int k = 0; k < o.count; k++) data[k] -= index[0] * steps[k];
    index[0] = 0;
    for (int d = 1; d < plan.ndim; d++) {
      for (int k = 0; k < o.count; k++) data[k] += plan.strides[k][d];
      if (++index[d] < plan.sizes[d]) break;
      for (int k = 0; k < o.count; k++) data[k] -= plan.sizes[d] * plan.strides[k][d];
      index[d] = 0;
    }
  }
}

}  // namespace

void run_elementwise(Loop loop, Operands& o, Sizes sizes, const void* params) {
  if (o.contiguous) {
    int64_t n = 1, steps[MAX_OPERANDS];
    for (int64_t s : sizes) n *= s;
    if (n == 0) return;
    for (int k = 0; k < o.count; k++) steps[k] = o.tensors[k] ? o.itemsize[k] : 0;
    if (n <= GRAIN) return loop(o.data, steps, n, params);
    MaybeNoGil released(n);
    parallel_for(n, GRAIN, [&](int64_t begin, int64_t end) {
      char* data[MAX_OPERANDS];
      for (int k = 0; k < o.count; k++) data[k] = o.data[k] + begin * steps[k];
      loop(data, steps, end - begin, params);
    });
    return;
  }
  for (int64_t s : sizes) {
    if (s == 0) return;
  }
  for (int k = 0; k < o.count; k++) {
    if (!o.tensors[k]) {
      std::fill_n(o.strides[k], sizes.size(), 0);
      continue;
    }
    broadcast_strides(o.tensors[k], sizes, o.strides[k]);
    for (size_t d = 0; d < sizes.size(); d++) o.strides[k][d] *= o.itemsize[k];
  }
  Plan plan;
  make_plan(plan, o, sizes);
  int64_t n = 1;
  for (int d = 0; d < plan.ndim; d++) n *= plan.sizes[d];
  if (n <= GRAIN) return run_range(loop, plan, o, 0, n, params);
  MaybeNoGil released(n);
  parallel_for(n, GRAIN, [&](int64_t begin, int64_t end) { run_range(loop, plan, o, begin, end, params); });
}

}  // namespace rl
