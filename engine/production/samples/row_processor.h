// RowProcessor: makes the rows of samples by a Processor, the last of a loader's transforms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/numbers/random.h"
#include "core/result/result.h"
#include "engine/arrays/processor.h"
#include "engine/options/options.h"
#include "engine/production/batches/assembler.h"
#include "transforms/plan/encoded_image.h"
#include "transforms/processor/image_processor.h"

namespace stoker {

// The first column of a batch has the pixels, and the columns after those of the source's fields
// have the figures (transforms/processor/figures.h); of images whose number varies they are ragged.
// Thread-safe as long as each worker is used by one thread at a time.
class RowProcessor {
 public:
  // `options`, which have a processor, and `memory`, to which all memory is charged, must outlive
  // it.
  RowProcessor(const LoaderOptions& options, MemoryBudget& memory, int workers);

  // Makes the row that of a sample without images.
  void Begin(const RowClaim& claim) const;

  // Decodes an image of a sample, and writes it to the sample's row; the images of a varying number
  // after each other, in order. Errors: those of ImageProcessor; Unimplemented for a size that the
  // processor does not take; DataLoss if the image has more patches than are left of the row's
  // room, and then nothing is written. Precondition: Begin was called for the row.
  Status Write(const RowClaim& claim, uint64_t sample, const EncodedImage& image, int worker);

  DecodePaths paths(int worker) const;
  uint64_t memory_bytes(int worker) const { return of(worker).memory.used(); }
  void FreeMemory(int worker);

 private:
  struct Worker {
    Worker(MemoryBudget& budget, const ProcessorRecipe& of)
        : memory(MemoryBudget::kNoLimit, budget), recipe(of) {}
    MemoryBudget memory;
    ProcessorRecipe recipe;  // in buckets, its padded_rows are those of the last batch
    DecodePaths past;        // before its memory was freed
    std::optional<ImageProcessor> processor;
  };
  Worker& of(int worker) const { return *workers_[static_cast<size_t>(worker)]; }
  void Renew(Worker& worker) const;
  Error Outgrown(uint64_t sample, uint32_t piece, const ImagePlan& image, uint64_t room) const;

  const LoaderOptions& options_;
  const ProcessorOptions& own_;
  const PatchValues values_;
  const bool of_images_;       // PlacesAreImages
  const size_t first_figure_;  // a column
  const std::vector<ColumnSpec> figures_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace stoker
