// What a user says about a loader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/dtype.h"
#include "core/layout.h"
#include "engine/loader/order.h"
#include "engine/runtime/runtime.h"
#include "gpu/device.h"
#include "io/sources/source.h"
#include "transforms/decode/image_info.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/spec/transform.h"

namespace stoker {

struct DeviceOptions {
  std::shared_ptr<Device> device;
  int buffers = 4;     // batches on the device: those in use, and those copied ahead; 2 to 64
  bool timed = false;  // StagerStats::copy_ns; for measuring
};

// What numbers may be is in option_table.cc.
struct LoaderOptions {
  std::shared_ptr<const SampleSource> source;
  // Files need transforms that make all images the same size. Samples in memory need none: their
  // rows are copied then, of whatever type and shape they are.
  std::vector<Transform> transforms;
  // Of transformed images. kU8: 0…255; kF16, kBF16, kF32: value / 255, or normalised.
  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;
  // The rows of each batch are mixed with each other when they are there; labels, which must be
  // class numbers, become float32 (num_classes).
  std::optional<BatchMix> mix;
  bool exif_orientation = true;  // turn photographs as their EXIF tag says
  DecodeLimits limits{};

  uint32_t batch_size = 1;  // rows of a batch
  bool shuffle = false;     // a new order each epoch
  uint64_t seed = 0;        // of the order and of every random transform
  uint32_t rank = 0;        // of `world` processes that share the dataset
  uint32_t world = 1;
  Remainder remainder = Remainder::kUneven;
  bool drop_remainder = false;  // leave out a last batch that is not full

  // Nothing beyond this many epochs is prefetched; none: as many as are asked for.
  std::optional<uint64_t> epochs;

  // Batches in production and not yet delivered. 0: tuned, as many as keep the consumer from
  // waiting, within the memory budget.
  int depth = 0;
  // What tuning aims at: the share of its time that the consumer waits beyond what no setting could
  // spare it.
  double wait_target = 0.005;
  // Where loaders of one Runtime want more workers or memory than there are, each gets by weight.
  double weight = 1;
  // How many the caller may hold at once; 0: no limit. Of batches on a device DeviceOptions::buffers
  // says it.
  int lent_batches = 8;

  // The slots are pinned for it when the loader is opened, those in production and `lent_batches`
  // more (at most 64; four where lent_batches is 0): it copies them by itself while the CPU works.
  // A forked child does not see their memory. Null: ordinary memory.
  std::shared_ptr<Device> pinned_for;
  // Where batches go: Iterator::NextOnDevice gives them. None: they stay on the host.
  std::optional<DeviceOptions> to_device;

  std::shared_ptr<Runtime> runtime;  // null: Runtime::Default()
};

}  // namespace stoker
