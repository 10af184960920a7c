#include "engine/arrays/image_facts.h"

#include "transforms/decode/format.h"

namespace stoker {
namespace {

// The format numbers in index files, independent of the enum.
static_assert(static_cast<int>(ImageFormat::kUnknown) == 0);
static_assert(static_cast<int>(ImageFormat::kJpeg) == 1);
static_assert(static_cast<int>(ImageFormat::kPng) == 2);
static_assert(static_cast<int>(ImageFormat::kWebp) == 3);
static_assert(static_cast<int>(ImageFormat::kGif) == 4);
static_assert(static_cast<int>(ImageFormat::kBmp) == 5);
static_assert(static_cast<int>(ImageFormat::kTiff) == 6);
static_assert(static_cast<int>(ImageFormat::kPnm) == 7);
static_assert(static_cast<int>(ImageFormat::kQoi) == 18);
static_assert(static_cast<int>(ImageFormat::kPackedJpeg) == 19);
static_assert(static_cast<int>(ImageFormat::kPackedMask) == 20);
static_assert(static_cast<int>(ImageFormat::kPackedPng) == 21);

}  // namespace

ImageFacts FactsOf(const ImageInfo& info, std::span<const uint8_t> bytes) {
  return {.file_bytes = bytes.size(),
          .width = static_cast<uint32_t>(info.size.width),
          .height = static_cast<uint32_t>(info.size.height),
          .orientation = static_cast<uint8_t>(info.orientation),
          .format = static_cast<uint8_t>(SniffFormat(bytes))};
}

ImageFacts FactsOfFile(std::span<const uint8_t> file, ImageDecoder& decoder) {
  const Result<ImageInfo> info = decoder.Open(file);
  if (info.ok()) return FactsOf(*info, file);
  return {.file_bytes = file.size(), .format = static_cast<uint8_t>(SniffFormat(file))};
}

}  // namespace stoker
