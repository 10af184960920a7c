// TarMembers: the names and byte ranges of the files in a tar archive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/files/input_file.h"

namespace stoker {

// The regular files in one archive, in its order. An index file stores these columns unchanged
// (tar_index_file.h); for each extension, another one stores its texts (tar_text_file.h).
struct TarMembers {
  struct Member {
    uint64_t offset = 0;    // of its first byte, in the archive
    uint64_t length = 0;    // bytes
    uint64_t name_end = 0;  // in `names`; it begins where the previous one ends
  };

  // The contents of the members with one extension, in order.
  struct Texts {
    std::vector<char> bytes;
    std::vector<uint64_t> ends;  // by member, in `bytes`

    std::string_view operator[](size_t text) const {
      const uint64_t begin = text == 0 ? 0 : ends[text - 1];
      return {bytes.data() + begin, static_cast<size_t>(ends[text] - begin)};
    }
  };

  static constexpr uint64_t kNone = ~uint64_t{0};

  std::vector<Member> members;
  std::string names;
  std::vector<int64_t> labels;  // the number in each member that IsLabelMember, in order
  uint64_t bad_label = kNone;   // the first such member without an integer, whose number is 0 here
  std::vector<Texts> texts{};   // by requested extension

  std::string_view NameOf(size_t member) const {
    const uint64_t begin = member == 0 ? 0 : members[member - 1].name_end;
    return std::string_view(names).substr(begin, members[member].name_end - begin);
  }
};

static_assert(sizeof(TarMembers::Member) == 24);

inline constexpr uint64_t kTarBlock = 512;  // headers and data begin at multiples of it
inline constexpr size_t kLongestMemberName = 4096;
inline constexpr uint64_t kLongestTarText = 1 << 20;          // bytes
inline constexpr uint64_t kMostTarTexts = (1 << 30) - 65536;  // bytes of an archive, by extension

// The parts of a member's name, split as WebDataset does: "train/0017.seg.png" has the key
// "train/0017" and the extension "seg.png".
struct MemberName {
  std::string_view key;        // up to the first dot of the name's last part
  std::string_view extension;  // after that dot, as it is written
};

// Returns nullopt if the member belongs to no sample: the last part of its name has no dot or
// begins with one (like macOS' "._0017.jpg"), or the name begins like that of a file about the
// archive, "__name__".
std::optional<MemberName> SplitMemberName(std::string_view name);

// Returns whether a member has this extension, which is in lower case; the member's may be in any
// case.
bool HasExtension(std::string_view name, std::string_view extension);

// Returns whether a member has a sample's label: its extension is "cls".
inline bool IsLabelMember(std::string_view name) { return HasExtension(name, "cls"); }

// Returns a text with its ASCII letters in lower case, in any locale.
std::string LowerCase(std::string_view text);

// Reads an archive's headers, the labels, and the texts with these extensions (in lower case),
// through libarchive: ustar, GNU and PAX archives, with long names. Other data is skipped. Folders
// in the archive are left out.
//
// Errors name the archive and, where it applies, the offset:
// - DataLoss: it is cut off or damaged, changes while it is read, or has data after its end marker
//   (as archives that were joined with `cat`);
// - InvalidArgument: a link, a sparse file or a device that would be part of a sample, a name
//   longer than kLongestMemberName, a text longer than kLongestTarText;
// - ResourceExhausted: texts of more than kMostTarTexts;
// - Unimplemented: it is compressed;
// - Unavailable: libarchive is not installed; those of reading the file.
//
// `stamp` is set to the archive's state at that time.
Result<TarMembers> ReadTarMembers(InputFile archive, FileStamp& stamp,
                                  std::span<const std::string> extensions = {});

// Parses a label's text: decimal digits with an optional sign, and spaces around them.
std::optional<int64_t> IntegerInText(std::string_view text);

}  // namespace stoker
