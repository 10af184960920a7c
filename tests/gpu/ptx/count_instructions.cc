// Counts the instructions that the kernels of gpu/crops execute for a crop.
//
//   count_instructions                                  of made photographs, to 112 × 112
//   count_instructions --compare instructions.txt       … and compares with those of the file
//   count_instructions --photographs FOLDER [COUNT]     of real ones, to 224 × 224
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gpu/crops/decode_crops_cuda.h"
#include "tests/gpu/ptx/crop_batch_maker.h"
#include "tests/gpu/ptx/launches.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"

namespace stoker::testing::ptx {
namespace {

constexpr double kTolerance = 0.02;

using Jpegs = std::vector<std::vector<uint8_t>>;
using Counts = std::map<std::string, uint64_t>;

Jpegs MadePhotographs() {
  constexpr Sampling kSamplings[] = {{2, 2}, {2, 1}, {1, 1}, {2, 2}};
  Jpegs jpegs;
  for (int i = 0; i < 8; ++i) {
    const Sampling sampling = kSamplings[i % 4];
    jpegs.push_back(MakeJpeg({.width = 500 - 20 * i,
                              .height = 375,
                              .sampling = Luma(sampling.columns, sampling.rows),
                              .quality = 75 + 3 * i,
                              .seed = static_cast<uint64_t>(i + 1)}));
  }
  return jpegs;
}

// Decodes a crop of each JPEG in one batch. Those that a device cannot decode are left out.
void AddCounts(const Jpegs& jpegs, CropFormat format, ImageSize output, Counts& counts) {
  CropBatchMaker maker(format, CropBoxes::kRandom, output);
  uint64_t crops = 0;
  for (const std::vector<uint8_t>& jpeg : jpegs) crops += maker.Add(jpeg) ? 1 : 0;
  if (crops == 0) {
    std::fprintf(stderr, "none of the %zu photographs can be decoded on a device\n", jpegs.size());
    std::exit(1);
  }
  ForgetLaunches();
  if (LaunchDecodeCrops(maker.made().Batch(), nullptr) != 0) std::abort();
  const std::string prefix = format == CropFormat::kPacked ? "packed." : "indexed.";
  counts[prefix + "crops"] = crops;
  for (const auto& [kernel, totals] : Launches()) {
    counts[prefix + kernel + ".converged"] = totals.of_all_threads / 32 / crops;
    counts[prefix + kernel + ".busiest"] = totals.of_busiest_threads / crops;
  }
}

Counts CountsOf(const Jpegs& jpegs, ImageSize output) {
  Counts counts;
  AddCounts(jpegs, CropFormat::kPacked, output, counts);
  AddCounts(jpegs, CropFormat::kIndexed, output, counts);
  return counts;
}

Counts CountsOfMade() { return CountsOf(MadePhotographs(), {112, 112}); }

void Print(const Counts& counts) {
  std::printf(
      "# Warp instructions of a crop, by kernel: if the threads of a warp never diverged, and of\n"
      "# each warp's busiest thread. To update: count_instructions > instructions.txt.\n"
      "nvcc " STOKER_NVCC_VERSION "\n");
  for (const auto& [name, count] : counts) {
    std::printf("%s %llu\n", name.c_str(), static_cast<unsigned long long>(count));
  }
}

// Returns the version of nvcc that the counts are of.
std::string ReadCounts(const char* path, Counts& counts) {
  std::ifstream file(path);
  std::string line, version;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space), value = line.substr(space + 1);
    if (name == "nvcc") {
      version = value;
    } else {
      counts[name] = std::stoull(value);
    }
  }
  return version;
}

// Says how a count differs. Returns whether it is as recorded.
bool Compare(const std::string& name, const Counts& recorded, const Counts& counted) {
  const auto was = recorded.find(name), is = counted.find(name);
  if (was == recorded.end() || is == counted.end()) {
    std::printf("%s is %s\n", name.c_str(), was == recorded.end() ? "not recorded" : "gone");
    return false;
  }
  const double change = static_cast<double>(is->second) / static_cast<double>(was->second) - 1;
  std::printf("%-28s %9llu, recorded %9llu: %+.1f %%\n", name.c_str(),
              static_cast<unsigned long long>(is->second),
              static_cast<unsigned long long>(was->second), 100 * change);
  return std::abs(change) <= kTolerance;
}

int CompareWith(const char* path) {
  Counts recorded;
  const std::string version = ReadCounts(path, recorded);
  if (version != STOKER_NVCC_VERSION) {
    std::printf("%s is of nvcc %s, and this is %s\n", path, version.c_str(), STOKER_NVCC_VERSION);
    return 1;
  }
  const Counts counted = CountsOfMade();
  Counts all = recorded;
  all.insert(counted.begin(), counted.end());
  const auto changed = std::count_if(all.begin(), all.end(), [&](const auto& each) {
    return !Compare(each.first, recorded, counted);
  });
  if (changed == 0) return 0;
  std::printf(
      "%td counts differ by more than %.0f %%. If they rose, the kernels became slower; if that is "
      "meant, or they fell, record them: count_instructions > %s\n",
      changed, 100 * kTolerance, path);
  return 1;
}

int CountPhotographs(const char* folder, size_t count) {
  Jpegs jpegs;
  for (const auto& path : PhotosIn(folder)) {
    if (jpegs.size() < count) jpegs.push_back(ReadFile(path));
  }
  Print(CountsOf(jpegs, {224, 224}));
  return 0;
}

int Run(int argc, char** argv) {
  if (argc == 1) {
    Print(CountsOfMade());
    return 0;
  }
  if (argc == 3 && std::strcmp(argv[1], "--compare") == 0) return CompareWith(argv[2]);
  if (argc >= 3 && std::strcmp(argv[1], "--photographs") == 0) {
    return CountPhotographs(argv[2], argc == 4 ? std::stoul(argv[3]) : 64);
  }
  std::fprintf(stderr,
               "usage: count_instructions [--compare FILE | --photographs FOLDER [COUNT]]\n");
  return 2;
}

}  // namespace
}  // namespace stoker::testing::ptx

int main(int argc, char** argv) { return stoker::testing::ptx::Run(argc, argv); }
