#include "engine/order/patch_counts.h"

#include <algorithm>
#include <string>

#include "core/batch/image.h"
#include "core/result/plural.h"
#include "engine/arrays/processor.h"
#include "io/source/source.h"
#include "transforms/decode/orientation.h"

namespace stoker {
namespace {

constexpr uint64_t kMostUnknownBytes = uint64_t{1} << 30;  // of a batch
constexpr const char* kFindSizes =
    "Run `stoker index` and open the index, or wrap the source in stoker.sized";

std::string UnknownText(const SampleSource& source, const PatchCounts& counts) {
  std::string path;
  source.PathOf(source.RangeOf(counts.first_unknown).file, path);
  return std::to_string(counts.unknown) + " of " + std::to_string(source.size()) +
         Plural(source.size(), " sample", " samples") + Plural(counts.unknown, " has", " have") +
         " no known size (the first is " + std::to_string(counts.first_unknown) + ", " + path + ")";
}

}  // namespace

Result<std::shared_ptr<const PatchCounts>> PatchCountsOf(const LoaderOptions& options,
                                                         uint64_t memory_budget) {
  const SampleSource& source = *options.source;
  const ProcessorOptions& processor = options.processor->options();
  if (source.size() > memory_budget / sizeof(uint32_t)) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "counting the patches of " + std::to_string(source.size()) +
                          " samples takes more than memory_budget, which is " +
                          std::to_string(memory_budget),
                 .changes = {{OptionChange::How::kRaise, "memory_budget"}}};
  }
  const auto counts = std::make_shared<PatchCounts>();
  counts->of.resize(source.size());
  for (uint64_t id = 0; id < source.size(); ++id) {
    const ImageFacts facts = source.FactsOf(id);
    const bool known = std::min(facts.width, facts.height) >= 1 &&
                       std::max(facts.width, facts.height) <= uint32_t{kMaxSidePixels};
    int64_t rows = 0;
    if (!known) {
      if (counts->unknown++ == 0) counts->first_unknown = id;
      rows = MostRowsOf(processor.recipe);
    } else {
      const ImageSize stored{static_cast<int>(facts.width), static_cast<int>(facts.height)};
      const auto turned = static_cast<Orientation>(facts.orientation);
      const Result<ImagePlan> plan =
          options.processor->Plan(processor.exif_orientation ? Viewed(stored, turned) : stored);
      if (plan.ok()) rows = plan->rows;
    }
    counts->of[id] = static_cast<uint32_t>(rows);
    counts->most = std::max(counts->most, counts->of[id]);
  }
  if (counts->unknown != 0 && options.batch_tokens != 0 && options.tokens.empty()) {
    return Error{
        .code = Code::kFailedPrecondition,
        .cause = "batch_tokens counts patches, and " + UnknownText(source, *counts),
        .advice = kFindSizes + std::string(", or give tokens, the name of a column of integers")};
  }
  counts->alike = options.batch_tokens == 0 && options.padding == RowPadding::kNone &&
                  options.on_bad.Has(OnBad::kSubstitute);
  return std::shared_ptr<const PatchCounts>(counts);
}

Status CheckRoomForUnknown(const LoaderOptions& options, uint64_t bytes) {
  const PatchCounts& counts = *options.patch_counts;
  if (counts.unknown == 0 || bytes <= kMostUnknownBytes) return {};
  Error error{.code = Code::kResourceExhausted,
              .cause = "pixel_values of a batch could take " + std::to_string(bytes) +
                       " bytes, and at most 1 GiB is reserved for images of unknown sizes: " +
                       UnknownText(*options.source, counts) + ", and the processor makes up to " +
                       std::to_string(counts.most) + " patches of an image",
              .advice = kFindSizes};
  if (options.batch_size != 0) {
    error.changes = {{OptionChange::How::kLower, "batch_size"}};
  } else {
    error.advice += ", or give batch_size, the most rows of a batch";
  }
  return error;
}

}  // namespace stoker
