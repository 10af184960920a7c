// Until each kernel has its own file.
#include "transforms/augment/affine.h"
#include "transforms/augment/blur.h"
#include "transforms/augment/reframe.h"

namespace stoker {

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
