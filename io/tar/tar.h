// Makes a source of samples in tar archives, as WebDataset writes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/keyed_column.h"
#include "io/cache/cache_options.h"
#include "io/source/source.h"

namespace stoker {

inline constexpr char kTarImages[] = "jpg;jpeg;png;webp";
inline constexpr char kTarLabel[] = "cls";

// A column of a batch: the contents of the members with this extension, one of each sample. The
// extension has the form of those in `TarOptions::image`.
struct TarColumn {
  std::string name;
  std::string extension;
};

struct TarOptions {
  // Extensions of images, the preferred one first. An extension is everything after the first dot:
  // the images of "7.left.png" and "7.right.png" are chosen by "left.png". If all begin with "*.",
  // samples have any number of images (Field::varies), and no extension is preferred: "*.jpg;*.png"
  // takes "7.0.jpg", "7.1.png", … There are then no arrays, masks and objects.
  std::string image = kTarImages;
  // "cls": class numbers are in .cls members; empty means samples have no labels, even if there are
  // such members.
  std::string label = kTarLabel;
  std::vector<TarColumn> columns{};
  // Masks, whose key is an extension of those members ("seg.png"), and columns of objects, whose
  // key is that of JSON members, a colon, and the key in their documents ("json:objects.bbox"; see
  // io/annotations/object_json.h).
  std::vector<KeyedColumn> keyed{};
  uint64_t column_bytes = 0;  // limit on the columns' memory; 0 means half of what is available
  int threads = 0;            // for indexing archives; 0 means the cores allotted
  std::string root = ".";  // the folder of a pattern's relative paths; empty means they are refused
  CacheOptions cache{};    // of objects
};

// Opens the samples in all archives that `pattern` matches (shard_pattern.h):
// "shards/{000..127}.tar", "shards/*.tar", "one.tar::other.tar".
//
// Members that are neighbours in an archive and have the same name to its first dot are a sample:
// "7.jpg" is its image, and "7.cls" its label, a class number in ASCII digits (int64). Samples are
// in the order of the pattern and, within an archive, of its members. Any sample of any archive may
// be the next one of a shuffled epoch: nothing is read from front to back. Samples without an image
// are skipped and counted (Skipped). Other members are ignored, as are names without an extension,
// with a leading dot, or of the form "__name__".
//
// With "*." in TarOptions::image the images of a sample are in the order of their numbers, which
// are below 2^32; numbers may be left out, but none occurs twice. A single image may have no
// number: "7.jpg". A sample without images has a member of a column, otherwise it is skipped and
// counted. An image that is not taken is counted as "*.webp": one with a number, or with an
// extension of kTarImages; of a sample without images any. Its members lie together in the archive.
//
// Members with the extension of a column are read when the archive is indexed. Extensions that
// WebDataset decodes as text or number (.txt, .text, .transcript, .json, .cls, .cls2, .class,
// .count, .index, .inx, .id) are text in UTF-8 (DType::kString), all others but .npy bytes
// (kBytes). Each sample has one such member, of at most 1 MiB.
//
// Members with the extension of a mask are encoded images, too: pieces with ranges of their own.
// They are never taken as the image: with "png" as a mask the default of `image` is
// "jpg;jpeg;webp". JSON members with objects are read like those of a column, and parsed each time
// when the source is opened. Fields: the image, the masks, the label, the columns, and those of
// objects. Text in "labels", a column of objects, is the class names, if there is no label.
//
// Members with the extension .npy, or one that ends with it ("features.npy"), are arrays (npy.h).
// They are read with the image, in one request from the first of these members to the last, with
// everything in between; they take 16 bytes of memory each. The first sample's array determines the
// type and shape of the column; an array with a different type or shape, or a damaged one, is an
// error of its sample, like an image that cannot be decoded.
//
// Archives are ustar, GNU or PAX, uncompressed. Each is indexed by libarchive once, by `threads` in
// parallel: only headers, labels, and columns of text and bytes are read. The index is kept in the
// user's cache folder until the archive changes (shard_index_file.h); where it cannot be written,
// the archive is indexed again each time. It holds names and ranges of all members, and labels; and
// for each extension of a column or of JSON with objects another file holds the members' content.
//
// An archive that changes afterwards is not indexed again. Its samples are then wrong bytes:
// DataLoss, with the archive and the offset, if the archive ends before them or if they cannot be
// decoded; but other images of the same size at the same position go unnoticed.
//
// Memory: 24 bytes a sample (with any number of images 20, and 16 for each image), those of its
// key, 8 for a label, 16 for a mask, and for each column 16 and its text: captions of 100 bytes
// take 1.2 GB for ten million samples. Objects take their values (io/annotations/object_values.h),
// and while the source is opened also their JSON.
//
// Errors, with the archive and the offset: InvalidArgument (samples with labels, or with a column's
// member, next to others without one, two members with the same name, a label that is not an
// integer, two images of a sample with one number, one without a number next to others, a number of
// 2^32 or more, more than kMostPieces images, a text that is not UTF-8, JSON that has not the
// objects of the columns, a link or a sparse file, no image at all; the pattern's errors), those of
// the first sample's arrays, ResourceExhausted (columns larger than `column_bytes`), NotFound,
// PermissionDenied, DataLoss (cut off, damaged, archives that were joined), Unimplemented
// (compressed), Unavailable (libarchive is not installed).
Result<std::shared_ptr<const SampleSource>> Tar(const std::string& pattern,
                                                const TarOptions& options = {});

}  // namespace stoker
