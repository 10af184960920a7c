#include "bindings/cli/bench/digest.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace stoker {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are hashed as they lie");

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5;

template <typename Word>
uint64_t Load(const uint8_t* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint64_t Round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

void AddStripe(std::array<uint64_t, 4>& lanes, const uint8_t* stripe) {
  for (size_t i = 0; i < lanes.size(); ++i)
    lanes[i] = Round(lanes[i], Load<uint64_t>(stripe + 8 * i));
}

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Hash64::Hash64(uint64_t seed)
    : seed_(seed), lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1} {}

void Hash64::Add(const void* data, size_t bytes) {
  const auto* next = static_cast<const uint8_t*>(data);
  const size_t held = total_ % kStripe;
  total_ += bytes;
  if (held != 0) {
    const size_t taken = std::min(bytes, kStripe - held);
    std::memcpy(pending_.data() + held, next, taken);
    if (held + taken < kStripe) return;
    AddStripe(lanes_, pending_.data());
    next += taken;
    bytes -= taken;
  }
  for (; bytes >= kStripe; next += kStripe, bytes -= kStripe) AddStripe(lanes_, next);
  if (bytes != 0) std::memcpy(pending_.data(), next, bytes);
}

uint64_t Hash64::value() const {
  uint64_t hash = seed_ + kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += total_;
  const uint8_t* next = pending_.data();
  const uint8_t* end = next + total_ % kStripe;
  for (; end - next >= 8; next += 8) {
    hash = std::rotl(hash ^ Round(0, Load<uint64_t>(next)), 27) * kPrime1 + kPrime4;
  }
  for (; end - next >= 4; next += 4) {
    hash = std::rotl(hash ^ (Load<uint32_t>(next) * kPrime1), 23) * kPrime2 + kPrime3;
  }
  for (; next != end; ++next) hash = std::rotl(hash ^ (*next * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

void BatchDigest::Add(uint64_t epoch, uint64_t index, std::span<const uint64_t> sample_ids,
                      std::span<const Column> columns) {
  AddNumber(epoch);
  AddNumber(index);
  AddNumber(sample_ids.size());
  hash_.Add(sample_ids.data(), sample_ids.size_bytes());
  for (const Column& column : columns) {
    const std::string_view dtype = NameOf(column.dtype);
    hash_.Add(dtype.data(), dtype.size());
    for (const int64_t side : column.shape) AddNumber(static_cast<uint64_t>(side));
    if (column.offsets != nullptr) {
      hash_.Add(column.offsets, (sample_ids.size() + 1) * sizeof(int64_t));
    }
    if (IsString(column.dtype)) {
      for (const std::string_view text : column.as<std::string_view>()) {
        AddNumber(text.size());
        hash_.Add(text.data(), text.size());
      }
    } else {
      hash_.Add(column.data, column.bytes());
    }
  }
  for (const uint64_t id : sample_ids) {
    const std::array<uint64_t, 2> row{epoch, id};
    Hash64 hash;
    hash.Add(row.data(), sizeof row);
    samples_ += hash.value();
  }
}

std::string BatchDigest::order_and_pixels() const { return Hex(hash_.value()); }
std::string BatchDigest::samples() const { return Hex(samples_); }

}  // namespace stoker
