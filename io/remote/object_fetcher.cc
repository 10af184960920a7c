#include "io/remote/object_fetcher.h"

#include <curl/curl.h>
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "io/remote/libcurl.h"
#include "io/remote/object_request.h"
#include "io/remote/object_url.h"
#include "io/remote/transfer.h"

namespace stoker {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;  // in nanoseconds

// Blocks SIGPIPE for this thread while libcurl writes to a connection that the server has closed,
// or ends a TLS session: TLS libraries write without MSG_NOSIGNAL.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigset_t pending{};
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() {
    constexpr timespec kNow{};
    if (!was_pending_ && sigismember(&before_, SIGPIPE) != 1) {
      while (sigtimedwait(&pipe_, nullptr, &kNow) == SIGPIPE) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace

class ObjectFetcher::Impl {
 public:
  Impl(const Libcurl& library, ObjectSettings settings, uint32_t transfers)
      : library_(library),
        settings_(std::move(settings)),
        credentials_(ObjectCredentialsFromEnvironment()),
        multi_(library.multi_init()),
        jitter_(static_cast<uint32_t>(NowNanoseconds())),
        capacity_(transfers) {
    if (multi_ == nullptr) return;
    (void)library_.multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(transfers));
    (void)library_.multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    const WithoutSigpipe guard;
    for (const auto& work : all_) {
      if (work->sending) (void)library_.multi_remove_handle(multi_, work->transfer.handle());
    }
    all_.clear();
    if (multi_ != nullptr) (void)library_.multi_cleanup(multi_);
  }

  bool ok() const { return multi_ != nullptr; }

  void Start(ObjectFetch& fetch) {
    ++running_;
    Work* const work = Idle();
    if (work == nullptr) {
      fetch.status = Error{Code::kResourceExhausted, "out of memory for libcurl", fetch.url};
      finished_.push_back(&fetch);
      return;
    }
    work->fetch = &fetch;
    work->tries = 0;
    work->renewed = false;
    Result<ObjectUrl> url = ParseObjectUrl(fetch.url);
    if (!url.ok()) return EndWork(*work, std::move(url).error());
    work->url = *std::move(url);
    Try(*work);
  }

  size_t Finish(std::span<ObjectFetch*> done, int wait_ms) {
    const WithoutSigpipe guard;
    Advance();
    if (finished_.empty() && running_ != 0 && wait_ms > 0) {
      (void)library_.multi_poll(multi_, nullptr, 0, WaitFor(wait_ms), nullptr);
      Advance();
    }
    const size_t count = std::min(done.size(), finished_.size());
    std::copy_n(finished_.begin(), count, done.begin());
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(count));
    running_ -= count;
    return count;
  }

  void GiveUp(const void* owner) {
    const WithoutSigpipe guard;
    for (const auto& work : all_) {
      if (work->fetch == nullptr || work->fetch->owner != owner) continue;
      EndWork(*work, Error{Code::kCancelled, "the read was given up", work->fetch->url});
    }
  }

  size_t running() const { return running_; }
  size_t capacity() const { return capacity_; }

 private:
  // A fetch and its transfer: sending, or waiting for its next try.
  struct Work {
    Work(const Libcurl& library, const ObjectSettings& settings) : transfer(library, settings) {}

    Transfer transfer;
    ObjectFetch* fetch = nullptr;  // null: idle
    ObjectUrl url{};
    int tries = 0;
    bool sending = false;
    uint64_t due_ns = 0;       // of the next try, unless it is sending
    uint64_t credentials = 0;  // which credentials it was sent with
    bool renewed = false;      // whether credentials were read again for it
  };

  Work* Idle() {
    for (const auto& work : all_) {
      if (work->fetch == nullptr) return work.get();
    }
    all_.push_back(std::make_unique<Work>(library_, settings_));
    if (all_.back()->transfer.handle() != nullptr) return all_.back().get();
    all_.pop_back();
    return nullptr;
  }

  void Try(Work& work) {
    ++work.tries;
    work.credentials = credentials_number_;
    work.transfer.Prepare(
        *work.fetch, BuildObjectRequest(work.url, settings_, credentials_, std::time(nullptr)));
    work.sending = library_.multi_add_handle(multi_, work.transfer.handle()) == CURLM_OK;
    if (!work.sending) {
      EndWork(work, Error{Code::kUnavailable, "libcurl refuses the request", work.fetch->url});
    }
  }

  // Starts transfers that are due, moves bytes, and ends transfers that have finished.
  void Advance() {
    const uint64_t now = NowNanoseconds();
    for (const auto& work : all_) {
      if (work->fetch != nullptr && !work->sending && work->due_ns <= now) Try(*work);
    }
    int sending = 0, queued = 0;
    (void)library_.multi_perform(multi_, &sending);
    while (auto* const message = static_cast<CURLMsg*>(library_.multi_info_read(multi_, &queued))) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      void* owner = nullptr;
      (void)library_.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
      EndTry(*WorkOf(owner), code);
    }
  }

  Work* WorkOf(const void* transfer) const {
    const auto found = std::ranges::find_if(
        all_, [transfer](const auto& work) { return &work->transfer == transfer; });
    return found->get();
  }

  void EndTry(Work& work, int code) {
    (void)library_.multi_remove_handle(multi_, work.transfer.handle());
    work.sending = false;
    std::optional<FetchFailure> failure = work.transfer.End(code);
    if (!failure) return EndWork(work, {});
    if (failure->cure == FetchFailure::Cure::kCredentials && RenewCredentials(work)) {
      work.due_ns = 0;
    } else if (failure->cure == FetchFailure::Cure::kRetry && work.tries < settings_.tries) {
      work.due_ns = NowNanoseconds() + WaitBefore(work) * kMillisecond;
    } else if (failure->cure == FetchFailure::Cure::kRetry) {
      EndWork(work, AfterTries(std::move(failure->error), work.tries));
    } else {
      EndWork(work, std::move(failure->error));
    }
  }

  // Returns whether there are credentials other than those that were refused.
  bool RenewCredentials(Work& work) {
    if (work.url.store == ObjectUrl::Store::kHttp || std::exchange(work.renewed, true))
      return false;
    if (work.credentials != credentials_number_) return true;  // another fetch has renewed them
    ObjectCredentials now = ObjectCredentialsFromEnvironment();
    if (now == credentials_) return false;
    credentials_ = std::move(now);
    ++credentials_number_;
    return true;
  }

  // Returns the milliseconds until the next try, drawn at random, so that requests that failed
  // together do not come back together.
  uint64_t WaitBefore(const Work& work) {
    const auto longest = static_cast<uint64_t>(settings_.longest_retry_ms);
    const int doublings = std::min(work.tries - 1, 20);
    const uint64_t wait =
        std::min(static_cast<uint64_t>(settings_.first_retry_ms) << doublings, longest);
    const uint64_t drawn = wait / 2 + jitter_() % (wait / 2 + 1);
    const HttpResponse& response = work.transfer.response();
    int64_t asked_s = response.retry_after_s.value_or(0);
    if (response.retry_at_s) asked_s = *response.retry_at_s - std::time(nullptr);
    const auto most_s = static_cast<int64_t>(longest / 1000);
    const auto asked = static_cast<uint64_t>(std::clamp<int64_t>(asked_s, 0, most_s)) * 1000;
    return std::max(drawn, asked);
  }

  // Returns the milliseconds until a transfer is due.
  int WaitFor(int wait_ms) const {
    const uint64_t now = NowNanoseconds();
    uint64_t wait = static_cast<uint64_t>(wait_ms) * kMillisecond;
    for (const auto& work : all_) {
      if (work->fetch == nullptr || work->sending) continue;
      wait = std::min(wait, work->due_ns > now ? work->due_ns - now : 0);
    }
    return static_cast<int>((wait + kMillisecond - 1) / kMillisecond);
  }

  void EndWork(Work& work, Status status) {
    if (std::exchange(work.sending, false)) {
      (void)library_.multi_remove_handle(multi_, work.transfer.handle());
    }
    ObjectFetch* const fetch = std::exchange(work.fetch, nullptr);
    if (!status.ok()) fetch->size = 0;
    fetch->status = std::move(status);
    finished_.push_back(fetch);
  }

  const Libcurl& library_;
  const ObjectSettings settings_;
  ObjectCredentials credentials_;
  uint64_t credentials_number_ = 0;  // counts how often the credentials changed
  void* const multi_;
  std::vector<std::unique_ptr<Work>> all_;
  std::vector<ObjectFetch*> finished_;
  std::minstd_rand jitter_;
  const uint32_t capacity_;
  size_t running_ = 0;
};

Result<std::unique_ptr<ObjectFetcher>> ObjectFetcher::Make(uint32_t transfers) {
  ASSIGN_OR_RETURN(ObjectSettings settings, ObjectSettingsFromEnvironment());
  return Make(transfers, std::move(settings));
}

Result<std::unique_ptr<ObjectFetcher>> ObjectFetcher::Make(uint32_t transfers,
                                                           ObjectSettings settings) {
  ASSIGN_OR_RETURN(const Libcurl* const library, Libcurl::Load());
  auto impl = std::make_unique<Impl>(*library, std::move(settings), transfers);
  if (!impl->ok()) return Error{Code::kResourceExhausted, "out of memory for libcurl"};
  return std::unique_ptr<ObjectFetcher>(new ObjectFetcher(std::move(impl)));
}

ObjectFetcher::ObjectFetcher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ObjectFetcher::~ObjectFetcher() = default;

void ObjectFetcher::Start(ObjectFetch& fetch) { impl_->Start(fetch); }
size_t ObjectFetcher::Finish(std::span<ObjectFetch*> done, int wait_ms) {
  return impl_->Finish(done, wait_ms);
}
void ObjectFetcher::GiveUp(const void* owner) { impl_->GiveUp(owner); }
size_t ObjectFetcher::running() const { return impl_->running(); }
size_t ObjectFetcher::capacity() const { return impl_->capacity(); }

Status FetchObject(ObjectFetcher& fetcher, ObjectFetch& fetch) {
  constexpr int kWait = 1000;  // milliseconds
  fetcher.Start(fetch);
  ObjectFetch* done = nullptr;
  while (fetcher.Finish({&done, 1}, kWait) == 0) {
  }
  return fetch.status;
}

}  // namespace stoker
