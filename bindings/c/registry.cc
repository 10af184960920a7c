#include "bindings/c/registry.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace stoker {

struct Registry::State {
  struct Entry {
    std::mutex opening;  // one Open at a time for each key; other keys are not blocked
    std::shared_ptr<EpochCounter> epochs = std::make_shared<EpochCounter>();
    std::weak_ptr<Loader> loader;  // under State::mutex
  };

  std::shared_ptr<Entry> EntryOf(const std::string& key) {
    std::lock_guard lock(mutex);
    std::shared_ptr<Entry>& entry = entries[key];
    if (entry == nullptr) entry = std::make_shared<Entry>();
    return entry;
  }

  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Entry>> entries;
};

Registry::Registry() : state_(std::make_unique<State>()) {}

Registry& Registry::Get() {
  static auto* registry = new Registry();
  return *registry;
}

std::shared_ptr<EpochCounter> Registry::Epochs(const std::string& key) {
  return state_->EntryOf(key)->epochs;
}

Result<std::shared_ptr<Loader>> Registry::FindOrOpen(const std::string& key, const Opener& open) {
  const std::shared_ptr<State::Entry> entry = state_->EntryOf(key);
  std::lock_guard one_at_a_time(entry->opening);
  {
    std::lock_guard lock(state_->mutex);
    std::shared_ptr<Loader> loader = entry->loader.lock();
    if (loader != nullptr && loader->options().runtime->CheckProcess().ok()) return loader;
  }
  Result<std::shared_ptr<Loader>> opened = open(entry->epochs);
  if (opened.ok()) {
    std::lock_guard lock(state_->mutex);
    entry->loader = *opened;
  }
  return opened;
}

void Registry::StopAll() {
  std::vector<std::shared_ptr<Loader>> loaders;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& [key, entry] : state_->entries) {
      if (auto loader = entry->loader.lock()) loaders.push_back(std::move(loader));
    }
  }
  for (const auto& loader : loaders) loader->Stop();
}

}  // namespace stoker
