// Formats numbers and lines for a report.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace stoker {

std::string Duration(double seconds);  // "12.3 ms"
std::string Bytes(double bytes);       // of memory: "1.5 MiB"
std::string Bytes(uint64_t bytes);
std::string FileBytes(double bytes);  // of files, as the other commands give them: "1.5 MB"
std::string FileBytes(uint64_t bytes);
std::string Count(uint64_t number);  // 1234567 → "1,234,567"

// A report's text, line by line.
class ReportText {
 public:
  void Line(const char* name, const std::string& value);
  void Figure(const char* name, const std::string& value, const std::string& meaning);
  void Add(const std::string& line);  // without trailing blanks
  // Wrapped to lines of at most 100 columns.
  void Paragraph(const std::string& text);
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace stoker
