#include "bindings/cli/synth/photograph.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above.
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <new>

#include "bindings/cli/synth/scene.h"
#include "core/numbers/random.h"

namespace stoker {
namespace {

// A distribution given by its quantiles, linear between them.
constexpr std::array<double, 11> kAt = {0, .01, .05, .1, .25, .5, .75, .9, .95, .99, 1};
using Quantiles = std::array<double, 11>;

double Draw(const Quantiles& quantiles, RandomStream& random) {
  const double u = random.Uniform();
  size_t i = 1;
  while (u > kAt[i]) ++i;
  const double share = (u - kAt[i - 1]) / (kAt[i] - kAt[i - 1]);
  return quantiles[i - 1] + share * (quantiles[i] - quantiles[i - 1]);
}

// Measured on ImageNet's photographs: megapixels and libjpeg's quality, for photographs that are
// stored as 4:2:0 (as found, in all sizes) and for all others (most were saved again, 500 pixels
// wide).
constexpr Quantiles kMegapixelsFound = {.012, .016, .025, .04, .085, .167, .27, .48, .81, 3.0, 3.8};
constexpr Quantiles kMegapixelsSaved = {.012, .02, .035, .06, .11, .17, .2, .24, .307, .48, .8};
constexpr Quantiles kQualityFound = {60, 60, 60, 67, 75, 80, 85, 92, 95, 99, 100};
constexpr Quantiles kQualitySaved = {67, 72, 80, 84, 88, 92, 95, 96, 97, 99, 99};
// The scene's detail, chosen to reproduce the measured bits per pixel.
constexpr Quantiles kDetail = {.03, .05, .35, .7, 1.3, 2.4, 4.2, 7, 9, 14, 18};

struct Popular {
  int width, height, weight;
};
constexpr std::array<Popular, 11> kPopularSizes = {{{500, 375, 96},
                                                    {500, 333, 53},
                                                    {375, 500, 28},
                                                    {333, 500, 22},
                                                    {500, 332, 13},
                                                    {500, 334, 12},
                                                    {500, 500, 8},
                                                    {500, 335, 7},
                                                    {500, 400, 5},
                                                    {335, 500, 5},
                                                    {500, 281, 5}}};

void DrawPopularSize(RandomStream& random, PhotographRecipe& recipe) {
  int total = 0;
  for (const Popular& popular : kPopularSizes) total += popular.weight;
  int left = static_cast<int>(random.Below(static_cast<uint64_t>(total)));
  for (const Popular& popular : kPopularSizes) {
    recipe.width = popular.width;
    recipe.height = popular.height;
    left -= popular.weight;
    if (left < 0) return;
  }
}

void DrawAnySize(const Quantiles& megapixels, RandomStream& random, PhotographRecipe& recipe) {
  constexpr std::array<double, 6> kRatios = {4. / 3, 3. / 2, 4. / 3, 3. / 4, 2. / 3, 1};
  const double pixels = Draw(megapixels, random) * 1e6;
  double ratio = kRatios[random.Below(kRatios.size())];
  if (random.Uniform() < 0.4) ratio *= random.Uniform(0.8, 1.25);
  recipe.width = static_cast<int>(std::lround(std::sqrt(pixels * ratio)));
  recipe.height = static_cast<int>(std::lround(std::sqrt(pixels / ratio)));
}

Chroma DrawChroma(RandomStream& random) {
  const uint64_t u = random.Below(1000);
  if (u < 761) return Chroma::k444;
  if (u < 964) return Chroma::k420;
  if (u < 976) return Chroma::k422;
  return u < 977 ? Chroma::k440 : Chroma::kGray;
}

}  // namespace

PhotographRecipe DrawPhotograph(uint64_t seed, uint64_t index) {
  RandomStream random({seed, 0, index}, 0);
  PhotographRecipe recipe;
  recipe.chroma = DrawChroma(random);
  const bool found = recipe.chroma != Chroma::k444 && recipe.chroma != Chroma::kGray;
  if (found) {
    DrawAnySize(kMegapixelsFound, random, recipe);
    recipe.quality = static_cast<int>(std::lround(Draw(kQualityFound, random)));
  } else {
    if (random.Uniform() < 0.78) {
      DrawPopularSize(random, recipe);
    } else {
      DrawAnySize(kMegapixelsSaved, random, recipe);
    }
    recipe.quality =
        random.Uniform() < 0.86 ? 96 : static_cast<int>(std::lround(Draw(kQualitySaved, random)));
  }
  recipe.detail = Draw(kDetail, random);
  recipe.optimised_huffman = random.Uniform() < 0.98;
  recipe.progressive = random.Uniform() < 0.003;
  recipe.restart_rows = random.Uniform() < 0.003 ? 1 : 0;
  if (random.Uniform() < 0.004) recipe.orientation = 2 + static_cast<int>(random.Below(7));
  if (random.Uniform() < 0.1) recipe.metadata_bytes = 1000 + static_cast<int>(random.Below(32000));
  return recipe;
}

namespace {

// A file's planes in the order and size that libjpeg expects.
struct Components {
  std::array<Plane, 3> planes;
  int count = 0;
  int h = 1, v = 1;  // sampling factors of the first; the others' are 1
};

Components Sampled(Scene scene, Chroma chroma) {
  Components c;
  c.count = chroma == Chroma::kGray ? 1 : 3;
  c.h = chroma == Chroma::k420 || chroma == Chroma::k422 ? 2 : 1;
  c.v = chroma == Chroma::k420 || chroma == Chroma::k440 ? 2 : 1;
  c.planes = {std::move(scene.y), std::move(scene.cb), std::move(scene.cr)};
  for (int i = 1; i < c.count; ++i) {
    if (c.h == 1) c.planes[i] = DoubleWidth(c.planes[i]);
    if (c.v == 1) c.planes[i] = DoubleHeight(c.planes[i]);
  }
  return c;
}

struct Failure {
  jpeg_error_mgr manager;  // first, so that libjpeg's pointer to it is a pointer to this
  std::jmp_buf out;
};

void Leave(j_common_ptr jpeg) { std::longjmp(reinterpret_cast<Failure*>(jpeg->err)->out, 1); }
void Ignore(j_common_ptr, int) {}

void Configure(const PhotographRecipe& recipe, const Components& components,
               jpeg_compress_struct& jpeg) {
  jpeg.image_width = static_cast<JDIMENSION>(recipe.width);
  jpeg.image_height = static_cast<JDIMENSION>(recipe.height);
  jpeg.input_components = components.count;
  jpeg.in_color_space = components.count == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, recipe.quality, TRUE);
  jpeg.raw_data_in = TRUE;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.optimize_coding = recipe.optimised_huffman ? TRUE : FALSE;
  jpeg.restart_in_rows = recipe.restart_rows;
  for (int i = 0; i < components.count; ++i) {
    jpeg.comp_info[i].h_samp_factor = i == 0 ? components.h : 1;
    jpeg.comp_info[i].v_samp_factor = i == 0 ? components.v : 1;
  }
  if (recipe.progressive) jpeg_simple_progression(&jpeg);
}

void WriteSegments(const PhotographRecipe& recipe, jpeg_compress_struct& jpeg) {
  if (recipe.orientation != 1) {
    // TIFF, big-endian: one directory of one entry, tag 0x0112 (orientation), one SHORT.
    const std::array<JOCTET, 32> exif = {
        'E', 'x', 'i', 'f', 0,    0, 'M', 'M', 0, 42, 0, 0, 0,
        8,   0,   1,   1,   0x12, 0, 3,   0,   0, 0,  1, 0, static_cast<JOCTET>(recipe.orientation),
        0,   0,   0,   0,   0,    0};
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, exif.data(), exif.size());
  }
  if (recipe.metadata_bytes > 0) {
    jpeg_write_m_header(&jpeg, JPEG_APP0 + 13, static_cast<unsigned>(recipe.metadata_bytes));
    for (int i = 0; i < recipe.metadata_bytes; ++i) jpeg_write_m_byte(&jpeg, i * 37 & 0x7F);
  }
}

void WritePixels(Components& components, jpeg_compress_struct& jpeg) {
  JSAMPROW rows[3][2 * DCTSIZE];
  JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
  const int step = components.v * DCTSIZE;
  while (jpeg.next_scanline < jpeg.image_height) {
    const int first = static_cast<int>(jpeg.next_scanline);
    for (int i = 0; i < components.count; ++i) {
      const int v = i == 0 ? 1 : components.v;
      for (int y = 0; y < step / v; ++y) rows[i][y] = components.planes[i].row(first / v + y);
    }
    jpeg_write_raw_data(&jpeg, planes, static_cast<JDIMENSION>(step));
  }
}

// Owns nothing, so that libjpeg may leave it by longjmp. Returns false if memory ran out, which is
// its only way to fail.
bool Encode(const PhotographRecipe& recipe, Components& components, jpeg_compress_struct& jpeg,
            unsigned char** bytes, unsigned long* size) {
  Failure failure;
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = Leave;
  failure.manager.emit_message = Ignore;
  if (setjmp(failure.out) != 0) {
    jpeg_destroy_compress(&jpeg);
    return false;
  }
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, bytes, size);
  Configure(recipe, components, jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  WriteSegments(recipe, jpeg);
  WritePixels(components, jpeg);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  return true;
}

}  // namespace

std::vector<uint8_t> RenderPhotograph(const PhotographRecipe& recipe, uint64_t seed,
                                      uint64_t index) {
  // Whole MCUs, rendered to their edges.
  const auto whole = [](int pixels) { return (pixels + 15) / 16 * 16; };
  const SceneOptions options{.width = whole(recipe.width),
                             .height = whole(recipe.height),
                             .detail = recipe.detail,
                             .colour = recipe.chroma != Chroma::kGray};
  Components components =
      Sampled(RenderScene(options, RandomStream({seed, 0, index}, 1)), recipe.chroma);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_compress_struct jpeg{};
  const bool ok = Encode(recipe, components, jpeg, &bytes, &size);
  // When memory runs out while libjpeg grows its buffer, it has freed what `bytes` points to.
  if (!ok) throw std::bad_alloc();
  std::vector<uint8_t> file(bytes, bytes + size);
  std::free(bytes);
  return file;
}

}  // namespace stoker
