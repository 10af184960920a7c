#include "io/select/selected_source.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/plural.h"

namespace stoker {

SelectedSource::SelectedSource(std::string name,
                               std::vector<std::shared_ptr<const SampleSource>> sources,
                               std::shared_ptr<const SampleOrder> order)
    : name_(std::move(name)), order_(std::move(order)) {
  const bool several = sources.size() > 1;
  Part last;
  for (std::shared_ptr<const SampleSource>& source : sources) {
    last = {.source = std::move(source),
            .begin = last.end,
            .end = last.end,
            .file_begin = last.file_end,
            .file_end = last.file_end};
    last.end += last.source->size();
    last.file_end += last.source->files();
    parts_.push_back(last);
    calls_ = std::max(calls_, last.source->calls());
    max_objects_ = std::max(max_objects_, last.source->max_objects());
    has_records_ = has_records_ || last.source->has_records();
    same_classes_ = same_classes_ && last.source->classes() == first()->classes();
    const ObjectVersions* const theirs = several ? last.source->objects() : nullptr;
    if (theirs == nullptr) continue;
    if (!objects_) objects_.emplace();
    objects_->Add(*theirs);
  }
  if (!first()->varies()) return;
  fields_.assign(first()->fields().begin(), first()->fields().end());
  for (const Part& part : parts_) {
    fields_[0].count = std::max(fields_[0].count, part.source->fields()[0].count);
  }
}

SelectedSource::SelectedSource(std::shared_ptr<const SampleSource> source, IdList ids)
    : name_("subset"),
      parts_{{.source = std::move(source)}},
      calls_(first()->calls()),
      has_records_(first()->has_records()),
      ids_(std::move(ids)),
      ids_hash_(ids_->Hash()) {
  parts_.front().end = first()->size();
  parts_.front().file_end = first()->files();
  max_objects_ = MostObjects();
  if (!first()->varies()) return;
  fields_.assign(first()->fields().begin(), first()->fields().end());
  fields_[0].count = 0;
  for (uint64_t i = 0; i < ids_->size(); ++i) {
    const auto images = static_cast<uint32_t>(first()->PiecesOf((*ids_)[i]));
    fields_[0].count = std::max(fields_[0].count, images);
  }
}

SelectedSource::SelectedSource(std::shared_ptr<const SampleSource> source, ImageNumbers numbers,
                               std::vector<ImageFacts> facts, std::string warning)
    : name_("sized"),
      parts_{{.source = std::move(source)}},
      calls_(first()->calls()),
      max_objects_(first()->max_objects()),
      has_records_(first()->has_records()),
      numbers_(std::move(numbers)),
      facts_(std::move(facts)),
      warning_(std::move(warning)) {
  parts_.front().end = first()->size();
  parts_.front().file_end = first()->files();
}

// Returns the most objects of a selected sample, which may be fewer than the source's.
uint32_t SelectedSource::MostObjects() const {
  const auto found = std::ranges::find_if(fields(), &Field::is_of_objects);
  if (found == fields().end()) return 0;
  const auto field = static_cast<size_t>(found - fields().begin());
  size_t most = 0;
  for (uint64_t id = 0; id < size(); ++id) most = std::max(most, View(field, id).size());
  return static_cast<uint32_t>(most / found->row_bytes());
}

ByteRange SelectedSource::Part::WithFileOfSource(ByteRange range) const {
  range.file += static_cast<uint32_t>(file_begin);
  return range;
}

SelectedSource::Location SelectedSource::Find(uint64_t id) const {
  if (ids_) return {.part = parts_.front(), .id = (*ids_)[id]};
  const Part& part = *std::ranges::upper_bound(parts_, id, {}, &Part::end);
  return {.part = part, .id = id - part.begin};
}

Status SelectedSource::Load(uint64_t id, LoadedSample& loaded) const {
  const Location at = Find(id);
  return at.source().Load(at.id, loaded);
}

void SelectedSource::AddCalled(std::vector<const SampleSource*>& called) const {
  for (const Part& part : parts_) part.source->AddCalled(called);
}

Result<std::span<const uint8_t>> SelectedSource::Unpack(uint64_t id,
                                                        std::span<const uint8_t> record,
                                                        std::span<uint8_t> rows) const {
  const Location at = Find(id);
  return at.source().Unpack(at.id, record, rows);
}

Result<std::span<const uint8_t>> SelectedSource::UnpackPiece(
    uint64_t id, size_t piece, std::span<const uint8_t> record) const {
  const Location at = Find(id);
  return at.source().UnpackPiece(at.id, piece, record);
}

ByteRange SelectedSource::RangeOf(uint64_t id) const {
  const Location at = Find(id);
  return at.part.WithFileOfSource(at.source().RangeOf(at.id));
}

ByteRange SelectedSource::RangeOfPiece(uint64_t id, size_t piece) const {
  const Location at = Find(id);
  return at.part.WithFileOfSource(at.source().RangeOfPiece(at.id, piece));
}

bool SelectedSource::has_row_ranges(uint64_t id) const {
  const Location at = Find(id);
  // Rows are those of the height that the source itself knows.
  const bool may_have = facts_.empty() || at.source().FactsOf(at.id).height != 0;
  return may_have && at.source().has_row_ranges(at.id);
}

ByteRange SelectedSource::RangeOfRows(uint64_t id, int top, int bottom) const {
  const Location at = Find(id);
  return at.part.WithFileOfSource(at.source().RangeOfRows(at.id, top, bottom));
}

void SelectedSource::PathOf(uint32_t file, std::string& path) const {
  const Part& part = *std::ranges::upper_bound(parts_, file, {}, &Part::file_end);
  part.source->PathOf(file - static_cast<uint32_t>(part.file_begin), path);
}

const ObjectVersions* SelectedSource::objects() const {
  if (parts_.size() == 1) return first()->objects();
  return objects_ ? &*objects_ : nullptr;
}

// Rows of one part that follow each other are copied together.
void SelectedSource::FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const {
  const size_t bytes = fields()[field].row_bytes();
  auto* to = static_cast<uint8_t*>(rows);
  std::array<uint64_t, 64> theirs{};
  while (!ids.empty()) {
    const Part& part = Find(ids.front()).part;
    size_t count = 0;
    for (; count < std::min(ids.size(), theirs.size()); ++count) {
      const Location at = Find(ids[count]);
      if (&at.part != &part) break;
      theirs[count] = at.id;
    }
    part.source->FixedRows(field, std::span(theirs).first(count), to);
    to += count * bytes;
    ids = ids.subspan(count);
  }
}

std::span<const uint8_t> SelectedSource::View(size_t field, uint64_t id) const {
  const Location at = Find(id);
  return at.source().View(field, at.id);
}

bool SelectedSource::may_have_crop_index() const {
  return std::ranges::any_of(parts_,
                             [](const Part& part) { return part.source->may_have_crop_index(); });
}

std::span<const uint8_t> SelectedSource::ReadCropIndex(uint64_t id, uint64_t most,
                                                       GrowingBuffer& memory) const {
  const Location at = Find(id);
  return at.source().ReadCropIndex(at.id, most, memory);
}

void SelectedSource::NameOf(uint64_t id, std::string& name) const {
  const Location at = Find(id);
  at.source().NameOf(at.id, name);
}

void SelectedSource::NameOfPiece(uint64_t id, size_t piece, std::string& name) const {
  const Location at = Find(id);
  at.source().NameOfPiece(at.id, piece, name);
}

ImageFacts SelectedSource::FactsOf(uint64_t id) const {
  return PiecesOf(id) == 0 ? ImageFacts() : FactsOfPiece(id, 0);
}

ImageFacts SelectedSource::FactsOfPiece(uint64_t id, size_t piece) const {
  const Location at = Find(id);
  const ImageFacts known = at.source().FactsOfPiece(at.id, piece);
  return facts_.empty() || known.width != 0 ? known : facts_[numbers_.Begin(id) + piece];
}

size_t SelectedSource::PiecesOf(uint64_t id) const {
  const Location at = Find(id);
  return at.source().PiecesOf(at.id);
}

Status SelectedSource::CheckViewed(uint64_t id, ImageSize viewed) const {
  const Location at = Find(id);
  return at.source().CheckViewed(at.id, viewed);
}

std::string SelectedSource::Warning() const {
  std::string all;
  for (const Part& part : parts_) {
    const std::string warning = part.source->Warning();
    if (!all.empty() && !warning.empty()) all += "; and ";
    all += warning;
  }
  if (!all.empty() && !warning_.empty()) all += "; and ";
  return all + warning_;
}

SkippedFiles SelectedSource::Skipped() const {
  SkippedFiles all;
  for (const Part& part : parts_) all.Add(part.source->Skipped());
  return all;
}

const std::vector<std::string>& SelectedSource::classes() const {
  return same_classes_ ? first()->classes() : no_classes_;
}

uint64_t SelectedSource::memory_bytes() const {
  uint64_t bytes = sizeof(*this) + parts_.capacity() * sizeof(Part) + name_.capacity();
  for (const Part& part : parts_) bytes += part.source->memory_bytes();
  if (objects_) bytes += objects_->memory_bytes();
  if (ids_) bytes += ids_->memory_bytes();
  bytes += numbers_.memory_bytes() + facts_.capacity() * sizeof(ImageFacts) + warning_.capacity();
  return bytes + (order_ ? order_->memory_bytes() : 0);
}

uint64_t SelectedSource::Fingerprint() const {
  if (!facts_.empty()) return first()->Fingerprint();  // the samples are the same
  uint64_t all = ids_ ? ids_hash_ : Hash64(name_, order_ ? order_->Hash() : 0);
  for (const Part& part : parts_) {
    const uint64_t theirs = part.source->Fingerprint();
    if (theirs == 0) return 0;
    all = Hash64(std::to_string(theirs), all);
  }
  return all;
}

// Returns "combine(image_folder(photos/a) and 2 more)", "weighted(image_folder(photos/a))" or
// "subset(image_folder(photos/a), 80 of 100 samples)".
std::string SelectedSource::Describe() const {
  std::string rest;
  if (parts_.size() > 1) rest = " and " + std::to_string(parts_.size() - 1) + " more";
  if (ids_) {
    const uint64_t all = parts_.front().end;
    rest = ", " + std::to_string(size()) + " of " + std::to_string(all) +
           Plural(all, " sample", " samples");
  }
  return name_ + "(" + first()->Describe() + rest + ")";
}

}  // namespace stoker
