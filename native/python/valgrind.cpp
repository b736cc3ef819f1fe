// Telling Callgrind when to count. A program that runs under Valgrind speaks to it by a sequence of
// instructions that do nothing on the processor; outside of Valgrind these functions do nothing either.
// rushlight/utils/benchmark/utils/valgrind_wrapper uses them around the statement that is measured.
#include "primitive.h"

namespace rl {
namespace {

#if defined(__x86_64__) && defined(__linux__)
constexpr bool SUPPORTED = true;

// Requests of Callgrind, counted from its two letters.
constexpr uint64_t BASE = uint64_t('C') << 24 | uint64_t('T') << 16;
constexpr uint64_t DUMP_STATS = BASE, TOGGLE_COLLECT = BASE + 2, START_INSTRUMENTATION = BASE + 4;

void ask(uint64_t request) {
  uint64_t words[6] = {request, 0, 0, 0, 0, 0};
  uint64_t answer = 0;
  __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                   : "=d"(answer)
                   : "a"(&words[0]), "0"(answer)
                   : "cc", "memory");
}
#else
constexpr bool SUPPORTED = false;
constexpr uint64_t DUMP_STATS = 0, TOGGLE_COLLECT = 0, START_INSTRUMENTATION = 0;
void ask(uint64_t) {}
#endif

PyObject* py_supported(PyObject*, PyObject*) { return PyBool_FromLong(SUPPORTED); }

// Valgrind runs what comes before five times as fast if it need not prepare for counting.
PyObject* py_toggle(PyObject*, PyObject*) {
  ask(START_INSTRUMENTATION);
  ask(TOGGLE_COLLECT);
  Py_RETURN_NONE;
}

PyObject* py_toggle_and_dump(PyObject*, PyObject*) {
  ask(TOGGLE_COLLECT);
  ask(DUMP_STATS);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"_valgrind_supported_platform", py_supported, METH_NOARGS, nullptr},
                           {"_valgrind_toggle", py_toggle, METH_NOARGS, nullptr},
                           {"_valgrind_toggle_and_dump_stats", py_toggle_and_dump, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace
}  // namespace rl
