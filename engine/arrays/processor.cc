#include "engine/arrays/processor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "core/system/machine.h"
#include "engine/arrays/array_memory.h"
#include "engine/arrays/idle_workers.h"
#include "engine/arrays/shared_work.h"
#include "engine/runtime/runtime.h"
#include "io/readers/reader.h"
#include "transforms/array/array_decoder.h"
#include "transforms/decode/image_info.h"
#include "transforms/processor/image_processor.h"

namespace stoker {

namespace {

constexpr double kMostArrayBytes = 1ULL << 48;
constexpr size_t kSmallArray = size_t{1} << 28;  // is allocated without a look at the machine

Error WrongSize(const ImagePlan& was, ImageSize is) {
  return {.code = Code::kDataLoss,
          .cause = "the image had " + SizeText(was.image) + " pixels, and now has " + SizeText(is),
          .advice = "Do not change files and buffers while they are processed"};
}

}  // namespace

class Processor::State {
 public:
  explicit State(ProcessorOptions given)
      : options(std::move(given)),
        values(options.recipe, options.dtype),
        budget_(options.memory_budget == 0 ? DefaultMemory() : options.memory_budget),
        idle_([this] { return std::make_unique<Worker>(*this); }) {}

  Result<ArrayShape> ShapeOf(std::span<const ImagePlan> images) const;
  Result<ProcessedImages> One(const EncodedInput& input, std::optional<std::span<uint8_t>> into);
  Result<std::vector<ImagePlan>> PlanAll(std::span<const EncodedInput> inputs, Runtime& runtime,
                                         const Interrupt& interrupt);
  Result<ProcessedImages> All(std::span<const EncodedInput> inputs, Runtime& runtime,
                              const Interrupt& interrupt, std::optional<std::span<uint8_t>> into);

  const ProcessorOptions options;
  const PatchValues values;

 private:
  // The working memory of one thread.
  class Worker {
   public:
    explicit Worker(State& state)
        : state_(state),
          memory_(MemoryBudget::kNoLimit, state.budget_),
          processor_(state.options.recipe, state.values, state.options.limits,
                     state.options.exif_orientation, memory_) {
      file_.buffer = GrowingBuffer(memory_);
    }

    uint64_t memory() const { return memory_.used(); }

    // Reads an image's header.
    Result<ImagePlan> Open(const EncodedInput& input) {
      ASSIGN_OR_RETURN(std::span<const uint8_t> bytes, LoadInto(file_, input));
      Result<ImageSize> size = processor_.Open(bytes);
      if (!size.ok()) return InFile(std::move(size).error(), input);
      Result<ImagePlan> plan = PlanImage(state_.options.recipe, *size);
      if (!plan.ok()) return InFile(std::move(plan).error(), input);
      return plan;
    }

    // Writes the rows of the open image, and zeros up to `bytes`.
    Status Write(const EncodedInput& input, const ImagePlan& plan, size_t bytes, uint8_t* to) {
      const size_t used = static_cast<size_t>(plan.rows) * state_.RowBytes(plan);
      if (used > bytes) {
        return InFile({Code::kInvalidArgument, "the image has " + std::to_string(used) +
                                                   " bytes of rows, and the array has " +
                                                   std::to_string(bytes) + " for it"},
                      input);
      }
      Status written = processor_.Write(plan, to);
      if (!written.ok()) return InFile(std::move(written).error(), input);
      std::memset(to + used, 0, bytes - used);
      return {};
    }

   private:
    const State& state_;
    MemoryBudget memory_;
    ReadRequest file_;
    ImageProcessor processor_;
  };

  // Calls `process(worker, image)` for each image.
  template <typename Process>
  Status ForEach(size_t images, Runtime& runtime, const Interrupt& interrupt,
                 const Process& process) {
    SharedWork work(
        images,
        [&] {
          const auto worker = idle_.Lend();
          while (const std::optional<size_t> image = work.Next()) {
            Status status = process(*worker, *image);
            if (!status.ok()) work.Fail(*image, std::move(status).error());
          }
        },
        [&](size_t image) {
          return idle_.Run([&](Worker& worker) { return process(worker, image); });
        });
    return work.Run(runtime.executor(), interrupt);
  }

  size_t RowBytes(const ImagePlan& plan) const {
    return RowValues(options.recipe, plan.patch) * SizeOf(options.dtype);
  }
  Status Allocate(std::optional<std::span<uint8_t>> into, DecodedArray& array);

  MemoryBudget budget_;
  ArrayMemory arrays_;
  IdleWorkers<Worker> idle_;
};

Result<ArrayShape> Processor::State::ShapeOf(std::span<const ImagePlan> images) const {
  const ProcessorRecipe& recipe = options.recipe;
  const ImageSize patch = images.front().patch;
  int64_t rows = 0, most = recipe.padded_rows;
  for (size_t i = 0; i < images.size(); ++i) {
    if (images[i].patch != patch) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = "images[0] would have " + SizeText(patch) + " pixels and images[" +
                            std::to_string(i) + "] " + SizeText(images[i].patch) +
                            ", which one array does not hold",
                   .advice = "Process images of each size by themselves, or crop them"};
    }
    rows += images[i].rows;
    most = std::max(most, images[i].rows);
  }
  ArrayShape shape{options.dtype, {}};
  if (recipe.pads()) {
    shape.sides = {static_cast<int64_t>(images.size()), most};
  } else {
    shape.sides = {rows};
  }
  double bytes = static_cast<double>(RowBytes(images.front()));
  for (const int64_t side : shape.sides) bytes *= static_cast<double>(side);
  if (bytes > kMostArrayBytes) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = std::to_string(images.size()) + " images take more than 256 TiB",
                 .advice = "Process fewer images in a call"};
  }
  if (recipe.flat()) {
    shape.sides.push_back(static_cast<int64_t>(RowValues(recipe, patch)));
  } else {
    shape.sides.insert(shape.sides.end(), {3, patch.height, patch.width});
  }
  return shape;
}

Status Processor::State::Allocate(std::optional<std::span<uint8_t>> into, DecodedArray& array) {
  const size_t bytes = array.shape.bytes();
  if (!into) {
    const uint64_t available = bytes > kSmallArray ? AvailableMemory() : bytes;
    if (bytes > available) {
      return Error{.code = Code::kResourceExhausted,
                   .cause = "the images take " + std::to_string(bytes) + " bytes, and " +
                            std::to_string(available) + " are available",
                   .advice = "Process fewer images in a call"};
    }
    ASSIGN_OR_RETURN(array.memory, arrays_.Allocate(bytes));
    return {};
  }
  if (into->size() < bytes) {
    return Error{Code::kInvalidArgument, "the images take " + std::to_string(bytes) +
                                             " bytes, and the memory for them has " +
                                             std::to_string(into->size())};
  }
  array.memory = {std::shared_ptr<void>(), into->data()};
  return {};
}

Result<ProcessedImages> Processor::State::One(const EncodedInput& input,
                                              std::optional<std::span<uint8_t>> into) {
  return idle_.Run([&](Worker& worker) -> Result<ProcessedImages> {
    ProcessedImages made;
    ASSIGN_OR_RETURN(made.images.emplace_back(), worker.Open(input));
    ASSIGN_OR_RETURN(made.array.shape, ShapeOf(made.images));
    TRY(Allocate(into, made.array));
    const ImagePlan& plan = made.images.front();
    TRY(worker.Write(input, plan, made.array.shape.bytes(),
                     static_cast<uint8_t*>(made.array.memory.get())));
    return made;
  });
}

Result<std::vector<ImagePlan>> Processor::State::PlanAll(std::span<const EncodedInput> inputs,
                                                         Runtime& runtime,
                                                         const Interrupt& interrupt) {
  if (inputs.empty()) return Error{Code::kInvalidArgument, "there are no images"};
  TRY(runtime.CheckProcess());
  const std::optional<ImagePlan> fixed = FixedPlan(options.recipe);
  if (fixed) return std::vector<ImagePlan>(inputs.size(), *fixed);
  std::vector<ImagePlan> plans(inputs.size());
  TRY(ForEach(inputs.size(), runtime, interrupt, [&](Worker& worker, size_t image) -> Status {
    ASSIGN_OR_RETURN(plans[image], worker.Open(inputs[image]));
    return {};
  }));
  return plans;
}

Result<ProcessedImages> Processor::State::All(std::span<const EncodedInput> inputs,
                                              Runtime& runtime, const Interrupt& interrupt,
                                              std::optional<std::span<uint8_t>> into) {
  const size_t count = inputs.size();
  const std::optional<ImagePlan> fixed = FixedPlan(options.recipe);
  ProcessedImages made;
  ASSIGN_OR_RETURN(made.images, PlanAll(inputs, runtime, interrupt));
  ASSIGN_OR_RETURN(made.array.shape, ShapeOf(made.images));
  TRY(Allocate(into, made.array));

  const size_t row_bytes = RowBytes(made.images.front());
  const bool pads = options.recipe.pads();
  std::vector<size_t> ends(count);  // of each image's bytes
  for (size_t i = 0, end = 0; i < count; ++i) {
    end += pads ? made.array.shape.bytes() / count
                : static_cast<size_t>(made.images[i].rows) * row_bytes;
    ends[i] = end;
  }
  auto* const rows = static_cast<uint8_t*>(made.array.memory.get());
  TRY(ForEach(count, runtime, interrupt, [&](Worker& worker, size_t image) -> Status {
    ASSIGN_OR_RETURN(ImagePlan plan, worker.Open(inputs[image]));
    if (!fixed && plan != made.images[image]) {
      return InFile(WrongSize(made.images[image], plan.image), inputs[image]);
    }
    const size_t begin = image == 0 ? 0 : ends[image - 1];
    made.images[image] = plan;
    return worker.Write(inputs[image], plan, ends[image] - begin, rows + begin);
  }));
  return made;
}

Processor::Processor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Processor::~Processor() = default;

Result<std::unique_ptr<Processor>> Processor::Create(ProcessorOptions options) {
  TRY(CheckRequest({.dtype = options.dtype}, options.limits));
  if (options.dtype == DType::kU16 ||
      (options.dtype == DType::kU8 && options.recipe.resizes_floats)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string("this processor does not make ") + NameOf(options.dtype),
                 .advice = "Use float32, float16 or bfloat16"};
  }
  const ProcessorRecipe& recipe = options.recipe;
  if (!recipe.rescales && !recipe.normalizes && options.dtype != DType::kU8) {
    return Error{
        .code = Code::kInvalidArgument,
        .cause = "the configuration neither rescales nor normalizes, so its values are bytes",
        .advice = "Use uint8"};
  }
  if (const std::optional<ImagePlan> fixed = FixedPlan(recipe)) {
    TRY(CheckRowBytes(recipe, *fixed));
  }
  return std::unique_ptr<Processor>(new Processor(std::make_unique<State>(std::move(options))));
}

const ProcessorOptions& Processor::options() const { return state_->options; }
Normalisation Processor::normalisation() const { return NormalisationOf(recipe()); }
Result<ImagePlan> Processor::Plan(ImageSize image) const { return PlanImage(recipe(), image); }

Result<ArrayShape> Processor::ShapeOf(std::span<const ImagePlan> images) const {
  return state_->ShapeOf(images);
}

Result<std::vector<ImagePlan>> Processor::PlanAll(std::span<const EncodedInput> inputs,
                                                  Runtime& runtime,
                                                  const Interrupt& interrupt) const {
  return state_->PlanAll(inputs, runtime, interrupt);
}

Result<ProcessedImages> Processor::Process(const EncodedInput& input,
                                           std::optional<std::span<uint8_t>> into) const {
  return state_->One(input, into);
}

Result<ProcessedImages> Processor::ProcessAll(std::span<const EncodedInput> inputs,
                                              Runtime& runtime, const Interrupt& interrupt,
                                              std::optional<std::span<uint8_t>> into) const {
  return state_->All(inputs, runtime, interrupt, into);
}

}  // namespace stoker
