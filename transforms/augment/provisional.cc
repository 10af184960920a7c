// Until each kernel has its own file.
#include "transforms/augment/affine.h"
#include "transforms/augment/blur.h"
#include "transforms/augment/colour.h"
#include "transforms/augment/lookup.h"
#include "transforms/augment/reframe.h"
#include "transforms/augment/sharpen.h"

namespace stoker {

void LookUp(const ValueTable& table, uint8_t* values, size_t count) {
  LookUpPlain(table, values, count);
}
ValueRange FindRange(const uint8_t* values, size_t count) { return FindRangePlain(values, count); }
Histogram CountValues(const uint8_t* values, size_t count) {
  return CountValuesPlain(values, count);
}
uint64_t SumOfGray(const Tile& tile) { return SumOfGrayPlain(tile); }
void MakeGray(const Tile& tile) { MakeGrayPlain(tile); }
void Saturate(const Tile& tile, float factor) { SaturatePlain(tile, factor); }
void ShiftHue(const Tile& tile, float shift) { ShiftHuePlain(tile, shift); }
void Sharpen(const Tile& from, float factor, const Tile& to) { SharpenPlain(from, factor, to); }
size_t BlurScratchBytes(const Blur&, ImageSize) { return 0; }
void Blurred(const Tile& from, const Blur& blur, uint8_t*, const Tile& to) {
  BlurredPlain(from, blur, to);
}
Result<size_t> AffineScratchBytes(ImageSize) { return size_t{0}; }
void Mapped(const Tile& from, const Affine& affine, uint8_t*, const Tile& to) {
  MappedPlain(from, affine, to);
}
void Reframed(const Tile& from, const Reframe& reframe, const Tile& to) {
  ReframedPlain(from, reframe, to);
}
void Mirrored(const Tile& from, const Mirror& mirror, const Tile& to) {
  MirroredPlain(from, mirror, to);
}

}  // namespace stoker
