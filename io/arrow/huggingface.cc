#include "io/arrow/huggingface.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/files/input_file.h"
#include "io/shards/shard_pattern.h"

namespace stoker {

namespace {

using Json = nlohmann::json;

constexpr char kState[] = "/state.json";          // of a dataset
constexpr char kInfo[] = "/dataset_info.json";    // next to it
constexpr char kSplits[] = "/dataset_dict.json";  // of several splits

// Returns null for text that is not JSON.
Json ParseJson(std::string_view text) {
  return Json::parse(text, /*callback=*/nullptr, /*allow_exceptions=*/false);
}

// Returns the value of a key; null if there is none.
const Json& At(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

Result<std::string> ReadSmallFile(const std::string& path) {
  constexpr uint64_t kMostBytes = 64 << 20;
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  ASSIGN_OR_RETURN(const FileStamp stamp, file.Stamp());
  if (stamp.bytes > kMostBytes) {
    return Error{
        Code::kInvalidArgument,
        "the file has " + std::to_string(stamp.bytes) + " bytes, too many for a list of files",
        path};
  }
  std::string text(stamp.bytes, '\0');
  ASSIGN_OR_RETURN(const size_t got,
                   file.ReadAt(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  text.resize(got);
  return text;
}

bool Exists(const std::string& path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed);
}

Error SeveralSplits(const std::string& folder, const Json& dict) {
  std::string first = "train", names;
  const Json& splits = At(dict, "splits");
  for (size_t i = 0; splits.is_array() && i < splits.size() && i < 10; ++i) {
    if (!splits[i].is_string()) continue;
    const std::string name = Printable(splits[i].get<std::string>());
    if (names.empty()) first = name;
    names += (names.empty() ? ": " : ", ") + name;
  }
  return {.code = Code::kInvalidArgument,
          .cause = "the folder has several splits" + names,
          .file = folder,
          .advice = "Choose one: " + folder + "/" + first};
}

}  // namespace

std::vector<std::string> ClassLabelNames(const std::string& metadata, const std::string& column) {
  const Json parsed = ParseJson(metadata);
  const Json& feature = At(At(At(parsed, "info"), "features"), column.c_str());
  const Json& names = At(feature, "names");
  if (At(feature, "_type") != "ClassLabel" || !names.is_array()) return {};
  std::vector<std::string> read;
  for (const Json& name : names) {
    if (!name.is_string()) return {};
    read.push_back(name.get<std::string>());
  }
  return read;
}

bool IsSavedDataset(const std::string& folder) {
  if (Exists(folder + kSplits)) return true;
  if (!Exists(folder + kState)) return false;
  if (Exists(folder + kInfo)) return true;
  const Result<std::string> text = ReadSmallFile(folder + kState);
  return text.ok() && At(ParseJson(*text), "_data_files").is_array();
}

Result<std::vector<std::string>> SavedDatasetFiles(const std::string& folder) {
  if (Exists(folder + kSplits)) {
    ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(folder + kSplits));
    return SeveralSplits(folder, ParseJson(text));
  }
  if (!Exists(folder + kState)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause =
                     "this is a folder, in which datasets' save_to_disk() did not save a "
                     "dataset: it has no state.json",
                 .file = folder,
                 .advice = "Name the files: " + folder + "/*.arrow"};
  }
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(folder + kState));
  const Json state = ParseJson(text);
  const Json& files = At(state, "_data_files");
  if (files.is_array() && files.size() > kMaxShards) {
    return Error{Code::kInvalidArgument,
                 "the list of data files (_data_files) has " + std::to_string(files.size()) +
                     "; at most " + std::to_string(kMaxShards) + " are possible",
                 folder + kState};
  }
  std::vector<std::string> paths;
  for (size_t i = 0; files.is_array() && i < files.size(); ++i) {
    const Json& name = At(files[i], "filename");
    if (!name.is_string() ||
        name.get<std::string>().find_first_of(std::string("/\0", 2)) != std::string::npos) {
      paths.clear();
      break;
    }
    paths.push_back(folder + "/" + name.get<std::string>());
  }
  if (!paths.empty()) return paths;
  return Error{.code = Code::kInvalidArgument,
               .cause = "there is no list of data files (_data_files) in it",
               .file = folder + kState,
               .advice = "Name the files: " + folder + "/*.arrow"};
}

}  // namespace stoker
