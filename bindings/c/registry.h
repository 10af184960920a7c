// Registry: the loaders that this process knows by key, and their epoch counters. A dataset op
// names its loader by key, since a graph can carry only text, and finds the running loader here.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result/result.h"
#include "engine/loader/loader.h"

namespace stoker {

// State of the process, so there is one instance, which is never destroyed: frameworks may release
// loaders at any time while the process exits. Thread-safe.
class Registry {
 public:
  static Registry& Get();

  // Returns the counter of this key, which is kept for the lifetime of the process.
  std::shared_ptr<EpochCounter> Epochs(const std::string& key);

  // Returns the loader registered for this key; if there is none, registers the one that `open`
  // makes with the key's counter. The registry keeps no loader alive.
  using Opener = std::function<Result<std::shared_ptr<Loader>>(std::shared_ptr<EpochCounter>)>;
  Result<std::shared_ptr<Loader>> FindOrOpen(const std::string& key, const Opener& open);

  // Ends every iteration of every registered loader; for the end of the process.
  void StopAll();

 private:
  Registry();
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace stoker
