#include "engine/production/decoder.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "core/time/core_time.h"
#include "core/time/stage_times.h"
#include "engine/memory/memory_plan.h"
#include "io/source/field.h"
#include "transforms/decode/image_info.h"
#include "transforms/plan/plan_run.h"

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

// Completes an error in a piece, whose offset counts from the image's start. Where a file holds
// many images, the offset in the file says which one it is.
Error InFile(Error error, const SampleInFlight& sample, uint32_t piece) {
  const ReadRequest& read = sample.read_of(piece);
  const bool is_part = read.length != kUnknownLength;
  const size_t image_at = piece == 0 ? sample.image_at : sample.other_images_at[piece - 1];
  if (error.offset || is_part) error.offset = read.offset + image_at + error.offset.value_or(0);
  return error;
}

// Completes an error in reading a sample.
Error Unread(Error error) {
  if (error.code != Code::kNotFound) return error;
  error.advice += error.advice.empty() ? "Restore" : ". Otherwise restore";
  error.advice += " the file, or open the dataset again without it";
  return error;
}

bool HasObjects(const SampleSource& source) {
  return std::ranges::any_of(source.fields(), [](const Field& field) {
    return field.is_of_objects() || field.is_drawn();
  });
}

bool IsFinal(const Status& status) { return !status.ok() && status.error().wanted_bytes == 0; }

// Returns, by piece, the one whose size it must have: that of the source, unless the batch has
// columns that describe the first image for all of them.
std::vector<uint32_t> SizesToMatch(const SampleSource& source, const std::optional<Plan>& plan) {
  const bool all_alike = plan && (plan->pads() || plan->options().geometry);
  std::vector<uint32_t> of(source.pieces());
  for (uint32_t piece = 1; piece < of.size(); ++piece) {
    of[piece] = all_alike ? 0 : static_cast<uint32_t>(source.PieceOfSameSize(piece));
  }
  return of;
}

// Gives an error to each piece whose size is not that of the one in `first`, by piece of a sample.
// An error that memory could cure does not hide it.
void CompareSizes(SampleInFlight& sample, std::span<const uint32_t> first,
                  const SampleSource& source) {
  for (uint32_t piece = 1; piece < sample.pieces; ++piece) {
    const uint32_t of_sample = piece % static_cast<uint32_t>(first.size());
    const uint32_t like = piece - of_sample + first[of_sample];
    const ImageSize size = sample.viewed[piece], wanted = sample.viewed[like];
    const bool are_known = size.width != 0 && wanted.width != 0;
    Status& status = sample.other_reads[piece - 1].status;
    if (!are_known || size == wanted || IsFinal(status)) continue;
    const ReadRequest& read = sample.read_of(like);
    status = SizeMismatch(size, wanted,
                          DescribeSizedImage(source, read.sample, first[of_sample], read.path));
  }
}

// Returns the piece whose error is that of the sample; 0 if there is none.
uint32_t PieceThatFailed(const SampleInFlight& sample) {
  std::optional<uint32_t> failed;
  for (uint32_t piece = 0; piece < sample.pieces; ++piece) {
    const Status& status = sample.read_of(piece).status;
    if (IsFinal(status)) return piece;
    if (!status.ok() && !failed) failed = piece;
  }
  return failed.value_or(0);
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
      columns_(options, sampler, plan_, mixer_, map, std::move(columns)),
      has_records_(source_.has_records()),
      has_objects_(HasObjects(source_)),
      sizes_to_match_(SizesToMatch(source_, plan_)),
      pieces_(static_cast<uint32_t>(std::max<size_t>(source_.pieces(), 1))),
      cache_(cache),
      samples_(samples),
      refuse_(std::move(refuse)),
      counters_(static_cast<size_t>(workers)),
      paces_(static_cast<size_t>(workers)) {
  if (options.processor != nullptr) processor_.emplace(options, memory, workers);
  for (int i = 0; plan_ && i < workers; ++i) workspaces_.push_back(plan_->MakeWorkspace(memory));
  for (int i = 0; cache_ != nullptr && i < workers; ++i) {
    packers_.emplace_back(&memory, options.limits);
  }
}

// Decodes a sample and others that are ready, two of their pieces interleaved. The last one is
// alone for half its time, so a turn is long. It ends because other loaders have tasks, too: after
// kTurnNs but not before kLeast samples, and after kMost at the latest.
class Decoder::DecodingTurn {
 public:
  DecodingTurn(Decoder& decoder, uint32_t first, int worker, Samples& samples)
      : decoder_(decoder),
        worker_(worker),
        samples_(samples),
        counters_(decoder.counters(worker)),
        pace_(decoder.paces_[static_cast<size_t>(worker)]),
        next_(first) {}

  void Run() {
    if (decoder_.processor_) return RunProcessor();
    PlanRun run(*decoder_.plan_, decoder_.workspace(worker_), times_);
    for (Fill(run); run.busy(); Fill(run)) {
      if (std::optional<FinishedRows> rows = run.Advance()) {
        Finish(*std::move(rows));
        run.SkipTime();
      }
    }
  }

 private:
  static constexpr int kLeast = 8, kMost = 32;
  static constexpr uint64_t kTurnNs = 8'000'000;
  static constexpr uint64_t kSmallIndexBytes = 16 << 10;  // worth its memory anyway

  struct Piece {
    uint32_t index = 0;  // of its sample
    uint32_t piece = 0;
  };

  // Makes the rows of samples one after the other.
  void RunProcessor() {
    GrowingBuffer no_index;
    while (const std::optional<EncodedImage> image = Pull(/*busy=*/false, no_index)) {
      const SampleInFlight& sample = decoder_.samples_[image->tag];
      const uint64_t begun = NowNanoseconds();
      Status written;
      if (image->piece == 0) decoder_.processor_->Begin(sample.claim);
      if (sample.has_image) {
        written = decoder_.processor_->Write(sample.claim, sample.read.sample, *image, worker_);
      }
      times_.decode_ns += NowNanoseconds() - begun;
      Finish({.tag = image->tag,
              .piece = image->piece,
              .failed = image->piece,
              .viewed = {},
              .status = std::move(written)});
    }
  }

  void Fill(PlanRun& run) {
    while (run.has_room()) {
      const std::optional<EncodedImage> image = Pull(run.busy(), run.crop_index());
      if (!image) return;
      run.Begin(*image);
    }
  }

  // Ends samples that cannot be decoded, and returns the next piece that can. `busy`: others are
  // being decoded.
  std::optional<EncodedImage> Pull(bool busy, GrowingBuffer& crop_index) {
    while (further_) {
      // A sample that waited for memory needs the least if its pieces are not interleaved.
      if (busy && decoder_.samples_[further_->index].work.alone()) return std::nullopt;
      if (std::optional<EncodedImage> piece = PullFurther(crop_index)) return piece;
    }
    while (const std::optional<uint32_t> index = Take()) {
      ++taken_;
      SampleInFlight& sample = decoder_.samples_[*index];
      if (!sample.read.status.ok()) {
        End(*index, 0, Unread(std::move(sample.read.status).error()));
        continue;
      }
      if (sample.cached.state == CachedSample::State::kKept) {
        sample.image_at = 0;
        if (decoder_.cache_->Read(sample.read, sample.cached, sample.image)) {
          if (auto image = Encoded(*index, crop_index)) return image;
          continue;
        }
        samples_.Done(*index, {.kind = SampleOutcome::Kind::kReadAgain}, worker_);
        continue;
      }
      sample.image = {sample.read.buffer.data(), sample.read.size};
      if (decoder_.has_records_) {
        if (Status unpacked = Unpack(sample.read, 0, sample.image, sample.image_at);
            !unpacked.ok()) {
          End(*index, 0, std::move(unpacked));
          continue;
        }
      }
      if (decoder_.cache_ != nullptr) {
        decoder_.cache_->Pack(sample.read, sample.cached, sample.image, decoder_.packer(worker_));
      }
      std::optional<EncodedImage> image = Encoded(*index, crop_index);
      if (!image) continue;
      if (!sample.other_reads.empty()) BeginPieces(*index);
      return image;
    }
    return std::nullopt;
  }

  // Lets the further pieces of a sample follow its first one.
  void BeginPieces(uint32_t index) {
    SampleInFlight& sample = decoder_.samples_[index];
    sample.unfinished = sample.pieces;
    if (sample.pieces != 1) further_ = {.index = index, .piece = 1};
  }

  // Returns the next piece of the sample that was begun last, unless it could not be read or
  // unpacked.
  std::optional<EncodedImage> PullFurther(GrowingBuffer& crop_index) {
    const auto [index, piece] = *std::exchange(further_, std::nullopt);
    SampleInFlight& sample = decoder_.samples_[index];
    if (piece + 1 < sample.pieces) further_ = {.index = index, .piece = piece + 1};
    ReadRequest& read = sample.read_of(piece);
    if (!read.status.ok()) {
      FinishPiece(index, piece, {}, Unread(std::move(read.status).error()));
      return std::nullopt;
    }
    const uint32_t of_sample = piece % decoder_.pieces_, of = piece / decoder_.pieces_;
    EncodedImage image{
        .tag = index, .piece = piece, .bytes = {read.buffer.data(), read.size}, .key = sample.draw};
    ++taken_;
    image.key.part = sample.samples.parts[of].part;
    if (Status begun = BeginFurther(sample, read, of_sample, of, image); !begun.ok()) {
      FinishPiece(index, piece, {}, std::move(begun));
      return std::nullopt;
    }
    if (of_sample == 0) image.crop_index = ReadCropIndex(sample, read, false, crop_index);
    return image;
  }

  // Finds the image in its record, and sets where its row goes. `of_sample`: the piece's number in
  // its sample, which is the row's sample `of`.
  Status BeginFurther(SampleInFlight& sample, ReadRequest& read, uint32_t of_sample, uint32_t of,
                      EncodedImage& image) {
    const RowClaim& claim = sample.claim;
    if (decoder_.has_records_) {
      TRY(Unpack(read, of_sample, image.bytes, sample.other_images_at[image.piece - 1]));
    }
    if (decoder_.processor_) return {};
    if (of == 0 || of_sample != 0) {
      image.to = decoder_.columns_.RowsOfPiece(*claim.slot, claim.row, of_sample, buffers_);
      return {};
    }
    ASSIGN_OR_RETURN(image.to,
                     decoder_.columns_.RowsOfPart(*claim.slot, claim.row, read.sample, buffers_));
    return {};
  }

  void Finish(FinishedRows rows) {
    const SampleInFlight& sample = decoder_.samples_[rows.tag];
    if (decoder_.has_objects_ && rows.status.ok() && rows.piece % decoder_.pieces_ == 0) {
      const uint64_t id = sample.read_of(rows.piece).sample;
      rows.status = decoder_.source_.CheckViewed(id, rows.viewed);
    }
    if (!rows.status.ok()) {
      rows.status = InFile(std::move(rows.status).error(), sample, rows.failed);
    }
    if (sample.other_reads.empty()) return FinishSample(rows.tag, 0, std::move(rows.status));
    if (rows.failed != rows.piece) {  // which was finished without an error
      decoder_.samples_[rows.tag].read_of(rows.failed).status = std::exchange(rows.status, {});
    }
    FinishPiece(rows.tag, rows.piece, rows.viewed, std::move(rows.status));
  }

  // Finishes the sample after the last one of its pieces.
  void FinishPiece(uint32_t index, uint32_t piece, ImageSize viewed, Status status) {
    SampleInFlight& sample = decoder_.samples_[index];
    sample.viewed[piece] = viewed;
    sample.read_of(piece).status = std::move(status);
    if (--sample.unfinished != 0) return;
    CompareSizes(sample, decoder_.sizes_to_match_, decoder_.source_);
    const uint32_t failed = PieceThatFailed(sample);
    FinishSample(index, failed, std::move(sample.read_of(failed).status));
  }

  // Ends a sample whose rows are finished, or gives it back. `piece`: the one with the error.
  void FinishSample(uint32_t index, uint32_t piece, Status status) {
    SampleInFlight& sample = decoder_.samples_[index];
    const bool is_file = sample.cached.has_bytes_of_file();
    if (!status.ok() && !decoder_.MustWait(sample, status)) {
      const bool was_part = is_file && TakeWholeRange(sample, piece);
      if (!is_file || was_part) return ReadFromFile(index);
    }
    End(index, piece, std::move(status));
  }

  // Takes a sample that is finished, or could not be read. `piece`: the one with the error.
  void End(uint32_t index, uint32_t piece, Status status) {
    SampleInFlight& sample = decoder_.samples_[index];
    sample.failed = piece;
    if (decoder_.MustWait(sample, status)) {
      pace_.End(sample.path.times(), NowNanoseconds());
      return samples_.Done(index, {SampleOutcome::Kind::kNoMemory, 0, std::move(status)}, worker_);
    }
    const RowClaim& claim = sample.claim;
    claim.slot->sample_ids[claim.row] = sample.read.sample;
    const bool decoded = status.ok();
    if (decoded) status = decoder_.columns_.Write(claim, sample.read.rows, times_);
    if (decoder_.cache_ != nullptr && status.ok()) {
      decoder_.cache_->Keep(sample.cached, sample.image);
    }
    const uint64_t work = Count(sample.bytes_read());
    pace_.End(sample.path.times(), since_);
    if (status.ok()) {
      samples_.Done(index, {SampleOutcome::Kind::kRow, work}, worker_);
    } else {
      const ReadRequest& read = sample.read_of(piece);
      Error error =
          NamedError(decoder_.source_, read.sample, std::move(status).error().WithFile(read.path),
                     piece % decoder_.pieces_);
      const SampleOutcome::Kind kind =
          decoded ? SampleOutcome::Kind::kFailed : SampleOutcome::Kind::kUnusable;
      samples_.Done(index, {kind, work, std::move(error)}, worker_);
    }
    if (decoder_.mixer_) since_ = NowNanoseconds();  // time spent on mixing is counted already
  }

  // Changes the requests to whole images, and returns whether this piece was a part of one. An
  // index with a wrong orientation leads to parts without the crop's rows.
  bool TakeWholeRange(SampleInFlight& sample, uint32_t piece) const {
    if (piece % decoder_.pieces_ != 0) return false;
    const ReadRequest& failed = sample.read_of(piece);
    const ByteRange of_failed = decoder_.source_.RangeOf(failed.sample);
    if (failed.offset == of_failed.offset && failed.length == of_failed.length) return false;
    const ByteRange all = decoder_.source_.RangeOf(sample.read.sample);
    sample.read.offset = all.offset;
    sample.read.length = all.length;
    sample.reads_whole = true;
    return true;
  }

  // Gives back a sample whose image in the cache, or in a part of the file, has an error, because
  // the error of the whole file counts.
  void ReadFromFile(uint32_t index) {
    SampleInFlight& sample = decoder_.samples_[index];
    sample.cached.state = CachedSample::State::kNone;
    pace_.End(sample.path.times(), NowNanoseconds());
    samples_.Done(index, {.kind = SampleOutcome::Kind::kReadAgain}, worker_);
  }

  std::optional<uint32_t> Take() {
    if (next_) return std::exchange(next_, std::nullopt);
    const bool is_long = taken_ >= kLeast && NowNanoseconds() - begun_ >= kTurnNs;
    return is_long || taken_ >= kMost ? std::nullopt : samples_.TakeReady();
  }

  // Replaces an image, which is the record of a sample's piece, by the image in the record.
  Status Unpack(ReadRequest& read, uint32_t piece, std::span<const uint8_t>& image,
                size_t& image_at) const {
    const SampleSource& source = decoder_.source_;
    const uint8_t* const record = image.data();
    if (piece == 0) {
      read.rows.assign(LoadedBytes(source.fields()), 0);
      ASSIGN_OR_RETURN(image, source.Unpack(read.sample, image, read.rows));
    } else {
      ASSIGN_OR_RETURN(image, source.UnpackPiece(read.sample, piece, image));
    }
    image_at = static_cast<size_t>(image.data() - record);
    return {};
  }

  // An index larger than its photograph is not worth its memory. A sample that waited for memory is
  // decoded without an index, so that its memory depends on its image alone.
  std::span<const uint8_t> ReadCropIndex(const SampleInFlight& sample, const ReadRequest& read,
                                         bool for_device, GrowingBuffer& memory) const {
    if (!sample.cached.has_bytes_of_file() || (sample.work.alone() && !for_device)) return {};
    const uint64_t most = std::max<uint64_t>(read.size, kSmallIndexBytes);
    return decoder_.source_.ReadCropIndex(read.sample, most, memory);
  }

  // Returns the first piece of a sample; ends a sample whose row cannot be written.
  std::optional<EncodedImage> Encoded(uint32_t index, GrowingBuffer& crop_index) {
    SampleInFlight& sample = decoder_.samples_[index];
    pace_.Begin(sample.path.times(), NowNanoseconds());
    if (decoder_.processor_) {
      return EncodedImage{.tag = index, .bytes = sample.image, .key = sample.draw};
    }
    const RowClaim& claim = sample.claim;
    Result<OutputRows> rows =
        decoder_.columns_.RowsOf(*claim.slot, claim.row, sample.read.sample, buffers_);
    if (!rows.ok()) {
      End(index, 0, std::move(rows).error());
      return std::nullopt;
    }
    const bool for_device = rows->crops != nullptr;
    return EncodedImage{.tag = index,
                        .bytes = sample.image,
                        .key = sample.draw,
                        .to = *rows,
                        .crop_index = ReadCropIndex(sample, sample.read, for_device, crop_index)};
  }

  // Must be called before the sample's batch can be delivered. Returns the nanoseconds since the
  // last count.
  uint64_t Count(uint64_t bytes) {
    const uint64_t now = NowNanoseconds();
    const uint64_t work = now - std::exchange(since_, now);
    counters_.Add(1, bytes, std::exchange(times_, {}), work);
    counters_.SetPaths(decoder_.PathsOfWorker(worker_));
    return work;
  }

  Decoder& decoder_;
  const int worker_;
  Samples& samples_;
  WorkerCounters& counters_;
  WorkerPace& pace_;
  std::optional<uint32_t> next_;
  std::optional<Piece> further_;  // to be pulled before another sample
  RowColumns::Buffers buffers_;   // of the piece that Pull returned
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

DecodePaths Decoder::PathsOfWorker(int worker) {
  return processor_ ? processor_->paths(worker) : PathsOf(workspace(worker));
}

void Decoder::Decode(uint32_t first, int worker, Samples& samples) {
  DecodingTurn(*this, first, worker, samples).Run();
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

// The error of a sample that has already waited becomes final, with advice.
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
  RowColumns::Buffers buffers;
  uint32_t row = claim.row;
  for (uint64_t& id : ids) {
    const SamplerEntry entry = sampler_.At(slot.name(), row);
    id = entry.sample;
    if (plan_) {
      DrawKey key{options_.seed, slot.epoch, entry.position};
      const RowSamples parts = plan_->SamplesOf(key, id, source_.size(), 0);
      for (const auto& [part, sample] : parts.all()) {
        key.part = part;
        ASSIGN_OR_RETURN(const OutputRows rows,
                         part == 0 ? columns_.RowsOf(slot, row, sample, buffers)
                                   : columns_.RowsOfPart(slot, row, sample, buffers));
        TRY(plan_->Apply(ImageOf(image, source_.View(0, sample)), key, workspace(worker), rows,
                         times));
      }
    }
    ++row;
  }
  return columns_.Write(claim, {}, times);
}

uint64_t Decoder::Mix(Slot& slot, int worker) {
  const uint64_t before = NowNanoseconds();
  mixer_->Mix(slot, {options_.seed, slot.epoch, slot.position});
  const uint64_t spent = NowNanoseconds() - before;
  counters(worker).Add(0, 0, {.mix_ns = spent}, spent);
  return spent;
}

uint64_t Decoder::Pad(Slot& slot, int worker) {
  const uint64_t before = NowNanoseconds();
  columns_.Pad(slot);
  const uint64_t spent = NowNanoseconds() - before;
  counters(worker).Add(0, 0, {.augment_ns = spent}, spent);
  return spent;
}

void Decoder::FreeWorkspaces() {
  for (const auto& workspace : workspaces_) FreeMemoryOf(*workspace);
  for (int i = 0; processor_ && i < static_cast<int>(counters_.size()); ++i) {
    processor_->FreeMemory(i);
  }
  for (ImagePacker& packer : packers_) packer.FreeMemory();
}

// Memory that has grown is kept while it is plentiful; otherwise a few large files would hold it.
void Decoder::Trim(int worker) {
  if (plan_ && MemoryOf(workspace(worker)) > kWorkspaceBytes + plan_->extra_bytes()) {
    FreeMemoryOf(workspace(worker));
  }
  if (processor_ && processor_->memory_bytes(worker) > kWorkspaceBytes) {
    processor_->FreeMemory(worker);
  }
  if (cache_ == nullptr || packer(worker).memory_bytes() <= kPackerBytes) return;
  packer(worker).FreeMemory();
}

void Decoder::AddTo(LoaderStats& stats) const {
  for (const WorkerCounters& counters : counters_) counters.AddTo(stats);
}

}  // namespace stoker
