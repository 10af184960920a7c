// PhotoPairs: samples of two photographs of one size, in two folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/source/source.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/samples/photo_folder.h"

namespace stoker::testing {

// Pairs the samples of two sources whose fields are an image and a label. The label is that of the
// first one.
class PairSource final : public SampleSource {
 public:
  PairSource(std::shared_ptr<const SampleSource> first, std::shared_ptr<const SampleSource> second)
      : first_(std::move(first)),
        second_(std::move(second)),
        fields_{first_->fields()[0], first_->fields()[0], first_->fields()[1]} {
    fields_[1].name = "second";
  }

  uint64_t size() const override { return first_->size(); }
  std::span<const Field> fields() const override { return fields_; }
  uint64_t files() const override { return first_->files() + second_->files(); }
  ByteRange RangeOf(uint64_t id) const override { return first_->RangeOf(id); }
  ByteRange RangeOfPiece(uint64_t id, size_t /*piece*/) const override {
    ByteRange range = second_->RangeOf(id);
    range.file += static_cast<uint32_t>(first_->files());
    return range;
  }
  void PathOf(uint32_t file, std::string& path) const override {
    const auto of_first = static_cast<uint32_t>(first_->files());
    if (file < of_first) return first_->PathOf(file, path);
    second_->PathOf(file - of_first, path);
  }
  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    first_->FixedRows(field - 1, ids, rows);
  }
  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return first_->View(field - 1, id);
  }
  const std::vector<std::string>& classes() const override { return first_->classes(); }
  uint64_t memory_bytes() const override { return 0; }
  uint64_t Fingerprint() const override { return first_->Fingerprint() + second_->Fingerprint(); }
  std::string Describe() const override { return "pairs"; }

 private:
  const std::shared_ptr<const SampleSource> first_, second_;
  std::vector<Field> fields_;
};

class PhotoPairs {
 public:
  PhotoPairs(int count, int classes) : first_(count, classes), second_(count, classes) {
    for (uint64_t id = 0; id < static_cast<uint64_t>(count); ++id) {
      PutSecond(id, OtherPhoto(second_.FileOf(id)));
    }
  }

  const PhotoFolder& first() const { return first_; }
  const PhotoFolder& second() const { return second_; }
  std::shared_ptr<const SampleSource> Source() const {
    return std::make_shared<PairSource>(first_.Source(), second_.Source());
  }

  void PutSecond(uint64_t id, const std::vector<uint8_t>& bytes) const {
    second_.Overwrite(id, {bytes.begin(), bytes.end()});
  }

 private:
  // Another photograph with the size that PhotoFolder gives to this file.
  static std::vector<uint8_t> OtherPhoto(const std::string& file) {
    const int i = std::stoi(std::filesystem::path(file).stem().string().substr(5)) - 1000;
    return MakeJpeg({.width = 40 + i * 7 % 61,
                     .height = 40 + i * 11 % 53,
                     .seed = 1000 + static_cast<uint64_t>(i)});
  }

  const PhotoFolder first_, second_;
};

}  // namespace stoker::testing
