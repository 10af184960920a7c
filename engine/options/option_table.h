// Every option of a loader, and of its batches on devices: its name, accepted values and
// documentation. Checks, messages, JSON, flags and Python's signature read these tables. Defaults
// are those of LoaderOptions and DeviceOptions.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/result/sample_fault.h"
#include "engine/options/options.h"
#include "transforms/spec/option.h"

namespace stoker {

struct LoaderOptionRow {
  Option<LoaderOptions> option;
  const char* doc = "";   // one line, without a full stop
  const char* more = "";  // sentences that only Python's docstring has
  // The meaning of 0 where it is a default and not a number; Python writes it None.
  const char* zero = nullptr;
  bool of_images = false;       // an option of Compose and of recipes, too
  bool changes_batches = true;  // the batches of all ranks together depend on it
  // The fault of the samples that this option excludes. If on_bad handles the fault, batches depend
  // on the option; otherwise only errors do.
  std::optional<SampleFault> decides{};
  // The group of its flag in `stoker bench --help`; "" is the main group, null means no flag.
  const char* flag_group = nullptr;
  const char* flag_value = "TEXT";  // what --help calls the value, if it is a text
};

// In the order of Python's signature.
std::span<const LoaderOptionRow> AllLoaderOptions();

// An option of DeviceOptions that is a number.
struct DeviceOptionRow {
  Option<DeviceOptions> option;
  const char* doc = "";  // one line, without a full stop
};

std::span<const DeviceOptionRow> AllDeviceOptions();

// Precondition: an option has this name.
const LoaderOptionRow& LoaderOptionNamed(std::string_view name);

}  // namespace stoker
