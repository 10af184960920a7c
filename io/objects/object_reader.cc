#include "io/objects/object_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/try.h"
#include "io/objects/object_fetcher.h"
#include "io/objects/object_url.h"
#include "io/readers/plain_read.h"

namespace stoker {

namespace {

// A thread that waits does not see new requests: it looks for them this often.
constexpr int kWaitMs = 5;

class ObjectReader final : public Reader {
 public:
  ObjectReader(std::unique_ptr<ObjectFetcher> fetcher, const ObjectVersions& versions)
      : versions_(versions), fetcher_(std::move(fetcher)), fetches_(fetcher_->capacity()) {
    for (ObjectFetch& fetch : fetches_) idle_.push_back(&fetch);
    ended_.resize(fetches_.size());
  }

  size_t Submit(std::span<ReadRequest* const> requests) override {
    const size_t taken = std::min(requests.size(), capacity() - in_flight());
    for (ReadRequest* const request : requests.first(taken)) {
      if (IsObjectUrl(request->path)) {
        Start(*request);
      } else {
        ReadPlainly(*request, calls_);
        finished_.push_back(request);
      }
    }
    return taken;
  }

  size_t Reap(std::span<ReadRequest*> done, bool wait) override {
    if (fetcher_->running() != 0) {
      const size_t ended = fetcher_->Finish(ended_, wait && finished_.empty() ? kWaitMs : 0);
      for (size_t i = 0; i < ended; ++i) End(*ended_[i]);
    }
    const size_t n = std::min(done.size(), finished_.size());
    std::copy_n(finished_.begin(), n, done.begin());
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(n));
    return n;
  }

  void GiveUp(const void* owner) override { fetcher_->GiveUp(owner); }

  ReaderCounts counts() const override {
    ReaderCounts counts = calls_.counts();
    counts.calls += requests_;
    return counts;
  }
  size_t in_flight() const override { return fetcher_->running() + finished_.size(); }
  size_t capacity() const override { return fetches_.size(); }
  const char* name() const override { return "objects"; }

 private:
  void Start(ReadRequest& request) {
    ObjectFetch& next = *idle_.back();
    idle_.pop_back();
    ++requests_;
    next.caller = &request;
    next.url = request.path;
    next.offset = request.offset;
    next.length = request.length;
    next.expected = versions_.Find(request.path);
    next.buffer = &request.buffer;
    next.owner = request.owner;
    fetcher_->Start(next);
  }

  void End(ObjectFetch& ended) {
    ReadRequest& request = *static_cast<ReadRequest*>(ended.caller);
    request.size = ended.size;
    request.status = std::exchange(ended.status, {});
    finished_.push_back(&request);
    idle_.push_back(&ended);
  }

  const ObjectVersions& versions_;
  const FileCalls calls_;
  std::unique_ptr<ObjectFetcher> fetcher_;
  std::vector<ObjectFetch> fetches_;
  std::vector<ObjectFetch*> idle_;
  std::vector<ObjectFetch*> ended_;
  std::vector<ReadRequest*> finished_;
  uint64_t requests_ = 0;
};

}  // namespace

Result<std::unique_ptr<Reader>> MakeObjectReader(uint32_t reads, const ObjectVersions& versions) {
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectFetcher> fetcher, ObjectFetcher::Make(reads));
  return std::unique_ptr<Reader>(std::make_unique<ObjectReader>(std::move(fetcher), versions));
}

}  // namespace stoker
