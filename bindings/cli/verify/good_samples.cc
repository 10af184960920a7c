#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "bindings/cli/verify/verify.h"
#include "core/output_file.h"
#include "core/try.h"
#include "core/utf8.h"

namespace stoker {

namespace {

constexpr size_t kWriteBytes = 1 << 20;  // at a time

Error NoManifest(const SampleSource& source, const std::string& why) {
  return {.code = Code::kInvalidArgument,
          .cause = "a list of the good samples of " + source.Describe() + " would " + why,
          .advice = "Take the ids of the bad ones from --json, and leave them out with subset()"};
}

// Whether a line with a path and a label says all that there is about a sample.
Status CheckWholeFiles(const SampleSource& source) {
  if (source.packed() || source.RangeOf(0).length != kUnknownLength) {
    return NoManifest(source, "not say which part of a file a sample is");
  }
  for (const Field& field : source.fields().subspan(1)) {
    if (!field.is_label) return NoManifest(source, "lose the column '" + field.name + "'");
  }
  return {};
}

Result<std::string> LineOf(const SampleSource& source, uint64_t id) {
  std::string path;
  source.PathOf(source.RangeOf(id).file, path);
  path = std::filesystem::absolute(path).lexically_normal().string();
  if (!IsUtf8(path)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the name is not UTF-8, and JSON has no other",
                 .file = path,
                 .advice = "Rename the file"};
  }
  nlohmann::ordered_json line = {{"path", path}};
  if (source.label()) {
    const int64_t label = source.LabelOf(id);
    const auto& names = source.classes();
    const bool named = label >= 0 && static_cast<uint64_t>(label) < names.size();
    if (named) {
      line["label"] = names[static_cast<size_t>(label)];
    } else {
      line["label"] = label;
    }
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Status WriteGoodSamples(const SampleSource& source, const VerifyReport& report,
                        const std::string& path) {
  TRY(CheckWholeFiles(source));
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  std::string text;
  const auto flush = [&] {
    Status written = file.Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    text.clear();
    return written;
  };
  auto bad = report.bad.begin();
  for (uint64_t id = 0; id < source.size(); ++id) {
    if (bad != report.bad.end() && bad->id == id) {
      ++bad;
      continue;
    }
    ASSIGN_OR_RETURN(const std::string line, LineOf(source, id));
    text += line;
    if (text.size() >= kWriteBytes) TRY(flush());
  }
  TRY(flush());
  return file.Commit(OutputFile::Sync::kToDisk);
}

}  // namespace stoker
