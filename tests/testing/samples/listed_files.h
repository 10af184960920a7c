// A source made from a list of paths and labels, which have no class names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/source/source.h"

namespace stoker::testing {

class ListedFiles final : public SampleSource {
 public:
  struct Sample {
    std::string path;
    int64_t label = kNoLabel;
  };

  explicit ListedFiles(std::vector<Sample> samples) : samples_(std::move(samples)) {}

  uint64_t size() const override { return samples_.size(); }
  std::span<const Field> fields() const override {
    return ImageFields(/*labels=*/samples_.at(0).label != kNoLabel);
  }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  void FixedRows(size_t /*field*/, std::span<const uint64_t> ids, void* rows) const override {
    auto* label = static_cast<int64_t*>(rows);
    for (const uint64_t id : ids) *label++ = samples_[id].label;
  }
  void PathOf(uint32_t file, std::string& path) const override { path = samples_[file].path; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "a list"; }

 private:
  const std::vector<Sample> samples_;
  const std::vector<std::string> classes_;
};

}  // namespace stoker::testing
