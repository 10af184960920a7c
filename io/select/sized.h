// Makes a source that knows the sizes of its images.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "io/source/image_numbers.h"
#include "io/source/source.h"

namespace stoker {

// Returns the samples of `source`, with a FactsOfPiece that knows the size of each image, as an
// index of a folder does. `sizes` has the size of each image as stored, by its number
// (io/source/image_numbers.h); EXIF tags are not known then, and images that they turn by 90° would
// have another size. All else is the source's: ids, files, rows, classes and fingerprint. It takes
// 24 bytes an image, and 8 a sample whose number of images varies.
//
// InvalidArgument: another number of sizes than of images; a side that is not 1 to kMaxSidePixels,
// or a size other than `source` knows of the image, both with the image's number; samples that have
// several images, in a number that does not vary, or none; an order of its own (weighted.h,
// combine.h), which comes after sizes.
Result<std::shared_ptr<const SampleSource>> Sized(std::shared_ptr<const SampleSource> source,
                                                  std::span<const ImageSize> sizes);

// The same with facts, where a width of 0 means that the size is not known; Warning() counts those,
// and names the first. `why`: the error of that one; may be empty. Facts of `source` itself stay.
// Preconditions: one for each image; CheckSized.
std::shared_ptr<const SampleSource> SizedByFacts(std::shared_ptr<const SampleSource> source,
                                                 std::vector<ImageFacts> facts,
                                                 const std::string& why);

// Returns "1 of 30 samples of … has no known size; the first is sample 4: ", and then the file
// of the first unknown image, or `why`.
std::string UnknownSizesText(const SampleSource& source, uint64_t unknown,
                             ImageNumbers::Place first, const std::string& why = "");

// Returns the errors of Sized that do not depend on sizes.
Status CheckSized(const SampleSource* source);

// Numbers the images of a source that CheckSized accepts.
ImageNumbers NumberImages(const SampleSource& source);

}  // namespace stoker
