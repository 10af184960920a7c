#include "tests/fuzz/decode/decode_indexed.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/hash/hash.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/gpu/crops/forged_crops.h"
#include "tests/testing/random.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker::testing {
namespace {

using jpeg::CropIndex;
using jpeg::EntryPoint;
using jpeg::FrameHeader;
using jpeg::IndexShape;

constexpr int kInterval = 2;    // photographs are small
constexpr size_t kSigned = 16;  // after the checksum and the content's hash

struct Input {
  explicit Input(std::span<const uint8_t> bytes)
      : lies(bytes.subspan(2, std::min<size_t>(bytes[0] & 15, (bytes.size() - 2) / 3) * 3)),
        cut(bytes[1]),
        photograph(bytes.subspan(2 + lies.size())) {}

  std::span<const uint8_t> lies;
  size_t cut;
  std::span<const uint8_t> photograph;
};

// Returns an empty index if the fast decoder does not accept the file. If there can be no index,
// returns one of entry points that are all the same.
std::vector<uint8_t> MakeIndex(std::span<const uint8_t> file, const FrameHeader& header,
                               bool& sound) {
  std::vector<uint8_t> packed;
  sound = jpeg::CropIndexMaker(kInterval).Make(file, packed) == Fallback::kNone;
  if (sound) return packed;
  const IndexShape shape(header, kInterval);
  const std::vector<EntryPoint> entry_points(static_cast<size_t>(shape.entry_points()));
  return PackCropIndex(file, header, shape, entry_points);
}

void Lie(const Input& input, std::vector<uint8_t>& packed) {
  for (size_t i = 0; i < input.lies.size(); i += 3) {
    const size_t at = (input.lies[i] | size_t{input.lies[i + 1]} << 8) % (packed.size() - kSigned);
    packed[kSigned + at] ^= input.lies[i + 2];
  }
  packed.resize(std::max(kSigned, packed.size() - std::min(packed.size(), input.cut)));
  const uint64_t checksum = Hash64(std::span<const uint8_t>(packed).subspan(sizeof(uint64_t)));
  std::memcpy(packed.data(), &checksum, sizeof(checksum));
}

int64_t WrongEntryPoints(std::span<const uint8_t> file, const FrameHeader& header,
                         std::span<const uint8_t> honest, std::span<const uint8_t> packed) {
  CropIndex a, b;
  if (a.Open(honest, file, header) != CropIndex::Match::kUsable ||
      b.Open(packed, file, header) != CropIndex::Match::kUsable ||
      a.shape().entry_points() != b.shape().entry_points() ||
      a.shape().interval != b.shape().interval) {
    return a.shape().entry_points();
  }
  int64_t wrong = 0;
  for (int64_t i = 0; i < a.shape().entry_points(); ++i) wrong += a.At(i) == b.At(i) ? 0 : 1;
  return wrong;
}

// Asks for ranges that `random` chooses: none is outside the data, all are intact by the honest
// index, and none is when a byte of it has changed.
void CheckIntact(std::span<const uint8_t> file, const FrameHeader& header,
                 std::span<const uint8_t> honest, std::span<const uint8_t> packed,
                 uint64_t random) {
  CropIndex a, b;
  Require(a.Open(honest, file, header) == CropIndex::Match::kUsable, "the honest index is usable");
  (void)b.Open(packed, file, header);
  Require(a.HeaderIntact(file), "the header is intact");
  const auto data_bits = 8 * static_cast<int64_t>(file.size() - header.scan_offset);
  const EntryPoint until{static_cast<int64_t>(random % static_cast<uint64_t>(data_bits + 1)), {}};
  const auto far = static_cast<int64_t>(random);
  for (const int64_t bit : {int64_t{0}, until.bit / 2, until.bit, far, data_bits + 1}) {
    const EntryPoint from{bit, {}};
    const bool inside = 0 <= bit && bit <= until.bit;
    Require(a.Intact(file, from, until) == inside, "a range of the data is intact");
    Require(inside || !b.Intact(file, from, until), "no other range is");
    Require(!b.Intact(file, from, {data_bits + 8, {}}), "none ends outside the data");
  }
  const std::span<const uint8_t> shorter = file.first(file.size() - 1);
  Require(!a.HeaderIntact(shorter) && !a.Intact(shorter, {}, {}), "a shorter file is not");
  if (data_bits == 0) return;
  std::vector<uint8_t> changed(file.begin(), file.end());
  changed[std::min(header.scan_offset + static_cast<size_t>(until.byte()), file.size() - 1)] ^= 1;
  Require(!a.HeaderIntact(changed) || !a.Intact(changed, {until.bit / 2, {}}, until),
          "a range with a changed byte is not");
}

}  // namespace

void DecodeFuzzedIndex(std::span<const uint8_t> bytes) {
  static JpegDecoder decoder(kTight), without(kTight);  // state must not leak
  if (bytes.size() < 2) return;
  const Input input(bytes);
  const PaddedFile padded(input.photograph);
  const std::span<const uint8_t> file = padded.file();
  FrameHeader header;
  if (jpeg::ParseHeader(file, header) != Fallback::kNone) return;
  const Result<ImageInfo> info = decoder.Open(file);
  if (!info.ok() || !without.Open(file).ok()) return;  // too large
  bool sound = false;
  const std::vector<uint8_t> honest = MakeIndex(file, header, sound);
  std::vector<uint8_t> packed = honest;
  Lie(input, packed);
  CheckIntact(file, header, honest, packed, Digest(bytes));
  Random random(static_cast<uint32_t>(Digest(bytes)));
  if (sound) RequirePixelsOfTheCpu(file, honest, random);
  DecodeForgedCrop(file, packed, random);

  const Rect region = ChooseRegion(info->size, Digest(bytes));
  const uint64_t before = decoder.paths().indexed;
  Rows got, want;
  const Status status = decoder.Decode(region, got, packed),
               expected = without.Decode(region, want);
  if (decoder.paths().indexed == before) {
    Require(status.ok() == expected.ok(), "an index that is not used changes nothing");
    Require(status.ok() || status.error().ToString() == expected.error().ToString(),
            "an index that is not used changes no error");
    Require(!status.ok() || got.rows() == want.rows(),
            "an index that is not used changes no pixel");
    return;
  }
  Require(status.ok() && got.rows().size() == static_cast<size_t>(region.height),
          "the region asked for is delivered");
  if (!sound || !expected.ok() || WrongEntryPoints(file, header, honest, packed) != 0) return;
  Require(got.rows() == want.rows(), "an index without a wrong place changes no pixel");
}

}  // namespace stoker::testing
