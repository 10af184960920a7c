#include "tests/fuzz/decode/decode_jpeg.h"

#include <cstring>
#include <optional>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/reference_decoder.h"

namespace stoker::testing {
namespace {

void ComparePixels(const Rows& rows, const Rect& region, const WholeImage& whole) {
  Require((rows.region().layout == PixelLayout::kGray) == (whole.layout == PixelLayout::kGray),
          "the layout is that of the full decode");
  const auto bytes = static_cast<size_t>(BytesPerPixel(whole.layout));
  const auto stride = static_cast<size_t>(whole.size.width) * bytes;
  for (size_t y = 0; y < rows.rows().size(); ++y) {
    const uint8_t* got =
        rows.rows()[y].data() + static_cast<size_t>(region.x - rows.region().covered.x) * bytes;
    const uint8_t* want = whole.pixels.data() + (static_cast<size_t>(region.y) + y) * stride +
                          static_cast<size_t>(region.x) * bytes;
    Require(std::memcmp(got, want, static_cast<size_t>(region.width) * bytes) == 0,
            "pixels are those of the full decode");
  }
}

void RequireOffset(const Error& error, size_t size) {
  Require(error.offset.has_value() && *error.offset <= size, "errors have an offset in the file");
  Require(!error.cause.empty(), "errors have a cause");
}

}  // namespace

namespace {

constexpr DecodeLimits kTightTruncated{1 << 18, 20, /*accept_truncated=*/true};

struct Outcome {
  Result<ImageInfo> info;
  Status status;  // of Decode, if Open succeeded
  Rect region;    // of the image, reduced
  Reduction reduction = 1;
  Rows rows;

  bool ok() const { return info.ok() && status.ok(); }
  const Error& error() const { return info.ok() ? status.error() : info.error(); }
};

void CheckRegion(const Outcome& outcome) {
  const Rect& covered = outcome.rows.region().covered;
  const Rect& region = outcome.region;
  Require(outcome.rows.rows().size() == static_cast<size_t>(region.height) &&
              covered.y == region.y && covered.height == region.height && covered.x <= region.x &&
              covered.x + covered.width >= region.x + region.width &&
              covered.x + covered.width <= Reduced(outcome.info->size, outcome.reduction).width,
          "the region asked for is delivered");
}

Outcome DecodeChosen(JpegDecoder& decoder, std::span<const uint8_t> bytes, uint64_t digest) {
  Outcome outcome{decoder.Open(bytes), {}, {}, 1, {}};
  if (outcome.info.ok()) {
    outcome.reduction = ChooseReduction(*outcome.info, digest);
    outcome.region = ChooseRegion(Reduced(outcome.info->size, outcome.reduction), digest);
    outcome.status = decoder.Decode(outcome.region, outcome.rows, {}, outcome.reduction);
  }
  if (outcome.ok()) {
    CheckRegion(outcome);
  } else {
    RequireOffset(outcome.error(), bytes.size());
  }
  return outcome;
}

// Expects the same pixels; libjpeg-turbo may deliver more columns.
void CompareRows(const Outcome& ours, const Outcome& libjpegs) {
  const auto pixel = ours.rows.region().layout == PixelLayout::kGray ? size_t{1} : size_t{3};
  const auto at = [&](const Outcome& o, size_t y) {
    return o.rows.rows()[y].data() +
           static_cast<size_t>(o.region.x - o.rows.region().covered.x) * pixel;
  };
  for (size_t y = 0; y < ours.rows.rows().size(); ++y) {
    Require(std::memcmp(at(ours, y), at(libjpegs, y),
                        static_cast<size_t>(ours.region.width) * pixel) == 0,
            "pixels are those of libjpeg-turbo");
  }
}

// Returns none if the decoder refuses the file.
std::optional<Outcome> DecodeByBoth(JpegDecoder& decoder, JpegDecoder& libjpeg,
                                    std::span<const uint8_t> bytes) {
  const uint64_t digest = Digest(bytes);
  Outcome ours = DecodeChosen(decoder, bytes, digest);
  const Outcome theirs = DecodeChosen(libjpeg, bytes, digest);
  Require(ours.ok() == theirs.ok(), "what libjpeg-turbo accepts is accepted, and nothing else");
  if (ours.ok()) {
    CompareRows(ours, theirs);
    return ours;
  }
  Require(ours.error().ToString() == theirs.error().ToString(), "errors are libjpeg-turbo's");
  return std::nullopt;
}

}  // namespace

void DecodeFuzzedJpeg(std::span<const uint8_t> input) {
  // Reused: state must not leak from image to image.
  constexpr auto kLibjpegOnly = JpegDecoder::Backend::kLibjpegOnly;
  static JpegDecoder decoder(kTight), libjpeg(kTight, nullptr, kLibjpegOnly);
  static JpegDecoder accepting(kTightTruncated),
      accepting_libjpeg(kTightTruncated, nullptr, kLibjpegOnly);
  const PaddedFile padded(input);
  const std::span<const uint8_t> bytes = padded.file();
  const std::optional<Outcome> strict = DecodeByBoth(decoder, libjpeg, bytes);
  if (strict) {
    const Result<WholeImage> whole = DecodeWhole(bytes, strict->reduction);
    if (whole.ok()) ComparePixels(strict->rows, strict->region, *whole);
  }
  const uint64_t truncated = accepting.paths().accepted_truncated;
  const std::optional<Outcome> lenient = DecodeByBoth(accepting, accepting_libjpeg, bytes);
  if (strict) {
    Require(lenient && lenient->rows.rows() == strict->rows.rows(),
            "accepting more changes nothing else");
  }
  if (lenient && accepting.paths().accepted_truncated != truncated) {
    Require(!strict, "only what is refused otherwise is accepted as truncated");
    const Result<WholeImage> whole = DecodeTruncated(bytes, lenient->reduction);
    if (whole.ok()) ComparePixels(lenient->rows, lenient->region, *whole);
  }
}

}  // namespace stoker::testing
