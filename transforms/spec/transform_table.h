// The table of all transforms and their parameters: names, accepted values and documentation, and
// where a plan runs the transform. Checks, messages, JSON, `explain` and Python's classes read it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch/dtype.h"
#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/spec/option.h"
#include "transforms/spec/transform.h"

namespace stoker {

// A parameter of Python's constructor, with torchvision's names in torchvision's order.
struct Parameter {
  const char* name = "";
  // The way that Python reads it: a key of _READ (bindings/python/stoker/_parameters.py).
  const char* kind = "";
  const char* doc = "";  // its lines in the docstring
  // The options that it sets. One without a place (`in` is null) is a list of transforms.
  std::vector<Option<Transform>> options{};

  // The text in `explain`, if it is not that of each option; empty means the defaults.
  std::string (*text)(const Transform& transform) = nullptr;
};

enum class ActsOn : uint8_t {
  kGeometry,  // which pixels are read; anywhere in the list
  kPixels,    // values of an image that has its final size; also transforms that hold others
  kValues,    // values of the output; at the end of the list
  kObjects,   // the objects of a sample, not its image; anywhere in the list
};

// The `draws` of a transform that draws nothing, so that those of others do not depend on it.
inline constexpr uint8_t kDrawsNothing = 31;

struct TransformRow {
  const char* name = "";
  const char* doc = "";  // the docstring, without its parameters
  ActsOn acts_on = ActsOn::kGeometry;
  // The kind of its random numbers (core/numbers/random.h), which are those of its index among the
  // transforms of this kind. Transforms that do not change pixels share kind 0, so that crops and
  // flips do not depend on those that do; a transform that holds flips is one of them (DrawsOf).
  // Transforms of objects alone, and CopyPaste, draw nothing: kDrawsNothing.
  // Each of the others has a number of its own. Numbers never change, because draws would change
  // with them.
  uint8_t draws = 0;
  // A kGeometry transform with this flag keeps the size of an image, so that it can be held
  // together with transforms that change pixels.
  bool keeps_size = false;
  // How it is fused with decoding, or acts on the finished row, for `explain`.
  const char* how = "";
  std::vector<Parameter> parameters{};
  // Checks conditions that involve several options, or the dtype; null means there are none.
  std::optional<Refusal> (*check)(const Transform& transform, DType dtype) = nullptr;
  // Returns the most bytes that its steps need in addition to the tile, in memory that those of
  // other transforms use, too. Null means those of an affine step.
  uint64_t (*scratch)(const Transform& transform, ImageSize tile) = nullptr;
  // Returns the most bytes in memory that only steps of this type use. Null means none.
  uint64_t (*own_memory)(const Transform& transform, ImageSize tile) = nullptr;
  Transform standard{};  // a transform with the defaults
};

// One entry for each type of the variant, in its order.
std::span<const TransformRow> AllTransforms();

const TransformRow& RowOf(const Transform& transform);

// Returns the transforms that this one holds; null if it is of a kind that holds none.
const std::vector<Transform>* HeldBy(const Transform& transform);
std::vector<Transform>* HeldBy(Transform& transform);

// Whether other transforms may hold those of this row.
bool CanBeHeld(const TransformRow& row);

// The filter of a transform that resamples the image; nullopt for others.
std::optional<ResamplingFilter> FilterOf(const Transform& transform);

// Whether it, or a transform that it holds, takes images of other samples.
bool TakesSamples(const Transform& transform);

// Returns the kind of a transform's random numbers.
uint8_t DrawsOf(const Transform& transform);

// Whether it changes pixels of the image, or holds a transform that does.
bool ChangesPixels(const Transform& transform);

// Returns the number of transforms, including nested ones.
size_t CountOf(std::span<const Transform> transforms);

// Returns the transform as `explain` writes it: "RandomResizedCrop(224 × 224)". Parameters that
// have their default are left out.
std::string TextOf(const Transform& transform);

// InvalidArgument unless images can be made of that type.
Status CheckPixelType(DType dtype);

// Returns nullopt if the transform is valid on its own, in a plan for values of `dtype`.
std::optional<Refusal> CheckTransform(const Transform& transform, DType dtype);

// Returns nullopt if all its values for three channels are the same for each, also those of
// transforms that it holds.
std::optional<Refusal> CheckForGray(const Transform& transform);

}  // namespace stoker
