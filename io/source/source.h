// SampleSource: a numbered, immutable list of the samples that exist, with their fields and byte
// ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "io/source/field.h"

namespace stoker {

class GrowingBuffer;
class LoadedSample;
class ObjectVersions;
class SampleOrder;

inline constexpr uint64_t kUnknownLength = ~uint64_t{0};
inline constexpr int64_t kNoLabel = -1;  // the label of each sample, if samples have no labels

// The part of a file that holds one sample. If the length is known, the file may hold other
// samples.
struct ByteRange {
  uint32_t file = 0;                 // the source turns it into a path
  uint64_t offset = 0;               // of the first byte
  uint64_t length = kUnknownLength;  // bytes; if unknown, to the end of the file
};
inline constexpr size_t kMostPieces = 1024;  // of a sample; each has a read buffer of its own
inline constexpr uint64_t kMostSourceFiles = uint64_t{1}
                                             << 32;  // the most that a ByteRange can distinguish

// An index's description of an image, before the image is opened. The file may have changed since
// the index was made.
struct ImageFacts {
  uint64_t file_bytes = 0;  // 0 means unknown
  uint32_t width = 0;       // as stored; 0 means unknown
  uint32_t height = 0;
  uint8_t orientation = 1;  // the EXIF tag: 1 to 8
  uint8_t format = 0;       // ImageFormat of transforms/decode/format.h; 0 means unknown

  friend bool operator==(const ImageFacts&, const ImageFacts&) = default;
};

// Files with an image extension that the source does not list; for archives, samples without an
// image.
struct SkippedFiles {
  std::map<std::string, uint64_t> by_extension;  // by ".gif"; "*.gif": an image of a sample
  std::string example;                           // the first path below the root; empty means none
  bool are_samples = false;                      // of an archive, by their first extension

  bool empty() const { return by_extension.empty(); }
  uint64_t files() const;

  // Adds one file, or the files of another part of the folder. The example does not depend on the
  // order of the calls.
  void Add(std::string_view extension, const std::string& path);
  void Add(const SkippedFiles& others);
  // Adds a sample of an archive, which may have any bytes as its extension.
  void AddSample(std::string_view extension, const std::string& name);

  // ".exr 10, .jxl 2"
  std::string Counts() const;
  // "12 image files are skipped, because … (.exr 10, .jxl 2)". Safe to print.
  std::string Summary() const;
  // The summary with the example and advice; empty if nothing was skipped.
  std::string Warning() const;

  // The form in an index file. Unpack returns nullopt for bytes that Pack cannot have written.
  std::string Pack() const;
  static std::optional<SkippedFiles> Unpack(std::string_view packed);

  uint64_t memory_bytes() const;  // on the heap, approximately

  friend bool operator==(const SkippedFiles&, const SkippedFiles&) = default;
};

// The advice about skipped files.
inline constexpr char kConvertSkipped[] =
    "Convert them to JPEG or PNG (ImageMagick: `mogrify -format png '*.psd[0]'`); rename JPEGs "
    "(.jfif, .jpe) to .jpg";

// Immutable after construction, so every function is thread-safe. Samples are named by their ids,
// from 0, which are stable for an unchanged dataset. Precondition of all functions: id < size().
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual uint64_t size() const = 0;  // samples

  // The fields of each sample, in the order of a batch's columns: at least one, and all names
  // differ. The encoded ones come first, and the first of them is a kImage. Transforms apply to all
  // of them, with one draw for a sample.
  virtual std::span<const Field> fields() const = 0;

  size_t encoded_fields() const;

  // The number of encoded images of a sample: its pieces, numbered from 0, field by field. If the
  // number varies, the most of any sample.
  size_t pieces() const;

  // Whether samples have any number of images (Field::varies): then they have one encoded field.
  bool varies() const;

  // The number of pieces of sample `id`. With none, RangeOf has no bytes, at the path "" or that of
  // an archive, or those of a record whose image is empty. No I/O, no allocation.
  virtual size_t PiecesOf(uint64_t /*id*/) const { return pieces(); }

  // Whether a field has clips: rows that begin with the number of their images (Field::count).
  bool has_clips() const;

  // One of the pieces: the field that it belongs to, and which of the field's images it is.
  struct PlaceOfPiece {
    size_t field = 0;
    size_t image = 0;
  };
  // Precondition: piece < pieces().
  PlaceOfPiece PlaceOf(size_t piece) const;

  // Returns the piece whose size this one must have: the first of a clip for the clip's images, the
  // sample's first piece for all others; itself if the number varies. Precondition: piece <
  // pieces().
  size_t PieceOfSameSize(size_t piece) const;

  // Whether no sample has to be read or called: there are no pieces.
  bool in_memory() const { return pieces() == 0; }

  // The order of an epoch, which lives as long as the source. Null means that each sample occurs
  // once, in the order that the loader's `shuffle` chooses.
  virtual const SampleOrder* order() const { return nullptr; }

  // All file numbers of RangeOf are below this number.
  virtual uint64_t files() const { return size(); }

  // The most objects that a sample has; 0 if no field is of objects.
  virtual uint32_t max_objects() const { return 0; }

  // Number of threads that may call Load concurrently; 0 means that images are read from the ranges
  // that RangeOf returns.
  virtual int calls() const { return 0; }

  // Sets the sample's image, and the rows of all kLoaded fields, in `loaded`
  // (io/source/loaded_sample.h). It may be slow: it is called on dedicated threads, not on those
  // that decode. An error becomes the error of the sample's batch, with its own file or else that
  // of RangeOf.
  virtual Status Load(uint64_t /*id*/, LoadedSample& /*loaded*/) const { return {}; }

  // Appends the sources whose own Load is called for this one's samples: this one if it has calls,
  // or its parts.
  virtual void AddCalled(std::vector<const SampleSource*>& called) const {
    if (calls() != 0) called.push_back(this);
  }

  // Whether a sample's ByteRange is a record, which holds the encoded image and a checksum or other
  // values. A source with calls has none.
  virtual bool has_records() const { return false; }

  // Returns the part of `record`, the bytes of RangeOf or RangeOfRows, that is the encoded image,
  // and writes the rows of all kLoaded fields, one after the other, to `rows`, which has their
  // size; strings are views of `record`. It is called on threads that decode: no I/O, no lock, and
  // no allocation but for an error, which names file and offset and becomes the error of the
  // sample's batch. Precondition: has_records().
  virtual Result<std::span<const uint8_t>> Unpack(uint64_t /*id*/, std::span<const uint8_t> record,
                                                  std::span<uint8_t> /*rows*/) const {
    return record;
  }

  // Returns the byte range of the sample's first piece, or of its record; without meaning for
  // samples in memory. For a source with calls, a file that represents the sample in messages. No
  // I/O, no allocation.
  virtual ByteRange RangeOf(uint64_t id) const = 0;

  // Returns the byte range of a further piece, or of its record. Precondition: 0 < piece <
  // PiecesOf(id). No I/O, no allocation. A source with calls has one piece.
  virtual ByteRange RangeOfPiece(uint64_t id, size_t /*piece*/) const { return RangeOf(id); }

  // Returns the byte range of any piece, the first one or a further one.
  ByteRange RangeOfAny(uint64_t id, size_t piece) const {
    return piece == 0 ? RangeOf(id) : RangeOfPiece(id, piece);
  }

  // Returns the part of `record`, the bytes of RangeOfPiece, that is the encoded image, as Unpack
  // does for the first piece; rows of kLoaded fields come with that one. Sources with records and
  // several pieces override it: otherwise it returns Unimplemented. A source without records,
  // which may be a part of one with records, returns `record`. Precondition: 0 < piece <
  // PiecesOf(id).
  virtual Result<std::span<const uint8_t>> UnpackPiece(uint64_t id, size_t piece,
                                                       std::span<const uint8_t> record) const;

  // Whether RangeOfRows may return less than RangeOf. No I/O, no allocation.
  virtual bool has_row_ranges(uint64_t /*id*/) const { return false; }

  // Returns a byte range that is enough to decode the pixel rows [top, bottom) of the image as it
  // is stored: RangeOf, or a part of it, which Unpack accepts, too. Preconditions: FactsOf(id) has
  // the height, and 0 <= top < bottom <= height. No I/O, no allocation.
  virtual ByteRange RangeOfRows(uint64_t id, int /*top*/, int /*bottom*/) const {
    return RangeOf(id);
  }

  // Replaces `path` by the file's path, reusing its capacity. Precondition: `file` came from
  // RangeOf.
  virtual void PathOf(uint32_t file, std::string& path) const = 0;

  // Replaces `name` by the sample's name before it was put into a file with others: the path of a
  // photograph below its folder. Empty if it has no name except its file's.
  virtual void NameOf(uint64_t /*id*/, std::string& name) const { name.clear(); }
  // The same for the name of a further piece. Precondition: 0 < piece < PiecesOf(id).
  virtual void NameOfPiece(uint64_t id, size_t /*piece*/, std::string& name) const {
    NameOf(id, name);
  }

  // The versions, when the source was opened, of the objects whose URLs PathOf may return
  // (io/remote/object_url.h). They live as long as the source. Null if there are no objects.
  virtual const ObjectVersions* objects() const { return nullptr; }

  // Copies the rows that these samples have in a kFixed field to `rows`, dense and in this order;
  // `rows` is aligned for the field's type. No I/O, no allocation, no lock.
  virtual void FixedRows(size_t /*field*/, std::span<const uint64_t> /*ids*/,
                         void* /*rows*/) const {}

  // Returns a sample's row of a kFixed field where it is in memory, dense but of any alignment; it
  // stays valid as long as the source. Empty if rows are stored in another form, which is never the
  // case for the first field. Of a field of objects, returns the rows of all objects of the sample,
  // empty if there are none; of a drawn field, their shapes. No I/O, no allocation, no lock.
  virtual std::span<const uint8_t> View(size_t /*field*/, uint64_t /*id*/) const { return {}; }

  // Whether `stoker index` can make entry points for this source's samples.
  virtual bool may_have_crop_index() const { return false; }

  // Reads the entry points of sample `id` (transforms/jpeg/fast/index/crop_index.h) into `memory`
  // and returns them: they may be wrong or out of date. Empty if there are none, more than `most`
  // bytes, or more than the budget of `memory` has room for. One short read of a file.
  virtual std::span<const uint8_t> ReadCropIndex(uint64_t /*id*/, uint64_t /*most*/,
                                                 GrowingBuffer& /*memory*/) const {
    return {};
  }

  // Returns the facts about the first image of sample `id` that are known without opening its
  // file, as of when an index was made. No I/O, no allocation.
  virtual ImageFacts FactsOf(uint64_t /*id*/) const { return {}; }
  // The same about any of its images. Precondition: piece < PiecesOf(id).
  virtual ImageFacts FactsOfPiece(uint64_t id, size_t piece) const {
    return piece == 0 ? FactsOf(id) : ImageFacts();
  }

  // Returns the DataLoss of a sample whose image has another size, as viewed, than the one that its
  // objects were annotated in; success if that size is not known. No I/O, no allocation but for an
  // error.
  virtual Status CheckViewed(uint64_t /*id*/, ImageSize /*viewed*/) const { return {}; }

  // A warning for the users of this source, to be shown once; empty if there is none.
  virtual std::string Warning() const { return {}; }

  // Image files that are not samples because of their extensions; Warning() mentions them.
  virtual SkippedFiles Skipped() const { return {}; }

  // The index of the field that is the label; nullopt if samples have no labels.
  std::optional<size_t> label() const;
  // The label of one sample; kNoLabel if there is none, if it is kLoaded, or if it is not the
  // number of a class.
  int64_t LabelOf(uint64_t id) const;

  // Class names by label; if there is no label, by the numbers in "labels", a field of objects.
  // Empty if there is neither, or if they have no names.
  virtual const std::vector<std::string>& classes() const = 0;

  // The memory of this list, in bytes.
  virtual uint64_t memory_bytes() const = 0;

  // A hash that is equal for the same samples, so that another process can check that it has them:
  // for files a hash of names and labels in order, O(n); for values in memory a hash of types,
  // shapes and parts of the content. 0 means unknown.
  virtual uint64_t Fingerprint() const { return 0; }

  // For messages and reports: "image_folder(photos/train)".
  virtual std::string Describe() const = 0;
};

// Adds the own name of the sample, or of this piece of it, if it has one besides its file's, to
// `error`.
Error NamedError(const SampleSource& source, uint64_t id, Error error, size_t piece = 0);

// Returns the image whose size others must have, for the message about one that differs:
// "a.jpg, the image of this sample". `path` is its file, which its own name replaces.
std::string DescribeSizedImage(const SampleSource& source, uint64_t id, size_t piece,
                               const std::string& path);

// Returns Fingerprint() in the form that specs and states have: 16 hexadecimal digits.
std::string FingerprintText(const SampleSource& source);

}  // namespace stoker
