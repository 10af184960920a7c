#include "engine/loader/check_options.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/image.h"
#include "core/try.h"
#include "engine/loader/option_table.h"
#include "transforms/resize/row_format.h"

namespace stoker {

namespace {

// Choices are checked with what they apply to, images or arrays.
Status CheckNumbers(const LoaderOptions& given) {
  LoaderOptions options = given;  // the table gives access to what may be changed
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    if (row.option.in == nullptr || !row.option.choices.empty()) continue;
    if (auto refusal = CheckOption(row.option, row.option.in(options))) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = std::move(refusal->cause),
                   .advice = std::move(refusal->advice)};
    }
  }
  return {};
}

// Checks the layout and dtype of the output. Plan::Compile checks everything else.
Status CheckOutput(const LoaderOptions& options) {
  if (CopiesRows(options)) {
    const Field& array = options.source->fields()[0];
    if (options.layout != Layout::kNhwc) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = std::string("layout is ") + NameOf(options.layout) + ", but rows of '" +
                            array.name + "', which are " + DescribeRow(array) +
                            ", are copied as they are if there are no transforms",
                   .advice = "Leave layout out, or transpose the array"};
    }
    if (options.dtype == DType::kU8 || options.dtype == array.dtype) return {};
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string("dtype is ") + NameOf(options.dtype) + ", but rows of '" +
                          array.name + "', which are " + DescribeRow(array) +
                          ", are copied as they are if there are no transforms",
                 .advice = "Leave dtype out, or convert the array"};
  }
  if (IsPixelType(options.dtype)) return {};
  return Error{Code::kInvalidArgument, std::string("dtype is ") + NameOf(options.dtype) +
                                           "; images are uint8, float16, bfloat16 or float32"};
}

// Transforms need RGB with 8 bits per channel.
Status CheckImages(const LoaderOptions& options) {
  if (!options.source->in_memory() || CopiesRows(options)) return {};
  const Field& array = options.source->fields()[0];
  const std::vector<int64_t>& shape = array.row_shape;
  if (array.dtype == DType::kU8 && shape.size() == 3 && shape[2] == 3 &&
      std::max(shape[0], shape[1]) <= kMaxSidePixels) {
    return {};
  }
  return Error{.code = Code::kInvalidArgument,
               .cause = "transforms need images of uint8 (height, width, 3), at most " +
                        std::to_string(kMaxSidePixels) + " on a side; the rows of '" + array.name +
                        "' are " + DescribeRow(array),
               .advice =
                   "Convert the array, or leave the transforms out: then rows of any type "
                   "and shape are copied as they are"};
}

}  // namespace

Status CheckOptions(const LoaderOptions& options) {
  if (options.source == nullptr) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "no source was given",
                 .advice = "Set options.source, for example to ImageFolder(directory)"};
  }
  TRY(CheckNumbers(options));
  TRY(CheckOutput(options));
  TRY(CheckImages(options));
  if (options.epochs && (*options.epochs == 0 || *options.epochs > kMaxEpochs)) {
    return Error{Code::kInvalidArgument,
                 "epochs is " + std::to_string(*options.epochs) + "; it must be between 1 and " +
                     std::to_string(kMaxEpochs) + ", or left out for no limit"};
  }
  return {};
}

SamplerOptions SamplerOptionsOf(const LoaderOptions& options) {
  return {.samples = options.source->size(),
          .shuffle = options.shuffle,
          .seed = options.seed,
          .batch_size = options.batch_size,
          .rank = options.rank,
          .world = options.world,
          .remainder = options.remainder,
          .drop_remainder = options.drop_remainder};
}

}  // namespace stoker
