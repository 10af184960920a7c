// The reference for Plan::Apply: decodes the whole image and then executes one scalar step after
// the other, each exactly as defined. Tests compare the fused path with it, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "core/result/result.h"
#include "transforms/plan/plan.h"

namespace stoker {

// Takes the arguments of Plan::Apply, writes the same rows and returns the same errors, except that
// it finds damage anywhere in the file. Slow; allocates freely. Decoded images are not checked.
// Precondition: the plan defers nothing to a device.
Status ApplyReference(const Plan& plan, std::span<const uint8_t> bytes, const DrawKey& key,
                      void* row);
Status ApplyReference(const Plan& plan, const ImageView& image, const DrawKey& key, void* row);

}  // namespace stoker
