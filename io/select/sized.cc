#include "io/select/sized.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "io/select/sample_order.h"
#include "io/select/selected_source.h"

namespace stoker {

namespace {

Error BadSizes(std::string cause, std::string advice) {
  return {.code = Code::kInvalidArgument,
          .cause = "sized: " + std::move(cause),
          .advice = std::move(advice)};
}

std::string SidesText(int64_t width, int64_t height) {
  return "height " + std::to_string(height) + " and width " + std::to_string(width);
}

}  // namespace

Status CheckSized(const SampleSource* source) {
  TRY(CheckNoOrder("sized", source));
  const size_t pieces = source->pieces();
  if (pieces == 1) return {};
  return BadSizes("samples of " + source->Describe() +
                      (pieces == 0 ? " are not encoded images" : " have several images each"),
                  pieces == 0 ? "Arrays in memory have the size of their rows"
                              : "Give a source of samples with one image");
}

Result<std::shared_ptr<const SampleSource>> Sized(std::shared_ptr<const SampleSource> source,
                                                  std::span<const ImageSize> sizes) {
  TRY(CheckSized(source.get()));
  if (sizes.size() != source->size()) {
    return BadSizes(std::to_string(sizes.size()) + " sizes were given, and " + source->Describe() +
                        " has " + std::to_string(source->size()) +
                        Plural(source->size(), " sample", " samples"),
                    "Give the height and the width of each sample, in the source's order");
  }
  std::vector<ImageFacts> facts(sizes.size());
  for (size_t id = 0; id < sizes.size(); ++id) {
    const auto [width, height] = sizes[id];
    const auto bad = [&, w = width, h = height](const std::string& cause, std::string advice) {
      return BadSizes("sizes[" + std::to_string(id) + "] has " + SidesText(w, h) + cause,
                      std::move(advice));
    };
    if (std::min(width, height) < 1 || std::max(width, height) > kMaxSidePixels) {
      return bad("", "Sides are 1 to " + std::to_string(kMaxSidePixels) +
                         "; without sizes, the headers of the images are read");
    }
    const ImageFacts known = source->FactsOf(id);
    facts[id] = known;
    facts[id].width = static_cast<uint32_t>(width);
    facts[id].height = static_cast<uint32_t>(height);
    if (known.width == 0 || known == facts[id]) continue;
    return bad(", and " + source->Describe() + " knows " + SidesText(known.width, known.height),
               "Give height, then width, as stored: before EXIF tags turn images");
  }
  return SizedByFacts(std::move(source), std::move(facts), "");
}

std::shared_ptr<const SampleSource> SizedByFacts(std::shared_ptr<const SampleSource> source,
                                                 std::vector<ImageFacts> facts,
                                                 const std::string& why) {
  uint64_t unknown = 0, first = 0;
  for (uint64_t id = facts.size(); id-- > 0;) {
    if (facts[id].width != 0 || source->FactsOf(id).width != 0) continue;
    ++unknown;
    first = id;
  }
  std::string warning, path;
  if (unknown != 0) {
    source->PathOf(source->RangeOf(first).file, path);
    warning = std::to_string(unknown) + " of " + std::to_string(facts.size()) +
              Plural(facts.size(), " sample", " samples") + " of " + source->Describe() +
              Plural(unknown, " has", " have") + " no known size; the first is sample " +
              std::to_string(first) + ": " + (why.empty() ? path : why);
  }
  return std::make_shared<SelectedSource>(std::move(source), std::move(facts), std::move(warning));
}

}  // namespace stoker
