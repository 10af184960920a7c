// What stoker is made of and what it finds on this machine: `stoker doctor`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "gpu/device.h"

namespace stoker {

struct DoctorReport {
  std::string version;   // of stoker
  std::string compiler;  // "GNU 12.2.0"
  std::string build;     // "Release"; "Sanitize (thread)"
  std::string kernel;    // of the system: "Linux 6.1.0"

  // What a program gets that asks for nothing.
  int cores = 0;
  uint64_t available_memory = 0;
  uint64_t memory_budget = 0;
  std::string reader;  // "uring", "pread"
  std::string reader_reason;
  std::optional<uint64_t> memlock_bytes;  // none: no limit

  std::string simd;                                            // the best that this CPU has
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version

  CudaReport cuda;
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES, where it is set
};

// Of the libjpeg-turbo that stoker was built with: "2.1.5". (The one that is loaded cannot be
// asked.)
std::string LibjpegTurboVersion();

// Measures the reader (a few milliseconds) and looks for CUDA: loads the driver where there is one,
// joins no context. Fails where no loader could be opened either.
Result<DoctorReport> Examine();

// Lines for people, which end with a line feed; and one JSON object on one line: docs/cli.md has
// its members.
std::string DoctorText(const DoctorReport& report);
std::string DoctorJson(const DoctorReport& report);

}  // namespace stoker
