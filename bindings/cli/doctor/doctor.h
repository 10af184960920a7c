// Examines the build and the machine, for `stoker doctor`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/text/text_layout.h"
#include "core/result/result.h"
#include "gpu/backend/device.h"

namespace stoker {

struct DoctorReport {
  std::string version;   // of stoker
  std::string compiler;  // "GNU 12.2.0"
  std::string build;     // "Release"; "Sanitize (thread)"
  std::string kernel;    // the kernel: "Linux 6.1.0"

  // Defaults of a program without options.
  int cores = 0;
  uint64_t available_memory = 0;
  uint64_t memory_budget = 0;
  std::string reader;  // "uring", "pread"
  std::string reader_reason;
  std::optional<uint64_t> memlock_bytes;  // nullopt means no limit

  std::string simd;  // the best one of this CPU
  struct Library {
    std::string name, version;
    bool found = true;  // otherwise `version` says what is missing
  };
  std::vector<Library> libraries;

  CudaReport cuda;
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES, if set
};

// Returns the version of libjpeg-turbo that stoker was built with: "2.1.5". (The loaded one cannot
// be queried.)
std::string LibjpegTurboVersion();

// Measures the reader (a few milliseconds) and looks for CUDA: loads the driver if there is one,
// creates no context. Fails in the cases in which no loader could be opened.
Result<DoctorReport> Examine();

// DoctorText returns text for people, which ends with a line feed, on a terminal with colour: green
// for good findings, yellow for missing parts. DoctorJson returns one JSON object on one line,
// whose members docs/cli.md lists.
std::string DoctorText(const DoctorReport& report, bool colour = false,
                       const cli::PageWidth& width = {});
std::string DoctorJson(const DoctorReport& report);

}  // namespace stoker
