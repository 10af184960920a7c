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
  if (pieces == 1 || source->varies()) return {};
  return BadSizes("samples of " + source->Describe() +
                      (pieces == 0 ? " are not encoded images" : " have several images each"),
                  pieces == 0 ? "Arrays in memory have the size of their rows"
                              : "Give a source of samples with one image");
}

ImageNumbers NumberImages(const SampleSource& source) {
  if (!source.varies()) return {};
  std::vector<uint64_t> ends;
  ends.reserve(source.size());
  uint64_t images = 0;
  for (uint64_t id = 0; id < source.size(); ++id) ends.push_back(images += source.PiecesOf(id));
  return ImageNumbers(std::move(ends));
}

Result<std::shared_ptr<const SampleSource>> Sized(std::shared_ptr<const SampleSource> source,
                                                  std::span<const ImageSize> sizes) {
  TRY(CheckSized(source.get()));
  const ImageNumbers numbers = NumberImages(*source);
  const uint64_t images = numbers.Begin(source->size());
  if (sizes.size() != images) {
    return BadSizes(std::to_string(sizes.size()) + " sizes were given, and " + source->Describe() +
                        " has " + std::to_string(images) +
                        (numbers.vary() ? Plural(images, " image", " images")
                                        : Plural(images, " sample", " samples")),
                    "Give the height and the width of each image, in the source's order");
  }
  std::vector<ImageFacts> facts(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto [width, height] = sizes[i];
    const ImageNumbers::Place at = numbers.PlaceOf(i);
    const auto bad = [&, w = width, h = height](const std::string& cause, std::string advice) {
      std::string text = "sizes[" + std::to_string(i) + "]";
      if (numbers.vary()) {
        text = "the size of image " + std::to_string(at.piece);
        text.append(" of sample ").append(std::to_string(at.sample));
      }
      text.append(" has ").append(SidesText(w, h)).append(cause);
      return BadSizes(std::move(text), std::move(advice));
    };
    if (std::min(width, height) < 1 || std::max(width, height) > kMaxSidePixels) {
      return bad("", "Sides are 1 to " + std::to_string(kMaxSidePixels) +
                         "; without sizes, the headers of the images are read");
    }
    const ImageFacts known = source->FactsOfPiece(at.sample, at.piece);
    facts[i] = known;
    facts[i].width = static_cast<uint32_t>(width);
    facts[i].height = static_cast<uint32_t>(height);
    if (known.width == 0 || known == facts[i]) continue;
    return bad(", and " + source->Describe() + " knows " + SidesText(known.width, known.height),
               "Give height, then width, as stored: before EXIF tags turn images");
  }
  return SizedByFacts(std::move(source), std::move(facts), "");
}

std::string UnknownSizesText(const SampleSource& source, uint64_t unknown,
                             ImageNumbers::Place first, const std::string& why) {
  std::string path;
  source.PathOf(source.RangeOfAny(first.sample, first.piece).file, path);
  return std::to_string(unknown) + " of " + std::to_string(source.size()) +
         Plural(source.size(), " sample", " samples") + " of " + source.Describe() +
         Plural(unknown, " has", " have") + " no known size; the first is sample " +
         std::to_string(first.sample) + ": " + (why.empty() ? path : why);
}

std::shared_ptr<const SampleSource> SizedByFacts(std::shared_ptr<const SampleSource> source,
                                                 std::vector<ImageFacts> facts,
                                                 const std::string& why) {
  ImageNumbers numbers = NumberImages(*source);
  uint64_t unknown = 0;  // samples
  ImageNumbers::Place first;
  for (uint64_t i = facts.size(); i-- > 0;) {
    const auto at = numbers.PlaceOf(i);
    if (facts[i].width != 0 || source->FactsOfPiece(at.sample, at.piece).width != 0) continue;
    if (unknown == 0 || first.sample != at.sample) ++unknown;
    first = at;
  }
  std::string warning = unknown == 0 ? "" : UnknownSizesText(*source, unknown, first, why);
  return std::make_shared<SelectedSource>(std::move(source), std::move(numbers), std::move(facts),
                                          std::move(warning));
}

}  // namespace stoker
