#include "tests/fuzz/open/sign_sections.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "io/files/section_format.h"

namespace stoker::testing {

using sections::Header;
using sections::Section;

void SignSections(std::vector<uint8_t>& file, uint32_t version) {
  Header header;
  if (file.size() < sizeof(header)) return;
  std::memcpy(&header, file.data(), sizeof(header));
  header.version = version;
  header.file_bytes = file.size();
  header.checksum = 0;
  const std::span<uint8_t> behind = std::span(file).subspan(sizeof(header));
  const size_t count = std::min<size_t>(header.sections, behind.size() / sizeof(Section));
  for (size_t i = 0; i < count; ++i) {
    Section section;
    std::memcpy(&section, behind.data() + i * sizeof(section), sizeof(section));
    const std::span<const uint8_t> all = file;
    if (section.offset <= all.size() && section.bytes <= all.size() - section.offset) {
      section.checksum = sections::Checksum(all.subspan(section.offset, section.bytes));
    }
    std::memcpy(behind.data() + i * sizeof(section), &section, sizeof(section));
  }
  const std::span<const uint8_t> list = behind.first(count * sizeof(Section));
  header.checksum = Hash64(list, Hash64(sections::BytesOf(std::as_const(header))));
  std::memcpy(file.data(), &header, sizeof(header));
}

}  // namespace stoker::testing
