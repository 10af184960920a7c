// Which loaders this process knows by a key, and their epoch counters. A dataset op names its
// loader by key, since a graph can carry nothing but text: the op finds the running one here.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "engine/loader/epoch_counter.h"
#include "engine/loader/loader.h"

namespace stoker {

// The state of a process, so there is one of it, and it is never destroyed: frameworks release what
// they hold as late as they like while the process exits. Any thread.
class Registry {
 public:
  static Registry& Get();

  // The counter of this key; kept as long as the process lives.
  std::shared_ptr<EpochCounter> Epochs(const std::string& key);

  // The loader that has this key now; else the one that `open` makes with the key's counter, which
  // has it from then on. The registry keeps no loader alive.
  using Opener = std::function<Result<std::shared_ptr<Loader>>(std::shared_ptr<EpochCounter>)>;
  Result<std::shared_ptr<Loader>> FindOrOpen(const std::string& key, const Opener& open);

  // Ends every iteration of every loader that has a key, for the end of the process.
  void StopAll();

 private:
  Registry();
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace stoker
