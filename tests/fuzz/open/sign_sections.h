// Corrects the checksums of a file of sections, which would detect every change.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::testing {

// Sets version, size and checksums as they would be.
void SignSections(std::vector<uint8_t>& file, uint32_t version);

}  // namespace stoker::testing
