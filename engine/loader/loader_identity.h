// Identity: everything that a loader's batches depend on, as names and texts: its samples, options
// and transforms. It is saved in a state, so that a loader can report the differences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/options/options.h"

namespace stoker {

// Each name once, with its value: "samples", "fingerprint", options, "transforms[0]" (its name),
// "transforms[0].scale", "views[1][0]", "mix", "map", "token batches" (TokenBatches::Hash). A view
// that is equal to an earlier one only names it: "views[3]" is "views[1]". Values that are left at
// their defaults are left out: a state stays short, and one that was saved before an option existed
// still fits. Options that decide which samples are bad (max_pixels, max_scans, accept_truncated,
// accept_16_bits) are included only if on_bad handles the samples they exclude; otherwise they
// change errors, not batches.
using Identity = std::vector<std::pair<std::string, std::string>>;

// The identity that all ranks share. The program's function is identified by its name; its code is
// not compared.
Identity IdentityOf(const LoaderOptions& options);

// The value of a name, or its default.
std::string ValueIn(const Identity& identity, std::string_view name);

// Returns the differences in words: "the data set has 59 samples, the state was saved on 60",
// "seed was 7 and is 8". Not compared are the parameters of different transforms, the names in
// `except`, and options that decide which samples are bad where only one of the two has them.
std::vector<std::string> Differences(const Identity& saved, const Identity& here,
                                     const std::vector<std::string_view>& except);

}  // namespace stoker
