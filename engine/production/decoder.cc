#include "engine/production/decoder.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/batch/batch_parts.h"
#include "core/result/try.h"
#include "core/time/core_time.h"
#include "core/time/stage_times.h"
#include "engine/memory/memory_plan.h"
#include "engine/production/producer_parts.h"
#include "io/source/field.h"

namespace stoker {

namespace {

// Precondition: rows are uint8 (height, width, 3).
ImageView ImageOf(const Field& field, std::span<const uint8_t> row) {
  ImageView view;
  view.size = {static_cast<int>(field.row_shape[1]), static_cast<int>(field.row_shape[0])};
  view.plane[0] = row.data();
  view.stride[0] = ptrdiff_t{3} * view.size.width;
  return view;
}

// Completes an error in an image, whose offset counts from the image's start. Where a file holds
// many images, the offset in the file says which one it is.
Error InFile(Error error, const SampleInFlight& sample) {
  const ReadRequest& read = sample.read;
  const bool is_part = read.length != kUnknownLength;
  if (error.offset || is_part) {
    error.offset = read.offset + sample.image_at + error.offset.value_or(0);
  }
  return error;
}

// Completes an error in reading a sample.
Error Unread(Error error) {
  if (error.code != Code::kNotFound) return error;
  error.advice += error.advice.empty() ? "Restore" : ". Otherwise restore";
  error.advice += " the file, or open the dataset again without it";
  return error;
}

std::vector<size_t> ColumnsOfFields(const SampleSource& source,
                                    std::span<const ColumnSpec> columns) {
  std::vector<size_t> of(source.fields().size());
  for (size_t field = 0; field < of.size(); ++field) {
    of[field] = ColumnOfField(source, field, columns);
  }
  return of;
}

// Returns the indices of the columns that a function adds. `map`: null: none.
std::vector<size_t> AddedBy(const MapCaller* map, std::span<const ColumnSpec> columns) {
  std::vector<size_t> added;
  if (map == nullptr) return added;
  for (const ColumnSpec& column : map->columns()) {
    const auto found = std::ranges::find(columns, column.name, &ColumnSpec::name);
    added.push_back(static_cast<size_t>(found - columns.begin()));
  }
  return added;
}

}  // namespace

Decoder::Decoder(const LoaderOptions& options, const Sampler& sampler, std::optional<Plan> plan,
                 std::optional<Mixer> mixer, const MapCaller* map, std::vector<ColumnSpec> columns,
                 SampleCache* cache, SamplesInFlight& samples, MemoryBudget& memory, Refuse refuse,
                 int workers)
    : options_(options),
      source_(*options.source),
      sampler_(sampler),
      plan_(std::move(plan)),
      mixer_(std::move(mixer)),
      map_(map != nullptr && map->calls() == 0 ? map : nullptr),
      columns_(std::move(columns)),
      fields_(source_.fields().size()),
      field_columns_(ColumnsOfFields(source_, columns_)),
      added_(AddedBy(map, columns_)),
      adds_labels_(AddsLabels(source_, plan_, map)),
      size_column_(SizeColumn(source_, plan_)),
      has_records_(source_.has_records()),
      cache_(cache),
      samples_(samples),
      refuse_(std::move(refuse)),
      counters_(static_cast<size_t>(workers)),
      paces_(static_cast<size_t>(workers)) {
  for (int i = 0; plan_ && i < workers; ++i) workspaces_.push_back(plan_->MakeWorkspace(memory));
  for (int i = 0; cache_ != nullptr && i < workers; ++i) packers_.emplace_back(&memory);
}

// Feeds the plan with a sample and others that are ready, two of them interleaved. The last one is
// alone for half its time, so a turn is long. It ends because other loaders have
// tasks, too: after kTurnNs but not before kLeast samples, and after kMost at the latest.
class Decoder::SampleQueue final : public ImageQueue {
 public:
  SampleQueue(Decoder& decoder, uint32_t first, int worker, Samples& samples)
      : decoder_(decoder),
        worker_(worker),
        samples_(samples),
        workspace_(decoder.workspace(worker)),
        counters_(decoder.counters(worker)),
        pace_(decoder.paces_[static_cast<size_t>(worker)]),
        next_(first),
        other_rows_(decoder.plan_->views() - 1) {}

  void Decode() { decoder_.plan_->ApplyAll(*this, workspace_, times_); }

  std::optional<EncodedImage> Next(GrowingBuffer& crop_index) override {
    while (const std::optional<uint32_t> index = Take()) {
      ++taken_;
      SampleInFlight& sample = decoder_.samples_[*index];
      if (!sample.read.status.ok()) {
        End(*index, Unread(std::move(sample.read.status).error()));
        continue;
      }
      if (sample.cached.state == CachedSample::State::kKept) {
        sample.image_at = 0;
        if (decoder_.cache_->Read(sample.read, sample.cached, sample.image)) {
          return Encoded(*index, crop_index);
        }
        samples_.Done(*index, {.kind = SampleOutcome::Kind::kReadAgain}, worker_);
        continue;
      }
      sample.image = {sample.read.buffer.data(), sample.read.size};
      if (decoder_.has_records_) {
        if (Status unpacked = Unpack(sample); !unpacked.ok()) {
          End(*index, std::move(unpacked));
          continue;
        }
      }
      if (decoder_.cache_ != nullptr) {
        decoder_.cache_->Pack(sample.read, sample.cached, sample.image, decoder_.packer(worker_));
      }
      return Encoded(*index, crop_index);
    }
    return std::nullopt;
  }

  void Done(uint32_t index, Status status) override {
    SampleInFlight& sample = decoder_.samples_[index];
    const bool is_file = sample.cached.has_bytes_of_file();
    if (!status.ok() && !decoder_.MustWait(sample, status)) {
      const bool was_part = is_file && TakeWholeRange(sample.read);
      if (!is_file || was_part) return ReadFromFile(index);
    }
    if (!status.ok()) status = InFile(std::move(status).error(), sample);
    End(index, std::move(status));
  }

 private:
  static constexpr int kLeast = 8, kMost = 32;
  static constexpr uint64_t kTurnNs = 8'000'000;
  static constexpr uint64_t kSmallIndexBytes = 16 << 10;  // worth its memory anyway

  // Takes a sample that is finished, or could not be read.
  void End(uint32_t index, Status status) {
    SampleInFlight& sample = decoder_.samples_[index];
    if (decoder_.MustWait(sample, status)) {
      pace_.End(sample.path.times(), NowNanoseconds());
      return samples_.Done(index, {SampleOutcome::Kind::kNoMemory, 0, std::move(status)}, worker_);
    }
    const RowClaim& claim = sample.claim;
    claim.slot->sample_ids[claim.row] = sample.read.sample;
    const bool decoded = status.ok();
    if (decoded) status = WriteRest(sample);
    if (decoder_.cache_ != nullptr && status.ok()) {
      decoder_.cache_->Keep(sample.cached, sample.image);
    }
    const uint64_t work = Count(sample.read.size);
    pace_.End(sample.path.times(), since_);
    if (status.ok()) {
      samples_.Done(index, {SampleOutcome::Kind::kRow, work}, worker_);
    } else {
      Error error = NamedError(decoder_.source_, sample.read.sample,
                               std::move(status).error().WithFile(sample.read.path));
      const SampleOutcome::Kind kind =
          decoded ? SampleOutcome::Kind::kFailed : SampleOutcome::Kind::kUnusable;
      samples_.Done(index, {kind, work, std::move(error)}, worker_);
    }
    if (decoder_.mixer_) since_ = NowNanoseconds();  // time spent on mixing is counted already
  }

  // Makes the request one for all of the sample, and returns whether it was for a part. An index
  // that knows another orientation than the image has leads to parts without the crop's rows.
  bool TakeWholeRange(ReadRequest& read) const {
    const ByteRange all = decoder_.source_.RangeOf(read.sample);
    if (read.offset == all.offset && read.length == all.length) return false;
    read.offset = all.offset;
    read.length = all.length;
    return true;
  }

  // Gives back a sample whose image in the cache, or in a part of the file, has an error: that of
  // the file counts.
  void ReadFromFile(uint32_t index) {
    SampleInFlight& sample = decoder_.samples_[index];
    sample.cached.state = CachedSample::State::kNone;
    pace_.End(sample.path.times(), NowNanoseconds());
    samples_.Done(index, {.kind = SampleOutcome::Kind::kReadAgain}, worker_);
  }

  // Writes the other columns of the row, then calls the program's function of rows.
  Status WriteRest(const SampleInFlight& sample) {
    TRY(decoder_.WriteFields(sample.claim, sample.read.rows));
    return decoder_.MapRows(sample.claim, times_);
  }

  std::optional<uint32_t> Take() {
    if (next_) return std::exchange(next_, std::nullopt);
    const bool is_long = taken_ >= kLeast && NowNanoseconds() - begun_ >= kTurnNs;
    return is_long || taken_ >= kMost ? std::nullopt : samples_.TakeReady();
  }

  // Replaces the sample's image, which is its record, by the image in the record.
  Status Unpack(SampleInFlight& sample) const {
    const SampleSource& source = decoder_.source_;
    const uint8_t* const record = sample.image.data();
    sample.read.rows.assign(LoadedBytes(source.fields()), 0);
    ASSIGN_OR_RETURN(sample.image,
                     source.Unpack(sample.read.sample, sample.image, sample.read.rows));
    sample.image_at = static_cast<size_t>(sample.image.data() - record);
    return {};
  }

  // An index larger than its photograph is not worth its memory, regardless of its content. A
  // worker decodes a sample that waited for memory without one, so that what it needs depends on
  // its image alone.
  std::span<const uint8_t> ReadCropIndex(const SampleInFlight& sample, bool for_device,
                                         GrowingBuffer& memory) const {
    if (!sample.cached.has_bytes_of_file() || (sample.work.alone() && !for_device)) return {};
    const uint64_t most = std::max<uint64_t>(sample.read.size, kSmallIndexBytes);
    return decoder_.source_.ReadCropIndex(sample.read.sample, most, memory);
  }

  EncodedImage Encoded(uint32_t index, GrowingBuffer& crop_index) {
    SampleInFlight& sample = decoder_.samples_[index];
    pace_.Begin(sample.path.times(), NowNanoseconds());
    Slot& slot = *sample.claim.slot;
    const uint32_t row = sample.claim.row;
    CropRegion* const crops = decoder_.CropsOf(slot, row);
    return {index,
            sample.image,
            sample.draw,
            slot.Row(0, row),
            ReadCropIndex(sample, /*for_device=*/crops != nullptr, crop_index),
            decoder_.WorkOf(slot, row),
            decoder_.SizeAt(slot, row),
            decoder_.OtherRows(slot, row, other_rows_),
            crops,
            decoder_.CropAt(slot, row)};
  }

  // Must be called before the sample's batch can be delivered. Returns the nanoseconds since the
  // last count.
  uint64_t Count(uint64_t bytes) {
    const uint64_t now = NowNanoseconds();
    const uint64_t work = now - std::exchange(since_, now);
    counters_.Add(1, bytes, std::exchange(times_, {}), work);
    counters_.SetPaths(PathsOf(workspace_));
    return work;
  }

  Decoder& decoder_;
  const int worker_;
  Samples& samples_;
  Workspace& workspace_;
  WorkerCounters& counters_;
  WorkerPace& pace_;
  std::optional<uint32_t> next_;
  std::vector<void*> other_rows_;  // of the sample that Next returned
  int taken_ = 0;
  StageTimes times_;  // measured since since_, not yet counted
  const uint64_t begun_ = NowNanoseconds();
  uint64_t since_ = begun_;
};

void Decoder::Turn(uint32_t first, int worker, Samples& samples) {
  std::optional<CoreClock> clock;
  if (counters(worker).MayClock()) clock.emplace();
  if (source_.in_memory()) {
    Copy(first, worker, samples);
  } else {
    Decode(first, worker, samples);
  }
  if (!clock) return;
  if (const std::optional<CoreTime> time = clock->Read()) counters(worker).AddClocked(*time);
}

void Decoder::Decode(uint32_t first, int worker, Samples& samples) {
  SampleQueue(*this, first, worker, samples).Decode();
}

void Decoder::Copy(uint32_t run, int worker, Samples& samples) {
  const uint64_t before = NowNanoseconds();
  WorkerPace& pace = paces_[static_cast<size_t>(worker)];
  pace.Begin(samples_[run].path.times(), before);
  const RowClaim claim = samples_[run].claim;
  StageTimes times;
  Status status = FillRun(claim, worker, times);
  const uint64_t after = NowNanoseconds();
  pace.End(samples_[run].path.times(), after);
  if (MustWait(samples_[run], status)) {
    return samples.Done(run, {SampleOutcome::Kind::kNoMemory, 0, std::move(status)}, worker);
  }
  counters(worker).Add(claim.rows, 0, times, after - before);
  const SampleOutcome::Kind kind =
      status.ok() ? SampleOutcome::Kind::kRow : SampleOutcome::Kind::kFailed;
  samples.Done(run, {kind, after - before, std::move(status)}, worker);
}

// The error of a sample that has waited already becomes final, and says what would help.
bool Decoder::MustWait(const SampleInFlight& sample, Status& status) const {
  if (status.ok() || status.error().wanted_bytes == 0) return false;
  if (!sample.work.alone()) return true;
  status = refuse_(status.error());
  return false;
}

// Images are transformed if there is a plan.
Status Decoder::FillRun(const RowClaim& claim, int worker, StageTimes& times) {
  Slot& slot = *claim.slot;
  const Field& image = source_.fields()[0];
  const std::span<uint64_t> ids = std::span(slot.sample_ids).subspan(claim.row, claim.rows);
  std::vector<void*> other_rows(plan_ ? plan_->views() - 1 : 0);
  uint32_t row = claim.row;
  for (uint64_t& id : ids) {
    const SamplerEntry entry = sampler_.At(slot.name(), row);
    id = entry.sample;
    if (plan_) {
      TRY(plan_->Apply(ImageOf(image, source_.View(0, id)),
                       {options_.seed, slot.epoch, entry.position}, workspace(worker),
                       slot.Row(0, row), times, WorkOf(slot, row), SizeAt(slot, row),
                       OtherRows(slot, row, other_rows)));
    }
    ++row;
  }
  TRY(WriteFields(claim, {}));
  return MapRows(claim, times);
}

// Writes all columns but the one that the plan writes. `loaded`: the rows of the kLoaded fields of
// the claim's only row; empty if it failed. Precondition: the rows' ids are known.
Status Decoder::WriteFields(const RowClaim& claim, std::span<const uint8_t> loaded) const {
  Slot& slot = *claim.slot;
  const auto ids = std::span<const uint64_t>(slot.sample_ids).subspan(claim.row, claim.rows);
  for (size_t field = plan_ ? 1 : 0; field < fields_; ++field) {
    const size_t column = field_columns_[field];
    const bool labels = mixer_ && field == mixer_->label_column();
    if (const size_t bytes = LoadedBytes(source_.fields()[field]); bytes != 0) {
      if (loaded.empty()) continue;
      if (labels) {
        TRY(mixer_->WriteLabel(loaded.data(), ids[0], slot, claim.row));
      } else if (IsString(source_.fields()[field].dtype)) {
        std::string_view string;
        std::memcpy(&string, loaded.data(), bytes);
        TRY(slot.SetString(column, claim.row, string));
      } else {
        std::memcpy(slot.Row(column, claim.row), loaded.data(), bytes);
      }
      loaded = loaded.subspan(bytes);
    } else if (labels) {
      TRY(mixer_->WriteLabels(source_, ids, slot, claim.row));
    } else {
      source_.FixedRows(field, ids, slot.Row(column, claim.row));
    }
  }
  if (adds_labels_) {
    std::fill_n(static_cast<int64_t*>(slot.Row(1, claim.row)), claim.rows, kNoLabel);
  }
  for (const size_t column : added_) {
    std::memset(slot.Row(column, claim.row), 0, columns_[column].row_bytes() * claim.rows);
  }
  return {};
}

// Calls the program's function, if it has one for rows.
Status Decoder::MapRows(const RowClaim& claim, StageTimes& times) const {
  if (map_ == nullptr) return {};
  const Slot& slot = *claim.slot;
  const uint64_t before = NowNanoseconds();
  Status status;
  for (uint32_t row = claim.row; row < claim.row + claim.rows && status.ok(); ++row) {
    const uint64_t position = sampler_.PositionOf(slot.name(), row);
    status = map_->MapRow(MappedRow(columns_, slot, row, position, options_.seed));
  }
  times.map_ns += NowNanoseconds() - before;
  return status;
}

// Fills `rows`, one for each view after the first, with the addresses of a row's views, and returns
// them.
std::span<void* const> Decoder::OtherRows(const Slot& slot, uint32_t row,
                                          std::vector<void*>& rows) const {
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = slot.Row(fields_ + i, row);
  return rows;
}

// Returns the address for a row's deferred operations; null if there are none.
void* Decoder::WorkOf(const Slot& slot, uint32_t row) const {
  return plan_->work_bytes() == 0 ? nullptr : slot.Row(slot.columns.size() - 1, row);
}

// Whether the row is mixed with one of another device's part.
bool Decoder::MixesAcrossParts(const Slot& slot, int64_t row) const {
  const auto parts = static_cast<int64_t>(slot.crops.size());
  return mixer_ && parts > 1 &&
         row + 1 == FirstRowOfPart(slot.rows, PartOfRow(slot.rows, row, parts) + 1, parts);
}

// Returns where the crop of a row goes, or null if a worker must decode it.
CropRegion* Decoder::CropsOf(Slot& slot, uint32_t row) const {
  if (slot.crops.empty() || MixesAcrossParts(slot, row)) return nullptr;
  return &slot.crops[static_cast<size_t>(
      PartOfRow(slot.rows, row, static_cast<int64_t>(slot.crops.size())))];
}

// Returns the address for the place of a row's crop; null if the workers decode all rows.
uint64_t* Decoder::CropAt(const Slot& slot, uint32_t row) const {
  if (!plan_->options().decode_on_device) return nullptr;
  return static_cast<uint64_t*>(slot.Row(slot.columns.size() - 2, row));
}

// Returns the address for the size of a row's image; null if all images have the row's.
int32_t* Decoder::SizeAt(const Slot& slot, uint32_t row) const {
  return size_column_ ? static_cast<int32_t*>(slot.Row(*size_column_, row)) : nullptr;
}

uint64_t Decoder::Mix(Slot& slot, int worker) {
  const uint64_t before = NowNanoseconds();
  mixer_->Mix(slot, {options_.seed, slot.epoch, slot.position});
  const uint64_t spent = NowNanoseconds() - before;
  counters(worker).Add(0, 0, {.mix_ns = spent}, spent);
  return spent;
}

void Decoder::FreeWorkspaces() {
  for (const auto& workspace : workspaces_) FreeMemoryOf(*workspace);
  for (JpegPacker& packer : packers_) packer.FreeMemory();
}

// Memory that has grown is kept while it is plentiful; otherwise a few large files would hold it.
void Decoder::Trim(int worker) {
  if (plan_ && MemoryOf(workspace(worker)) > kWorkspaceBytes + plan_->extra_bytes()) {
    FreeMemoryOf(workspace(worker));
  }
  if (cache_ == nullptr || packer(worker).memory_bytes() <= kPackerBytes) return;
  packer(worker).FreeMemory();
}

void Decoder::AddTo(LoaderStats& stats) const {
  for (const WorkerCounters& counters : counters_) counters.AddTo(stats);
}

}  // namespace stoker
