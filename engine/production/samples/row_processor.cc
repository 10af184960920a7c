#include "engine/production/samples/row_processor.h"

#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "core/result/try.h"
#include "engine/production/check_options.h"
#include "io/source/source.h"
#include "transforms/decode/image_info.h"
#include "transforms/processor/figures.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

// Draws the flips, with the same numbers as a Plan.
ImageFlips DrawFlips(std::span<const Transform> transforms, const DrawKey& key) {
  ImageFlips flips;
  uint32_t index = 0;  // among transforms of one kind of draws, which all flips are
  for (const Transform& transform : transforms) {
    RandomStream random(key, index++, DrawsOf(transform));
    if (const auto* const of_columns = std::get_if<RandomHorizontalFlip>(&transform)) {
      flips.columns ^= random.Uniform() < of_columns->p;
    } else {
      flips.rows ^= random.Uniform() < std::get<RandomVerticalFlip>(transform).p;
    }
  }
  return flips;
}

}  // namespace

RowProcessor::RowProcessor(const LoaderOptions& options, MemoryBudget& memory, int workers)
    : options_(options),
      own_(options.processor->options()),
      values_(own_.recipe, own_.dtype),
      first_figure_(options.source->fields().size()),
      figures_(FiguresOf(options)) {
  for (int i = 0; i < workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(memory));
    Renew(*workers_.back());
  }
}

void RowProcessor::Renew(Worker& worker) const {
  worker.processor.reset();
  worker.processor.emplace(own_.recipe, values_, own_.limits, own_.exif_orientation, worker.memory);
}

Status RowProcessor::Write(const RowClaim& claim, uint64_t sample, std::span<const uint8_t> image,
                           const DrawKey& key, int worker) {
  ImageProcessor& processor = *of(worker).processor;
  ASSIGN_OR_RETURN(const ImageSize size,
                   processor.Open(image, DrawFlips(options_.transforms, key)));
  Result<ImagePlan> plan = PlanImage(own_.recipe, size);
  if (!plan.ok()) {
    Error error = std::move(plan).error();
    if (error.code == Code::kInvalidArgument) error.code = Code::kUnimplemented;
    return error;
  }
  Slot& slot = *claim.slot;
  const auto rows = static_cast<size_t>(plan->rows);
  if (slot.has_room()) {
    const uint64_t room = slot.RoomOf(claim.row);
    if (rows > room) return Outgrown(sample, *plan, room);
  }
  if (slot.placed) {
    slot.Objects(0, claim.row) = plan->rows;
    TRY(processor.Write(*plan, static_cast<uint8_t*>(slot.Placed(0, claim.row))));
  } else {
    auto* const row = static_cast<uint8_t*>(slot.Row(0, claim.row));
    const size_t bytes = rows * RowValues(own_.recipe, plan->patch) * SizeOf(own_.dtype);
    TRY(processor.Write(*plan, row));
    std::memset(row + bytes, 0, slot.row_bytes[0] - bytes);
  }
  for (size_t i = 0; i < figures_.size(); ++i) {
    const size_t column = first_figure_ + i;
    WriteFigures(own_.recipe, *plan, figures_[i].name,
                 {static_cast<uint8_t*>(slot.Row(column, claim.row)), slot.row_bytes[column]});
  }
  return {};
}

Error RowProcessor::Outgrown(uint64_t sample, const ImagePlan& image, uint64_t room) const {
  const ImageFacts facts = options_.source->FactsOf(sample);
  const ImageSize stored{static_cast<int>(facts.width), static_cast<int>(facts.height)};
  return {.code = Code::kDataLoss,
          .cause = "the image has " + SizeText(image.image) + " pixels, which are " +
                   std::to_string(image.rows) + " patches, more than the " + std::to_string(room) +
                   " that its row has room for; the source says that the image has " +
                   SizeText(stored) + " pixels",
          .advice = "Run `stoker index` again, or wrap the source in stoker.sized"};
}

DecodePaths RowProcessor::paths(int worker) const {
  DecodePaths all = of(worker).past;
  all += of(worker).processor->paths();
  return all;
}

void RowProcessor::FreeMemory(int worker) {
  of(worker).past = paths(worker);
  Renew(of(worker));
}

}  // namespace stoker
