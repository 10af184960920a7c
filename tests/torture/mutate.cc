#include "tests/torture/mutate.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "tests/fuzz/decode/decode_formats.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "tests/testing/images/photos.h"
#include "tests/torture/image_parts.h"

namespace stoker::testing {
namespace {

using Bytes = std::vector<uint8_t>;

bool IsJpeg(PhotoForm form) { return form <= PhotoForm::kRestarts; }

ptrdiff_t Offset(size_t at) { return static_cast<ptrdiff_t>(at); }

class Mutator {
 public:
  // `random` must outlive it.
  Mutator(const std::vector<std::filesystem::path>& photos, RandomStream& random)
      : photos_(photos), random_(random) {
    const double form = random_.Uniform();
    form_ = form < 0.5    ? PhotoForm::kJpeg
            : form < 0.62 ? PhotoForm::kProgressive
            : form < 0.7  ? PhotoForm::kRestarts
            : form < 0.82 ? PhotoForm::kPng
            : form < 0.91 ? PhotoForm::kWebp
                          : PhotoForm::kLosslessWebp;
    bytes_ = Photo();
  }

  void Apply(MutationKind kind) {
    parts_ = PartsOf(bytes_);
    switch (kind) {
      case MutationKind::kBits:
        return FlipBits();
      case MutationKind::kBytes:
        return SetBytes();
      case MutationKind::kRemoved:
        return Remove(Range());
      case MutationKind::kRepeated:
        return Insert(Copy(Range()));
      case MutationKind::kTruncated:
        return bytes_.resize(1 + Below(bytes_.size()));
      case MutationKind::kSpliced:
        return Splice();
      case MutationKind::kParts:
        return MoveParts();
      case MutationKind::kNames:
        return Rename();
      case MutationKind::kLengths:
        return ChangeLength();
      case MutationKind::kDimensions:
        return ChangeDimensions();
      case MutationKind::kHeader:
        return ChangeHeader();
      case MutationKind::kTables:
        return ChangeTables();
      case MutationKind::kMetadata:
        return AddMetadata();
      case MutationKind::kSeveral:
        for (uint64_t n = 2 + Below(4); n > 0; --n) {
          Apply(static_cast<MutationKind>(Below(kMutationKinds - 1)));
        }
    }
  }

  // Half of the PNGs have the checksums of what they are now, so that decoders get past them.
  Mutation Finish(MutationKind kind) && {
    if (form_ == PhotoForm::kPng && Chance(0.5)) MendPngChecksums(bytes_);
    if (bytes_.empty()) bytes_.push_back(0);
    return {kind, form_, std::move(bytes_)};
  }

 private:
  uint64_t Below(uint64_t n) { return random_.Below(n); }
  bool Chance(double p) { return random_.Uniform() < p; }
  template <typename Value>
  Value Of(std::initializer_list<Value> values) {
    return values.begin()[Below(values.size())];
  }
  Bytes Photo() { return InForm(form_, ReadFile(photos_[Below(photos_.size())])); }

  // Half of them among the headers: others are in coded data nearly always. Precondition: there are
  // bytes.
  size_t AnyPosition() {
    constexpr size_t kHeaders = 700;
    return Below(Chance(0.5) ? std::min(kHeaders, bytes_.size()) : bytes_.size());
  }

  // As often of a few bytes as of many thousand.
  ByteSpan Range() {
    if (bytes_.empty()) return {};
    const size_t at = AnyPosition();
    const uint64_t longest = uint64_t{1} << Below(18);
    return {at, std::min<size_t>(1 + Below(longest), bytes_.size() - at)};
  }

  uint8_t AnyByte() {
    return Of<uint8_t>({0, 1, 0x7F, 0x80, 0xFF, static_cast<uint8_t>(Below(256))});
  }

  Bytes Copy(ByteSpan span) const {
    return {bytes_.begin() + Offset(span.at), bytes_.begin() + Offset(span.at + span.size)};
  }
  void Remove(ByteSpan span) {
    bytes_.erase(bytes_.begin() + Offset(span.at), bytes_.begin() + Offset(span.at + span.size));
  }
  void Insert(size_t at, const Bytes& what) {
    bytes_.insert(bytes_.begin() + Offset(at), what.begin(), what.end());
  }
  void Insert(const Bytes& what) {
    const size_t at = bytes_.empty() ? 0 : AnyPosition();
    for (uint64_t times = 1 + Below(4); times > 0; --times) Insert(at, what);
  }
  void Replace(ByteSpan span, const Bytes& by) {
    Remove(span);
    Insert(span.at, by);
  }
  void Set(ByteSpan span, uint64_t value) {
    for (size_t i = 0; i < span.size; ++i) {
      const size_t place = LittleEndian() ? i : span.size - 1 - i;
      bytes_[span.at + i] = static_cast<uint8_t>(value >> (8 * place));
    }
  }
  uint64_t Get(ByteSpan span) const {
    uint64_t value = 0;
    for (size_t i = 0; i < span.size; ++i) {
      const size_t place = LittleEndian() ? i : span.size - 1 - i;
      value |= uint64_t{bytes_[span.at + i]} << (8 * place);
    }
    return value;
  }
  bool LittleEndian() const { return form_ >= PhotoForm::kWebp; }

  void FlipBits() {
    if (bytes_.empty()) return;
    for (uint64_t n = uint64_t{1} << Below(6); n > 0; --n) {
      bytes_[AnyPosition()] ^= static_cast<uint8_t>(1U << Below(8));
    }
  }

  void SetBytes() {
    if (bytes_.empty()) return;
    for (uint64_t n = uint64_t{1} << Below(7); n > 0; --n) bytes_[AnyPosition()] = AnyByte();
  }

  void Splice() {
    const Bytes other = Photo();
    const size_t begin = Below(bytes_.size() + 1);
    const size_t end = Chance(0.5) ? std::min(begin, other.size()) : Below(other.size());
    bytes_.resize(begin);
    bytes_.insert(bytes_.end(), other.begin() + Offset(end), other.end());
  }

  void MoveParts() {
    if (parts_.size() < 2) return SetBytes();
    const size_t a = Below(parts_.size() - 1), b = a + 1 + Below(parts_.size() - 1 - a);
    switch (Below(3)) {
      case 0:
        return Remove(parts_[a].whole);
      case 1:
        return Insert(parts_[b].whole.at, Copy(parts_[a].whole));
      default: {
        const Bytes first = Copy(parts_[a].whole), second = Copy(parts_[b].whole);
        Replace(parts_[b].whole, first);
        Replace(parts_[a].whole, second);
      }
    }
  }

  void Rename() {
    if (parts_.empty()) return SetBytes();
    const ByteSpan name = parts_[Below(parts_.size())].name;
    if (IsJpeg(form_) && Chance(0.7)) {
      bytes_[name.at] = Of<uint8_t>({0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0xC5, 0xC9, 0xCA, 0xCC, 0xD0,
                                     0xD8, 0xD9, 0xDA, 0xDB, 0xDC, 0xDD, 0xE0, 0xEE, 0xFE, 0xFF});
    } else if (Chance(0.5)) {
      const Bytes other = Copy(parts_[Below(parts_.size())].name);
      std::ranges::copy(other, bytes_.begin() + Offset(name.at));
    } else {
      bytes_[name.at + Below(name.size)] = AnyByte();
    }
  }

  void ChangeLength() {
    std::vector<ByteSpan> lengths;
    for (const ImagePart& part : parts_) {
      if (part.length.size > 0) lengths.push_back(part.length);
    }
    if (LittleEndian() && bytes_.size() >= 8) lengths.push_back({4, 4});  // the whole file's
    if (lengths.empty()) return SetBytes();
    const ByteSpan length = lengths[Below(lengths.size())];
    const uint64_t now = Get(length);
    Set(length, Of<uint64_t>({0, 1, 2, now - 1, now + 1, now / 2, 2 * now, 0x7FFFFFFF, 0x80000000,
                              ~uint64_t{0}, Below(bytes_.size() + 1), random_.Bits()}));
  }

  const ImagePart* Named(std::initializer_list<std::string_view> names) const {
    for (const ImagePart& part : parts_) {
      for (const std::string_view name : names) {
        const uint8_t* const own = bytes_.data() + part.name.at;
        if (name.size() == part.name.size &&
            std::equal(name.begin(), name.end(), own,
                       [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; })) {
          return &part;
        }
      }
    }
    return nullptr;
  }
  const ImagePart* Frame() const {
    return Named({"\xC0", "\xC1", "\xC2", "IHDR", "VP8 ", "VP8L", "VP8X"});
  }

  // Where width and height are, of a form with so large a header.
  std::vector<ByteSpan> Sides(const ImagePart& frame) const {
    const size_t at = frame.data.at;
    std::vector<ByteSpan> sides;
    if (IsJpeg(form_)) {
      sides = {{at + 1, 2}, {at + 3, 2}};
    } else if (form_ == PhotoForm::kPng) {
      sides = {{at, 4}, {at + 4, 4}};
    } else if (form_ == PhotoForm::kWebp) {
      sides = {{at + 6, 2}, {at + 8, 2}};
    } else {
      sides = {{at + 1, 4}};  // two of 14 bits
    }
    const size_t end = at + frame.data.size;
    std::erase_if(sides, [end](ByteSpan side) { return side.at + side.size > end; });
    return sides;
  }

  void ChangeDimensions() {
    const ImagePart* const frame = Frame();
    if (frame == nullptr) return SetBytes();
    for (const ByteSpan side : Sides(*frame)) {
      if (Chance(0.3)) continue;
      const uint64_t now = Get(side);
      Set(side, Of<uint64_t>({0, 1, 7, now - 1, now + 1, now + 8, now / 2, 2 * now, 5 * now, 4000,
                              16383, 65500, 65535, random_.Bits()}));
    }
  }

  // Of a JPEG, also the headers of its scans; of others the rest of the first chunk.
  void ChangeHeader() {
    const ImagePart* header = Frame();
    if (IsJpeg(form_) && Chance(0.4)) header = Named({"\xDA"});
    if (header == nullptr || header->data.size == 0) return SetBytes();
    const size_t bytes = std::min<size_t>(header->data.size, 32);
    for (uint64_t n = 1 + Below(3); n > 0; --n) {
      const uint8_t sampling = Of<uint8_t>({0x00, 0x11, 0x12, 0x21, 0x22, 0x14, 0x41, 0x44, 0x33});
      bytes_[header->data.at + Below(bytes)] = Chance(0.5) ? sampling : AnyByte();
    }
  }

  void ChangeTables() {
    std::vector<ImagePart> parts = parts_;
    std::erase_if(parts, [](const ImagePart& part) { return part.data.size == 0; });
    if (parts.empty()) return SetBytes();
    const ImagePart& part = parts[Below(parts.size())];
    if (Chance(0.4)) {
      for (uint64_t n = uint64_t{1} << Below(6); n > 0; --n) {
        bytes_[part.data.at + Below(part.data.size)] = AnyByte();
      }
      return;
    }
    const Bytes name = Copy(part.name), other = Photo();
    for (const ImagePart& theirs : PartsOf(other)) {
      const auto whole = std::span(other).subspan(theirs.whole.at, theirs.whole.size);
      if (!std::ranges::equal(std::span(other).subspan(theirs.name.at, theirs.name.size), name)) {
        continue;
      }
      return Replace(part.whole, {whole.begin(), whole.end()});
    }
  }

  // Its content: a TIFF structure, or bytes of any length, of which some are changed.
  Bytes MetadataContent() {
    Bytes content;
    if (Chance(0.6)) {
      content = OrientationTiff(static_cast<int>(Below(12)), Chance(0.5));
    } else {
      content.assign(uint64_t{1} << Below(17), AnyByte());
    }
    for (uint64_t n = Below(6); n > 0 && !content.empty(); --n) {
      content[Below(content.size())] = AnyByte();
    }
    return content;
  }

  Bytes MetadataPart() {
    Bytes content = MetadataContent();
    if (form_ == PhotoForm::kPng) {
      return PngChunk(
          Of<std::string_view>({"eXIf", "iCCP", "tEXt", "zTXt", "gAMA", "tRNS", "PLTE"}), content);
    }
    if (LittleEndian()) {
      return WebpChunk(Of<std::string_view>({"EXIF", "ICCP", "XMP ", "ALPH", "ANIM"}), content);
    }
    constexpr size_t kMost = 65533;
    const std::string_view head =
        Of<std::string_view>({{"Exif\0\0", 6}, {"ICC_PROFILE\0\1\2", 14}, {"Adobe\0d", 7}, ""});
    content.insert(content.begin(), head.begin(), head.end());
    content.resize(std::min(content.size(), kMost));
    const auto length = static_cast<unsigned>(content.size() + 2);
    Bytes segment = {0xFF, Of<uint8_t>({0xE0, 0xE1, 0xE2, 0xEE, 0xFE}),
                     static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)};
    segment.insert(segment.end(), content.begin(), content.end());
    return segment;
  }

  void AddMetadata() {
    if (parts_.empty()) return SetBytes();
    const size_t at = parts_[Below(std::min<size_t>(parts_.size(), 6))].whole.at;
    const size_t behind_begin = IsJpeg(form_) ? std::max<size_t>(at, 2) : at;
    for (uint64_t n = 1 + Below(3); n > 0; --n) Insert(behind_begin, MetadataPart());
    if (LittleEndian() && Chance(0.7)) Set({4, 4}, bytes_.size() - 8);
  }

  const std::vector<std::filesystem::path>& photos_;
  RandomStream& random_;
  PhotoForm form_{};
  Bytes bytes_;
  std::vector<ImagePart> parts_;  // of bytes_, as they were before the mutation
};

}  // namespace

const char* NameOf(MutationKind kind) {
  constexpr std::array<const char*, kMutationKinds> kNames = {
      "bits",  "bytes",   "removed",    "repeated", "truncated", "spliced",  "parts",
      "names", "lengths", "dimensions", "header",   "tables",    "metadata", "several"};
  return kNames[static_cast<size_t>(kind)];
}

Mutation Mutate(const std::vector<std::filesystem::path>& photos, uint64_t seed, uint64_t number) {
  const auto kind = static_cast<MutationKind>(number % kMutationKinds);
  RandomStream random({seed, 0, number}, 0);
  Mutator mutator(photos, random);
  mutator.Apply(kind);
  return std::move(mutator).Finish(kind);
}

}  // namespace stoker::testing
