// The batches of a Loader, or of a Cursor, for a stager.
#pragma once

#include "gpu/stager.h"

namespace stoker {

// `From`: what has Result<Batch> Next(const Interrupt&); it outlives this.
template <typename From>
class BatchesOf final : public HostBatches {
 public:
  explicit BatchesOf(From& from) : from_(from) {}
  Result<Batch> Next(const Interrupt& interrupt) override { return from_.Next(interrupt); }

 private:
  From& from_;
};

}  // namespace stoker
