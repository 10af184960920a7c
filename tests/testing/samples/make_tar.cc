#include "tests/testing/samples/make_tar.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace stoker::testing {

namespace {

constexpr size_t kBlock = 512;
constexpr size_t kShortName = 100;

// Digits in octal with a NUL at the end, as all of a header's numbers.
void PutOctal(std::string& header, size_t at, size_t width, uint64_t value) {
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%0*llo", static_cast<int>(width - 1),
                static_cast<unsigned long long>(value));
  header.replace(at, width - 1, digits.data(), width - 1);
}

std::string Padded(std::string_view data) {
  std::string padded(data);
  padded.resize((data.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return padded;
}

}  // namespace

std::string TarHeader(std::string_view name, uint64_t bytes, char type, std::string_view link) {
  std::string header(kBlock, '\0');
  header.replace(0, name.size(), name);
  PutOctal(header, 100, 8, 0644);
  PutOctal(header, 108, 8, 0);
  PutOctal(header, 116, 8, 0);
  PutOctal(header, 124, 12, bytes);
  PutOctal(header, 136, 12, 0);
  header.replace(148, 8, 8, ' ');
  header[156] = type;
  header.replace(157, link.size(), link);
  header.replace(257, 8, std::string_view("ustar\00000", 8));
  uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  PutOctal(header, 148, 7, sum);
  return header;
}

std::string TarFile(std::string_view name, std::string_view data) {
  std::string long_name;
  if (name.size() > kShortName) {
    const std::string with_nul = std::string(name) + '\0';
    long_name = TarHeader("././@LongLink", with_nul.size(), 'L') + Padded(with_nul);
  }
  return long_name + TarHeader(name.substr(0, kShortName), data.size()) + Padded(data);
}

std::string TarPaxName(std::string_view name) {
  const std::string rest = " path=" + std::string(name) + "\n";
  size_t size = rest.size() + 1;  // with its own digits
  while (std::to_string(size).size() + rest.size() != size) ++size;
  const std::string record = std::to_string(size) + rest;
  return TarHeader("PaxHeaders/x", record.size(), 'x') + Padded(record);
}

std::string TarEnd() { return std::string(2 * kBlock, '\0'); }

}  // namespace stoker::testing
