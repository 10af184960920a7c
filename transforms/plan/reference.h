// The reference for Plan::Apply: decodes the whole image and then executes one scalar step after
// the other, each as it is defined. Tests compare the fused path with it, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/image.h"
#include "core/random.h"
#include "core/result.h"
#include "transforms/plan/plan.h"

namespace stoker {

// Same arguments, rows and errors as Plan::Apply, except that damage is found anywhere in the file.
// Slow; allocates freely. Decoded images are not checked. Precondition: the plan defers nothing to
// a device.
Status ApplyReference(const Plan& plan, std::span<const uint8_t> bytes, const DrawKey& key,
                      void* row);
Status ApplyReference(const Plan& plan, const ImageView& image, const DrawKey& key, void* row);

}  // namespace stoker
