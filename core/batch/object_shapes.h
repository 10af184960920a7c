// The outlines of objects, as 32-bit words that all readers of a source share.
//
// The objects of a sample follow each other, and so do the parts of an object: the number of words
// of its parts, and for each part a word 2 × n + kind and n words. A polygon (kind 0) has x and y
// of each corner, float32. Runs (kind 1), COCO's run-length encoding, have the height and width of
// the image and the lengths of runs of pixels that are alternately outside and inside the object,
// in column-major order.
//
// Memory: 8 bytes for each corner, 4 for each run, 4 for each part and 4 for each object.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch/image.h"

namespace stoker {

// Writes the shapes of objects, one after another.
class ObjectShapes {
 public:
  // The most words of an object.
  static constexpr size_t kMostWords = size_t{1} << 30;

  void BeginObject() {
    object_ = words_.size();
    words_.push_back(0);
  }
  // Both add a part to the object that was begun last. Precondition: it keeps within kMostWords.
  void AddPolygon(std::span<const float> corners) {
    BeginPart(corners.size(), 0);
    for (const float number : corners) words_.push_back(std::bit_cast<uint32_t>(number));
    EndPart();
  }
  void AddRuns(uint32_t height, uint32_t width, std::span<const uint32_t> runs) {
    BeginPart(2 + runs.size(), 1);
    words_.push_back(height);
    words_.push_back(width);
    words_.insert(words_.end(), runs.begin(), runs.end());
    EndPart();
  }

  // The words of all objects.
  std::span<const uint32_t> words() const { return words_; }
  // The words of one object, which begins with the word `at`.
  std::span<const uint32_t> object(size_t at) const { return words().subspan(at, 1 + words_[at]); }

 private:
  void BeginPart(size_t words, uint32_t kind) {
    words_.push_back(static_cast<uint32_t>(2 * words) + kind);
  }
  void EndPart() { words_[object_] = static_cast<uint32_t>(words_.size() - object_ - 1); }

  std::vector<uint32_t> words_;
  size_t object_ = 0;  // where the last object begins
};

// A part of an object. Its words have any alignment.
struct ShapePart {
  bool has_runs = false;  // or it is a polygon
  std::span<const uint8_t> bytes;

  size_t words() const { return bytes.size() / sizeof(uint32_t); }
  uint32_t Word(size_t i) const {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + i * sizeof(word), sizeof(word));
    return word;
  }
  float Number(size_t i) const { return std::bit_cast<float>(Word(i)); }
};

// The size of an image in the order of runs: "480 × 640".
inline std::string HeightByWidth(ImageSize size) {
  return std::to_string(size.height) + " × " + std::to_string(size.width);
}

// The cause of an error: an object has runs of another size than its image.
inline std::string RunsOfOtherSize(const std::string& object, ImageSize runs, ImageSize image) {
  return object + " has runs (RLE) for an image of " + HeightByWidth(runs) +
         " pixels, and its image has " + HeightByWidth(image);
}

// Reads the shapes of one sample. Any bytes are safe: what does not fit is left out.
class ShapeReader {
 public:
  explicit ShapeReader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  // Goes to the next object; false if there is none.
  bool NextObject() {
    const std::optional<uint32_t> words = Take(rest_);
    if (!words) return false;
    return Split(rest_, *words, object_);
  }
  // Returns the next part of the object; nullopt after the last one.
  std::optional<ShapePart> NextPart() {
    const std::optional<uint32_t> head = Take(object_);
    if (!head) return std::nullopt;
    ShapePart part{.has_runs = (*head & 1) != 0, .bytes = {}};
    if (!Split(object_, *head / 2, part.bytes)) return std::nullopt;
    return part;
  }

 private:
  using Bytes = std::span<const uint8_t>;
  static std::optional<uint32_t> Take(Bytes& from) {
    uint32_t word = 0;
    if (from.size() < sizeof(word)) return std::nullopt;
    std::memcpy(&word, from.data(), sizeof(word));
    from = from.subspan(sizeof(word));
    return word;
  }
  // Moves the first words of `from` to `to`; false if there are not as many.
  static bool Split(Bytes& from, size_t words, Bytes& to) {
    const size_t bytes = words * sizeof(uint32_t);
    if (from.size() < bytes) return false;
    to = from.first(bytes);
    from = from.subspan(bytes);
    return true;
  }

  Bytes rest_;
  Bytes object_;
};

}  // namespace stoker
