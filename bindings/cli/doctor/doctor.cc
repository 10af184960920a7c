#include "bindings/cli/doctor/doctor.h"

// This must precede Highway's headers.

#include <fmt/format.h>
#include <hwy/highway.h>
#include <jpeglib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <tbb/version.h>
#include <webp/decode.h>
#include <zlib.h>

#include <cstdlib>

#include "core/memory/memory_budget.h"
#include "core/system/machine.h"
#include "engine/runtime/runtime.h"
#include "io/remote/libcurl.h"
#include "io/tar/libarchive.h"

namespace stoker {

// The library encodes it as one number: 2 01 005.
std::string LibjpegTurboVersion() {
  return fmt::format("{}.{}.{}", LIBJPEG_TURBO_VERSION_NUMBER / 1'000'000,
                     LIBJPEG_TURBO_VERSION_NUMBER / 1000 % 1000,
                     LIBJPEG_TURBO_VERSION_NUMBER % 1000);
}

namespace {

std::string WebpVersion() {
  const int version = WebPGetDecoderVersion();
  return fmt::format("{}.{}.{}", version >> 16, version >> 8 & 255, version & 255);
}

// libarchive is loaded only where tar archives are indexed.
DoctorReport::Library LibarchiveVersion() {
  const Result<const Libarchive*> library = Libarchive::Load();
  if (!library.ok()) return {"libarchive", "not found: tar archives cannot be indexed", false};
  const std::string text = (*library)->version_string();
  return {"libarchive", text.substr(text.rfind(' ') + 1)};
}

// libcurl is loaded only where URLs are opened.
DoctorReport::Library LibcurlVersion() {
  const Result<const Libcurl*> library = Libcurl::Load();
  if (!library.ok()) return {"libcurl", "not found: remote objects cannot be read", false};
  std::string text = (*library)->version();  // "libcurl/7.88.1 OpenSSL/3.0.11 …"
  return {"libcurl",
          text.substr(text.find('/') + 1).substr(0, text.find(' ') - text.find('/') - 1)};
}

std::string KernelText() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "unknown";
}

// The best is first.
std::string InstructionSet() {
  return hwy::TargetName(hwy::SupportedAndGeneratedTargets().front());
}

std::optional<uint64_t> MemlockBytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

}  // namespace

Result<DoctorReport> Examine() {
  const Result<std::shared_ptr<Runtime>> runtime = Runtime::Create();
  if (!runtime.ok()) return runtime.error();
  DoctorReport report;
  report.version = STOKER_VERSION;
  report.compiler = STOKER_COMPILER;
  report.build = STOKER_BUILD;
  report.kernel = KernelText();
  report.cores = (*runtime)->options().threads;
  report.available_memory = AvailableMemory();
  report.memory_budget = (*runtime)->budget().limit();
  report.reader = (*runtime)->reader().kind == ReaderKind::kUring ? "uring" : "pread";
  report.reader_reason = (*runtime)->reader().reason;
  report.memlock_bytes = MemlockBytes();
  report.simd = InstructionSet();
  report.libraries = {{"libjpeg-turbo", LibjpegTurboVersion()},
                      {"zlib", zlibVersion()},
                      {"libwebp", WebpVersion()},
                      LibarchiveVersion(),
                      LibcurlVersion(),
                      {"oneTBB", TBB_runtime_version()},
                      {"Highway", fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH)}};
  report.cuda = LookForCuda();
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    report.visible_devices = visible;
  }
  return report;
}

}  // namespace stoker
