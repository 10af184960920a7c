// Run-length encodings in the texts of COCO's API.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stoker {

// Appends the runs to `runs`; false if the text does not have runs. A character has five bits of a
// run, lowest ones first, and whether more follow; from the fourth run on, it is the difference
// from the run before the previous one.
bool UnpackRuns(std::string_view text, std::vector<uint32_t>& runs);

}  // namespace stoker
