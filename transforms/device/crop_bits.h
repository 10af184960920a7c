// CropBits: the pieces of a file that a crop is decoded from, one after the other, at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace stoker {

// Reused from crop to crop.
class CropBits {
 public:
  using Piece = std::span<const uint8_t>;

  // Begins a crop whose bits are `at` bytes after its first one. `pieces`: memory for all pieces
  // that will be added.
  void Begin(size_t at, Piece* pieces) {
    begin_ = end_ = at;
    pieces_ = pieces;
    count_ = 0;
  }
  // The piece must stay valid.
  void Add(Piece piece) {
    pieces_[count_++] = piece;
    end_ += piece.size();
  }
  // Returns where the next piece will begin in the crop.
  size_t end() const { return end_; }

  // Copies all pieces to the crop, and returns the end of the copy.
  uint8_t* CopyTo(uint8_t* crop) const {
    uint8_t* to = crop + begin_;
    for (const Piece piece : std::span(pieces_, count_)) {
      if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
      to += piece.size();
    }
    return to;
  }

 private:
  size_t begin_ = 0, end_ = 0;
  Piece* pieces_ = nullptr;
  size_t count_ = 0;
};

}  // namespace stoker
