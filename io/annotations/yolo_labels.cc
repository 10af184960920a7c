#include "io/annotations/yolo_labels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <vector>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/files/text_file.h"

namespace stoker {

namespace {

constexpr size_t kNumbers = 5;         // of a box: class, x, y, width, height
constexpr size_t kLeastOfPolygon = 7;  // class, and three points

constexpr size_t kMostYoloObjects = size_t{1} << 20;  // of a file; a sample may not have more

// Replaces `words` by those of a line.
void TakeWords(std::string_view line, std::vector<std::string_view>& words) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  words.clear();
  for (size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
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
  LabelReader(const std::string& path, const YoloLines& lines, YoloLabels& labels)
      : path_(path), lines_(lines), labels_(labels) {}

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
    TakeWords(line, words_);
    const size_t count = words_.size();
    if (count == 0) return {};
    const bool is_polygon = count >= kLeastOfPolygon && count % 2 == 1 && !lines_.keypoints;
    if (count != kNumbers && !is_polygon) return OtherCount();
    if (++objects_ > kMostYoloObjects) {
      return Refuse("the file has more than " + std::to_string(kMostYoloObjects) + " objects");
    }
    const double number = YoloNumberOf(words_[0]);
    const size_t classes = lines_.classes;
    if (!(number >= 0 && number < static_cast<double>(classes) && number == std::trunc(number))) {
      return Refuse("'" + Printable(words_[0].substr(0, 30)) + "' is not a class: there " +
                        Plural(classes, "is ", "are ") + std::to_string(classes) +
                        Plural(classes, " name", " names") + ", from 0",
                    "Correct the line, or the names of the data set");
    }
    numbers_.clear();
    for (size_t i = 1; i < count; ++i) TRY(AddNormalized(words_[i]));
    if (lines_.shapes) labels_.shapes.BeginObject();
    if (is_polygon) TakePolygon();
    labels_.boxes.insert(labels_.boxes.end(), numbers_.begin(), numbers_.end());
    labels_.classes.push_back(static_cast<int64_t>(number));
    return {};
  }

  // Replaces the points by their bounds.
  void TakePolygon() {
    if (lines_.shapes) labels_.shapes.AddPolygon(numbers_);
    float left = numbers_[0], right = left, top = numbers_[1], bottom = top;
    for (size_t i = 2; i < numbers_.size(); i += 2) {
      left = std::min(left, numbers_[i]), right = std::max(right, numbers_[i]);
      top = std::min(top, numbers_[i + 1]), bottom = std::max(bottom, numbers_[i + 1]);
    }
    numbers_ = {(left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
  }

  // Appends a coordinate or a size.
  Status AddNormalized(std::string_view word) {
    constexpr double kMost = 1.01;  // as Ultralytics allows
    const double number = YoloNumberOf(word);
    if (number >= 0 && number <= kMost) {
      numbers_.push_back(static_cast<float>(number));
      return {};
    }
    return Refuse("'" + Printable(word.substr(0, 30)) + "' is not a normalized coordinate (0 to 1)",
                  "Divide x and width by the image's width, and y and height by its height");
  }

  Error OtherCount() const {
    const size_t count = words_.size();
    return Refuse(
        std::to_string(count) + Plural(count, " number", " numbers") +
            " on this line; a box has 5: class, x, y, width, height" +
            (lines_.keypoints ? "" : "; a polygon has class, and x, y of 3 points or more"),
        lines_.keypoints && count > kNumbers
            ? "Poses (kpt_shape) are not read yet: write their boxes to files of labels"
            : "");
  }
  Error Refuse(const std::string& cause, std::string advice = "") const {
    return RefuseText(path_, position_, cause, std::move(advice));
  }

  const std::string& path_;
  const YoloLines& lines_;
  YoloLabels& labels_;
  std::vector<std::string_view> words_;  // of a line, reused
  std::vector<float> numbers_;           // likewise
  TextPosition position_;
  size_t objects_ = 0;
};

}  // namespace

Status ParseYoloLabels(std::string_view text, const std::string& path, const YoloLines& lines,
                       YoloLabels& labels) {
  LabelReader reader(path, lines, labels);
  return reader.Read(text);
}

}  // namespace stoker
