// A source with calls that gives the photographs of another source.
#pragma once

#include <cstddef>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/source/loaded_sample.h"
#include "io/source/source.h"

namespace stoker::testing {

class CalledPhotos final : public SampleSource {
 public:
  // The form of a sample; `file`: the photograph's path.
  using Call = std::function<Status(uint64_t id, const std::string& file, LoadedSample& loaded)>;

  CalledPhotos(std::shared_ptr<const SampleSource> photos, int threads, Call call)
      : photos_(std::move(photos)), threads_(threads), call_(std::move(call)) {}

  uint64_t size() const override { return photos_->size(); }
  std::span<const Field> fields() const override { return fields_; }
  void SetFields(std::vector<Field> fields) { fields_ = std::move(fields); }
  int calls() const override { return threads_; }
  Status Load(uint64_t id, LoadedSample& loaded) const override {
    std::string file;
    photos_->PathOf(photos_->RangeOf(id).file, file);
    const int64_t label = photos_->LabelOf(id);
    loaded.SetRow(1, {reinterpret_cast<const uint8_t*>(&label), sizeof(label)});
    return call_(id, file, loaded);
  }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  void PathOf(uint32_t file, std::string& path) const override {
    path = "photo " + std::to_string(file);
  }
  const std::vector<std::string>& classes() const override { return photos_->classes(); }
  uint64_t memory_bytes() const override { return sizeof(*this); }
  uint64_t Fingerprint() const override { return photos_->Fingerprint() + 1; }
  std::string Describe() const override { return "called photos"; }

 private:
  const std::shared_ptr<const SampleSource> photos_;
  const int threads_;
  const Call call_;
  std::vector<Field> fields_{
      {.name = "image", .kind = Field::Kind::kImage},
      {.name = "label", .kind = Field::Kind::kLoaded, .dtype = DType::kI64, .is_label = true}};
};

// Gives the content of the file, followed by some zeros, which decoders do not read.
inline Status GiveBytes(const std::string& file, LoadedSample& loaded, size_t zeros = 0) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  bytes.resize(bytes.size() + zeros);
  return loaded.SetBytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace stoker::testing
