// Adds options that several subcommands share, with their checks and their text in --help.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/options/options.h"
#include "transforms/decode/image_info.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
class Option;
}  // namespace CLI

namespace stoker::cli {

struct NumberRange {
  int64_t low = 0;
  int64_t high = 0;
};

struct RealRange {
  double low = 0;
  double high = 0;
};

// Each function adds an option whose default is the present content of `value`; --help shows the
// default after `what` if it is valid. An invalid value is an error that names the option, the
// value and the valid ones.
CLI::Option* AddNumber(CLI::App& command, const std::string& name, int64_t& value,
                       NumberRange range, const std::string& what);
// Accepts finite numbers only: nan and inf are in no range.
CLI::Option* AddReal(CLI::App& command, const std::string& name, double& value, RealRange range,
                     const std::string& what);
CLI::Option* AddSeed(CLI::App& command, const std::string& name, uint64_t& value,
                     const std::string& what);
// Accepts bytes, also as 64MiB (2^20) or 64MB (10^6).
CLI::Option* AddBytes(CLI::App& command, const std::string& name, uint64_t& value,
                      const std::string& what);
// `spellings`: further words that are accepted, and the choices that they mean.
CLI::Option* AddChoice(CLI::App& command, const std::string& name, std::string& value,
                       const std::vector<std::string>& choices, const std::string& what,
                       const std::map<std::string, std::string>& spellings = {});

// Adds --source-option, the options of OpenSamples (bindings/cli/open_samples.h).
void AddSourceOptions(CLI::App& command, std::vector<std::string>& given);

// Limits on the resources of files (0 if not given), and on missing or dropped data.
struct LimitArguments {
  int64_t max_pixels = 0;
  int64_t max_scans = 0;
  bool accept_truncated = false;
  bool accept_16_bits = false;
};

void AddLimits(CLI::App& command, LimitArguments& given);

// Adds the loader options that have flags, in their groups: --batch-size and others.
void AddLoaderOptions(CLI::App& command, LoaderOptions& options);

// Adds an option of batches on a device: "crop_bytes" as --crop-bytes.
CLI::Option* AddDeviceOption(CLI::App& command, std::string_view name, DeviceOptions& options);

// Sets the limits that were given; the rest of `limits` is unchanged.
void SetLimits(const LimitArguments& given, DecodeLimits& limits);

}  // namespace stoker::cli
