// DecodeLimits: limits on the resources of decoding, and on the files it accepts. DecodePaths:
// counts which decoder decoded the photographs, stoker's or libjpeg-turbo, and why.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker {

struct ImageSize;

// Limits for hostile and damaged files.
struct DecodeLimits {
  int64_t max_pixels = int64_t{1} << 28;  // width × height; 268 million
  int max_scans = 200;                    // of a JPEG

  // Decodes a JPEG whose end is missing as libjpeg-turbo does when it finds an end-of-image marker
  // there: coefficients in the missing data are zero. A file without any data after the header of
  // its first scan is still an error, as is damage before the end.
  bool accept_truncated = false;

  // Keeps the upper 8 of the 16 bits of an image's samples where 8 are wanted. Otherwise it is
  // refused: the lower 8 bits of a depth or of an instance's number must not be lost silently.
  bool accept_16_bits = false;

  // The number of scans that a JPEG of that size may have. Each scan covers the whole image, even
  // if it takes only a few bytes: an image of max_pixels may have 16 scans, smaller images more,
  // and those below a twelfth of that size max_scans. (A common progressive file has 10.)
  int ScansOf(ImageSize size) const;

  // The coefficients of a JPEG with several scans (all progressive ones) are kept in memory for the
  // whole image while it is decoded: 2 bytes per sample, 2 to 8 per pixel. The limit is 4 bytes for
  // each of max_pixels, whichever decoder decodes. (stoker's own keeps those of a region, in an
  // eighth more memory, and 8 bytes for each block of the image. The few rows of blocks that every
  // image needs are not counted.)
  int64_t CoefficientBytes() const;
};

// Why libjpeg-turbo decodes an image.
enum class Fallback : uint8_t {
  kNone,         // it does not
  kHeader,       // an unusual or damaged header
  kProcess,      // arithmetic, lossless, or more than 8 bits; to index: progressive
  kColor,        // neither gray nor YCbCr
  kSampling,     // a chroma format other than 4:4:4, 4:2:2, 4:2:0 and 4:4:0
  kScan,         // several sequential scans, or progressive ones that leave bits out
  kTables,       // tables that are missing, not for 8 bits, or quantization tables that change
  kNarrow,       // chroma of one or two samples per row, which has other upsampling rules
  kBits,         // damaged data: an invalid code, a block that is too long, or an early end
  kRestart,      // a restart marker missing
  kCoefficient,  // beyond eight times the range of 8-bit samples
};
inline constexpr size_t kFallbacks = static_cast<size_t>(Fallback::kCoefficient) + 1;

const char* NameOf(Fallback reason);  // "progressive or arithmetic", …

// Why a worker decodes an image that was meant for a device (PlanOptions::decode_on_device).
enum class OnWorker : uint8_t {
  kNotPrepared,  // neither packed nor a JPEG with a crop index that fits
  kUnsupported,  // devices do not resample this way; or the image is augmented or reduced
  kDamaged,      // or changed since it was indexed; the worker finds the error, if there is one
  kNoRoom,       // for the bits or the samples of its crop (DeviceOptions::crop_bytes), or a budget
};
inline constexpr size_t kOnWorkerReasons = static_cast<size_t>(OnWorker::kNoRoom) + 1;

const char* NameOf(OnWorker reason);  // "not_prepared", "unsupported", "damaged", "no_room"

// The advice of errors that refuse decoding on a device.
inline constexpr char kLetWorkersDecode[] =
    "Let the workers decode (to_device(…, decode=\"workers\"))";

// Counts images whose pixels were decoded.
struct DecodePaths {
  uint64_t fast = 0;
  std::array<uint64_t, kFallbacks> fallback{};  // by reason; the one of kNone stays 0
  uint64_t progressive = 0;                     // of those in `fast`
  uint64_t packed = 0;                          // packed JPEGs
  uint64_t several_frames = 0;                  // animations and pages: the first was decoded

  // These count JPEGs that are not packed:
  uint64_t no_end_marker = 0;       // complete data, followed by zeros instead of the marker
  uint64_t accepted_truncated = 0;  // data missing; see DecodeLimits::accept_truncated

  // Images decoded at a reduced size, and those that could have been (PlanOptions::decode). Images
  // that then fail to decode count, too.
  uint64_t scaled = 0;
  uint64_t scalable = 0;

  // Images with a crop index: decoded with it, or without it because of an error.
  uint64_t indexed = 0;       // these count in `fast`, too
  uint64_t stale = 0;         // the file has changed since the index was made
  uint64_t contradicted = 0;  // the index is damaged or contradicts the file

  // Images meant for a device: those whose crops it got, which count in `no_end_marker` and nowhere
  // else; and, by reason, those left to workers. These are attempts: a sample that is retried
  // counts again.
  uint64_t on_device = 0;
  std::array<uint64_t, kOnWorkerReasons> on_worker{};

  DecodePaths& operator+=(const DecodePaths& other);
};

// DecodePaths has only 64-bit counts, so it is added and copied as an array of them.
using DecodeCounts = std::array<uint64_t, sizeof(DecodePaths) / sizeof(uint64_t)>;

}  // namespace stoker
