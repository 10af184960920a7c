#include "io/annotations/drawn_masks.h"

#include "core/result/try.h"
#include "io/manifest/number_text.h"

namespace stoker {

namespace {

Error WrongMasks(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

Error LikeClass(const std::string& what, int64_t label) {
  const char* const example = label == 255 ? "65535 with mask_dtype uint16" : "255";
  return WrongMasks(
      "the " + what + " of masks has the value " + std::to_string(label) + ", which is a class",
      "Give another mask_" + what + ", such as " + example + ", and leave it out of the loss");
}

Error TooLarge(const DrawnMasks& masks, int64_t label) {
  return WrongMasks("masks of " + std::string(NameOf(masks.dtype)) + " cannot hold the class " +
                        std::to_string(label),
                    "Give mask_dtype uint16, or number the classes from 0 (contiguous_labels)");
}

}  // namespace

Result<DType> ParseMaskType(const char* name, std::string_view text) {
  if (text == "uint8") return DType::kU8;
  if (text == "uint16") return DType::kU16;
  return WrongMasks(std::string(name) + " is neither uint8 nor uint16");
}

Result<uint16_t> ParseMaskValue(const char* name, std::string_view text, DType dtype) {
  const std::optional<uint16_t> value = SmallNumberOf(text);
  if (value && *value <= MostOfMask(dtype)) return *value;
  return WrongMasks(std::string(name) + " is not a number from 0 to " +
                    std::to_string(MostOfMask(dtype)));
}

Result<DrawnMasks> ParseMasks(const std::string& masks, const std::string& dtype,
                              const std::string& background, const std::string& crowd) {
  using Kind = DrawnMasks::Kind;
  DrawnMasks parsed;
  if (masks != "off" && masks != "instances" && masks != "semantic") {
    return WrongMasks("masks is neither off nor instances nor semantic");
  }
  if (masks != "off") parsed.kind = masks == "instances" ? Kind::kInstances : Kind::kSemantic;
  ASSIGN_OR_RETURN(parsed.dtype, ParseMaskType("mask_dtype", dtype));
  ASSIGN_OR_RETURN(parsed.background, ParseMaskValue("mask_background", background, parsed.dtype));
  if (crowd != "off") {
    ASSIGN_OR_RETURN(parsed.crowd, ParseMaskValue("mask_crowd", crowd, parsed.dtype));
  }
  const bool are_of_semantic = parsed.background != DrawnMasks::kDefaultBackground || parsed.crowd;
  if (parsed.kind == Kind::kInstances && are_of_semantic) {
    return WrongMasks("the background of instances is 0, and a crowd is one of them",
                      "Leave mask_background and mask_crowd out, or ask for semantic masks");
  }
  if (parsed.kind == Kind::kNone && (are_of_semantic || parsed.dtype != DType::kU8)) {
    return WrongMasks(
        "mask_dtype, mask_background and mask_crowd are for masks, and there are none",
        "Ask for masks, or leave these options out");
  }
  return parsed;
}

Status CheckClasses(const DrawnMasks& masks, const DrawnObjects& objects) {
  if (masks.kind != DrawnMasks::Kind::kSemantic) return {};
  std::optional<int64_t> like_crowd;  // a class that has its value
  bool has_crowd = false;
  const std::span<const uint32_t> words = objects.shapes;
  ShapeReader reader({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()});
  for (size_t i = 0; i < objects.labels.size() && reader.NextObject(); ++i) {
    if (!reader.NextPart()) continue;
    if (masks.crowd && !objects.crowds.empty() && objects.crowds[i] != 0) {
      has_crowd = true;
      continue;
    }
    const int64_t label = objects.labels[i];
    if (label < 0 || label > MostOfMask(masks.dtype)) return TooLarge(masks, label);
    if (label == masks.background) return LikeClass("background", label);
    if (masks.crowd == label) like_crowd = label;
  }
  if (has_crowd && like_crowd) return LikeClass("crowd", *like_crowd);
  return {};
}

ArrayColumn ColumnOf(const DrawnMasks& masks, std::span<const uint32_t> words,
                     const std::vector<int64_t>& offsets) {
  const bool instances = masks.kind == DrawnMasks::Kind::kInstances;
  return {.name = instances ? "instances" : "mask",
          .dtype = masks.dtype,
          .row_shape = {},
          .data = words.data(),
          .samples = offsets.size() - 1,
          .offsets = offsets.data(),
          .kind = instances ? Field::Kind::kInstances : Field::Kind::kSemantic,
          .fill = instances ? uint16_t{0} : masks.background,
          .crowd = masks.crowd};
}

}  // namespace stoker
