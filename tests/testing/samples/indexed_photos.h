// IndexedPhotos: a folder's photographs with crop indexes that a test chooses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "io/source/source.h"

namespace stoker::testing {

class IndexedPhotos final : public SampleSource {
 public:
  // `records`: of each photograph; empty if it has no index.
  IndexedPhotos(std::shared_ptr<const SampleSource> photos,
                std::vector<std::vector<uint8_t>> records)
      : photos_(std::move(photos)), records_(std::move(records)) {}

  std::span<const uint8_t> ReadCropIndex(uint64_t id, uint64_t most,
                                         GrowingBuffer& memory) const override {
    const std::vector<uint8_t>& record = records_[id];
    if (record.size() > most || !memory.Grow(record.size()).ok()) return {};
    std::ranges::copy(record, memory.data());
    return {memory.data(), record.size()};
  }

  uint64_t size() const override { return photos_->size(); }
  std::span<const Field> fields() const override { return photos_->fields(); }
  uint64_t files() const override { return photos_->files(); }
  ByteRange RangeOf(uint64_t id) const override { return photos_->RangeOf(id); }
  void PathOf(uint32_t file, std::string& path) const override { photos_->PathOf(file, path); }
  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    photos_->FixedRows(field, ids, rows);
  }
  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return photos_->View(field, id);
  }
  ImageFacts FactsOf(uint64_t id) const override { return photos_->FactsOf(id); }
  const std::vector<std::string>& classes() const override { return photos_->classes(); }
  uint64_t memory_bytes() const override { return photos_->memory_bytes(); }
  uint64_t Fingerprint() const override { return photos_->Fingerprint(); }
  std::string Describe() const override { return photos_->Describe(); }

 private:
  const std::shared_ptr<const SampleSource> photos_;
  const std::vector<std::vector<uint8_t>> records_;
};

}  // namespace stoker::testing
