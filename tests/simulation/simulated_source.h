// SimulatedSource: samples in files, from calls, or in memory, whose answers take a while on the
// simulation's clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/source/source.h"
#include "tests/testing/storage/fake_reader.h"

namespace stoker::testing {

// Sleeps for up to `most_ns`, drawn by the simulation that runs.
void SimulateWork(uint64_t most_ns);

class SimulatedSource final : public SampleSource {
 public:
  enum class Kind : uint8_t { kFiles, kCalls, kMemory };
  struct Options {
    Kind kind = Kind::kFiles;
    std::string name{};
    uint64_t size = 1;
    bool pairs = false;    // of kFiles: each sample has a second field of images
    uint32_t count = 0;    // of kFiles: Field::count of each field of images
    bool objects = false;  // sample 7 has the objects 70, 71 and 72: 7 % 4 of them
    int calls = 0;         // of kCalls
    uint64_t work_ns = 0;  // that a worker needs for a row, at most
    uint64_t call_ns = 0;  // that a call takes, at most
  };

  // `disk` has the image of sample 7 at "NAME/7", and of 100 samples the second piece of sample 7
  // at "NAME/107", the third one at "NAME/207".
  SimulatedSource(Options options, std::shared_ptr<const FakeDisk> disk);

  static std::string PathIn(const std::string& name, uint64_t id) {
    return name + "/" + std::to_string(id);
  }

  uint64_t size() const override { return options_.size; }
  std::span<const Field> fields() const override { return fields_; }
  uint32_t max_objects() const override { return options_.objects ? kMostObjects - 1 : 0; }
  int calls() const override { return options_.kind == Kind::kCalls ? options_.calls : 0; }
  Status Load(uint64_t id, LoadedSample& loaded) const override;
  uint64_t files() const override { return std::max<size_t>(pieces(), 1) * size(); }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  ByteRange RangeOfPiece(uint64_t id, size_t piece) const override {
    return RangeOf(piece * size() + id);
  }
  void PathOf(uint32_t file, std::string& path) const override {
    path = PathIn(options_.name, file);
  }
  static uint64_t ObjectsOf(uint64_t id) { return id % kMostObjects; }
  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override;
  std::span<const uint8_t> View(size_t field, uint64_t id) const override;
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  uint64_t Fingerprint() const override { return options_.size; }
  std::string Describe() const override { return options_.name; }

 private:
  static constexpr size_t kRowBytes = 16;  // in memory
  static constexpr uint64_t kMostObjects = 4;

  const Options options_;
  const std::shared_ptr<const FakeDisk> disk_;
  std::vector<Field> fields_;
  std::vector<uint8_t> rows_;
  std::vector<int64_t> objects_;  // kMostObjects for each sample
  const std::vector<std::string> classes_;
};

}  // namespace stoker::testing
