// PieceCopier: copies large blocks to a device in pieces, between which other streams' copies get
// their turn.
//
// In each direction a device makes one copy at a time (a GPU has a copy engine for each). When it
// has several to choose from it continues with the stream of the last one, so a small copy of
// another stream waits for all that this stream has been given, cut into pieces or not: NVIDIA does
// not document this, but it has been seen (github.com/meta-pytorch/torchrec/pull/4315 and 4339;
// github.com/NVIDIA/cudf/issues/15620 has 51 KB that waited for 12 ms). So that there is nothing to
// continue with, each piece waits for an event on a second stream, which waits for the piece
// before. A kernel between the pieces would do that, too, but would itself wait while a step fills
// the device.
#pragma once

#include <cstddef>
#include <memory>

#include "core/result.h"
#include "gpu/device.h"

namespace stoker {

// Used by one thread at a time.
class PieceCopier {
 public:
  // A small copy then waits for less than 0.4 ms on a PCIe link of 25 GB/s, and starting a piece
  // (some µs) takes little of the link's time.
  static constexpr size_t kPieceBytes = size_t{8} << 20;

  // `largest`: bytes of the largest block; the second stream is made only if that has two pieces.
  static Result<std::unique_ptr<PieceCopier>> Make(std::shared_ptr<Device> device, size_t largest,
                                                   size_t piece_bytes = kPieceBytes);
  ~PieceCopier();
  PieceCopier(const PieceCopier&) = delete;
  PieceCopier& operator=(const PieceCopier&) = delete;

  // Does what Device::Copy does. After an error some of the pieces may have been issued.
  Status Copy(void* to, const void* from, size_t bytes, DeviceStream stream) const;

 private:
  PieceCopier(std::shared_ptr<Device> device, size_t piece_bytes);
  Status LetOthersThrough(DeviceStream stream) const;

  const std::shared_ptr<Device> device_;
  const size_t piece_bytes_;
  DeviceStream aside_;  // has no work but to wait for pieces
  DeviceEvent turn_;
};

}  // namespace stoker
