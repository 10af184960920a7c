#include "bindings/cli/verify/verify.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bindings/cli/verify/discard_rows.h"
#include "bindings/cli/working_memory.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/system/start_thread.h"
#include "io/readers/reader.h"
#include "io/samples/sample_reads.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/plan/moved_objects.h"

namespace stoker {
namespace {

// Keeps buffers and a decoder for the next sample. One thread at a time.
class SampleChecker {
 public:
  SampleChecker(const SampleSource& source, const VerifyOptions& options)
      : source_(source),
        reads_(source),
        limits_(options.limits),
        exif_orientation_(options.exif_orientation),
        budget_(WorkingMemory(limits_)),
        decoder_(limits_, &budget_),
        discard_(budget_),
        objects_(budget_) {
    request_.buffer = GrowingBuffer(budget_);
    request_.rows.resize(LoadedBytes(source.fields()));
  }

  // Ends at the first bad piece.
  Status Check(uint64_t id) {
    boxes_without_area_ = 0;
    Status status;
    for (piece_ = 0; piece_ < source_.PiecesOf(id); ++piece_) {
      status = ReadAndDecode(id);
      if (!status.ok()) return InWordsOfVerify(std::move(status).error().WithFile(request_.path));
    }
    return status;
  }

  uint32_t piece() const { return piece_; }                            // of the last error
  uint64_t boxes_without_area() const { return boxes_without_area_; }  // of the last sample

  DecodePaths paths() const { return decoder_.paths(); }

 private:
  struct SizedImage {
    ImageSize size;  // as viewed
    std::string path;
  };

  Status ReadAndDecode(uint64_t id) {
    reads_.Read(id, request_, piece_);
    TRY(request_.status);
    std::span<const uint8_t> image(request_.buffer.data(), request_.size);
    if (source_.has_records()) {
      ASSIGN_OR_RETURN(image, piece_ == 0 ? source_.Unpack(id, image, request_.rows)
                                          : source_.UnpackPiece(id, piece_, image));
    }
    Status status = Decode(id, image);
    if (status.ok()) return status;
    Error error = std::move(status).error();
    const auto before = static_cast<uint64_t>(image.data() - request_.buffer.data());
    if (error.offset) *error.offset += request_.offset + before;  // it was the image's
    return error;
  }

  Status Decode(uint64_t id, std::span<const uint8_t> image) {
    const Field& field = source_.fields()[source_.PlaceOf(piece_).field];
    const bool is_mask = field.kind == Field::Kind::kMask;
    const auto mask = field.dtype == DType::kU16 ? PixelMeaning::kMask16 : PixelMeaning::kMask;
    ASSIGN_OR_RETURN(ImageInfo info, decoder_.Open(image, is_mask ? mask : PixelMeaning::kColour));
    if (!is_mask) TRY(CheckBits(info, limits_));
    TRY(CheckSizeOfPiece(id, info));
    return decoder_.Decode({0, 0, info.size.width, info.size.height}, discard_);
  }

  // Checks that the image has the size that was annotated, and a further piece the one that it must
  // have, as loaders do.
  Status CheckSizeOfPiece(uint64_t id, const ImageInfo& info) {
    const ImageSize viewed =
        Viewed(info.size, exif_orientation_ ? info.orientation : Orientation::kNormal);
    if (piece_ == 0) {
      TRY(source_.CheckViewed(id, viewed));
      TRY(CountBoxes(id, viewed));
    }
    if (source_.pieces() == 1) return {};
    const size_t same = source_.PieceOfSameSize(piece_);
    SizedImage& first = same == 0 ? of_sample_ : of_clip_;
    if (same == piece_) {
      first = {.size = viewed, .path = request_.path};
    } else if (viewed != first.size) {
      return SizeMismatch(viewed, first.size, DescribeSizedImage(source_, id, same, first.path));
    }
    return {};
  }

  // Counts the boxes that have no area in their image.
  Status CountBoxes(uint64_t id, ImageSize viewed) {
    const std::span<const Field> fields = source_.fields();
    const auto boxes = std::ranges::find(fields, Field::Kind::kBoxes, &Field::kind);
    if (boxes == fields.end()) return {};
    const ObjectField read{.kind = ObjectField::Kind::kBoxes,
                           .bytes = boxes->row_bytes(),
                           .format = boxes->box_format,
                           .normalized = boxes->normalized};
    const std::span<const uint8_t> rows =
        source_.View(static_cast<size_t>(boxes - fields.begin()), id);
    const ObjectRows objects{.from = {&rows, 1},
                             .count = static_cast<uint32_t>(rows.size() / read.bytes)};
    TRY(objects_.Read({&read, 1}, objects, viewed, MovedObjects::Load::kBoxes));
    objects_.Clamp();
    boxes_without_area_ =
        static_cast<uint64_t>(std::ranges::count_if(objects_.boxes(), [](const Box& box) {
          const bool has_area = box.left != box.right && box.top != box.bottom;
          return !has_area || std::isnan(box.left + box.top + box.right + box.bottom);
        }));
    return {};
  }

  // The command has no option for the memory budget, which follows from max_pixels. A sample that
  // needs more than all of it is beyond a limit; otherwise memory is missing.
  Error InWordsOfVerify(Error error) const {
    if (error.wanted_bytes > budget_.limit()) {
      error.cause = "it takes " + std::to_string(error.wanted_bytes) +
                    " bytes of memory, more than the limit of " + std::to_string(budget_.limit()) +
                    ", which follows the limit of pixels";
      error.advice = "Leave it out";
      error.changes = {{OptionChange::How::kRaise, "max_pixels"}};
      error.detail = Error::Detail::kOverLimits;
    } else if (error.wanted_bytes > 0) {
      error.changes = {{OptionChange::How::kLower, "threads"},
                       {OptionChange::How::kRaise, "max_pixels"}};
    }
    return error;
  }

  const SampleSource& source_;
  SampleReads reads_;
  const DecodeLimits limits_;
  const bool exif_orientation_;
  MemoryBudget budget_;
  ReadRequest request_;
  ImageDecoder decoder_;
  DiscardRows discard_;
  MovedObjects objects_;
  uint64_t boxes_without_area_ = 0;
  uint32_t piece_ = 0;
  // The images whose sizes others must have: the sample's first one, and the last clip's.
  SizedImage of_sample_, of_clip_;
};

class Verification {
 public:
  Verification(const SampleSource& source, const VerifyOptions& options,
               const VerifyProgress& progress)
      : source_(source), options_(options), progress_(progress) {}

  // The body of each thread.
  void Run() {
    try {
      CheckSamples();
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      Stop(Error{Code::kResourceExhausted, "out of memory", source_.Describe()});
    }
  }

  // After all threads have left Run.
  VerifyReport Finish() {
    report_.interrupted = report_.checked < source_.size();
    report_.bad.SortById();
    return std::move(report_);
  }

 private:
  void CheckSamples() {
    SampleChecker checker(source_, options_);
    while (!stopped_) {
      const uint64_t id = next_.fetch_add(1);
      if (id >= source_.size()) break;
      const Status status = checker.Check(id);
      const std::lock_guard lock(mutex_);
      if (!status.ok() && !Note(id, checker.piece(), status.error())) break;
      if (const uint64_t boxes = checker.boxes_without_area(); boxes > 0) {
        report_.boxes_without_area += boxes;
        report_.first_without_area = std::min(report_.first_without_area, id);
      }
      ++report_.checked;
      if (progress_ && !progress_(report_.checked, source_.size())) stopped_ = true;
    }
    const std::lock_guard lock(mutex_);
    report_.no_end_marker += checker.paths().no_end_marker;
    report_.accepted_truncated += checker.paths().accepted_truncated;
  }

  // Returns false if the error is not the sample's. Precondition of both functions: mutex_ is held.
  bool Note(uint64_t id, uint32_t piece, const Error& error) {
    const std::optional<SampleFault> fault = FaultOf(error);
    if (fault) {
      report_.bad.Add(id, *fault, error, piece);
    } else {
      Stop(error);
    }
    return fault.has_value();
  }
  void Stop(const Error& error) {
    if (!report_.error) report_.error = error;
    stopped_ = true;
  }

  const SampleSource& source_;
  const VerifyOptions& options_;
  const VerifyProgress& progress_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  VerifyReport report_;  // under mutex_
};

}  // namespace

Result<VerifyReport> Verify(const SampleSource& source, const VerifyOptions& options,
                            const VerifyProgress& progress) {
  TRY(CheckThreads(options.threads));
  if (source.fields()[0].kind != Field::Kind::kImage || source.calls() > 0) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = source.Describe() + " has no encoded images in files"};
  }
  const auto start = std::chrono::steady_clock::now();
  Verification verification(source, options, progress);
  InParallel(options.threads, [&verification] { verification.Run(); });
  VerifyReport report = verification.Finish();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace stoker
