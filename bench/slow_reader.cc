#include "bench/slow_reader.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace stoker {

namespace {

using std::chrono::steady_clock;

}  // namespace

SlowDisk::Time SlowDisk::EndOf(const ReadRequest& request, Time begun) {
  Time end = begun + storage_.latency;
  if (storage_.extra) end += storage_.extra(request.path);
  if (storage_.bytes_per_second > 0) {
    const std::chrono::duration<double> transfer(static_cast<double>(request.size) /
                                                 static_cast<double>(storage_.bytes_per_second));
    std::lock_guard lock(mutex_);
    busy_until_ =
        std::max(busy_until_, begun) + std::chrono::duration_cast<steady_clock::duration>(transfer);
    end = std::max(end, busy_until_);
  }
  if (storage_.stall_every > SlowStorage::Duration::zero()) {
    const auto into = (end - made_) % storage_.stall_every;
    if (into < storage_.stall) end += storage_.stall - into;
  }
  return end;
}

Result<std::unique_ptr<Reader>> SlowReader::Make(Result<std::unique_ptr<Reader>> inner,
                                                 std::shared_ptr<SlowDisk> disk) {
  if (!inner.ok()) return inner;
  return std::unique_ptr<Reader>(std::make_unique<SlowReader>(*std::move(inner), std::move(disk)));
}

SlowReader::SlowReader(std::unique_ptr<Reader> inner, std::shared_ptr<SlowDisk> disk)
    : inner_(std::move(inner)), disk_(std::move(disk)) {}

SlowReader::~SlowReader() = default;

size_t SlowReader::Submit(std::span<ReadRequest* const> requests) {
  const size_t room = capacity() - in_flight();
  const size_t taken = inner_->Submit(requests.first(std::min(room, requests.size())));
  const SlowDisk::Time now = steady_clock::now();
  for (ReadRequest* const request : requests.first(taken)) begun_.emplace_back(request, now);
  return taken;
}

void SlowReader::ReapInner(bool wait) {
  std::vector<ReadRequest*> done(inner_->in_flight());
  done.resize(inner_->Reap(done, wait));
  for (ReadRequest* const request : done) {
    const auto begun = std::ranges::find(begun_, request, &decltype(begun_)::value_type::first);
    held_.push_back({request, disk_->EndOf(*request, begun->second)});
    begun_.erase(begun);
  }
}

size_t SlowReader::Reap(std::span<ReadRequest*> done, bool wait) {
  constexpr std::chrono::milliseconds kMax(50);
  constexpr std::chrono::microseconds kPollEvery(200);  // polling interval while waiting for both
  const SlowDisk::Time give_up = steady_clock::now() + kMax;
  while (true) {
    if (inner_->in_flight() > 0) ReapInner(wait && held_.empty());
    const SlowDisk::Time now = steady_clock::now();
    size_t count = 0;
    SlowDisk::Time next = give_up;
    std::erase_if(held_, [&](const Held& held) {
      if (held.end > now || count == done.size()) {
        next = std::min(next, held.end);
        return false;
      }
      done[count++] = held.request;
      return true;
    });
    if (count > 0 || !wait || in_flight() == 0 || now >= give_up) return count;
    std::this_thread::sleep_until(inner_->in_flight() > 0 ? std::min(next, now + kPollEvery)
                                                          : next);
  }
}

}  // namespace stoker
