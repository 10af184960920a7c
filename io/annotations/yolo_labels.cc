#include "io/annotations/yolo_labels.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/files/text_file.h"

namespace stoker {

namespace {

constexpr size_t kNumbers = 5;  // of a line: class, x, y, width, height

constexpr size_t kMostYoloObjects = size_t{1} << 20;  // of a file; a sample may not have more

// The words of a line, as far as they fit.
struct YoloLine {
  std::array<std::string_view, kNumbers> words;
  size_t count = 0;
};

YoloLine WordsOf(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  YoloLine words;
  for (size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    if (words.count < kNumbers) words.words[words.count] = line.substr(at, end - at);
    ++words.count;
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

// Returns NaN if the word is not a number.
double YoloNumberOf(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc::result_out_of_range && end == word.data() + word.size()) {
    const bool is_small =
        word.find("e-") != std::string_view::npos || word.find("E-") != std::string_view::npos;
    return is_small ? 0 : HUGE_VAL;
  }
  return error == std::errc() && end == word.data() + word.size() ? number : std::nan("");
}

class LabelReader {
 public:
  LabelReader(const std::string& path, size_t classes, YoloLabels& labels)
      : path_(path), classes_(classes), labels_(labels) {}

  Status Read(std::string_view text) {
    while (position_.offset < text.size()) {
      const std::string_view rest = text.substr(position_.offset);
      const std::string_view line = rest.substr(0, rest.find('\n'));
      TRY(ReadLine(line));
      position_.offset += line.size() + 1;
      ++position_.line;
    }
    return {};
  }

 private:
  Status ReadLine(std::string_view line) {
    const YoloLine words = WordsOf(line);
    if (words.count == 0) return {};
    if (words.count != kNumbers) return OtherCount(words.count);
    if (++objects_ > kMostYoloObjects) {
      return Refuse("the file has more than " + std::to_string(kMostYoloObjects) + " objects");
    }
    const double number = YoloNumberOf(words.words[0]);
    if (!(number >= 0 && number < static_cast<double>(classes_) && number == std::trunc(number))) {
      return Refuse("'" + Printable(words.words[0].substr(0, 30)) + "' is not a class: there " +
                        Plural(classes_, "is ", "are ") + std::to_string(classes_) +
                        Plural(classes_, " name", " names") + ", from 0",
                    "Correct the line, or the names of the data set");
    }
    for (size_t i = 1; i < kNumbers; ++i) TRY(AddNormalized(words.words[i]));
    labels_.classes.push_back(static_cast<int64_t>(number));
    return {};
  }

  // Appends a coordinate or a size.
  Status AddNormalized(std::string_view word) {
    constexpr double kMost = 1.01;  // as Ultralytics allows
    const double number = YoloNumberOf(word);
    if (number >= 0 && number <= kMost) {
      labels_.boxes.push_back(static_cast<float>(number));
      return {};
    }
    return Refuse("'" + Printable(word.substr(0, 30)) + "' is not a normalized coordinate (0 to 1)",
                  "Divide x and width by the image's width, and y and height by its height");
  }

  Error OtherCount(size_t count) const {
    return Refuse(std::to_string(count) + Plural(count, " number", " numbers") +
                      " on this line; a box has 5: class, x, y, width, height",
                  count > kNumbers ? "Polygons, poses and rotated boxes are not read yet: write "
                                     "their boxes to files of labels"
                                   : "");
  }
  Error Refuse(const std::string& cause, std::string advice = "") const {
    return RefuseText(path_, position_, cause, std::move(advice));
  }

  const std::string& path_;
  const size_t classes_;
  YoloLabels& labels_;
  TextPosition position_;
  size_t objects_ = 0;
};

}  // namespace

Status ParseYoloLabels(std::string_view text, const std::string& path, size_t classes,
                       YoloLabels& labels) {
  LabelReader reader(path, classes, labels);
  return reader.Read(text);
}

}  // namespace stoker
