#include "gpu/staging/piece_copier.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/result/try.h"

namespace stoker {

PieceCopier::PieceCopier(std::shared_ptr<Device> device, size_t piece_bytes)
    : device_(std::move(device)), piece_bytes_(piece_bytes) {}

Result<std::unique_ptr<PieceCopier>> PieceCopier::Make(std::shared_ptr<Device> device,
                                                       size_t piece_bytes) {
  std::unique_ptr<PieceCopier> copier(new PieceCopier(std::move(device), piece_bytes));
  ASSIGN_OR_RETURN(copier->aside_, copier->device_->MakeStream());
  ASSIGN_OR_RETURN(copier->turn_, copier->device_->MakeEvent());
  return copier;
}

PieceCopier::~PieceCopier() {
  if (turn_.handle != nullptr) device_->Destroy(turn_);
  if (aside_.handle != nullptr) device_->Destroy(aside_);
}

Status PieceCopier::Copy(void* to, const void* from, size_t bytes, DeviceStream stream) {
  auto* const target = static_cast<uint8_t*>(to);
  const auto* const source = static_cast<const uint8_t*>(from);
  for (size_t at = 0; at < bytes; at += piece_bytes_) {
    const size_t piece = std::min(piece_bytes_, bytes - at);
    if (since_turn_ + piece > piece_bytes_) TRY(LetOthersThrough(stream));
    TRY(device_->Copy(target + at, source + at, piece, stream));
    since_turn_ += piece;
  }
  return {};
}

Status PieceCopier::LetOthersThrough(DeviceStream stream) {
  TRY(device_->Record(turn_, stream));
  TRY(device_->Wait(aside_, turn_));
  TRY(device_->Record(turn_, aside_));
  TRY(device_->Wait(stream, turn_));
  since_turn_ = 0;
  return {};
}

}  // namespace stoker
