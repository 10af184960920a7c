#include "bindings/cli/synth/synth.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "bindings/cli/synth/photograph.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/system/output_file.h"
#include "core/system/start_thread.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarker = ".stoker-synth";
constexpr int kVersion = 1;  // of the photographs; changes whenever their pixels do
constexpr int kMaxClasses = 100000;

// The parameters that determine the photographs, except their number.
struct SynthMarker {
  int version = 0;
  uint64_t seed = 0;
  int classes = 0;
  friend bool operator==(const SynthMarker&, const SynthMarker&) = default;
};

Error Invalid(std::string cause, std::string advice, std::string file = {}) {
  return Error{.code = Code::kInvalidArgument,
               .cause = std::move(cause),
               .file = std::move(file),
               .advice = std::move(advice)};
}

// Writes the whole file, or nothing.
Status WriteWhole(const fs::path& path, std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Origin::kOwn));
  Status status = file.Write(bytes);
  return status.ok() ? file.Commit() : std::move(status);
}

int DigitsOf(uint64_t largest) { return static_cast<int>(std::to_string(largest).size()); }

std::string Numbered(const char* prefix, uint64_t number, int digits, const char* suffix = "") {
  std::string text = std::to_string(number);
  text.insert(0, static_cast<size_t>(std::max(0, digits - static_cast<int>(text.size()))), '0');
  return prefix + text + suffix;
}

fs::path ClassFolder(const fs::path& directory, int classes, uint64_t label) {
  const int digits = std::max(2, DigitsOf(static_cast<uint64_t>(classes) - 1));
  return directory / Numbered("class", label, digits);
}

fs::path PhotographPath(const fs::path& directory, int classes, uint64_t index) {
  return ClassFolder(directory, classes, index % static_cast<uint64_t>(classes)) /
         Numbered("photo_", index, 6, ".jpg");
}

// Returns the number in one of stoker's names: prefix, digits, suffix.
std::optional<uint64_t> NumberIn(std::string_view name, std::string_view prefix,
                                 std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() <= prefix.size() + suffix.size()) return std::nullopt;
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  uint64_t number = 0;
  for (char c : name) {
    if (c < '0' || c > '9' || number > UINT64_MAX / 100) return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

// Returns the entries of a folder, as far as it can be read.
std::vector<fs::path> EntriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  return entries;
}

// Removes stoker's photographs from `count` on, unfinished ones, and empty class folders.
Status RemoveFrom(const fs::path& directory, uint64_t count) {
  for (const fs::path& folder : EntriesOf(directory)) {
    std::error_code error;
    if (!NumberIn(folder.filename().native(), "class", "")) continue;
    if (fs::symlink_status(folder, error).type() != fs::file_type::directory) continue;
    for (const fs::path& file : EntriesOf(folder)) {
      const std::string name = file.filename().string();
      const std::optional<uint64_t> number = NumberIn(name, "photo_", ".jpg");
      const bool surplus = number && *number >= count;
      if (!surplus && !OutputFile::IsTemporaryName(name)) continue;
      if (unlink(file.c_str()) != 0 && errno != ENOENT) {
        return SystemError(errno, "cannot remove this earlier sample", file);
      }
    }
    rmdir(folder.c_str());  // fails if it is not empty
  }
  return {};
}

std::optional<SynthMarker> ReadMarker(const fs::path& directory) {
  constexpr std::streamsize kLongest = 4096;
  std::ifstream file(directory / kMarker, std::ios::binary);
  std::string text(kLongest, '\0');
  file.read(text.data(), kLongest);
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  for (const char* key : {"version", "seed", "classes"}) {
    if (!json.contains(key) || !json[key].is_number_integer()) return std::nullopt;
  }
  return SynthMarker{json["version"].get<int>(), json["seed"].get<uint64_t>(),
                     json["classes"].get<int>()};
}

Status WriteMarker(const fs::path& directory, const SynthMarker& made) {
  const nlohmann::json json = {{"made_by", "stoker synth"},
                               {"version", made.version},
                               {"seed", made.seed},
                               {"classes", made.classes}};
  const std::string text = json.dump() + "\n";
  return WriteWhole(directory / kMarker,
                    {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// Prepares `directory`, or refuses it if stoker may not write to it. Returns whether it contains
// part of the photographs already.
Result<bool> Prepare(const fs::path& directory, const SynthMarker& made,
                     const SynthOptions& options) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return CannotWrite(error.value(), directory);
  const bool empty = fs::is_empty(directory, error);
  if (error) return SystemError(error.value(), "cannot read this folder", directory);
  const std::optional<SynthMarker> before = ReadMarker(directory);
  if (!empty && !before && !options.overwrite) {
    return Invalid("this folder is not empty, and stoker did not make it (no " +
                       std::string(kMarker) + " in it)",
                   "Name another folder, or pass --overwrite to add to what is there", directory);
  }
  if (before && *before != made && !options.overwrite) {
    return Invalid("this folder holds synthetic samples of seed " + std::to_string(before->seed) +
                       " in " + std::to_string(before->classes) + " classes (version " +
                       std::to_string(before->version) + "), but seed " +
                       std::to_string(made.seed) + " in " + std::to_string(made.classes) +
                       " classes (version " + std::to_string(made.version) + ") was requested",
                   "Name another folder, or pass --overwrite to replace them", directory);
  }
  const bool keep = before == made;
  if (before) {
    TRY(RemoveFrom(directory, keep ? options.count : 0));
  }
  if (!keep) {
    TRY(WriteMarker(directory, made));
  }
  for (int label = 0; label < made.classes; ++label) {
    const fs::path folder = ClassFolder(directory, made.classes, static_cast<uint64_t>(label));
    fs::create_directory(folder, error);
    if (error) return CannotWrite(error.value(), folder);
  }
  return keep;
}

// Writes photographs: each thread takes the next one until none is left or a thread has failed.
class Writer {
 public:
  Writer(const fs::path& directory, const SynthMarker& made, bool keep, const SynthOptions& options,
         const SynthProgress& progress)
      : directory_(directory), made_(made), keep_(keep), options_(options), progress_(progress) {
    summary_.classes = made.classes;
  }

  void Run() {
    while (!stop_) {
      const uint64_t index = next_.fetch_add(1);
      if (index >= options_.count) return;
      Status status = One(index);
      if (!status.ok()) Stop(std::move(status).error());
    }
  }

  // Called after all threads have left Run.
  Result<SynthSummary> TakeSummary() {
    if (error_) return *std::move(error_);
    return summary_;
  }

 private:
  Status One(uint64_t index) {
    const fs::path path = PhotographPath(directory_, made_.classes, index);
    struct stat info;
    if (keep_ && stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      return Count(static_cast<uint64_t>(info.st_size), summary_.kept);
    }
    std::vector<uint8_t> bytes;
    try {
      bytes = MakePhotograph(made_.seed, index);
    } catch (const std::exception& cause) {
      return Error{Code::kResourceExhausted, std::string("cannot make it: ") + cause.what(), path};
    }
    TRY(WriteWhole(path, bytes));
    return Count(bytes.size(), summary_.written);
  }

  Status Count(uint64_t bytes, uint64_t& files) {
    const std::lock_guard lock(mutex_);
    ++files;
    summary_.bytes += bytes;
    if (progress_ && !progress_(summary_.written + summary_.kept, options_.count)) {
      return Error{Code::kCancelled, "stopped before all samples were written", directory_};
    }
    return {};
  }

  void Stop(Error error) {
    stop_ = true;
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }

  const fs::path directory_;
  const SynthMarker made_;
  const bool keep_;
  const SynthOptions& options_;
  const SynthProgress& progress_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;
  SynthSummary summary_;
  std::optional<Error> error_;
};

Status Check(const SynthOptions& options) {
  if (options.count == 0) return Invalid("count is 0", "Give the number of samples to make");
  if (options.classes < 0 || options.classes > kMaxClasses) {
    return Invalid("classes is " + std::to_string(options.classes),
                   "Give 1 to " + std::to_string(kMaxClasses) + ", or 0 for 20");
  }
  if (static_cast<uint64_t>(options.classes) > options.count) {
    return Invalid("classes is " + std::to_string(options.classes) + ", but count is only " +
                       std::to_string(options.count),
                   "Each class needs a sample: lower classes, or raise count");
  }
  return CheckThreads(options.threads);
}

}  // namespace

Result<SynthSummary> WritePhotographs(const std::string& directory, const SynthOptions& options,
                                      const SynthProgress& progress) {
  TRY(Check(options));
  const SynthMarker made{.version = kVersion,
                         .seed = options.seed,
                         .classes = options.classes != 0
                                        ? options.classes
                                        : static_cast<int>(std::min<uint64_t>(20, options.count))};
  const Result<bool> keep = Prepare(directory, made, options);
  if (!keep.ok()) return keep.error();
  Writer writer(directory, made, *keep, options, progress);
  InParallel(options.threads, [&writer] { writer.Run(); });
  return writer.TakeSummary();
}

}  // namespace stoker
