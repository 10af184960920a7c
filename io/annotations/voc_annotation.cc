#include "io/annotations/voc_annotation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <pugixml.hpp>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/manifest/number_text.h"

namespace stoker {

namespace {

// Returns the text in an element, without that of elements in it.
std::string TextOf(const pugi::xml_node& element) {
  std::string text;
  for (const pugi::xml_node& node : element) {
    const bool is_text = node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata;
    if (is_text) text += node.value();
  }
  constexpr const char* kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Returns 0 × 0 if it is not that of an image.
ImageSize SizeIn(const pugi::xml_node& size) {
  const auto side = [&](const char* name) {
    const double pixels = NumberOf(TextOf(size.child(name))).value_or(0);
    const bool is_side = pixels >= 1 && pixels <= kMaxSidePixels && pixels == std::floor(pixels);
    return is_side ? static_cast<int>(pixels) : 0;
  };
  const ImageSize both{side("width"), side("height")};
  return both.width == 0 || both.height == 0 ? ImageSize() : both;
}

class VocReader {
 public:
  VocReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<VocAnnotation> Read() {
    const pugi::xml_parse_result parsed = document_.load_buffer(
        text_.data(), text_.size(), pugi::parse_default | pugi::parse_doctype);
    if (parsed.status == pugi::status_out_of_memory) {
      return Error{.code = Code::kResourceExhausted, .cause = "no memory for XML", .file = path_};
    }
    if (!parsed) {
      return Refuse(parsed.offset, "this is not XML: " + std::string(parsed.description()));
    }
    for (const pugi::xml_node& node : document_) {
      // It can define entities, which would not be replaced.
      if (node.type() == pugi::node_doctype) {
        return Refuse(node, "the file has a DOCTYPE", "Remove it, and the entities it defines");
      }
    }
    ASSIGN_OR_RETURN(const pugi::xml_node root, Only(document_, "annotation"));
    VocAnnotation annotation{.size = SizeIn(root.child("size")), .objects = {}};
    for (const pugi::xml_node& object : root.children("object")) {
      ASSIGN_OR_RETURN(annotation.objects.emplace_back(), ReadObject(object));
    }
    return annotation;
  }

 private:
  Result<VocObject> ReadObject(const pugi::xml_node& element) {
    VocObject object;
    object.position = PositionOf(element.offset_debug());
    ASSIGN_OR_RETURN(const pugi::xml_node name, Only(element, "name"));
    object.name = TextOf(name);
    if (object.name.empty())
      return Refuse(name, "an object has an empty <name>", "Write its class");
    ASSIGN_OR_RETURN(object.difficult, Flag(element, "difficult"));
    ASSIGN_OR_RETURN(object.truncated, Flag(element, "truncated"));
    ASSIGN_OR_RETURN(object.occluded, Flag(element, "occluded"));
    ASSIGN_OR_RETURN(const pugi::xml_node box, Only(element, "bndbox"));
    ASSIGN_OR_RETURN(object.box[0], Coordinate(box, "xmin"));
    ASSIGN_OR_RETURN(object.box[1], Coordinate(box, "ymin"));
    ASSIGN_OR_RETURN(object.box[2], Coordinate(box, "xmax"));
    ASSIGN_OR_RETURN(object.box[3], Coordinate(box, "ymax"));
    const bool is_reversed = object.box[2] < object.box[0];
    if (is_reversed || object.box[3] < object.box[1]) {
      return Refuse(box,
                    "the box of '" + Printable(object.name.substr(0, 80)) + "' has " +
                        (is_reversed ? "xmax less than xmin" : "ymax less than ymin"),
                    "Correct the box, or remove the object");
    }
    return object;
  }

  // Returns the only element of this name in `parent`.
  Result<pugi::xml_node> Only(const pugi::xml_node& parent, const char* name) {
    const pugi::xml_node found = parent.child(name);
    const bool is_document = parent.type() == pugi::node_document;
    const std::string in = is_document ? "the file" : "<" + std::string(parent.name()) + ">";
    if (!found) {
      return Refuse(parent, in + " has no <" + name + ">",
                    is_document ? "Give annotations of Pascal VOC's format" : "Write it");
    }
    const pugi::xml_node second = found.next_sibling(name);
    if (!second) return found;
    return Refuse(second, in + " has two <" + name + ">", "Remove one of them");
  }

  // Returns 0 if there is no such element.
  Result<uint8_t> Flag(const pugi::xml_node& object, const char* name) {
    if (!object.child(name)) return uint8_t{0};
    ASSIGN_OR_RETURN(const pugi::xml_node element, Only(object, name));
    const std::string text = TextOf(element);
    if (text == "0" || text == "1") return static_cast<uint8_t>(text == "1" ? 1 : 0);
    return WrongValue(element, text, "0 or 1", "Correct or remove it");
  }

  Result<double> Coordinate(const pugi::xml_node& box, const char* name) {
    ASSIGN_OR_RETURN(const pugi::xml_node element, Only(box, name));
    const std::string text = TextOf(element);
    const double value = NumberOf(text).value_or(std::nan(""));
    if (std::abs(value) <= std::numeric_limits<float>::max()) return value;
    return WrongValue(element, text, "a coordinate", "Correct the box, or remove the object");
  }

  Error WrongValue(const pugi::xml_node& element, const std::string& text, const char* wanted,
                   std::string advice) {
    return Refuse(element,
                  "<" + std::string(element.name()) + "> is '" + Printable(text.substr(0, 80)) +
                      "', not " + wanted,
                  std::move(advice));
  }

  // Counts lines from the last position on, since objects follow each other.
  TextPosition PositionOf(ptrdiff_t offset) {
    const auto at = std::min(static_cast<size_t>(std::max(offset, ptrdiff_t{0})), text_.size());
    if (at < position_.offset) position_ = {};
    position_.line += static_cast<uint64_t>(
        std::ranges::count(text_.substr(position_.offset, at - position_.offset), '\n'));
    position_.offset = at;
    return position_;
  }

  Error Refuse(ptrdiff_t offset, const std::string& cause, std::string advice = "") {
    return RefuseText(path_, PositionOf(offset), cause, std::move(advice));
  }
  Error Refuse(const pugi::xml_node& node, const std::string& cause, std::string advice) {
    return Refuse(node.offset_debug(), cause, std::move(advice));
  }

  const std::string_view text_;
  const std::string& path_;
  pugi::xml_document document_;
  TextPosition position_;
};

}  // namespace

Result<VocAnnotation> ParseVocAnnotation(std::string_view text, const std::string& path) {
  VocReader reader(text, path);
  return reader.Read();
}

}  // namespace stoker
