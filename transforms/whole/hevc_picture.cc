#include "transforms/whole/hevc_picture.h"

#include <string>
#include <vector>

#include "core/result/try.h"
#include "transforms/whole/bit_reader.h"
#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

using Bytes = std::span<const uint8_t>;

Error Wrong(const char* what) { return Damaged(ImageFormat::kHeic, what); }

// The unit without emulation prevention bytes (7.4.2): 3 after two zeros.
std::vector<uint8_t> WithoutPrevention(Bytes unit) {
  std::vector<uint8_t> bytes;
  int zeros = 0;
  for (const uint8_t byte : unit) {
    const bool prevents = zeros >= 2 && byte == 3;
    zeros = byte == 0 ? zeros + 1 : 0;
    if (!prevents) bytes.push_back(byte);
  }
  return bytes;
}

// 7.3.3, of which only the length counts.
void SkipProfile(BitReader& reader, uint32_t layers) {
  constexpr size_t kProfile = 88, kLevel = 8;
  reader.Skip(kProfile + kLevel);
  if (layers == 0) return;
  size_t bits = 0;
  for (int i = 0; i < 8; ++i) {
    bits += reader.Take(1) * kProfile;
    bits += reader.Take(1) * kLevel;
  }
  reader.Skip(bits);
}

// A sequence parameter set (7.3.2.2) up to its size.
Status CheckParameters(Bytes unit, ImageSize size) {
  const std::vector<uint8_t> bytes = WithoutPrevention(unit);
  BitReader reader(bytes);
  reader.Skip(16 + 4);  // the unit's header, and the video parameter set
  const uint32_t layers = reader.Take(3);
  reader.Skip(1);
  SkipProfile(reader, layers);
  (void)reader.TakeCode();  // its number
  if (reader.TakeCode() == 3) reader.Skip(1);
  const uint32_t width = reader.TakeCode(), height = reader.TakeCode();
  if (reader.failed()) return Wrong("its sequence parameters");
  constexpr uint32_t kBlock = 64;
  const auto round_up = [](int side) {
    return (static_cast<uint32_t>(side) + kBlock - 1) / kBlock * kBlock;
  };
  if (width <= round_up(size.width) && height <= round_up(size.height)) return {};
  return Wrong("its pictures are larger than its header says");
}

class Checker {
 public:
  explicit Checker(ImageSize size) : size_(size) {}

  Status Check(Bytes unit) {
    if (unit.size() < 3) return Wrong("an empty NAL unit");
    if (++units_ > 64) return More("NAL units");
    // After the type there is the layer, and 1 more than the temporal sublayer.
    const int type = unit[0] >> 1;
    if ((unit[0] & 1) != 0 || unit[1] != 1) return More("layers");
    switch (type) {
      case kIdr:
      case kIdrWithoutLeading:
        // No emulation prevention is in these bytes: the first two are not zero.
        if ((unit[2] & 0x80) != 0 && ++pictures_ > 1) return More("pictures");
        return ++slices_ > 4 ? Status(More("slices")) : Status();
      case kVideoParameters:
      case kSequenceParameters:
      case kPictureParameters:
        if (++parameters_[type - kVideoParameters] > 2) return More("parameter sets");
        return type == kSequenceParameters ? CheckParameters(unit, size_) : Status();
      case kDelimiter:
      case kFiller:
      case kInformation:
      case kInformationAfter:
        return {};
      default:
        return Unsupported(ImageFormat::kHeic, "NAL units of type " + std::to_string(type));
    }
  }

 private:
  // Table 7-1.
  static constexpr int kIdr = 19, kIdrWithoutLeading = 20, kVideoParameters = 32,
                       kSequenceParameters = 33, kPictureParameters = 34, kDelimiter = 35,
                       kFiller = 38, kInformation = 39, kInformationAfter = 40;

  static Error More(const std::string& what) {
    return Unsupported(ImageFormat::kHeic, "more " + what + " in an item than usual");
  }

  const ImageSize size_;
  int units_ = 0, pictures_ = 0, slices_ = 0;
  int parameters_[3] = {};
};

size_t TakeLength(Bytes& bytes, size_t count) {
  size_t length = 0;
  for (const uint8_t byte : bytes.first(count)) length = length << 8 | byte;
  bytes = bytes.subspan(count);
  return length;
}

// Checks a unit after its length of that many bytes.
Status CheckNext(Checker& checker, Bytes& bytes, size_t length_bytes) {
  if (bytes.size() < length_bytes) return Wrong("the length of a NAL unit");
  const size_t length = TakeLength(bytes, length_bytes);
  if (length > bytes.size()) return Wrong("the length of a NAL unit");
  TRY(checker.Check(bytes.first(length)));
  bytes = bytes.subspan(length);
  return {};
}

}  // namespace

// The hvcC box: ISO/IEC 14496-15, 8.3.3.1.
Status CheckHevcPicture(std::span<const uint8_t> setup, std::span<const uint8_t> data,
                        ImageSize size) {
  constexpr size_t kFixed = 22;
  if (setup.size() <= kFixed) return Wrong("its hvcC box");
  if ((setup[kFixed - 1] & 3) != 3) {
    return Unsupported(ImageFormat::kHeic, "lengths of less than 4 bytes");
  }
  Checker checker(size);
  Bytes bytes = setup.subspan(kFixed);
  for (size_t arrays = TakeLength(bytes, 1); arrays > 0; --arrays) {
    if (bytes.size() < 3) return Wrong("its hvcC box");
    (void)TakeLength(bytes, 1);  // the units' type, which they have, too
    for (size_t units = TakeLength(bytes, 2); units > 0; --units) {
      TRY(CheckNext(checker, bytes, 2));
    }
  }
  while (!data.empty()) TRY(CheckNext(checker, data, 4));
  return {};
}

}  // namespace stoker::whole
