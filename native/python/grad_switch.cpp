// GradSwitch: what `with no_grad():` and `with enable_grad():` do (rushlight/autograd/grad_mode.py), which
// training steps enter so often that the Python functions of a context manager were most of its price. The
// class attribute `recording` says what is switched to; the attribute `prev` what it is switched back to, an
// ordinary one: such objects are copied and pickled.
#include "forwards.h"

namespace rl {
namespace {

PyObject *recording_name, *prev_name;

// Given a function, it is decorated at once: `@no_grad` as well as `@no_grad()`.
PyObject* switch_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* function = Py_None;
  if (PyTuple_GET_SIZE(args) || kwargs) {
    static const char* names[] = {"function", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:__new__", const_cast<char**>(names), &function))
      return nullptr;
  }
  if (function != Py_None) {
    Ref<PyObject> made(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type)));
    return made ? PyObject_CallOneArg(made.get(), function) : nullptr;
  }
  return type->tp_alloc(type, 0);
}

// Only functions and nothing at all are taken, also by no_grad(None).
int switch_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  Py_ssize_t given = PyTuple_GET_SIZE(args) + (kwargs ? PyDict_GET_SIZE(kwargs) : 0);
  if (!given) return 0;
  Ref<PyObject> takes(PyObject_GetAttrString(self, "takes_none"));
  if (!takes) return -1;
  if (takes.get() == Py_True) return 0;
  PyErr_Format(PyExc_TypeError, "%s.__init__() takes 1 positional argument but %zd were given",
               Py_TYPE(self)->tp_name, given + 1);
  return -1;
}

PyObject* switch_enter(PyObject* self, PyObject*) {
  Ref<PyObject> recording(PyObject_GetAttr(self, recording_name));
  Ref<PyObject> before(recording ? switch_grad(recording.get()) : nullptr);
  if (!before || PyObject_SetAttr(self, prev_name, before.get()) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* switch_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  Ref<PyObject> before(PyObject_GetAttr(self, prev_name));
  Ref<PyObject> done(before ? switch_grad(before.get()) : nullptr);
  return done ? Py_NewRef(Py_None) : nullptr;
}

PyMethodDef methods[] = {
    {"__enter__", switch_enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(switch_exit)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(switch_new)},
                       {Py_tp_init, reinterpret_cast<void*>(switch_init)},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("GradSwitch()\n--\n\n")},
                       {0, nullptr}};
PyType_Spec spec = {"rushlight._C.GradSwitch", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                    slots};

ModuleInit init([](PyObject* module) {
  recording_name = PyUnicode_InternFromString("recording");
  prev_name = PyUnicode_InternFromString("prev");
  Ref<PyObject> type = checked(PyType_FromSpec(&spec));
  PyModule_AddObjectRef(module, "GradSwitch", type.get());
});

}  // namespace
}  // namespace rl
