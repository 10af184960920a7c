// Makes a source that knows the sizes of its images.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Returns the samples of `source`, with a FactsOf that knows the size of each image, as an index of
// a folder does. `sizes` has the size of each image as stored; EXIF tags are not known then, and
// images that they turn by 90° would have another size. All else is the source's: ids, files, rows,
// classes and fingerprint. It takes 24 bytes a sample.
//
// InvalidArgument: another number of sizes than of samples; a side that is not 1 to kMaxSidePixels,
// or a size other than `source` knows of the sample, both with the sample's number; samples that
// have not one encoded image; an order of its own (weighted.h, combine.h), which comes after sizes.
Result<std::shared_ptr<const SampleSource>> Sized(std::shared_ptr<const SampleSource> source,
                                                  std::span<const ImageSize> sizes);

// The same with facts, where a width of 0 means that the size is not known; Warning() counts those,
// and names the first. `why`: the error of that one; may be empty. Facts of `source` itself stay.
// Preconditions: one for each sample; CheckSized.
std::shared_ptr<const SampleSource> SizedByFacts(std::shared_ptr<const SampleSource> source,
                                                 std::vector<ImageFacts> facts,
                                                 const std::string& why);

// Returns the errors of Sized that do not depend on sizes.
Status CheckSized(const SampleSource* source);

}  // namespace stoker
