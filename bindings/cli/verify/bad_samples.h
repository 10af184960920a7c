// BadSampleList: the samples that cannot be used, each with its fault, in little memory, because
// all samples of a dataset may be bad.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/result.h"
#include "core/result/sample_fault.h"

namespace stoker {

struct BadSample {
  uint64_t id = 0;
  uint32_t piece = 0;  // which of its encoded images is bad
  SampleFault fault = SampleFault::kUndecodable;
  std::optional<uint64_t> offset{};  // in bytes from the start of its file
  std::string_view cause{};          // both texts belong to the list
  std::string_view advice{};
};

// A sample takes 32 bytes, and each cause is stored once. Paths are not stored: the source has
// them. Used by one thread at a time.
class BadSampleList {
 public:
  BadSampleList() = default;
  BadSampleList(BadSampleList&&) = default;
  BadSampleList& operator=(BadSampleList&&) = default;

  void Add(uint64_t id, SampleFault fault, const Error& error, uint32_t piece = 0);
  void SortById();

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  BadSample operator[](size_t i) const;
  // The number of samples with each fault, in the order of SampleFault.
  const FaultCounts& counts() const { return counts_; }

 private:
  using Text = std::pair<std::string, std::string>;  // cause, advice
  static constexpr uint64_t kNoOffset = ~uint64_t{0};

  struct Entry {
    uint64_t id;
    uint64_t offset;
    const Text* text;  // of texts_
    uint32_t piece;
    SampleFault fault;
  };

  std::vector<Entry> entries_;
  std::set<Text> texts_;
  FaultCounts counts_{};
};

}  // namespace stoker
