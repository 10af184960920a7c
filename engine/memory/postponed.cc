#include "engine/memory/postponed.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace stoker {

void Postponed::Join(Client& client) {
  std::lock_guard lock(mutex_);
  clients_.push_back(&client);
}

void Postponed::Leave(Client& client) {
  std::lock_guard lock(mutex_);
  client.GiveBack();  // nobody would ask it for that any more, and it is not gone yet
  std::erase(clients_, &client);
}

bool Postponed::Begin() {
  if (any()) return false;
  in_work_.fetch_add(1, std::memory_order_seq_cst);
  if (!any()) return true;
  End();  // somebody may have found it in work, and wait for that
  return false;
}

void Postponed::End() {
  if (in_work_.fetch_sub(1, std::memory_order_seq_cst) == 1 && any()) kick_();
}

void Postponed::Add(Client& client, uint32_t sample) {
  std::lock_guard lock(mutex_);
  samples_.push_back({&client, sample});
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  total_.fetch_add(1, std::memory_order_relaxed);
}

std::optional<uint32_t> Postponed::TakeTurn(Client& client) {
  std::lock_guard lock(mutex_);
  if (samples_.empty() || samples_.front().client != &client) return std::nullopt;
  if (turn_ || !NothingInWork()) return std::nullopt;
  GiveBackAll();
  turn_ = true;
  Another();
  return samples_.front().index;
}

void Postponed::EndTurn() {
  std::lock_guard lock(mutex_);
  samples_.pop_front();
  turn_ = false;
  // The next one has to wait for the End that follows; all others need not.
  if (waiting_.fetch_sub(1, std::memory_order_seq_cst) == 1) kick_();
}

std::vector<uint32_t> Postponed::Drop(Client& client) {
  std::vector<uint32_t> dropped;
  std::lock_guard lock(mutex_);
  std::erase_if(samples_, [&](const Sample& sample) {
    if (sample.client == &client) dropped.push_back(sample.index);
    return sample.client == &client;
  });
  waiting_.fetch_sub(static_cast<uint32_t>(dropped.size()), std::memory_order_seq_cst);
  if (!dropped.empty()) kick_();
  return dropped;
}

// Seldom, and for short: asking again and again costs less than a signal from each End would.
void Postponed::Alone(const std::function<void()>& something) {
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  std::unique_lock lock(mutex_);
  while (turn_ || !NothingInWork()) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    lock.lock();
  }
  GiveBackAll();
  something();
  lock.unlock();
  waiting_.fetch_sub(1, std::memory_order_seq_cst);
  kick_();
}

void Postponed::GiveBackAll() {
  for (Client* client : clients_) client->GiveBack();
}

}  // namespace stoker
