// Opens sources by name, for the loader spec, Python and the command.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Values by name. A path is any bytes.
using SourceArguments = std::map<std::string, std::string, std::less<>>;

struct SourceArgument {
  const char* name = "";
  const char* standard = nullptr;  // the default; null means required
  // In a loader spec a path must be absolute, because any process may open it.
  bool is_path = true;
  std::vector<const char*> words{};  // that may replace a path
};

struct SourceRow {
  const char* kind = "";  // its name in the loader spec: "image_folder"
  std::vector<SourceArgument> arguments{};
  // `arguments` has a value for each argument; `threads` list folders; 0 means one for each core.
  Result<std::shared_ptr<const SampleSource>> (*open)(const SourceArguments& arguments,
                                                      int threads) = nullptr;
};

std::span<const SourceRow> AllSources();

// Precondition: AllSources() has `kind`, and `arguments` has values for its required arguments.
Result<std::shared_ptr<const SampleSource>> OpenSource(std::string_view kind,
                                                       SourceArguments arguments, int threads = 0);

}  // namespace stoker
