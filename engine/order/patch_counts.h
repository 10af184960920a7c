// PatchCounts: how many patches, tiles or images of one size a processor makes of each sample.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result/result.h"
#include "engine/options/options.h"
#include "io/source/image_numbers.h"
#include "io/source/source.h"

namespace stoker {

class Processor;

// Whether the rows of a batch have one length of their own, with a mask.
inline bool PadsRows(const LoaderOptions& options) {
  return options.padding == RowPadding::kLongest || !options.buckets.empty();
}

// Whether each place in pixel_values is a whole image, because the processor makes all of one size;
// otherwise it is a patch or a tile.
bool PlacesAreImages(const LoaderOptions& options);

struct PatchCounts {
  // By sample, of all its images: the places in pixel_values that its row needs, of the size that
  // the source knows (FactsOfPiece); where no size is known, the most that the processor makes of
  // any image; 0 if the processor refuses it. If places count against batch_tokens, a sample all of
  // whose images it refuses has as many as the largest: any sample can be its substitute, and no
  // batch has such samples alone.
  std::vector<uint32_t> places;
  // By sample: the patches that count against batch_tokens, without the padding of images of one
  // size. Empty if they are the places.
  std::vector<uint32_t> tokens;
  uint32_t most = 0;                    // places of a sample
  uint64_t unknown = 0;                 // samples with an image whose size is not known
  ImageNumbers::Place first_unknown{};  // of these: an image
  // Whether all places in a batch have room for `most`, so that any sample can be a substitute.
  bool alike = false;

  uint32_t PlaceOf(uint64_t sample) const { return alike ? most : places[sample]; }
  uint32_t TokensOf(uint64_t sample) const { return (tokens.empty() ? places : tokens)[sample]; }
};

// Returns the patches or tiles of an image; the most that the processor makes of any, and sets
// `known` to false, if its size is not known; 0 if the processor refuses the size.
uint64_t PatchesOf(const Processor& processor, const ImageFacts& facts, bool& known);

// Counts what the options' processor makes, within `memory_budget` bytes. The counts, 4 or 8 bytes
// a sample, are not charged to the budget.
// FailedPrecondition: batch_tokens counts patches, and sizes are not known; the message says how
// many samples, and names the first. ResourceExhausted: there are too many samples.
Result<std::shared_ptr<const PatchCounts>> PatchCountsOf(const LoaderOptions& options,
                                                         uint64_t memory_budget);

// ResourceExhausted: a batch of this many bytes is too large to be reserved for images whose sizes
// are not known.
Status CheckRoomForUnknown(const LoaderOptions& options, uint64_t bytes);

}  // namespace stoker
