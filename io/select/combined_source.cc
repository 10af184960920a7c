#include "io/select/combined_source.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/hash/hash.h"

namespace stoker {

CombinedSource::CombinedSource(std::string name,
                               std::vector<std::shared_ptr<const SampleSource>> sources,
                               std::shared_ptr<const SampleOrder> order)
    : name_(std::move(name)), classes_(sources.front()->classes()), order_(std::move(order)) {
  Part last;
  for (std::shared_ptr<const SampleSource>& source : sources) {
    if (source->classes() != classes_) classes_.clear();
    last = {.source = std::move(source),
            .begin = last.end,
            .end = last.end,
            .file_begin = last.file_end,
            .file_end = last.file_end};
    last.end += last.source->size();
    last.file_end += last.source->files();
    parts_.push_back(last);
    calls_ = std::max(calls_, last.source->calls());
    has_records_ = has_records_ || last.source->has_records();
    if (const ObjectVersions* const theirs = last.source->objects()) {
      if (!objects_) objects_.emplace();
      objects_->Add(*theirs);
    }
  }
}

const CombinedSource::Part& CombinedSource::PartOf(uint64_t id) const {
  return *std::ranges::upper_bound(parts_, id, {}, &Part::end);
}

Status CombinedSource::Load(uint64_t id, LoadedSample& loaded) const {
  const Part& part = PartOf(id);
  return part.source->Load(id - part.begin, loaded);
}

void CombinedSource::AddCalled(std::vector<const SampleSource*>& called) const {
  for (const Part& part : parts_) part.source->AddCalled(called);
}

Result<std::span<const uint8_t>> CombinedSource::Unpack(uint64_t id,
                                                        std::span<const uint8_t> record,
                                                        std::span<uint8_t> rows) const {
  const Part& part = PartOf(id);
  return part.source->Unpack(id - part.begin, record, rows);
}

ByteRange CombinedSource::RangeOf(uint64_t id) const {
  const Part& part = PartOf(id);
  ByteRange range = part.source->RangeOf(id - part.begin);
  range.file += static_cast<uint32_t>(part.file_begin);
  return range;
}

bool CombinedSource::has_row_ranges(uint64_t id) const {
  const Part& part = PartOf(id);
  return part.source->has_row_ranges(id - part.begin);
}

ByteRange CombinedSource::RangeOfRows(uint64_t id, int top, int bottom) const {
  const Part& part = PartOf(id);
  ByteRange range = part.source->RangeOfRows(id - part.begin, top, bottom);
  range.file += static_cast<uint32_t>(part.file_begin);
  return range;
}

void CombinedSource::PathOf(uint32_t file, std::string& path) const {
  const Part& part = *std::ranges::upper_bound(parts_, file, {}, &Part::file_end);
  part.source->PathOf(file - static_cast<uint32_t>(part.file_begin), path);
}

// Rows of one part that follow each other are copied together.
void CombinedSource::FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const {
  const size_t bytes = fields()[field].row_bytes();
  auto* to = static_cast<uint8_t*>(rows);
  std::array<uint64_t, 64> theirs{};
  while (!ids.empty()) {
    const Part& part = PartOf(ids.front());
    const auto is_in = [&part](uint64_t id) { return part.begin <= id && id < part.end; };
    size_t count = 0;
    for (; count < std::min(ids.size(), theirs.size()) && is_in(ids[count]); ++count) {
      theirs[count] = ids[count] - part.begin;
    }
    part.source->FixedRows(field, std::span(theirs).first(count), to);
    to += count * bytes;
    ids = ids.subspan(count);
  }
}

std::span<const uint8_t> CombinedSource::View(size_t field, uint64_t id) const {
  const Part& part = PartOf(id);
  return part.source->View(field, id - part.begin);
}

bool CombinedSource::may_have_crop_index() const {
  return std::ranges::any_of(parts_,
                             [](const Part& part) { return part.source->may_have_crop_index(); });
}

std::span<const uint8_t> CombinedSource::ReadCropIndex(uint64_t id, uint64_t most,
                                                       GrowingBuffer& memory) const {
  const Part& part = PartOf(id);
  return part.source->ReadCropIndex(id - part.begin, most, memory);
}

void CombinedSource::NameOf(uint64_t id, std::string& name) const {
  const Part& part = PartOf(id);
  part.source->NameOf(id - part.begin, name);
}

ImageFacts CombinedSource::FactsOf(uint64_t id) const {
  const Part& part = PartOf(id);
  return part.source->FactsOf(id - part.begin);
}

std::string CombinedSource::Warning() const {
  std::string all;
  for (const Part& part : parts_) {
    const std::string warning = part.source->Warning();
    if (!all.empty() && !warning.empty()) all += "; and ";
    all += warning;
  }
  return all;
}

SkippedFiles CombinedSource::Skipped() const {
  SkippedFiles all;
  for (const Part& part : parts_) all.Add(part.source->Skipped());
  return all;
}

uint64_t CombinedSource::memory_bytes() const {
  uint64_t bytes = sizeof(*this) + parts_.capacity() * sizeof(Part) + name_.capacity();
  for (const Part& part : parts_) bytes += part.source->memory_bytes();
  if (objects_) bytes += objects_->memory_bytes();
  return bytes + (order_ ? order_->memory_bytes() : 0);
}

uint64_t CombinedSource::Fingerprint() const {
  uint64_t all = Hash64(name_, order_ ? order_->Hash() : 0);
  for (const Part& part : parts_) {
    const uint64_t theirs = part.source->Fingerprint();
    if (theirs == 0) return 0;
    all = Hash64(std::to_string(theirs), all);
  }
  return all;
}

// Returns "combine(image_folder(photos/a) and 2 more)" or "weighted(image_folder(photos/a))".
std::string CombinedSource::Describe() const {
  const std::string others =
      parts_.size() == 1 ? "" : " and " + std::to_string(parts_.size() - 1) + " more";
  return name_ + "(" + parts_.front().source->Describe() + others + ")";
}

}  // namespace stoker
