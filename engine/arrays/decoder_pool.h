// DecoderPool: decodes images to arrays in memory of their own, one on the calling thread, or many
// on the workers of a Runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "engine/arrays/array_memory.h"
#include "engine/arrays/decode_image.h"
#include "engine/arrays/encoded_input.h"
#include "engine/arrays/idle_workers.h"
#include "transforms/array/array_decoder.h"

namespace stoker {

class Runtime;

// Thread-safe. Works in a forked child.
class DecoderPool {
 public:
  // `budget`: the memory budget of all calls together, without the arrays; other pools may share
  // it. A call that finds no room frees the memory that this pool keeps for later calls, not that
  // of other pools.
  DecoderPool(const DecodeLimits& limits, std::shared_ptr<MemoryBudget> budget);
  DecoderPool(const DecodeLimits& limits, uint64_t memory_budget)  // bytes
      : DecoderPool(limits, std::make_shared<MemoryBudget>(memory_budget)) {}
  ~DecoderPool();

  const MemoryBudget& budget() const { return *budget_; }

  // Errors: those of ArrayDecoder, with the file if the image is in one; those of reading it; and
  // ResourceExhausted if the system has no memory for the array.
  Result<DecodedArray> Decode(const EncodedInput& input, const ArrayRequest& request);
  Result<DecodedArray> Decode(const ImageView& image, const ArrayRequest& request);

  // Decodes all inputs, two at a time on each worker, which is faster than one after the other, and
  // waits for them. Images that find no room next to others are decoded alone, on the calling
  // thread. If images fail, returns the error of the first one, as "images[3]: …"; images
  // after it may not have been decoded. Cancelled by `interrupt`, once the images in progress are
  // done. Passes errors of the Runtime on.
  Result<std::vector<DecodedArray>> DecodeAll(std::span<const EncodedInput> inputs,
                                              const ArrayRequest& request, Runtime& runtime,
                                              const Interrupt& interrupt);

 private:
  class Worker;
  struct Work;

  const DecodeLimits limits_;
  const std::shared_ptr<MemoryBudget> budget_;
  ArrayMemory arrays_;
  IdleWorkers<Worker> idle_;
};

}  // namespace stoker
