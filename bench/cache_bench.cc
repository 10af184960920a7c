// Measures reads from a cache of remote objects (io/cache/disk_cache.h) against the same bytes
// from local files, all in the page cache: one file for each sample, which is opened, or one for
// all, which stays open. Also measures the cost of adding ranges, and of loading the list of a
// large cache.
//
//   cache_bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
//
// Makes its files in $TMPDIR, else in /tmp.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/system/descriptor.h"
#include "io/cache/disk_cache.h"

namespace stoker {
namespace {

constexpr uint64_t kTotal = 64 << 20;

// A folder that is removed at the end.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "stoker-cache-bench-XXXXXX") {
    std::string name = path_.string();
    if (mkdtemp(name.data()) == nullptr) abort();
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string Path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::vector<uint8_t> Noise(size_t bytes) {
  std::mt19937_64 random(1);
  std::vector<uint8_t> noise(bytes);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  return noise;
}

const CachedObject& Object() {
  static const CachedObject object("https://store.example.org/bucket/train/shard-000123.tar",
                                   "\"9b2cf535f27731c974343645a3985328\"", uint64_t{1} << 40);
  return object;
}

void Report(benchmark::State& state, size_t length) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(length));
}

// Returns the object that a benchmark reads from, which is made once for each length.
template <typename Object>
const Object& MakeOnce(size_t length) {
  static std::map<size_t, std::unique_ptr<Object>> made;
  auto& each = made[length];
  if (each == nullptr) each = std::make_unique<Object>(length);
  return *each;
}

struct CacheOfRanges {
  explicit CacheOfRanges(size_t length)
      : cache(DiskCache::Open(folder.Path("cache"), 2 * kTotal).value()) {
    const std::vector<uint8_t> noise = Noise(length);
    for (uint64_t i = 0; i < kTotal / length; ++i) cache->Write(Object(), i * length, noise);
  }
  Folder folder;
  std::shared_ptr<DiskCache> cache;
};

struct ManyFiles {
  explicit ManyFiles(size_t length) {
    const std::vector<uint8_t> noise = Noise(length);
    for (uint64_t i = 0; i < kTotal / length; ++i) {
      paths.push_back(folder.Path(std::to_string(i)));
      std::ofstream(paths.back(), std::ios::binary)
          .write(reinterpret_cast<const char*>(noise.data()), static_cast<std::streamsize>(length));
    }
  }
  Folder folder;
  std::vector<std::string> paths;
};

struct LargeFile {
  explicit LargeFile(size_t length) {
    const std::vector<uint8_t> noise = Noise(length);
    std::ofstream all(folder.Path("all"), std::ios::binary);
    for (uint64_t i = 0; i < kTotal / length; ++i) {
      all.write(reinterpret_cast<const char*>(noise.data()), static_cast<std::streamsize>(length));
    }
    all.close();
    file = Descriptor(open(folder.Path("all").c_str(), O_RDONLY | O_CLOEXEC));
  }
  Folder folder;
  Descriptor file;
};

void Cached(benchmark::State& state) {
  const auto length = static_cast<size_t>(state.range(0));
  DiskCache& cache = *MakeOnce<CacheOfRanges>(length).cache;
  std::vector<uint8_t> to(length);
  std::mt19937_64 random(2);
  for (auto _ : state) {
    const uint64_t offset = random() % (kTotal / length) * length;
    if (!cache.Read(Object(), offset, to)) state.SkipWithError("a miss");
  }
  Report(state, length);
}

// Reads files like a reader reads a folder of images.
void OneFileEach(benchmark::State& state) {
  const auto length = static_cast<size_t>(state.range(0));
  const std::vector<std::string>& paths = MakeOnce<ManyFiles>(length).paths;
  std::vector<uint8_t> to(length);
  std::mt19937_64 random(2);
  for (auto _ : state) {
    const int file = open(paths[random() % paths.size()].c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fstat(file, &info) != 0) state.SkipWithError("no file");
    benchmark::DoNotOptimize(pread(file, to.data(), length, 0));
    close(file);
  }
  Report(state, length);
}

void OneFileForAll(benchmark::State& state) {
  const auto length = static_cast<size_t>(state.range(0));
  const int file = *MakeOnce<LargeFile>(length).file;
  std::vector<uint8_t> to(length);
  std::mt19937_64 random(2);
  for (auto _ : state) {
    const auto offset = static_cast<off_t>(random() % (kTotal / length) * length);
    benchmark::DoNotOptimize(pread(file, to.data(), length, offset));
  }
  Report(state, length);
}

void Adding(benchmark::State& state) {
  const auto length = static_cast<size_t>(state.range(0));
  const Folder folder;
  const std::vector<uint8_t> noise = Noise(length);
  std::shared_ptr<DiskCache> cache;
  uint64_t offset = 0;
  for (auto _ : state) {
    if (offset % kTotal < length) {
      state.PauseTiming();
      cache = nullptr;
      std::filesystem::remove_all(folder.Path("cache"));
      cache = DiskCache::Open(folder.Path("cache"), 2 * kTotal).value();
      state.ResumeTiming();
    }
    cache->Write(Object(), offset, noise);
    offset += length;
  }
  Report(state, length);
}

void Opening(benchmark::State& state) {
  const auto ranges = static_cast<uint64_t>(state.range(0));
  const Folder folder;
  const std::vector<uint8_t> byte(1);
  {
    const auto cache = DiskCache::Open(folder.Path("cache"), uint64_t{1} << 36).value();
    for (uint64_t i = 0; i < ranges; ++i) cache->Write(Object(), i, byte);
  }
  uint64_t memory = 0;
  for (auto _ : state) {
    const auto cache = DiskCache::Open(folder.Path("cache"), uint64_t{1} << 36).value();
    const DiskCacheCounts counts = cache->counts();
    if (counts.ranges != ranges) state.SkipWithError("ranges are missing");
    memory = counts.memory_bytes;
  }
  state.counters["bytes_each"] = static_cast<double>(memory) / static_cast<double>(ranges);
}

BENCHMARK(Cached)->Arg(4096)->Arg(110'000)->Arg(1 << 20);
BENCHMARK(OneFileEach)->Arg(4096)->Arg(110'000)->Arg(1 << 20);
BENCHMARK(OneFileForAll)->Arg(4096)->Arg(110'000)->Arg(1 << 20);
BENCHMARK(Adding)->Arg(4096)->Arg(110'000)->Arg(1 << 20);
BENCHMARK(Opening)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stoker

BENCHMARK_MAIN();
