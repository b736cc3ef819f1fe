// The small Python types around the tensor: dtype and device objects, Size, and reading arguments of those
// kinds.
#pragma once
#include "../tensor/scalar.h"

namespace rl {

PyObject* dtype_object(DType dtype);  // borrowed
bool is_dtype(PyObject* o);
DType dtype_from(PyObject* o);                 // throws TypeError
DType dtype_or(PyObject* o, DType otherwise);  // None gives `otherwise`

PyObject* device_object(Device device);  // new reference
Device device_from(PyObject* o);         // a device, a string, an int, None: cpu
bool is_device(PyObject* o);

// As torch shows a type in sentences: "torch.FloatTensor", "CPUBFloat16Type" where there was no such class.
std::string type_text(DType dtype);

// The C++ type of the elements, as torch's sentences name it: "short int", "c10::Half".
const char* dtype_cpp_name(DType dtype);
// The type of a Python object as torch's sentences name it: "int", "Tensor", "torch.dtype", "numpy.ndarray".
std::string type_label(PyObject* o);
bool is_long(PyObject* o);  // an int that is no bool, or one of NumPy's

PyObject* size_object(Sizes sizes);  // new reference to a rushlight.Size

// Element i of a list or tuple. Reading one may run code of the user's (__index__, __float__) that changes
// the list: so it is held, and a list that has become too short is refused.
inline Ref<PyObject> item_of(PyObject* sequence, Py_ssize_t i) {
  if (i >= PySequence_Fast_GET_SIZE(sequence)) fail(PyExc_RuntimeError, "list changed size during iteration");
  return share(PySequence_Fast_GET_ITEM(sequence, i));
}

// Reads a sequence of ints (a Size, tuple, list; of ints, 0-dim integer tensors or anything with __index__).
void read_sizes(PyObject* o, Shape& shape, const char* function, const char* name);
int64_t read_int(PyObject* o);
// A dimension in [-ndim, ndim), wrapped; torch's IndexError otherwise. A 0-dim tensor counts as 1-dim.
int wrap_dim(int64_t dim, int ndim);

// A new dict that can be referred to weakly, which hook handles do.
PyObject* new_hook_dict();

void init_types(PyObject* module);

}  // namespace rl
