// CropBits: the pieces of a file that a crop is decoded from, one behind the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace stoker {

// Reused from crop to crop.
class CropBits {
 public:
  void Clear() {
    pieces_.clear();
    bytes_ = 0;
  }
  // The piece must stay valid.
  void Add(std::span<const uint8_t> piece) {
    pieces_.push_back(piece);
    bytes_ += piece.size();
  }
  size_t bytes() const { return bytes_; }  // of all pieces

  // Copies all pieces, and returns what follows the last byte.
  uint8_t* CopyTo(uint8_t* to) const {
    for (const std::span<const uint8_t> piece : pieces_) {
      if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    }
    return to;
  }

 private:
  std::vector<std::span<const uint8_t>> pieces_;
  size_t bytes_ = 0;
};

}  // namespace stoker
