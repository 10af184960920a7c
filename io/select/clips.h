// Makes clips: samples of several images that follow each other in other sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// A source whose samples are the images of a camera, in the order of their time.
struct Camera {
  std::string name;  // of the column
  std::shared_ptr<const SampleSource> source;
};

struct ClipOptions {
  // The field of the first camera's source that tells its episodes apart: frames that follow each
  // other with an equal number or string are one episode. Empty means that all frames are one.
  std::string by{};
  uint32_t frames = 8;  // of a clip
  uint32_t stride = 1;  // from each frame of a clip to its next one
  uint32_t step = 1;    // from the first frame of a clip to that of the next clip
};

// Returns a source of all clips that lie within one episode: the frames i, i + stride, … of each
// camera, for each `step`th frame i of an episode. Episodes that are too short have no clip, which
// Warning() tells. Frame i of all cameras was taken at the same time, so they have equally many.
//
// A camera's images are a field with Field::count = frames. Other fields are those of the first
// source: rows (frames, …), also of its label, which is that of each frame and not the clip's; of
// strings that of the first frame. Other cameras' other fields are left out.
//
// Images and rows stay where they are. It takes 16 bytes for each episode; finding a clip takes the
// logarithm of their number.
//
// InvalidArgument, with the camera: no camera; two with one name, or with that of another field;
// other numbers of frames; samples without an encoded image, or with several; fields that
// come with the image (kLoaded), or fields of objects in the first source; a source that is called,
// or has an order of its own; no such field as `by`, or one of arrays; an option that is 0; more
// than kMostPieces images in a clip; no episode that is long enough; more than 2^32 files.
Result<std::shared_ptr<const SampleSource>> Clips(std::vector<Camera> cameras,
                                                  const ClipOptions& options);

}  // namespace stoker
