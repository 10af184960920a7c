// SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104): for signing requests and for names.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest Sha256(std::string_view bytes);
Sha256Digest HmacSha256(std::string_view key, std::string_view bytes);

// Returns the digest's bytes, for use as a key.
std::string_view AsText(const Sha256Digest& digest);
// Returns the digest in 64 lower-case hexadecimal digits.
std::string Hexadecimal(const Sha256Digest& digest);

}  // namespace stoker
