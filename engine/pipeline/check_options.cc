#include "engine/pipeline/check_options.h"

#include <string>

namespace stoker {

Status CheckRange(const char* option, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return Error{Code::kInvalidArgument, std::string(option) + " is " + std::to_string(value) +
                                           "; it must be between " + std::to_string(low) + " and " +
                                           std::to_string(high)};
}

Status CheckOptions(const LoaderOptions& options) {
  if (options.source == nullptr) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "no source was given",
                 .advice = "Set options.source, for example to ImageFolder(directory)"};
  }
  if (Status s = CheckRange("batch_size", options.batch_size, 1, 1 << 20); !s.ok()) return s;
  if (Status s = CheckRange("depth", options.depth, 0, 4096); !s.ok()) return s;
  if (Status s = CheckRange("lent_batches", options.lent_batches, 0, 4096); !s.ok()) return s;
  if (Status s = CheckRange("world", options.world, 1, 1 << 20); !s.ok()) return s;
  if (options.dtype != DType::kU8 && options.dtype != DType::kF32) {
    return Error{Code::kInvalidArgument, std::string("dtype is ") + NameOf(options.dtype) +
                                             "; decoded images are uint8 or float32"};
  }
  if (options.epochs && (*options.epochs == 0 || *options.epochs > kMostEpochs)) {
    return Error{Code::kInvalidArgument,
                 "epochs is " + std::to_string(*options.epochs) + "; it must be between 1 and " +
                     std::to_string(kMostEpochs) + ", or left out for as many as are asked for"};
  }
  return {};
}

OrderOptions OrderOptionsOf(const LoaderOptions& options) {
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
