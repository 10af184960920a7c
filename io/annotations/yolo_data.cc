#include "io/annotations/yolo_data.h"

#include <yaml.h>

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/files/text_file.h"
#include "io/manifest/number_text.h"

namespace stoker {

namespace {

constexpr size_t kMostYaml = size_t{1} << 20;
constexpr size_t kMostLevels = 64;  // each token takes libyaml time for all levels

struct YamlEvent {
  yaml_event_type_t type = YAML_NO_EVENT;
  std::string text;  // of a scalar
};

// Reads the events of a YAML file, one after another.
class YamlReader {
 public:
  YamlReader(const std::string& path, std::string_view text) : path_(path) {
    // The library's parser fails in its first event if there is no memory.
    made_ = yaml_parser_initialize(&parser_) != 0;
    if (!made_) return;
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;
  ~YamlReader() {
    if (made_) yaml_parser_delete(&parser_);
  }

  Result<YamlEvent> Next() {
    yaml_event_t event;
    if (!made_ || yaml_parser_parse(&parser_, &event) == 0) return NotYaml();
    line_ = event.start_mark.line + 1;
    offset_ = event.start_mark.index;
    YamlEvent made{.type = event.type, .text = {}};
    if (event.type == YAML_SCALAR_EVENT) {
      const auto* const text = reinterpret_cast<const char*>(event.data.scalar.value);
      made.text.assign(text, event.data.scalar.length);
    }
    yaml_event_delete(&event);
    return made;
  }

  // Reads the rest of the value that began with `event`.
  Status Skip(const YamlEvent& event) {
    size_t depth = IsOpening(event) ? 1 : 0;
    while (depth > 0) {
      ASSIGN_OR_RETURN(const YamlEvent next, Next());
      if (IsOpening(next) && ++depth > kMostLevels) {
        return Refuse("lists and maps are nested more than " + std::to_string(kMostLevels) +
                      " levels deep");
      }
      if (next.type == YAML_SEQUENCE_END_EVENT || next.type == YAML_MAPPING_END_EVENT) --depth;
    }
    return {};
  }

  // Returns an error in the line of the last event.
  Error Refuse(const std::string& cause, std::string advice = "") const {
    return RefuseText(path_, {.line = line_, .offset = offset_}, cause, std::move(advice));
  }

 private:
  static bool IsOpening(const YamlEvent& event) {
    return event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
  }

  Error NotYaml() const {
    if (!made_ || parser_.error == YAML_MEMORY_ERROR) {
      return {.code = Code::kResourceExhausted, .cause = "no memory for YAML", .file = path_};
    }
    const char* const problem = parser_.problem == nullptr ? "not understood" : parser_.problem;
    const yaml_mark_t& mark = parser_.problem_mark;
    return RefuseText(path_, {.line = mark.line + 1, .offset = mark.index},
                      "this is not YAML: " + Printable(problem));
  }

  const std::string& path_;
  yaml_parser_t parser_{};
  bool made_ = false;
  uint64_t line_ = 1;
  uint64_t offset_ = 0;
};

class YoloDataReader {
 public:
  YoloDataReader(const std::string& path, std::string_view text) : reader_(path, text) {}

  Result<YoloData> Read() {
    ASSIGN_OR_RETURN(YamlEvent event, reader_.Next());
    while (event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT) {
      ASSIGN_OR_RETURN(event, reader_.Next());
    }
    if (event.type != YAML_MAPPING_START_EVENT) {
      return reader_.Refuse("the file does not have keys and values",
                            "It describes a data set, with the keys path, train, val and names");
    }
    std::set<std::string> keys;
    for (;;) {
      ASSIGN_OR_RETURN(const YamlEvent key, reader_.Next());
      if (key.type == YAML_MAPPING_END_EVENT) break;
      if (key.type != YAML_SCALAR_EVENT) return reader_.Refuse("a key is not a single text");
      if (!keys.insert(key.text).second) {
        return reader_.Refuse("the key '" + Printable(key.text.substr(0, 80)) + "' occurs twice");
      }
      TRY(ReadValue(key.text));
    }
    TRY(ReadToEnd());
    if (!keys.contains("names")) {
      return reader_.Refuse("there is no key 'names'",
                            "It lists the names of the classes: names: [cat, dog]");
    }
    return std::move(data_);
  }

 private:
  Status ReadValue(const std::string& key) {
    ASSIGN_OR_RETURN(const YamlEvent value, reader_.Next());
    if (value.type == YAML_ALIAS_EVENT) return Alias(key);
    if (key == "names") return ReadNames(value);
    if (key == "path") {
      if (value.type != YAML_SCALAR_EVENT) return reader_.Refuse("'path' is not a single text");
      data_.path = value.text;
      return {};
    }
    if (value.type == YAML_SCALAR_EVENT) {
      if (!value.text.empty()) data_.lists[key] = {value.text};
      return {};
    }
    if (value.type != YAML_SEQUENCE_START_EVENT) return reader_.Skip(value);
    return ReadList(key);
  }

  Error Alias(const std::string& key) const {
    return reader_.Refuse("'" + Printable(key.substr(0, 80)) + "' has an alias, which is not read",
                          "Write the value itself");
  }

  // A list with other lists or maps in it is not a list of paths, and is left out.
  Status ReadList(const std::string& key) {
    std::vector<std::string> texts;
    bool only_texts = true;
    for (;;) {
      ASSIGN_OR_RETURN(const YamlEvent item, reader_.Next());
      if (item.type == YAML_SEQUENCE_END_EVENT) break;
      if (item.type == YAML_ALIAS_EVENT) return Alias(key);
      if (item.type == YAML_SCALAR_EVENT) {
        texts.push_back(item.text);
      } else {
        only_texts = false;
        TRY(reader_.Skip(item));
      }
    }
    if (only_texts) data_.lists[key] = std::move(texts);
    return {};
  }

  Status ReadNames(const YamlEvent& value) {
    const bool is_map = value.type == YAML_MAPPING_START_EVENT;
    if (!is_map && value.type != YAML_SEQUENCE_START_EVENT) {
      return reader_.Refuse("'names' is neither a list nor a map",
                            "Write names: [cat, dog], or 0: cat and 1: dog below it");
    }
    std::map<int64_t, std::string> names;
    for (;;) {
      ASSIGN_OR_RETURN(YamlEvent event, reader_.Next());
      if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) break;
      std::optional<int64_t> number = static_cast<int64_t>(names.size());
      if (is_map) {
        number = event.type == YAML_SCALAR_EVENT ? IntegerOf(event.text) : std::nullopt;
        if (!number) return reader_.Refuse("a key in 'names' is not an integer");
        ASSIGN_OR_RETURN(event, reader_.Next());
      }
      if (event.type != YAML_SCALAR_EVENT) return reader_.Refuse("a name is not a single text");
      if (!names.emplace(*number, event.text).second) {
        return reader_.Refuse("class " + std::to_string(*number) + " occurs twice in 'names'");
      }
    }
    if (names.empty()) return reader_.Refuse("'names' is empty");
    if (names.begin()->first != 0 ||
        names.rbegin()->first != static_cast<int64_t>(names.size()) - 1) {
      return reader_.Refuse("the classes in 'names' are not 0, 1, …, " +
                            std::to_string(names.size() - 1));
    }
    for (auto& [number, name] : names) data_.names.push_back(std::move(name));
    return {};
  }

  Status ReadToEnd() {
    for (;;) {
      ASSIGN_OR_RETURN(const YamlEvent event, reader_.Next());
      if (event.type == YAML_STREAM_END_EVENT) return {};
      if (event.type == YAML_DOCUMENT_START_EVENT) {
        return reader_.Refuse("the file has a second document");
      }
    }
  }

  YamlReader reader_;
  YoloData data_;
};

}  // namespace

Result<YoloData> ReadYoloData(const std::string& path) {
  ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  ASSIGN_OR_RETURN(const bool whole, file.GrowToEnd(kMostYaml + 1));
  if (!whole) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the file has more than 1 MiB",
                 .file = path,
                 .advice = "Give the YAML file that describes the data set"};
  }
  YoloDataReader reader(path, file.bytes());
  return reader.Read();
}

}  // namespace stoker
