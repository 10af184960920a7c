#include "io/remote/object_reader.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "io/cache/disk_cache.h"
#include "io/readers/plain_read.h"
#include "io/remote/object_fetcher.h"
#include "io/remote/object_url.h"

namespace stoker {

namespace {

// A waiting thread does not see new requests, so it looks for them this often.
constexpr int kWaitMs = 5;
constexpr size_t kCachedAtATime = 8;

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
      if (!IsObjectUrl(request->path)) {
        ReadPlainly(*request, calls_);
        finished_.push_back(request);
      } else if (request->length == 0) {  // HTTP cannot express an empty range
        request->size = 0;
        request->status = MakeRoom(request->buffer, 1);
        finished_.push_back(request);
      } else if (IsInCache(*request)) {
        cached_.push_back(request);
      } else {
        Start(*request);
      }
    }
    return taken;
  }

  size_t Reap(std::span<ReadRequest*> done, bool wait) override {
    ReadCached();
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
  size_t in_flight() const override {
    return fetcher_->running() + cached_.size() + finished_.size();
  }
  size_t capacity() const override { return fetches_.size(); }
  const char* name() const override { return "objects"; }

 private:
  // Returns the object of a range that a cache keeps; null means there is no cache, or `request` is
  // not a range.
  const ObjectVersions::KnownVersion* KeptOf(const ReadRequest& request) const {
    if (request.length == kUnknownLength) return nullptr;
    const ObjectVersions::KnownVersion* const known = versions_.Find(request.path);
    return known != nullptr && known->cache != nullptr ? known : nullptr;
  }

  // Returns whether the cache has the range, which the disk then begins to read.
  bool IsInCache(const ReadRequest& request) const {
    const auto* const kept = KeptOf(request);
    return kept != nullptr && kept->cache->Prefetch(kept->cached, request.offset, request.length);
  }

  // Takes a few of the ranges that are in the cache: requests that have finished should not wait
  // for more.
  void ReadCached() {
    const size_t count = std::min(cached_.size(), kCachedAtATime);
    for (ReadRequest* const request : std::span(cached_).first(count)) {
      if (ReadFromCache(*request)) {
        finished_.push_back(request);
      } else {
        Start(*request);
      }
    }
    cached_.erase(cached_.begin(), cached_.begin() + static_cast<ptrdiff_t>(count));
  }

  bool ReadFromCache(ReadRequest& request) const {
    const ObjectVersions::KnownVersion& kept = *KeptOf(request);
    // Without memory, the fetch fails with an error that says so.
    if (!MakeRoom(request.buffer, request.length).ok()) return false;
    const std::span<uint8_t> to(request.buffer.data(), request.length);
    if (!kept.cache->Read(kept.cached, request.offset, to)) return false;
    request.size = request.length;
    request.status = {};
    return true;
  }

  // `version` is that of the bytes read.
  void KeepInCache(const ReadRequest& request, const ObjectVersion& version) const {
    const auto* const kept = KeptOf(request);
    if (kept == nullptr || version.bytes != kept->version.bytes ||
        version.Text() != kept->version.Text()) {
      return;
    }
    kept->cache->Write(kept->cached, request.offset, {request.buffer.data(), request.size});
  }

  void Start(ReadRequest& request) {
    ObjectFetch& next = *idle_.back();
    idle_.pop_back();
    ++requests_;
    next.caller = &request;
    next.url = request.path;
    next.offset = request.offset;
    next.length = request.length;
    const ObjectVersions::KnownVersion* const known = versions_.Find(request.path);
    next.expected = known == nullptr ? nullptr : &known->version;
    next.buffer = &request.buffer;
    next.owner = request.owner;
    fetcher_->Start(next);
  }

  void End(ObjectFetch& ended) {
    ReadRequest& request = *static_cast<ReadRequest*>(ended.caller);
    request.size = ended.size;
    request.status = std::exchange(ended.status, {});
    if (request.status.ok()) KeepInCache(request, ended.version);
    finished_.push_back(&request);
    idle_.push_back(&ended);
  }

  const ObjectVersions& versions_;
  const FileCalls calls_;
  std::unique_ptr<ObjectFetcher> fetcher_;
  std::vector<ObjectFetch> fetches_;
  std::vector<ObjectFetch*> idle_;
  std::vector<ObjectFetch*> ended_;
  std::vector<ReadRequest*> cached_;  // announced to the cache, and not read yet
  std::vector<ReadRequest*> finished_;
  uint64_t requests_ = 0;
};

}  // namespace

Result<std::unique_ptr<Reader>> MakeObjectReader(uint32_t reads, const ObjectVersions& versions) {
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectFetcher> fetcher, ObjectFetcher::Make(reads));
  return std::unique_ptr<Reader>(std::make_unique<ObjectReader>(std::move(fetcher), versions));
}

}  // namespace stoker
