#include "io/remote/object_reader.h"

#include <algorithm>
#include <cstring>
#include <deque>
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
constexpr uint64_t kLargestGap = 16 << 10;  // between ranges that are fetched together
constexpr uint64_t kMostJointBytes = 256 << 10;
constexpr size_t kMostJoint = 16;

class ObjectReader final : public Reader {
 public:
  ObjectReader(std::unique_ptr<ObjectFetcher> fetcher, const ObjectVersions& versions,
               size_t neighbours)
      : versions_(versions),
        most_joint_(std::clamp<size_t>(neighbours, 1, kMostJoint)),
        fetcher_(std::move(fetcher)),
        fetches_(most_joint_ * fetcher_->capacity()) {
    for (Fetch& fetch : fetches_) idle_.push_back(&fetch);
    ended_.resize(fetcher_->capacity());
  }

  size_t Submit(std::span<ReadRequest* const> requests) override {
    const size_t taken = std::min(requests.size(), room());
    in_flight_ += taken;
    Fetch* next = nullptr;  // the requests that follow may join it
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
      } else if (next == nullptr || !Join(*next, *request)) {
        if (next != nullptr) Start(*next);
        next = &FetchOf(*request);
      }
    }
    if (next != nullptr) Start(*next);
    return taken;
  }

  size_t Reap(std::span<ReadRequest*> done, bool wait) override {
    ReadCached();
    if (fetcher_->running() != 0) {
      const size_t ended = fetcher_->Finish(ended_, wait && finished_.empty() ? kWaitMs : 0);
      for (size_t i = 0; i < ended; ++i) End(*static_cast<Fetch*>(ended_[i]->caller));
      while (!waiting_.empty() && HasTransfer()) {
        fetcher_->Start(waiting_.front()->object);
        waiting_.pop_front();
      }
    }
    const size_t n = std::min(done.size(), finished_.size());
    in_flight_ -= n;
    std::copy_n(finished_.begin(), n, done.begin());
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(n));
    return n;
  }

  void GiveUp(const void* owner) override {
    fetcher_->GiveUp(owner);
    std::erase_if(waiting_, [&](Fetch* const fetch) {
      if (fetch->object.owner != owner) return false;
      fetch->object.status = Error{Code::kCancelled, "the read was given up", fetch->object.url};
      End(*fetch);
      return true;
    });
  }

  ReaderCounts counts() const override {
    ReaderCounts counts = calls_.counts();
    counts.calls += requests_;
    return counts;
  }
  size_t room() const override {
    const size_t in_fetches = most_joint_ * (fetcher_->running() + waiting_.size());
    return capacity() - std::min(capacity(), in_fetches + cached_.size() + finished_.size());
  }
  size_t in_flight() const override { return in_flight_; }
  size_t capacity() const override { return fetches_.size(); }
  const char* name() const override { return "objects"; }

 private:
  // A fetch of one range, or of neighbouring ranges of a sample, into the first one's buffer.
  struct Fetch {
    ObjectFetch object;
    std::vector<ReadRequest*> requests;  // that have not ended

    // Only a joint range may be longer than the object: some of its parts may be in the object.
    bool is_joint() const { return object.may_be_shorter; }
    // Whether the fetch has ended for this one of its requests, with its bytes or an error.
    bool HasEnded(const ReadRequest& request) const {
      return !is_joint() || !object.status.ok() ||
             request.offset + request.length <= object.offset + object.size;
    }
  };

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
        Start(FetchOf(*request));
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

  Fetch& FetchOf(ReadRequest& request) {
    Fetch& next = *idle_.back();
    idle_.pop_back();
    next.requests.push_back(&request);
    Point(next);
    return next;
  }

  // Points a fetch at the range of its only request.
  void Point(Fetch& next) const {
    ReadRequest& request = *next.requests.front();
    next.object.may_be_shorter = false;
    next.object.caller = &next;
    next.object.url = request.path;
    next.object.offset = request.offset;
    next.object.length = request.length;
    const ObjectVersions::KnownVersion* const known = versions_.Find(request.path);
    next.object.expected = known == nullptr ? nullptr : &known->version;
    next.object.buffer = &request.buffer;
    next.object.owner = request.owner;
  }

  // Adds the request to a fetch that has not started, and returns true, if its range is of the same
  // sample, near, and has room in the buffer.
  bool Join(Fetch& next, ReadRequest& request) const {
    if (next.requests.size() == most_joint_) return false;
    const ReadRequest& first = *next.requests.front();
    ObjectFetch& object = next.object;
    if (request.tag != first.tag || request.owner != first.owner || request.path != object.url ||
        request.length > kMostJointBytes || object.length > kMostJointBytes ||
        std::max(object.offset, request.offset) > kUnknownLength - kMostJointBytes) {  // may wrap
      return false;
    }
    const uint64_t begin = std::min(object.offset, request.offset);
    const uint64_t end = std::max(object.offset + object.length, request.offset + request.length);
    const uint64_t length = end - begin;
    if (length > std::min<uint64_t>(first.buffer.capacity(), kMostJointBytes) ||
        length > object.length + request.length + kLargestGap) {
      return false;
    }
    object.offset = begin;
    object.length = length;
    next.requests.push_back(&request);
    object.may_be_shorter = true;
    return true;
  }

  void Start(Fetch& next) {
    ++requests_;
    if (!HasTransfer()) return waiting_.push_back(&next);
    fetcher_->Start(next.object);
  }

  bool HasTransfer() const { return fetcher_->running() < fetcher_->capacity(); }

  // An object may end within a joint range. Then each request for bytes after its end is fetched on
  // its own, which fails.
  void End(Fetch& ended) {
    std::vector<ReadRequest*>& requests = ended.requests;
    // The first request comes last, because its buffer has the bytes of the others.
    std::for_each(requests.rbegin(), requests.rend(), [&](ReadRequest* request) {
      if (ended.HasEnded(*request)) Finish(*request, ended.object, ended.is_joint());
    });
    std::erase_if(requests, [&](const ReadRequest* one) { return ended.HasEnded(*one); });
    if (requests.empty()) return idle_.push_back(&ended);
    for (; requests.size() > 1; requests.pop_back()) Start(FetchOf(*requests.back()));
    Point(ended);
    Start(ended);
  }

  void Finish(ReadRequest& request, const ObjectFetch& object, bool is_joint) {
    request.size = object.size;
    request.status = object.status;
    if (is_joint) TakePart(request, object);
    if (request.status.ok()) KeepInCache(request, object.version);
    finished_.push_back(&request);
  }

  // Gives a request its own part of a result.
  static void TakePart(ReadRequest& request, const ObjectFetch& joint) {
    request.size = 0;
    if (request.status.ok()) request.status = MakeRoom(request.buffer, request.length);
    if (!request.status.ok()) {
      Error error = std::move(request.status).error().WithFile(request.path);
      if (error.offset) error.offset = request.offset;
      request.status = std::move(error);
      return;
    }
    request.size = request.length;
    std::memmove(request.buffer.data(), joint.buffer->data() + (request.offset - joint.offset),
                 request.size);
  }

  const ObjectVersions& versions_;
  // A transfer counts as this many requests, because that many neighbours may share it.
  const size_t most_joint_;
  const FileCalls calls_;
  std::unique_ptr<ObjectFetcher> fetcher_;
  std::vector<Fetch> fetches_;
  std::vector<Fetch*> idle_;
  std::deque<Fetch*> waiting_;  // for a transfer
  std::vector<ObjectFetch*> ended_;
  std::vector<ReadRequest*> cached_;  // announced to the cache, and not read yet
  std::vector<ReadRequest*> finished_;
  size_t in_flight_ = 0;
  uint64_t requests_ = 0;  // to servers
};

}  // namespace

Result<std::unique_ptr<Reader>> MakeObjectReader(uint32_t reads, const ObjectVersions& versions,
                                                 size_t neighbours) {
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectFetcher> fetcher, ObjectFetcher::Make(reads));
  return std::unique_ptr<Reader>(
      std::make_unique<ObjectReader>(std::move(fetcher), versions, neighbours));
}

}  // namespace stoker
