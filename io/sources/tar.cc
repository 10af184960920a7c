#include "io/sources/tar.h"

#include <optional>
#include <span>
#include <utility>

#include "core/hash.h"
#include "core/machine.h"
#include "core/plural.h"
#include "core/try.h"
#include "io/sources/for_each_shard.h"
#include "io/sources/input_file.h"
#include "io/sources/shard_index_file.h"
#include "io/sources/shard_pattern.h"
#include "io/sources/tar_index_file.h"
#include "io/sources/tar_members.h"
#include "io/sources/tar_samples.h"

namespace stoker {

namespace {

// Returns an archive's members, by its index file or, if that does not hold, by its headers.
Result<TarMembers> MembersOf(const std::string& path) {
  FileStamp stamp;
  {
    ASSIGN_OR_RETURN(const InputFile archive, InputFile::Open(path));
    ASSIGN_OR_RETURN(stamp, archive.Stamp());
    if (std::optional<TarMembers> known = ReadTarIndex(archive, stamp)) return *std::move(known);
  }
  ASSIGN_OR_RETURN(TarMembers members, ReadTarMembers(path, stamp));
  (void)WriteTarIndex(ShardIndexPath(path), members, stamp);  // it only saves time
  return members;
}

// The samples of all archives.
Result<TarSamples> IndexArchives(const std::vector<std::string>& paths,
                                 const std::vector<std::string>& extensions, int threads) {
  std::vector<TarSamples> shards(paths.size());
  TRY(ForEachShard(paths, threads, [&](size_t shard) -> Status {
    const std::string& path = paths[shard];
    ASSIGN_OR_RETURN(const TarMembers members, MembersOf(path));
    ASSIGN_OR_RETURN(shards[shard],
                     GroupMembers(members, extensions, path, static_cast<uint32_t>(shard)));
    return {};
  }));
  TarSamples all;
  for (TarSamples& shard : shards) TRY(AppendSamples(all, std::exchange(shard, {}), paths));
  all.images.shrink_to_fit();
  all.keys.ShrinkToFit();
  all.labels.shrink_to_fit();
  return all;
}

class TarSource final : public SampleSource {
 public:
  TarSource(std::vector<std::string> paths, TarSamples samples, std::string described)
      : paths_(PathTable(paths)),
        samples_(std::move(samples)),
        described_(std::move(described)),
        fingerprint_(HashOf(samples_)) {}

  uint64_t size() const override { return samples_.images.size(); }

  std::span<const Field> fields() const override {
    return ImageFields(/*labels=*/!samples_.labels.empty());
  }

  uint64_t files() const override { return paths_.size(); }

  ByteRange RangeOf(uint64_t id) const override {
    const TarSamples::Image& image = samples_.images[id];
    return {.file = image.shard, .offset = image.offset, .length = image.length};
  }

  void PathOf(uint32_t file, std::string& path) const override { path.assign(paths_[file]); }

  void FixedRows(size_t /*field*/, std::span<const uint64_t> ids, void* rows) const override {
    auto* label = static_cast<int64_t*>(rows);
    for (const uint64_t id : ids) *label++ = samples_.labels[id];
  }

  SkippedFiles Skipped() const override { return samples_.skipped; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t Fingerprint() const override { return fingerprint_; }
  std::string Describe() const override { return described_; }

  uint64_t memory_bytes() const override {
    return sizeof(*this) + paths_.memory_bytes() + samples_.memory_bytes() + described_.capacity();
  }

 private:
  // Hashes keys, images' lengths and labels: the archives may have other names, and the samples
  // other places in them.
  static uint64_t HashOf(const TarSamples& samples) {
    uint64_t hash = samples.keys.Hash();
    for (const TarSamples::Image& image : samples.images) {
      const uint32_t length = image.length;
      hash = Hash64({reinterpret_cast<const uint8_t*>(&length), sizeof(length)}, hash);
    }
    const std::span<const int64_t> labels = samples.labels;
    return Hash64({reinterpret_cast<const uint8_t*>(labels.data()), labels.size_bytes()}, hash);
  }

  const PathTable paths_;
  const TarSamples samples_;
  const std::string described_;
  const uint64_t fingerprint_;
  const std::vector<std::string> classes_;  // labels have no names
};

Error NoImageInArchives(const std::vector<std::string>& paths, const TarSamples& samples,
                        const std::string& image) {
  const uint64_t skipped = samples.skipped.files();
  std::string cause = "no sample in " + std::to_string(paths.size()) +
                      Plural(paths.size(), " archive", " archives") + " has an image (" + image +
                      ")";
  if (skipped > 0) cause += ", but " + samples.skipped.Counts();
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = paths[0],
          .advice = "Name the extensions of the images: image=\"jpg;ppm\""};
}

Result<std::shared_ptr<const SampleSource>> OpenArchives(std::vector<std::string> paths,
                                                         const TarOptions& options,
                                                         std::string described) {
  TRY(CheckThreads(options.threads));
  ASSIGN_OR_RETURN(const std::vector<std::string> extensions, ParseImageExtensions(options.image));
  ASSIGN_OR_RETURN(TarSamples samples, IndexArchives(paths, extensions, options.threads));
  if (samples.images.empty()) return NoImageInArchives(paths, samples, options.image);
  return std::shared_ptr<const SampleSource>(
      std::make_shared<TarSource>(std::move(paths), std::move(samples), std::move(described)));
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Tar(const std::string& pattern,
                                                const TarOptions& options) {
  ASSIGN_OR_RETURN(std::vector<std::string> paths, ExpandShards(pattern, options.root));
  return OpenArchives(std::move(paths), options, "tar(" + pattern + ")");
}

Result<std::shared_ptr<const SampleSource>> TarArchives(std::vector<std::string> archives,
                                                        const TarOptions& options) {
  if (archives.empty() || archives.size() > kMaxShards) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "tar: " + std::to_string(archives.size()) +
                          " archives were given; 1 to " + std::to_string(kMaxShards) +
                          " are possible"};
  }
  const std::string others =
      archives.size() == 1 ? "" : " and " + std::to_string(archives.size() - 1) + " more";
  std::string described = "tar(" + archives[0] + others + ")";
  return OpenArchives(std::move(archives), options, std::move(described));
}

}  // namespace stoker
