#include "engine/arrays/decoder_pool.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <optional>
#include <string>
#include <utility>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/runtime.h"

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

// The images of one DecodeAll. It lives until all its tasks have ended.
class DecoderPool::Work {
 public:
  Work(DecoderPool& pool, std::span<const EncodedInput> inputs, const ArrayRequest& request)
      : inputs(inputs), request(request), arrays(inputs.size()), pool_(pool) {}

  // Returns the next image; none when there are no more or one has failed.
  std::optional<size_t> Next() {
    if (stop_.load(std::memory_order_relaxed)) return std::nullopt;
    const size_t image = next_.fetch_add(1, std::memory_order_relaxed);
    if (image >= inputs.size()) return std::nullopt;
    return image;
  }

  // Images are begun in order: all before a failed one are finished, too. One that found no room
  // next to the others is decoded again after them.
  void Fail(size_t image, Error error) {
    stop_ = true;
    const std::lock_guard lock(mutex_);
    if (error.wanted_bytes != 0) {
      postponed_.push_back(image);
    } else {
      FailFor(image, std::move(error));
    }
  }

  Result<std::vector<DecodedArray>> Run(Executor& executor, const Interrupt& interrupt) {
    bool interrupted = false;
    do {
      stop_ = false;
      tasks_ = std::min(inputs.size(), static_cast<size_t>(executor.concurrency()));
      for (size_t task = tasks_; task > 0; --task) executor.Submit({&RunTask, this, 0});
      interrupted = Wait(interrupt);
      if (!interrupted) DecodePostponed();
    } while (!interrupted && !failed_ && next_ < inputs.size());
    if (failed_) return DescribeError();
    if (interrupted) return Error{Code::kCancelled, "decoding was interrupted"};
    return std::move(arrays);
  }

  const std::span<const EncodedInput> inputs;
  const ArrayRequest& request;
  std::vector<DecodedArray> arrays;

 private:
  void FailFor(size_t image, Error error) {
    if (failed_ && *failed_ < image) return;
    failed_ = image;
    error_ = std::move(error);
  }

  // Decodes images without the others, once no task is left.
  void DecodePostponed() {
    for (const size_t image : postponed_) {
      if (failed_ && *failed_ < image) continue;
      Result<DecodedArray> array = pool_.Decode(inputs[image], request);
      if (array.ok()) {
        arrays[image] = *std::move(array);
      } else {
        FailFor(image, std::move(array).error());
      }
    }
    postponed_.clear();
  }

  static void RunTask(void* context, uint32_t /*argument*/, int /*worker*/) {
    auto& work = *static_cast<Work*>(context);
    work.pool_.idle_.Lend()->Run(work);
    const std::lock_guard lock(work.mutex_);  // until after the notification: `work` dies then
    --work.tasks_;
    work.ended_.notify_one();
  }

  // Returns whether it was interrupted.
  bool Wait(const Interrupt& interrupt) {
    bool interrupted = false;
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kInterruptInterval, [this] { return tasks_ == 0; })) {
      if (interrupted || !interrupt) continue;
      lock.unlock();
      interrupted = interrupt();
      lock.lock();
      if (interrupted) stop_ = true;
    }
    return interrupted;
  }

  Error DescribeError() {
    Error error = std::move(error_);
    if (inputs[*failed_].path.empty()) {
      error.cause = "images[" + std::to_string(*failed_) + "]: " + error.cause;
    }
    return error;
  }

  DecoderPool& pool_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards the members below
  std::condition_variable ended_;
  size_t tasks_ = 0;
  std::vector<size_t> postponed_;
  std::optional<size_t> failed_;
  Error error_;
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
  const std::optional<size_t> image = work.Next();
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
  if (!status.ok()) work.Fail(image, std::move(status).error());
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
  Work work(*this, inputs, request);
  return work.Run(runtime.executor(), interrupt);
}

}  // namespace stoker
