#include "engine/production/samples/read_queue.h"

#include <algorithm>

#include "core/time/stage_times.h"

namespace stoker {

ByteRange RangeToRead(const SampleSource& source, const Plan* plan, uint64_t sample,
                      const DrawKey& draw) {
  if (plan == nullptr || !source.has_row_ranges(sample)) return source.RangeOf(sample);
  const ImageFacts facts = source.FactsOf(sample);
  const ImageSize size{static_cast<int>(facts.width), static_cast<int>(facts.height)};
  if (size.width <= 0 || size.height <= 0) return source.RangeOf(sample);
  const std::optional<AxisSpan> rows =
      plan->RowsOf(draw, size, static_cast<Orientation>(facts.orientation));
  return rows ? source.RangeOfRows(sample, rows->begin, rows->end) : source.RangeOf(sample);
}

ReadQueue::ReadQueue(const LoaderOptions& options, const Sampler& sampler,
                     const std::optional<Plan>& plan, SamplesInFlight& samples, uint32_t run)
    : options_(options),
      sampler_(sampler),
      plan_(plan ? &*plan : nullptr),
      pieces_(static_cast<uint32_t>(options.source->pieces())),
      samples_(samples),
      run_(run) {}

size_t ReadQueue::Fill(Assembler& assembler, std::span<ReadRequest*> requests) {
  const bool behind_workers = samples_.BehindWorkers();
  // Requests to sources with calls, which take a thread each, need not be collected.
  if (samples_.TooFewFree() && options_.source->calls() == 0) return 0;
  const uint64_t now = NowNanoseconds();
  size_t filled = 0;
  while (filled < requests.size() && samples_.MayRead()) {
    const std::optional<uint32_t> index = samples_.Take();
    if (!index) break;
    const std::optional<RowClaim> claim = assembler.Claim();
    if (!claim) {
      samples_.Give(*index);
      break;
    }
    SampleInFlight& next = samples_[*index];
    samples_.BeginRead(*index);
    const SamplerEntry entry = sampler_.At(claim->slot->name(), claim->row);
    next.claim = *claim;
    next.draw = {options_.seed, claim->slot->epoch, entry.position};
    next.substitutes = next.draws = 0;
    next.path.Claim(now, behind_workers);
    SetSample(next, entry.sample);
    filled += FillPieces(next, requests.subspan(filled));
  }
  return filled;
}

size_t ReadQueue::FillPieces(SampleInFlight& from, std::span<ReadRequest*> requests) const {
  if (from.pieces != 1 && from.begun == 0) {
    from.unread.store(from.pieces, std::memory_order_relaxed);
  }
  size_t filled = 0;
  while (filled < requests.size() && from.begun < from.pieces) {
    const uint32_t piece = from.begun++;
    if (piece != 0) SetPiece(from, piece);
    ReadRequest& read = from.read_of(piece);
    if (from.pieces != 1) {
      from.ids_being_read[piece].store(read.sample + 1, std::memory_order_relaxed);
    }
    requests[filled++] = &read;
  }
  return filled;
}

void ReadQueue::SetSample(SampleInFlight& to, uint64_t sample) const {
  to.begun = 0;
  to.reads_whole = false;
  to.read.sample = sample;
  const size_t images = options_.source->PiecesOf(sample);
  to.has_image = images != 0;
  to.pieces = static_cast<uint32_t>(std::max<size_t>(images, 1));
  if (plan_ != nullptr && plan_->parts() > 1) {
    to.samples = plan_->SamplesOf(to.draw, sample, options_.source->size(), to.substitutes);
    to.pieces = to.samples.count * pieces_;
  }
  Point(to.read, RangeToRead(*options_.source, plan_, sample, to.draw));
}

// Points the request of a piece after the first one at it.
void ReadQueue::SetPiece(SampleInFlight& to, uint32_t piece) const {
  ReadRequest& read = to.read_of(piece);
  const SampleSource& source = *options_.source;
  const uint32_t of_sample = piece % pieces_, of = piece / pieces_;
  read.sample = of == 0 ? to.read.sample : to.samples.parts[of].sample;
  if (of_sample != 0) return Point(read, source.RangeOfPiece(read.sample, of_sample));
  DrawKey draw = to.draw;
  draw.part = to.samples.parts[of].part;
  Point(read, RangeToRead(source, to.reads_whole ? nullptr : plan_, read.sample, draw));
}

void ReadQueue::Point(ReadRequest& read, const ByteRange& range) const {
  read.offset = range.offset;
  read.length = range.length;
  options_.source->PathOf(range.file, read.path);
}

std::optional<uint32_t> ReadQueue::NextRun(Assembler& assembler) {
  while (!samples_.TooFewFree()) {
    const std::optional<uint32_t> index = samples_.Take();
    if (!index) continue;
    const std::optional<RowClaim> claim = assembler.Claim(run_);
    if (!claim) {
      samples_.Give(*index);
      return std::nullopt;
    }
    samples_[*index].claim = *claim;
    samples_[*index].path.Claim(NowNanoseconds(), /*behind_workers=*/true);
    return index;
  }
  return std::nullopt;
}

}  // namespace stoker
