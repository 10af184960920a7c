// Tar archives for tests, sound and unsound, block by block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::testing {

// Returns a header of 512 bytes, with its checksum. `type`: '0' a file, '1' a hard link, '2' a
// symbolic link, '5' a folder, 'L' a GNU long name, 'x' a PAX header. Precondition: the name has at
// most 100 bytes.
std::string TarHeader(std::string_view name, uint64_t bytes, char type = '0',
                      std::string_view link = "");

// A file's header and its data, padded to blocks. A name of more than 100 bytes has a GNU long name
// before it.
std::string TarFile(std::string_view name, std::string_view data);

// A PAX header that gives the next file this name.
std::string TarPaxName(std::string_view name);

std::string TarEnd();  // the end marker: two blocks of zeros

}  // namespace stoker::testing
