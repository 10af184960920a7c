#include "core/system/shared_library.h"

#include <dlfcn.h>

namespace stoker {

SharedLibrary::SharedLibrary(std::span<const char* const> files, const char* purpose,
                             const char* packages)
    : purpose_(purpose), packages_(packages) {
  for (const char* const file : files) {
    library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    const char* const reason = dlerror();
    if (why_.empty() && reason != nullptr) why_ = reason;
  }
  failed_ = true;
}

void* SharedLibrary::Address(const char* name) {
  if (failed_) return nullptr;
  void* const found = dlsym(library_, name);
  if (found == nullptr) {
    failed_ = true;
    why_ = std::string("it has no function ") + name;
  }
  return found;
}

Status SharedLibrary::status() const {
  if (!failed_) return {};
  return Error{.code = Code::kUnimplemented,
               .cause = std::string(purpose_) +
                        ", which cannot be loaded: " + (why_.empty() ? "no reason is known" : why_),
               .offset = 0,
               .advice = std::string("Install it: ") + packages_};
}

}  // namespace stoker
