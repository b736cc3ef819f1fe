// Walking a tree of modules: what `for p in net.parameters()` costs.
//
// The generators of rushlight/nn/module.py nest as deep as the modules do, and every parameter is handed up
// through all of them. `walk_modules` and `walk_members` yield the same one after the other, and as late: a
// program may replace modules while it walks. A module whose class has a `named_modules` of its own is asked
// by that.
#include <vector>

#include "primitive.h"

namespace rl {
namespace {

PyObject *plain_walk, *walk_name, *modules_name, *items_name;
PyTypeObject *ModulesType, *MembersType;

// What a table of a module holds, as `table.items()` goes through it.
struct Items {
  Ref<PyObject> table, iterator;  // the second if it is no plain dict
  Py_ssize_t at = 0, size = 0;

  explicit operator bool() const { return bool(table); }
};

struct Frame {
  Ref<PyObject> module, prefix;
  Items items;  // none before they are asked for
};

struct Modules {
  PyObject_HEAD Frame root;  // not entered yet
  Ref<PyObject> memo, delegate;
  bool once, busy;
  std::vector<Frame> frames;
};

struct Members {
  PyObject_HEAD Ref<PyObject> modules, table, seen, prefix;
  Items items;
  bool once, names, busy;
};

struct Pair {
  Ref<PyObject> name, value;
  explicit operator bool() const { return bool(value); }
};

// Whoever is called in walking does not walk on.
class Walking {
 public:
  explicit Walking(bool& busy) : busy_(busy) {
    if (busy) fail(PyExc_ValueError, "generator already executing");
    busy = true;
  }
  ~Walking() { busy_ = false; }
  Walking(const Walking&) = delete;

 private:
  bool& busy_;
};

template <class T>
T* as(PyObject* self) {
  return reinterpret_cast<T*>(self);
}

Items items_of(PyObject* module, PyObject* table_name) {
  PyObject** state = _PyObject_GetDictPtr(module);
  PyObject* plain = state && *state ? PyDict_GetItemWithError(*state, table_name) : nullptr;
  if (PyErr_Occurred()) throw PythonError{};
  Items items;
  items.table = plain ? share(plain) : checked(PyObject_GetAttr(module, table_name));
  if (PyDict_CheckExact(items.table.get())) {
    items.size = PyDict_GET_SIZE(items.table.get());
    return items;
  }
  Ref<PyObject> view = checked(PyObject_CallMethodNoArgs(items.table.get(), items_name));
  items.iterator = checked(PyObject_GetIter(view.get()));
  return items;
}

Ref<PyObject> joined(PyObject* prefix, PyObject* name) {
  int given = PyObject_IsTrue(prefix);
  if (given < 0) throw PythonError{};
  return given ? checked(PyUnicode_FromFormat("%S.%S", prefix, name)) : share(name);
}

// The next of an iterator; empty at its end.
Ref<PyObject> next_of(PyObject* iterator) {
  Ref<PyObject> item(PyIter_Next(iterator));
  if (!item && PyErr_Occurred()) throw PythonError{};
  return item;
}

Pair pair_of(PyObject* item) {
  if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 2)
    fail(PyExc_TypeError, "pairs of a name and what it names expected");
  return {share(PyTuple_GET_ITEM(item, 0)), share(PyTuple_GET_ITEM(item, 1))};
}

// The next name and what it names; empty at the end.
Pair next_of(Items& items) {
  if (items.iterator) {
    Ref<PyObject> item = next_of(items.iterator.get());
    return item ? pair_of(item.get()) : Pair{};
  }
  if (PyDict_GET_SIZE(items.table.get()) != items.size) {
    items.size = -1;  // for good, as with Python's
    fail(PyExc_RuntimeError, "dictionary changed size during iteration");
  }
  PyObject *name, *value;
  if (!PyDict_Next(items.table.get(), &items.at, &name, &value)) return {};
  return {share(name), share(value)};
}

// Whether its `named_modules` is Module's.
bool walks_plainly(PyObject* module) {
  if (_PyType_Lookup(Py_TYPE(module), walk_name) != plain_walk) return false;
  PyObject** state = _PyObject_GetDictPtr(module);
  bool own = state && *state && PyDict_GetItemWithError(*state, walk_name);
  if (PyErr_Occurred()) throw PythonError{};
  return !own;
}

// The module under its dotted name if it was not seen; its submodules come next.
Pair enter(Modules* walk, Ref<PyObject> module, Ref<PyObject> prefix) {
  int known = PySequence_Contains(walk->memo.get(), module.get());
  if (known < 0) throw PythonError{};
  if (known) return {};
  if (walk->once) {
    if (PySet_CheckExact(walk->memo.get())) {
      if (PySet_Add(walk->memo.get(), module.get()) < 0) throw PythonError{};
    } else {
      checked(PyObject_CallMethod(walk->memo.get(), "add", "O", module.get()));
    }
  }
  Pair pair{prefix, module};
  walk->frames.push_back({std::move(module), std::move(prefix), {}});
  return pair;
}

Pair next_of(Modules* walk) {
  Walking walking(walk->busy);
  if (walk->root.module) {
    Frame root = std::move(walk->root);
    walk->root = {};
    if (Pair found = enter(walk, std::move(root.module), std::move(root.prefix))) return found;
  }
  while (true) {
    if (walk->delegate) {
      if (Ref<PyObject> found = next_of(walk->delegate.get())) return pair_of(found.get());
      walk->delegate = {};
    }
    if (walk->frames.empty()) return {};
    Frame& frame = walk->frames.back();
    if (!frame.items) frame.items = items_of(frame.module.get(), modules_name);
    Pair item = next_of(frame.items);
    if (!item) {
      walk->frames.pop_back();
      continue;
    }
    PyObject* module = item.value.get();
    if (module == Py_None) continue;
    Ref<PyObject> prefix = joined(frame.prefix.get(), item.name.get());
    if (walks_plainly(module)) {
      if (Pair found = enter(walk, std::move(item.value), std::move(prefix))) return found;
      continue;
    }
    PyObject* given[] = {module, walk->memo.get(), prefix.get(), walk->once ? Py_True : Py_False};
    Ref<PyObject> others = checked(PyObject_VectorcallMethod(walk_name, given, 4, nullptr));
    walk->delegate = checked(PyObject_GetIter(others.get()));
  }
}

PyObject* next_module(PyObject* self) {
  return guarded([&]() -> PyObject* {
    Pair found = next_of(as<Modules>(self));
    return found ? PyTuple_Pack(2, found.name.get(), found.value.get()) : nullptr;
  });
}

Pair next_of_modules(PyObject* modules) {
  if (Py_TYPE(modules) == ModulesType) return next_of(as<Modules>(modules));
  Ref<PyObject> item = next_of(modules);
  return item ? pair_of(item.get()) : Pair{};
}

PyObject* next_member(PyObject* self) {
  return guarded([&]() -> PyObject* {
    auto* walk = as<Members>(self);
    Walking walking(walk->busy);
    while (true) {
      if (!walk->items) {
        Pair module = next_of_modules(walk->modules.get());
        if (!module) return nullptr;
        walk->items = items_of(module.value.get(), walk->table.get());
        walk->prefix = std::move(module.name);
      }
      Pair item = next_of(walk->items);
      if (!item) {
        walk->items = {};
        continue;
      }
      PyObject* member = item.value.get();
      if (member == Py_None) continue;
      int known = PySet_Contains(walk->seen.get(), member);
      if (known < 0 || (!known && walk->once && PySet_Add(walk->seen.get(), member) < 0)) throw PythonError{};
      if (known) continue;
      if (!walk->names) return item.value.release();
      Ref<PyObject> full = joined(walk->prefix.get(), item.name.get());
      return PyTuple_Pack(2, full.get(), member);
    }
  });
}

template <class T>
T* new_walk(PyTypeObject* type) {
  PyObject* self = checked(type->tp_alloc(type, 0)).release();
  T* walk = as<T>(self);
  PyObject head = *self;
  new (walk) T();
  *self = head;
  return walk;
}

// walk_modules(module, memo or None, prefix, once): pairs of a dotted name and a module.
PyObject* py_walk_modules(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4) fail(PyExc_TypeError, "walk_modules(module, memo, prefix, once) expected");
    Ref<PyObject> memo = args[1] == Py_None ? checked(PySet_New(nullptr)) : share(args[1]);
    bool once = is_true(args[3]);
    auto* walk = new_walk<Modules>(ModulesType);
    walk->root = {share(args[0]), share(args[2]), {}};
    walk->memo = std::move(memo);
    walk->once = once;
    return reinterpret_cast<PyObject*>(walk);
  });
}

// walk_members(modules, table, once, names): what the modules of such pairs have in a table of that name,
// with dotted names or without.
PyObject* py_walk_members(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4) fail(PyExc_TypeError, "walk_members(modules, table, once, names) expected");
    Ref<PyObject> modules = checked(PyObject_GetIter(args[0])), seen = checked(PySet_New(nullptr));
    bool once = is_true(args[2]), names = is_true(args[3]);
    auto* walk = new_walk<Members>(MembersType);
    walk->modules = std::move(modules);
    walk->seen = std::move(seen);
    walk->table = share(args[1]);
    walk->once = once;
    walk->names = names;
    return reinterpret_cast<PyObject*>(walk);
  });
}

// call it once, with Module.named_modules
PyObject* py_set_plain_walk(PyObject*, PyObject* function) {
  Py_XSETREF(plain_walk, Py_NewRef(function));
  Py_RETURN_NONE;
}

// has_methods_of(object, cls, names ...): whether its methods of these names are those of the class.
PyObject* py_has_methods(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n < 2 || !PyType_Check(args[1])) fail(PyExc_TypeError, "has_methods_of(object, cls, names) expected");
    PyObject** state = _PyObject_GetDictPtr(args[0]);
    for (Py_ssize_t i = 2; i < n; i++) {
      PyObject* method = _PyType_Lookup(Py_TYPE(args[0]), args[i]);
      if (!method || method != _PyType_Lookup(reinterpret_cast<PyTypeObject*>(args[1]), args[i]))
        Py_RETURN_FALSE;
      if (state && *state && PyDict_GetItemWithError(*state, args[i])) Py_RETURN_FALSE;
      if (PyErr_Occurred()) return nullptr;
    }
    Py_RETURN_TRUE;
  });
}

template <class F>
int visit_all(Modules* walk, F&& f) {
  int stopped = 0;
  auto one = [&](Ref<PyObject>& o) { stopped = stopped || !o ? stopped : f(o); };
  auto frame = [&](Frame& each) {
    one(each.module), one(each.prefix), one(each.items.table), one(each.items.iterator);
  };
  frame(walk->root), one(walk->memo), one(walk->delegate);
  for (Frame& each : walk->frames) frame(each);
  return stopped;
}
template <class F>
int visit_all(Members* walk, F&& f) {
  int stopped = 0;
  for (auto* o :
       {&walk->modules, &walk->table, &walk->seen, &walk->prefix, &walk->items.table, &walk->items.iterator})
    if (*o && !stopped) stopped = f(*o);
  return stopped;
}

template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return visit_all(as<T>(self), [&](Ref<PyObject>& o) { return visit(o.get(), arg); });
}
int clear_modules(PyObject* self) {
  auto* walk = as<Modules>(self);
  Frame root = std::move(walk->root);
  std::vector<Frame> frames = std::move(walk->frames);
  walk->root = {};
  walk->frames.clear();
  Ref<PyObject> delegate = std::move(walk->delegate);
  return 0;
}
int clear_members(PyObject* self) {
  auto* walk = as<Members>(self);
  Items items = std::move(walk->items);
  walk->items = {};
  return 0;
}
template <class T>
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  T* walk = as<T>(self);
  PyObject head = *self;
  walk->~T();
  *self = head;
  type->tp_free(self);
  Py_DECREF(type);
}

template <class T>
PyTypeObject* make_type(const char* name, iternextfunc next, inquiry clear) {
  PyType_Slot slots[] = {{Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                         {Py_tp_iternext, reinterpret_cast<void*>(next)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(dealloc<T>)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse<T>)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear)},
                         {0, nullptr}};
  PyType_Spec spec = {name, sizeof(T), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
}

#define FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f)), METH_FASTCALL
PyMethodDef functions[] = {{"walk_modules", FAST(py_walk_modules), nullptr},
                           {"walk_members", FAST(py_walk_members), nullptr},
                           {"has_methods_of", FAST(py_has_methods), nullptr},
                           {"set_plain_walk", py_set_plain_walk, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) {
  walk_name = PyUnicode_InternFromString("named_modules");
  modules_name = PyUnicode_InternFromString("_modules");
  items_name = PyUnicode_InternFromString("items");
  ModulesType = make_type<Modules>("rushlight._C.ModuleWalk", next_module, clear_modules);
  MembersType = make_type<Members>("rushlight._C.MemberWalk", next_member, clear_members);
  PyModule_AddFunctions(module, functions);
});

}  // namespace
}  // namespace rl
