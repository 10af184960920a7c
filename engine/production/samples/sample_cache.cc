#include "engine/production/samples/sample_cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/hash/sha256.h"
#include "core/result/byte_size.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "io/files/input_file.h"
#include "io/readers/plain_read.h"
#include "io/remote/object_url.h"
#include "io/remote/object_version.h"

namespace stoker {

namespace {

using State = CachedSample::State;

// The kept form of a sample: its image. Other versions of this form have other keys.
constexpr uint64_t kForm = 5;

// The numbers that a key is made of, in addition to the path.
struct KeyNumbers {
  uint64_t form = kForm;
  uint64_t offset = 0, length = 0;
  FileStamp stamp{};
  uint64_t content = 0;            // InputFile::ContentHash
  uint64_t number = 0, check = 0;  // of an object: its range's own key; of a relative path: where
};

RangeKey KeyFrom(const KeyNumbers& numbers, std::string_view path) {
  const Sha256Digest name = Sha256(path);
  std::array<char, sizeof(numbers) + sizeof(name)> all{};
  std::memcpy(all.data(), &numbers, sizeof(numbers));
  std::memcpy(all.data() + sizeof(numbers), name.data(), sizeof(name));
  return RangeKey(Sha256({all.data(), all.size()}));
}

Result<uint64_t> ContentHashOf(const std::string& path, const FileStamp& stamp) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  return file.ContentHash(stamp);
}

RangeKey WorkingFolder() {
  std::error_code failed;
  return RangeKey(Sha256(std::filesystem::current_path(failed).string()));
}

// Refuses sources whose samples cannot be kept.
Status Check(const SampleSource& source) {
  if (source.in_memory()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "a cache was given, and the samples of " + source.Describe() +
                          " are in memory already",
                 .advice = "Leave cache out"};
  }
  if (source.calls() != 0) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "a cache was given, and " + source.Describe() +
                          " is called for its samples, which have no file whose times could be "
                          "checked",
                 .advice = "Leave cache out"};
  }
  if (source.has_records()) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "a cache was given, and the samples of " + source.Describe() +
                          " are records, which it does not keep",
                 .advice = "Leave cache out"};
  }
  if (source.pieces() > 1) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "a cache was given, and the samples of " + source.Describe() +
                          " have several encoded images each, which it does not keep",
                 .advice = "Leave cache out"};
  }
  return {};
}

Status CheckRoom(const RamFolder& folder, uint64_t bytes, uint64_t working_memory) {
  ASSIGN_OR_RETURN(const RamFolder::Room room, folder.FindRoom());
  const uint64_t left = AvailableMemory();
  const uint64_t most =
      left - std::min(left, working_memory) + std::min(room.taken, ~uint64_t{0} - left);
  if (bytes <= std::min(room.most, most)) return {};
  const bool small_tmpfs = room.most < most;
  return Error{
      .code = Code::kResourceExhausted,
      .cause =
          "a cache in memory of " + ByteSizeText(bytes) + " (" + std::to_string(bytes) +
          " bytes) was given, and " +
          (small_tmpfs ? "the file system of its folder has room for " + std::to_string(room.most)
                       : "in addition to the " + std::to_string(working_memory) +
                             " bytes of working memory there are " + std::to_string(most)) +
          " bytes",
      .file = folder.path(),
      .advice = small_tmpfs ? "Give it fewer bytes, or make the file system larger (docker run "
                              "--shm-size), or keep the cache in a folder on disk"
                            : "Give it fewer bytes, or keep the cache in a folder on disk",
      .changes = small_tmpfs
                     ? std::vector<OptionChange>{}
                     : std::vector<OptionChange>{{OptionChange::How::kLower, "memory_budget"}}};
}

}  // namespace

Result<std::shared_ptr<SampleCache>> SampleCache::Open(const CacheChoice& choice,
                                                       const SampleSource& source,
                                                       uint64_t working_memory) {
  if (!choice) return std::shared_ptr<SampleCache>();
  TRY(Check(source));
  std::unique_ptr<RamFolder> ram;
  DiskCacheSettings settings;
  if (choice.folder.empty()) {
    ASSIGN_OR_RETURN(ram, RamFolder::Open());
    TRY(CheckRoom(*ram, choice.bytes, working_memory));
    settings.idle = std::chrono::seconds(0);  // unused files make room at once
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<DiskCache> store,
      DiskCache::Open(ram != nullptr ? ram->path() : choice.folder, choice.bytes, settings));
  return std::make_shared<SampleCache>(std::move(ram), std::move(store), source, choice.ToString());
}

SampleCache::SampleCache(std::unique_ptr<RamFolder> ram, std::shared_ptr<DiskCache> store,
                         const SampleSource& source, std::string place)
    : ram_(std::move(ram)),
      store_(std::move(store)),
      source_(source),
      place_(std::move(place)),
      working_folder_(WorkingFolder()) {}

std::optional<FileStamp> SampleCache::StampAt(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  const uint64_t known = known_device_;
  if (known >> 1 == info.st_dev + 1) return StampFrom(info, (known & 1) != 0);
  const bool keeps = KeepsTimesOfChange(path.c_str());
  known_device_ = (info.st_dev + 1) << 1 | (keeps ? 1 : 0);
  return StampFrom(info, keeps);
}

std::optional<uint64_t> SampleCache::Contents::Find(uint64_t key) const {
  const std::lock_guard lock(mutex_);
  const auto found = hashes_.find(key);
  return found == hashes_.end() ? std::nullopt : std::optional(found->second);
}

void SampleCache::Contents::Set(uint64_t key, uint64_t hash) {
  const std::lock_guard lock(mutex_);
  hashes_.insert_or_assign(key, hash);
}

// Returns nullopt for a part of a file, and for an object of unknown version. A part of a file may
// be read from one that has been replaced since, because readers keep such files open.
std::optional<SampleCache::FileKey> SampleCache::KeyOf(const ReadRequest& read, Pass pass) {
  KeyNumbers numbers{.offset = read.offset, .length = read.length};
  if (const ObjectVersions* const objects = source_.objects();
      objects != nullptr && IsObjectUrl(read.path)) {
    const ObjectVersions::KnownVersion* const known = objects->Find(read.path);
    if (known == nullptr || !known->version.Identifies(read.path)) return std::nullopt;
    const RangeKey range = known->cached.KeyOf(read.offset, read.length);
    numbers.number = range.number;
    numbers.check = range.check;
    return FileKey{.key = KeyFrom(numbers, {})};
  }
  if (read.length != kUnknownLength) return std::nullopt;
  const int64_t now_ns = NowNs();
  const std::optional<FileStamp> stamp = StampAt(read.path);
  if (!stamp) return std::nullopt;
  numbers.stamp = *stamp;
  if (!read.path.starts_with('/')) {
    numbers.number = working_folder_.number;
    numbers.check = working_folder_.check;
  }
  FileKey key{.key = KeyFrom(numbers, read.path), .at_rest = IsAtRest(*stamp, now_ns)};
  if (stamp->is_proof()) return key;
  const std::optional<uint64_t> known =
      pass == Pass::kFirst ? contents_.Find(key.key.number) : std::nullopt;
  if (!known) {
    const Result<uint64_t> content = ContentHashOf(read.path, *stamp);
    if (!content.ok()) return std::nullopt;
    if (key.at_rest) contents_.Set(key.key.number, *content);
    numbers.content = *content;
  } else {
    numbers.content = *known;
  }
  key.key = KeyFrom(numbers, read.path);
  return key;
}

void SampleCache::Find(const ReadRequest& read, CachedSample& cached) {
  cached.state = State::kNone;
  const std::optional<FileKey> key = KeyOf(read, Pass::kFirst);
  if (!key) {
    ++unused_;
    return;
  }
  cached.key = key->key;
  const std::optional<uint64_t> length = store_->Prefetch(key->key);
  if (length || key->at_rest) cached.state = length ? State::kKept : State::kMissing;
  cached.length = length.value_or(0);
  if (!length) ++misses_;
}

bool SampleCache::Read(ReadRequest& read, CachedSample& cached, std::span<const uint8_t>& image) {
  const uint64_t length = cached.length;
  const bool is_read = length != 0 && MakeRoom(read.buffer, length).ok() &&
                       store_->Read(cached.key, {read.buffer.data(), length});
  if (!is_read) {
    cached.state = State::kMissing;
    ++misses_;
    return false;
  }
  read.size = 0;  // nothing of the file
  image = {read.buffer.data(), length};
  ++hits_;
  hit_bytes_ += length;
  return true;
}

void SampleCache::Pack(ReadRequest& read, CachedSample& cached, std::span<const uint8_t>& image,
                       ImagePacker& packer) {
  if (cached.state != State::kMissing) return;
  cached.state = State::kNone;
  if (!store_->MayWrite(image.size() + image.size() / 4)) {  // packed ones are larger
    ++refused_;
    return;
  }
  // The file may have changed after it was looked at, and before it was read.
  if (const std::optional<FileKey> now = KeyOf(read, Pass::kAgain); !now || now->key != cached.key)
    return;
  cached.state = State::kMissing;
  const Result<std::span<const uint8_t>> packed = packer.PackPixels(image);
  if (!packed.ok()) {
    // Given memory it could be packed, so it is not kept unpacked for good.
    if (packed.error().code == Code::kResourceExhausted) cached.state = State::kNone;
    return;
  }
  if (!MakeRoom(read.buffer, packed->size(), image.size()).ok()) {
    cached.state = State::kNone;
    return;
  }
  std::ranges::copy(*packed, read.buffer.data());
  image = {read.buffer.data(), packed->size()};
  cached.state = State::kPacked;
}

void SampleCache::Keep(const CachedSample& cached, std::span<const uint8_t> image) {
  constexpr size_t kMostBytes = ~uint32_t{0};  // the key for bytes whose length DiskCache knows
  if (cached.state != State::kMissing && cached.state != State::kPacked) return;
  if (image.size() >= kMostBytes) return;
  if (store_->Write(cached.key, image)) {
    ++kept_;
    kept_bytes_ += image.size();
    if (cached.state == State::kPacked) ++packed_;
  } else if (!store_->MayWrite(image.size())) {  // else another process was faster
    ++refused_;
  }
}

CacheCounts SampleCache::counts() const {
  const DiskCacheCounts store = store_->counts();
  return {.place = place_,
          .hits = hits_,
          .hit_bytes = hit_bytes_,
          .misses = misses_,
          .kept = kept_,
          .kept_bytes = kept_bytes_,
          .packed = packed_,
          .refused = refused_,
          .damaged = store.damaged,
          .samples = store.ranges,
          .bytes = store.range_bytes,
          .most_bytes = store_->bytes()};
}

std::string SampleCache::Warning() const {
  if (std::string warning = store_->Warning(); !warning.empty()) return warning;
  if (unused_ == 0 || kept_ != 0 || hits_ != 0) return {};
  return "The cache " + place_ +
         " keeps nothing: the photographs are in archives on this machine, or remote objects "
         "without a known version. Leave cache out";
}

}  // namespace stoker
