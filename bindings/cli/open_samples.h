// Opens the data that is passed to a command.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker::cli {

// The description of DIR in --help.
inline constexpr char kDirHelp[] =
    "folder of images, with a subfolder for each class; what `stoker pack` made of it; tar "
    "archives as WebDataset writes them: 'shards/{000..127}.tar'; TFRecord files: "
    "'train-*.tfrecord'; Arrow files: 'data-*.arrow', or a folder of save_to_disk; a manifest "
    "that lists images: train.csv, .tsv or .jsonl; COCO's .json, with its images as "
    "--source-option images=DIR; Pascal VOC's VOCdevkit; or YOLO's data.yaml";

// A folder of photographs; a packed set (io/packed/packed.h); the tar archives of a pattern
// (io/tar/tar.h), which ends in ".tar"; the TFRecord files of a pattern with ".tfrecord" in it
// (io/tfrecord/tfrecord.h); Arrow files, by a pattern that ends in ".arrow" or ".feather", or a
// folder of Hugging Face's save_to_disk (io/arrow/arrow.h); a manifest (io/manifest/manifest.h); a
// .json file of COCO's format (io/annotations/coco.h); a folder of Pascal VOC's layout
// (io/annotations/voc.h); or a .yaml file of a data set for YOLO (io/annotations/yolo.h).
// `crop_index` is for folders: "auto", "off" or a file. `options`: further arguments of the source
// as in a loader spec, "NAME=VALUE"; several values of a name are its lines. With "masks=DIR" a
// folder's images have masks (io/folder/masks.h). Classes may be empty: no command uses labels.
// `threads` list folders; 0 means the cores allotted. Prints the warnings of WarnOfFolder or
// WarnOfPackedSplits.
Result<std::shared_ptr<const SampleSource>> OpenSamples(
    const std::string& given, const std::string& crop_index = "auto",
    const std::vector<std::string>& options = {}, int threads = 0);

// InvalidArgument if `given` is anything other than a folder of photographs or a packed set, by its
// name. `command`: "inspect"; the error names it.
Status CheckIsFolder(const std::string& command, const std::string& given);

// Print a warning on stderr if all classes of a folder, or of a packed set, are named like splits
// of a dataset.
void WarnOfSplits(const std::string& directory, std::span<const std::string> classes);
void WarnOfPackedSplits(const std::string& directory, std::span<const std::string> classes);

// Prints warnings on stderr: of WarnOfSplits, and of classes without images, which image_folder()
// refuses in a program.
void WarnOfFolder(const std::string& directory, const SampleSource& source);

}  // namespace stoker::cli
