#include "bindings/cli/pack/file_packer.h"

#include <sys/stat.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "core/hash/crc32c.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "core/system/file_stamp.h"
#include "engine/arrays/image_facts.h"
#include "io/folder/list_images.h"
#include "io/readers/plain_read.h"
#include "transforms/decode/format.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/mask/pack.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/packed_file.h"
#include "transforms/png/packed/pack.h"

namespace stoker {

using packed_set::Entry;
using packed_set::Form;

namespace {

constexpr uint64_t kPackCommonFile = uint64_t{64} << 20;
// The limit for larger files: the most bytes that are read, plus the slack that their buffer may
// have.
constexpr uint64_t kPackLargestFile = packed_set::kMaxImageBytes + kPackCommonFile;

Error CannotStat(int error_number, const std::string& path) {
  Error error = SystemError(error_number, "cannot open", path);
  error.advice = "Restore it, or move it out of the folder: a packed set must contain every sample";
  return error;
}

Error TooLarge(const std::string& path) {
  return {.code = Code::kUnimplemented,
          .cause = "a file of 4 GiB or more cannot be packed",
          .file = path,
          .advice = "Move it out of the folder"};
}

// The most bytes of a thread's packer: enough for the coefficients of a progressive JPEG of about
// 18 million pixels in 4:4:4, or 36 million in 4:2:0. Those of the largest take 1 GiB.
constexpr uint64_t kPackMemory = uint64_t{128} << 20;

// Held while a file is packed without a limit.
std::mutex& PackingOfLargeFiles() {
  static std::mutex one_at_a_time;
  return one_at_a_time;
}

// Returns the reason why files of this kind are not packed.
std::string WhyOther(std::span<const uint8_t> file) {
  if (file.empty()) return "the file is empty";
  const ImageFormat format = SniffFormat(file);
  if (format == ImageFormat::kUnknown) return NoImage(file).cause;
  return std::string(NameOf(format)) + ", and only JPEGs and PNGs are packed";
}

// Sets the positions of the rows of a packed JPEG, unless it is too large for that.
Status SetParts(const std::vector<uint8_t>& image, packed_set::Sample& sample) {
  ASSIGN_OR_RETURN(const packed::PackedFile file, packed::PackedFile::Open(image));
  sample.parts = file.row_parts();
  sample.mcu_height = static_cast<uint8_t>(8 * file.frame().mcu_rows());
  if (!sample.IsSound()) sample.mcu_height = 0;
  return {};
}

}  // namespace

struct FilePacker::State {
  explicit State(bool is_exact) : exact(is_exact) {}

  // Reads the file, and passes its bytes to `use`.
  template <typename Use>
  auto Read(const std::string& path, const Use& use) -> decltype(use(std::span<const uint8_t>())) {
    common.path = path;
    ReadPlainly(common);
    if (common.status.ok()) return use({common.buffer.data(), common.size});
    if (common.status.error().code != Code::kResourceExhausted) {
      return std::move(common.status).error();
    }
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    MemoryBudget more(kPackLargestFile);
    ReadRequest read;
    read.buffer = GrowingBuffer(more);
    read.path = path;
    ReadPlainly(read);
    if (!read.status.ok()) return std::move(read.status).error();
    return use({read.buffer.data(), read.size});
  }

  Result<PackedFile> PackBytes(std::span<const uint8_t> file, bool is_mask) {
    PackedFile packed;
    packed_set::Sample& sample = packed.entry.sample;
    const ImageFacts facts = FactsOfFile(file, decoder);
    sample.file_bytes = static_cast<uint32_t>(file.size());
    sample.file_crc = Crc32c(file);
    sample.width = facts.width;
    sample.height = facts.height;
    sample.orientation = facts.orientation;
    sample.format = facts.format;
    if (is_mask) {
      TRY(PackMaskOf(file, packed));
      return packed;
    }
    const ImageFormat format = SniffFormat(file);
    Result<std::vector<uint8_t>> image = Error{Code::kUnimplemented, WhyOther(file)};
    if (format == ImageFormat::kJpeg) {
      sample.form = Form::kPackedJpeg;
      image = PackBy(jpeg_packer, file, [](std::vector<uint8_t>& jpeg) { return std::move(jpeg); });
    } else if (format == ImageFormat::kPng) {
      image = PackBy(png_packer, file, [&](PngPacker::Packed& png) {
        sample.form = png.is_exact ? Form::kPackedPng
                      : exact      ? Form::kPackedPngAndFile
                                   : Form::kEqualPng;
        return std::move(png.bytes);
      });
    }
    if (image.ok() && image->size() <= packed_set::kMaxImageBytes) {
      packed.image = *std::move(image);
      sample.bytes = static_cast<uint32_t>(packed.image.size());
      if (sample.form == Form::kPackedJpeg) TRY(SetParts(packed.image, sample));
      if (sample.has_file()) packed.file.assign(file.begin(), file.end());
    } else if (image.ok() || image.error().code == Code::kUnimplemented) {
      sample.form = Form::kFile;
      packed.image.assign(file.begin(), file.end());
      packed.reason = image.ok() ? "too large" : image.error().cause;
    } else {
      return std::move(image).error();
    }
    return packed;
  }

  // Packs by `common_packer`, or, if its memory does not suffice, by one without a limit, one file
  // at a time in the process. `bytes_of` takes the bytes out of what it returns.
  template <typename Packer, typename BytesOf>
  static Result<std::vector<uint8_t>> PackBy(Packer& common_packer, std::span<const uint8_t> file,
                                             const BytesOf& bytes_of) {
    if (file.size() <= kPackCommonFile) {
      auto image = common_packer.Pack(file);
      if (image.ok()) return bytes_of(*image);
      if (image.error().code != Code::kResourceExhausted) return image.error();
      common_packer.FreeMemory();
    }
    const std::lock_guard lock(PackingOfLargeFiles());
    auto image = Packer().Pack(file);
    if (!image.ok()) return image.error();
    return bytes_of(*image);
  }

  static Status PackMaskOf(std::span<const uint8_t> file, PackedFile& packed) {
    Result<std::vector<uint8_t>> mask = PackMask(file);
    if (mask.ok()) {
      packed.entry.sample.form = Form::kPackedMask;
      packed.image = *std::move(mask);
      packed.file.assign(file.begin(), file.end());
      return {};
    }
    if (mask.error().code != Code::kUnimplemented) return std::move(mask).error();
    packed.reason = "a mask: " + mask.error().cause;
    packed.image.assign(file.begin(), file.end());
    return {};
  }

  MemoryBudget budget{kPackCommonFile};
  MemoryBudget pack_memory{kPackMemory};
  ReadRequest common;
  ImageDecoder decoder;
  JpegPacker jpeg_packer{&pack_memory};
  PngPacker png_packer{&pack_memory};
  const bool exact;
};

FilePacker::FilePacker(bool exact) : state_(std::make_unique<State>(exact)) {
  state_->common.buffer = GrowingBuffer(state_->budget);
}

FilePacker::~FilePacker() = default;

Result<PackedFile> FilePacker::Pack(const std::string& path, bool is_mask) {
  const int64_t now_ns = NowNs();
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return CannotStat(errno, path);
  const FileStamp stamp = StampFrom(info, KeepsTimesOfChange(path.c_str()));
  const int64_t changed_ns = IsAtRest(stamp, now_ns) ? stamp.changed_ns : kUnknownTime;
  if (static_cast<uint64_t>(info.st_size) > packed_set::kMaxImageBytes) return TooLarge(path);
  return state_->Read(path, [&](std::span<const uint8_t> file) -> Result<PackedFile> {
    if (file.size() > packed_set::kMaxImageBytes) return TooLarge(path);
    Result<PackedFile> packed = state_->PackBytes(file, is_mask);
    if (!packed.ok()) return std::move(packed).error().WithFile(path);
    packed->entry.changed_ns = changed_ns;
    return packed;
  });
}

Result<PackedFile> FilePacker::Compare(const std::string& path, const Entry& known) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return CannotStat(errno, path);
  PackedFile same{.entry = known, .image = {}, .file = {}, .reason = {}};
  if (static_cast<uint64_t>(info.st_size) == known.sample.file_bytes) {
    const FileStamp stamp = StampFrom(info, KeepsTimesOfChange(path.c_str()));
    if (stamp.is_proof() && stamp.changed_ns == known.changed_ns) return same;
    ASSIGN_OR_RETURN(const uint32_t crc,
                     state_->Read(path, [](std::span<const uint8_t> file) -> Result<uint32_t> {
                       return Crc32c(file);
                     }));
    if (crc == known.sample.file_crc) return same;
  }
  return Error{.code = Code::kInvalidArgument,
               .cause = "the packed set has another sample under this path",
               .file = path,
               .advice =
                   "Shards are never changed: give the file another name, or pack into a new "
                   "folder"};
}

}  // namespace stoker
