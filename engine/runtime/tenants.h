// Loaders of one Runtime share its workers and its memory for batches: each gets what it needs
// while there is enough, and else what is left is divided by weight (max-min fair).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace stoker {

// One that wants a part of something.
struct FairClaim {
  double weight = 1;   // > 0
  uint64_t least = 0;  // gets this in any case
  uint64_t need = 0;   // and never more than this
};

// Who gets how much of `total`, by water filling: nobody more than it needs, and of those who get
// less, each the same for its weight (rounded down; what is left over goes to the first ones).
std::vector<uint64_t> FairShares(uint64_t total, std::span<const FairClaim> claims);

// Any thread.
class Tenants {
 public:
  struct Need {
    uint64_t workers = 1;
    uint64_t batch_bytes = 0;  // memory for batches
  };

  // `batch_bytes`: how much there is for the batches of all loaders together; asked each time.
  Tenants(int workers, std::function<uint64_t()> batch_bytes)
      : workers_(workers), batch_bytes_(std::move(batch_bytes)) {}

  // A loader's place; gives it up when it goes. The Tenants outlive it.
  class Tenant {
   public:
    ~Tenant();
    // Says what it needs from now on; changes the grants of all. Whoever has not asked for much
    // longer than he used to is idle, and needs no workers; memory he keeps, for batches that wait
    // for his consumer lie there. Nanoseconds of the monotonic clock.
    void Ask(const Need& need, uint64_t now_ns);
    // What it may use now: what it needs or is left to it, and its part of what nobody needs; never
    // less than `least` at joining. Any thread; no lock.
    uint64_t workers() const { return granted_workers_.load(std::memory_order_relaxed); }
    uint64_t batch_bytes() const { return granted_bytes_.load(std::memory_order_relaxed); }

    // Whether there is nobody to share with. Any thread; no lock.
    bool alone() const { return alone_.load(std::memory_order_relaxed); }

   private:
    friend class Tenants;
    Tenants* home_ = nullptr;
    double weight_ = 1;
    bool Idle(uint64_t now_ns) const;

    Need least_;
    Need need_;
    uint64_t asked_ns_ = 0;     // 0: never
    uint64_t interval_ns_ = 0;  // between asking, lately
    std::atomic<uint64_t> granted_workers_{0};
    std::atomic<uint64_t> granted_bytes_{0};
    std::atomic<bool> alone_{true};
  };

  std::unique_ptr<Tenant> Join(double weight, const Need& least);

 private:
  void Divide();  // under mutex_

  const int workers_;
  const std::function<uint64_t()> batch_bytes_;
  std::mutex mutex_;
  std::vector<Tenant*> tenants_;
  uint64_t now_ns_ = 0;  // the latest that anybody has named
};

}  // namespace stoker
