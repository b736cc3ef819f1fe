// Opens OpenBLAS. Start at `open_library`.
#include "blas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace rl {
namespace {

struct Library {
  void* handle = nullptr;
  Blas routines{};
  bool complete = false;
  std::string error;
};

// The directory of the shared object this function was linked into, with a trailing slash.
std::string own_directory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_directory), &info) || !info.dli_fname) return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

template <class F>
bool find(Library& library, const char* name, F& function) {
  std::string prefixed = std::string("scipy_") + name;
  function = reinterpret_cast<F>(dlsym(library.handle, prefixed.c_str()));
  if (!function && library.error.empty()) library.error = "symbol " + prefixed + " is missing";
  return function != nullptr;
}

Library open_library() {
  Library library;
#if defined(__APPLE__)
  std::string path = own_directory() + "_lib/libscipy_openblas.dylib";
#else
  std::string path = own_directory() + "_lib/libscipy_openblas.so";
#endif
  // Lets the tests run without the library (any path that does not exist).
  if (const char* chosen = std::getenv("RUSHLIGHT_OPENBLAS")) path = chosen;
  // Local scope: NumPy and SciPy may have brought another OpenBLAS into the process.
  library.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library.handle) {
    const char* reason = dlerror();
    library.error = reason ? reason : "unknown error";
    return library;
  }
  void (*set_num_threads)(int) = nullptr;
  Blas& r = library.routines;
  library.complete = find(library, "openblas_set_num_threads", set_num_threads) &&
                     find(library, "cblas_sgemm", r.sgemm) && find(library, "cblas_dgemm", r.dgemm) &&
                     find(library, "cblas_cgemm", r.cgemm) && find(library, "cblas_zgemm", r.zgemm) &&
                     find(library, "cblas_sgemv", r.sgemv) && find(library, "cblas_dgemv", r.dgemv) &&
                     find(library, "cblas_cgemv", r.cgemv) && find(library, "cblas_zgemv", r.zgemv) &&
                     find(library, "cblas_sdot", r.sdot) && find(library, "cblas_ddot", r.ddot) &&
                     find(library, "cblas_cdotu_sub", r.cdotu) && find(library, "cblas_cdotc_sub", r.cdotc) &&
                     find(library, "cblas_zdotu_sub", r.zdotu) && find(library, "cblas_zdotc_sub", r.zdotc);
  if (!library.complete) return library;
  set_num_threads(1);
  const char* (*core)() = nullptr;
  if (find(library, "openblas_get_corename", core)) {
    std::string name = core();
    r.has_unpacked_kernels = name == "SkylakeX" || name == "Cooperlake" || name == "SapphireRapids";
  }
  return library;
}

Library& library() {
  // Never destroyed: threads may still multiply while the process exits. Concurrent first calls wait.
  static Library& opened = *new Library(open_library());
  return opened;
}

}  // namespace

const Blas* blas() {
  static const Blas* routines = library().complete ? &library().routines : nullptr;
  return routines;
}

void* blas_symbol(const char* name) {
  if (!blas()) return nullptr;
  return dlsym(library().handle, (std::string("scipy_") + name).c_str());
}

const char* blas_error() { return library().error.c_str(); }

}  // namespace rl
