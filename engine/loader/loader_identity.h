// Identity: everything that a loader's batches depend on, by name and as text: its samples, options
// and transforms. A state keeps it, so that another loader can say what is different.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/options/options.h"

namespace stoker {

// Each name once, with its value: "samples", "fingerprint", options, "transforms[0]" (its name),
// "transforms[0].scale", "views[1][0]", "mix", "map". A view that is equal to an earlier one only
// names it: "views[3]" is "views[1]". Values that are left at their defaults are
// left out: a state stays short, and one that was saved before an option existed still fits.
// Options that decide which samples are bad (max_pixels, max_scans, accept_truncated,
// accept_16_bits) are there where on_bad handles what they decide, and only there: otherwise
// they change errors and not batches.
using Identity = std::vector<std::pair<std::string, std::string>>;

// Of what all ranks have in common. The program's function is named, its code is not compared.
Identity IdentityOf(const LoaderOptions& options);

// The value of a name, or its default.
std::string ValueIn(const Identity& identity, std::string_view name);

// Returns the differences in words: "the data set has 59 samples, the state was saved on 60",
// "seed was 7 and is 8". The parameters of a transform that is another one are not compared, nor
// the names in `except`, nor options that decide which samples are bad where one of the two has
// none.
std::vector<std::string> Differences(const Identity& saved, const Identity& here,
                                     const std::vector<std::string_view>& except);

}  // namespace stoker
