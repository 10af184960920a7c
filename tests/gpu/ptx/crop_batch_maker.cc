#include "tests/gpu/ptx/crop_batch_maker.h"

#include <cmath>
#include <span>

#include "core/memory/buffer.h"

namespace stoker::testing::ptx {
namespace {

std::span<const uint8_t> Padded(std::vector<uint8_t>& file) {
  const size_t bytes = file.size();
  file.resize(bytes + kBufferPadding);
  return std::span<const uint8_t>(file).first(bytes);
}

double Uniform(Random& random, double least, double most) {
  constexpr int kSteps = 1 << 20;
  return least + (most - least) * random.Between(0, kSteps) / kSteps;
}

// As torchvision's RandomResizedCrop does with its default parameters.
Rect DrawBox(Random& random, ImageSize image) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = Uniform(random, 0.08, 1) * image.width * image.height;
    const double ratio = std::exp(Uniform(random, std::log(3.0 / 4), std::log(4.0 / 3)));
    const int width = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int height = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const int x = random.Between(0, image.width - width);
    return {x, random.Between(0, image.height - height), width, height};
  }
  return {0, 0, image.width, image.height};
}

Resampling DrawCrop(Random& random, CropBoxes boxes, ImageSize image, ImageSize output) {
  Resampling task;
  task.image = image;
  const int left = image.width / 4;
  task.box = boxes == CropBoxes::kRandom ? DrawBox(random, image)
                                         : Rect{left, 0, image.width - left, image.height};
  task.resized = output;
  task.window = {0, 0, output.width, output.height};
  task.antialias = true;
  task.turn.mirror_columns = task.reversed_columns = random.OneIn(2);
  return task;
}

}  // namespace

bool CropBatchMaker::Add(std::vector<uint8_t> jpeg) {
  const std::span<const uint8_t> file = Padded(jpeg);
  const Result<ImageInfo> info = decoder_.Open(file);
  if (!info.ok()) return false;
  const Resampling task = DrawCrop(random_, boxes_, info->size, output_);
  if (format_ == CropFormat::kIndexed) {
    std::vector<uint8_t> index;
    return indexer_.Make(file, index) == Fallback::kNone && made_.Add(file, task, index).ok();
  }
  Result<std::vector<uint8_t>> packed = packer_.Pack(file);
  return packed.ok() && made_.Add(Padded(*packed), task).ok();
}

}  // namespace stoker::testing::ptx
