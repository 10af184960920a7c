#include "io/arrow/flat_buffer.h"

namespace stoker {

FlatTable FlatBuffer::Root() { return TableAt(Load<uint32_t>(0)); }

// A table begins with the distance back to its vtable, which has its own size in bytes, the size of
// the table, and the position of each field in the table.
FlatTable FlatBuffer::TableAt(size_t at) {
  const auto back = Load<int32_t>(at);
  const auto vtable = static_cast<int64_t>(at) - back;
  if (!sound_ || vtable < 0 || !Has(static_cast<size_t>(vtable), 2 * sizeof(uint16_t))) {
    sound_ = false;
    return {};
  }
  return {*this, at};
}

size_t FlatTable::PositionOf(size_t field) const {
  if (!present()) return 0;
  const size_t vtable = at_ - static_cast<size_t>(buffer_->Load<int32_t>(at_));
  const size_t entry = (2 + field) * sizeof(uint16_t);
  if (entry + sizeof(uint16_t) > buffer_->Load<uint16_t>(vtable)) return 0;
  const auto position = buffer_->Load<uint16_t>(vtable + entry);
  return position == 0 ? 0 : at_ + position;
}

size_t FlatTable::Follow(size_t field) const {
  const size_t at = PositionOf(field);
  if (at == 0) return 0;
  const size_t to = at + buffer_->Load<uint32_t>(at);
  return buffer_->Has(to, sizeof(uint32_t)) ? to : 0;
}

FlatTable FlatTable::Table(size_t field) const {
  const size_t at = Follow(field);
  return at == 0 ? FlatTable() : buffer_->TableAt(at);
}

std::string_view FlatTable::Text(size_t field) const {
  const size_t at = Follow(field);
  if (at == 0) return {};
  const size_t begin = at + sizeof(uint32_t), size = buffer_->Load<uint32_t>(at);
  if (!buffer_->Has(begin, size)) return {};
  return {reinterpret_cast<const char*>(buffer_->bytes_.data()) + begin, size};
}

FlatVector FlatTable::Vector(size_t field, size_t element_bytes) const {
  const size_t at = Follow(field);
  if (at == 0) return {};
  const size_t begin = at + sizeof(uint32_t), size = buffer_->Load<uint32_t>(at);
  if (!buffer_->Has(begin, size * element_bytes)) return {};
  return {*buffer_, begin, size};
}

FlatTable FlatVector::TableAt(size_t i) const {
  const size_t at = begin_ + i * sizeof(uint32_t);
  return buffer_->TableAt(at + buffer_->Load<uint32_t>(at));
}

}  // namespace stoker
