// The reference for Plan::Apply: decodes the whole image and then executes one scalar step after
// the other, each exactly as defined. Tests compare the fused path with it, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "core/result/result.h"
#include "transforms/plan/mosaic.h"
#include "transforms/plan/plan.h"

namespace stoker {

// Takes the arguments of Plan::Apply, writes the same rows and returns the same errors, except that
// it finds damage anywhere in the file. Slow; allocates freely. Decoded images are not checked.
// Precondition: the plan defers nothing to a device, and no image of a row depends on others, as
// in a Mosaic of nine and with a CopyPaste after a Mosaic or of another image's objects.
Status ApplyReference(const Plan& plan, std::span<const uint8_t> bytes, const DrawKey& key,
                      void* row);
Status ApplyReference(const Plan& plan, const ImageView& image, const DrawKey& key, void* row);

// Returns PlacedImage::whole. `of_row`: the images of the row, at least those up to this part.
Rect PlacePlain(const Mosaic& mosaic, const DrawnMosaic& drawn, uint32_t part,
                std::span<const ImageSize> of_row);

}  // namespace stoker
