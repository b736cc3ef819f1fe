// rushlight._C: everything native, gathered.
#include "primitive.h"
#include "tensor_type.h"

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rushlight._C",
                          "Rushlight's native core.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  using namespace rl;
  return guarded([]() -> PyObject* {
    Ref<PyObject> module = checked(PyModule_Create(&definition));
    init_types(module.get());
    init_node_type(module.get());
    init_primitives(module.get());
    init_tensor_type(module.get());
    init_functions(module.get());
    for (auto* run : ModuleInit::all()) run(module.get());
    return module.release();
  });
}
