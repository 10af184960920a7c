#include "io/source/range_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "core/hash/hash.h"

namespace stoker {

void RangeTable::BeginRun(uint32_t file, uint64_t offset) {
  if (runs_.empty() || runs_.back().first != ends_.size()) runs_.emplace_back();
  runs_.back() = {.first = ends_.size(), .offset = offset, .file = file};
}

void RangeTable::Add(uint64_t length) {
  uint64_t begin = ends_.size() == runs_.back().first ? 0 : ends_.back();
  if (begin + length > std::numeric_limits<uint32_t>::max()) {
    BeginRun(runs_.back().file, runs_.back().offset + begin);
    begin = 0;
  }
  ends_.push_back(static_cast<uint32_t>(begin + length));
}

void RangeTable::Append(const RangeTable& other) {
  for (Run run : other.runs_) {
    run.first += ends_.size();
    runs_.push_back(run);
  }
  ends_.insert(ends_.end(), other.ends_.begin(), other.ends_.end());
}

void RangeTable::ShrinkToFit() {
  runs_.shrink_to_fit();
  ends_.shrink_to_fit();
}

ByteRange RangeTable::operator[](uint64_t id) const {
  const Run& run = *(std::ranges::upper_bound(runs_, id, {}, &Run::first) - 1);
  const uint64_t begin = id == run.first ? 0 : ends_[id - 1];
  return {.file = run.file, .offset = run.offset + begin, .length = ends_[id] - begin};
}

uint64_t RangeTable::HashLengths() const {
  std::array<uint64_t, 512> lengths{};
  uint64_t hash = ends_.size();
  size_t run = 0;
  for (size_t begin = 0; begin < ends_.size(); begin += lengths.size()) {
    const size_t count = std::min(lengths.size(), ends_.size() - begin);
    for (size_t id = begin; id < begin + count; ++id) {
      while (run + 1 < runs_.size() && runs_[run + 1].first <= id) ++run;
      lengths[id - begin] = ends_[id] - (id == runs_[run].first ? 0 : ends_[id - 1]);
    }
    const auto bytes = std::as_bytes(std::span(lengths).first(count));
    hash = Hash64({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, hash);
  }
  return hash;
}

uint64_t RangeTable::memory_bytes() const {
  return runs_.capacity() * sizeof(Run) + ends_.capacity() * sizeof(uint32_t);
}

}  // namespace stoker
