// Samples that found no room in the memory budget, of all loaders of a Runtime: they wait for
// their turn.
//
// While there is one, no loader begins another sample, so what is in work comes to its end: soon,
// since nothing in work waits for a consumer. Then all loaders give back the memory that lies idle,
// and the one that has waited longest is tried again from its read on, alone. What has no room
// then, with all of the samples' share for itself, never will: whether a sample is refused depends
// on the budget and on its file, not on what else happened to be in work.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace stoker {

// Any thread. In the steady state it takes no lock: two numbers are looked at.
class Postponed {
 public:
  // A loader.
  class Client {
   public:
    // Frees what it holds for samples: buffers and workspaces. Nothing of it is in work then.
    virtual void GiveBack() = 0;

   protected:
    ~Client() = default;
  };

  // `kick`: has every loader asked for samples again, soon and on another thread's account.
  explicit Postponed(std::function<void()> kick) : kick_(std::move(kick)) {}

  void Join(Client& client);
  void Leave(Client& client);  // none of its samples is in work or waits here

  // Around what works with samples' memory. Begin refuses while a sample waits, and says so by
  // false: then TakeTurn. Another is for whoever has begun already, and End for each of both.
  [[nodiscard]] bool Begin();
  void Another() { in_work_.fetch_add(1, std::memory_order_relaxed); }
  void End();

  // The sample, which is in work, waits from now on: its memory has been given back.
  void Add(Client& client, uint32_t sample);

  // Of this loader, if it is its turn now: it has begun then, and what has room now has room.
  std::optional<uint32_t> TakeTurn(Client& client);
  void EndTurn();  // written or refused; End follows

  // How many there have been so far.
  uint64_t total() const { return total_.load(std::memory_order_relaxed); }

  // No sample of this loader waits any more; those that did. Precondition: none of them is in work.
  std::vector<uint32_t> Drop(Client& client);

  // Does something when nothing is in work and all idle memory has been given back. Waits for that.
  void Alone(const std::function<void()>& something);

 private:
  struct Sample {
    Client* client;
    uint32_t index;
  };

  bool any() const { return waiting_.load(std::memory_order_seq_cst) != 0; }
  bool NothingInWork() const { return in_work_.load(std::memory_order_seq_cst) == 0; }
  void GiveBackAll();  // under mutex_, and nothing in work

  const std::function<void()> kick_;
  // Who begins counts itself, then looks whether anyone waits; who waits says so, then looks
  // whether anything is in work: in one total order (seq_cst), so that not both go on.
  std::atomic<uint32_t> in_work_{0};
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint64_t> total_{0};
  std::mutex mutex_;
  std::vector<Client*> clients_;
  std::deque<Sample> samples_;  // the first is in work if it is its turn
  bool turn_ = false;
};

}  // namespace stoker
