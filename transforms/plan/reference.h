// The plain twin of Plan::Apply: the whole image decoded, then one scalar step after the other,
// each as its definition reads. What the fused path is compared with, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/image.h"
#include "core/random.h"
#include "core/result.h"
#include "transforms/plan/plan.h"

namespace stoker {

// Same arguments, same row and same errors as Plan::Apply, but that damage is seen wherever it is;
// slow, and allocates as it likes. Decoded images are not checked. Precondition: the plan leaves
// nothing to a device.
Status ApplyReference(const Plan& plan, std::span<const uint8_t> bytes, const DrawKey& key,
                      void* row);
Status ApplyReference(const Plan& plan, const ImageView& image, const DrawKey& key, void* row);

}  // namespace stoker
