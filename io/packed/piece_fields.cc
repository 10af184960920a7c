#include "io/packed/piece_fields.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/batch/dtype.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

using packed_set::PieceField;

namespace {

std::string_view NameOf(const PieceField& field) { return field.name.data(); }

bool IsSound(const PieceField& field) {
  constexpr uint16_t kMost8 = 255;
  const bool is_image = field.mask_bits == 0 && field.fill == 0;
  const bool is_mask = (field.mask_bits == 8 && field.fill <= kMost8) || field.mask_bits == 16;
  const char first = field.name.front();
  const bool is_named = first != '\0' && first != '.' && field.name.back() == '\0' &&
                        NameOf(field).find('/') == std::string_view::npos;
  return is_named && (is_image || is_mask);
}

Error CannotStore(std::string cause, std::string advice) {
  return {.code = Code::kUnimplemented, .cause = std::move(cause), .advice = std::move(advice)};
}

// Precondition: an encoded field.
Result<PieceField> PieceFieldOf(const Field& field) {
  PieceField made{};
  const bool is_mask = field.kind == Field::Kind::kMask;
  if (is_mask) made.mask_bits = field.dtype == DType::kU16 ? 16 : 8;
  made.fill = is_mask ? field.fill : uint16_t{0};
  std::copy_n(field.name.data(), std::min(field.name.size(), made.name.size() - 1),
              made.name.data());
  if (NameOf(made) != field.name) {
    return CannotStore("the name '" + Printable(field.name) + "' is too long for a packed set",
                       "Give the field a name of fewer than 56 bytes");
  }
  if (IsSound(made)) return made;
  return CannotStore("'" + Printable(field.name) + "' cannot be the name of a folder, which " +
                         "`stoker unpack` makes for each field",
                     "Give the field a name without a slash that does not begin with a dot");
}

}  // namespace

bool AreSound(std::span<const PieceField> fields) {
  if (fields.size() < 2 || fields.size() > packed_set::kMaxPieces) return false;
  if (!std::ranges::all_of(fields, IsSound) || fields[0].mask_bits != 0) return false;
  std::set<std::string_view> names;
  return std::ranges::all_of(fields,
                             [&](const PieceField& f) { return names.insert(NameOf(f)).second; });
}

Status ReadPieceFields(const SectionFile& file, std::vector<PieceField>& fields) {
  fields.clear();
  if (!file.Has(sections::kPieceFields)) return {};
  return file.ReadColumn(
      sections::kPieceFields, fields, [](uint64_t n) { return n <= packed_set::kMaxPieces; },
      [&](size_t) { return AreSound(fields); });
}

Result<std::vector<PieceField>> PieceFieldsOf(std::span<const Field> fields) {
  std::vector<PieceField> made;
  for (const Field& field : fields) {
    if (!field.is_encoded()) {
      return CannotStore(
          "a packed set of several images stores images and masks alone, and not '" +
              Printable(field.name) + "'",
          "Read the files themselves: sources with labels or objects are not packed");
    }
    ASSIGN_OR_RETURN(made.emplace_back(), PieceFieldOf(field));
  }
  if (AreSound(made)) return made;
  return CannotStore("samples have " + std::to_string(made.size()) +
                         Plural(made.size(), " image", " images") + " each, and a packed set of " +
                         "several images has 2 to " + std::to_string(packed_set::kMaxPieces),
                     "Read the files themselves");
}

std::vector<Field> FieldsOf(std::span<const PieceField> fields) {
  std::vector<Field> made;
  for (const PieceField& field : fields) {
    const bool is_mask = field.mask_bits != 0;
    made.push_back({.name = field.name.data(),
                    .kind = is_mask ? Field::Kind::kMask : Field::Kind::kImage,
                    .dtype = field.mask_bits == 16 ? DType::kU16 : DType::kU8,
                    .fill = field.fill});
  }
  return made;
}

}  // namespace stoker
