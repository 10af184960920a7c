#include "engine/order/patch_counts.h"

#include <algorithm>
#include <string>

#include "core/batch/image.h"
#include "engine/arrays/processor.h"
#include "io/select/sized.h"
#include "io/source/source.h"
#include "transforms/decode/orientation.h"

namespace stoker {
namespace {

constexpr uint64_t kMostUnknownBytes = uint64_t{1} << 30;  // of a batch
constexpr const char* kFindSizes =
    "Run `stoker index` and open the index, or wrap the source in stoker.sized";

}  // namespace

uint64_t PatchesOf(const Processor& processor, const ImageFacts& facts, bool& known) {
  if (facts.width < 1 || facts.height < 1 ||
      std::max(facts.width, facts.height) > uint32_t{kMaxSidePixels}) {
    known = false;
    return static_cast<uint64_t>(MostRowsOf(processor.recipe()));
  }
  const ImageSize stored{static_cast<int>(facts.width), static_cast<int>(facts.height)};
  const auto turned = static_cast<Orientation>(facts.orientation);
  const Result<ImagePlan> plan =
      processor.Plan(processor.options().exif_orientation ? Viewed(stored, turned) : stored);
  return plan.ok() ? static_cast<uint64_t>(plan->rows) : 0;
}

bool PlacesAreImages(const LoaderOptions& options) {
  return !PadsRows(options) && FixedPlan(options.processor->recipe());
}

Result<std::shared_ptr<const PatchCounts>> PatchCountsOf(const LoaderOptions& options,
                                                         uint64_t memory_budget) {
  const SampleSource& source = *options.source;
  const ProcessorOptions& processor = options.processor->options();
  const bool of_images = PlacesAreImages(options);
  const bool has_tokens = of_images && processor.recipe.padded_rows != 0;
  if (source.size() > memory_budget / (sizeof(uint32_t) * (has_tokens ? 2 : 1))) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "counting the patches of " + std::to_string(source.size()) +
                          " samples takes more than memory_budget, which is " +
                          std::to_string(memory_budget),
                 .changes = {{OptionChange::How::kRaise, "memory_budget"}}};
  }
  const auto counts = std::make_shared<PatchCounts>();
  counts->places.resize(source.size());
  if (has_tokens) counts->tokens.resize(source.size());
  for (uint64_t id = 0; id < source.size(); ++id) {
    const size_t images = source.PiecesOf(id);
    bool known = true;
    uint64_t patches = 0;
    for (size_t piece = 0; piece < images && (!of_images || has_tokens); ++piece) {
      const bool were_known = known;
      patches += PatchesOf(*options.processor, source.FactsOfPiece(id, piece), known);
      if (!were_known || known || counts->unknown++ != 0) continue;
      counts->first_unknown = {id, piece};
    }
    const uint64_t places = of_images ? images : patches;
    if (std::max(places, patches) > kMostTokens) {
      return Error{.code = Code::kResourceExhausted,
                   .cause = "sample " + std::to_string(id) + " has " + std::to_string(images) +
                            " images, of up to " + std::to_string(patches) + " patches",
                   .advice = "Give samples fewer images, or the processor a lower max_pixels"};
    }
    counts->places[id] = static_cast<uint32_t>(places);
    if (has_tokens) counts->tokens[id] = static_cast<uint32_t>(patches);
    counts->most = std::max(counts->most, counts->places[id]);
  }
  const bool of_tokens = options.batch_tokens != 0 && options.tokens.empty();
  std::vector<uint32_t>& counted = has_tokens ? counts->tokens : counts->places;
  const uint32_t largest = counted.empty() ? 0 : *std::ranges::max_element(counted);
  for (uint64_t id = 0; id < source.size() && of_tokens; ++id) {
    if (counted[id] == 0 && source.PiecesOf(id) != 0) counted[id] = largest;  // refused
  }
  if (counts->unknown != 0 && of_tokens) {
    return Error{
        .code = Code::kFailedPrecondition,
        .cause = "batch_tokens counts patches, and " +
                 UnknownSizesText(source, counts->unknown, counts->first_unknown),
        .advice = kFindSizes + std::string(", or give tokens, the name of a column of integers")};
  }
  if (of_images) counts->unknown = 0;  // all have one size
  counts->alike = options.batch_tokens == 0 && options.padding == RowPadding::kNone &&
                  options.on_bad.Has(OnBad::kSubstitute);
  return std::shared_ptr<const PatchCounts>(counts);
}

Status CheckRoomForUnknown(const LoaderOptions& options, uint64_t bytes) {
  const PatchCounts& counts = *options.patch_counts;
  if (counts.unknown == 0 || bytes <= kMostUnknownBytes) return {};
  Error error{.code = Code::kResourceExhausted,
              .cause = "pixel_values of a batch could take " + std::to_string(bytes) +
                       " bytes (up to " + std::to_string(counts.most) +
                       " patches of a sample), and at most 1 GiB is reserved where sizes are "
                       "unknown: " +
                       UnknownSizesText(*options.source, counts.unknown, counts.first_unknown),
              .advice = kFindSizes};
  if (options.batch_size != 0) {
    error.changes = {{OptionChange::How::kLower, "batch_size"}};
  } else {
    error.advice += ", or give batch_size, the most rows of a batch";
  }
  return error;
}

}  // namespace stoker
