// A source with many samples in each file: the samples of another source, one after another in a
// few large files.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/source/source.h"

namespace stoker::testing {

class PackedFiles final : public SampleSource {
 public:
  // Writes the files folder/0, folder/1, …; the samples are distributed over them in turn.
  PackedFiles(std::shared_ptr<const SampleSource> from, std::string folder, uint32_t files)
      : from_(std::move(from)), folder_(std::move(folder)) {
    std::vector<std::ofstream> packed;
    std::string path;
    for (uint32_t file = 0; file < files; ++file) {
      PathOf(file, path);
      packed.emplace_back(path, std::ios::binary);
    }
    for (uint64_t id = 0; id < from_->size(); ++id) {
      const auto file = static_cast<uint32_t>(id % files);
      from_->PathOf(from_->RangeOf(id).file, path);
      std::ifstream stream(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
      ranges_.push_back({file, static_cast<uint64_t>(packed[file].tellp()), bytes.size()});
      packed[file] << bytes;
    }
  }

  uint64_t size() const override { return ranges_.size(); }
  std::span<const Field> fields() const override { return from_->fields(); }
  ByteRange RangeOf(uint64_t id) const override { return ranges_[id]; }
  void PathOf(uint32_t file, std::string& path) const override {
    path = folder_ + "/" + std::to_string(file);
  }
  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    from_->FixedRows(field, ids, rows);
  }
  const std::vector<std::string>& classes() const override { return from_->classes(); }
  uint64_t memory_bytes() const override { return ranges_.size() * sizeof(ByteRange); }
  std::string Describe() const override { return "packed(" + from_->Describe() + ")"; }

 private:
  const std::shared_ptr<const SampleSource> from_;
  const std::string folder_;
  std::vector<ByteRange> ranges_;  // by sample
};

}  // namespace stoker::testing
