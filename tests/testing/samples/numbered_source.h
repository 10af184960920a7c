// NumberedSource: a source of any size whose every answer about a sample contains the sample's
// number, so that tests of sources made from others see which source was asked for which sample.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "io/source/source.h"

namespace stoker::testing {

class NumberedSource final : public SampleSource {
 public:
  static constexpr uint32_t kFiles = 7;

  // Answers are numbers from `first` on.
  explicit NumberedSource(uint64_t size, uint64_t first = 0, std::string name = "numbered",
                          std::vector<std::string> classes = {})
      : size_(size), first_(first), name_(std::move(name)), classes_(std::move(classes)) {}

  uint64_t size() const override { return size_; }
  std::span<const Field> fields() const override { return ImageFields(/*labels=*/true); }
  ByteRange RangeOf(uint64_t id) const override {
    return {.file = static_cast<uint32_t>(id % kFiles), .offset = first_ + id, .length = 1 + id};
  }
  void PathOf(uint32_t file, std::string& path) const override {
    path = name_ + "/" + std::to_string(file);
  }
  void FixedRows(size_t /*field*/, std::span<const uint64_t> ids, void* rows) const override {
    auto* label = static_cast<int64_t*>(rows);
    for (const uint64_t id : ids) *label++ = static_cast<int64_t>(first_ + id);
  }
  std::span<const uint8_t> View(size_t /*field*/, uint64_t id) const override {
    static const std::array<uint8_t, 256> bytes{};
    return std::span(bytes).subspan((first_ + id) % 256, 1);
  }
  std::span<const uint8_t> ReadCropIndex(uint64_t id, uint64_t most,
                                         GrowingBuffer& memory) const override {
    if (!memory.Grow(2).ok()) return {};
    memory.data()[0] = static_cast<uint8_t>(first_ + id);
    memory.data()[1] = static_cast<uint8_t>(most);
    return {memory.data(), 2};
  }
  ImageFacts FactsOf(uint64_t id) const override { return {.file_bytes = first_ + id}; }
  std::string Warning() const override { return name_ + " is a test"; }
  SkippedFiles Skipped() const override {
    SkippedFiles skipped;
    skipped.Add(".gif", name_ + ".gif");
    return skipped;
  }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 1000; }
  uint64_t Fingerprint() const override { return size_ + first_; }
  std::string Describe() const override { return name_; }

 private:
  const uint64_t size_;
  const uint64_t first_;
  const std::string name_;
  const std::vector<std::string> classes_;
};

}  // namespace stoker::testing
