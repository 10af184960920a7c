#include "io/tar/tar_samples.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <set>
#include <unordered_set>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

Error SampleError(const std::string& path, uint64_t offset, std::string cause, std::string advice) {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = path,
          .offset = offset,
          .advice = std::move(advice)};
}

// Returns the error that one sample has a label and another one has none.
Error MixedLabels(const std::string& path, uint64_t offset, std::string_view key, bool labelled,
                  const std::string& other, const std::string& only_has = "") {
  return SampleError(path, offset,
                     "the sample '" + Printable(key) + "' has " +
                         (labelled ? "a label (.cls), and " : "no label (.cls), and ") + other +
                         (labelled ? " has none" : " has one") + only_has,
                     "Give all samples a label or none; or leave the labels out (label=None)");
}

// Returns an extension in lower case, without the dot that it may begin with; nullopt for an empty
// one, or one with a slash, a NUL, a space or a semicolon.
std::optional<std::string> ParseExtension(std::string_view text) {
  if (text.starts_with('.')) text.remove_prefix(1);
  if (text.empty() || text.find_first_of(std::string_view("/ ;\0", 4)) != std::string_view::npos) {
    return std::nullopt;
  }
  return LowerCase(text);
}

// Returns the part after the last dot of an extension: "npy" of "features.npy".
std::string LastPart(std::string_view extension) {
  return LowerCase(extension.substr(extension.rfind('.') + 1));
}

// An extension that may begin with the number of an image: "12.jpg".
struct NumberedExtension {
  std::string_view number;     // decimal digits; empty if there is none
  std::string_view extension;  // after them: "jpg"
};

NumberedExtension SplitNumber(std::string_view extension) {
  const size_t end = extension.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos || extension[end] != '.') return {"", extension};
  return {extension.substr(0, end), extension.substr(end + 1)};
}

// Returns whether images usually have this extension, in lower case.
bool IsOfTarImages(std::string_view extension) {
  return (";" + std::string(kTarImages) + ";").find(";" + std::string(extension) + ";") !=
         std::string::npos;
}

// Groups the members of one shard.
class Grouping {
 public:
  Grouping(const TarMembers& all, const TarGrouping& grouping, const std::string& path,
           uint32_t shard)
      : all_(all),
        grouping_(grouping),
        path_(path),
        shard_(shard),
        next_text_(grouping.texts.size()),
        texts_(grouping.texts.size()),
        arrays_(grouping.arrays.size()),
        masks_(grouping.masks.size()) {
    made_.columns.resize(grouping.texts.size());
    made_.arrays.resize(grouping.arrays.size());
    made_.masks.resize(grouping.masks.size());
  }

  Result<TarSamples> Run() {
    if (grouping_.labels && all_.bad_label != TarMembers::kNone) return BadLabel();
    for (size_t i = 0; i < all_.members.size(); ++i) {
      const std::optional<MemberName> name = SplitMemberName(all_.NameOf(i));
      if (name) TRY(Add(i, *name));
    }
    TRY(Finish());
    made_.images.shrink_to_fit();
    made_.ends.shrink_to_fit();
    made_.shards.shrink_to_fit();
    made_.keys.ShrinkToFit();
    made_.labels.shrink_to_fit();
    for (auto& rows : made_.columns) rows.shrink_to_fit();
    for (auto& rows : made_.arrays) rows.shrink_to_fit();
    for (auto& rows : made_.masks) rows.shrink_to_fit();
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
    if (extension == "cls" && grouping_.labels) label_ = all_.labels[next_label_++];
    for (size_t c = 0; c < texts_.size(); ++c) {
      if (extension == grouping_.texts[c]) texts_[c] = {member, next_text_[c]++};
    }
    for (size_t c = 0; c < arrays_.size(); ++c) {
      if (extension == grouping_.arrays[c]) arrays_[c] = member;
    }
    for (size_t m = 0; m < masks_.size(); ++m) {
      if (extension == grouping_.masks[m]) masks_[m] = member;
    }
    const auto& images = grouping_.images;
    const auto place = static_cast<size_t>(std::ranges::find(images, extension) - images.begin());
    if (grouping_.varies) {
      TRY(AddNumbered(member, extension));
    } else if (place < image_place_) {
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

  // Adds a member to the images of a sample that has any number of them, if it is one of them. One
  // that is not, although it looks like an image, is counted. `extension`: in lower case.
  Status AddNumbered(size_t member, const std::string& extension) {
    const NumberedExtension split = SplitNumber(extension);
    const auto is = [](std::string_view wanted) {
      return [wanted](const std::string& one) { return one == wanted; };
    };
    if (std::ranges::any_of(grouping_.images, is(split.extension))) {
      std::optional<uint32_t> number;
      const std::string digits(split.number);
      const char* const end = digits.data() + digits.size();
      if (!digits.empty() &&
          std::from_chars(digits.data(), end, number.emplace()).ec != std::errc()) {
        return SampleError(
            path_, all_.members[member].offset,
            "the image '" + Printable(all_.NameOf(member)) + "' has a number above 4294967295",
            "Number the images of each sample from 0");
      }
      several_.emplace_back(number, member);
      return {};
    }
    const std::string last = LastPart(extension);
    const bool is_image =
        IsOfTarImages(last) || std::ranges::any_of(grouping_.images, [&last](const auto& one) {
          return LastPart(one) == last;
        });
    if (!is_image || std::ranges::any_of(grouping_.texts, is(extension))) return {};
    if (split.number.empty() && last.size() < extension.size()) {
      named_ = member;
    } else {
      AddSkippedImage(member);
    }
    return {};
  }

  // Finishes the sample whose members have been added.
  Status Finish() {
    if (!first_) return {};
    if (several_.empty() && named_) AddSkippedImage(*named_);
    const bool has_text = std::ranges::any_of(texts_, &std::optional<Text>::has_value);
    const bool is_row = image_ || !several_.empty() || (grouping_.varies && has_text);
    if (is_row || label_) TRY(CheckLabel(all_.members[*first_].offset));
    if (is_row) {
      TRY(grouping_.varies ? AddSeveral()
                           : AddMember(all_.members[*image_], "image", made_.images));
      TRY(AddSample());
    } else if (!is_counted_) {
      made_.skipped.AddSample("." + LowerCase(SplitMemberName(all_.NameOf(*first_))->extension),
                              ShownSkipped(*first_));
    }
    first_.reset();
    image_.reset();
    label_.reset();
    image_place_ = grouping_.images.size();
    std::ranges::fill(texts_, std::nullopt);
    std::ranges::fill(arrays_, std::nullopt);
    std::ranges::fill(masks_, std::nullopt);
    seen_.clear();
    several_.clear();
    named_.reset();
    is_counted_ = false;
    return {};
  }

  // Adds the images of a sample that has any number of them.
  Status AddSeveral() {
    if (!keys_.insert(key_).second) return NotAdjacentError(*first_);
    std::ranges::sort(several_);
    for (size_t i = 0; i < several_.size(); ++i) {
      const auto [number, member] = several_[i];
      if (i != 0 && (!several_[0].first || several_[i - 1].first == number)) {
        return SameNumber(several_[i - 1].second, member);
      }
      if (i == kMostPieces) {
        return SampleError(path_, all_.members[member].offset,
                           "the sample '" + Printable(key_) + "' has more than " +
                               std::to_string(kMostPieces) + " images",
                           "Make samples of fewer images");
      }
      TRY(AddMember(all_.members[member], "image", made_.images));
    }
    made_.ends.push_back(made_.images.size());
    made_.shards.push_back(shard_);
    return {};
  }

  // Returns the error that two images of a sample have one number, or that one of them has none.
  Error SameNumber(size_t one, size_t other) const {
    if (one > other) std::swap(one, other);
    return SampleError(path_, all_.members[other].offset,
                       "the sample '" + Printable(key_) + "' has the images '" +
                           Printable(all_.NameOf(one)) + "' and '" + Printable(all_.NameOf(other)) +
                           "', which do not have different numbers",
                       "Give each image of the sample a number of its own (7.0.jpg, 7.1.png); or "
                       "leave an extension out of image");
  }

  // Counts an image that is not one of those of its sample, as "*.webp".
  void AddSkippedImage(size_t member) {
    const std::string last = LastPart(SplitMemberName(all_.NameOf(member))->extension);
    made_.skipped.Add("*." + Printable(last), ShownSkipped(member));
    made_.skipped.are_samples = true;
    is_counted_ = true;
  }

  // Returns a member that is not taken as an image, and why.
  std::string ShownSkipped(size_t member) const {
    const std::string_view extension = SplitMemberName(all_.NameOf(member))->extension;
    std::string shown = path_ + ": '" + Printable(all_.NameOf(member)) + "'";
    if (extension.find('.') != std::string_view::npos) {
      const std::string taken = grouping_.varies
                                    ? "*." + std::string(SplitNumber(extension).extension)
                                    : std::string(extension);
      shown += ", whose extension is '" + Printable(extension) +
               "': all after the first dot (image=\"" + Printable(taken) +
               "\" takes it as an image; or rename the members)";
    }
    return shown;
  }

  Error BadLabel() const {
    return SampleError(
        path_, all_.members[all_.bad_label].offset,
        "the label '" + Printable(all_.NameOf(all_.bad_label)) +
            "' is not an integer of 64 bits in ASCII",
        "Write class numbers into .cls members; or leave the labels out "
        "(label=None) and take their text as a column (columns={\"class\": \".cls\"})");
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
    const std::string_view without = labelled ? std::string_view(made_.example) : key_;
    if (const std::optional<size_t> label = Find(without, kTarLabel))
      return NotAdjacentError(*label);
    return MixedLabels(path_, offset, key_, labelled, "'" + Printable(made_.example) + "'",
                       labelled ? "" : OnlyHas());
  }

  // Finds the first member with this key and extension.
  std::optional<size_t> Find(std::string_view key, std::string_view extension) const {
    for (size_t i = 0; i < all_.members.size(); ++i) {
      const std::optional<MemberName> name = SplitMemberName(all_.NameOf(i));
      if (name && name->key == key && LowerCase(name->extension) == extension) return i;
    }
    return std::nullopt;
  }

  // Returns the error that a member is not next to the others of its sample.
  Error NotAdjacentError(size_t member) const {
    const std::string_view key = SplitMemberName(all_.NameOf(member))->key;
    size_t other = 0;  // the first one with the key
    while (!HasKey(other, key)) ++other;
    if (other == member) other = LastWith(key);
    const auto shown = [this](size_t i) {
      return "'" + Printable(all_.NameOf(i)) + "' is at byte " +
             std::to_string(all_.members[i].offset);
    };
    return SampleError(path_, all_.members[member].offset,
                       "the members of the sample '" + Printable(key) +
                           "' lie apart: " + shown(std::min(member, other)) + ", and " +
                           shown(std::max(member, other)) + ", with other samples between them",
                       "Write the members of a sample one after another (tar --sort=name -cf x.tar "
                       "FOLDER); names of different samples must differ before their first dot");
  }

  bool HasKey(size_t member, std::string_view key) const {
    const std::optional<MemberName> name = SplitMemberName(all_.NameOf(member));
    return name && name->key == key;
  }

  // Precondition: there is a member with the key.
  size_t LastWith(std::string_view key) const {
    size_t last = all_.members.size() - 1;
    while (!HasKey(last, key)) --last;
    return last;
  }

  // Returns what the sample has, "; it has only 'jpg', 'txt'".
  std::string OnlyHas() const {
    constexpr size_t kMost = 8;
    std::string text;
    size_t listed = 0;
    for (const std::string& extension : std::set<std::string>(seen_.begin(), seen_.end())) {
      if (++listed > kMost) return text + ", …";
      text += (text.empty() ? "; it has only '" : ", '") + Printable(extension) + "'";
    }
    return text;
  }

  // Adds all of a sample but its images.
  Status AddSample() {
    made_.keys.Add(key_);
    if (label_) made_.labels.push_back(*label_);
    for (size_t c = 0; c < texts_.size(); ++c) TRY(AddText(c));
    for (size_t c = 0; c < arrays_.size(); ++c) {
      if (!arrays_[c]) return NoMember(grouping_.arrays[c]);
      TRY(AddMember(all_.members[*arrays_[c]], "array", made_.arrays[c]));
    }
    for (size_t m = 0; m < masks_.size(); ++m) {
      if (!masks_[m]) return NoMember(grouping_.masks[m]);
      TRY(AddMember(all_.members[*masks_[m]], "mask", made_.masks[m]));
    }
    return {};
  }

  Status AddMember(const TarMembers::Member& member, const char* what,
                   std::vector<TarSamples::Member>& members) const {
    if (member.length > std::numeric_limits<uint32_t>::max()) {
      return SampleError(path_, member.offset,
                         std::string("the ") + what + " of the sample '" + Printable(key_) +
                             "' has " + std::to_string(member.length) +
                             " bytes; 4 GiB and more are too many",
                         "");
    }
    members.push_back(
        {.offset = member.offset, .length = static_cast<uint32_t>(member.length), .shard = shard_});
    return {};
  }

  Error NoMember(const std::string& extension) const {
    if (const std::optional<size_t> member = Find(key_, extension))
      return NotAdjacentError(*member);
    return SampleError(path_, all_.members[*first_].offset,
                       "the sample '" + Printable(key_) + "' has no member with the extension '" +
                           Printable(extension) + "', which a column is made of" + OnlyHas(),
                       "Give each sample one, or leave this column out");
  }

  Status AddText(size_t column) {
    const std::string& extension = grouping_.texts[column];
    if (!texts_[column]) return NoMember(extension);
    const std::string_view text = all_.texts[column][texts_[column]->number];
    if (IsTextExtension(extension) && !IsUtf8(text)) {
      const size_t member = texts_[column]->member;
      return SampleError(path_, all_.members[member].offset,
                         "the text '" + Printable(all_.NameOf(member)) + "' is not UTF-8",
                         "Write it as UTF-8; members with other extensions (.bin) are bytes");
    }
    made_.columns[column].push_back(text);
    return {};
  }

  // A member whose text is in all_.texts, and the text's number there.
  struct Text {
    size_t member = 0, number = 0;
  };

  const TarMembers& all_;
  const TarGrouping& grouping_;
  const std::string& path_;
  const uint32_t shard_;
  size_t next_label_ = 0;          // in all_.labels
  std::vector<size_t> next_text_;  // in all_.texts, by column

  // The sample that members are added to.
  std::optional<size_t> first_, image_;  // members; first_ is empty: there is no sample yet
  size_t image_place_ = grouping_.images.size();
  // If the number of images varies: each image's number, and its member. named_ is an image without
  // a number and with another name, "7.left.png".
  std::vector<std::pair<std::optional<uint32_t>, size_t>> several_;
  std::optional<size_t> named_;
  bool is_counted_ = false;  // whether an image of it is among the skipped ones
  std::string_view key_;
  std::optional<int64_t> label_;
  std::vector<std::optional<Text>> texts_;     // by column
  std::vector<std::optional<size_t>> arrays_;  // members, by column
  std::vector<std::optional<size_t>> masks_;   // members, by mask
  std::unordered_set<std::string> seen_;       // its extensions

  std::unordered_set<std::string_view>
      keys_;  // of finished samples, if the number of images varies
  TarSamples made_;
};

Error WrongOption(std::string cause, std::string advice) {
  return {.code = Code::kInvalidArgument,
          .cause = "tar: " + std::move(cause),
          .advice = std::move(advice)};
}

// Refuses an extension that is one of `others`.
Status CheckIsOther(const std::string& extension, const std::vector<std::string>& others) {
  if (std::ranges::find(others, extension) == others.end()) return {};
  return WrongOption("two columns have the extension '" + Printable(extension) + "'", "");
}

// Adds a mask, whose members are then not images.
Status AddMask(const KeyedColumn& column, TarGrouping& grouping) {
  const std::string named = "the mask '" + Printable(column.field.name) + "'";
  std::optional<std::string> extension = ParseExtension(column.key);
  if (!extension) {
    return WrongOption(named + " must have one extension, not '" + Printable(column.key) + "'",
                       "Give the extension of its members, as \".seg.png\"");
  }
  for (const auto* others : {&grouping.masks, &grouping.texts, &grouping.arrays}) {
    TRY(CheckIsOther(*extension, *others));
  }
  std::erase(grouping.images, *extension);
  if (grouping.images.empty()) {
    return WrongOption(named + " has the extension of the images, '" + Printable(*extension) + "'",
                       "Give images and masks different extensions: image=\"jpg\"");
  }
  grouping.masks.push_back(*std::move(extension));
  return {};
}

// Adds a column of objects to those of its text.
Status AddObjects(const KeyedColumn& column, TarGrouping& grouping) {
  const size_t colon = column.key.find(':');
  const std::optional<std::string> extension =
      ParseExtension(std::string_view(column.key).substr(0, colon));
  if (!extension || IsArrayExtension(*extension)) {
    return WrongOption("the column '" + Printable(column.field.name) + "' has the key '" +
                           Printable(column.key) + "', which does not begin with an extension",
                       "Give that of the JSON and the key in it, as \".json:objects.bbox\"");
  }
  TRY(CheckIsOther(*extension, grouping.masks));
  const auto found = std::ranges::find(grouping.texts, *extension);
  const auto text = static_cast<size_t>(found - grouping.texts.begin());
  if (found == grouping.texts.end()) grouping.texts.push_back(*extension);
  auto objects = std::ranges::find(grouping.objects, text, &TarGrouping::Objects::text);
  if (objects == grouping.objects.end()) {
    grouping.objects.push_back({.text = text, .columns = {}});
    objects = grouping.objects.end() - 1;
  }
  objects->columns.push_back(column);
  objects->columns.back().key = colon == std::string::npos ? "" : column.key.substr(colon + 1);
  return {};
}

}  // namespace

uint64_t TarSamples::memory_bytes() const {
  uint64_t bytes = images.capacity() * sizeof(Member) + keys.memory_bytes() +
                   labels.capacity() * sizeof(int64_t) + skipped.memory_bytes() +
                   example.capacity() + ends.capacity() * sizeof(uint64_t) +
                   shards.capacity() * sizeof(uint32_t);
  for (const auto& rows : columns) bytes += rows.capacity() * sizeof(std::string_view);
  for (const auto& text : texts) bytes += text.capacity();
  for (const auto& rows : arrays) bytes += rows.capacity() * sizeof(Member);
  for (const auto& rows : masks) bytes += rows.capacity() * sizeof(Member);
  return bytes;
}

Result<std::vector<std::string>> ParseImageExtensions(std::string_view list) {
  std::vector<std::string> extensions;
  for (;;) {
    const size_t end = list.find(';');
    std::optional<std::string> one = ParseExtension(list.substr(0, end));
    if (!one) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = "tar: image must be a list of extensions, as \"jpg;png\"",
                   .advice = "The default is \"" + std::string(kTarImages) + "\""};
    }
    extensions.push_back(*std::move(one));
    if (end == std::string_view::npos) return extensions;
    list.remove_prefix(end + 1);
  }
}

Result<TarGrouping> ParseGrouping(const TarOptions& options) {
  const auto refused = [](std::string cause, std::string advice = "") {
    return WrongOption(std::move(cause), std::move(advice));
  };
  TarGrouping grouping;
  ASSIGN_OR_RETURN(grouping.images, ParseImageExtensions(options.image));
  for (std::string& image : grouping.images) {
    const bool is_numbered = image.starts_with("*.");
    if (is_numbered) image.erase(0, 2);
    if (image.empty() || image.find('*') != std::string::npos) {
      return refused("image is '" + Printable(options.image) + "', with an extension that has '*'",
                     "Begin each extension with \"*.\", as \"*.jpg;*.png\", or none");
    }
    if (&image != grouping.images.data() && is_numbered != grouping.varies) {
      return refused("image is '" + Printable(options.image) +
                         "', which has extensions with \"*.\" and others without",
                     "Begin each with \"*.\", for any number of images of a sample, or none");
    }
    grouping.varies = is_numbered;
  }
  // The error of a column that comes with one image of a sample.
  const auto needs_one_image = [&](const std::string& name, const char* values) {
    return refused("the column '" + Printable(name) + "' has " + values +
                       ", and samples have any number of images (image=\"" +
                       Printable(options.image) + "\")",
                   "Leave the column out, or give extensions without \"*.\"");
  };
  grouping.labels = !options.label.empty();
  if (grouping.labels && ParseExtension(options.label) != kTarLabel) {
    return refused("label is '" + Printable(options.label) +
                       "'; labels are in .cls members, or there are none",
                   "Take the text of other members as a column");
  }
  std::set<std::string_view> names = {"image", "label"};
  for (const auto& [name, given] : options.columns) {
    if (name.empty() || !names.insert(name).second) {
      return refused("columns has the name '" + Printable(name) +
                     "', which is empty, or another column's");
    }
    std::optional<std::string> extension = ParseExtension(given);
    if (!extension) {
      return refused("the column '" + Printable(name) + "' must have one extension, " +
                         (given.empty() ? "and has none" : "not '" + Printable(given) + "'"),
                     "Give a name and one extension, as \"caption .txt\"; in Python "
                     "columns={\"caption\": \".txt\"}");
    }
    auto& extensions = IsArrayExtension(*extension) ? grouping.arrays : grouping.texts;
    if (grouping.varies && &extensions == &grouping.arrays) {
      return needs_one_image(name, "arrays");
    }
    TRY(CheckIsOther(*extension, extensions));
    extensions.push_back(*std::move(extension));
  }
  grouping.text_columns = grouping.texts.size();
  for (const KeyedColumn& column : options.keyed) {
    const std::string& name = column.field.name;
    if (!names.insert(name).second) {
      return refused("two columns have the name '" + Printable(name) + "'");
    }
    if (grouping.varies) {
      return needs_one_image(name, column.is_mask() ? "masks" : "values of objects");
    }
    if (column.is_of_objects()) {
      TRY(AddObjects(column, grouping));
    } else if (column.is_mask()) {
      TRY(AddMask(column, grouping));
    } else {
      return refused("the column '" + Printable(name) + "' is neither a mask nor of objects");
    }
  }
  return grouping;
}

bool IsArrayExtension(std::string_view extension) { return LastPart(extension) == "npy"; }

bool IsTextExtension(std::string_view extension) {
  constexpr std::array<std::string_view, 11> kTexts = {
      "txt", "text", "transcript", "json", "cls", "cls2", "class", "count", "index", "inx", "id"};
  return std::ranges::find(kTexts, LastPart(extension)) != kTexts.end();
}

Result<TarSamples> GroupMembers(TarMembers all, const TarGrouping& grouping,
                                const std::string& path, uint32_t shard) {
  ASSIGN_OR_RETURN(TarSamples made, Grouping(all, grouping, path, shard).Run());
  for (TarMembers::Texts& texts : all.texts) made.texts.push_back(std::move(texts.bytes));
  return made;
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
  for (const uint64_t end : more.ends) all.ends.push_back(all.images.size() + end);
  all.shards.insert(all.shards.end(), more.shards.begin(), more.shards.end());
  all.images.insert(all.images.end(), more.images.begin(), more.images.end());
  for (size_t i = 0; i < more.keys.size(); ++i) all.keys.Add(more.keys[i]);
  all.labels.insert(all.labels.end(), more.labels.begin(), more.labels.end());
  all.columns.resize(more.columns.size());
  for (size_t c = 0; c < more.columns.size(); ++c) {
    all.columns[c].insert(all.columns[c].end(), more.columns[c].begin(), more.columns[c].end());
  }
  std::ranges::move(more.texts, std::back_inserter(all.texts));
  all.arrays.resize(more.arrays.size());
  for (size_t c = 0; c < more.arrays.size(); ++c) {
    all.arrays[c].insert(all.arrays[c].end(), more.arrays[c].begin(), more.arrays[c].end());
  }
  all.masks.resize(more.masks.size());
  for (size_t m = 0; m < more.masks.size(); ++m) {
    all.masks[m].insert(all.masks[m].end(), more.masks[m].begin(), more.masks[m].end());
  }
  all.skipped.Add(more.skipped);
  more = {};
  return {};
}

}  // namespace stoker
