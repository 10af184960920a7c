// StageWatch: measures the stages of work with a workspace.
#pragma once

#include <cstdint>

#include "core/time/stage_times.h"

namespace stoker {

class Workspace;

class StageWatch {
 public:
  // All references must outlive it.
  StageWatch(Workspace& workspace, StageTimes& times);
  ~StageWatch() { Add(); }
  StageWatch(const StageWatch&) = delete;
  StageWatch& operator=(const StageWatch&) = delete;

  // Adds the time since the last call to `times`.
  void Add();
  // Excludes the time since the last call.
  void Skip() { last_ = NowNanoseconds(); }

 private:
  Workspace& workspace_;
  StageTimes& times_;
  uint64_t last_;
  StageTimes seen_;  // by the workspace's own clocks at the last call
};

}  // namespace stoker
