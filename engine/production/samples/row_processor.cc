#include "engine/production/samples/row_processor.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "core/result/try.h"
#include "engine/order/patch_counts.h"
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
      of_images_(PlacesAreImages(options)),
      first_figure_(options.source->fields().size()),
      figures_(FiguresOf(options)) {
  for (int i = 0; i < workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(memory, own_.recipe));
    Renew(*workers_.back());
  }
}

void RowProcessor::Renew(Worker& worker) const {
  worker.processor.reset();
  worker.processor.emplace(own_.recipe, values_, own_.limits, own_.exif_orientation, worker.memory);
}

void RowProcessor::Begin(const RowClaim& claim) const {
  Slot& slot = *claim.slot;
  if (slot.placed) slot.Objects(0, claim.row) = 0;
  for (size_t column = first_figure_; column < first_figure_ + figures_.size(); ++column) {
    if (slot.max_objects[column] != 0) slot.Objects(column, claim.row) = 0;
  }
}

Status RowProcessor::Write(const RowClaim& claim, uint64_t sample, const EncodedImage& image,
                           int worker) {
  ImageProcessor& processor = *of(worker).processor;
  ASSIGN_OR_RETURN(const ImageSize size,
                   processor.Open(image.bytes, DrawFlips(options_.transforms, image.key)));
  ProcessorRecipe& recipe = of(worker).recipe;
  if (!options_.buckets.empty()) {
    recipe.padded_rows = static_cast<int64_t>(claim.slot->RoomOf(claim.row));
  }
  Result<ImagePlan> plan = PlanImage(recipe, size);
  if (!plan.ok()) {
    Error error = std::move(plan).error();
    if (error.code == Code::kInvalidArgument) error.code = Code::kUnimplemented;
    return error;
  }
  Slot& slot = *claim.slot;
  const size_t object_bytes = slot.row_bytes[0] / std::max(slot.max_objects[0], 1u);
  const int64_t written = slot.placed ? slot.Objects(0, claim.row) : 0;
  const int64_t objects = of_images_ ? 1 : plan->rows;
  if (slot.has_room()) {
    uint64_t room = slot.RoomOf(claim.row) - static_cast<uint64_t>(written);
    if (options_.source->varies() && !of_images_) {  // blame no later image
      bool known = true;
      room = std::min(room, PatchesOf(*options_.processor,
                                      options_.source->FactsOfPiece(sample, image.piece), known));
    }
    if (static_cast<uint64_t>(objects) > room) return Outgrown(sample, image.piece, *plan, room);
  }
  auto* to =
      static_cast<uint8_t*>(slot.placed ? slot.Placed(0, claim.row) : slot.Row(0, claim.row));
  if (slot.placed) {
    to += static_cast<size_t>(written) * object_bytes;
    slot.Objects(0, claim.row) = written + objects;
  }
  TRY(processor.Write(*plan, to));
  if (of_images_ || !slot.placed) {  // zeros after the patches
    const size_t bytes =
        static_cast<size_t>(plan->rows) * RowValues(own_.recipe, plan->patch) * SizeOf(own_.dtype);
    std::memset(to + bytes, 0, object_bytes - bytes);
  }
  for (size_t i = 0; i < figures_.size(); ++i) {
    const size_t column = first_figure_ + i;
    auto* figures = static_cast<uint8_t*>(slot.Row(column, claim.row));
    const size_t bytes = slot.row_bytes[column] / std::max(slot.max_objects[column], 1u);
    if (slot.max_objects[column] != 0) {
      figures += image.piece * bytes;
      slot.Objects(column, claim.row) = image.piece + 1;
    }
    WriteFigures(own_.recipe, *plan, figures_[i].name, {figures, bytes});
  }
  return {};
}

Error RowProcessor::Outgrown(uint64_t sample, uint32_t piece, const ImagePlan& image,
                             uint64_t room) const {
  const ImageFacts facts = options_.source->FactsOfPiece(sample, piece);
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
