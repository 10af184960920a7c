// Synthetic photographs: JPEG files whose sizes, formats and bits per pixel are distributed like
// those of ImageNet's training set, so that demo, tests and benchmarks need no data.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker {

// Of 1,000 photographs of ImageNet 761 are 4:4:4, 203 4:2:0, 12 4:2:2, 1 is 4:4:0 and 23 are gray.
enum class Chroma : uint8_t { k444, k420, k422, k440, kGray };

// The parameters of a photograph, drawn before a pixel is made.
struct PhotographRecipe {
  int width = 0;   // pixels
  int height = 0;  // pixels
  Chroma chroma = Chroma::k444;
  int quality = 96;               // on libjpeg's scale
  bool optimised_huffman = true;  // its own tables, as almost all of ImageNet's files have
  bool progressive = false;       // 3 in 1,000
  int restart_rows = 0;           // MCU rows between restart markers; 3 in 1,000 have any
  int orientation = 1;            // EXIF; 4 in 1,000 are rotated
  int metadata_bytes = 0;         // bytes of an application segment; 1 in 10 have any
  double detail = 1.0;            // of the scene: SceneOptions::detail
};
PhotographRecipe DrawPhotograph(uint64_t seed, uint64_t index);

// Renders the file. The same arguments give the same bytes on every machine with the same libjpeg.
// `seed` and `index` select the scene. Throws std::bad_alloc only.
std::vector<uint8_t> RenderPhotograph(const PhotographRecipe& recipe, uint64_t seed,
                                      uint64_t index);

inline std::vector<uint8_t> MakePhotograph(uint64_t seed, uint64_t index) {
  return RenderPhotograph(DrawPhotograph(seed, index), seed, index);
}

}  // namespace stoker
