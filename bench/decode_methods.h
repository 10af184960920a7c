// Methods of decoding a photograph to pixel rows, or to a batch row; for decode_bench.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/device/crop_maker.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/index/crop_index.h"
#include "transforms/resize/resampler.h"

namespace stoker {

inline constexpr ImageSize kOutput{224, 224};
// MCUs between an index's entry points
inline constexpr std::array<int, 3> kIntervals = {jpeg::IndexShape::kInterval, 8, 16};

// The output: the box that RandomResizedCrop draws, or Resize(256) and CenterCrop.
enum class Box { kCrop, kEval };

struct Photo {
  std::vector<uint8_t> padded;
  jpeg::FrameHeader header;
  Fallback why = Fallback::kNone;
  ImageSize size;
  std::array<Resampling, 2> task;                             // by Box
  std::array<std::vector<uint8_t>, kIntervals.size()> index;  // empty if there can be none
  std::vector<uint8_t> packed;                                // padded; empty likewise

  std::span<const uint8_t> bytes() const {
    return std::span(padded).first(padded.size() - kBufferPadding);
  }
  const Rect& crop() const { return task[0].box; }
  // Whether there are no restart markers: the phases are measured on such data.
  bool plain() const { return why == Fallback::kNone && header.restart_interval == 0; }
};

// A sink that discards all pixel rows.
class Discard : public RowSink {
 public:
  Status Begin(const DecodedRegion& region) override;
  MutableImageView Reserve(int rows) override;
  void Commit(int) override {}

 private:
  DecodedRegion region_;
  size_t stride_ = 0;
  std::vector<uint8_t> rows_;
};

// Decodes one photograph after the other. Errors abort.
class Sequential {
 public:
  explicit Sequential(JpegDecoder::Backend backend) : decoder_({}, nullptr, backend) {}

  void Rows(const Photo& photo, const Rect& region);
  void Batch(const Photo& photo, Box box, const PixelOutput& output,
             std::span<const uint8_t> index = {});
  // Decodes the whole image first, and takes the needed part of it.
  void BatchFromImage(const Photo& photo, Box box, const PixelOutput& output);

  // Batch in pieces.
  void Begin(const Photo& photo, Box box, const PixelOutput& output,
             std::span<const uint8_t> index);
  void Finish();
  JpegDecoder& decoder() { return decoder_; }

 private:
  JpegDecoder decoder_;
  MemoryBudget budget_{uint64_t{1} << 30};
  Resampler resampler_{budget_};
  Discard discard_;
};

// Decodes packed photographs, one after the other, and as they are those that are not packed.
class Packed {
 public:
  void Rows(const Photo& photo, const Rect& region);
  void Batch(const Photo& photo, Box box, const PixelOutput& output);

 private:
  void Open(const Photo& photo);

  ImageDecoder decoder_;
  MemoryBudget budget_{uint64_t{1} << 30};
  Resampler resampler_{budget_};
  Discard discard_;
};

// Does the host's part of a crop that a device decodes.
class ForDevice {
 public:
  // Writes the crop to `to`, if the photograph is packed, or has this crop index. False if not.
  bool PackedCrop(const Photo& photo, Box box, std::span<uint8_t> to);
  bool PlainCrop(const Photo& photo, Box box, std::span<const uint8_t> index,
                 std::span<uint8_t> to);

  // Adds what the kernels have to do for the crop that was written last.
  void Count(const uint8_t* bytes);
  void PrintCounts(const char* of) const;

 private:
  MemoryBudget budget_{uint64_t{1} << 30};
  JpegDecoder decoder_;
  CropMaker maker_{budget_};
  double crops_ = 0, bytes_ = 0, samples_ = 0, tiles_ = 0;
  double most_bytes_ = 0;
  double runs_ = 0, intervals_ = 0;
  double passed_ = 0, wanted_ = 0;      // groups of runs, or MCUs of intervals
  double converted_ = 0, blended_ = 0;  // pixels: to RGB, and of rows blended vertically
};

// Decodes two photographs interleaved. When one is done, the next call continues with the other:
// the rest of a round is done in the next round.
class Interleaved {
 public:
  void Batch(const Photo& photo, Box box, const PixelOutput& output,
             std::span<const uint8_t> index = {});

 private:
  static void EndIfDone(Sequential& one, bool& begun);

  Sequential first_{JpegDecoder::Backend::kFastest}, second_{JpegDecoder::Backend::kFastest};
  bool first_begun_ = false, second_begun_ = false;
};

}  // namespace stoker
