// The index file of a tar archive's texts with one extension (shard_index_file.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/files/input_file.h"
#include "io/tar/tar_members.h"

namespace stoker {

// Reads an index file of texts. Returns nullopt if it is missing, damaged, of another version, or
// not valid for `stamp`. For any bytes, the texts that are returned have the lengths of
// the members with this extension. `extension`: in lower case.
std::optional<TarMembers::Texts> ReadTarTexts(const InputFile& archive, const FileStamp& stamp,
                                              const TarMembers& all, const std::string& extension);

// Replaces the index file of the archive's texts; readers see the old or the new one.
Status WriteTarTexts(const std::string& archive, const TarMembers::Texts& texts,
                     const FileStamp& stamp, const std::string& extension);

// PackTarTexts returns the bytes of an index file. UnpackTarTexts returns nullopt where
// ReadTarTexts does.
std::vector<uint8_t> PackTarTexts(const TarMembers::Texts& texts, const FileStamp& stamp);
std::optional<TarMembers::Texts> UnpackTarTexts(std::span<const uint8_t> file,
                                                const FileStamp& stamp, const TarMembers& all,
                                                const std::string& extension);

}  // namespace stoker
