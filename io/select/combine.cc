#include "io/select/combine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "io/select/check_weights.h"
#include "io/select/selected_source.h"
#include "io/select/share_order.h"

namespace stoker {

namespace {

using SourceList = std::vector<std::shared_ptr<const SampleSource>>;

Error CannotCombine(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = "combine: " + std::move(cause),
          .advice = std::move(advice)};
}

std::string DescribeField(const Field& field) {
  std::string rows;
  if (field.kind == Field::Kind::kImage) {
    rows = "encoded images";
  } else if (field.kind == Field::Kind::kMask) {
    rows = "masks" + std::string(field.dtype == DType::kU16 ? " of uint16" : "") +
           ", filled with " + std::to_string(field.fill);
  } else if (field.is_drawn()) {
    rows = std::string(field.kind == Field::Kind::kInstances ? "instances" : "classes") +
           " drawn as " + NameOf(field.dtype) + " on " + std::to_string(field.fill) +
           (field.crowd ? ", crowds as " + std::to_string(*field.crowd) : "") +
           (field.normalized ? ", normalized" : "");
  } else if (field.kind == Field::Kind::kBoxes) {
    rows = std::string("boxes, ") + NameOf(field.box_format) +
           (field.normalized ? ", normalized" : "");
  } else if (field.kind == Field::Kind::kKeypoints) {
    rows = DescribeRow(field) + " of keypoints" +
           (field.flip_pairs.empty() ? "" : ", with flip_pairs") +
           (field.normalized ? ", normalized" : "");
  } else if (field.kind == Field::Kind::kObject) {
    rows = DescribeRow(field) + " of objects";
  } else {
    rows = DescribeRow(field);
  }
  if (field.varies) {
    rows = "any number of " + rows;
  } else if (field.count != 0) {
    rows = std::to_string(field.count) + " " + rows;
  }
  return "'" + field.name + "' (" + rows + (field.is_label ? ", the label)" : ")");
}

bool AreAlike(const Field& one, const Field& other) {
  return one.name == other.name && one.kind == other.kind && one.dtype == other.dtype &&
         one.row_shape == other.row_shape && one.is_label == other.is_label &&
         one.fill == other.fill && one.crowd == other.crowd && one.box_format == other.box_format &&
         one.normalized == other.normalized && one.flip_pairs == other.flip_pairs &&
         one.varies == other.varies && (one.varies || one.count == other.count);
}

Status CheckFields(const SampleSource& first, const SampleSource& other) {
  const std::span<const Field> ours = first.fields(), theirs = other.fields();
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    if (i < ours.size() && i < theirs.size() && AreAlike(ours[i], theirs[i])) continue;
    const auto of = [i](std::span<const Field> fields) {
      return i < fields.size() ? DescribeField(fields[i]) : "nothing";
    };
    return CannotCombine("field " + std::to_string(i) + " is " + of(ours) + " in " +
                             first.Describe() + ", and " + of(theirs) + " in " + other.Describe(),
                         "All sources need the same columns, in the same order");
  }
  return {};
}

Status CheckClasses(const SampleSource& first, const SampleSource& other) {
  const std::vector<std::string>&ours = first.classes(), &theirs = other.classes();
  if (ours.empty() || theirs.empty() || ours == theirs) return {};
  size_t i = 0;
  while (i < ours.size() && i < theirs.size() && ours[i] == theirs[i]) ++i;
  const auto of = [i](const std::vector<std::string>& classes) {
    return i < classes.size() ? "'" + classes[i] + "'" : "none";
  };
  return CannotCombine("class " + std::to_string(i) + " is " + of(ours) + " in " +
                           first.Describe() + ", and " + of(theirs) + " in " + other.Describe(),
                       "Give all of them the same class names, or list their files with labels of "
                       "your own");
}

Status CheckTogether(const SourceList& sources) {
  if (sources.empty()) return CannotCombine("no source was given");
  const SampleSource* named = nullptr;  // the first one that has class names
  uint64_t files = 0;
  for (const auto& source : sources) {
    TRY(CheckNoOrder("combine", source.get()));
    if (source->size() == 0) return CannotCombine(source->Describe() + " has no samples");
    TRY(CheckFields(*sources.front(), *source));
    if ((source->calls() == 0) != (sources.front()->calls() == 0)) {
      return CannotCombine("of " + sources.front()->Describe() + " and " + source->Describe() +
                           " one reads files, and the other one calls the program for its samples");
    }
    if (named == nullptr && !source->classes().empty()) named = source.get();
    if (named != nullptr) TRY(CheckClasses(*named, *source));
    files += source->files();
    if (files > kMostSourceFiles) return CannotCombine("the sources have more than 2^32 files");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Combine(SourceList sources) {
  TRY(CheckTogether(sources));
  if (sources.size() == 1) return std::move(sources.front());
  return std::shared_ptr<const SampleSource>(
      std::make_shared<SelectedSource>("combine", std::move(sources), nullptr));
}

Result<std::shared_ptr<const SampleSource>> Combine(SourceList sources,
                                                    std::span<const double> weights,
                                                    uint64_t samples) {
  TRY(CheckTogether(sources));
  TRY(CheckWeights("combine", weights, sources.size(), "sources"));
  SampleGroups groups{.begins = {0}};
  for (const auto& source : sources) groups.begins.push_back(groups.begins.back() + source->size());
  ASSIGN_OR_RETURN(const uint64_t positions,
                   PositionsOfEpoch("combine", samples, groups.begins.back()));
  auto order = std::make_shared<ShareOrder>(std::move(groups), weights, positions);
  return std::shared_ptr<const SampleSource>(
      std::make_shared<SelectedSource>("combine", std::move(sources), std::move(order)));
}

}  // namespace stoker
