#include "engine/arrays/compose.h"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "engine/arrays/array_memory.h"
#include "engine/arrays/decoder_pool.h"
#include "engine/arrays/encoded_input.h"
#include "engine/arrays/idle_workers.h"
#include "io/readers/reader.h"
#include "transforms/array/array_decoder.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/row/pad_batch.h"

namespace stoker {

namespace {

// The request for an image without transforms.
ArrayRequest WholeImage(const ComposeOptions& options) {
  return {.channels = options.channels,
          .exif_orientation = options.exif_orientation,
          .dtype = options.dtype,
          .layout = options.layout};
}

// Another key would silently have the random numbers of a valid one.
Status CheckKey(const DrawKey& key) {
  if (key.epoch > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kInvalidArgument,
                 "epoch is " + std::to_string(key.epoch) + "; it must be below 2^32"};
  }
  if (key.view < kMaxViews) return {};
  return Error{Code::kInvalidArgument, "view is " + std::to_string(key.view) +
                                           "; it must be below " + std::to_string(kMaxViews)};
}

}  // namespace

class Compose::State {
 public:
  State(const ComposeOptions& options, std::optional<Plan> plan)
      : budget_(std::make_shared<MemoryBudget>(options.memory_budget != 0 ? options.memory_budget
                                                                          : DefaultMemory())),
        whole_(WholeImage(options)),
        pool_(options.limits, budget_),
        plan_(std::move(plan)),
        shape_(plan_ && !plan_->pads_batches()
                   ? std::optional(ArrayShape{plan_->dtype(), plan_->row_shape()})
                   : std::nullopt),
        idle_([this] { return std::make_unique<Worker>(*plan_, *budget_); }) {}

  uint64_t memory_budget() const { return budget_->limit(); }

  const std::optional<ArrayShape>& shape() const { return shape_; }

  Result<ComposedImage> Apply(const EncodedInput& input, const DrawKey& key, void* into) {
    TRY(CheckKey(key));
    if (!plan_) return Whole(input, into);
    return WithPlan(into, [&](Worker& worker, void* row, int32_t* size) -> Status {
      ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes, LoadInto(worker.file, input));
      StageTimes times;
      return plan_->Apply(bytes, key, *worker.workspace, row, times, /*crop_index=*/{},
                          /*work=*/nullptr, size);
    });
  }

  Result<ComposedImage> Apply(const ImageView& image, const DrawKey& key, void* into) {
    TRY(CheckKey(key));
    if (!plan_) return Whole(image, into);
    return WithPlan(into, [&](Worker& worker, void* row, int32_t* size) {
      StageTimes times;
      return plan_->Apply(image, key, *worker.workspace, {.row = row, .size = size}, times);
    });
  }

 private:
  // The working memory of one call with a plan.
  struct Worker {
    Worker(const Plan& plan, MemoryBudget& budget)
        : held(MemoryBudget::kNoLimit, budget), workspace(plan.MakeWorkspace(held)) {
      file.buffer = GrowingBuffer(held);
    }
    uint64_t memory() const { return held.used(); }

    MemoryBudget held;
    std::unique_ptr<Workspace, void (*)(Workspace*)> workspace;
    ReadRequest file;
  };

  // Refuses the caller's memory for arrays that differ in size.
  Status CheckInto(const void* into) const {
    if (into == nullptr || shape_) return {};
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string(plan_ ? "arrays differ in size" : "there are no transforms") +
                          ", so an image may be larger than the memory given",
                 .advice = "Leave out `into`: the array is then in new memory"};
  }

  template <typename Image>
  Result<ComposedImage> Whole(const Image& image, const void* into) {
    TRY(CheckInto(into));
    ComposedImage made;
    ASSIGN_OR_RETURN(made.array, pool_.Decode(image, whole_));
    std::vector<int64_t>& sides = made.array.shape.sides;
    const bool planes = whole_.layout == Layout::kNchw;
    if (sides.size() == 2) sides.insert(planes ? sides.begin() : sides.end(), 1);  // as in batches
    return made;
  }

  // `write` writes the row to `into`, or to new memory.
  template <typename Write>
  Result<ComposedImage> WithPlan(void* into, const Write& write) {
    TRY(CheckInto(into));
    ComposedImage made{.array = {.shape = {plan_->dtype(), plan_->row_shape()},
                                 .memory = {std::shared_ptr<void>(), into}}};
    if (into == nullptr) {
      ASSIGN_OR_RETURN(made.array.memory, arrays_.Allocate(plan_->row_bytes()));
    }
    void* const row = made.array.memory.get();
    std::array<int32_t, 2> size{};
    TRY(idle_.Run([&](Worker& worker) -> Status {
      return write(worker, row, plan_->pads() ? size.data() : nullptr);
    }));
    if (plan_->pads()) made.size = ImageSize{.width = size[1], .height = size[0]};
    if (plan_->pads_batches()) {  // the image is a batch by itself
      const ImageSize whole = LargestOf(size, plan_->multiple());
      FinishBatch(*plan_, row, size, whole);
      made.array.shape.sides = plan_->row_shape(whole);
    }
    return made;
  }

  const std::shared_ptr<MemoryBudget> budget_;
  const ArrayRequest whole_;
  DecoderPool pool_;  // used without a plan
  const std::optional<Plan> plan_;
  const std::optional<ArrayShape> shape_;
  ArrayMemory arrays_;
  IdleWorkers<Worker> idle_;
};

Compose::Compose(std::unique_ptr<State> state) : state_(std::move(state)) {}
Compose::~Compose() = default;

Result<std::unique_ptr<Compose>> Compose::Create(ComposeOptions options) {
  TRY(CheckRequest(WholeImage(options), options.limits));
  // A plan's rows have one size; without transforms images keep theirs.
  std::optional<Plan> plan;
  if (!options.transforms.empty()) {
    ASSIGN_OR_RETURN(plan, Plan::Compile(std::move(options.transforms),
                                         {.dtype = options.dtype,
                                          .layout = options.layout,
                                          .channels = options.channels,
                                          .exif_orientation = options.exif_orientation,
                                          .decode = options.decode,
                                          .limits = options.limits}));
    if (plan->parts() > 1) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = "transforms[0], Mosaic: it makes a row of several samples of a source",
                   .advice = "Give it to a loader, which has a source"};
    }
  }
  return std::unique_ptr<Compose>(new Compose(std::make_unique<State>(options, std::move(plan))));
}

Result<ComposedImage> Compose::Apply(std::span<const uint8_t> bytes, const DrawKey& key,
                                     void* into) const {
  return state_->Apply(EncodedInput{.bytes = bytes}, key, into);
}

Result<ComposedImage> Compose::ApplyToFile(const std::string& path, const DrawKey& key,
                                           void* into) const {
  if (path.empty()) return Error{Code::kInvalidArgument, "the path is empty"};
  const EncodedInput input{.bytes = {}, .path = path};
  Result<ComposedImage> made = state_->Apply(input, key, into);
  if (!made.ok()) return InFile(std::move(made).error(), input);
  return made;
}

Result<ComposedImage> Compose::Apply(const ImageView& image, const DrawKey& key, void* into) const {
  return state_->Apply(image, key, into);
}

const std::optional<ArrayShape>& Compose::shape() const { return state_->shape(); }
uint64_t Compose::memory_budget() const { return state_->memory_budget(); }

}  // namespace stoker
