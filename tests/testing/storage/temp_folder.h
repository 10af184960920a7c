// A folder for the files of one test, deleted when the test ends.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace stoker::testing {

class TempFolder {
 public:
  TempFolder() : path_(std::filesystem::temp_directory_path() / "stoker-test-XXXXXX") {
    std::string name = path_.string();
    if (mkdtemp(name.data()) == nullptr) abort();
    path_ = name;
    chmod(name.c_str(), 0755);  // tests of permissions run as another user
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_.native(); }
  std::string Path(const std::string& name) const { return (path_ / name).string(); }

  // Returns how many files of the folder are open: descriptors of the process, and those of its
  // rings.
  size_t OpenFiles() const {
    const std::string below = Path("");
    size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string path = std::filesystem::read_symlink(entry.path(), gone).string();
      n += path.starts_with(below) ? 1 : 0;
    }
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
      std::ifstream info(entry.path());
      for (std::string line; std::getline(info, line);) {
        n += line.find(below) != std::string::npos ? 1 : 0;
      }
    }
    return n;
  }

  // Waits until a further change to a file that has been written gets another time (IsAtRest).
  // Until then caches and indexes keep nothing of the file.
  void Rest() const { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }

  // Writes a file, creating its folders, and returns its path.
  std::string Write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string Write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    return Write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

 private:
  std::filesystem::path path_;
};

inline std::string BytesOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns bytes that differ from offset to offset, so that moved bytes are detected.
inline std::vector<uint8_t> Pattern(size_t size, uint32_t seed = 1) {
  std::vector<uint8_t> bytes(size);
  uint32_t x = seed * 2654435761u + 1;
  for (uint8_t& b : bytes) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<uint8_t>(x >> 24);
  }
  return bytes;
}

}  // namespace stoker::testing
