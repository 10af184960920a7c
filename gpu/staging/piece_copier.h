// PieceCopier: copies blocks to a device, large ones in pieces, and lets other streams' copies in
// between.
//
// In each direction a device makes one copy at a time (a GPU has a copy engine for each). When it
// has several to choose from it continues with the stream of the last one, so a small copy of
// another stream waits for everything queued on this stream, cut into pieces or not: NVIDIA does
// not document this, but it has been seen (github.com/meta-pytorch/torchrec/pull/4315 and 4339;
// github.com/NVIDIA/cudf/issues/15620 has 51 KB that waited for 12 ms). To leave it nothing to
// continue with, a copy waits, from time to time, for an event on a second stream, which waits for
// the copy before. A kernel between the two would do that, too, but would itself wait while a step
// fills the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/result/result.h"
#include "gpu/backend/device.h"

namespace stoker {

// For the copies on one stream. Used by one thread at a time.
class PieceCopier {
 public:
  // By default, the most bytes copied before other copies get a turn. With pieces of this size a
  // small copy waits for less than 0.4 ms on a PCIe link of 25 GB/s, and starting a piece (some µs)
  // takes little of the link's time.
  static constexpr size_t kPieceBytes = size_t{8} << 20;

  static constexpr size_t kWhole = SIZE_MAX;  // no pieces, and no turns for others

  static Result<std::unique_ptr<PieceCopier>> Make(std::shared_ptr<Device> device,
                                                   size_t piece_bytes);
  ~PieceCopier();
  PieceCopier(const PieceCopier&) = delete;
  PieceCopier& operator=(const PieceCopier&) = delete;

  // Does what Device::Copy does. After an error some of the pieces may have been issued.
  Status Copy(void* to, const void* from, size_t bytes, DeviceStream stream);

 private:
  PieceCopier(std::shared_ptr<Device> device, size_t piece_bytes);
  Status LetOthersThrough(DeviceStream stream);

  const std::shared_ptr<Device> device_;
  const size_t piece_bytes_;
  size_t since_turn_ = 0;  // bytes of the copies since the last turn
  DeviceStream aside_;     // only waits for pieces
  DeviceEvent turn_;
};

}  // namespace stoker
