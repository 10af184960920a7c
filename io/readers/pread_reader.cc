// The reference reader: reads each file completely inside Submit.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "io/readers/plain_files.h"
#include "io/readers/plain_read.h"
#include "io/readers/reader.h"

namespace stoker {

namespace {

class PreadReader final : public Reader {
 public:
  PreadReader(uint32_t reads, uint32_t files, std::shared_ptr<const FileCalls> calls)
      : capacity_(reads), calls_(std::move(calls)), files_(files, *calls_) {
    finished_.reserve(reads);
  }

  size_t Submit(std::span<ReadRequest* const> requests) override {
    const size_t taken = std::min(requests.size(), capacity_ - finished_.size());
    for (ReadRequest* request : requests.first(taken)) {
      files_.Read(*request);
      finished_.push_back(request);
    }
    return taken;
  }

  size_t Reap(std::span<ReadRequest*> done, bool /*wait*/) override {
    const size_t n = std::min(done.size(), finished_.size());
    std::copy_n(finished_.begin(), n, done.begin());
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(n));
    return n;
  }

  void CloseFiles() override { files_.CloseAll(); }

  ReaderCounts counts() const override { return calls_->counts(); }
  size_t in_flight() const override { return finished_.size(); }
  size_t capacity() const override { return capacity_; }
  const char* name() const override { return "pread"; }

 private:
  const size_t capacity_;
  const std::shared_ptr<const FileCalls> calls_;
  PlainFiles files_;
  std::vector<ReadRequest*> finished_;
};

}  // namespace

std::unique_ptr<Reader> MakePreadReader(uint32_t reads, uint32_t files,
                                        std::shared_ptr<const FileCalls> calls) {
  if (calls == nullptr) calls = std::make_shared<const FileCalls>();
  return std::make_unique<PreadReader>(reads, files, std::move(calls));
}

}  // namespace stoker
