#include "io/source/source.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/hash/hash.h"
#include "io/source/image_numbers.h"

namespace stoker {

size_t SampleSource::encoded_fields() const {
  return static_cast<size_t>(std::ranges::count_if(fields(), &Field::is_encoded));
}

size_t SampleSource::pieces() const {
  size_t pieces = 0;
  for (const Field& field : fields()) pieces += field.images();
  return pieces;
}

bool SampleSource::varies() const { return std::ranges::any_of(fields(), &Field::varies); }

bool SampleSource::has_clips() const {
  return std::ranges::any_of(fields(),
                             [](const Field& field) { return field.count != 0 && !field.varies; });
}

SampleSource::PlaceOfPiece SampleSource::PlaceOf(size_t piece) const {
  size_t field = 0;
  for (; piece >= fields()[field].images(); ++field) piece -= fields()[field].images();
  return {.field = field, .image = piece};
}

size_t SampleSource::PieceOfSameSize(size_t piece) const {
  const auto [field, image] = PlaceOf(piece);
  if (fields()[field].varies) return piece;
  const bool is_of_clip = fields()[field].kind == Field::Kind::kImage && fields()[field].count != 0;
  return is_of_clip ? piece - image : 0;
}

Result<std::span<const uint8_t>> SampleSource::UnpackPiece(uint64_t /*id*/, size_t /*piece*/,
                                                           std::span<const uint8_t> record) const {
  if (!has_records()) return record;
  return Error{.code = Code::kUnimplemented,
               .cause = Describe() + " has several records a sample, and unpacks the first alone"};
}

std::optional<size_t> SampleSource::label() const {
  const std::span<const Field> all = fields();
  const auto found = std::ranges::find_if(all, &Field::is_label);
  if (found == all.end()) return std::nullopt;
  return static_cast<size_t>(found - all.begin());
}

int64_t SampleSource::LabelOf(uint64_t id) const {
  const std::optional<size_t> field = label();
  if (!field || fields()[*field].kind != Field::Kind::kFixed ||
      !fields()[*field].is_class_number()) {
    return kNoLabel;
  }
  uint64_t row = 0;  // as large as any integer type
  FixedRows(*field, {&id, 1}, &row);
  return fields()[*field].ClassNumberIn(&row);
}

namespace {

// Returns the own name of a sample's piece; empty if it has none besides its file's.
std::string OwnName(const SampleSource& source, uint64_t id, size_t piece) {
  std::string name;
  piece == 0 ? source.NameOf(id, name) : source.NameOfPiece(id, piece, name);
  return name;
}

}  // namespace

uint64_t ImageNumbers::Hash(uint64_t seed) const {
  const auto ends = std::as_bytes(std::span(ends_));
  if (ends.empty()) return seed;
  return Hash64({reinterpret_cast<const uint8_t*>(ends.data()), ends.size()}, seed);
}

Status CheckFixedImages(const std::string& what, const SampleSource& source) {
  if (!source.varies()) return {};
  return Error{.code = Code::kUnimplemented,
               .cause = what + ": samples of " + source.Describe() + " have any number of images",
               .advice =
                   "Only a loader whose last transform is a processor takes them "
                   "(stoker.processor); otherwise give one image for each sample"};
}

Error NamedError(const SampleSource& source, uint64_t id, Error error, size_t piece) {
  const std::string name = OwnName(source, id, piece);
  if (!name.empty()) error.cause += " (" + name + ")";
  return error;
}

std::string DescribeSizedImage(const SampleSource& source, uint64_t id, size_t piece,
                               const std::string& path) {
  const std::string name = OwnName(source, id, piece);
  const bool is_of_clip = source.fields()[source.PlaceOf(piece).field].count != 0;
  return (name.empty() ? path : name) +
         (is_of_clip ? ", the first image of its clip" : ", the image of this sample");
}

std::string FingerprintText(const SampleSource& source) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(source.Fingerprint()));
  return text.data();
}

}  // namespace stoker
