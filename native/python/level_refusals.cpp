// Writes and random numbers that are refused where functions are transformed, in torch's words.
#include <algorithm>
#include <string>
#include <string_view>

#include "levels.h"

namespace rl {

namespace {

// What torch calls the operation; None if it is but a part of one that writes nothing.
Ref<PyObject> captured_write(const Primitive& op, PyObject* const* args) {
  Ref<PyObject> module = checked(PyImport_ImportModule("rushlight.func._named"));
  Ref<PyObject> given = checked(PyTuple_New(Py_ssize_t(op.args.size())));
  for (size_t i = 0; i < op.args.size(); i++)
    PyTuple_SET_ITEM(given.get(), Py_ssize_t(i), Py_NewRef(args[i]));
  return checked(PyObject_CallMethod(module.get(), "captured_write", "OO",
                                     const_cast<Primitive&>(op).object(), given.get()));
}

// The sizes of an operand as torch broadcasts them in a batch.
Shape sizes_in_batch(const Tensor* self, PyObject* other, int64_t batch) {
  Shape sizes, made;
  sizes.assign(self->sizes());
  if (is_tensor(other)) broadcast_into(sizes, as_tensor(other)->sizes());
  made.append(batch);
  for (int64_t size : Sizes(sizes)) made.append(size);
  return made;
}

}  // namespace

bool is_part_of_operation(const Primitive& op, PyObject* const* args) {
  return captured_write(op, args).get() == Py_None;
}

void refuse_batch_write(const Primitive& op, PyObject* const* args, int64_t batch, int64_t depth) {
  std::string name = op.name;
  if (name == "add" || name == "add_alpha") {  // which torch looks at otherwise
    std::string shape = sizes_text(sizes_in_batch(as_tensor(args[0]), args[1], batch));
    failf(PyExc_RuntimeError,
          "output with shape %s doesn't match the broadcast shape %s. It is the same tensor for all examples "
          "of a vmap, so that what differs among them cannot be written into it. Please use out-of-place "
          "operators instead.",
          sizes_text(as_tensor(args[0])->sizes()).c_str(), shape.c_str());
  }
  if (name == "scatter_value") name = "scatter";
  if (name == "maximum" || name == "minimum" || name.starts_with("at_")) name = "clamp";
  if (name == "lerp_scalar") name = "lerp";
  auto among = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::string place = "in a vmap";
  if (among({"fill", "index_put", "scatter_add", "scatter_reduce", "index_add", "index_fill"})) {
    name += '_';
  } else if (among({"put",   "index_copy", "index_reduce", "scatter", "masked_scatter",
                    "addmm", "addmv",      "addr",         "addbmm",  "baddbmm",
                    "pow",   "addcmul",    "addcdiv",      "lerp",    "clamp",
                    "eq",    "ne",         "lt",           "le",      "gt",
                    "ge",    "fmod",       "hypot"})) {
    // Of which torch has no rule.
    name = "aten::" + name + '_';
    place = "at level " + std::to_string(depth);
  } else {
    name = "inplace arithmetic";
  }
  failf(PyExc_RuntimeError,
        "vmap: %s(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
        "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
        "being vmapped over %s. Please try to use out-of-place operators instead of %s. If said operator is "
        "being called inside the PyTorch framework, please file a bug report instead.",
        name.c_str(), place.c_str(), name.c_str());
}

void refuse_captured_write(const Primitive& op, PyObject* const* args) {
  Ref<PyObject> name = captured_write(op, args);
  const char* shown = name.get() == Py_None ? op.name.c_str() : PyUnicode_AsUTF8(name.get());
  if (!shown) throw PythonError{};
  failf(PyExc_RuntimeError,
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
        "operation (aten::%s) that would mutate a captured Tensor. This is not supported; please rewrite the "
        "function being transformed to explicitly accept the mutated Tensor(s) as inputs.",
        shown);
}

void check_randomness(const Primitive& op, std::string_view randomness) {
  if (randomness.empty() && op.name != "binomial") {  // which torch draws for the batch at once
    fail(PyExc_RuntimeError,
         "vmap: We do not yet support calling random operations inside of vmap. Please perform random "
         "operations outside of vmap as a workaround");
  }
  if (randomness == "error") {
    fail(PyExc_RuntimeError,
         "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
         "'different' randomness flags on vmap or perform the randomness operation out of vmap");
  }
  if (randomness == "different") {
    fail(PyExc_RuntimeError,
         "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like "
         "same randomness. If this is necessary for your usage, please file an issue with functorch.");
  }
}

}  // namespace rl
