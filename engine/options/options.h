// LoaderOptions: the options that a user sets. (option_table.h describes each option;
// producer_options.h has the options that a Loader sets for its producers; producer_parts.h makes
// the parts of a producer from both.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/batch/channels.h"
#include "core/batch/dtype.h"
#include "engine/map/map_function.h"
#include "engine/options/bad_policy.h"
#include "engine/options/buckets.h"
#include "engine/options/cache_choice.h"
#include "engine/runtime/runtime.h"
#include "gpu/backend/device.h"
#include "io/source/source.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/reduction.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/spec/transform.h"

namespace stoker {

class Processor;
class TokenBatches;
struct PatchCounts;

inline constexpr uint32_t kMostBatchRows = 1 << 20;
inline constexpr uint32_t kMostTokens = ~uint32_t{0} >> 1;  // of a batch

// How to treat samples that do not divide evenly among the ranks.
enum class Remainder {
  kUneven,  // every sample exactly once; ranks may differ by one row in the last step
  kDrop,    // the last n mod W positions are left out: so all ranks get the same number of samples
  kPad,     // the order starts again from the beginning until all ranks have the same number of
            // samples: position n is the sample of position 0, with its own random draws
};

// How rows of different numbers of patches or tiles become an array.
enum class RowPadding {
  kNone,     // one after another: a ragged column
  kLongest,  // each row is as long as the batch's longest; zeros follow its own
};

struct DeviceOptions {
  // With several devices, the rows of each batch are split among them: see SplitBatch. They must be
  // of one kind (the same one may occur twice), and their number must divide batch_size.
  std::vector<std::shared_ptr<Device>> devices;
  int buffers = 4;     // batches on each device, in use or copied ahead; 2 to 64
  bool timed = false;  // DeviceCopyStats::copy_ns; for benchmarks
  // The most bytes copied to a device before other copies get a turn; for benchmarks. 0 means that
  // the copier chooses.
  size_t piece_bytes = 0;
  // Whether the device decodes packed JPEGs, and plain ones with a crop index: workers give it the
  // bits of their crops, and decode the images that it cannot (OnWorker). InvalidArgument: the
  // options rule it out for all images, because of samples in memory, views, a map, or a transform
  // for the host. (The format of a file is known only when it is read.)
  bool decodes = false;
  // Bytes of batch memory for these bits, as an average per row of a device (counted as at least 16
  // rows); the device has memory for four times as many samples. Beyond either limit:
  // OnWorker::kNoRoom. 1 to decode::kMaxCropBytes.
  uint32_t crop_bytes = 128 << 10;

  // The function of Iterator that returns the batches.
  std::string next_function() const {
    return devices.size() > 1 ? "NextOnDevices" : "NextOnDevice";
  }
};

// option_table.cc says which numbers are allowed.
struct LoaderOptions {
  std::shared_ptr<const SampleSource> source;
  // Files need transforms that make all images the same size. Samples in memory need none: their
  // rows are then copied, with any type and shape. At most kMaxTransforms.
  std::vector<Transform> transforms;
  // Several views of each image, instead of `transforms`: each list makes one image, with its own
  // random draws, and the file is read and decoded once for all of them. View 0 is the first column
  // of a batch; the others follow the columns of the source, as "image_1", "image_2", …, in their
  // own sizes. 2 to kMaxViews views, of kMaxTransforms transforms together, without PadTo and
  // mixing.
  std::vector<std::vector<Transform>> views{};
  // Makes the rows, as the last of the transforms, before which only flips may be; it has its own
  // type, limits and orientation. The first column is "pixel_values", ragged where images differ in
  // the number of patches or tiles; after the columns of the source come the figures of
  // transforms/processor/figures.h. Rows lie one after another, without a copy, where the source
  // knows the sizes of images (SampleSource::FactsOf) and no bad sample is substituted. May be
  // null.
  std::shared_ptr<const Processor> processor{};
  std::shared_ptr<const PatchCounts> patch_counts{};  // set by the loader; null in buckets
  // The type of transformed images. kU8: 0…255; kU16: 0…65535, of 8 bits × 257; kF16, kBF16, kF32:
  // value / 255 or, of images of 16 bits, value / 65535, or normalized.
  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;
  Channels channels = Channels::kRgb;  // of transformed images; not kUnchanged
  // Mixes the rows of each batch with each other; labels, which must be class numbers, become
  // float32 (num_classes).
  std::optional<BatchMix> mix;
  // The program's own function, which runs on the host after all of the above. May be null.
  std::shared_ptr<const MapFunction> map{};
  bool exif_orientation = true;  // rotate photographs as their EXIF tag says
  // Adds two columns after those of the source. "geometry", float32 (rows, 2, 3), has where the
  // points of each image are in its row (transforms/plan/geometry_map.h); "original_size", int32
  // (rows, 2), the image's height and width as viewed. Not with views, or without transforms.
  bool geometry = false;
  DecodeSize decode = DecodeSize::kFull;
  DecodeLimits limits{};

  uint32_t batch_size = 1;  // rows of a batch; with batch_tokens the most, and 0 means no limit
  // If not 0, a batch takes rows until the next would exceed this many tokens. `tokens` names a
  // kFixed field of the source, the number of tokens of each sample; without it they are the
  // patches that the processor makes. Each sample comes once in an epoch, all epochs have the same
  // number of batches, and the ranks share batches instead of samples
  // (engine/order/token_batches.h).
  uint32_t batch_tokens = 0;
  std::string tokens{};
  std::shared_ptr<const TokenBatches> token_batches{};  // set by the loader
  // With kLongest, a column "pixel_attention_mask" of int32, (rows, longest), has ones where a row
  // of a processor has its own patches. `longest` is that of the sizes that the source knows. The
  // rows of a batch × its longest, both in `tokens` if these are given, are at most batch_tokens,
  // so its samples have similar numbers of these.
  RowPadding padding = RowPadding::kNone;
  // Lengths of the rows of a processor that takes any most patches of an image (Sizing::kPatches):
  // each run of `world` batches, which is a step of all ranks, has one, to which images are resized
  // and rows padded; and batch_tokens / length rows.
  Buckets buckets{};
  bool shuffle = false;  // a new order each epoch
  uint64_t seed = 0;     // for the order and for every random transform
  uint32_t rank = 0;     // index among the `world` processes that share the dataset
  uint32_t world = 1;
  Remainder remainder = Remainder::kUneven;
  bool drop_remainder = false;  // leave out a last batch that is not full

  // on_bad decides how photographs and records (files, not samples in memory) that cannot be read
  // or decoded are handled. The run ends if, after the first 1,000 samples, more than
  // max_bad_fraction of them were substituted or dropped.
  BadPolicy on_bad{};
  double max_bad_fraction = 0.01;
  // A line of JSON is appended to this file for each bad sample (path, offset, id, epoch, batch,
  // start, class, cause, action); empty means none.
  std::string bad_samples_file{};

  // A cache keeps the photographs that were decoded, for later epochs and other processes. It packs
  // baseline JPEGs, which then take less than half of the time to decode.
  // Batches and errors are the same with and without it.
  CacheChoice cache{};

  // The number of epochs; nothing is prefetched beyond them. Nullopt means no limit.
  std::optional<uint64_t> epochs;

  // How many batches may be in production (opened, not delivered). 0 means tuned: enough that the
  // consumer does not wait, within the memory budget.
  int depth = 0;
  // The goal of tuning: the share of its time that the consumer may wait in excess of unavoidable
  // waits.
  double wait_target = 0.005;
  // If the loaders of one Runtime want more workers or memory than there are, they share them by
  // weight.
  double weight = 1;
  // How many batches the caller may hold at once; 0 means no limit. For batches on a device
  // DeviceOptions::buffers limits them.
  int lent_batches = 0;

  // The device for which slots are pinned when the loader is opened, so that the device can copy
  // them without the CPU: the slots in production and `lent_batches` more (at most 64; four if
  // lent_batches is 0). A forked child does not see their memory. Null means ordinary memory.
  std::shared_ptr<Device> pinned_for;
  // The devices that batches are copied to; Iterator::NextOnDevices returns the batches. If there
  // are none, batches stay on the host.
  std::optional<DeviceOptions> to_device;

  std::shared_ptr<Runtime> runtime;  // null means Runtime::Default()
};

}  // namespace stoker
