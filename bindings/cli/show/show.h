// Draws a batch as a training would get it, for people to look at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/cli/command/recipe.h"
#include "core/batch/batch.h"
#include "core/batch/image.h"
#include "core/result/result.h"
#include "engine/options/options.h"

namespace stoker {

struct ShowOptions {
  // Its source, shuffle and seed are set, and batch_size is the number of samples to draw. Draw()
  // sets the others.
  LoaderOptions loader;
  std::string out;  // the file to write
  int64_t columns = 8;
};

struct ShowReport {
  std::string source;
  std::string out;
  ImageSize size;  // of the sheet
  uint64_t bytes = 0;
  int64_t columns = 0;
  uint64_t samples = 0;
  // The label of each sample, from left to right and from top to bottom: the name of its class, its
  // number, or a sum of classes, "cat 0.70 + dog 0.30". Empty if there are no labels of classes.
  std::vector<std::string> labels;
};

// Makes the first batch of epoch 0, and writes a contact sheet of it to the file `out`, with the
// masks drawn over the images if there are any (bindings/sheet/sheet.h). Normalized images are
// drawn in the colours that they had before, and fractions as 0…255.
//
// Errors: what a Loader returns; those of SizeOfSheet; InvalidArgument with the file's name if
// `out` exists and is not such a sheet, which it replaces; Unimplemented for several views.
Result<ShowReport> Show(ShowOptions options, cli::Recipe recipe, const Interrupt& interrupt = {});

}  // namespace stoker
