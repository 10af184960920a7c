// The part of CUDA's runtime that an object file of nvcc calls: kernels that the object registers
// are found among the translated ones, by name. CMake renames the object's calls to these functions
// (runtime_symbols.txt), because libstoker.a brings the real runtime.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/gpu/ptx/run_translated.h"
#include "tests/gpu/ptx/translated_kernel.h"

namespace stoker::testing::ptx {
namespace {

constexpr int kSuccess = 0, kInvalidConfiguration = 9;

// The kernels of this program, by the address of the function that nvcc has made for the host.
std::map<const void*, const TranslatedKernel*>& Registered() {
  static std::map<const void*, const TranslatedKernel*> registered;
  return registered;
}

const TranslatedKernel& Find(const void* host_function) {
  const auto found = Registered().find(host_function);
  if (found != Registered().end()) return *found->second;
  std::fputs("a kernel is launched that was not registered\n", stderr);
  std::_Exit(1);
}

void Register(const void* host_function, const char* name) {
  for (const TranslatedKernel& kernel : TranslatedKernels()) {
    if (std::strcmp(kernel.name, name) == 0) Registered()[host_function] = &kernel;
  }
}

[[noreturn]] void NotSimulated() {
  std::fputs("a function of CUDA's runtime was called that no kernel's launch needs\n", stderr);
  std::_Exit(1);
}

}  // namespace
}  // namespace stoker::testing::ptx

using namespace stoker::testing::ptx;  // NOLINT(google-build-using-namespace): C functions below

extern "C" {

int PtxLaunchKernel(const void* function, Extent blocks, Extent threads, void** parameters,
                    size_t /*shared_bytes*/, void* /*stream*/) {
  return RunTranslated(Find(function), blocks, threads, parameters) ? kSuccess
                                                                    : kInvalidConfiguration;
}

int PtxFuncGetAttributes(void* /*attributes*/, const void* function) {
  LoadTranslated(Find(function));
  return kSuccess;
}

int PtxGetLastError() { return kSuccess; }

void** PtxRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}
void PtxRegisterFatBinaryEnd(void** /*handle*/) {}
void PtxUnregisterFatBinary(void** /*handle*/) {}
void PtxRegisterFunction(void** /*handle*/, const void* function, char* /*device_function*/,
                         const char* name, int /*thread_limit*/, void* /*tid*/, void* /*bid*/,
                         void* /*threads*/, void* /*blocks*/, int* /*warp_size*/) {
  Register(function, name);
}
void PtxRegisterVar(void** /*handle*/, void* /*variable*/, char* /*address*/, const char* /*name*/,
                    int /*external*/, size_t /*bytes*/, int /*constant*/, int /*global*/) {}

// Called where a kernel is launched by <<<>>>, or one launches another.
void PtxGetKernel() { NotSimulated(); }
void PtxLaunchKernelOfStub() { NotSimulated(); }
void PtxPopCallConfiguration() { NotSimulated(); }

}  // extern "C"
