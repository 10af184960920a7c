#include "tests/fuzz/open/open_cache.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/cache/disk_cache.h"
#include "tests/fuzz/decode/fuzzed_rows.h"

namespace stoker::testing {
namespace {

constexpr SegmentName kSegment{.number = 1, .capacity = 64 << 10};
constexpr size_t kDataBytes = 4000, kRangeBytes = 100;
constexpr int kObjects = 8;

// One for all inputs, removed at the end.
struct CacheFolderOfInputs {
  CacheFolderOfInputs() {
    std::string name = std::filesystem::temp_directory_path() / "stoker-fuzz-XXXXXX";
    Require(mkdtemp(name.data()) != nullptr, "there is a folder");
    path = name;
  }
  CacheFolderOfInputs(const CacheFolderOfInputs&) = delete;
  CacheFolderOfInputs& operator=(const CacheFolderOfInputs&) = delete;
  ~CacheFolderOfInputs() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  void Put(const std::string& name, std::span<const uint8_t> bytes) const {
    std::ofstream file(path / name, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    Require(file.good(), "the input is put into a file");
  }

  std::filesystem::path path;
};

CachedObject FuzzedObject(int number) { return {std::to_string(number), "1", kRangeBytes}; }

// The same as in the corpus' records.
std::vector<uint8_t> DataOfCache() {
  std::vector<uint8_t> data(kDataBytes);
  uint8_t next = 1;
  for (uint8_t& byte : data) byte = next = static_cast<uint8_t>(next * 5 + 3);
  return data;
}

void SignRecords(std::span<uint8_t> index) {
  for (; index.size() >= kCacheRecordBytes; index = index.subspan(kCacheRecordBytes)) {
    CacheRecord record;
    std::memcpy(&record.key, index.data(), 8);
    std::memcpy(&record.position, index.data() + 8, 8);
    std::memcpy(&record.length, index.data() + 16, 8);
    std::memcpy(&record.checksum, index.data() + 24, 4);
    const PackedCacheRecord packed = PackCacheRecord(record, kSegment.number);
    std::ranges::copy(packed, index.begin());
    const auto again = UnpackCacheRecord(packed, kSegment.number, ~uint64_t{0});
    Require(!again || *again == record, "a record is read as it was written");
  }
}

void ReadAndWrite(DiskCache& cache, const std::vector<uint8_t>& data) {
  for (int i = 0; i < kObjects; ++i) {
    std::array<uint8_t, kRangeBytes> to{}, mine{};
    mine.fill(static_cast<uint8_t>(i));
    if (cache.Read(FuzzedObject(i), 0, to)) {
      Require(std::search(data.begin(), data.end(), to.begin(), to.end()) != data.end(),
              "what is read is in the data");
      continue;
    }
    cache.Write(FuzzedObject(i), 0, mine);
    Require(cache.Read(FuzzedObject(i), 0, to) && to == mine, "what was kept is read");
  }
}

}  // namespace

void OpenFuzzedCache(std::span<const uint8_t> bytes) {
  static const CacheFolderOfInputs folder;
  if (bytes.size() < 9) return;
  const auto lock = bytes.subspan(1, 8);
  std::vector<uint8_t> index(bytes.begin() + 9, bytes.end());
  if ((bytes[0] & 1) != 0) SignRecords(index);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    std::filesystem::remove(entry.path());
  }
  const std::vector<uint8_t> data = DataOfCache();
  folder.Put("v1.lock", lock);
  folder.Put(kSegment.Index(), index);
  folder.Put(kSegment.Data(), data);
  Result<std::shared_ptr<DiskCache>> cache =
      DiskCache::Open(folder.path, 4 << 20, {.pause = std::chrono::milliseconds(0)});
  Require(cache.ok(), "any content can be opened");
  Require((*cache)->counts().ranges <= index.size() / kCacheRecordBytes, "a record is a range");
  ReadAndWrite(**cache, data);
  Require((*cache)->counts().disk_errors == 0, "the disk has not failed");
}

}  // namespace stoker::testing
