// Freeing graphs that refer to themselves.
//
// Note [loops]
// Tensors and nodes are made without telling Python's cycle collector, and mostly freed without it: a graph
// of operations on tensors leads to older nodes only. (Tracking every one made a forward pass of a million
// nodes four times slower.) A loop needs one of these:
//   - a tensor or node refers to a Python object: a hook, an attribute, a packed value, a class that was
//     made in a function. Whoever makes such a reference calls `expect_loops`.
//   - a tensor that others hold gets a history: x.grad with a graph, a saved constant that is written. Its
//     maker calls `expect_loop` with one object of the loop, which is tracked.
// After the first such call, `show_graphs` runs at the start of every collection: what the objects to be
// looked at refer to and is an untracked tensor or node is tracked, and so on down its graph. A loop has a
// tracked object in both cases, so the collector then sees all of it, and decides. What it finds alive stays
// tracked: each object is shown once. A program that makes no such call has no callback.
//
// The collector frees a group of objects if all references to them are from within the group. So tp_traverse
// names exactly the references an object owns, and what C++ code on the stack, a running backward or another
// thread holds is counted as held from outside.
#include "collector.h"

#include <vector>

#include "../graph/node.h"
#include "primitive.h"

namespace rl {
namespace {

using Objects = std::vector<PyObject*>;  // borrowed

int track_if_native(PyObject* o, void* arg) {
  if (!PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HAVE_GC) || PyObject_GC_IsTracked(o)) return 0;
  if (!is_tensor(o) && !PyObject_TypeCheck(o, NodeType)) return 0;
  PyObject_GC_Track(o);
  static_cast<Objects*>(arg)->push_back(o);
  return 0;
}

void show_referents(PyObject* o, Objects& shown) { Py_TYPE(o)->tp_traverse(o, track_if_native, &shown); }

void show_graphs(PyObject* list) {
  Objects shown;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    show_referents(PyList_GET_ITEM(list, i), shown);
    while (!shown.empty()) {
      PyObject* o = shown.back();
      shown.pop_back();
      show_referents(o, shown);
    }
  }
}

PyObject* get_objects;  // gc.get_objects

// What a collection of this generation looks at: it and the younger ones.
void show_generations(long oldest) {
  for (long generation = 0; generation <= oldest; generation++) {
    Ref<PyObject> objects = checked(PyObject_CallFunction(get_objects, "l", generation));
    show_graphs(objects.get());
  }
}

// gc.callbacks calls it with "start" or "stop" and a dict.
PyObject* before_collection(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || !PyUnicode_Check(args[0]) || !PyDict_Check(args[1])) Py_RETURN_NONE;
    if (PyUnicode_CompareWithASCIIString(args[0], "start") != 0) Py_RETURN_NONE;
    PyObject* generation = PyDict_GetItemString(args[1], "generation");
    if (generation && PyLong_Check(generation)) show_generations(PyLong_AsLong(generation));
    Py_RETURN_NONE;
  });
}

PyMethodDef callback = {"show_graphs",
                        reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(before_collection)),
                        METH_FASTCALL, "Shows graphs that may refer to themselves to the collector."};

bool expecting = false;

}  // namespace

bool is_atom(PyObject* o, int depth) {
  if (o == Py_None || PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_CheckExact(o) ||
      PyBytes_CheckExact(o) || is_dtype(o)) {
    return true;
  }
  if (!PyTuple_Check(o) || depth == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) {
    if (!is_atom(PyTuple_GET_ITEM(o, i), depth - 1)) return false;
  }
  return true;
}

void expect_loops() {
  if (expecting) [[likely]]
    return;
  Ref<PyObject> gc = checked(PyImport_ImportModule("gc"));
  get_objects = checked(PyObject_GetAttrString(gc.get(), "get_objects")).release();
  Ref<PyObject> callbacks = checked(PyObject_GetAttrString(gc.get(), "callbacks"));
  Ref<PyObject> function = checked(PyCFunction_New(&callback, nullptr));
  if (PyList_Append(callbacks.get(), function.get()) < 0) throw PythonError{};
  expecting = true;
}

void expect_loop(PyObject* member) {
  if (!PyObject_GC_IsTracked(member)) PyObject_GC_Track(member);
  expect_loops();
}

}  // namespace rl
