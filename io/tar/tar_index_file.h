// The index file of a tar archive (shard_index_file.h): the archive's members, as libarchive lists
// them. Its columns are those of TarMembers; the texts are in separate files (tar_text_file.h).
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

// Reads an index file. Returns nullopt if it is missing, damaged, of another version, or not valid
// for `stamp`. For any bytes, the members that are returned lie one after another in the
// archive, with names. Memory: the file's size twice, less than 1 GiB.
std::optional<TarMembers> ReadTarIndex(const InputFile& archive, const FileStamp& stamp);

// Replaces an index file; readers see the old or the new one. Errors name `path`.
Status WriteTarIndex(const std::string& archive, const TarMembers& all, const FileStamp& stamp);

// PackTarIndex returns the bytes of an index file. UnpackTarIndex returns nullopt where
// ReadTarIndex does.
std::vector<uint8_t> PackTarIndex(const TarMembers& all, const FileStamp& stamp);
std::optional<TarMembers> UnpackTarIndex(std::span<const uint8_t> file, const FileStamp& stamp);

}  // namespace stoker
