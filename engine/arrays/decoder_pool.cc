#include "engine/arrays/decoder_pool.h"

#include <array>
#include <optional>
#include <utility>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "engine/arrays/shared_work.h"
#include "engine/runtime/runtime.h"
#include "io/readers/reader.h"

namespace stoker {

// The decoders of one thread: two, which may be interleaved, with memory for their bytes.
class DecoderPool::Worker {
 public:
  explicit Worker(DecoderPool& pool)
      : memory_(MemoryBudget::kNoLimit, *pool.budget_),
        lane_{Lane(pool.limits_, memory_, pool.arrays_),
              Lane(pool.limits_, memory_, pool.arrays_)} {}

  uint64_t memory() const { return memory_.used(); }

  Result<DecodedArray> Decode(const EncodedInput& input, const ArrayRequest& request) {
    Lane& lane = lane_[0];
    DecodedArray array;
    TRY(lane.Start(input, request, array));
    while (lane.decoder.decoding()) lane.decoder.Advance();
    TRY(lane.Finish(input));
    return array;
  }

  Result<DecodedArray> Decode(const ImageView& image, const ArrayRequest& request) {
    DecodedArray array;
    TRY(lane_[0].Allocate(lane_[0].decoder.Open(image, request), array));
    TRY(lane_[0].decoder.Decode(array.memory.get()));
    return array;
  }

  // Takes images until none is left.
  void Run(Work& work);

 private:
  struct Lane {
    Lane(const DecodeLimits& limits, MemoryBudget& budget, ArrayMemory& memory)
        : arrays(memory), decoder(limits, budget) {
      file.buffer = GrowingBuffer(budget);
    }

    Status Allocate(Result<ArrayShape> shape, DecodedArray& array) {
      ASSIGN_OR_RETURN(array.shape, std::move(shape));
      ASSIGN_OR_RETURN(array.memory, arrays.Allocate(array.shape.bytes()));
      return {};
    }

    Status Start(const EncodedInput& input, const ArrayRequest& request, DecodedArray& array) {
      ASSIGN_OR_RETURN(std::span<const uint8_t> bytes, LoadInto(file, input));
      Status ready = Allocate(decoder.Open(bytes, request), array);
      if (!ready.ok()) return InFile(std::move(ready).error(), input);
      decoder.Start(array.memory.get());
      return {};
    }

    Status Finish(const EncodedInput& input) {
      Status status = decoder.Finish();
      if (!status.ok()) return InFile(std::move(status).error(), input);
      return status;
    }

    ArrayMemory& arrays;
    ArrayDecoder decoder;
    ReadRequest file;
    std::optional<size_t> image;  // the index of the image in progress
  };

  bool Begin(Work& work, Lane& lane);
  void End(Work& work, Lane& lane, Status status);

  MemoryBudget memory_;
  std::array<Lane, 2> lane_;
};

// The images of one DecodeAll.
struct DecoderPool::Work {
  std::span<const EncodedInput> inputs;
  const ArrayRequest& request;
  std::vector<DecodedArray> arrays;
  SharedWork shared;
};

void DecoderPool::Worker::Run(Work& work) {
  Lane &a = lane_[0], &b = lane_[1];
  while (true) {
    for (Lane* lane : {&a, &b}) {
      while (!lane->image && Begin(work, *lane)) {
      }
    }
    if (!a.image && !b.image) return;
    if (a.image && b.image) {
      ArrayDecoder::AdvanceBoth(a.decoder, b.decoder);
    } else {
      (a.image ? a : b).decoder.Advance();
    }
    for (Lane* lane : {&a, &b}) {
      if (lane->image && !lane->decoder.decoding()) {
        End(work, *lane, lane->Finish(work.inputs[*lane->image]));
      }
    }
  }
}

// Begins an image, and ends it if it cannot be decoded in pieces. Returns false if there is none.
bool DecoderPool::Worker::Begin(Work& work, Lane& lane) {
  const std::optional<size_t> image = work.shared.Next();
  if (!image) return false;
  lane.image = image;
  Status status = lane.Start(work.inputs[*image], work.request, work.arrays[*image]);
  if (status.ok() && lane.decoder.decoding()) return true;
  if (status.ok()) status = lane.Finish(work.inputs[*image]);
  End(work, lane, std::move(status));
  return true;
}

void DecoderPool::Worker::End(Work& work, Lane& lane, Status status) {
  const size_t image = *std::exchange(lane.image, std::nullopt);
  if (!status.ok()) work.shared.Fail(image, std::move(status).error());
}

DecoderPool::DecoderPool(const DecodeLimits& limits, std::shared_ptr<MemoryBudget> budget)
    : limits_(limits),
      budget_(std::move(budget)),
      idle_([this] { return std::make_unique<Worker>(*this); }) {}
DecoderPool::~DecoderPool() = default;

Result<DecodedArray> DecoderPool::Decode(const EncodedInput& input, const ArrayRequest& request) {
  return idle_.Run([&](Worker& worker) { return worker.Decode(input, request); });
}

Result<DecodedArray> DecoderPool::Decode(const ImageView& image, const ArrayRequest& request) {
  return idle_.Run([&](Worker& worker) { return worker.Decode(image, request); });
}

Result<std::vector<DecodedArray>> DecoderPool::DecodeAll(std::span<const EncodedInput> inputs,
                                                         const ArrayRequest& request,
                                                         Runtime& runtime,
                                                         const Interrupt& interrupt) {
  TRY(runtime.CheckProcess());
  Work work{inputs, request, std::vector<DecodedArray>(inputs.size()),
            SharedWork(
                inputs.size(), [&] { idle_.Lend()->Run(work); },
                [&](size_t image) -> Status {
                  ASSIGN_OR_RETURN(work.arrays[image], Decode(inputs[image], request));
                  return {};
                })};
  TRY(work.shared.Run(runtime.executor(), interrupt));
  return std::move(work.arrays);
}

}  // namespace stoker
