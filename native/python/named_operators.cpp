// The operators of Tensor as methods: `Tensor.__add__(t, other=1)`, `super().__add__(x)`.
//
// Note [operators by name]: `a + b` goes to the slots of operators.cpp. Called by name, torch's operators are
// methods of TensorBase that take the arguments of a function, by keyword too, and return NotImplemented
// where these do not fit; others are Python functions (rushlight/_named_operators.py). Both stand in the
// dictionaries of the types without the slots knowing of it. Python would give a subclass slots that look the
// methods up, at ten times the price of a short operation; `keep_native_operators` puts Tensor's own back
// wherever the class has no method of its own.
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "functions.h"
#include "primitive.h"
#include "tensor_type.h"

namespace rl {
namespace {

#define NUMBER(slot) offsetof(PyHeapTypeObject, as_number.slot)
#define COMPARE offsetof(PyHeapTypeObject, ht_type.tp_richcompare)

void*& slot_at(PyTypeObject* type, size_t offset) {
  return *reinterpret_cast<void**>(reinterpret_cast<char*>(type) + offset);
}

struct Named {
  const char* name;
  const char* function;  // the method whose arguments it takes
  const char* asked;     // what __torch_function__ is told
  size_t slot;
  int comparison = -1;
};

// __radd__ and its like compute t + other, as torch's do.
constexpr Named BINARY[] = {
    {"__add__", "add", "add", NUMBER(nb_add)},
    {"__radd__", "add", "add", NUMBER(nb_add)},
    {"__iadd__", "add_", "add_", NUMBER(nb_inplace_add)},
    {"__sub__", "sub", "sub", NUMBER(nb_subtract)},
    {"__isub__", "sub_", "sub_", NUMBER(nb_inplace_subtract)},
    {"__mul__", "mul", "mul", NUMBER(nb_multiply)},
    {"__rmul__", "mul", "mul", NUMBER(nb_multiply)},
    {"__imul__", "mul_", "mul_", NUMBER(nb_inplace_multiply)},
    {"__truediv__", "div", "div", NUMBER(nb_true_divide)},
    {"__div__", "div", "div", NUMBER(nb_true_divide)},
    {"__idiv__", "div_", "div_", NUMBER(nb_inplace_true_divide)},
    {"__ifloordiv__", "floor_divide_", "floor_divide_", NUMBER(nb_inplace_floor_divide)},
    {"__mod__", "remainder", "remainder", NUMBER(nb_remainder)},
    {"__imod__", "remainder_", "remainder_", NUMBER(nb_inplace_remainder)},
    {"__matmul__", "matmul", "matmul", NUMBER(nb_matrix_multiply)},
    {"__and__", "bitwise_and", "__and__", NUMBER(nb_and)},
    {"__rand__", "bitwise_and", "bitwise_and", NUMBER(nb_and)},
    {"__iand__", "bitwise_and_", "__iand__", NUMBER(nb_inplace_and)},
    {"__or__", "bitwise_or", "__or__", NUMBER(nb_or)},
    {"__ror__", "bitwise_or", "bitwise_or", NUMBER(nb_or)},
    {"__ior__", "bitwise_or_", "__ior__", NUMBER(nb_inplace_or)},
    {"__xor__", "bitwise_xor", "__xor__", NUMBER(nb_xor)},
    {"__rxor__", "bitwise_xor", "bitwise_xor", NUMBER(nb_xor)},
    {"__ixor__", "bitwise_xor_", "__ixor__", NUMBER(nb_inplace_xor)},
    {"__lshift__", "bitwise_left_shift", "__lshift__", NUMBER(nb_lshift)},
    {"__ilshift__", "bitwise_left_shift_", "__ilshift__", NUMBER(nb_inplace_lshift)},
    {"__rshift__", "bitwise_right_shift", "__rshift__", NUMBER(nb_rshift)},
    {"__irshift__", "bitwise_right_shift_", "__irshift__", NUMBER(nb_inplace_rshift)},
    {"__eq__", "eq", "__eq__", COMPARE, Py_EQ},
    {"__ne__", "ne", "ne", COMPARE, Py_NE},
    {"__lt__", "lt", "lt", COMPARE, Py_LT},
    {"__le__", "le", "le", COMPARE, Py_LE},
    {"__gt__", "gt", "gt", COMPARE, Py_GT},
    {"__ge__", "ge", "ge", COMPARE, Py_GE},
};

// Those without an argument: what Python asks of a number.
constexpr Named UNARY[] = {
    {"__invert__", nullptr, nullptr, NUMBER(nb_invert)}, {"__float__", nullptr, nullptr, NUMBER(nb_float)},
    {"__int__", nullptr, nullptr, NUMBER(nb_int)},       {"__long__", nullptr, nullptr, NUMBER(nb_int)},
    {"__index__", nullptr, nullptr, NUMBER(nb_index)},
};

// The slots that Python looks methods up for, with all the names that it asks for.
struct Slot {
  size_t offset;
  std::array<const char*, 6> names;
};
constexpr Slot SLOTS[] = {
    {NUMBER(nb_add), {"__add__", "__radd__"}},
    {NUMBER(nb_subtract), {"__sub__", "__rsub__"}},
    {NUMBER(nb_multiply), {"__mul__", "__rmul__"}},
    {NUMBER(nb_true_divide), {"__truediv__", "__rtruediv__"}},
    {NUMBER(nb_floor_divide), {"__floordiv__", "__rfloordiv__"}},
    {NUMBER(nb_remainder), {"__mod__", "__rmod__"}},
    {NUMBER(nb_power), {"__pow__", "__rpow__"}},
    {NUMBER(nb_matrix_multiply), {"__matmul__", "__rmatmul__"}},
    {NUMBER(nb_and), {"__and__", "__rand__"}},
    {NUMBER(nb_or), {"__or__", "__ror__"}},
    {NUMBER(nb_xor), {"__xor__", "__rxor__"}},
    {NUMBER(nb_lshift), {"__lshift__", "__rlshift__"}},
    {NUMBER(nb_rshift), {"__rshift__", "__rrshift__"}},
    {NUMBER(nb_inplace_add), {"__iadd__"}},
    {NUMBER(nb_inplace_subtract), {"__isub__"}},
    {NUMBER(nb_inplace_multiply), {"__imul__"}},
    {NUMBER(nb_inplace_true_divide), {"__itruediv__"}},
    {NUMBER(nb_inplace_floor_divide), {"__ifloordiv__"}},
    {NUMBER(nb_inplace_remainder), {"__imod__"}},
    {NUMBER(nb_inplace_power), {"__ipow__"}},
    {NUMBER(nb_inplace_and), {"__iand__"}},
    {NUMBER(nb_inplace_or), {"__ior__"}},
    {NUMBER(nb_inplace_xor), {"__ixor__"}},
    {NUMBER(nb_inplace_lshift), {"__ilshift__"}},
    {NUMBER(nb_inplace_rshift), {"__irshift__"}},
    {NUMBER(nb_negative), {"__neg__"}},
    {NUMBER(nb_positive), {"__pos__"}},
    {NUMBER(nb_absolute), {"__abs__"}},
    {NUMBER(nb_invert), {"__invert__"}},
    {NUMBER(nb_bool), {"__bool__"}},
    {NUMBER(nb_float), {"__float__"}},
    {NUMBER(nb_int), {"__int__"}},
    {NUMBER(nb_index), {"__index__"}},
    {COMPARE, {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"}},
    {offsetof(PyHeapTypeObject, ht_type.tp_hash), {"__hash__"}},
    {offsetof(PyHeapTypeObject, as_mapping.mp_length), {"__len__"}},
    {offsetof(PyHeapTypeObject, as_sequence.sq_length), {"__len__"}},
};
constexpr size_t BINARY_COUNT = std::size(BINARY), SLOT_COUNT = std::size(SLOTS);

void* native_slots[SLOT_COUNT];  // what Tensor has there
PyObject* methods = nullptr;     // by name, the methods that do what the slots do

constexpr size_t index_of(size_t offset) {
  size_t i = 0;
  while (SLOTS[i].offset != offset) i++;
  return i;
}

PyObject* compute(const Named& op, PyObject* self, PyObject* other) {
  // Held here: an operand with one reference would be taken for a temporary (Note [reusing buffers]), and a
  // bound method may be called twice.
  Ref<PyObject> first = share(self), second = share(other);
  void* slot = native_slots[index_of(op.slot)];
  PyObject* result = op.comparison < 0 ? reinterpret_cast<binaryfunc>(slot)(self, other)
                                       : reinterpret_cast<richcmpfunc>(slot)(self, other, op.comparison);
  if (result || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

bool plain(PyObject* o) { return is_plain_tensor(o) || surely_plain(o); }

PyObject* call_by_name(const Named& op, PyObject* self, PyObject* const* args, Py_ssize_t n,
                       PyObject* kwnames) {
  if (n == 1 && !kwnames && !modes.function_mode && plain(self) && plain(args[0]))
    return compute(op, self, args[0]);
  return guarded([&]() -> PyObject* {
    Py_ssize_t count = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    try {
      bool asks = asks_protocol(self);
      for (Py_ssize_t i = 0; i < count && !asks; i++) asks = modes.torch_function && any_override(args[i]);
      if (asks) {
        bool told_eq = op.comparison == Py_EQ && !asks_protocol(self);  // torch asks about __eq__ of self
        return through_protocol(told_eq ? op.function : op.asked, self, args, n, kwnames);
      }
      bool other = count == 1 &&
                   (!kwnames || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "other") == 0);
      if (other) return checked(compute(op, self, args[0])).release();
      Ref<PyObject> function =
          checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), op.function));
      std::vector<PyObject*> all{self};
      all.insert(all.end(), args, args + count);
      return checked(PyObject_Vectorcall(function.get(), all.data(), size_t(n) + 1, kwnames)).release();
    } catch (const PythonError&) {
      forget_error(PyExc_TypeError);
      return Py_NewRef(Py_NotImplemented);
    }
  });
}

template <size_t i>
PyObject* binary_by_name(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return call_by_name(BINARY[i], self, args, n, kwnames);
}
template <size_t i>
PyObject* unary_by_name(PyObject* self, PyObject*) {
  Ref<PyObject> held = share(self);
  return reinterpret_cast<unaryfunc>(native_slots[index_of(UNARY[i].slot)])(self);
}
PyObject* truth_by_name(PyObject* self, PyObject*) {
  // As it is answered, where somebody is asked.
  if (asks_protocol(self)) return guarded([&] { return through_protocol("__bool__", self); });
  int truth = reinterpret_cast<inquiry>(native_slots[index_of(NUMBER(nb_bool))])(self);
  return truth < 0 ? nullptr : PyBool_FromLong(truth);
}

template <size_t... i>
void add_binary(PyMethodDef* table, std::index_sequence<i...>) {
  ((table[i] = {BINARY[i].name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(binary_by_name<i>)),
                METH_FASTCALL | METH_KEYWORDS, nullptr}),
   ...);
}
template <size_t... i>
void add_unary(PyMethodDef* table, std::index_sequence<i...>) {
  ((table[i] = {UNARY[i].name, unary_by_name<i>, METH_NOARGS, nullptr}), ...);
}

constexpr size_t METHOD_COUNT = BINARY_COUNT + std::size(UNARY) + 2;
PyMethodDef method_table[METHOD_COUNT];

void put(PyTypeObject* type, const char* name, PyObject* method) {
  if (PyDict_SetItemString(type->tp_dict, name, method) < 0 ||
      PyDict_SetItemString(methods, name, method) < 0)
    throw PythonError{};
}

// Whatever Python made of the slots goes out of Tensor's dictionary: the methods stand in its base's.
void put_in_base(const char* name, PyObject* method) {
  if (PyDict_GetItemString(TensorType->tp_dict, name) && PyDict_DelItemString(TensorType->tp_dict, name) < 0)
    throw PythonError{};
  put(TensorBaseType, name, method);
}

// _C.put_operator(name, function): a method of Tensor that does what the slot of that name does, which stays.
PyObject* put_operator(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    const char* name = n == 2 && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8(args[0]) : nullptr;
    if (!name) fail(PyExc_TypeError, "expected a name and a function");
    put(TensorType, name, args[1]);
    PyType_Modified(TensorType);
    Py_RETURN_NONE;
  });
}

// Returns how many slots were others before.
PyObject* keep_native_operators(PyObject*, PyObject* cls) {
  return guarded([&]() -> PyObject* {
    if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), TensorType))
      fail(PyExc_TypeError, "expected Tensor or a subclass");
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    long changed = 0;
    for (size_t i = 0; i < SLOT_COUNT; i++) {
      bool inherited = true;
      for (const char* name : SLOTS[i].names) {
        if (!name) break;
        PyObject* known = PyDict_GetItemString(methods, name);
        Ref<PyObject> key = checked(PyUnicode_InternFromString(name));
        inherited = inherited && known && _PyType_Lookup(type, key.get()) == known;
      }
      if (inherited)
        changed += std::exchange(slot_at(type, SLOTS[i].offset), native_slots[i]) != native_slots[i];
    }
    return PyLong_FromLong(changed);
  });
}

// _C.subtract(a, b), _C.power(a, b): the operators, whatever methods the classes of the operands have. A
// method that calls the function of its name would else be called again.
template <size_t slot>
PyObject* operate(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 2 || (!is_tensor(args[0]) && !is_tensor(args[1])))
      fail(PyExc_TypeError, "expected two operands");
    void* found = native_slots[index_of(slot)];
    Ref<PyObject> result =
        checked(slot == NUMBER(nb_power) ? reinterpret_cast<ternaryfunc>(found)(args[0], args[1], Py_None)
                                         : reinterpret_cast<binaryfunc>(found)(args[0], args[1]));
    if (result.get() == Py_NotImplemented)
      failf(PyExc_TypeError, "unsupported operand type(s): '%.100s' and '%.100s'", Py_TYPE(args[0])->tp_name,
            Py_TYPE(args[1])->tp_name);
    return result.release();
  });
}

PyMethodDef functions[] = {
    {"subtract", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(operate<NUMBER(nb_subtract)>)),
     METH_FASTCALL, nullptr},
    {"power", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(operate<NUMBER(nb_power)>)),
     METH_FASTCALL, nullptr},
    {"put_operator", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(put_operator)), METH_FASTCALL,
     nullptr},
    {"keep_native_operators", keep_native_operators, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

ModuleInit init([](PyObject* module) { PyModule_AddFunctions(module, functions); });

}  // namespace

void name_operators() {
  methods = checked(PyDict_New()).release();
  for (size_t i = 0; i < SLOT_COUNT; i++) native_slots[i] = slot_at(TensorType, SLOTS[i].offset);
  add_binary(method_table, std::make_index_sequence<BINARY_COUNT>());
  add_unary(method_table + BINARY_COUNT, std::make_index_sequence<std::size(UNARY)>());
  method_table[METHOD_COUNT - 2] = {"__bool__", truth_by_name, METH_NOARGS, nullptr};
  method_table[METHOD_COUNT - 1] = {"__nonzero__", truth_by_name, METH_NOARGS, nullptr};
  for (PyMethodDef& method : method_table)
    put_in_base(method.ml_name, checked(PyDescr_NewMethod(TensorBaseType, &method)).get());
  // torch's are slots as well, of its base.
  for (const char* name : {"__getitem__", "__setitem__", "__delitem__"}) {
    PyObject* found = PyDict_GetItemString(TensorType->tp_dict, name);
    if (!found || !Py_IS_TYPE(found, &PyWrapperDescr_Type)) fail(PyExc_SystemError, "an operator is missing");
    auto* wrapper = reinterpret_cast<PyWrapperDescrObject*>(found);
    put_in_base(name, checked(PyDescr_NewWrapper(TensorBaseType, wrapper->d_base, wrapper->d_wrapped)).get());
  }
  // No other class may have these methods: they take their first argument for a tensor.
  TensorBaseType->tp_flags &= ~Py_TPFLAGS_BASETYPE;
  PyType_Modified(TensorBaseType);
}

}  // namespace rl
