#include "io/source/source.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace stoker {

namespace {

constexpr size_t kMaxExtensions = 64;

// Returns whether a text could be a listed extension: it is printed, and comes from a file that may
// hold anything.
bool IsExtension(std::string_view text) {
  constexpr size_t kMax = 8;
  return text.size() > 1 && text.size() <= kMax && text[0] == '.' &&
         std::all_of(text.begin() + 1, text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

}  // namespace

uint64_t SkippedFiles::files() const {
  return std::accumulate(
      by_extension.begin(), by_extension.end(), uint64_t{0},
      [](uint64_t sum, const auto& extension) { return sum + extension.second; });
}

void SkippedFiles::Add(std::string_view extension, const std::string& path) {
  ++by_extension[std::string(extension)];
  if (example.empty() || path < example) example = path;
}

void SkippedFiles::Add(const SkippedFiles& others) {
  for (const auto& [extension, count] : others.by_extension) by_extension[extension] += count;
  if (example.empty() || (!others.example.empty() && others.example < example)) {
    example = others.example;
  }
  are_samples = are_samples || others.are_samples;
}

void SkippedFiles::AddSample(std::string_view extension, const std::string& name) {
  const bool is_shown = IsExtension(extension) && (by_extension.size() < kMaxExtensions ||
                                                   by_extension.contains(std::string(extension)));
  Add(is_shown ? extension : "others", name);
  are_samples = true;
}

std::string SkippedFiles::Counts() const {
  std::string counts;
  for (const auto& [extension, count] : by_extension) {
    if (!counts.empty()) counts += ", ";
    counts += extension + " " + std::to_string(count);
  }
  return counts;
}

std::string SkippedFiles::Summary() const {
  const uint64_t count = files();
  if (are_samples) {
    SkippedFiles samples, images;  // "*.webp" is an image of a sample
    for (const auto& one : by_extension) {
      (one.first.starts_with('*') ? images : samples).by_extension.insert(one);
    }
    const uint64_t of_samples = samples.files(), of_images = images.files();
    std::string text;
    if (of_samples > 0) {
      text = std::to_string(of_samples) +
             (of_samples == 1 ? " sample is skipped, because it has no image; it begins with "
                              : " samples are skipped, because they have no image; they begin "
                                "with ") +
             samples.Counts();
    }
    if (of_images == 0) return text;
    return text + (text.empty() ? "" : "; and ") + std::to_string(of_images) +
           (of_images == 1 ? " image is left out of its sample, because image= does not take it ("
                           : " images are left out of their samples, because image= does not take "
                             "them (") +
           images.Counts() + ")";
  }
  return std::to_string(count) +
         (count == 1 ? " image file is skipped, because stoker does not list its extension"
                     : " image files are skipped, because stoker does not list their extensions") +
         " (" + Counts() + ")";
}

std::string SkippedFiles::Warning() const {
  if (empty()) return {};
  if (are_samples) {
    return Summary() + ", for example in " + example +
           ". If their images have other extensions, name these: image=\"jpg;ppm\", or "
           "\"*.jpg;*.ppm\" for numbered images";
  }
  return Summary() + "; the first is " + example + ". " + kConvertSkipped +
         "; or move them out of the folder";
}

// Writes parts that each end in a zero byte, which no path contains: the example, then extensions
// and counts.
std::string SkippedFiles::Pack() const {
  std::string packed;
  if (empty()) return packed;
  packed.append(example).push_back('\0');
  for (const auto& [extension, count] : by_extension) {
    packed.append(extension).push_back('\0');
    packed.append(std::to_string(count)).push_back('\0');
  }
  return packed;
}

std::optional<SkippedFiles> SkippedFiles::Unpack(std::string_view packed) {
  SkippedFiles files;
  const auto take = [&packed]() -> std::optional<std::string_view> {
    const size_t end = packed.find('\0');
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    const std::string_view part = packed.substr(0, end);
    packed.remove_prefix(end + 1);
    return part;
  };
  if (packed.empty()) return files;
  const auto example = take();
  if (!example || packed.empty()) return std::nullopt;
  files.example = *example;
  while (!packed.empty()) {
    const auto extension = take(), digits = take();
    if (!extension || !digits || !IsExtension(*extension)) return std::nullopt;
    uint32_t count = 0;  // 32 bits, so that sums do not overflow
    const auto [end, error] =
        std::from_chars(digits->data(), digits->data() + digits->size(), count);
    if (error != std::errc() || end != digits->data() + digits->size()) return std::nullopt;
    const bool is_new = files.by_extension.emplace(*extension, count).second;
    if (!is_new || count == 0 || files.by_extension.size() > kMaxExtensions) return std::nullopt;
  }
  return files;
}

uint64_t SkippedFiles::memory_bytes() const {
  constexpr uint64_t kNode = 96;  // a node of the map, with its extension
  return kNode * by_extension.size() + example.capacity();
}

}  // namespace stoker
