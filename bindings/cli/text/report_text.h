// Formats numbers and lines for a report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/cli/text/text_layout.h"
#include "core/batch/channels.h"

namespace stoker {

std::string Duration(double seconds);  // "12.3 ms"
std::string MemoryText(double bytes);  // of memory, by powers of 1024: "1.5 MiB"
std::string MemoryText(uint64_t bytes);
// The sizes of files, and of data that is read or copied, are by powers of 1000: "1.5 MB".
std::string SizeText(double bytes);
std::string SizeText(uint64_t bytes);
std::string SpeedText(double bytes_per_second);  // "1.5 MB/s"
std::string Count(uint64_t number);              // 1234567 → "1,234,567"
std::string SamplesText(uint64_t number);        // "1,234 samples"
// The same, and their images if each has several: "1,234 samples (2,468 images)".
std::string SamplesText(uint64_t samples, uint64_t images);

std::string ChannelsText(Channels channels);  // ", gray", ", 5 channels"; of RGB ""

// A report's text, line by line.
class ReportText {
 public:
  explicit ReportText(const cli::PageWidth& width) : width_(width) {}

  void Line(const char* name, const std::string& value);
  void Figure(const char* name, const std::string& value, const std::string& meaning);
  // A line that begins with `head`; if `text` does not fit after it, it goes on below itself.
  void Add(const std::string& head, std::string_view text = "");
  void Paragraph(const std::string& text);
  std::string Take() { return std::move(text_); }

 private:
  const cli::PageWidth width_;
  std::string text_;
};

}  // namespace stoker
