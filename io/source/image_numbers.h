// ImageNumbers: numbers the images of all samples of a source, sample by sample.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/result/result.h"

namespace stoker {

class SampleSource;

class ImageNumbers {
 public:
  // Each sample has one image, whose number is the sample's.
  ImageNumbers() = default;
  // `ends`: by sample, the number of images of all samples up to it, at least one sample.
  explicit ImageNumbers(std::vector<uint64_t> ends) : ends_(std::move(ends)) {}

  // Whether samples may have none, or several.
  bool vary() const { return !ends_.empty(); }

  // The number of the sample's first image. With the number of samples: of all images.
  uint64_t Begin(uint64_t sample) const {
    if (ends_.empty()) return sample;
    return sample == 0 ? 0 : ends_[sample - 1];
  }
  size_t CountOf(uint64_t sample) const { return Begin(sample + 1) - Begin(sample); }

  // The most images of a sample; 0 if each has one (Field::count).
  uint32_t Most() const {
    size_t most = 0;
    for (uint64_t sample = 0; sample < ends_.size(); ++sample) {
      most = std::max(most, CountOf(sample));
    }
    return static_cast<uint32_t>(most);
  }

  struct Place {
    uint64_t sample = 0;
    size_t piece = 0;
  };
  // Precondition: there is that image.
  Place PlaceOf(uint64_t number) const {
    if (ends_.empty()) return {.sample = number};
    const auto sample =
        static_cast<uint64_t>(std::ranges::upper_bound(ends_, number) - ends_.begin());
    return {.sample = sample, .piece = number - Begin(sample)};
  }

  const std::vector<uint64_t>& ends() const { return ends_; }
  // Returns `seed` with the numbers of images; unchanged if each sample has one.
  uint64_t Hash(uint64_t seed) const;
  uint64_t memory_bytes() const { return ends_.capacity() * sizeof(uint64_t); }  // on the heap

 private:
  std::vector<uint64_t> ends_;  // empty: each sample has one image
};

// Unimplemented, in the name of `what`, if samples have any number of images: all but a loader with
// a processor need a fixed number.
Status CheckFixedImages(const std::string& what, const SampleSource& source);

}  // namespace stoker
