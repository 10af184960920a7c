#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/c_calls.h"
#include "bindings/c/processor_config.h"
#include "core/result/try.h"
#include "engine/arrays/processor.h"
#include "engine/runtime/runtime.h"

struct stoker_processor {
  std::unique_ptr<stoker::Processor> processor;
  std::shared_ptr<stoker::Runtime> runtime;  // keeps the default one
};

namespace stoker::c {

namespace {

constexpr uint64_t kMostStructBytes = 4096;  // of any version
constexpr DType kOutputTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kU8};

Error NoProcessor(std::string cause) { return {Code::kInvalidArgument, std::move(cause)}; }

Result<ProcessorOptions> OptionsOf(const char* config, const stoker_processor_options& given) {
  const auto resampler = given.pillow != 0 ? ResampledAs::kPillowExact : ResampledAs::kTorchvision;
  ProcessorOptions options;
  ASSIGN_OR_RETURN(
      options.recipe,
      ParseProcessorConfig(config, resampler, given.overrides == nullptr ? "{}" : given.overrides));
  const auto* const type = std::ranges::find_if(
      kOutputTypes, [&](DType each) { return given.dtype == 0 || DTypeOf(each) == given.dtype; });
  if (type == std::end(kOutputTypes)) {
    return NoProcessor("dtype is " + std::to_string(given.dtype) +
                       "; it must be STOKER_F32, STOKER_F16, STOKER_BF16 or STOKER_U8");
  }
  options.dtype = *type;
  options.exif_orientation = given.keep_orientation == 0;
  options.limits.accept_truncated = given.accept_truncated != 0;
  options.limits.accept_16_bits = given.accept_16_bits != 0;
  if (given.max_scans != 0) options.limits.max_scans = given.max_scans;
  if (given.max_pixels != 0) options.limits.max_pixels = given.max_pixels;
  options.memory_budget = given.memory_budget;
  return options;
}

void FillShape(const ArrayShape& shape, stoker_array_shape* out) {
  stoker_array_shape filled{};
  filled.dtype = DTypeOf(shape.dtype);
  filled.ndim = static_cast<int32_t>(shape.sides.size());
  std::ranges::copy(shape.sides, filled.dims);
  filled.bytes = shape.bytes();
  Fill(out, filled);
}

stoker_image_rows RowsOf(const ImagePlan& plan) {
  const ImageSize grid = plan.Grid(plan.canvases[0]);
  return {.struct_size = 0,
          .height = plan.image.height,
          .width = plan.image.width,
          .grid_height = grid.height,
          .grid_width = grid.width,
          .rows = plan.rows};
}

// Checks the size that all structs of an array have.
Status CheckStructSize(const char* array, uint64_t size) {
  if (size >= sizeof(uint64_t) && size % alignof(uint64_t) == 0 && size <= kMostStructBytes) {
    return {};
  }
  return NoProcessor("the struct_size of " + std::string(array) + "[0] is " + std::to_string(size) +
                     "; set it to sizeof the struct");
}

Result<std::vector<EncodedInput>> InputsOf(const stoker_encoded* images, uint64_t count) {
  if (count == 0) return NoProcessor("there are no images");
  const uint64_t size = images->struct_size;
  TRY(CheckStructSize("images", size));
  std::vector<EncodedInput> inputs(count);
  for (uint64_t i = 0; i < count; ++i) {
    const stoker_encoded image = Given(ElementOf(images, size, i), size);
    if (image.path == nullptr) {
      inputs[i].bytes = {static_cast<const uint8_t*>(image.bytes), image.size};
    } else if (*image.path != '\0') {
      inputs[i].path = image.path;
    } else {
      return NoProcessor("images[" + std::to_string(i) + "]: the path is empty");
    }
  }
  return inputs;
}

}  // namespace

stoker_error* ProcessorOpen(const char* config, const stoker_processor_options* options,
                            stoker_processor** processor) {
  return Run([&]() -> Status {
    auto made = std::make_unique<stoker_processor>();
    stoker_processor_options given{};
    if (options != nullptr) given = Given(options, options->struct_size);
    ASSIGN_OR_RETURN(ProcessorOptions of, OptionsOf(config, given));
    ASSIGN_OR_RETURN(made->processor, Processor::Create(std::move(of)));
    ASSIGN_OR_RETURN(made->runtime, Runtime::Default());
    *processor = made.release();
    return {};
  });
}

void ProcessorFree(stoker_processor* processor) { delete processor; }

stoker_error* ProcessorPlan(const stoker_processor* processor, int32_t height, int32_t width,
                            stoker_array_shape* shape, stoker_image_rows* image) {
  return Run([&]() -> Status {
    if (std::min(height, width) < 1 || std::max(height, width) > kMaxSidePixels) {
      return NoProcessor("height and width are " + std::to_string(height) + " and " +
                         std::to_string(width) + "; they must be 1 to " +
                         std::to_string(kMaxSidePixels));
    }
    ASSIGN_OR_RETURN(const ImagePlan plan, processor->processor->Plan({width, height}));
    ASSIGN_OR_RETURN(const ArrayShape planned, processor->processor->ShapeOf({&plan, 1}));
    FillShape(planned, shape);
    Fill(image, RowsOf(plan));
    return {};
  });
}

stoker_error* ProcessorShape(const stoker_processor* processor, const stoker_encoded* images,
                             uint64_t count, const stoker_interrupt* interrupt,
                             stoker_array_shape* shape) {
  return Run([&]() -> Status {
    ASSIGN_OR_RETURN(const std::vector<EncodedInput> inputs, InputsOf(images, count));
    ASSIGN_OR_RETURN(const std::shared_ptr<Runtime> runtime, Runtime::Default());
    ASSIGN_OR_RETURN(const std::vector<ImagePlan> plans,
                     processor->processor->PlanAll(inputs, *runtime, InterruptOf(interrupt)));
    ASSIGN_OR_RETURN(const ArrayShape planned, processor->processor->ShapeOf(plans));
    FillShape(planned, shape);
    return {};
  });
}

stoker_error* ProcessorRun(const stoker_processor* processor, const stoker_encoded* images,
                           uint64_t count, const stoker_interrupt* interrupt, void* into,
                           uint64_t bytes, stoker_array_shape* shape, stoker_image_rows* rows) {
  return Run([&]() -> Status {
    ASSIGN_OR_RETURN(const std::vector<EncodedInput> inputs, InputsOf(images, count));
    const uint64_t size = rows == nullptr ? sizeof(*rows) : rows->struct_size;
    TRY(CheckStructSize("rows", size));
    const std::span memory(static_cast<uint8_t*>(into), bytes);
    const Processor& used = *processor->processor;
    ProcessedImages made;
    if (count == 1) {
      ASSIGN_OR_RETURN(made, used.Process(inputs.front(), memory));
    } else {
      ASSIGN_OR_RETURN(const std::shared_ptr<Runtime> runtime, Runtime::Default());
      ASSIGN_OR_RETURN(made, used.ProcessAll(inputs, *runtime, InterruptOf(interrupt), memory));
    }
    FillShape(made.array.shape, shape);
    for (uint64_t i = 0; rows != nullptr && i < count; ++i) {
      Fill(ElementOf(rows, size, i), RowsOf(made.images[i]), size);
    }
    return {};
  });
}

}  // namespace stoker::c
