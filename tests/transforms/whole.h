// Shared by the tests of all formats: compares a decoder's regions with the whole image.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/transforms/jpeg/decode.h"
#include "transforms/decode/whole_image.h"

namespace stoker::testing {

// Returns the file's bytes in a result of Padded.
inline std::span<const uint8_t> Unpadded(const std::vector<uint8_t>& padded) {
  return std::span(padded).first(padded.size() - kBufferPadding);
}

// Opens `padded` with a decoder of any format, decodes `region` (empty means the image), and
// compares; returns the differences, or an empty text. `decode`: (region, rows) to Status.
template <typename Decoder, typename Decode>
std::string CompareBy(Decode decode, Decoder& decoder, const std::vector<uint8_t>& padded,
                      Rect region, const WholeImage& whole, Reduction reduction = 1,
                      PixelLayout wants = PixelLayout::kPlanar) {
  const Result<ImageInfo> info = decoder.Open(Unpadded(padded));
  if (!info.ok()) return info.error().ToString();
  if (Reduced(info->size, reduction) != whole.size) return "another size";
  const bool gray = whole.layout == PixelLayout::kGray || whole.layout == PixelLayout::kGray16;
  const bool luma = wants == PixelLayout::kGray;
  if (!luma && (info->components == 1) != gray) return "other components";
  if (region == Rect{}) region = {0, 0, whole.size.width, whole.size.height};
  KeepRows rows(wants);
  const Status status = decode(region, rows);
  if (!status.ok()) return status.error().ToString();
  if (rows.region().covered != region) return "covers more than the region";
  const std::string difference = Difference(rows, region, whole);
  return difference.empty() ? "" : Text(region) + ": " + difference;
}

template <typename Decoder>
std::string Compare(Decoder& decoder, const std::vector<uint8_t>& padded, Rect region,
                    const WholeImage& whole, PixelLayout wants = PixelLayout::kPlanar) {
  return CompareBy([&](const Rect& r, RowSink& rows) { return decoder.Decode(r, rows); }, decoder,
                   padded, region, whole, 1, wants);
}

// Returns the error of opening and decoding; Code::kInvalidArgument with an empty cause if there is
// none.
template <typename Decoder>
Error ErrorOf(Decoder& decoder, const std::vector<uint8_t>& padded, Rect region = {}) {
  Result<ImageInfo> info = decoder.Open(Unpadded(padded));
  if (!info.ok()) return std::move(info).error();
  if (region == Rect{}) region = {0, 0, info->size.width, info->size.height};
  KeepRows rows;
  Status status = decoder.Decode(region, rows);
  return status.ok() ? Error{} : std::move(status).error();
}

}  // namespace stoker::testing
