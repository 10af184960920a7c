// CropBatchMaker: batches of crops of JPEGs, packed or with a crop index.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch/image.h"
#include "tests/gpu/crops/made_crops.h"
#include "tests/testing/random.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/packed/pack.h"

namespace stoker::testing::ptx {

enum class CropFormat { kPacked, kIndexed };
enum class CropBoxes {
  kRandom,  // as RandomResizedCrop draws them
  kRight,   // all but the left quarter
};

class CropBatchMaker {
 public:
  CropBatchMaker(CropFormat format, CropBoxes boxes, ImageSize output)
      : format_(format), boxes_(boxes), output_(output), made_(output) {}

  // False if the device cannot decode it.
  bool Add(std::vector<uint8_t> jpeg);
  MadeCrops& made() { return made_; }

 private:
  const CropFormat format_;
  const CropBoxes boxes_;
  const ImageSize output_;
  Random random_{5};
  ImageDecoder decoder_;
  JpegPacker packer_;
  jpeg::CropIndexMaker indexer_;
  MadeCrops made_;
};

}  // namespace stoker::testing::ptx
