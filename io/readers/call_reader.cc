// The reader for sources with calls: it calls SampleSource::Load inside Submit.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "io/readers/plain_read.h"
#include "io/readers/reader.h"
#include "io/source/loaded_sample.h"

namespace stoker {

namespace {

Error Wrong(std::string cause) {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .detail = Error::Detail::kOfNoSample};
}

class LoadIntoRequest final : public LoadedSample {
 public:
  LoadIntoRequest(const SampleSource& source, ReadRequest& request)
      : source_(source), request_(request), given_(source.fields().size()) {
    request_.rows.assign(LoadedBytes(source.fields()), 0);
    request_.size = 0;
  }

  Status SetBytes(std::span<const uint8_t> encoded) override {
    // The room is at least one byte, so that the padding exists.
    TRY(MakeRoom(request_.buffer, std::max<size_t>(encoded.size(), 1)));
    if (!encoded.empty()) std::memcpy(request_.buffer.data(), encoded.data(), encoded.size());
    request_.size = encoded.size();
    has_image_ = true;
    return {};
  }

  Status SetFile(const std::string& path) override {
    if (path.find('\0') != std::string::npos) return Wrong("the path of the image has a NUL byte");
    request_.path = path;
    request_.offset = 0;
    request_.length = kUnknownLength;
    ReadPlainly(request_);
    TRY(request_.status);
    has_image_ = true;
    return {};
  }

  void SetRow(size_t field, std::span<const uint8_t> row) override {
    if (first_error_.ok()) first_error_ = CheckRow(field, row.size());
    if (!first_error_.ok()) return;
    given_[field] = true;
    const size_t begin = LoadedBytes(source_.fields().first(field));
    std::memcpy(request_.rows.data() + begin, row.data(), row.size());
  }

  // Returns an error unless Load has set everything, and nothing else.
  Status Check() const {
    TRY(first_error_);
    if (!has_image_) return Wrong("the source gave no image");
    for (size_t field = 0; field < given_.size(); ++field) {
      const Field& wanted = source_.fields()[field];
      if (wanted.kind == Field::Kind::kLoaded && !given_[field]) {
        return Wrong("the source gave no row of field '" + wanted.name + "'");
      }
    }
    return {};
  }

 private:
  Status CheckRow(size_t index, size_t bytes) const {
    if (index >= given_.size()) {
      return Wrong("the source gave a row of field " + std::to_string(index) + "; it has " +
                   std::to_string(given_.size()));
    }
    const Field& field = source_.fields()[index];
    const std::string name = "field '" + field.name + "'";
    if (field.kind != Field::Kind::kLoaded) {
      return Wrong(name + " was given a row; it is not kLoaded");
    }
    if (given_[index]) return Wrong(name + " was given two rows");
    if (bytes == field.row_bytes()) return {};
    return Wrong(name + " was given " + std::to_string(bytes) + " bytes; it has " +
                 std::to_string(field.row_bytes()));
  }

  const SampleSource& source_;
  ReadRequest& request_;
  std::vector<bool> given_;  // by field
  Status first_error_;
  bool has_image_ = false;
};

class CallReader final : public Reader {
 public:
  explicit CallReader(const SampleSource& source) : source_(source) {}

  size_t Submit(std::span<ReadRequest* const> requests) override {
    if (requests.empty() || loaded_ != nullptr) return 0;
    loaded_ = requests.front();
    loaded_->status = Load(*loaded_);
    if (!loaded_->status.ok()) {
      loaded_->size = 0;
      loaded_->rows.clear();
    }
    return 1;
  }

  size_t Reap(std::span<ReadRequest*> done, bool /*wait*/) override {
    if (loaded_ == nullptr || done.empty()) return 0;
    done.front() = std::exchange(loaded_, nullptr);
    return 1;
  }

  size_t in_flight() const override { return loaded_ != nullptr ? 1 : 0; }
  size_t capacity() const override { return 1; }
  const char* name() const override { return "calls"; }

 private:
  Status Load(ReadRequest& request) const {
    // An earlier call for the sample may have left the path of a file.
    source_.PathOf(source_.RangeOf(request.sample).file, request.path);
    LoadIntoRequest loaded(source_, request);
    Status status = source_.Load(request.sample, loaded);
    if (status.ok()) return loaded.Check();
    if (!status.error().file.empty()) request.path = status.error().file;
    return status;
  }

  const SampleSource& source_;
  ReadRequest* loaded_ = nullptr;
};

}  // namespace

std::unique_ptr<Reader> MakeCallReader(const SampleSource& source) {
  return std::make_unique<CallReader>(source);
}

}  // namespace stoker
