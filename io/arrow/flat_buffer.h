// FlatBuffer: reads a flatbuffer (flatbuffers.dev) from untrusted bytes.
//
// Every access is checked against the buffer's end. Values outside it read as absent, and sound()
// is false from then on: a caller reads everything it needs, then checks once. Shared parts and
// cycles are not noticed, so a caller that follows tables of tables must limit depth and number,
// and one that copies texts must limit their bytes: many tables may share one long text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace stoker {

class FlatBuffer;
class FlatVector;

// A table; an absent one has no fields. `field`: its number in the schema, from 0; a union has two,
// its type and its value. Valid as long as the FlatBuffer.
class FlatTable {
 public:
  FlatTable() = default;

  bool present() const { return buffer_ != nullptr; }
  // Returns the value of a number; `otherwise` if the table does not have it.
  template <typename T>
  T Number(size_t field, T otherwise = {}) const;
  FlatTable Table(size_t field) const;
  std::string_view Text(size_t field) const;
  // `element_bytes`: the size of a number or struct; 4 for tables.
  FlatVector Vector(size_t field, size_t element_bytes) const;

 private:
  friend class FlatBuffer;
  FlatTable(FlatBuffer& buffer, size_t at) : buffer_(&buffer), at_(at) {}

  size_t PositionOf(size_t field) const;  // 0 means absent
  size_t Follow(size_t field) const;      // where the field's offset leads; 0 means absent

  FlatBuffer* buffer_ = nullptr;
  size_t at_ = 0;
};

class FlatVector {
 public:
  FlatVector() = default;

  size_t size() const { return size_; }
  // Precondition of both functions: i < size().
  FlatTable TableAt(size_t i) const;
  template <typename T>
  T At(size_t i) const;  // a number or a struct

 private:
  friend class FlatTable;
  FlatVector(FlatBuffer& buffer, size_t begin, size_t size)
      : buffer_(&buffer), begin_(begin), size_(size) {}

  FlatBuffer* buffer_ = nullptr;
  size_t begin_ = 0;
  size_t size_ = 0;
};

// Does not own the bytes. Not thread-safe.
class FlatBuffer {
 public:
  explicit FlatBuffer(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  FlatBuffer(const FlatBuffer&) = delete;
  FlatBuffer& operator=(const FlatBuffer&) = delete;

  FlatTable Root();
  bool sound() const { return sound_; }
  size_t size() const { return bytes_.size(); }

 private:
  friend class FlatTable;
  friend class FlatVector;

  template <typename T>
  T Load(size_t at) {
    T value{};
    if (Has(at, sizeof(T))) std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  bool Has(size_t at, size_t count) {
    const bool has = at <= bytes_.size() && count <= bytes_.size() - at;
    sound_ &= has;
    return has;
  }
  FlatTable TableAt(size_t at);

  const std::span<const uint8_t> bytes_;
  bool sound_ = true;
};

template <typename T>
T FlatTable::Number(size_t field, T otherwise) const {
  const size_t at = PositionOf(field);
  return at == 0 ? otherwise : buffer_->Load<T>(at);
}

template <typename T>
T FlatVector::At(size_t i) const {
  return buffer_->Load<T>(begin_ + i * sizeof(T));
}

}  // namespace stoker
