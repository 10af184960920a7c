#include "bindings/cli/bench/reads/fio.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace stoker {

namespace {

// A file with a unique name in $TMPDIR, removed on destruction.
class ScratchFile {
 public:
  ScratchFile() {
    const char* folder = getenv("TMPDIR");
    path_ = std::string(folder != nullptr ? folder : "/tmp") + "/stoker-fio-XXXXXX";
    descriptor_ = mkostemp(path_.data(), O_CLOEXEC);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(path_.c_str());
  }

  bool ok() const { return descriptor_ >= 0; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

bool CanBeListed(const std::string& path) {
  return path.size() <= 255 &&
         std::ranges::none_of(path, [](unsigned char c) { return std::isspace(c) != 0; });
}

// Writes fio's list of reads, version 2: actions on files, in order.
bool WriteList(const std::vector<FileRange>& reads, const std::string& path) {
  std::ofstream list(path, std::ios::binary);
  list << "fio version 2 iolog\n";
  std::set<std::string> files;
  for (const FileRange& read : reads) {
    if (files.insert(read.path).second) list << read.path << " add\n";
  }
  std::set<std::string> open;
  for (const FileRange& read : reads) {
    if (read.whole || open.insert(read.path).second) list << read.path << " open\n";
    list << read.path << " read " << read.offset << ' ' << read.length << '\n';
    if (read.whole) list << read.path << " close\n";
  }
  list.close();
  return !list.fail();
}

// Runs a command whose output goes to a file; returns whether it succeeded.
bool RunCommand(std::vector<std::string> words, const std::string& output) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int e = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (e != 0) return false;
  int state = -1;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return state == 0;
}

}  // namespace

std::optional<FioFigure> ParseFioReport(const std::string& report) {
  enum Field { kVersion = 0, kError = 4, kKibibytesPerSecond = 6, kReadsPerSecond = 7, kFields };
  std::array<std::string, kFields> fields;
  std::istringstream text(report);
  for (std::string& field : fields) {
    if (!std::getline(text, field, ';')) return std::nullopt;
  }
  const auto number = [&fields](Field field) -> std::optional<double> {
    const std::string& digits = fields[field];
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return value;
  };
  const std::optional<double> rate = number(kKibibytesPerSecond), reads = number(kReadsPerSecond);
  if (fields[kVersion] != "3" || fields[kError] != "0" || !rate || !reads) return std::nullopt;
  return FioFigure{.reads_per_second = *reads, .bytes_per_second = *rate * 1024};
}

std::optional<FioFigure> MeasureWithFio(const std::vector<FileRange>& reads, ReaderKind reader,
                                        uint32_t depth) {
  if (reads.empty()) return std::nullopt;
  if (!std::ranges::all_of(reads, CanBeListed, &FileRange::path)) return std::nullopt;
  const ScratchFile list, output;
  if (!list.ok() || !output.ok() || !WriteList(reads, list.path())) return std::nullopt;
  const bool ring = reader == ReaderKind::kUring;
  const bool done = RunCommand({"fio", "--name=stoker", "--read_iolog=" + list.path(),
                                ring ? "--ioengine=io_uring" : "--ioengine=psync",
                                "--iodepth=" + std::to_string(ring ? depth : 1), "--direct=0",
                                "--invalidate=0", "--output-format=terse", "--terse-version=3"},
                               output.path());
  if (!done) return std::nullopt;
  std::ifstream file(output.path(), std::ios::binary);
  std::ostringstream report;
  report << file.rdbuf();
  std::optional<FioFigure> figure = ParseFioReport(report.str());
  if (figure) figure->reads = reads.size();
  return figure;
}

}  // namespace stoker
