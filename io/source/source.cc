#include "io/source/source.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace stoker {

size_t SampleSource::pieces() const {
  return static_cast<size_t>(std::ranges::count_if(fields(), &Field::is_encoded));
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

Error NamedError(const SampleSource& source, uint64_t id, Error error) {
  std::string name;
  source.NameOf(id, name);
  if (!name.empty()) error.cause += " (" + name + ")";
  return error;
}

std::string FingerprintText(const SampleSource& source) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(source.Fingerprint()));
  return text.data();
}

}  // namespace stoker
