#include "tests/gpu/crops/made_crops.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/result/try.h"
#include "transforms/jpeg/indexed_jpeg.h"
#include "transforms/packed/packed_file.h"

namespace stoker::testing {

namespace {

constexpr std::align_val_t kAlignment{256};  // cudaMalloc's

}  // namespace

Resampling RandomCrop(Random& random, ImageSize image, ImageSize output) {
  const bool small = random.OneIn(8);
  const auto side = [&](int whole) {
    const int least = small ? 1 : std::max(1, whole / 4);
    return random.Between(std::min(least, whole), whole);
  };
  Resampling task;
  task.image = image;
  task.box.width = side(image.width);
  task.box.height = side(image.height);
  task.box.x = random.Between(0, image.width - task.box.width);
  task.box.y = random.Between(0, image.height - task.box.height);
  if (random.OneIn(8)) {  // partly outside the image
    task.box.x += random.Between(-(task.box.width - 1), task.box.width - 1);
    task.box.x = std::clamp(task.box.x, 1 - task.box.width, image.width - 1);
    task.box.y =
        std::clamp(task.box.y + random.Between(-50, 50), 1 - task.box.height, image.height - 1);
  }
  task.turn = TurnOf(static_cast<Orientation>(random.OneIn(3) ? random.Between(1, 8) : 1));
  if (random.OneIn(2)) task.turn.mirror_columns = !task.turn.mirror_columns;
  ImageSize stored = output;
  if (task.turn.transpose) std::swap(stored.width, stored.height);
  task.resized = stored;
  task.window = {0, 0, stored.width, stored.height};
  if (random.OneIn(4)) {  // as Resize and CenterCrop
    task.window.x = random.Between(0, 40);
    task.window.y = random.Between(0, 40);
    task.resized.width += task.window.x + random.Between(0, 40);
    task.resized.height += task.window.y + random.Between(0, 40);
  }
  task.antialias = !random.OneIn(4);
  if (random.OneIn(6)) task.interpolation = Interpolation::kNearest;
  task.reversed_columns = task.turn.mirror_columns;
  task.reversed_rows = task.turn.mirror_rows;
  return task;
}

Result<std::vector<uint8_t>> CpuPixels::Of(std::span<const uint8_t> file, const Resampling& task) {
  TRY(decoder_.Open(file));
  const Rect& window = task.window;
  std::vector<uint8_t> row(3 * static_cast<size_t>(window.width) * window.height);
  ASSIGN_OR_RETURN(const Rect region, resampler_.Start(task, {.row = row.data()}));
  TRY(decoder_.Decode(region, resampler_));
  return row;
}

void MadeCrops::AlignedBytes::operator()(uint8_t* bytes) const {
  ::operator delete(bytes, kAlignment);
}

MadeCrops::Bytes MadeCrops::Take(size_t bytes) {
  Bytes taken(static_cast<uint8_t*>(::operator new(bytes, kAlignment)));
  std::memset(taken.get(), kUnwritten, bytes);
  return taken;
}

Status MadeCrops::Add(std::span<const uint8_t> file, const Resampling& task,
                      std::span<const uint8_t> crop_index) {
  TRY(decoder_.Open(file));
  if (const packed::PackedFile* const packed = decoder_.packed_file()) {
    TRY(maker_.Plan(*packed, task));
  } else if (const auto jpeg = decoder_.indexed_jpeg(crop_index)) {
    TRY(maker_.Plan(*jpeg, task));
  } else {
    return Error{Code::kFailedPrecondition, "neither packed nor indexed"};
  }
  Bytes grown = Take(used_ + maker_.bytes());
  if (used_ > 0) std::memcpy(grown.get(), bytes_.get(), used_);
  bytes_ = std::move(grown);
  maker_.Write(samples_, bytes_.get() + used_);
  crop_at_.push_back(used_);
  last_at_ = used_;
  used_ += maker_.bytes();
  samples_ += maker_.samples();
  most_runs_ = std::max(most_runs_, maker_.runs());
  most_intervals_ = std::max(most_intervals_, maker_.intervals());
  most_tiles_ = std::max(most_tiles_, maker_.tiles());
  return {};
}

void MadeCrops::AddNone() { crop_at_.push_back(decode::kNoCrop); }

decode::CropBatch MadeCrops::Batch() {
  scratch_ = Take(samples_ * decode::kGroupSamples);
  rows_ = Take(crop_at_.size() * row_bytes_);
  return {.bytes = bytes_.get(),
          .crop_at = crop_at_.data(),
          .samples = scratch_.get(),
          .to = rows_.get(),
          .row_bytes = row_bytes_,
          .rows = static_cast<uint32_t>(crop_at_.size()),
          .most_runs = most_runs_,
          .most_intervals = most_intervals_,
          .most_tiles = most_tiles_};
}

}  // namespace stoker::testing
