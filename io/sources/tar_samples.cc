#include "io/sources/tar_samples.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "core/try.h"
#include "core/utf8.h"
#include "io/sources/tar.h"

namespace stoker {

namespace {

Error SampleError(const std::string& path, uint64_t offset, std::string cause, std::string advice) {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = path,
          .offset = offset,
          .advice = std::move(advice)};
}

// Says that one sample has a label, and that another one has none.
Error MixedLabels(const std::string& path, uint64_t offset, std::string_view key, bool labelled,
                  const std::string& other) {
  return SampleError(path, offset,
                     "the sample '" + Printable(key) + "' has " +
                         (labelled ? "a label (.cls), and " : "no label (.cls), and ") + other +
                         (labelled ? " has none" : " has one"),
                     "Give all samples a label or none, and put the members of a sample side by "
                     "side");
}

// Groups one shard's members.
class Grouping {
 public:
  Grouping(const TarMembers& all, const std::vector<std::string>& extensions,
           const std::string& path, uint32_t shard)
      : all_(all), extensions_(extensions), path_(path), shard_(shard) {}

  Result<TarSamples> Run() {
    for (size_t i = 0; i < all_.members.size(); ++i) {
      const std::optional<MemberName> name = SplitMemberName(all_.NameOf(i));
      if (name) TRY(Add(i, *name));
    }
    TRY(Finish());
    made_.images.shrink_to_fit();
    made_.keys.ShrinkToFit();
    made_.labels.shrink_to_fit();
    return std::move(made_);
  }

 private:
  Status Add(size_t member, const MemberName& name) {
    if (!first_ || name.key != key_) {
      TRY(Finish());
      first_ = member;
      key_ = name.key;
    }
    std::string extension = LowerCase(name.extension);
    if (extension == "cls") label_ = all_.labels[next_label_++];
    const auto place =
        static_cast<size_t>(std::ranges::find(extensions_, extension) - extensions_.begin());
    if (place < image_place_) {
      image_place_ = place;
      image_ = member;
    }
    const auto [there, is_new] = seen_.insert(std::move(extension));
    if (is_new) return {};
    return SampleError(path_, all_.members[member].offset,
                       "the sample '" + Printable(key_) + "' has two members with the extension '" +
                           Printable(*there) + "'",
                       "Give each sample a key of its own: the path to the first dot of the name");
  }

  // Takes the sample whose members have been added.
  Status Finish() {
    if (!first_) return {};
    const TarMembers::Member& first = all_.members[*first_];
    if (image_ || label_) TRY(CheckLabel(first.offset));
    if (image_) {
      TRY(AddImage(all_.members[*image_]));
    } else {
      const std::string_view name = all_.NameOf(*first_);
      made_.skipped.AddSample("." + LowerCase(SplitMemberName(name)->extension),
                              path_ + ": " + Printable(key_));
    }
    first_.reset();
    image_.reset();
    label_.reset();
    image_place_ = extensions_.size();
    seen_.clear();
    return {};
  }

  Status CheckLabel(uint64_t offset) {
    const bool labelled = label_.has_value();
    if (!made_.labelled) {
      made_.labelled = labelled;
      made_.example = key_;
      made_.example_offset = offset;
      made_.example_shard = shard_;
    }
    if (*made_.labelled == labelled) return {};
    return MixedLabels(path_, offset, key_, labelled, "'" + Printable(made_.example) + "'");
  }

  Status AddImage(const TarMembers::Member& image) {
    if (image.length > std::numeric_limits<uint32_t>::max()) {
      return SampleError(path_, image.offset,
                         "the image of the sample '" + Printable(key_) + "' has " +
                             std::to_string(image.length) + " bytes; 4 GiB and more are too many",
                         "");
    }
    made_.images.push_back(
        {.offset = image.offset, .length = static_cast<uint32_t>(image.length), .shard = shard_});
    made_.keys.Add(key_);
    if (label_) made_.labels.push_back(*label_);
    return {};
  }

  const TarMembers& all_;
  const std::vector<std::string>& extensions_;
  const std::string& path_;
  const uint32_t shard_;
  size_t next_label_ = 0;  // in all_.labels

  // The sample that members are added to.
  std::optional<size_t> first_, image_;  // members; no first one: there is no sample yet
  size_t image_place_ = extensions_.size();
  std::string_view key_;
  std::optional<int64_t> label_;
  std::unordered_set<std::string> seen_;  // its extensions

  TarSamples made_;
};

}  // namespace

uint64_t TarSamples::memory_bytes() const {
  return images.capacity() * sizeof(Image) + keys.memory_bytes() +
         labels.capacity() * sizeof(int64_t) + skipped.memory_bytes() + example.capacity();
}

Result<std::vector<std::string>> ParseImageExtensions(std::string_view list) {
  std::vector<std::string> extensions;
  for (;;) {
    const size_t end = list.find(';');
    std::string_view one = list.substr(0, end);
    if (one.starts_with('.')) one.remove_prefix(1);
    if (one.empty() || one.find_first_of(std::string_view("/ \0", 3)) != std::string_view::npos) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = "tar: image must be a list of extensions, as \"jpg;png\"",
                   .advice = "The default is \"" + std::string(kTarImages) + "\""};
    }
    extensions.push_back(LowerCase(one));
    if (end == std::string_view::npos) return extensions;
    list.remove_prefix(end + 1);
  }
}

Result<TarSamples> GroupMembers(const TarMembers& all, const std::vector<std::string>& extensions,
                                const std::string& path, uint32_t shard) {
  return Grouping(all, extensions, path, shard).Run();
}

Status AppendSamples(TarSamples& all, TarSamples&& more, const std::vector<std::string>& paths) {
  if (all.labelled && more.labelled && *all.labelled != *more.labelled) {
    return MixedLabels(paths[more.example_shard], more.example_offset, more.example, *more.labelled,
                       "'" + Printable(all.example) + "' in " + paths[all.example_shard]);
  }
  if (!all.labelled && more.labelled) {
    all.labelled = more.labelled;
    all.example = std::move(more.example);
    all.example_offset = more.example_offset;
    all.example_shard = more.example_shard;
  }
  all.images.insert(all.images.end(), more.images.begin(), more.images.end());
  for (size_t i = 0; i < more.keys.size(); ++i) all.keys.Add(more.keys[i]);
  all.labels.insert(all.labels.end(), more.labels.begin(), more.labels.end());
  all.skipped.Add(more.skipped);
  more = {};
  return {};
}

}  // namespace stoker
